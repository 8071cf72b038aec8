//! What the ports of an emulated or simulated network did in each phase, as violins.

use super::Plot;
use super::violin::Violins;
use crate::lab::PortCounters;
use crate::result::{PhaseCounters, beside_isolated};

/// A counter of a port.
struct Counter {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Below this, values are drawn as good as zero.
    floor: f64,
    /// Whether more time means more of it.
    grows: bool,
    value: fn(&PortCounters) -> Option<f64>,
}

const COUNTERS: [Counter; 6] = [
    Counter {
        key: "sent",
        title: "Sent by each port",
        unit: "MiB",
        floor: 0.01,
        grows: true,
        value: |port| Some(port.bytes as f64 / 1_048_576.0),
    },
    Counter {
        key: "drops",
        title: "Dropped at each port",
        unit: "packets",
        floor: 1.0,
        grows: true,
        value: |port| port.queue.as_ref().map(|queue| queue.drops as f64),
    },
    Counter {
        key: "waits",
        title: "Waits of each port for its rate",
        unit: "times",
        floor: 1.0,
        grows: true,
        value: |port| port.queue.as_ref().map(|queue| queue.overlimits as f64),
    },
    Counter {
        key: "stalled",
        title: "Time of each port without room at the other end",
        unit: "us",
        floor: 1.0,
        grows: true,
        value: |port| port.simulated.map(|of| 1e-3 * of.stalled_ns as f64),
    },
    Counter {
        key: "marks",
        title: "Marked at each port",
        unit: "packets",
        floor: 1.0,
        grows: true,
        value: |port| Some(port.marks() as f64),
    },
    Counter {
        key: "queue",
        title: "Longest queue of each port",
        unit: "KiB",
        floor: 1.0,
        grows: false,
        value: |port| port.simulated.map(|of| of.longest_queue_bytes as f64 / 1024.0),
    },
];

/// One plot for each counter that counted anything, a second where the phases' lengths are known.
pub fn ports(name: &str, phases: &[PhaseCounters], dots: usize) -> Vec<Plot> {
    let timed = phases.iter().all(|phase| phase.seconds.is_some_and(|seconds| seconds > 0.0));
    let plot = |counter: &Counter| {
        let per_s = counter.grows && timed;
        let mut spreads: Vec<_> = phases.iter().map(|phase| phase.spread(counter.value, per_s)).collect();
        beside_isolated(&mut spreads);
        let unit = if per_s { format!("{} a second", counter.unit) } else { counter.unit.to_owned() };
        let title = format!("{}, {name}", counter.title);
        Violins { id: ["ports", counter.key, name], title, unit, floor: counter.floor, spreads, dots }.plot()
    };
    COUNTERS.iter().filter_map(plot).collect()
}
