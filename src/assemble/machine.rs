//! What a simulated machine did, phase by phase.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::backend::Simulated;
use crate::backend::simulator::machine::Machine;
use crate::backend::simulator::net::{self, PortReport};
use crate::engine::PhaseId;
use crate::lab::{PortCounters, QueueCounters, SimulatedCounters};
use crate::result::{CrowdedPort, Feeder, MachineRecord, PhaseCounters, QueueLook, QueueRecord, WorstMoment, held_up};

/// Ports that are kept of a phase, those that were held up most first: a large machine has tens of thousands.
const MOST_PORTS: usize = 2000;

/// Looks that are kept of a phase.
const MOST_LOOKS: usize = 200;

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

    /// Adds what was simulated for a run on a placement.
    pub fn add(&mut self, simulated: Simulated) {
        *self.virtual_s.get_or_insert(0.0) += simulated.elapsed_ps as f64 * 1e-12;
        *self.hops.get_or_insert(0) += simulated.hops;
        for phase in simulated.phases {
            note(&mut self.queues, &phase);
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
        queue: Some(QueueCounters {
            bytes,
            packets,
            drops,
            marks: 0,
            lost: 0,
            overlimits,
            backlog_bytes,
            backlog_packets,
        }),
        simulated: Some(SimulatedCounters {
            stalled_ns: counters.stalled_ps / 1000,
            marks: counters.marks,
            longest_queue_bytes: counters.longest,
        }),
    }
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
fn note(known: &mut Vec<QueueRecord>, block: &net::PhaseCounters) {
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
    use std::sync::Arc;

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
