//! Faults of the machine file, on the links of the network.

use super::graph::{Graph, Node, Wire};
use crate::machine::{Direction, Fault, Machine, Place, Rate};

/// What a fault does to one direction of a link.
#[derive(Clone, Copy)]
struct Harm {
    rate: f64,
    delay: u64,
    loss: f64,
}

impl Harm {
    fn slow(rate: f64) -> Self {
        Harm { rate, delay: 0, loss: 0.0 }
    }

    fn on(self, wire: &mut Wire) {
        wire.rate = Rate::bits_per_second((wire.rate.bits() as f64 * self.rate) as u64);
        wire.latency += self.delay;
        wire.loss = 1.0 - (1.0 - wire.loss) * (1.0 - self.loss);
    }
}

/// Breaks what the machine says is broken.
pub(crate) fn apply(graph: &mut Graph, machine: &Machine) {
    for fault in &machine.faults {
        match *fault {
            Fault::Send { node, rate } => at_node(graph, machine, node, Direction::Out, Harm::slow(rate)),
            Fault::Receive { node, rate } => at_node(graph, machine, node, Direction::In, Harm::slow(rate)),
            Fault::Cable { node, direction, rate, delay, loss } => {
                at_node(graph, machine, node, direction, Harm { rate, delay: delay.0, loss });
            }
            Fault::Host { node, memory, .. } => at_node(graph, machine, node, Direction::Both, Harm::slow(memory)),
            Fault::Uplink { ref between, direction, rate, delay, loss } => {
                let [Some(first), Some(second)] = between.each_ref().map(|name| machine.topology.place(name)) else {
                    continue;
                };
                let harm = Harm { rate, delay: delay.0, loss };
                let ends = [(first, second, direction.is_out()), (second, first, direction.is_in())];
                for (from, to, _) in ends.into_iter().filter(|(.., broken)| *broken) {
                    let of = |wire: &&mut Wire| is_at(wire.from, from, machine) && is_at(wire.to, to, machine);
                    graph.wires.iter_mut().filter(of).for_each(|wire| harm.on(wire));
                }
            }
        }
    }
}

fn at_node(graph: &mut Graph, machine: &Machine, node: usize, direction: Direction, harm: Harm) {
    let nics = machine.nodes.nics;
    for endpoint in (node * nics..(node + 1) * nics).map(|endpoint| endpoint as u32) {
        let down = graph.down(endpoint);
        let wires = [(endpoint, direction.is_out()), (down, direction.is_in())];
        for (wire, _) in wires.into_iter().filter(|(_, broken)| *broken) {
            harm.on(&mut graph.wires[wire as usize]);
        }
    }
}

fn is_at(node: Node, place: Place, machine: &Machine) -> bool {
    matches!(node, Node::Switch(switch) if machine.topology.is_at(switch as usize, place))
}
