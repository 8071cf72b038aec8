//! Whatever a stranger says first, to the bootstrap or to the data plane: it is understood as a rank means it, or refused; and
//! nobody is let in who does not know the secret.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tailback_fuzz::within(16, || tailback_bootstrap::fuzzing::handshakes(bytes)));
