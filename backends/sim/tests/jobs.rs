//! Jobs as a whole: they repeat bit for bit, end when a rank fails, and count what they do phase by phase.

use crate::common::machine;
use tailback_engine::Collective;
use tailback_sim::machine::{Control, FlowControl};
use tailback_sim::{SimBootstrap, SimError, SimTransport, Simulation, begin_phase};
use tailback_transport::{Bootstrap, Error, Group, Nanos, Rank, Result, Span, Tag, Transport};

/// Rings, puts, gets and sums; the times of each step.
fn busy(mut bootstrap: SimBootstrap<'_>, transport: SimTransport<'_>) -> Result<Vec<Nanos>> {
    let mut transport = Collective::new(transport);
    let everyone: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
    let mut group = transport.group(&everyone, 1 << 20)?;
    let (me, size) = (group.rank().index(), group.size());
    let (next, previous) = (Rank::from((me + 1) % size), Rank::from((me + size - 1) % size));
    let mut times = vec![group.now()];
    for round in 0..5 {
        let bytes = [8, 4096, 131_072, 1, 0][round];
        group.post_recv(previous, Tag(1), Span::new(1 << 19, bytes))?;
        group.post_send(next, Tag(1), Span::new(0, bytes))?;
        group.wait_all()?;
        group.put(Rank(0), Span::new(0, bytes), 0)?;
        group.flush(Rank(0))?;
        group.get(next, Span::new(0, bytes), 1 << 19)?;
        group.flush(next)?;
        group.allreduce(Span::new(0, 8))?;
        times.push(group.now());
    }
    bootstrap.barrier()?;
    Ok(times)
}

#[test]
fn the_same_job_takes_the_same_time_to_the_picosecond() {
    for name in ["small", "malbec", "lab", "roce"] {
        let size = if name == "lab" { 16 } else { 64 };
        let run = |seed| Simulation::new(machine(name)).ranks_per_node(1).ranks(size).seed(seed).run(busy).unwrap();
        let (one, two, other) = (run(1), run(1), run(2));
        assert_eq!(one.results, two.results, "{name}");
        assert_eq!((one.now_ps, one.work), (two.now_ps, two.work), "{name}");
        assert!(one.audit.is_clean(), "{:#?}", one.audit);
        if matches!(name, "small" | "malbec") {
            assert_ne!(one.work, other.work, "{name}: another seed takes other ways");
        }
        let rises = |times: &Vec<Nanos>| times.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(one.results.iter().all(rises), "{name}");
    }
}

#[test]
fn an_error_on_one_rank_ends_the_others_and_is_the_one_reported() {
    let outcome = Simulation::new(machine("small")).ranks(4).run(|mut bootstrap, _| match bootstrap.rank() {
        Rank(2) => Err(Error::Setup("rank 2 had enough".into())),
        _ => bootstrap.barrier(),
    });
    assert!(matches!(outcome, Err(SimError::Rank { rank: Rank(2), .. })));
    assert_eq!(outcome.unwrap_err().to_string(), "rank 2: rank 2 had enough");
}

#[test]
fn an_abort_ends_the_job_with_its_reason() {
    let outcome = Simulation::new(machine("small")).ranks(3).run(|mut bootstrap, _| {
        if bootstrap.rank() == Rank(1) {
            bootstrap.abort("cable on fire");
        }
        bootstrap.barrier()
    });
    assert!(matches!(outcome, Err(SimError::Aborted { rank: Rank(1), .. })));
    assert_eq!(outcome.unwrap_err().to_string(), "rank 1: cable on fire");
}

#[test]
#[should_panic(expected = "out of cheese")]
fn a_panic_is_the_callers() {
    let _ = Simulation::new(machine("small")).ranks(3).run(|mut bootstrap, _| {
        assert!(bootstrap.rank() != Rank(1), "out of cheese");
        bootstrap.barrier()
    });
}

#[test]
fn waiting_in_vain_ends_at_once_and_says_for_what() {
    let waits = |mut bootstrap: SimBootstrap<'_>, _: SimTransport<'_>| match bootstrap.rank() {
        Rank(0) => Ok(()),
        _ => bootstrap.barrier(),
    };
    let message = Simulation::new(machine("small")).ranks(3).run(waits).unwrap_err().to_string();
    assert!(message.contains("barrier") && message.contains("rank 0"), "{message}");

    let message = Simulation::new(machine("small")).ranks(2).run(|bootstrap, transport| {
        let mut group = Collective::new(transport).group(&[Rank(0), Rank(1)], 8)?;
        if bootstrap.rank() == Rank(1) {
            group.post_recv(Rank(0), Tag(0), Span::new(0, 8))?;
        }
        group.wait_all()
    });
    let message = message.unwrap_err().to_string();
    assert!(message.contains("nothing is under way") && message.contains("rank 1"), "{message}");
}

#[test]
fn more_ranks_than_room_are_refused() {
    let outcome = Simulation::new(machine("small")).ranks(65).run(|_, _| Ok::<_, Error>(()));
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("room for 1 to 64"), "{message}");
}

/// Everyone sends to rank 0, in a phase of its own: its port carries all of it, and the tree has its root there.
#[test]
fn phases_have_counters_and_a_congestion_tree() {
    const BYTES: usize = 262_144;
    let mut machine = machine("small");
    (machine.control, machine.switch.flow_control) = (Control::None, FlowControl::Credit);
    let finished = Simulation::new(machine).run(|mut bootstrap, transport| {
        let everyone: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
        let mut group = Collective::new(transport).group(&everyone, 64 * BYTES)?;
        for phase in ["quiet", "incast"] {
            bootstrap.barrier()?;
            // By every rank, as the engine does it.
            begin_phase(phase);
            bootstrap.barrier()?;
            if phase == "incast" && group.rank() != Rank(0) {
                group.put(Rank(0), Span::new(0, BYTES), group.rank().index() * BYTES)?;
                group.flush(Rank(0))?;
            }
            group.barrier()?;
        }
        Ok::<_, Error>(())
    });
    let phases = finished.unwrap().phases;
    assert_eq!(phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(), ["quiet", "incast"]);
    let down = |at: usize| phases[at].ports.iter().find(|port| port.from == "leaf0" && port.to == "nic0").unwrap();
    assert!(down(0).counters.bytes < 10_000);
    let payload = 63 * BYTES as u64;
    assert!((payload..payload * 11 / 10).contains(&down(1).counters.bytes), "{:?}", down(1));
    let tree = phases[1].tree.as_ref().expect("an incast has a tree");
    let root = tree.crowds.iter().find(|crowd| crowd.port == "leaf0 -> nic0").expect("its root");
    assert!(!root.blocked && root.feeders.len() == 8, "{root:?}");
    assert!(tree.crowds.iter().any(|crowd| crowd.blocked && crowd.port.ends_with("leaf0")), "{tree:#?}");
    assert!(phases[1].samples.iter().any(|sample| sample.stalled > 20));
    let stalled = phases[1].ports.iter().map(|port| port.counters.stalled_ps).max();
    assert!(stalled > Some(100_000_000), "{stalled:?}");
}

/// Traffic classes have buffers of their own: a small class is not held up by an incast in another.
#[test]
fn another_class_passes_an_incast() {
    let latency = |classes: usize| {
        let mut machine = machine("small");
        machine.switch.classes = 2;
        let finished = Simulation::new(machine).run(|bootstrap, mut transport| {
            let canary = matches!(bootstrap.rank(), Rank(8) | Rank(0));
            if !canary && classes == 2 {
                transport.set_class(1)?;
            }
            let mut transport = Collective::new(transport);
            let (pair, rest): (Vec<Rank>, Vec<Rank>) =
                (0..bootstrap.size()).map(Rank::from).partition(|rank| matches!(rank, Rank(0) | Rank(8)));
            // The incast goes to rank 1, on the canary's leaf.
            let mut group = transport.group(if canary { &pair } else { &rest }, 1 << 20)?;
            let mut took = 0;
            if canary {
                let peer = Rank(1 - group.rank().0);
                for _ in 0..50 {
                    let start = group.now();
                    group.post_recv(peer, Tag(0), Span::new(64, 8))?;
                    group.post_send(peer, Tag(0), Span::new(0, 8))?;
                    group.wait_all()?;
                    took = took.max(group.now().since(start).0);
                }
            } else if group.rank() != Rank(0) {
                group.put(Rank(0), Span::new(0, 1 << 20), 0)?;
                group.flush(Rank(0))?;
            }
            Ok::<_, Error>(took)
        });
        finished.unwrap().results.into_iter().max().unwrap()
    };
    let (shared, apart) = (latency(1), latency(2));
    assert!(shared > 3 * apart, "the slowest of 50 exchanges took {shared} ns in one class, {apart} ns in two");
}
