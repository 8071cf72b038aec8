//! Why a load test shows the impact it does, or none: what was delivered, which ports ran full, and whose way they were on.
//!
//! Only what was counted is said. Where a network shows no counters, that is said too.

use super::CounterRow;
use crate::engine::LoadState;
use crate::lab::PortCounters;
use crate::result::{LabRecord, NodeRole, PhaseCounters, ResultFile, Run, Test, WORTH_EXPLAINING};
use crate::text::rate;

/// A port carries messages of canaries where it sent at least this part of what the busiest port sent while they were alone.
const CARRIES: f64 = 1e-3;
/// A counter that rose by less says nothing.
const ROSE: f64 = 2.0;
/// With fewer nodes than this all may be behind one switch.
const FEW_NODES: usize = 64;

/// An explanation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// What was seen.
    pub seen: Vec<String>,
    /// What may show more, where next to nothing was.
    pub to_try: Vec<String>,
    /// What the congestors of the first run moved, where they moved anything.
    pub load: Option<LoadOfNode>,
    /// Where the network was full, where it was.
    pub hot_spot: Option<HotSpot>,
}

/// What a node that loads the network delivers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LoadOfNode {
    pub nodes: usize,
    pub node_mib_per_s: f64,
    /// What its link carries, where that is known; of several ports together.
    pub link_mib_per_s: Option<f64>,
}

/// The port that held most back under load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HotSpot {
    pub from: String,
    pub to: String,
    /// So many ports ran full, of so many.
    pub full: usize,
    pub ports: usize,
    /// Whether messages of canaries cross any of them.
    pub crossed: bool,
}

impl ResultFile {
    /// Why this load test shows what it shows; nothing for other commands, or where no canary has an impact.
    pub fn why(&self) -> Option<Why> {
        let headlines = self.runs.iter().flat_map(|run| &run.impacts).filter_map(|impact| impact.headline.as_ref());
        let strongest = headlines.map(|of| of.spread.factor).fold(f64::NAN, f64::max);
        if !self.command.is_load_test() || self.imported.is_some() || strongest.is_nan() {
            return None;
        }
        let mut why = Why::default();
        self.runs.iter().for_each(|run| self.load(run, &mut why));
        let ports = self.ports(&mut why);
        self.counted(&mut why);
        let classes = ["canary class", "congestor class"].map(|name| self.detail(name));
        if classes[0] != classes[1] {
            let [canary, congestor] = classes.map(|class| class.unwrap_or("none of their own"));
            why.seen.push(format!("Packets have classes: the canaries' {canary}, the congestors' {congestor}."));
        } else if strongest < WORTH_EXPLAINING {
            self.advise(ports, &mut why);
        }
        Some(why)
    }

    /// What is known of the first run's network by this name.
    fn detail(&self, name: &str) -> Option<&str> {
        self.runs.first()?.transport.details.get(name).map(String::as_str)
    }

    /// What all links of a node carry together, where that is known.
    pub fn node_link_mib_per_s(&self, run: &Run) -> Option<f64> {
        let ports = self.system.ports.map_or(1, |ports| ports.per_node);
        link_mib_per_s(run, self.lab.as_ref()).map(|link| link * f64::from(ports))
    }

    /// What the congestors moved.
    fn load(&self, run: &Run, why: &mut Why) {
        let label = if self.runs.len() > 1 { format!("{}: ", run.label()) } else { String::new() };
        let loaded: Vec<_> = run.tests.iter().filter(|test| test.phase == LoadState::Loaded).collect();
        let sum = |test: &&Test| test.load.iter().map(|load| load.delivered_mib_per_s).sum::<f64>();
        let mean = loaded.iter().map(sum).sum::<f64>() / loaded.len().max(1) as f64;
        let nodes = self.congestor_nodes();
        if mean.is_nan() || mean <= 0.0 || nodes == 0 {
            why.seen.push(format!("{label}The congestors moved nothing while canaries measured."));
            return;
        }
        let each = mean / nodes as f64;
        let link = link_mib_per_s(run, self.lab.as_ref());
        why.load.get_or_insert(LoadOfNode {
            nodes,
            node_mib_per_s: each,
            link_mib_per_s: self.node_link_mib_per_s(run),
        });
        let of_port = |ports: u32| {
            let link = link.map(|of| format!("; the link of a port carries {}", rate(of))).unwrap_or_default();
            format!(", {} at each of its {ports} ports{link}", rate(each / f64::from(ports)))
        };
        let of_node = || link.map(|of| format!("; the link of a node carries {}", rate(of))).unwrap_or_default();
        let link = match self.system.ports {
            Some(ports) if ports.per_node > 1 => of_port(ports.per_node),
            _ => of_node(),
        };
        why.seen.push(format!(
            "{label}The congestors delivered {} from {nodes} nodes, {} a node{link}.",
            rate(mean),
            rate(each)
        ));
    }

    /// How many nodes load the network, on the first placement.
    fn congestor_nodes(&self) -> usize {
        let congests = |role: &NodeRole| matches!(role, NodeRole::Congestor(_));
        self.system.nodes.iter().filter(|node| node.roles.iter().any(congests)).count()
    }

    /// Which ports ran full, where ports can be looked at.
    fn ports(&self, why: &mut Why) -> Ports {
        let phases = match (&self.lab, &self.machine) {
            (Some(lab), _) => &lab.phases,
            (None, Some(machine)) => &machine.phases,
            (None, None) => return Ports::Unknown,
        };
        let loaded = sums(phases, LoadState::Loaded);
        if loaded.is_empty() {
            return Ports::Unknown;
        }
        let mut full: Vec<&PortCounters> = loaded.iter().filter(|port| held_back(port) > 0).collect();
        full.sort_by_key(|port| std::cmp::Reverse(held_back(port)));
        let marked = loaded.iter().any(|port| port.queue.as_ref().is_some_and(|queue| queue.marks > 0));
        let full_or_so = if marked { "ran full or marked packets" } else { "ran full" };
        let Some(worst) = full.first() else {
            why.seen.push(format!("None of {} ports ran full under load.", loaded.len()));
            return Ports::NoneFull;
        };
        why.seen.push(format!(
            "{} of {} ports {full_or_so} under load, most of all that from {} to {}.",
            full.len(),
            loaded.len(),
            worst.from,
            worst.to
        ));
        let alone = sums(phases, LoadState::Isolated);
        let busiest = alone.iter().map(|port| port.bytes).max().unwrap_or(0) as f64;
        let carries = |port: &&&PortCounters| {
            let same = |other: &&PortCounters| (&other.from, &other.to) == (&port.from, &port.to);
            alone.iter().find(same).is_some_and(|port| port.bytes as f64 >= CARRIES * busiest && port.bytes > 0)
        };
        let crossed = full.iter().filter(carries).count();
        let (from, to) = (worst.from.clone(), worst.to.clone());
        why.hot_spot = Some(HotSpot { from, to, full: full.len(), ports: loaded.len(), crossed: crossed > 0 });
        match crossed {
            0 => why.seen.push("None of them is on the way of a canary's messages.".into()),
            _ => why.seen.push(format!("Canaries' messages cross {crossed} of these, on one placement or another.")),
        }
        if crossed == 0 { Ports::Apart } else { Ports::Crossed }
    }

    /// Which of the nodes' own counters rose.
    fn counted(&self, why: &mut Why) {
        const SHOWN: usize = 3;
        let Some(counters) = &self.counters else { return };
        let mut rows: Vec<CounterRow> = counters.rows().into_iter().filter(CounterRow::is_telling).collect();
        rows.retain(|row| row.rise() >= ROSE);
        rows.sort_by(|a, b| b.rise().total_cmp(&a.rise()));
        let mut seen = Vec::new();
        rows.retain(|row| {
            let name = format!("{} {}", row.source, row.counter);
            let new = !seen.contains(&name);
            seen.push(name);
            new
        });
        let of = |row: &CounterRow| {
            let [before, under] = [row.isolated_per_s, row.loaded_per_s].map(Option::unwrap_or_default);
            format!("{} {} from {before:.0} to {under:.0} a second", row.source, row.counter)
        };
        let told: Vec<String> = rows.iter().take(SHOWN).map(of).collect();
        match told.is_empty() {
            true => why.seen.push("No counter of the nodes that tells of congestion rose under load.".into()),
            false => why.seen.push(format!("Counters of the nodes rose under load: {}.", told.join("; "))),
        }
    }

    /// What may show more.
    fn advise(&self, ports: Ports, why: &mut Why) {
        const MORE_LOAD: &str = "More load: larger messages (--set congestor.a2a.bytes=64KiB), more ranks per node, \
                                 --congestors incast.";
        let mut try_this = |text: &str| why.to_try.push(text.to_owned());
        match ports {
            Ports::NoneFull => try_this(MORE_LOAD),
            Ports::Apart => try_this(
                "Canaries and congestors behind the same ports: more placements, --placement random, or --split slice.",
            ),
            Ports::Crossed => try_this(
                "Queues that are full for longer: more nodes that load (--canary-fraction 10%), larger messages \
                 (--set congestor.incast.bytes=1MiB).",
            ),
            Ports::Unknown => {
                try_this(match self.counters {
                    Some(_) => "The switches' counters tell whether any port ran full: --counters-cmd reads them.",
                    None => {
                        "The counters of the network's switches and cards tell whether any port ran full; Tailback saw none \
                         here."
                    }
                });
                try_this(MORE_LOAD);
            }
        }
        if self.lab.is_none() && self.system.nodes.len() < FEW_NODES {
            try_this("Nodes of different switches: so few nodes may all be behind one, whose ports nobody shares.");
        }
    }
}

/// What is known of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Unknown,
    NoneFull,
    /// Some ran full, but none on a canary's way.
    Apart,
    Crossed,
}

/// What the link of a port carries, where that is known.
fn link_mib_per_s(run: &Run, lab: Option<&LabRecord>) -> Option<f64> {
    const MIB: f64 = 1_048_576.0;
    if let Some(lab) = lab {
        return lab.spec.shaped.then(|| lab.spec.link_rate.bits() as f64 / 8.0 / MIB);
    }
    let over = run.congestors_over.as_ref().unwrap_or(&run.transport);
    let mbit: f64 = over.details.get("link_speed_mbit_per_s")?.parse().ok()?;
    Some(mbit * 1e6 / 8.0 / MIB)
}

/// Packets that found a port's queue full, or long enough to be marked, or nanoseconds that they waited for room behind it.
fn held_back(port: &PortCounters) -> u64 {
    let met = port.queue.as_ref().map_or(0, |queue| queue.drops + queue.marks);
    met + port.simulated.map_or(0, |of| of.stalled_ns)
}

/// Every port over all phases of a state.
fn sums(phases: &[PhaseCounters], state: LoadState) -> Vec<PortCounters> {
    let mut all: Vec<PortCounters> = Vec::new();
    for phase in phases.iter().filter(|phase| phase.phase.is(state)) {
        for port in &phase.ports {
            match all.iter_mut().find(|sum| (&sum.from, &sum.to) == (&port.from, &port.to)) {
                Some(sum) => sum.add(port),
                None => all.push(port.clone()),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::engine::PhaseId;
    use crate::lab::QueueCounters;
    use crate::result::{CountersRecord, KnownBy, NodePorts};

    fn port(to: &str, bytes: u64, drops: u64) -> PortCounters {
        let queue = Some(QueueCounters { drops, ..QueueCounters::default() });
        PortCounters { from: "leaf0".into(), to: to.into(), bytes, packets: 1, queue, simulated: None }
    }

    #[test]
    fn ports_that_mark_are_where_the_congestion_is() {
        let mut file = synthetic::file("tcp", None, 3.0);
        let marking = |state: LoadState, marks| {
            let mut port = port("h0", 1000, 0);
            port.queue.as_mut().expect("a queue").marks = marks;
            let phase = PhaseId::new(state, PhaseId::ALL_CANARIES);
            PhaseCounters { phase, ports: vec![port], ..PhaseCounters::default() }
        };
        let phases = vec![marking(LoadState::Isolated, 0), marking(LoadState::Loaded, 50)];
        file.lab = Some(synthetic::lab(phases));
        file.lab.as_mut().expect("just set").spec.ecn = true;
        let seen = file.why().expect("an explanation").seen;
        let told = "1 of 1 ports ran full or marked packets under load, most of all that from leaf0 to h0.";
        assert!(seen.iter().any(|line| line == told), "{seen:?}");
    }

    /// A load test on a lab with two ports: what each sent while canaries were alone, and dropped under load.
    fn on_a_lab(impact: f64, sent: [u64; 2], dropped: [u64; 2]) -> Why {
        let ports =
            |bytes: [u64; 2], drops: [u64; 2]| vec![port("h0", bytes[0], drops[0]), port("h1", bytes[1], drops[1])];
        let phase = |state: LoadState, ports| PhaseCounters {
            phase: PhaseId::new(state, PhaseId::ALL_CANARIES),
            ports,
            ..PhaseCounters::default()
        };
        let mut file = synthetic::file("tcp", None, impact);
        let phases =
            vec![phase(LoadState::Isolated, ports(sent, [0; 2])), phase(LoadState::Loaded, ports([9; 2], dropped))];
        file.lab = Some(synthetic::lab(phases));
        file.why().expect("an explanation")
    }

    #[test]
    fn full_ports_on_a_canarys_way_explain_an_impact() {
        let why = on_a_lab(20.0, [1000, 900], [0, 7]);
        assert!(why.seen[0].contains("bit/s a node; the link of a node carries 200 Mbit/s"), "{why:?}");
        assert!(
            why.seen.contains(&"1 of 2 ports ran full under load, most of all that from leaf0 to h1.".into()),
            "{why:?}"
        );
        assert!(why.seen.iter().any(|line| line.starts_with("Canaries' messages cross 1 of these")), "{why:?}");
        assert_eq!(why.to_try, [""; 0]);
    }

    #[test]
    fn the_load_of_a_port_is_told_where_nodes_have_several() {
        let mut file = synthetic::file("verbs", None, 2.0);
        file.system.ports = Some(NodePorts { per_node: 4, known_by: KnownBy::User });
        file.runs[0].transport.details.insert("link_speed_mbit_per_s".into(), "100000".into());
        let why = file.why().expect("an explanation");
        let load = why.load.unwrap();
        let [all, node, port] = [load.nodes as f64, 1.0, 0.25].map(|nodes| rate(load.node_mib_per_s * nodes));
        assert_eq!(
            why.seen[0],
            format!(
                "The congestors delivered {all} from {} nodes, {node} a node, {port} at each of its 4 ports; \
                 the link of a port carries 100 Gbit/s.",
                load.nodes
            )
        );
    }

    #[test]
    fn no_impact_has_its_reason_and_a_next_step() {
        let apart = on_a_lab(1.0, [1000, 0], [0, 7]);
        assert!(apart.seen.contains(&"None of them is on the way of a canary's messages.".into()), "{apart:?}");
        assert!(apart.to_try[0].contains("--split slice"), "{apart:?}");
        let idle = on_a_lab(1.0, [1000, 900], [0; 2]);
        assert!(idle.seen.contains(&"None of 2 ports ran full under load.".into()), "{idle:?}");
        assert!(idle.to_try[0].starts_with("More load"), "{idle:?}");
        let unseen = synthetic::file("mpi", None, 1.0).why().expect("an explanation");
        assert!(unseen.to_try[0].contains("Tailback saw none here") && unseen.to_try.len() == 3, "{unseen:?}");
    }

    #[test]
    fn classes_are_reason_enough() {
        let mut file = synthetic::file("tcp", None, 1.0);
        file.runs[0].transport.details.insert("canary class".into(), "dscp:46".into());
        let why = file.why().expect("an explanation");
        assert!(
            why.seen.last().is_some_and(|line| line.contains("the canaries' dscp:46, the congestors' none")),
            "{why:?}"
        );
        assert_eq!(why.to_try, [""; 0]);
    }

    #[test]
    fn counters_that_rose_are_named_and_others_are_not() {
        let mut file = synthetic::file("tcp", None, 1.1);
        let mut counters = CountersRecord::default();
        for (phase, marks) in [("isolated lat", 2.0), ("loaded lat", 900.0)] {
            let counted = [("np_ecn_marked", marks), ("out_of_sequence", 5.0), ("port_xmit_data", 1e6 * marks)];
            counters.add(phase, synthetic::device("n0", synthetic::MLX5, 1.0, &counted));
        }
        file.counters = Some(counters);
        let why = file.why().expect("an explanation");
        let told = "Counters of the nodes rose under load: infiniband np_ecn_marked from 2 to 900 a second.";
        assert!(why.seen.iter().any(|line| line == told), "{why:?}");
        assert!(why.to_try[0].contains("--counters-cmd"), "{why:?}");
        file.counters = Some(CountersRecord::default());
        let why = file.why().expect("an explanation");
        assert!(why.seen.iter().any(|line| line.starts_with("No counter of the nodes")), "{why:?}");
    }

    #[test]
    fn only_load_tests_are_explained() {
        let mut file = synthetic::file("tcp", None, 3.0);
        file.command = crate::result::Command::Network;
        assert_eq!(file.why(), None);
    }
}
