//! What a result keeps of the queues of a simulated network: how long they were over time, and which ports were crowded at
//! the worst moment, so that the congestion tree can be drawn.
//!
//! A phase is measured in several blocks and on several placements, whose times do not line up: the one with the worst
//! moment is kept whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_sim::net;

use crate::engine::PhaseId;

/// Looks that are kept of a phase.
const MOST_LOOKS: usize = 200;

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

impl QueueRecord {
    fn of(id: PhaseId, phase: &net::PhaseCounters) -> Self {
        let since = |ps: u64| ps.saturating_sub(phase.from_ps) as f64 * 1e-6;
        let look = |sample: &net::Sample| QueueLook {
            at_us: since(sample.at_ps),
            queued_bytes: sample.queued,
            longest_bytes: sample.longest,
            stalled_ports: sample.stalled,
        };
        // Of neighbours the fullest stays: a plot that misses the peak would contradict the worst moment.
        let every = phase.samples.len().div_ceil(MOST_LOOKS).max(1);
        let fullest = |near: &[net::Sample]| near.iter().max_by_key(|sample| sample.queued).map(look);
        let crowd = |crowd: &net::Crowd| CrowdedPort {
            port: crowd.port.clone(),
            queued_bytes: crowd.queued,
            stalled: crowd.blocked,
            feeders: crowd.feeders.iter().map(|(port, bytes)| Feeder { port: port.clone(), bytes: *bytes }).collect(),
        };
        QueueRecord {
            phase: id,
            looks: phase.samples.chunks(every).filter_map(fullest).collect(),
            worst: phase.tree.as_ref().map(|tree| WorstMoment {
                at_us: since(tree.at_ps),
                queued_bytes: tree.queued,
                ports: tree.crowds.iter().map(crowd).collect(),
            }),
        }
    }

    /// How much there is to see: the peak, then how long it was looked at.
    fn weight(&self) -> (u64, usize) {
        let peak = self.looks.iter().map(|look| look.queued_bytes).max();
        (peak.unwrap_or(0), self.looks.len())
    }
}

/// Takes note of a block of a phase: it is kept if it is the worst of that phase so far.
pub(super) fn note(known: &mut Vec<QueueRecord>, block: &net::PhaseCounters) {
    let (phase, _) = PhaseId::from(block.name.as_str()).on_any_placement();
    let record = QueueRecord::of(phase, block);
    match known.iter_mut().find(|of| of.phase == record.phase) {
        Some(of) if of.weight() >= record.weight() => {}
        Some(of) => *of = record,
        None => known.push(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(placement: u32, queued: &[u64]) -> net::PhaseCounters {
        let sample = |(at, &queued): (usize, &u64)| net::Sample {
            at_ps: 1_000_000 * (100 + at as u64),
            queued,
            longest: queued / 2,
            stalled: 3,
        };
        let crowd = |port: &str, queued, blocked, from: &str| net::Crowd {
            port: port.into(),
            queued,
            blocked,
            feeders: vec![(from.to_owned(), queued)],
        };
        let crowds = vec![crowd("s0 -> n0", 9000, false, "s1 -> s0"), crowd("s1 -> s0", 5000, true, "n3 -> s1")];
        net::PhaseCounters {
            name: format!("loaded lat, placement {placement} of 3"),
            from_ps: 100_000_000,
            to_ps: 200_000_000,
            ports: Vec::new(),
            samples: queued.iter().enumerate().map(sample).collect(),
            tree: Some(net::Tree { at_ps: 101_000_000, queued: queued.iter().copied().max().unwrap(), crowds }),
        }
    }

    #[test]
    fn the_worst_block_of_a_phase_is_kept_whole() {
        let mut known = Vec::new();
        for (placement, queued) in [(1, [10, 20]), (2, [70, 60]), (3, [30, 40])] {
            note(&mut known, &block(placement, &queued));
        }
        let [record] = &known[..] else { panic!("{known:?}") };
        assert_eq!(record.phase, "loaded lat".into());
        let looks: Vec<(f64, u64)> = record.looks.iter().map(|look| (look.at_us, look.queued_bytes)).collect();
        assert_eq!(looks, [(0.0, 70), (1.0, 60)]);
        let worst = record.worst.as_ref().unwrap();
        assert_eq!((worst.at_us, worst.queued_bytes, worst.ports.len()), (1.0, 70, 2));
        assert_eq!((worst.ports[1].stalled, worst.ports[1].feeders[0].port.as_str()), (true, "n3 -> s1"));
    }

    #[test]
    fn many_looks_are_thinned_and_the_peak_stays() {
        let mut queued: Vec<u64> = (0..1000).map(|at| at % 7).collect();
        queued[777] = 99;
        let mut known = Vec::new();
        note(&mut known, &block(1, &queued));
        let looks = &known[0].looks;
        assert!(looks.len() <= MOST_LOOKS, "{}", looks.len());
        assert!(looks.iter().any(|look| look.queued_bytes == 99 && look.at_us == 777.0), "{looks:?}");
    }
}
