//! Which ranks share a host, stored as one array of ranks sorted by node.

use std::collections::HashMap;

use tailback_transport::Rank;

/// The nodes of the job, in the order of their first rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    names: Vec<String>,
    /// `ranks[starts[n]..starts[n + 1]]` are node n's ranks, ascending.
    starts: Vec<u32>,
    ranks: Vec<Rank>,
    node_of: Vec<u32>,
    /// The group of each node: what is known of the topology. One for all when nothing is.
    groups: Vec<u32>,
    group_names: Vec<String>,
    /// Only the first so many nodes have roles, and of each only the first so many ranks.
    within: Within,
}

/// How many nodes have roles, and how many ranks of each, where not all have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Within {
    pub nodes: Option<usize>,
    pub ranks: Option<usize>,
}

impl Nodes {
    /// Groups ranks by their host; `hosts[r]` is rank r's.
    pub fn from_hosts<S: AsRef<str>>(hosts: &[S]) -> Self {
        let mut index: HashMap<&str, u32> = HashMap::new();
        let mut names = Vec::new();
        let node_of = hosts
            .iter()
            .map(|host| {
                *index.entry(host.as_ref()).or_insert_with(|| {
                    names.push(host.as_ref().to_owned());
                    (names.len() - 1) as u32
                })
            })
            .collect();
        Self::build(names, node_of)
    }

    /// Virtual nodes of `per_node` consecutive ranks each, whatever host they are on; the last may be smaller.
    ///
    /// # Panics
    /// If `per_node` is zero: the plan refuses that earlier.
    pub fn virtual_nodes(ranks: usize, per_node: usize) -> Self {
        assert!(per_node > 0, "a node has at least one rank");
        let names = (0..ranks.div_ceil(per_node)).map(|node| format!("virtual{node}")).collect();
        let node_of = (0..ranks).map(|rank| (rank / per_node) as u32).collect();
        Self::build(names, node_of)
    }

    fn build(names: Vec<String>, node_of: Vec<u32>) -> Self {
        let mut starts = vec![0u32; names.len() + 1];
        for &node in &node_of {
            starts[node as usize + 1] += 1;
        }
        for node in 0..names.len() {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut ranks = vec![Rank(0); node_of.len()];
        for (rank, &node) in node_of.iter().enumerate() {
            ranks[next[node as usize] as usize] = Rank::from(rank);
            next[node as usize] += 1;
        }
        let groups = vec![0; names.len()];
        let within = Within::default();
        Nodes { names, starts, ranks, node_of, groups, group_names: vec![String::new()], within }
    }

    /// The same nodes, of which only the first so many have roles, and of each only the first so many ranks; where that is not
    /// said, all. A layout refuses more than there are.
    #[must_use]
    pub fn within(self, nodes: Option<usize>, ranks: Option<usize>) -> Self {
        Nodes { within: Within { nodes, ranks }, ..self }
    }

    /// The same nodes with what is known of the topology: `groups[r]` is the switch, rack or other group of rank r's
    /// node. A node belongs to the group of its first rank.
    #[must_use]
    pub fn with_groups<S: AsRef<str>>(mut self, groups: &[S]) -> Self {
        self.group_names.clear();
        for node in 0..self.len() {
            let name = groups[self.ranks(node)[0].index()].as_ref();
            let known = self.group_names.iter().position(|known| known == name);
            self.groups[node] = known.unwrap_or_else(|| {
                self.group_names.push(name.to_owned());
                self.group_names.len() - 1
            }) as u32;
        }
        self
    }

    /// The group a node belongs to.
    pub fn group_of(&self, node: usize) -> usize {
        self.groups[node] as usize
    }

    /// How many groups there are.
    pub fn group_count(&self) -> usize {
        self.group_names.len()
    }

    /// What groups are called, by their numbers.
    pub fn group_names(&self) -> &[String] {
        &self.group_names
    }

    /// A seed that is the same for the same nodes: a simulation's, which is to be repeatable. 32 bits: easy to read out and
    /// to type.
    pub fn seed(&self) -> u64 {
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        names.sort_unstable();
        // FNV-1a, folded: its value for given nodes never changes.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in names.iter().flat_map(|name| name.bytes().chain([b'\n'])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        (hash ^ (hash >> 32)) & 0xffff_ffff
    }

    /// How many were asked for, where not all have roles.
    pub(super) fn asked(&self) -> Within {
        self.within
    }

    /// How many nodes have roles.
    pub(super) fn used(&self) -> usize {
        self.within.nodes.map_or(self.len(), |nodes| nodes.min(self.len()))
    }

    /// Whether the ranks of a slice have roles, on nodes that have.
    pub(super) fn uses_slice(&self, slice: usize) -> bool {
        self.within.ranks.is_none_or(|ranks| slice < ranks)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many ranks there are on all nodes.
    pub fn rank_count(&self) -> usize {
        self.ranks.len()
    }

    /// The host's name, or `virtualN`.
    pub fn name(&self, node: usize) -> &str {
        &self.names[node]
    }

    /// A node's ranks; position i belongs to slice i.
    pub fn ranks(&self, node: usize) -> &[Rank] {
        &self.ranks[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The node a rank sits on.
    pub fn node_of(&self, rank: Rank) -> usize {
        self.node_of[rank.index()] as usize
    }

    /// The slice a rank belongs to: its position on its node.
    pub fn slice_of(&self, rank: Rank) -> usize {
        self.ranks(self.node_of(rank)).binary_search(&rank).expect("a node's ranks are sorted and hold its own")
    }

    /// The largest number of ranks on a node: how many slices there are.
    pub fn slices(&self) -> usize {
        (0..self.len()).map(|node| self.ranks(node).len()).max().unwrap_or(0)
    }

    /// The smallest number of ranks with roles on a node that has any.
    pub fn fewest_ranks(&self) -> usize {
        let used = |node| self.ranks(node).len().min(self.within.ranks.unwrap_or(usize::MAX));
        (0..self.used()).map(used).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_in_any_order_become_nodes() {
        let nodes = Nodes::from_hosts(&["b", "a", "b", "c", "a", "b"]);
        assert_eq!((nodes.len(), nodes.slices(), nodes.fewest_ranks()), (3, 3, 1));
        assert_eq!(nodes.ranks(0), [Rank(0), Rank(2), Rank(5)]);
        assert_eq!((nodes.name(1), nodes.node_of(Rank(4)), nodes.slice_of(Rank(4))), ("a", 1, 1));
    }

    #[test]
    fn the_same_nodes_have_the_same_seed() {
        let seed = |hosts: &[&str]| Nodes::from_hosts(hosts).seed();
        assert_eq!(seed(&["n1", "n2", "n1"]), seed(&["n2", "n1"]), "order and ranks do not matter");
        assert_ne!(seed(&["n1", "n2"]), seed(&["n1", "n3"]));
        assert_eq!(seed(&["a", "b"]), 2_312_881_871, "changing this unpairs users' results");
    }

    #[test]
    fn groups_are_of_nodes() {
        let nodes = Nodes::from_hosts(&["a", "b", "a", "c"]);
        assert_eq!(nodes.group_count(), 1);
        let nodes = nodes.with_groups(&["x", "y", "x", "x"]);
        assert_eq!((nodes.group_count(), [0, 1, 2].map(|node| nodes.group_of(node))), (2, [0, 1, 0]));
    }

    #[test]
    fn virtual_nodes_take_consecutive_ranks() {
        let nodes = Nodes::virtual_nodes(7, 3);
        assert_eq!((nodes.len(), nodes.ranks(2)), (3, &[Rank(6)][..]));
    }

    proptest! {
        #[test]
        fn every_rank_has_exactly_one_place(hosts in proptest::collection::vec("[a-e]", 1..60)) {
            let nodes = Nodes::from_hosts(&hosts);
            prop_assert_eq!(nodes.rank_count(), hosts.len());
            for rank in (0..hosts.len()).map(Rank::from) {
                let node = nodes.node_of(rank);
                prop_assert_eq!(nodes.name(node), &hosts[rank.index()]);
                prop_assert_eq!(nodes.ranks(node)[nodes.slice_of(rank)], rank);
            }
        }
    }
}
