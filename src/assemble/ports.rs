//! What the ports of an emulated or simulated network did in each phase, and a second on each placement: enough to tell how sure
//! their counters are, and how load lies on them.
//!
//! Which port it was is different on every placement, so ports stand in the order of what they did: few that are full and many
//! that rest differ from many that do a little, though both may send the same in all.

use std::collections::BTreeMap;

use super::entry;
use crate::engine::PhaseId;
use crate::lab::{Lab, PortCounters, is_node};
use crate::result::{LabRecord, PhaseCounters, PlacementRates};

/// Of more ports of a kind, neighbours in the order are one value, their mean.
const MOST_VALUES: usize = 32;

impl LabRecord {
    /// What is known of a lab that is up, with what its ports did; without a control.
    pub fn of(lab: &Lab, phases: Vec<PhaseCounters>) -> Self {
        let (spec, mode, hosts) = (lab.spec().clone(), lab.mode().to_string(), lab.hosts().to_vec());
        LabRecord { spec, mode, hosts, phases, control: None }
    }
}

impl PhaseCounters {
    /// A phase among those so far, made if it is not there.
    pub fn among<'a>(phases: &'a mut Vec<PhaseCounters>, phase: &PhaseId) -> &'a mut Self {
        entry(phases, |known| known.phase == *phase, || PhaseCounters { phase: phase.clone(), ..Self::default() })
    }

    /// Adds how long a block on some placement took, and what these ports did in it a second.
    pub fn add_block(&mut self, placement: u32, seconds: f64, ports: &[PortCounters]) {
        *self.seconds.get_or_insert(0.0) += seconds;
        let block = PlacementRates::of(placement, seconds, ports);
        match self.placements.iter_mut().find(|known| known.placement == placement) {
            Some(known) => known.add(&block),
            None => self.placements.push(block),
        }
    }
}

impl PlacementRates {
    /// Of what was counted in so many seconds.
    pub fn of(placement: u32, seconds: f64, ports: &[PortCounters]) -> Self {
        let mut per_s = BTreeMap::new();
        if seconds > 0.0 {
            for (name, mut values) in by_kind(ports) {
                values.iter_mut().for_each(|value| *value /= seconds);
                values.sort_by(f64::total_cmp);
                per_s.insert(name, within_limits(&values));
            }
        }
        PlacementRates { placement, seconds, per_s }
    }

    /// Both phases of a placement together: its nodes have the same roles in both.
    pub fn add(&mut self, other: &Self) {
        let all = self.seconds + other.seconds;
        for (name, values) in &other.per_s {
            let Some(known) = self.per_s.get_mut(name) else {
                self.per_s.insert(name.clone(), values.clone());
                continue;
            };
            let mean = |one: f64, two: f64| (one * self.seconds + two * other.seconds) / all;
            known.iter_mut().zip(values).for_each(|(known, &value)| *known = mean(*known, value));
        }
        self.seconds = all;
    }
}

/// The counters of [`by_kind`] that count single events, by their last word.
pub const DROPS: &str = "drops";

/// What each port of a kind counted: those into the network, those out of it, those between switches.
pub fn by_kind(ports: &[PortCounters]) -> BTreeMap<String, Vec<f64>> {
    let mut counted: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for port in ports {
        let kind = match (is_node(&port.from), is_node(&port.to)) {
            (true, _) => "ports of nodes",
            (_, true) => "ports to nodes",
            _ => "ports between switches",
        };
        let queue = port.queue.as_ref().map(|queue| (DROPS, queue.drops as f64));
        let simulated = port.simulated.map(|of| ("stalled ns", of.stalled_ns as f64));
        for (what, amount) in [("bytes", port.bytes as f64)].into_iter().chain(queue).chain(simulated) {
            counted.entry(format!("{kind}, {what}")).or_default().push(amount);
        }
    }
    counted
}

/// Means of equal parts of the order, where there are more values than are kept.
fn within_limits(values: &[f64]) -> Vec<f64> {
    let parts = values.len().min(MOST_VALUES);
    let bound = |part: usize| part * values.len() / parts;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    (0..parts).map(|part| mean(&values[bound(part)..bound(part + 1)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::QueueCounters;

    fn port(from: &str, to: &str, bytes: u64, drops: u64) -> PortCounters {
        let queue = Some(QueueCounters { drops, ..QueueCounters::default() });
        PortCounters { from: from.into(), to: to.into(), bytes, packets: 0, queue, simulated: None }
    }

    #[test]
    fn ports_are_counted_by_where_they_are_in_order() {
        let ports = [
            port("h0", "leaf0", 100, 0),
            port("leaf0", "h0", 40, 7),
            port("h1", "leaf1", 20, 0),
            port("leaf0", "leaf1", 60, 2),
            port("leaf1", "leaf0", 1, 0),
        ];
        let mut rates = PlacementRates::of(3, 2.0, &ports);
        assert_eq!(rates.per_s["ports of nodes, bytes"], [10.0, 50.0]);
        assert_eq!(rates.per_s["ports to nodes, drops"], [3.5]);
        assert_eq!(rates.per_s["ports between switches, bytes"], [0.5, 30.0]);
        rates.add(&PlacementRates::of(3, 6.0, &[port("h0", "leaf0", 540, 0), port("h1", "leaf0", 60, 0)]));
        assert_eq!((rates.seconds, &rates.per_s["ports of nodes, bytes"][..]), (8.0, &[10.0, 80.0][..]));
        assert!(PlacementRates::of(1, 0.0, &ports).per_s.is_empty(), "nothing was counted in no time");
    }

    #[test]
    fn of_many_ports_neighbours_are_one() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let kept = within_limits(&values);
        assert_eq!((kept.len(), kept[0], kept[31]), (32, 1.0, 97.5));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(within_limits(&values[..3]), [0.0, 1.0, 2.0]);
        assert!(within_limits(&[]).is_empty());
    }
}
