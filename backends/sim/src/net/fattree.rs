//! Trees of two or three levels.
//!
//! Switches are numbered leaves first, then spines, then cores. Ports between them come in four runs: leaves up, spines
//! down, spines up, cores down.

use super::graph::{Graph, Node};
use super::packet::Packet;
use super::view::View;
use crate::machine::{FatTree, Machine};

/// See the module.
#[derive(Debug)]
pub(crate) struct FatTreeRouter {
    /// Of a pod.
    leaves: u32,
    spines: u32,
    links: u32,
    pods: u32,
    /// Of a spine.
    cores: u32,
    leaf_up: u32,
    spine_down: u32,
    spine_up: u32,
    core_down: u32,
}

impl FatTreeRouter {
    pub(crate) fn build(machine: &Machine, spec: &FatTree) -> (Graph, Self) {
        let [pods, leaves, spines, links, cores] =
            [spec.pods, spec.leaves, spec.spines, spec.leaf_links, spec.cores_per_spine].map(|n| n as u32);
        let (all_leaves, all_spines, all_cores) = (pods * leaves, pods * spines, spines * cores);
        let per_leaf = spec.ports_per_leaf as u32;
        let mut graph = Graph::new(machine, spec.host, |e| e / per_leaf);
        let spine_of = |pod: u32, spine: u32| Node::Switch(all_leaves + pod * spines + spine);
        let core_of = |core: u32| Node::Switch(all_leaves + all_spines + core);
        let leaf_up = graph.next_port();
        for leaf in 0..all_leaves {
            for port in 0..spines * links {
                graph.add(Node::Switch(leaf), spine_of(leaf / leaves, port / links), spec.up);
            }
        }
        let spine_down = graph.next_port();
        for spine in 0..all_spines {
            for port in 0..leaves * links {
                let leaf = spine / spines * leaves + port / links;
                graph.add(spine_of(spine / spines, spine % spines), Node::Switch(leaf), spec.up);
            }
        }
        let spine_up = graph.next_port();
        for spine in 0..all_spines {
            for core in 0..cores {
                graph.add(spine_of(spine / spines, spine % spines), core_of(spine % spines * cores + core), spec.up);
            }
        }
        let core_down = graph.next_port();
        for core in 0..all_cores {
            for pod in 0..pods {
                graph.add(core_of(core), spine_of(pod, core / cores), spec.up);
            }
        }
        (graph, FatTreeRouter { leaves, spines, links, pods, cores, leaf_up, spine_down, spine_up, core_down })
    }

    /// The port from switch `at`, which is not `home`, towards `home`.
    #[inline]
    pub(crate) fn route(&self, at: u32, home: u32, packet: &Packet, view: &mut View<'_>) -> u32 {
        let all_leaves = self.pods * self.leaves;
        if at < all_leaves {
            let count = self.spines * self.links;
            return view.pick(self.leaf_up + at * count, count, packet);
        }
        let (spine, pod) = (at - all_leaves, home / self.leaves);
        if spine >= self.pods * self.spines {
            let core = spine - self.pods * self.spines;
            return self.core_down + core * self.pods + pod;
        }
        if spine / self.spines == pod {
            let first = self.spine_down + (spine * self.leaves + home % self.leaves) * self.links;
            return view.pick(first, self.links, packet);
        }
        view.pick(self.spine_up + spine * self.cores, self.cores, packet)
    }
}
