//! What a result keeps of the simulated machine that it came from: the file that describes it, what its ports did, how long its
//! queues were over time, and which ports were crowded at the worst moment, so that the congestion tree can be drawn.
//!
//! A phase is measured in several blocks and on several placements, whose times do not line up: of queues, the one with the worst
//! moment is kept whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PhaseCounters;
use crate::engine::PhaseId;
use crate::lab::PortCounters;

/// A simulated machine. Where a result has one, its figures are those of a model and its times are virtual; the date and
/// the duration of the whole are real.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MachineRecord {
    /// Its name.
    pub name: String,
    /// True: no such network was measured.
    pub simulated: bool,
    /// One line about it.
    pub about: String,
    /// The machine file, as TOML: with the seed and the plan it gives the same result again.
    pub file: String,
    /// Virtual time that went by in all, in seconds; absent for studies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_s: Option<f64>,
    /// Packets over links in all; absent for studies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u64>,
    /// What the ports did in each phase, over all placements. Parallel links between two switches count as one port.
    pub phases: Vec<PhaseCounters>,
    /// The queues over time and the worst moment of each phase; absent for studies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueRecord>,
    /// Ports that were left out of some phase, because the others were held up longer or sent more.
    #[serde(default)]
    pub ports_left_out: usize,
}

impl MachineRecord {
    /// As every view names it.
    pub fn title(&self) -> String {
        format!("simulated, machine {}", self.name)
    }
}

/// Orders ports by what congestion did to them.
pub fn held_up(port: &PortCounters) -> (u64, u64, u64) {
    let drops = port.queue.as_ref().map_or(0, |queue| queue.drops);
    (drops, port.simulated.map_or(0, |of| of.stalled_ns), port.bytes)
}

/// The queues in one phase, of the block in which most bytes waited at a time. Times count from the block's beginning.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueRecord {
    /// Its name.
    #[schemars(with = "String")]
    pub phase: PhaseId,
    /// The queues over time.
    pub looks: Vec<QueueLook>,
    /// The moment at which most bytes waited; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstMoment>,
}

/// All queues at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueLook {
    /// When, in microseconds of virtual time.
    pub at_us: f64,
    /// Bytes in all queues.
    pub queued_bytes: u64,
    /// Bytes in the longest one.
    pub longest_bytes: u64,
    /// Ports that had something to send and no room for it at the other end.
    pub stalled_ports: u32,
}

/// The congestion tree of one moment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorstMoment {
    /// When, in microseconds of virtual time.
    pub at_us: f64,
    /// Bytes in all queues.
    pub queued_bytes: u64,
    /// The crowded ports, the longest queue first; some dozens at most.
    pub ports: Vec<CrowdedPort>,
}

/// A port at which packets waited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CrowdedPort {
    /// Who sends, and to whom.
    pub port: String,
    /// Bytes that waited.
    pub queued_bytes: u64,
    /// Whether it waited for room at the other end, which makes it a branch of the tree; a root waits for its own link.
    pub stalled: bool,
    /// The ports its packets had come from, most bytes first.
    pub feeders: Vec<Feeder>,
}

/// A port that another one's packets came from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Feeder {
    /// Who sends, and to whom.
    pub port: String,
    /// Bytes of them.
    pub bytes: u64,
}
