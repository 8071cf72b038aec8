//! Which port a packet leaves a switch by.
//!
//! Deadlock-free by construction: a tree's ways go up and then down; a dragonfly's go along rows before columns inside a
//! group, and change to the next virtual channel with every crossing into another group and at the end of a detour
//! inside a group, so that a full buffer never waits for itself.

use super::dragonfly::DragonflyRouter;
use super::fattree::FatTreeRouter;
use super::graph::{Graph, Node};
use super::packet::Packet;
use super::view::View;
use crate::machine::{Link, Machine, Topology};

/// A topology's ways.
#[derive(Debug)]
pub(crate) enum Router {
    /// One switch: down.
    Single,
    /// Leaves and, if there are more than two, a spine.
    Leaves {
        leaves: u32,
        base: u32,
    },
    FatTree(FatTreeRouter),
    Dragonfly(DragonflyRouter),
}

/// Builds a machine's network and the router for it.
pub(crate) fn build(machine: &Machine) -> (Graph, Router) {
    match &machine.topology {
        Topology::Single(spec) => (Graph::new(machine, spec.host, |_| 0), Router::Single),
        Topology::Leaves(spec) => leaves(machine, spec.leaves as u32, spec.host, spec.spine),
        Topology::FatTree(spec) => {
            let (graph, router) = FatTreeRouter::build(machine, spec);
            (graph, Router::FatTree(router))
        }
        Topology::Dragonfly(spec) => {
            let (graph, router) = DragonflyRouter::build(machine, spec);
            (graph, Router::Dragonfly(router))
        }
    }
}

/// The most links between switches on a shortest way.
pub(crate) fn diameter(machine: &Machine) -> u32 {
    match &machine.topology {
        Topology::Single(_) => 0,
        Topology::Leaves(spec) => (spec.leaves as u32 - 1).min(2),
        Topology::FatTree(spec) => 2 + 2 * u32::from(spec.pods > 1),
        Topology::Dragonfly(spec) => {
            let inside = u32::from(spec.columns > 1) + u32::from(spec.rows > 1);
            inside + (1 + inside) * u32::from(spec.groups > 1)
        }
    }
}

fn leaves(machine: &Machine, leaves: u32, host: Link, spine: Link) -> (Graph, Router) {
    let endpoints = machine.endpoints() as u64;
    let attach = |e: u32| (u64::from(e) * u64::from(leaves) / endpoints) as u32;
    let mut graph = Graph::new(machine, host, attach);
    let base = graph.next_port();
    match leaves {
        1 => {}
        2 => {
            graph.add(Node::Switch(0), Node::Switch(1), spine);
            graph.add(Node::Switch(1), Node::Switch(0), spine);
        }
        _ => {
            (0..leaves).for_each(|leaf| graph.add(Node::Switch(leaf), Node::Switch(leaves), spine));
            (0..leaves).for_each(|leaf| graph.add(Node::Switch(leaves), Node::Switch(leaf), spine));
        }
    }
    (graph, Router::Leaves { leaves, base })
}

impl Router {
    /// The port and the queue by which `packet` leaves switch `at`.
    #[inline]
    pub(crate) fn route(&self, graph: &Graph, at: u32, packet: &mut Packet, view: &mut View<'_>) -> (u32, u8) {
        let home = graph.attach[packet.dst as usize];
        if home == at {
            return (graph.down(packet.dst), view.queue(packet));
        }
        let port = match self {
            Router::Single => graph.down(packet.dst),
            Router::Leaves { leaves, base } if at < *leaves => base + at,
            Router::Leaves { leaves, base } => base + leaves + home,
            Router::FatTree(router) => router.route(at, home, packet, view),
            Router::Dragonfly(router) => return router.route(at, home, packet, view),
        };
        (port, view.queue(packet))
    }
}
