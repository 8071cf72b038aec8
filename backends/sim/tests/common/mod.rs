//! What the tests share.

use tailback_sim::machine::Machine;
use tailback_sim::net::{Happened, Network, Send};

/// A shipped machine.
pub fn machine(name: &str) -> Machine {
    Machine::load(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A message without name.
pub fn send(from: u32, to: u32, bytes: u32) -> Send {
    Send { from, to, class: 0, bytes, token: 0, acknowledge: false }
}

/// Whether to go on.
#[derive(PartialEq)]
pub enum Until {
    /// Until nothing is left to happen.
    Empty,
    /// No.
    Now,
}

/// Lets time pass and hands on what happens.
pub fn drain(network: &mut Network, mut hear: impl FnMut(&mut Network, Happened) -> Until) {
    while network.step() {
        while let Some(happened) = network.happened() {
            if hear(network, happened) == Until::Now {
                return;
            }
        }
    }
}
