//! What `[[fault]]` of a machine file does to messages: each kind where it is, and nowhere else.

use crate::common::{Until, drain, machine, send};
use tailback_engine::Engine;
use tailback_sim::Simulation;
use tailback_sim::machine::Machine;
use tailback_sim::net::{Happened, Network, Send};
use tailback_transport::{Bootstrap, Error, Rank, Span};

const LONG: u32 = 4 << 20;

fn broken(name: &str, faults: &str) -> Machine {
    let text = machine(name).text;
    Machine::parse(&format!("{text}\n{faults}"), "broken").unwrap_or_else(|error| panic!("{error}"))
}

/// How long messages take that are sent at the same time, in microseconds.
fn take(machine: &Machine, messages: &[(u32, u32, u32)]) -> Vec<f64> {
    let mut network = Network::new(machine, 1).unwrap();
    for (token, &(from, to, bytes)) in messages.iter().enumerate() {
        network.send(0, Send { token: token as u64, ..send(from, to, bytes) });
    }
    let mut taken = vec![0.0; messages.len()];
    drain(&mut network, |network, happened| {
        if let Happened::Delivered(token) = happened {
            taken[token as usize] = network.now() as f64 * 1e-6;
        }
        Until::Empty
    });
    let audit = network.audit();
    assert!(audit.is_clean(), "{:?}", audit.faults);
    taken
}

fn is_about(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.03
}

#[test]
fn a_node_is_slow_one_way() {
    // All from different switches: where nothing is lost, who waits for a slow node holds up others.
    let messages = [(3, 20, LONG), (40, 3, LONG), (50, 21, LONG)];
    let [whole, ..] = take(&machine("small"), &messages)[..] else { unreachable!() };
    for (faults, expected) in [
        ("[[fault]]\nkind = \"send\"\nnode = 3\nrate = 0.5", [2.0, 1.0, 1.0]),
        ("[[fault]]\nkind = \"receive\"\nnode = 3\nrate = 0.25", [1.0, 4.0, 1.0]),
        ("[[fault]]\nkind = \"cable\"\nnode = 3\nrate = 0.5", [2.0, 2.0, 1.0]),
        ("[[fault]]\nkind = \"cable\"\nnode = 3\ndirection = \"out\"\nrate = 0.5", [2.0, 1.0, 1.0]),
        ("[[fault]]\nkind = \"host\"\nnode = 3\nmemory = 0.5", [2.0, 2.0, 1.0]),
        // Two faults of one cable.
        (
            "[[fault]]\nkind = \"send\"\nnode = 3\nrate = 0.5\n[[fault]]\nkind = \"cable\"\nnode = 3\nrate = 0.5",
            [4.0, 2.0, 1.0],
        ),
    ] {
        let taken = take(&broken("small", faults), &messages);
        let as_expected = taken.iter().zip(expected).all(|(taken, times)| is_about(*taken, times * whole));
        assert!(as_expected, "{faults}: {taken:?}, whole {whole}");
    }
}

#[test]
fn delay_is_added_each_way_that_is_broken() {
    let messages = [(3, 20, 8), (40, 3, 8), (41, 21, 8)];
    let whole = take(&machine("small"), &messages);
    let taken = take(&broken("small", "[[fault]]\nkind = \"cable\"\nnode = 3\ndelay = \"5 us\""), &messages);
    let added: Vec<f64> = taken.iter().zip(&whole).map(|(taken, whole)| taken - whole).collect();
    assert!((added[0] - 5.0).abs() < 0.01 && (added[1] - 5.0).abs() < 0.01 && added[2] == 0.0, "{added:?}");
}

#[test]
fn links_between_switches_are_slow_for_who_passes_them() {
    // From leaf 0 to leaf 1, back, and inside leaf 0; by the one spine that there is.
    let one_spine = machine("small").changed("topology.spines", "1").unwrap();
    let text = |between: &str, direction: &str| {
        format!(
            "{}\n[[fault]]\nkind = \"uplink\"\nbetween = {between}\ndirection = \"{direction}\"\nrate = 0.5",
            one_spine_text()
        )
    };
    let messages = [(0, 8, LONG), (9, 1, LONG), (2, 3, LONG), (16, 24, LONG)];
    let whole = take(&one_spine, &messages)[0];
    for (between, direction, expected) in [
        (r#"["leaf0", "spine0"]"#, "out", [2.0, 1.0, 1.0, 1.0]),
        (r#"["leaf0", "spine0"]"#, "in", [1.0, 2.0, 1.0, 1.0]),
        (r#"["leaf0", "spine0"]"#, "both", [2.0, 2.0, 1.0, 1.0]),
        (r#"["spine0", "leaf0"]"#, "out", [1.0, 2.0, 1.0, 1.0]),
        (r#"["leaf2", "spine0"]"#, "both", [1.0, 1.0, 1.0, 2.0]),
    ] {
        let machine = Machine::parse(&text(between, direction), "x").unwrap();
        let taken = take(&machine, &messages);
        let as_expected = taken.iter().zip(expected).all(|(taken, times)| is_about(*taken, times * whole));
        assert!(as_expected, "{between} {direction}: {taken:?}, whole {whole}");
    }
}

fn one_spine_text() -> String {
    let text = machine("small").text;
    assert!(text.contains("spines = 8"));
    text.replacen("spines = 8", "spines = 1", 1)
}

#[test]
fn groups_of_a_dragonfly_are_joined_by_slow_links() {
    let whole = machine("malbec").changed("routing.kind", "minimal").unwrap();
    let last = whole.endpoints() as u32 - 1;
    let messages = [(0, last, LONG), (0, 1, LONG)];
    let last_group = whole.group_of(whole.nodes.count - 1).replace("group", "g");
    let text = whole.text.clone();
    let fault = format!("\n[[fault]]\nkind = \"uplink\"\nbetween = [\"g0\", \"{last_group}\"]\nrate = 0.1\n");
    let machine = Machine::parse(&(text + &fault), "x").unwrap();
    let (before, after) = (take(&whole, &messages[..1]), take(&machine, &messages[..1]));
    assert!(after[0] > 5.0 * before[0], "{before:?} {after:?}");
    assert_eq!(take(&whole, &messages[1..]), take(&machine, &messages[1..]));
}

/// Half of the packets are lost: all messages arrive all the same, once, and later.
#[test]
fn what_is_lost_is_sent_again() {
    for name in ["small", "lab", "roce"] {
        let last = machine(name).endpoints() as u32 - 1;
        let messages = [(0, last, 256 << 10), (1, last - 1, 256 << 10)];
        let fault = "[[fault]]\nkind = \"cable\"\nnode = 0\ndirection = \"out\"\nloss = 0.5";
        let (whole, taken) = (take(&machine(name), &messages), take(&broken(name, fault), &messages));
        assert!(taken[0] > 1.5 * whole[0], "{name}: {whole:?} {taken:?}");
        assert!(taken[1] < 1.03 * whole[1], "{name}: {whole:?} {taken:?}");
    }
}

/// A slow processor takes longer for its own work, on both sides of a message, and for copies inside its node.
#[test]
fn a_slow_host_is_slow_to_itself() {
    let pingpong = |machine: &Machine, ranks: [u32; 2], bytes: usize| {
        let job = Simulation::new(machine.clone()).ranks_per_node(2).ranks(8);
        let finished = job.run(move |bootstrap, mut raw| -> Result<(), Error> {
            let group = raw.make_group(&bootstrap.everyone(), 2 * bytes)?.slot;
            if bootstrap.rank() == Rank(ranks[0]) {
                raw.put(group, Rank(ranks[1]), Span::new(0, bytes), bytes)?;
                raw.flush(group, Rank(ranks[1]))?;
            }
            Ok(())
        });
        finished.unwrap_or_else(|error| panic!("{error}")).now_ps as f64
    };
    let whole = machine("small");
    let memory = broken("small", "[[fault]]\nkind = \"host\"\nnode = 1\nmemory = 0.5");
    let processor = broken("small", "[[fault]]\nkind = \"host\"\nnode = 1\nprocessor = 0.1");
    let (inside, elsewhere) = ([2, 3], [4, 5]);
    for slow in [&memory, &processor] {
        assert!(pingpong(slow, inside, 1 << 20) > 1.8 * pingpong(&whole, inside, 1 << 20));
        assert_eq!(pingpong(slow, elsewhere, 1 << 20), pingpong(&whole, elsewhere, 1 << 20));
    }
    let overhead = pingpong(&processor, [2, 4], 8) - pingpong(&whole, [2, 4], 8);
    // Nine times the 200 ns that the start of a message takes.
    assert!(overhead > 1.7e6, "{overhead} ps");
}
