//! Whatever a machine file holds: it is a machine that passes its own checks, or an error of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback_sim::machine::Machine;

fuzz_target!(|text: &str| {
    match Machine::parse(text, "x.toml") {
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
        Ok(machine) => assert!(machine.validate().is_ok(), "{machine:?}"),
    }
});
