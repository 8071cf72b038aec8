//! Switches, endpoints and the links between them, as numbers.
//!
//! A port is one direction of a link, owned by the side that sends. Port e sends from endpoint e; port E + e sends from
//! a switch to endpoint e; the rest are between switches, in runs that the router finds by arithmetic.

use crate::machine::{Link, Machine, Rate, Topology};

/// Who is at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Endpoint(u32),
    Switch(u32),
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) rate: Rate,
    /// Time of flight in picoseconds, without the switch at its end.
    pub(crate) latency: u64,
    /// Part of the packets that are lost on it.
    pub(crate) loss: f64,
}

/// The network without its state.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) endpoints: u32,
    /// The switch of every endpoint.
    pub(crate) attach: Vec<u32>,
    pub(crate) wires: Vec<Wire>,
}

impl Graph {
    /// Endpoints on their switches; `attach` gives the switch of each.
    pub(crate) fn new(machine: &Machine, host: Link, attach: impl Fn(u32) -> u32) -> Self {
        let endpoints = machine.endpoints() as u32;
        let mut graph = Graph { endpoints, attach: (0..endpoints).map(attach).collect(), wires: Vec::new() };
        for e in 0..endpoints {
            graph.add(Node::Endpoint(e), Node::Switch(graph.attach[e as usize]), host);
        }
        for e in 0..endpoints {
            graph.add(Node::Switch(graph.attach[e as usize]), Node::Endpoint(e), host);
        }
        graph
    }

    /// Adds a port.
    pub(crate) fn add(&mut self, from: Node, to: Node, link: Link) {
        self.wires.push(Wire { from, to, rate: link.rate, latency: link.latency.0, loss: 0.0 });
    }

    /// The number that the next port will have.
    pub(crate) fn next_port(&self) -> u32 {
        self.wires.len() as u32
    }

    /// The port that leads to an endpoint.
    #[inline]
    pub(crate) fn down(&self, endpoint: u32) -> u32 {
        self.endpoints + endpoint
    }
}

/// What a port is called in reports.
pub(crate) fn name(node: Node, topology: &Topology) -> String {
    match node {
        Node::Endpoint(e) => format!("nic{e}"),
        Node::Switch(s) => topology.switch_name(s as usize),
    }
}
