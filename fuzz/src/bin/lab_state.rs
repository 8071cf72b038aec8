//! Whatever is written down about a lab: it is a lab whose links can be named, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tailback_fuzz::within(64, || tailback::lab::fuzz_state(bytes)));
