//! Whatever a machine file holds: a machine that is accepted also runs. Every event of its first 10 us, with messages between
//! near and far ports and more of them to one, leaves the network's accounts in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tailback_sim::machine::Machine;
use tailback_sim::net::{Happened, Network, Send};

/// A machine may have this much memory. That is a gibibyte for all that its check accepts; large ones take longer to build
/// than to run and are for the crate's own tests, so what has more ports than this is only built by those.
const MEBIBYTES: usize = 1024;
const MOST_PORTS: usize = 4096;

/// Simulated time, and events in it: with a timer of a picosecond there would be no end.
const UNTIL_PS: u64 = 10_000_000;
const EVENTS: usize = 20_000;

const BYTES: [u32; 5] = [0, 1, 4096, 20_000, 131_072];

fuzz_target!(|text: &str| {
    tailback_fuzz::within(MEBIBYTES, || {
        let machine = match Machine::parse(text, "x.toml") {
            Ok(machine) => machine,
            Err(error) => return tailback_fuzz::one_line(&error),
        };
        assert!(machine.validate().is_ok(), "{machine:?}");
        if machine.endpoints() <= MOST_PORTS {
            let _ = machine.describe();
            run(&machine);
        }
    });
});

fn run(machine: &Machine) {
    let mut network = Network::new(machine, 1).expect("an accepted machine can be built");
    let ports = machine.endpoints() as u32;
    let sends = (0..32u64).map(|token| {
        let from = (token as u32).wrapping_mul(7) % ports;
        let to = if token % 2 == 0 { 0 } else { (from + ports / 2) % ports };
        let class = (token as usize % machine.switch.classes) as u8;
        let bytes = BYTES[token as usize % BYTES.len()];
        (token * 100_000, Send { from, to, class, bytes, token, acknowledge: token % 3 == 0 })
    });
    sends.for_each(|(at, send)| network.send(at, send));
    let mut delivered = [false; 32];
    let mut before = 0;
    for _ in 0..EVENTS {
        if !network.step() {
            let audit = network.audit();
            assert!(audit.is_clean() && delivered == [true; 32], "{:?}", audit.faults);
            return;
        }
        if network.now() > UNTIL_PS {
            return;
        }
        assert!(network.now() >= before, "time goes back from {before} to {}", network.now());
        before = network.now();
        while let Some(happened) = network.happened() {
            if let Happened::Delivered(token) = happened {
                assert!(!std::mem::replace(&mut delivered[token as usize], true), "message {token} came twice");
            }
        }
    }
}
