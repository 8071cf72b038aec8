//! How many ports connect a node to the network under test, and so how many ranks share one: what the papers tell jobs apart by.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CountersRecord, NetworkEnd, RankEnds, ResultFile};

/// Ports of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePorts {
    /// How many each node has; the most where nodes differ.
    pub per_node: u32,
    /// Who says so.
    pub known_by: KnownBy,
}

/// How a number of ports is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// The user: `--ports-per-node`.
    User,
    /// The machine file of a simulated machine.
    Machine,
    /// The devices that the node's ranks use.
    Devices,
    /// The adapters of the node that are up, where the library does not say which it uses.
    Adapters,
}

impl KnownBy {
    /// How it is said.
    pub fn phrase(self) -> &'static str {
        match self {
            KnownBy::User => "as given",
            KnownBy::Machine => "as the machine has",
            KnownBy::Devices => "as its ranks use",
            KnownBy::Adapters => "as it has adapters",
        }
    }
}

impl NodePorts {
    /// From the devices of the ranks of each node, on their first network, with `ends` in rank order; or else from the nodes'
    /// adapters that counted.
    pub fn find(nodes: &[Vec<u32>], ends: &[RankEnds], counters: &CountersRecord) -> Option<Self> {
        let end = |rank: &u32| ends.binary_search_by_key(rank, |of| of.rank).ok().map(|at| &ends[at]);
        let devices =
            |rank: &u32| end(rank).and_then(|of| of.networks.first()).into_iter().flat_map(NetworkEnd::devices);
        // What stays inside a host goes through no port.
        let outside = |name: &&String| *name != "lo";
        let used = nodes.iter().map(|ranks| ranks.iter().flat_map(devices).filter(outside).collect::<BTreeSet<_>>());
        let most = |counts: &mut dyn Iterator<Item = usize>| counts.max().filter(|count| *count > 0);
        if let Some(ports) = most(&mut used.map(|devices| devices.len())) {
            return Some(NodePorts { per_node: ports as u32, known_by: KnownBy::Devices });
        }
        let knows = ends.iter().flat_map(|of| of.networks.first()).any(|network| network.device.is_some());
        let mut adapters: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let counted = counters.phases.iter().flat_map(|phase| &phase.devices);
        for of in counted.filter(|of| ["infiniband", "cxi"].contains(&of.source.as_str())) {
            adapters.entry(&of.node).or_default().insert(&of.device);
        }
        let ports = most(&mut adapters.values().map(BTreeSet::len)).filter(|_| !knows)?;
        Some(NodePorts { per_node: ports as u32, known_by: KnownBy::Adapters })
    }
}

impl ResultFile {
    /// How many ranks share a port, on average; nothing where the ports are not known.
    pub fn ranks_per_port(&self) -> Option<f64> {
        let ports = self.system.ports?.per_node as usize * self.system.nodes.len();
        (ports > 0).then(|| self.system.ranks as f64 / ports as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceCounters, synthetic};
    use super::*;

    fn ends(devices: &[Option<&str>]) -> Vec<RankEnds> {
        let end = |(rank, device): (usize, &Option<&str>)| {
            let device = device.map(str::to_owned);
            let network = NetworkEnd { over: "verbs".into(), device, address: None, wait: None, rails: Vec::new() };
            RankEnds { rank: rank as u32, cores: String::new(), networks: vec![network], watcher: None }
        };
        devices.iter().enumerate().map(end).collect()
    }

    fn adapters(names: &[&str]) -> CountersRecord {
        let mut record = CountersRecord::default();
        for (source, device) in names.iter().map(|name| ("cxi", name)).chain([("net", &"eth0")]) {
            let (node, source, device) = ("n0".to_owned(), source.to_owned(), (*device).to_owned());
            let counters = [("drops".to_owned(), 1.0)].into();
            record.add("loaded lat", DeviceCounters { node, source, device, seconds: 1.0, counters });
        }
        record
    }

    #[test]
    fn ports_are_the_devices_that_the_ranks_of_a_node_use() {
        let four = ends(&[Some("mlx5_0 port 1"), Some("mlx5_1 port 1"), Some("mlx5_0 port 1"), Some("mlx5_0 port 1")]);
        let found = |nodes: &[Vec<u32>], ends: &[RankEnds]| NodePorts::find(nodes, ends, &adapters(&["cxi0", "cxi1"]));
        let two = NodePorts { per_node: 2, known_by: KnownBy::Devices };
        assert_eq!(found(&[vec![0, 1], vec![2, 3]], &four), Some(two), "the second node used one of them");
        assert_eq!(found(&[vec![0, 1]], &ends(&[Some("lo"), Some("lo")])), None, "nothing left the host");
        let unsaid = NodePorts { per_node: 2, known_by: KnownBy::Adapters };
        assert_eq!(found(&[vec![0, 1]], &ends(&[None, None])), Some(unsaid), "a library that does not say");
        assert_eq!(NodePorts::find(&[vec![0]], &ends(&[None]), &adapters(&[])), None);
    }

    #[test]
    fn ranks_are_counted_by_port() {
        let mut file = synthetic::file("mpi", None, 2.0);
        assert_eq!(file.ranks_per_port(), None);
        file.system.ports = Some(NodePorts { per_node: 4, known_by: KnownBy::User });
        file.system.ranks = 320;
        assert_eq!(file.ranks_per_port(), Some(8.0), "320 ranks on 10 nodes");
    }
}
