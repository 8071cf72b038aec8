//! What a machine must satisfy to be built, and to run: every quantity has a range, and so have the sums that the simulator makes
//! of them. docs/simulation.md has the ranges in a table.
//!
//! The ranges of single keys are checked first. Sums and products are saturating all the same: a machine that was made by hand
//! is asked for its size before it is checked.

use std::fmt::Display;
use std::ops::RangeInclusive;

use tailback_transport::units::{Rate, shown};

use super::quantity::{Ps, Size};
use super::spec::{
    Control, Dcqcn, Dragonfly, FatTree, FlowControl, Link, Machine, PairThrottle, Routing, Swift, Topology,
};

/// Ranks of a job.
pub const MOST_RANKS: usize = 1 << 20;

/// Ranks of a node.
pub const MOST_RANKS_PER_NODE: usize = 1024;

/// Ports, of nodes and switches; a link has one at each end. With their queues they are most of an idle network's memory, and
/// packets hold their numbers in 32 bits.
const MOST_PORTS: usize = 1 << 20;

/// Queues of all ports.
const MOST_QUEUES: usize = 1 << 23;

/// Virtual channels times classes that a port's masks hold.
const MOST_QUEUES_PER_PORT: usize = 32;

const MOST_SWITCHES: usize = 1 << 18;

/// Switches of a kind in one place, and links between two of them.
const MOST_ALIKE: usize = 65_535;

/// Times of flight, of processing, and between things.
pub(super) const SECOND: Ps = Ps::ns(1_000_000_000);

/// What a rank does takes time, or a loop until some time is over would never end.
const LEAST_WORK: Ps = Ps::ns(1);

const MOST_BYTES: Size = Size(1 << 30);

const SLOWEST: Rate = Rate::bits_per_second(1_000_000);
const FASTEST: Rate = Rate::bits_per_second(100_000_000_000_000);

/// The smallest part of something that counts as one.
const LEAST_PART: f64 = 1e-6;

/// A key, what it has, and what it may have.
pub(super) struct Complaint {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) expected: String,
}

pub(super) type Checked = Result<(), Complaint>;

impl Machine {
    /// Network ports of all nodes.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        product([self.nodes.count, self.nodes.nics])
    }

    /// How many network ports of nodes the topology has room for.
    #[must_use]
    pub fn room(&self) -> usize {
        match &self.topology {
            Topology::Single(_) | Topology::Leaves(_) => MOST_PORTS / 2,
            Topology::FatTree(tree) => product([tree.pods, tree.leaves, tree.ports_per_leaf]),
            Topology::Dragonfly(fly) => product([fly.groups, fly.rows, fly.columns, fly.ports_per_switch]),
        }
    }

    /// Virtual channels that keep the routing free of deadlock: one per crossing to another group.
    #[must_use]
    pub fn channels(&self) -> usize {
        match (&self.topology, self.routing) {
            (Topology::Dragonfly(_), Routing::Valiant | Routing::Adaptive { .. }) => 3,
            (Topology::Dragonfly(_), _) => 2,
            _ => 1,
        }
    }

    /// Switches, and ports of these and of nodes.
    fn extent(&self) -> (usize, usize) {
        let hosts = product([2, self.endpoints()]);
        match &self.topology {
            Topology::Single(_) => (1, hosts),
            Topology::Leaves(spec) => (spec.leaves.saturating_add(1), hosts.saturating_add(product([2, spec.leaves]))),
            Topology::FatTree(tree) => {
                let spines = product([tree.pods, tree.spines]);
                let switches =
                    [product([tree.pods, tree.leaves]), spines, product([tree.spines, tree.cores_per_spine])];
                let up =
                    [product([2, tree.leaves, spines, tree.leaf_links]), product([2, spines, tree.cores_per_spine])];
                (sum(switches), sum([hosts, up[0], up[1]]))
            }
            Topology::Dragonfly(fly) => {
                let switches = product([fly.groups, fly.rows, fly.columns]);
                let row = product([switches, fly.columns.saturating_sub(1), fly.row_links]);
                let column = product([switches, fly.rows.saturating_sub(1), fly.column_links]);
                let global = product([fly.groups, fly.groups.saturating_sub(1), fly.global_links]);
                (switches, sum([hosts, row, column, global]))
            }
        }
    }

    /// A full packet on the wire.
    fn whole_packet(&self) -> Size {
        Size(self.packet.payload.0.saturating_add(self.packet.header.0))
    }

    pub(super) fn check(&self) -> Checked {
        words("name", &self.name, 1..=100)?;
        words("about", &self.about, 0..=4000)?;
        self.check_nodes()?;
        self.check_topology()?;
        self.check_packet()?;
        self.check_switch()?;
        self.check_extent()?;
        self.check_nic()?;
        self.check_control()?;
        self.check_faults()
    }

    fn check_nodes(&self) -> Checked {
        let nodes = &self.nodes;
        within("nodes.count", nodes.count, 1..=MOST_PORTS / 2)?;
        within("nodes.nics", nodes.nics, 1..=64)?;
        within("nodes.ranks_per_node", nodes.ranks_per_node, 1..=MOST_RANKS_PER_NODE)?;
        let ranks = product([nodes.count, nodes.ranks_per_node]);
        if ranks > MOST_RANKS {
            let expected = format!("at most {MOST_RANKS} ranks in all, not {ranks}");
            return refuse("nodes.ranks_per_node", nodes.ranks_per_node, expected);
        }
        link("nodes.memory", nodes.memory)
    }

    fn check_topology(&self) -> Checked {
        match &self.topology {
            Topology::Single(single) => link("topology.host", single.host)?,
            Topology::Leaves(spec) => {
                within("topology.leaves", spec.leaves, 1..=MOST_ALIKE)?;
                if spec.leaves > self.endpoints() {
                    return refuse("topology.leaves", spec.leaves, "no more leaves than network ports of nodes");
                }
                link("topology.host", spec.host)?;
                link("topology.spine", spec.spine)?;
            }
            Topology::FatTree(tree) => check_tree(tree)?,
            Topology::Dragonfly(fly) => check_dragonfly(fly)?,
        }
        if let Routing::Adaptive { bias: Some(bias) } = self.routing {
            within("routing.bias", bias, Size(0)..=MOST_BYTES)?;
        }
        if self.routing == Routing::Valiant && !matches!(self.topology, Topology::Dragonfly(_)) {
            return refuse(
                "routing.kind",
                "valiant",
                "another kind: valiant is for a dragonfly, elsewhere spray does what it does",
            );
        }
        Ok(())
    }

    /// What the parts come to.
    fn check_extent(&self) -> Checked {
        let (endpoints, room, (switches, ports)) = (self.endpoints(), self.room(), self.extent());
        if endpoints > room {
            let expected =
                format!("at most {room} network ports of nodes, for which the topology has room, not {endpoints}");
            return refuse("nodes.count", self.nodes.count, expected);
        }
        if switches > MOST_SWITCHES {
            return refuse("topology", format!("{switches} switches"), format!("at most {MOST_SWITCHES}"));
        }
        if ports > MOST_PORTS {
            let expected = format!("at most {MOST_PORTS}, of nodes and switches");
            return refuse("topology", format!("{ports} ports"), expected);
        }
        let queues = product([ports, self.switch.classes + 1, self.channels()]);
        if queues > MOST_QUEUES {
            let expected = format!("at most {MOST_QUEUES} queues in all, not {queues} ({ports} ports)");
            return refuse("switch.classes", self.switch.classes, expected);
        }
        Ok(())
    }

    fn check_packet(&self) -> Checked {
        let packet = &self.packet;
        within("packet.payload", packet.payload, Size(16)..=Size(1 << 20))?;
        within("packet.header", packet.header, Size(1)..=Size(4096))?;
        // What is longer than a packet might fit nowhere.
        within("packet.ack", packet.ack, Size(1)..=self.whole_packet())?;
        within("packet.ack_every", packet.ack_every, 1..=1024)?;
        // A sender whose window is smaller than what is acknowledged together would wait for ever.
        let windows = matches!(self.control, Control::Window(_) | Control::Swift(_) | Control::Pair(_));
        if (windows || self.switch.flow_control == FlowControl::Drop) && packet.ack_every != 1 {
            let expected =
                "1: each packet is acknowledged where packets are dropped, or a window, swift or pair controls";
            return refuse("packet.ack_every", packet.ack_every, expected);
        }
        within("packet.least_silence", packet.least_silence, Ps::ns(1_000)..=Ps::ns(10_000_000_000))
    }

    fn check_switch(&self) -> Checked {
        let (switch, channels) = (&self.switch, self.channels());
        within("switch.classes", switch.classes, 1..=MOST_QUEUES_PER_PORT / channels - 1)?;
        within("switch.latency", switch.latency, Ps(0)..=SECOND)?;
        let least = Size(2 * self.whole_packet().0 * channels as u64);
        if !(least..=MOST_BYTES).contains(&switch.buffer) {
            let room = format!("two packets of {} in each of {channels} virtual channels", self.whole_packet());
            return refuse("switch.buffer", switch.buffer, format!("{least} ({room}) to {MOST_BYTES}"));
        }
        if let Some(ecn) = switch.ecn {
            within("switch.ecn.to", ecn.to, Size(0)..=MOST_BYTES)?;
            within("switch.ecn.from", ecn.from, Size(0)..=ecn.to)?;
            within("switch.ecn.probability", ecn.probability, 0.0..=1.0)?;
        }
        Ok(())
    }

    fn check_nic(&self) -> Checked {
        let nic = &self.nic;
        within("nic.send_overhead", nic.send_overhead, LEAST_WORK..=SECOND)?;
        within("nic.receive_overhead", nic.receive_overhead, Ps(0)..=SECOND)?;
        within("nic.poll", nic.poll, LEAST_WORK..=SECOND)?;
        within("nic.gap", nic.gap, Ps(0)..=SECOND)?;
        within("nic.latency", nic.latency, Ps(0)..=SECOND)?;
        within("nic.eager_limit", nic.eager_limit, Size(0)..=MOST_BYTES)
    }

    fn check_control(&self) -> Checked {
        let (drops, marks) = (self.switch.flow_control == FlowControl::Drop, self.switch.ecn.is_some());
        // A window that never has room for a packet is none.
        let windows = self.whole_packet()..=MOST_BYTES;
        match &self.control {
            Control::None if drops => {
                refuse("control.kind", "none", "window or swift: where packets are dropped, someone must slow down")
            }
            Control::None => Ok(()),
            Control::Dcqcn(_) if !marks => refuse("control.kind", "dcqcn", "switch.ecn too, which dcqcn needs"),
            Control::Dcqcn(dcqcn) => check_dcqcn(dcqcn),
            Control::Window(_) if !marks && !drops => {
                let expected = "switch.ecn or drops too: a window needs them to learn of congestion";
                refuse("control.kind", "window", expected)
            }
            Control::Window(window) => {
                within("control.most", window.most, windows)?;
                within("control.initial", window.initial, Size(1)..=MOST_BYTES)?;
                within("control.g", window.g, LEAST_PART..=1.0)
            }
            Control::Swift(swift) => check_swift(swift, windows),
            Control::Pair(pair) => check_pair(pair, windows),
        }
    }
}

fn check_tree(tree: &FatTree) -> Checked {
    for (key, value) in [
        ("topology.pods", tree.pods),
        ("topology.leaves", tree.leaves),
        ("topology.ports_per_leaf", tree.ports_per_leaf),
        ("topology.spines", tree.spines),
        ("topology.leaf_links", tree.leaf_links),
    ] {
        within(key, value, 1..=MOST_ALIKE)?;
    }
    let cores = if tree.pods > 1 { 1..=MOST_ALIKE } else { 0..=0 };
    if !cores.contains(&tree.cores_per_spine) {
        let expected = format!("{}: several pods are joined by cores, and one pod needs none", range(&cores));
        return refuse("topology.cores_per_spine", tree.cores_per_spine, expected);
    }
    link("topology.host", tree.host)?;
    link("topology.up", tree.up)
}

fn check_dragonfly(fly: &Dragonfly) -> Checked {
    for (key, value) in [
        ("topology.groups", fly.groups),
        ("topology.rows", fly.rows),
        ("topology.columns", fly.columns),
        ("topology.ports_per_switch", fly.ports_per_switch),
        ("topology.row_links", fly.row_links),
        ("topology.column_links", fly.column_links),
        ("topology.global_links", fly.global_links),
    ] {
        within(key, value, 1..=MOST_ALIKE)?;
    }
    link("topology.host", fly.host)?;
    link("topology.local", fly.local)?;
    link("topology.global", fly.global)
}

fn check_dcqcn(dcqcn: &Dcqcn) -> Checked {
    for (key, value) in [
        ("control.cnp_interval", dcqcn.cnp_interval),
        ("control.alpha_interval", dcqcn.alpha_interval),
        ("control.increase_interval", dcqcn.increase_interval),
    ] {
        within(key, value, Ps::ns(100)..=SECOND)?;
    }
    within("control.g", dcqcn.g, LEAST_PART..=1.0)?;
    within("control.additive", dcqcn.additive, LEAST_PART..=1.0)?;
    within("control.recovery_rounds", dcqcn.recovery_rounds, 0..=1000)
}

fn check_swift(swift: &Swift, windows: RangeInclusive<Size>) -> Checked {
    within("control.most", swift.most, windows)?;
    within("control.target", swift.target, Ps::ns(1)..=SECOND)?;
    within("control.additive", swift.additive, Size(1)..=MOST_BYTES)?;
    within("control.beta", swift.beta, 0.001..=10.0)?;
    within("control.most_cut", swift.most_cut, 0.001..=0.999)
}

fn check_pair(pair: &PairThrottle, windows: RangeInclusive<Size>) -> Checked {
    within("control.most", pair.most, windows)?;
    within("control.least", pair.least, Size(16)..=pair.most)?;
    within("control.threshold", pair.threshold, Size(0)..=MOST_BYTES)?;
    within("control.additive", pair.additive, Size(1)..=MOST_BYTES)?;
    within("control.cut", pair.cut, 0.001..=0.999)
}

fn link(key: &str, link: Link) -> Checked {
    within(&format!("{key}.rate"), link.rate, SLOWEST..=FASTEST)?;
    within(&format!("{key}.latency"), link.latency, Ps(0)..=SECOND)
}

/// Words that are shown in tables and errors of one line.
fn words(key: &str, words: &str, most: RangeInclusive<usize>) -> Checked {
    if most.contains(&words.chars().count()) && !words.chars().any(char::is_control) {
        return Ok(());
    }
    refuse(key, shown(words), format!("{} characters in one line", range(&most)))
}

pub(super) fn within<Q: PartialOrd + Display>(key: &str, value: Q, expected: RangeInclusive<Q>) -> Checked {
    if expected.contains(&value) { Ok(()) } else { refuse(key, value, range(&expected)) }
}

fn range<Q: Display + PartialEq>(range: &RangeInclusive<Q>) -> String {
    if range.start() == range.end() { range.end().to_string() } else { format!("{} to {}", range.start(), range.end()) }
}

pub(super) fn refuse(key: &str, value: impl Display, expected: impl Into<String>) -> Checked {
    Err(Complaint { key: key.into(), value: value.to_string(), expected: expected.into() })
}

fn product<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

fn sum<const N: usize>(parts: [usize; N]) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}
