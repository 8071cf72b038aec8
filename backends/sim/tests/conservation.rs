//! Nothing is lost that may not be, on every topology, with every routing, flow control and congestion control.

use crate::common::{Until, drain, machine};
use tailback_sim::machine::{
    Control, Dcqcn, Ecn, FlowControl, Machine, PairThrottle, Routing, Size, Swift, Topology, Window,
};
use tailback_sim::net::{Happened, Network, Send, Work};
use tailback_sim::rng::Rng;

const ROUTINGS: [Routing; 5] =
    [Routing::Minimal, Routing::Ecmp, Routing::Spray, Routing::Valiant, Routing::Adaptive { bias: None }];

/// Random messages of all sizes, many of them to few receivers; every one is delivered once.
fn batter(machine: &Machine, seed: u64) -> Work {
    let mut network = Network::new(machine, seed).unwrap_or_else(|error| panic!("{error}"));
    let endpoints = machine.endpoints() as u32;
    let mut rng = Rng::new(seed);
    let count = 3000;
    for token in 0..count {
        let from = rng.below(endpoints);
        let to = if token % 3 == 0 { rng.below(3) } else { rng.below(endpoints) };
        let bytes = [0, 1, 8, 4096, 4097, 20_000, 131_072][rng.below(7) as usize];
        let class = rng.below(machine.switch.classes as u32) as u8;
        let send = Send { from, to, class, bytes, token, acknowledge: token % 2 == 0 };
        network.send(u64::from(rng.below(30_000_000)), send);
    }
    let (mut delivered, mut acknowledged) = (vec![0; count as usize], 0);
    drain(&mut network, |_, happened| {
        match happened {
            Happened::Delivered(token) => delivered[token as usize] += 1,
            Happened::Acknowledged(token) => {
                assert!(delivered[token as usize] == 1, "message {token} is acknowledged before it is there");
                acknowledged += 1;
            }
            Happened::Timer(_) => {}
        }
        Until::Empty
    });
    assert!(delivered.iter().all(|&times| times == 1), "{}: not every message came once", machine.name);
    assert_eq!(acknowledged, count.div_ceil(2));
    let audit = network.audit();
    assert!(audit.is_clean(), "{} {:?}: {:#?}", machine.name, machine.routing, audit.faults);
    network.work()
}

#[test]
fn lossless_networks_lose_nothing() {
    for name in ["small", "crystal", "malbec", "osprey", "lab"] {
        for routing in ROUTINGS {
            let mut machine = machine(name);
            if routing == Routing::Valiant && !matches!(machine.topology, Topology::Dragonfly(_)) {
                continue;
            }
            (machine.routing, machine.control) = (routing, Control::None);
            // As small as a buffer may be: deadlocks show here.
            machine.switch.buffer = Size(0);
            let least = 2 * (machine.packet.payload.0 + machine.packet.header.0) * machine.channels() as u64;
            machine.switch.buffer = Size(least);
            for flow_control in [FlowControl::Credit, FlowControl::Pause] {
                machine.switch.flow_control = flow_control;
                assert_eq!(batter(&machine, 1).dropped, 0);
            }
            machine.switch.classes = 3;
            machine.packet.ack_every = 4;
            machine.switch.flow_control = FlowControl::Credit;
            batter(&machine, 2);
        }
    }
}

#[test]
fn every_control_lets_every_message_through() {
    for control in [
        Control::Dcqcn(Dcqcn::default()),
        Control::Window(Window::default()),
        Control::Swift(Swift::default()),
        Control::Pair(PairThrottle::default()),
    ] {
        for name in ["small", "malbec", "roce"] {
            let mut machine = machine(name);
            machine.control = control.clone();
            machine.switch.ecn = Some(Ecn { from: Size(8 << 10), to: Size(32 << 10), probability: 0.5 });
            batter(&machine, 3);
        }
    }
}

#[test]
fn what_is_dropped_is_sent_again() {
    let mut drops = 0;
    for control in [Control::Window(Window::default()), Control::Swift(Swift::default())] {
        for routing in [Routing::Ecmp, Routing::Spray] {
            for name in ["small", "lab"] {
                let mut machine = machine(name);
                (machine.control, machine.routing) = (control.clone(), routing);
                machine.switch.flow_control = FlowControl::Drop;
                machine.switch.buffer = Size(16 << 10);
                drops += batter(&machine, 4).dropped;
            }
        }
    }
    assert!(drops > 1000, "{drops} drops are no test");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for name in ["small", "malbec", "roce", "lab"] {
        let run = |seed| batter(&machine(name), seed);
        assert_eq!(run(5), run(5), "{name}");
        assert_ne!(run(5), run(6), "{name}");
    }
}
