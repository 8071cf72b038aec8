//! The network against queueing theory and arithmetic.

// The figures of docs/simulation.md come from here.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;

use crate::common::{Until, drain, machine, send};
use tailback_sim::machine::{Control, FlowControl, Machine, Ps, Rate, Routing, Size, Swift, Topology};
use tailback_sim::net::{Happened, Network, Send};
use tailback_sim::rng::Rng;

/// Packets of one size arrive at random at a link: the mean wait of an M/D/1 queue is rho S / 2 (1 - rho).
#[test]
fn mean_wait_is_that_of_an_m_d_1_queue() {
    for rho in [0.3, 0.5, 0.7] {
        let mut machine = machine("lab");
        (machine.switch.flow_control, machine.switch.buffer) = (FlowControl::Credit, Size(1 << 30));
        machine.control = Control::None;
        machine.nodes.count = 200;
        machine.nic.gap.0 = 0;
        let Topology::Leaves(leaves) = &mut machine.topology else { panic!("the lab has leaves") };
        leaves.host.rate = Rate::bits_per_second(10_000_000_000_000);
        leaves.spine.rate = Rate::bits_per_second(10_000_000_000);
        let (header, bytes) = (machine.packet.header.0, 1000);
        let service = leaves.spine.rate.ps(header + bytes) as f64;
        let mut network = Network::new(&machine, 3).unwrap();
        let mut rng = Rng::new(11);
        let (mut at, mut starts) = (0.0, Vec::new());
        let count = 600_000;
        let (mut total, mut shortest, mut heard) = (0.0, f64::MAX, 0);
        network.at(0, 0);
        drain(&mut network, |network, happened| {
            match happened {
                Happened::Delivered(token) => {
                    let took = (network.now() - starts[token as usize]) as f64;
                    total += took;
                    shortest = f64::min(shortest, took);
                    heard += 1;
                }
                // An arrival, which also decides when the next one is.
                Happened::Timer(token) if token < count => {
                    starts.push(network.now());
                    let (from, to) = (rng.below(100), 100 + rng.below(100));
                    let send = Send { from, to, class: 0, bytes: bytes as u32, token, acknowledge: false };
                    network.send(network.now(), send);
                    at += rng.exponential(service / rho);
                    network.at(at as u64, token + 1);
                }
                _ => {}
            }
            Until::Empty
        });
        assert_eq!(heard, count);
        let wait = total / count as f64 - shortest;
        let expected = rho * service / (2.0 * (1.0 - rho));
        let error = wait / expected - 1.0;
        println!(
            "rho {rho}: mean wait {:.2} ns, theory {:.2} ns, error {:+.2}%",
            wait / 1e3,
            expected / 1e3,
            100.0 * error
        );
        assert!(error.abs() < 0.02, "rho {rho}: {wait} ps, theory {expected} ps");
        assert!(network.audit().is_clean());
    }
}

/// Everyone sends to one: the last byte is there when the narrow link has carried all of them.
#[test]
fn an_incast_drains_at_the_rate_of_its_link() {
    for flow_control in [FlowControl::Credit, FlowControl::Pause] {
        let mut machine = machine("small");
        machine.switch.flow_control = flow_control;
        let mut network = Network::new(&machine, 5).unwrap();
        let (senders, bytes) = (63, 1_000_000u32);
        for from in 1..=senders {
            network.send(0, send(from, 0, bytes));
        }
        network.run();
        let packets = u64::from(bytes).div_ceil(machine.packet.payload.0);
        let wire = u64::from(senders) * (u64::from(bytes) + packets * machine.packet.header.0);
        let expected = Rate::bits_per_second(200_000_000_000).ps(wire) as f64;
        let error = network.now() as f64 / expected - 1.0;
        println!("{flow_control:?}: drained in {:.1} us, error {:+.2}%", network.now() as f64 / 1e6, 100.0 * error);
        assert!(error.abs() < 0.02, "{flow_control:?}: {error}");
        assert!(network.audit().is_clean());
    }
}

/// Bandwidth of each edge while all are busy, as a part of a link's.
fn shares(machine: &Machine, edges: &[(u32, u32)], us: u64) -> Vec<f64> {
    let mut network = Network::new(machine, 9).unwrap();
    let bytes = 64 << 10;
    let start = |network: &mut Network, edge: usize, at: u64| {
        let (from, to) = edges[edge];
        network.send(at, Send { from, to, class: 0, bytes, token: edge as u64, acknowledge: true });
    };
    for edge in 0..edges.len() {
        (0..8).for_each(|_| start(&mut network, edge, 0));
    }
    let (warm, end) = (us * 250_000, us * 1_000_000);
    let mut moved = vec![0u64; edges.len()];
    drain(&mut network, |network, happened| {
        match happened {
            Happened::Delivered(edge) if network.now() > warm => moved[edge as usize] += u64::from(bytes),
            Happened::Acknowledged(edge) => start(network, edge as usize, network.now()),
            _ => {}
        }
        if network.now() > end { Until::Now } else { Until::Empty }
    });
    let full = Rate::bits_per_second(200_000_000_000).bytes_per_ps() * (end - warm) as f64;
    let payload = machine.packet.payload.0 as f64;
    let wire = (payload + machine.packet.header.0 as f64) / payload;
    moved.iter().map(|&bytes| bytes as f64 * wire / full).collect()
}

/// Flows that cross: where nobody is held back by a full buffer of others, the shares are max-min fair; a control per flow
/// makes them nearly so where someone would be.
#[test]
fn crossing_flows_get_max_min_shares() {
    let free = machine("small");
    let mut controlled = machine("small");
    controlled.control = Control::Swift(Swift::default());
    let third = 1.0 / 3.0;
    type Case<'a> = (&'a Machine, f64, &'a [(u32, u32)], &'a [f64]);
    let cases: [Case<'_>; 5] = [
        (&free, 0.08, &[(1, 0), (2, 0), (2, 3)], &[0.5; 3]),
        (&free, 0.01, &[(8, 0), (16, 0), (24, 0), (9, 17)], &[third, third, third, 1.0]),
        (&free, 0.01, &[(8, 0), (9, 1), (10, 2), (11, 3), (16, 4), (17, 5)], &[1.0; 6]),
        (&controlled, 0.15, &[(1, 0), (2, 0), (2, 3)], &[0.5; 3]),
        (
            &controlled,
            0.15,
            &[(8, 0), (16, 0), (24, 0), (32, 0), (32, 40), (48, 40)],
            &[0.25, 0.25, 0.25, 0.25, 0.5, 0.5],
        ),
    ];
    for (machine, tolerance, edges, expected) in cases {
        let found = shares(machine, edges, 8000);
        println!("{edges:?}: {found:.3?}, max-min {expected:.3?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < tolerance, "{edges:?}: {found}, max-min {expected}");
        }
    }
}

/// Max-min shares by progressive filling on the machine `small` with minimal routing, whose spine to a node is its number
/// modulo 8. SimGrid's on the same tree are the same (docs/simulation.md).
fn max_min(edges: &[(u32, u32)]) -> Vec<f64> {
    let route = |&(from, to): &(u32, u32)| {
        let mut links = vec![("up", from, 0), ("down", to, 0)];
        if from / 8 != to / 8 {
            links.extend([("leaf", from / 8, to % 8), ("spine", to % 8, to / 8)]);
        }
        links
    };
    let routes: Vec<Vec<(&str, u32, u32)>> = edges.iter().map(route).collect();
    let mut free: HashMap<_, f64> = routes.iter().flatten().map(|&link| (link, 1.0)).collect();
    let mut shares = vec![0.0; edges.len()];
    let mut open: Vec<usize> = (0..edges.len()).collect();
    while !open.is_empty() {
        let mut flows: HashMap<_, f64> = HashMap::new();
        open.iter().flat_map(|&flow| &routes[flow]).for_each(|link| *flows.entry(*link).or_default() += 1.0);
        let fair = |link: &(&str, u32, u32)| free[link] / flows[link];
        let narrowest = *flows.keys().min_by(|a, b| fair(a).total_cmp(&fair(b))).unwrap();
        let share = fair(&narrowest);
        open.retain(|&flow| {
            let through = routes[flow].contains(&narrowest);
            if through {
                shares[flow] = share;
                routes[flow].iter().for_each(|link| *free.get_mut(link).unwrap() -= share);
            }
            !through
        });
    }
    shares
}

/// Many flows at once on a fat tree, with shares from a sixth of a link to all of it. The delay is one that fits the buffers:
/// where they are full, switches take turns between inputs and not between flows.
#[test]
fn many_flows_on_a_fat_tree_come_near_max_min_shares() {
    let first = (0..64).map(|node: u32| (node, (node * node / 3 + 7) % 64));
    let second = (0..64).step_by(4).map(|node| (node, (5 * node + 13) % 64));
    let edges: Vec<(u32, u32)> = first.chain(second).filter(|(from, to)| from != to).collect();
    let fair = max_min(&edges);
    let delay = Control::Swift(Swift { target: Ps::ns(2_000), ..Swift::default() });
    for (name, control, tolerance) in [("none", Control::None, f64::MAX), ("delay", delay, 0.12)] {
        let mut machine = machine("small");
        (machine.routing, machine.control) = (Routing::Minimal, control);
        let found = shares(&machine, &edges, 4000);
        let errors: Vec<f64> = found.iter().zip(&fair).map(|(found, fair)| found / fair - 1.0).collect();
        let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
        let near = errors.iter().filter(|error| error.abs() < 0.15).count();
        let worst = errors.iter().fold(0.0f64, |worst, error| if error.abs() > worst.abs() { *error } else { worst });
        let (sum, all) = (found.iter().sum::<f64>(), fair.iter().sum::<f64>());
        println!(
            "{} flows, control {name}: off max-min by {:.1}% on average, {near} within 15%, worst {:+.0}%, {sum:.1} of {all:.1} links in all",
            edges.len(),
            100.0 * mean,
            100.0 * worst
        );
        assert!(mean < tolerance, "{found:.3?}, max-min {fair:.3?}");
    }
}

/// Three into one node, one of them with a source that also sends elsewhere: a full buffer holds back what shares it, though
/// its own way is free. Control of the flows sets the victim free.
#[test]
fn without_control_a_victim_shares_its_neighbours_fate() {
    let edges = [(1, 0), (2, 0), (3, 0), (3, 4)];
    let mut machine = machine("small");
    let without = shares(&machine, &edges, 8000);
    machine.control = Control::Swift(Swift { target: Ps::ns(2_000), ..Swift::default() });
    let with = shares(&machine, &edges, 8000);
    println!("without control {without:.3?}, with control {with:.3?}, max-min [0.333, 0.333, 0.333, 0.667]");
    assert!(without[3] < 0.4 && with[3] > 0.5, "the victim has {} without and {} with control", without[3], with[3]);
}

/// Time of each edge of a static graph in units of one message alone.
fn times(edges: &[(u32, u32)]) -> Vec<f64> {
    let bytes = 20 << 20;
    let run = |edges: &[(u32, u32)]| {
        let mut network = Network::new(&machine("small"), 1).unwrap();
        for (token, &(from, to)) in edges.iter().enumerate() {
            network.send(0, Send { from, to, class: 0, bytes, token: token as u64, acknowledge: false });
        }
        let mut times = vec![0.0; edges.len()];
        drain(&mut network, |network, happened| {
            if let Happened::Delivered(edge) = happened {
                times[edge as usize] = network.now() as f64;
            }
            Until::Empty
        });
        times
    };
    let alone = run(&[(0, 1)])[0];
    run(edges).iter().map(|time| time / alone).collect()
}

/// The contention papers' graphs A and B: measured times of InfiniBand, in units of one message alone.
#[test]
fn contention_graphs_have_the_papers_shape() {
    let a = times(&[(0, 1), (0, 2), (3, 1), (4, 2), (5, 2)]);
    println!("A: {a:.2?}, paper [3.375, 3.375, 1.25, 2.5, 2.5]");
    let b = times(&[(0, 1), (0, 2), (3, 2), (4, 2), (5, 2)]);
    println!("B: {b:.2?}, paper [4.1, 4.1, 3.5, 3.5, 3.5]");
    for (found, paper) in a.iter().chain(&b).zip([3.375, 3.375, 1.25, 2.5, 2.5, 4.1, 4.1, 3.5, 3.5, 3.5]) {
        assert!((found / paper - 1.0).abs() < 0.2, "{found}, paper {paper}");
    }
    // Who shares a source with a busy edge is slowed with it, and the rivals of such edges gain.
    assert!(a[2] < 1.5 && a[2] < a[3] && a[3] < a[0]);
}
