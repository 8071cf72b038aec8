//! Whatever a peer that knows the secret sends to the bootstrap: it is a message, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tailback_fuzz::within(16, || tailback_bootstrap::fuzzing::messages(bytes)));
