//! The hosts that belong to the application on one placement, and how many of its processes each has.

use tailback_transport::Rank;

use crate::layout::{Layout, Role};

/// Hosts in the order of the nodes, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Victims {
    hosts: Vec<(String, usize)>,
}

impl Victims {
    /// The nodes that measure. Nodes that share a host, as virtual ones do, share a line.
    pub(in crate::commands) fn of(layout: &Layout, hosts: &[String], per_node: Option<usize>) -> Self {
        let nodes = layout.nodes();
        let mut victims = Victims::default();
        for node in 0..nodes.len() {
            let measures = |rank: &&Rank| layout.role(**rank) == Role::Canary;
            let ranks = nodes.ranks(node);
            let canaries = ranks.iter().filter(measures).count();
            if canaries > 0 {
                victims.add(&hosts[ranks[0].index()], per_node.unwrap_or(canaries));
            }
        }
        victims
    }

    fn add(&mut self, host: &str, processes: usize) {
        match self.hosts.iter_mut().find(|(known, _)| known == host) {
            Some((_, sum)) => *sum += processes,
            None => self.hosts.push((host.to_owned(), processes)),
        }
    }

    /// How many hosts there are.
    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// How many processes there are on all of them.
    pub(super) fn processes(&self) -> usize {
        self.hosts.iter().map(|(_, processes)| processes).sum()
    }

    /// The most processes on one.
    pub(super) fn per_host(&self) -> usize {
        self.hosts.iter().map(|(_, processes)| *processes).max().unwrap_or(0)
    }

    /// The hosts with commas.
    pub(super) fn list(&self) -> String {
        self.hosts.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>().join(",")
    }

    /// A line for each process with the host it is for: Open MPI, MPICH and Slurm all read that.
    pub(super) fn file(&self) -> String {
        let lines = |(host, processes): &(String, usize)| format!("{host}\n").repeat(*processes);
        self.hosts.iter().map(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Nodes, Placement, Split};

    fn layout(nodes: Nodes) -> Layout {
        Layout::load_test(nodes, Placement::random(3), 0.5, &[("a2a", 1.0)], Split::Node).unwrap()
    }

    #[test]
    fn victims_are_the_nodes_that_measure() {
        let hosts: Vec<String> = (0..4).flat_map(|node| std::iter::repeat_n(format!("n{node}"), 3)).collect();
        let layout = layout(Nodes::from_hosts(&hosts));
        let victims = Victims::of(&layout, &hosts, None);
        assert_eq!((victims.count(), victims.processes(), victims.per_host()), (2, 6, 3));
        assert_eq!(victims.file().lines().count(), 6);
        for host in victims.list().split(',') {
            let rank = hosts.iter().position(|name| name == host).unwrap();
            assert_eq!(layout.role(Rank::from(rank)), Role::Canary);
        }
        assert_eq!(Victims::of(&layout, &hosts, Some(8)).processes(), 16);
    }

    #[test]
    fn virtual_nodes_of_a_host_share_its_line() {
        let victims = Victims::of(&layout(Nodes::virtual_nodes(6, 1)), &vec!["box".to_owned(); 6], None);
        assert_eq!((victims.list().as_str(), victims.file().as_str()), ("box", "box\nbox\nbox\n"));
    }
}
