//! A machine in words: for people, and for whoever places ranks on it.

use super::fault::{Direction, Fault};
use super::quantity::Ps;
use super::spec::{Control, Link, Machine, Routing, Switching, Topology};

impl Machine {
    /// What is simulated, a line for each part of the file.
    #[must_use]
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let nodes = &self.nodes;
        let ports = if nodes.nics == 1 { String::new() } else { format!(", {} network ports each", nodes.nics) };
        let ranks = nodes.count * nodes.ranks_per_node;
        let switch = &self.switch;
        let classes = if switch.classes == 1 { String::new() } else { format!(", {} traffic classes", switch.classes) };
        let marks = switch.ecn.map(|ecn| format!(", marks from {} to {}", ecn.from, ecn.to));
        let switching = match switch.switching {
            Switching::CutThrough => "cut-through",
            Switching::StoreAndForward => "store-and-forward",
        };
        let nic = &self.nic;
        let mut lines = vec![
            ("nodes", format!("{}{ports}, {} ranks on each ({ranks} in all)", nodes.count, nodes.ranks_per_node)),
            ("inside a node", link(nodes.memory)),
            ("topology", self.topology_words()),
            ("links", self.links_words()),
            (
                "switches",
                format!(
                    "{switching}, {}, {} of buffer at a port{classes}{}",
                    switch.latency,
                    switch.buffer,
                    marks.unwrap_or_default()
                ),
            ),
            ("flow control", format!("{:?}", switch.flow_control).to_lowercase()),
            ("routing", self.routing_words().into()),
            ("congestion control", self.control_words().into()),
            ("packets", format!("{} and a header of {}", self.packet.payload, self.packet.header)),
            (
                "network ports",
                format!(
                    "o {} to send, {} to receive, g {}, {} to the processor, eager up to {}",
                    nic.send_overhead, nic.receive_overhead, nic.gap, nic.latency, nic.eager_limit
                ),
            ),
        ];
        if !self.faults.is_empty() {
            lines.push(("faults", self.faults_words()));
        }
        lines
    }

    /// The part of the topology that a node is in, as far as placements care: its leaf switch, or its group.
    #[must_use]
    pub fn group_of(&self, node: usize) -> String {
        let port = node * self.nodes.nics;
        match &self.topology {
            Topology::Single(_) => "switch".into(),
            Topology::Leaves(spec) => format!("leaf{}", port * spec.leaves / self.endpoints()),
            Topology::FatTree(tree) => format!("leaf{}", port / tree.ports_per_leaf),
            // Nodes are spread over the groups evenly.
            Topology::Dragonfly(fly) => format!("group{}", port / self.endpoints().div_ceil(fly.groups)),
        }
    }

    /// The link of a node's network port.
    #[must_use]
    pub fn host_link(&self) -> Link {
        match &self.topology {
            Topology::Single(spec) => spec.host,
            Topology::Leaves(spec) => spec.host,
            Topology::FatTree(tree) => tree.host,
            Topology::Dragonfly(fly) => fly.host,
        }
    }

    fn topology_words(&self) -> String {
        match &self.topology {
            Topology::Single(_) => "one switch".into(),
            Topology::Leaves(spec) if spec.leaves <= 2 => format!("{} leaf switches, joined directly", spec.leaves),
            Topology::Leaves(spec) => format!("{} leaf switches and a spine", spec.leaves),
            Topology::FatTree(tree) => {
                let up = tree.spines * tree.leaf_links;
                let over = tree.ports_per_leaf as f64 / up as f64
                    * (tree.host.rate.bits() as f64 / tree.up.rate.bits() as f64);
                let levels =
                    if tree.pods > 1 { format!("three levels, {} pods of ", tree.pods) } else { "two levels, ".into() };
                format!(
                    "fat tree of {levels}{} leaves with {} nodes' ports and {up} links up each, {over:.2}:1",
                    tree.leaves, tree.ports_per_leaf
                )
            }
            Topology::Dragonfly(fly) => {
                let switches = fly.rows * fly.columns;
                let ports = switches * fly.ports_per_switch;
                let out = (fly.groups - 1) * fly.global_links;
                let taper =
                    ports as f64 * fly.host.rate.bits() as f64 / (out.max(1) as f64 * fly.global.rate.bits() as f64);
                let levels = if fly.rows > 1 { "three" } else { "two" };
                format!(
                    "dragonfly of {levels} levels, {} groups of {switches} switches with {} nodes' ports each, {} links \
                     between two groups, {taper:.2}:1 out of a group",
                    fly.groups, fly.ports_per_switch, fly.global_links
                )
            }
        }
    }

    fn links_words(&self) -> String {
        let host = format!("nodes {}", link(self.host_link()));
        match &self.topology {
            Topology::Single(_) => host,
            Topology::Leaves(spec) => format!("{host}; between switches {}", link(spec.spine)),
            Topology::FatTree(tree) => format!("{host}; between switches {}", link(tree.up)),
            Topology::Dragonfly(fly) => {
                format!("{host}; in a group {}; between groups {}", link(fly.local), link(fly.global))
            }
        }
    }

    /// The first of them, as a file may have a great many.
    fn faults_words(&self) -> String {
        const SHOWN: usize = 8;
        let words = self.faults.iter().take(SHOWN).map(fault).collect::<Vec<String>>().join("; ");
        match self.faults.len().saturating_sub(SHOWN) {
            0 => words,
            more => format!("{words}; and {more} more"),
        }
    }

    fn routing_words(&self) -> &'static str {
        match self.routing {
            Routing::Minimal => "minimal",
            Routing::Ecmp => "minimal, hashed (ECMP)",
            Routing::Spray => "minimal, sprayed packet by packet",
            Routing::Valiant => "Valiant",
            Routing::Adaptive { .. } => "adaptive",
        }
    }

    fn control_words(&self) -> &'static str {
        match self.control {
            Control::None => "none",
            Control::Dcqcn(_) => "DCQCN",
            Control::Window(_) => "window, cut by marks and losses",
            Control::Swift(_) => "delay-based (as Swift)",
            Control::Pair(_) => "endpoint pairs held back",
        }
    }
}

fn fault(fault: &Fault) -> String {
    let cable = |rate: f64, delay: Ps, loss: f64| {
        let rate = (rate < 1.0).then(|| format!(" at {:.3}% of its rate", 100.0 * rate));
        let delay = (delay > Ps(0)).then(|| format!(" with {delay} of delay"));
        let loss = (loss > 0.0).then(|| format!(" with {:.3}% of its packets lost", 100.0 * loss));
        [rate, delay, loss].into_iter().flatten().collect::<String>()
    };
    let way = |direction: &Direction| match direction {
        Direction::Both => "",
        Direction::Out => ", way out",
        Direction::In => ", way in",
    };
    match fault {
        Fault::Send { node, rate } => format!("node {node} sends at {:.3}% of its rate", 100.0 * rate),
        Fault::Receive { node, rate } => format!("node {node} receives at {:.3}% of its rate", 100.0 * rate),
        Fault::Cable { node, direction, rate, delay, loss } => {
            format!("cable of node {node}{}{}", way(direction), cable(*rate, *delay, *loss))
        }
        Fault::Uplink { between: [from, to], direction, rate, delay, loss } => {
            format!("links {from} to {to}{}{}", way(direction), cable(*rate, *delay, *loss))
        }
        Fault::Host { node, processor, memory } => {
            format!("node {node} has {:.3}% of its processor, {:.3}% of its memory", 100.0 * processor, 100.0 * memory)
        }
    }
}

fn link(link: Link) -> String {
    format!("{} and {}", link.rate, link.latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_is() {
        let lines = |name| -> String {
            let machine = Machine::load(name).unwrap();
            machine.describe().iter().map(|(part, words)| format!("{part}: {words}\n")).collect()
        };
        let small = lines("small");
        for part in ["64 in all", "1.00:1", "200 Gbit/s", "64 KiB of buffer", "credit", "adaptive"] {
            assert!(small.contains(part), "{small}");
        }
        assert!(lines("lab").contains("2 leaf switches, joined directly"), "{}", lines("lab"));
        assert!(lines("crystal").contains("dragonfly of three levels"), "{}", lines("crystal"));
    }

    /// The same places as the network's own.
    #[test]
    fn nodes_of_a_group_hang_on_the_same_switch() {
        for name in super::super::shipped() {
            let machine = Machine::load(name).unwrap();
            let network = crate::net::Network::new(&machine, 1).unwrap();
            for node in 0..machine.nodes.count {
                let switch = network.switch_of(node * machine.nodes.nics);
                let group = machine.group_of(node);
                let expected = match &machine.topology {
                    Topology::Dragonfly(_) => format!("g{}", &group["group".len()..]),
                    _ => group.clone(),
                };
                let digits = switch[expected.len().min(switch.len())..].starts_with(|c: char| c.is_ascii_digit());
                assert!(switch.starts_with(&expected) && !digits, "{name}: node {node} of {group} is on {switch}");
            }
        }
    }
}
