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
    /// Which ports ran full under load, where any did.
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

/// Ports that ran full under load, and where load made that worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// The port that load made worst, if it made any worse.
    pub worst: Option<WorstPort>,
    /// So many ports load made worse.
    pub worse: usize,
    /// So many ran full under load, whatever they did while idle.
    pub full: usize,
    /// Of so many.
    pub ports: usize,
    /// Whether messages of canaries cross any of those that load made worse.
    pub crossed: bool,
}

/// A port under load and while idle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WorstPort {
    pub from: String,
    pub to: String,
    /// What it held back under load and while idle, in words.
    pub held_back: String,
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
        let label = if self.runs.len() > 1 { format!("{}: ", self.run_name(run)) } else { String::new() };
        let loaded: Vec<_> = run.tests.iter().filter(|test| test.phase == LoadState::Loaded).collect();
        let sum = |test: &&Test| test.load.iter().map(|load| load.delivered_mib_per_s).sum::<f64>();
        let mean = loaded.iter().map(sum).sum::<f64>() / loaded.len().max(1) as f64;
        let nodes = self.congestor_nodes(run);
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

    /// How many nodes load the network in a run, on the first placement: of points of a sweep not all may.
    fn congestor_nodes(&self, run: &Run) -> usize {
        let congests = |roles: &[NodeRole]| roles.iter().any(|role| matches!(role, NodeRole::Congestor(_)));
        let of_run = run.placements.first().map_or(0, |of| of.roles.iter().filter(|roles| congests(roles)).count());
        match of_run {
            0 => self.system.nodes.iter().filter(|node| congests(&node.roles)).count(),
            of_run => of_run,
        }
    }

    /// Which ports load filled, where ports can be looked at. Canaries fill queues, too: what ports do while idle is none of
    /// the load's doing.
    fn ports(&self, why: &mut Why) -> Ports {
        let phases = match (&self.lab, &self.machine) {
            (Some(lab), _) => &lab.phases,
            (None, Some(machine)) => &machine.phases,
            (None, None) => return Ports::Unknown,
        };
        let [idle, loaded] = [LoadState::Isolated, LoadState::Loaded].map(|state| Sums::of(phases, state));
        let ports = loaded.ports.len();
        if ports == 0 {
            return Ports::Unknown;
        }
        let marked = loaded.ports.iter().any(|port| port.queue.as_ref().is_some_and(|queue| queue.marks > 0));
        let full_or_so = if marked { "ran full or marked packets" } else { "ran full" };
        let full = loaded.ports.iter().filter(|port| held_back(port) > 0).count();
        if full == 0 {
            why.seen.push(format!("None of {ports} ports ran full under load."));
            return Ports::NoneFull;
        }
        let is_timed = idle.seconds > 0.0 && loaded.seconds > 0.0;
        // Of results without times: their states had the same budget.
        let per_s = |of: &Sums| if is_timed { of.seconds.recip() } else { 1.0 };
        let pairs = loaded.ports.iter().map(|port| {
            let before = idle.port(port).map_or(0.0, |port| held_back(port) as f64 * per_s(&idle));
            (port, before, held_back(port) as f64 * per_s(&loaded))
        });
        let mut worse: Vec<_> = pairs.filter(|(_, before, under)| *under > 0.0 && *under >= ROSE * before).collect();
        worse.sort_by(|(_, before_a, a), (_, before_b, b)| (b - before_b).total_cmp(&(a - before_a)));
        let busiest = idle.ports.iter().map(|port| port.bytes).max().unwrap_or(0) as f64;
        let carries = |port: &PortCounters| {
            let sent = idle.port(port).map_or(0, |port| port.bytes);
            sent > 0 && sent as f64 >= CARRIES * busiest
        };
        let crossed = worse.iter().filter(|(port, ..)| carries(port)).count();
        let worst = worse.first().map(|(port, before, under)| WorstPort {
            from: port.from.clone(),
            to: port.to.clone(),
            held_back: in_words(port, *before, *under, is_timed),
        });
        why.seen.push(format!("{full} of {ports} ports {full_or_so} under load."));
        why.seen.push(match &worst {
            Some(WorstPort { from, to, held_back }) => {
                format!(
                    "Load made {} of them worse than idle, most of all that from {from} to {to}: {held_back}.",
                    worse.len()
                )
            }
            None => "All of them did as much while idle: load made none of them worse.".into(),
        });
        let is_worse = worst.is_some();
        why.hot_spot = Some(HotSpot { worst, worse: worse.len(), full, ports, crossed: crossed > 0 });
        if !is_worse {
            return Ports::AsIdle;
        }
        match crossed {
            0 => why.seen.push("None of those is on the way of a canary's messages.".into()),
            _ => why.seen.push(format!("Canaries' messages cross {crossed} of those, on one placement or another.")),
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
        let loads: Vec<String> =
            self.runs.iter().flat_map(|run| &run.congestors).map(|load| load.kernel.to_string()).collect();
        let first = loads.first().map_or("a2a", String::as_str);
        let other = if loads.iter().any(|load| load == "incast") { "" } else { ", --congestors incast" };
        let more_load =
            format!("More load: larger messages (--set congestor.{first}.bytes=64KiB), more ranks per node{other}.");
        let mut try_this = |text: &str| why.to_try.push(text.to_owned());
        match ports {
            Ports::NoneFull | Ports::AsIdle => try_this(&more_load),
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
                try_this(&more_load);
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
    /// Some ran full, as they did while idle.
    AsIdle,
    /// Load filled some, but none on a canary's way.
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

/// The same in words, of which a port has one kind.
fn in_words(port: &PortCounters, before: f64, under: f64, is_timed: bool) -> String {
    let per_s = if is_timed { "/s" } else { "" };
    let number = |value: f64| match value {
        0.0 => "0".to_owned(),
        _ if value < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    match port.simulated {
        Some(of) if of.stalled_ns > 0 => {
            format!("{} ms{per_s} without room, {} idle", number(1e-6 * under), number(1e-6 * before))
        }
        _ => {
            let is_marking = port.queue.as_ref().is_some_and(|queue| queue.marks > 0);
            let what = if is_marking { "drops or marks" } else { "drops" };
            format!("{} {what}{per_s}, {} idle", number(under), number(before))
        }
    }
}

/// Every port over all phases of a state.
struct Sums {
    ports: Vec<PortCounters>,
    /// How long they were counted; 0 where that was not kept.
    seconds: f64,
}

impl Sums {
    fn of(phases: &[PhaseCounters], state: LoadState) -> Self {
        let mut ports: Vec<PortCounters> = Vec::new();
        let of_state = || phases.iter().filter(|phase| phase.phase.is(state));
        for port in of_state().flat_map(|phase| &phase.ports) {
            match ports.iter_mut().find(|sum| (&sum.from, &sum.to) == (&port.from, &port.to)) {
                Some(sum) => sum.add(port),
                None => ports.push(port.clone()),
            }
        }
        let seconds: Option<f64> = of_state().map(|phase| phase.seconds).sum();
        Sums { ports, seconds: seconds.unwrap_or(0.0) }
    }

    fn port(&self, like: &PortCounters) -> Option<&PortCounters> {
        self.ports.iter().find(|port| (&port.from, &port.to) == (&like.from, &like.to))
    }
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
        let told = "Load made 1 of them worse than idle, most of all that from leaf0 to h0: 50 drops or marks, 0 idle.";
        assert!(seen.iter().any(|line| line == "1 of 1 ports ran full or marked packets under load."), "{seen:?}");
        assert!(seen.iter().any(|line| line == told), "{seen:?}");
    }

    /// A load test on a lab with two ports: what each sent while canaries were alone, and dropped under load.
    fn on_a_lab(impact: f64, sent: [u64; 2], dropped: [u64; 2]) -> Why {
        on_a_busy_lab(impact, sent, [0; 2], dropped)
    }

    /// The same with what they dropped while canaries were alone, in 2 s; under load it is 10 s.
    fn on_a_busy_lab(impact: f64, sent: [u64; 2], idle: [u64; 2], dropped: [u64; 2]) -> Why {
        let ports =
            |bytes: [u64; 2], drops: [u64; 2]| vec![port("h0", bytes[0], drops[0]), port("h1", bytes[1], drops[1])];
        let phase = |state: LoadState, seconds, ports| PhaseCounters {
            phase: PhaseId::new(state, PhaseId::ALL_CANARIES),
            seconds: Some(seconds),
            ports,
            ..PhaseCounters::default()
        };
        let mut file = synthetic::file("tcp", None, impact);
        let phases = vec![
            phase(LoadState::Isolated, 2.0, ports(sent, idle)),
            phase(LoadState::Loaded, 10.0, ports([9; 2], dropped)),
        ];
        file.lab = Some(synthetic::lab(phases));
        file.why().expect("an explanation")
    }

    #[test]
    fn ports_that_drop_as_much_while_idle_are_no_hot_spot() {
        // More in number under load, but in five times the time.
        let same = on_a_busy_lab(1.0, [1000, 900], [20, 10], [110, 60]);
        let spot = same.hot_spot.clone().unwrap();
        assert_eq!((spot.worst, spot.worse, spot.full), (None, 0, 2), "{same:?}");
        let told = "All of them did as much while idle: load made none of them worse.";
        assert!(same.seen.iter().any(|line| line == told), "{same:?}");
        assert!(same.to_try[0].starts_with("More load"), "{same:?}");
        // The one that drops most is not the one that load made worse.
        let one = on_a_busy_lab(9.0, [1000, 900], [200, 10], [1000, 250]).hot_spot.unwrap();
        let worst = one.worst.unwrap();
        assert_eq!((&*worst.to, &*worst.held_back), ("h1", "25 drops/s, 5.0 idle"));
        assert_eq!((one.worse, one.full, one.crossed), (1, 2, true));
    }

    #[test]
    fn full_ports_on_a_canarys_way_explain_an_impact() {
        let why = on_a_lab(20.0, [1000, 900], [0, 7]);
        assert!(why.seen[0].contains("bit/s a node; the link of a node carries 200 Mbit/s"), "{why:?}");
        assert!(
            why.seen[2].ends_with("worse than idle, most of all that from leaf0 to h1: 0.7 drops/s, 0 idle."),
            "{why:?}"
        );
        assert!(why.seen.iter().any(|line| line.starts_with("Canaries' messages cross 1 of those")), "{why:?}");
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
        assert!(apart.seen.contains(&"None of those is on the way of a canary's messages.".into()), "{apart:?}");
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
