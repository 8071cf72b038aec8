//! Groups of switches, each joined to each: two levels, or three where a group is a grid.
//!
//! Inside a group a packet goes along its row, then along the column. Between groups it takes one of the links that join
//! them (a gate). Detours are decided once, at the packet's first switch: through another group, or to a gate or a switch
//! that is not on the shortest way.

use super::graph::{Graph, Node};
use super::packet::{NONE, Packet, flag};
use super::view::View;
use crate::machine::{Dragonfly, Machine, Routing};
use crate::rng::mix;

/// Ways of each kind that an adaptive packet looks at.
const LOOKS: u32 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct DragonflyRouter {
    groups: u32,
    rows: u32,
    columns: u32,
    row_links: u32,
    column_links: u32,
    gates: u32,
    row: u32,
    column: u32,
    global: u32,
    /// Where every switch is, and the switch of every gate in the order of their ports: looked up, as every hop asks for
    /// several of them.
    seats: Vec<Seat>,
    exits: Vec<u32>,
}

/// A switch's place.
#[derive(Clone, Copy, Debug)]
struct Seat {
    group: u32,
    row: u16,
    column: u16,
}

impl DragonflyRouter {
    pub(crate) fn build(machine: &Machine, spec: &Dragonfly) -> (Graph, Self) {
        let [groups, rows, columns, row_links, column_links, gates] =
            [spec.groups, spec.rows, spec.columns, spec.row_links, spec.column_links, spec.global_links]
                .map(|n| n as u32);
        let switches = groups * rows * columns;
        // Nodes are spread over the groups evenly, and inside a group switch by switch.
        let endpoints = machine.endpoints() as u32;
        let per_group = endpoints.div_ceil(groups);
        let per_switch = spec.ports_per_switch as u32;
        let attach = |e: u32| e / per_group * rows * columns + e % per_group / per_switch;
        let mut graph = Graph::new(machine, spec.host, attach);
        let seat = |switch: u32| Seat {
            group: switch / (rows * columns),
            row: (switch / columns % rows) as u16,
            column: (switch % columns) as u16,
        };
        let seats = (0..switches).map(seat).collect();
        let (row, column, global, exits) = (0, 0, 0, Vec::new());
        let mut router = DragonflyRouter {
            groups,
            rows,
            columns,
            row_links,
            column_links,
            gates,
            row,
            column,
            global,
            seats,
            exits,
        };
        router.row = graph.next_port();
        for switch in 0..switches {
            for port in 0..(columns - 1) * row_links {
                let to = switch - switch % columns + beyond(switch % columns, port / row_links);
                graph.add(Node::Switch(switch), Node::Switch(to), spec.local);
            }
        }
        router.column = graph.next_port();
        for switch in 0..switches {
            for port in 0..(rows - 1) * column_links {
                let row = switch / columns % rows;
                let to = switch - row * columns + beyond(row, port / column_links) * columns;
                graph.add(Node::Switch(switch), Node::Switch(to), spec.local);
            }
        }
        router.global = graph.next_port();
        for group in 0..groups {
            for other in (0..groups).filter(|&other| other != group) {
                for gate in 0..gates {
                    let [from, to] = [(group, other), (other, group)].map(|(a, b)| router.deal(a, b, gate));
                    graph.add(Node::Switch(from), Node::Switch(to), spec.global);
                    router.exits.push(from);
                }
            }
        }
        (graph, router)
    }

    fn size(&self) -> u32 {
        self.rows * self.columns
    }

    fn seat(&self, switch: u32) -> Seat {
        self.seats[switch as usize]
    }

    /// The switch of `group` that gets a gate to `other`: gates go round the switches.
    fn deal(&self, group: u32, other: u32, gate: u32) -> u32 {
        group * self.size() + (before(group, other) * self.gates + gate) % self.size()
    }

    /// The number of a gate among all of them.
    fn gate_number(&self, group: u32, other: u32, gate: u32) -> u32 {
        (group * (self.groups - 1) + before(group, other)) * self.gates + gate
    }

    fn gate_switch(&self, group: u32, other: u32, gate: u32) -> u32 {
        self.exits[self.gate_number(group, other, gate) as usize]
    }

    fn gate_port(&self, group: u32, other: u32, gate: u32) -> u32 {
        self.global + self.gate_number(group, other, gate)
    }

    /// The gates to `other` on switch `at` itself: the first, and how many.
    fn own_gates(&self, at: u32, group: u32, other: u32) -> (u32, u32) {
        let size = self.size();
        let first = (at % size + size - before(group, other) * self.gates % size) % size;
        let count = if first < self.gates { (self.gates - first).div_ceil(size) } else { 0 };
        (first, count)
    }

    /// Hops between two switches of a group.
    fn distance(&self, a: u32, b: u32) -> u64 {
        let (a, b) = (self.seat(a), self.seat(b));
        u64::from(a.column != b.column) + u64::from(a.row != b.row)
    }

    /// The ports of the next hop from `at` to another switch of its group: the first, and how many.
    fn towards(&self, at: u32, to: u32) -> (u32, u32) {
        let (from, to) = (self.seat(at), self.seat(to));
        if from.column != to.column {
            let index = at * (self.columns - 1) + before(from.column.into(), to.column.into());
            return (self.row + index * self.row_links, self.row_links);
        }
        let index = at * (self.rows - 1) + before(from.row.into(), to.row.into());
        (self.column + index * self.column_links, self.column_links)
    }

    /// The port and the queue by which `packet` leaves switch `at`, which is not `home`.
    pub(crate) fn route(&self, at: u32, home: u32, packet: &mut Packet, view: &mut View<'_>) -> (u32, u8) {
        if !packet.is(flag::ROUTED) {
            packet.flags |= flag::ROUTED;
            self.decide(at, home, packet, view);
        }
        let group = self.seat(at).group;
        let mut goal = (self.seat(home).group, home);
        if packet.detour != NONE {
            let (detour_group, inside) = (self.seat(packet.detour).group, packet.detour);
            if detour_group == group && goal.0 != group {
                // A detour through a group is over as soon as the group is reached.
                packet.detour = NONE;
            } else if inside == at {
                packet.detour = NONE;
                packet.stage += 1;
            } else {
                goal = (detour_group, inside);
            }
        }
        if goal.0 == group {
            let (base, count) = self.towards(at, goal.1);
            return (view.pick(base, count, packet), view.queue(packet));
        }
        if packet.gate == NONE {
            packet.gate = self.any_gate(at, group, goal.0, packet, view);
        }
        let exit = self.gate_switch(group, goal.0, packet.gate);
        if exit != at {
            let (base, count) = self.towards(at, exit);
            return (view.pick(base, count, packet), view.queue(packet));
        }
        let (port, queue) = (self.gate_port(group, goal.0, packet.gate), view.queue(packet));
        packet.gate = NONE;
        packet.stage += 1;
        (port, queue)
    }

    /// A gate on the shortest way: one on this switch if there is any.
    fn any_gate(&self, at: u32, group: u32, other: u32, packet: &Packet, view: &mut View<'_>) -> u32 {
        let (first, own) = self.own_gates(at, group, other);
        let (first, step, count) = if own > 0 { (first, self.size(), own) } else { (0, 1, self.gates) };
        let pair = u64::from(packet.src) << 32 | u64::from(packet.dst);
        let nth = match view.routing {
            Routing::Minimal => packet.dst % count,
            Routing::Ecmp => (mix(pair) % u64::from(count)) as u32,
            Routing::Spray | Routing::Valiant => view.rng.below(count),
            Routing::Adaptive { .. } => {
                let looks = [(); LOOKS as usize].map(|()| view.rng.below(count));
                let cost = |nth: &u32, view: &mut View<'_>| {
                    let (port, _) = self.first_hop(at, group, other, first + nth * step);
                    view.backlog(port, packet)
                };
                if cost(&looks[1], view) < cost(&looks[0], view) { looks[1] } else { looks[0] }
            }
        };
        first + nth * step
    }

    /// The first port of the way through a gate, and the hops of the group to it.
    fn first_hop(&self, at: u32, group: u32, other: u32, gate: u32) -> (u32, u64) {
        let exit = self.gate_switch(group, other, gate);
        if exit == at {
            (self.gate_port(group, other, gate), 0)
        } else {
            (self.towards(at, exit).0, self.distance(at, exit))
        }
    }

    /// Decides on a detour.
    fn decide(&self, at: u32, home: u32, packet: &mut Packet, view: &mut View<'_>) {
        let (size, group) = (self.size(), self.seat(at).group);
        let target = self.seat(home).group;
        let random_switch = |view: &mut View<'_>| group * size + view.rng.below(size);
        match view.routing {
            Routing::Valiant if target == group => packet.detour = random_switch(view),
            Routing::Valiant => packet.detour = self.other_group(group, target, view).map_or(NONE, |g| g * size),
            Routing::Adaptive { bias } => {
                let bias = bias.map_or(0, |bias| bias.0);
                if target == group {
                    self.weigh_inside(at, home, packet, view, bias);
                } else {
                    self.weigh_between(at, home, packet, view, bias);
                }
            }
            Routing::Minimal | Routing::Ecmp | Routing::Spray => {}
        }
        if packet.detour == at || packet.detour == home {
            packet.detour = NONE;
        }
    }

    fn other_group(&self, group: u32, target: u32, view: &mut View<'_>) -> Option<u32> {
        let (low, high) = (group.min(target), group.max(target));
        (self.groups > 2).then(|| {
            let drawn = view.rng.below(self.groups - 2);
            let drawn = drawn + u32::from(drawn >= low);
            drawn + u32::from(drawn >= high)
        })
    }

    /// Inside a group: straight on, or by way of a switch at random.
    fn weigh_inside(&self, at: u32, home: u32, packet: &mut Packet, view: &mut View<'_>, bias: u64) {
        let straight = view.backlog(self.towards(at, home).0, packet) * self.distance(at, home);
        let via = self.seat(at).group * self.size() + view.rng.below(self.size());
        if straight <= bias || via == at || via == home {
            return;
        }
        let around =
            view.backlog(self.towards(at, via).0, packet) * (self.distance(at, via) + self.distance(via, home));
        if straight > around + bias {
            packet.detour = via;
        }
    }

    /// Between groups: the shortest way, another gate, or another group.
    fn weigh_between(&self, at: u32, home: u32, packet: &mut Packet, view: &mut View<'_>, bias: u64) {
        let (size, group) = (self.size(), self.seat(at).group);
        let target = self.seat(home).group;
        let gate = self.any_gate(at, group, target, packet, view);
        let cost = |gate: u32, packet: &Packet, view: &mut View<'_>| {
            let (port, hops) = self.first_hop(at, group, target, gate);
            let rest = 1 + self.distance(self.gate_switch(target, group, gate), home);
            view.backlog(port, packet) * (hops + rest)
        };
        let mut best = cost(gate, packet, view);
        packet.gate = gate;
        if best <= bias {
            return;
        }
        for _ in 0..LOOKS {
            let gate = view.rng.below(self.gates);
            let other = cost(gate, packet, view) + bias;
            if other < best {
                (best, packet.gate) = (other, gate);
            }
        }
        if let Some(via) = self.other_group(group, target, view) {
            let gate = self.any_gate(at, group, via, packet, view);
            let (port, hops) = self.first_hop(at, group, via, gate);
            // The far groups are not seen from here: their hops are taken as the most there can be.
            let rest = 2 + 2 * (u64::from(self.columns > 1) + u64::from(self.rows > 1));
            if view.backlog(port, packet) * (hops + rest) + bias < best {
                (packet.detour, packet.gate) = (via * size, gate);
            }
        }
    }
}

/// The `index`th of the others than `own`.
fn beyond(own: u32, index: u32) -> u32 {
    index + u32::from(index >= own)
}

/// The index of `other` among the others than `own`.
fn before(own: u32, other: u32) -> u32 {
    other - u32::from(other > own)
}
