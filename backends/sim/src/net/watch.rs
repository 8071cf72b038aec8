//! What is known of a phase: every port's counters, the queues over time, and the congestion tree of the worst moment.

use serde::{Deserialize, Serialize};

use super::port::{Counters, NEVER};

/// What one phase did to the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhaseCounters {
    /// Its name.
    pub name: String,
    /// When it began and ended, in picoseconds.
    pub from_ps: u64,
    /// See above.
    pub to_ps: u64,
    /// Every port that sent or dropped something.
    pub ports: Vec<PortReport>,
    /// Queues over time.
    pub samples: Vec<Sample>,
    /// The moment at which most bytes were queued, if any were.
    pub tree: Option<Tree>,
}

/// One port in one phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortReport {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// What it counted in the phase.
    pub counters: Counters,
}

/// The queues at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub at_ps: u64,
    /// Bytes in all queues.
    pub queued: u64,
    /// Bytes in the longest one.
    pub longest: u64,
    /// Ports that had something to send and no room for it at the other end.
    pub stalled: u32,
}

/// Which ports were crowded at one moment, the longest queue first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tree {
    /// When.
    pub at_ps: u64,
    /// Bytes in all queues.
    pub queued: u64,
    /// The crowded ports.
    pub crowds: Vec<Crowd>,
}

/// A crowded port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crowd {
    /// Who sends, and to whom.
    pub port: String,
    /// Bytes that wait.
    pub queued: u64,
    /// Whether it waits for room at the other end: then it is a branch of the tree, and else a root.
    pub blocked: bool,
    /// The ports that its packets came from, with bytes, most first.
    pub feeders: Vec<(String, u64)>,
}

/// The phase under way.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) next_look: u64,
    pub(super) interval: u64,
    pub(super) phase: Option<(String, u64)>,
    pub(super) before: Vec<Counters>,
    pub(super) samples: Vec<Sample>,
    pub(super) tree: Option<Tree>,
}

impl Watch {
    pub(super) fn new(ports: usize) -> Self {
        let before = vec![Counters::default(); ports];
        Watch { next_look: NEVER, interval: 0, phase: None, before, samples: Vec::new(), tree: None }
    }
}
