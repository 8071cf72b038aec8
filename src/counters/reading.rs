//! Readings and what happened between two of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What one device shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// What kind of counters: `infiniband`, `net`, `cxi`, `tcp` or `command`.
    pub source: String,
    /// Whose they are; empty for what a host has once.
    pub device: String,
    /// By the names they have there.
    pub counters: BTreeMap<String, f64>,
}

/// Everything that was shown at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    counted: Vec<Counted>,
}

/// What happened between two readings.
#[derive(Clone, Debug)]
pub struct Difference {
    /// How long that was.
    pub seconds: f64,
    /// What was counted: all that moved, and of the others those that tell of congestion.
    pub counted: Vec<Counted>,
    /// Counters that fell, and so were reset or are none.
    pub fell: BTreeSet<String>,
}

impl Reading {
    pub(super) fn now() -> Self {
        Reading { at: Instant::now(), counted: Vec::new() }
    }

    /// Adds a device that shows anything.
    pub(super) fn insert(&mut self, source: &str, device: &str, counters: BTreeMap<String, f64>) {
        if !counters.is_empty() {
            self.counted.push(Counted { source: source.to_owned(), device: device.to_owned(), counters });
        }
    }

    /// What was shown, device by device.
    pub fn counted(&self) -> &[Counted] {
        &self.counted
    }

    /// What happened from `earlier` to this reading. What only one of them has is left out.
    pub fn since(&self, earlier: &Reading) -> Difference {
        let mut difference = Difference {
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
            counted: Vec::new(),
            fell: BTreeSet::new(),
        };
        for now in &self.counted {
            let same = |of: &&Counted| (&of.source, &of.device) == (&now.source, &now.device);
            let Some(then) = earlier.counted.iter().find(same) else { continue };
            let mut moved = BTreeMap::new();
            for (name, value) in &now.counters {
                let Some(before) = then.counters.get(name) else { continue };
                if value < before {
                    difference.fell.insert(format!("{} {name}", now.source));
                } else if value > before || is_telling(name) {
                    moved.insert(name.clone(), value - before);
                }
            }
            if !moved.is_empty() {
                difference.counted.push(Counted { counters: moved, ..now.clone() });
            }
        }
        difference
    }
}

/// Whether a counter is of what congestion does, by the words that drivers use.
pub fn is_telling(name: &str) -> bool {
    const WORDS: [&str; 26] = [
        "wait",
        "pause",
        "pfc",
        "xoff",
        "cnp",
        "ecn",
        "ce_mark",
        "discard",
        "drop",
        "retrans",
        "retry",
        "retries",
        "timeout",
        "out_of_seq",
        "out_of_order",
        "ooo",
        "out_of_buffer",
        "no_buffer",
        "rnr",
        "nak",
        "nack",
        "congest",
        "stall",
        "lost",
        "loss",
        "blocked",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(values: &[(&str, f64)]) -> Reading {
        let mut reading = Reading::now();
        reading.insert("net", "eth0", values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
        reading
    }

    #[test]
    fn what_moved_is_kept_and_what_could_tell() {
        let before = reading(&[("tx_bytes", 100.0), ("rx_dropped", 7.0), ("collisions", 1.0), ("gone", 1.0)]);
        let after = reading(&[("tx_bytes", 350.0), ("rx_dropped", 7.0), ("collisions", 1.0), ("new", 1.0)]);
        let difference = after.since(&before);
        let [of] = &difference.counted[..] else { panic!("{difference:?}") };
        let kept: Vec<(&str, f64)> = of.counters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(kept, [("rx_dropped", 0.0), ("tx_bytes", 250.0)]);
        assert!(difference.fell.is_empty() && difference.seconds >= 0.0);
    }

    #[test]
    fn a_counter_that_falls_is_named_and_left_out() {
        let difference = reading(&[("tx_bytes", 3.0)]).since(&reading(&[("tx_bytes", 100.0)]));
        assert!(difference.counted.is_empty());
        assert_eq!(difference.fell.into_iter().collect::<Vec<_>>(), ["net tx_bytes"]);
    }

    #[test]
    fn names_of_drivers_are_known() {
        for name in ["port_xmit_wait", "rx_prio3_pause", "np_ecn_marked_roce_packets", "RetransSegs", "TCPTimeouts"] {
            assert!(is_telling(name), "{name}");
        }
        for name in ["port_xmit_data", "tx_bytes", "OutSegs", "multicast"] {
            assert!(!is_telling(name), "{name}");
        }
    }
}
