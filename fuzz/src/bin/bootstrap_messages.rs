//! Whatever a peer sends to the bootstrap: it is a message, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tailback_tcp::bootstrap::decode_any(bytes));
