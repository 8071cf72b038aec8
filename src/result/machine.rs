//! What a result keeps of the simulated machine that it came from: the file that describes it, and what its ports did.

use std::cmp::Reverse;
use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_sim::machine::Machine;
use tailback_sim::net::PortReport;

use super::PhaseCounters;
use super::queues::{self, QueueRecord};
use crate::backend::Simulated;
use crate::engine::PhaseId;
use crate::lab::{PortCounters, QueueCounters, SimulatedCounters};

/// Ports that are kept of a phase, those that were held up most first: a large machine has tens of thousands.
const MOST_PORTS: usize = 2000;

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
    /// A machine of which nothing was simulated yet.
    pub fn of(machine: &Machine) -> Self {
        MachineRecord {
            name: machine.name.clone(),
            simulated: true,
            about: machine.about.clone(),
            file: machine.text.clone(),
            virtual_s: None,
            hops: None,
            phases: Vec::new(),
            queues: Vec::new(),
            ports_left_out: 0,
        }
    }

    /// As every view names it.
    pub fn title(&self) -> String {
        format!("simulated, machine {}", self.name)
    }

    /// Adds what was simulated for a run on a placement.
    pub fn add(&mut self, simulated: Simulated) {
        *self.virtual_s.get_or_insert(0.0) += simulated.elapsed_ps as f64 * 1e-12;
        *self.hops.get_or_insert(0) += simulated.hops;
        for phase in simulated.phases {
            queues::note(&mut self.queues, &phase);
            let (id, placement) = PhaseId::from(phase.name.as_str()).on_any_placement();
            let seconds = (phase.to_ps - phase.from_ps) as f64 * 1e-12;
            let known = PhaseCounters::among(&mut self.phases, &id);
            let mut ports = Vec::new();
            join(&mut ports, &phase.ports);
            join(&mut known.ports, &phase.ports);
            known.add_block(placement, seconds, &ports);
        }
    }

    /// The same with no more ports than a file should hold.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        for phase in &mut self.phases {
            if phase.ports.len() > MOST_PORTS {
                self.ports_left_out = self.ports_left_out.max(phase.ports.len() - MOST_PORTS);
                phase.ports.sort_by_key(|port| Reverse(held_up(port)));
                phase.ports.truncate(MOST_PORTS);
            }
        }
        self
    }
}

/// Orders ports by what congestion did to them.
pub fn held_up(port: &PortCounters) -> (u64, u64, u64) {
    let drops = port.queue.as_ref().map_or(0, |queue| queue.drops);
    (drops, port.simulated.map_or(0, |of| of.stalled_ns), port.bytes)
}

fn join(sums: &mut Vec<PortCounters>, ports: &[PortReport]) {
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for (at, port) in sums.iter().enumerate() {
        known.insert((port.from.clone(), port.to.clone()), at);
    }
    for port in ports {
        let counters = port_counters(port);
        match known.get(&(port.from.clone(), port.to.clone())) {
            Some(&at) => sums[at].add(&counters),
            None => {
                known.insert((port.from.clone(), port.to.clone()), sums.len());
                sums.push(counters);
            }
        }
    }
}

fn port_counters(port: &PortReport) -> PortCounters {
    let PortReport { from, to, counters } = port;
    let (bytes, packets, drops) = (counters.bytes, counters.packets, counters.drops);
    let (overlimits, backlog_bytes, backlog_packets) = (0, 0, 0);
    PortCounters {
        from: from.clone(),
        to: to.clone(),
        bytes,
        packets,
        queue: Some(QueueCounters { bytes, packets, drops, marks: 0, overlimits, backlog_bytes, backlog_packets }),
        simulated: Some(SimulatedCounters {
            stalled_ns: counters.stalled_ps / 1000,
            marks: counters.marks,
            longest_queue_bytes: counters.longest,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tailback_sim::net;

    use super::*;

    fn simulated(name: &str, ports: usize, bytes: u64) -> Simulated {
        let counters = |at: usize| net::Counters { bytes: bytes + at as u64, longest: 7, ..net::Counters::default() };
        let port = |at: usize| PortReport { from: format!("nic{at}"), to: "leaf0".into(), counters: counters(at) };
        let ports = (0..ports).map(port).collect();
        let (name, samples, tree) = (name.to_owned(), Vec::new(), None);
        let phase = net::PhaseCounters { name, from_ps: 0, to_ps: 1, ports, samples, tree };
        let machine = Arc::new(Machine::load("small").unwrap());
        Simulated { machine, phases: vec![phase], elapsed_ps: 5_000_000_000, hops: 3 }
    }

    #[test]
    fn placements_of_a_phase_are_one_phase_and_ports_have_a_limit() {
        let mut record = MachineRecord::of(&Machine::load("small").unwrap());
        record.add(simulated("isolated lat, placement 1 of 2", 2, 10));
        record.add(simulated("isolated lat, placement 2 of 2", 3, 100));
        let [phase] = &record.phases[..] else { panic!("{:?}", record.phases) };
        assert_eq!(phase.phase, "isolated lat".into());
        assert_eq!(phase.ports.iter().map(|port| port.bytes).collect::<Vec<_>>(), [110, 112, 102]);
        assert_eq!(phase.ports[0].simulated.unwrap().longest_queue_bytes, 7, "the longest is no sum");
        assert_eq!((record.virtual_s, record.hops, record.simulated), (Some(0.01), Some(6), true));
        record.add(simulated("loaded lat", MOST_PORTS + 5, 1));
        let record = record.within_limits();
        assert_eq!((record.phases[1].ports.len(), record.ports_left_out), (MOST_PORTS, 5));
        assert_eq!(record.phases[1].ports[0].bytes, MOST_PORTS as u64 + 5);
        assert!(record.file.contains("[topology]"), "{}", record.file);
    }
}
