//! What an open loop finds, against probes that know nothing of it: single messages that ranks of the same nodes send at
//! moments of their own, under the same load, each timed from where it left to where it came.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chacha20::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use tailback_engine::Collective;
use tailback_sim::Simulation;
use tailback_sim::machine::Machine;
use tailback_transport::{Bootstrap as _, Error, Group, Monitor, Nanos, Rank, Result, Span, Tag, Transport};

use super::{CanaryPhase, Control, Kept, Membership, OpenNetwork as _, Opened, Passes, PhaseId, PhaseObserver};
use crate::kernel::{Canary, Congestor, Kernel, KernelVisitor, Sizes};
use crate::layout::{natural_ring, random_rings};
use crate::plan::{Pace, Preset};
use crate::stats::{Batch, Samples, TimeView, Weight};

/// A rank on each node of four leaves under one spine, whose links are too few for the load; these measure, on leaves of
/// their own, and all others load.
const RANKS: usize = 16;
const CANARIES: [usize; 4] = [0, 4, 8, 12];
const MACHINE: [(&str, &str); 4] =
    [("nodes.count", "16"), ("topology.leaves", "4"), ("topology.ports_per_leaf", "4"), ("topology.spines", "1")];
/// Of a look.
const TIME: Nanos = Nanos(20_000_000);
const BLOCKS: u64 = 5;
/// Load begins then, when clocks have been compared.
const QUIET: Nanos = Nanos(1_000_000);
/// A load that lasts longer than that.
const LOAD: Sizes = Sizes { bytes: 64 << 10, window: 1 };
const ROUNDS_OF_LOAD: usize = 350;

#[derive(Clone, Copy, PartialEq)]
enum Look {
    OpenLoop,
    Probes,
}

struct Deaf;

impl PhaseObserver for Deaf {
    fn begins(&self, _: &PhaseId, _: Nanos) {}
    fn ends(&self) {}
}

fn control() -> Control {
    Control {
        monitor: Arc::new(Monitor::new()),
        interrupt: Arc::new(AtomicBool::new(false)),
        observer: Arc::new(Deaf),
        over: None,
        placement: None,
        grain: super::VIRTUAL_GRAIN,
        length: None,
        starter: None,
    }
}

/// All other ranks' share of it.
struct Load<'a, G>(&'a mut G);

impl<G: Group> KernelVisitor for Load<'_, G> {
    type Output = Result<()>;

    fn visit<K: Kernel>(self) -> Result<()> {
        let Load(team) = self;
        let (kernel, ring) = (K::new(LOAD, team.size(), team.rank()), natural_ring(team.size(), team.rank()));
        kernel.fill(team, LOAD);
        (0..ROUNDS_OF_LOAD).try_for_each(|_| kernel.iterate(team, ring))
    }
}

/// How much a member needs for it.
struct Segment(usize);

impl KernelVisitor for Segment {
    type Output = usize;

    fn visit<K: Kernel>(self) -> usize {
        K::segment(LOAD, self.0)
    }
}

/// The canary, as a job of this one test would measure it.
fn open_loop<T: Transport>(transport: T, canaries: Vec<Rank>, me: usize, seed: u64) -> Result<Found> {
    let mut network = Opened::new(transport);
    let test = Preset::Sim.canary(Canary::Lat);
    let (team, canaries) = (Some((canaries.clone(), 3 * test.counts.bytes)), Some((canaries, true)));
    network.join(&Membership { world: None, canaries, team })?;
    // The load is there by then.
    network.canaries.as_mut().expect("joined").wait_until(Nanos(2 * QUIET.0))?;
    let rings = random_rings(seed, 0, CANARIES.len(), Rank::from(me), 6);
    let control = control();
    let (mut blocks, mut kept) = (Vec::new(), Kept::default());
    for block in 0..BLOCKS {
        let finished = network.measure(CanaryPhase {
            test: &test,
            largest_team: CANARIES.len(),
            rings: &rings,
            passes: Passes::Timed,
            budget: Nanos(TIME.0 / BLOCKS),
            due: None,
            all_rings: false,
            by_ring: false,
            fewest: 10,
            pace: Some(Pace::Auto),
            seed: seed ^ block << 32,
            bursts: None,
            settle: None,
            control: &control,
        })?;
        blocks.push(finished.samples.total());
        kept.merge(finished.kept);
    }
    Ok((Batch::joined(&blocks), kept))
}

/// Single messages between all pairs, in turn: half of the members send while the others receive.
fn probes<T: Transport>(mut transport: T, canaries: &[Rank], me: usize, seed: u64) -> Result<Found> {
    const ROUNDS: [[(usize, usize); 2]; 6] =
        [[(0, 1), (2, 3)], [(1, 0), (3, 2)], [(0, 2), (1, 3)], [(2, 0), (3, 1)], [(0, 3), (1, 2)], [(3, 0), (2, 1)]];
    const MESSAGES: usize = 160;
    let mut group = transport.group(canaries, 16)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ (me as u64 + 1) << 20);
    let mut delays = Samples::growing(1);
    let (sent, received) = (Span::new(0, 8), Span::new(8, 8));
    let round = TIME.0 / ROUNDS.len() as u64;
    for (number, pairs) in ROUNDS.into_iter().enumerate() {
        let begin = 2 * QUIET.0 + number as u64 * round;
        group.wait_until(Nanos(begin))?;
        // Until the next round all have come.
        let mut moments: Vec<u64> =
            (0..MESSAGES).map(|_| begin + (0.8 * round as f64 * random.random::<f64>()) as u64).collect();
        moments.sort_unstable();
        for (from, to) in pairs {
            for &moment in &moments {
                if me == from {
                    group.wait_until(Nanos(moment))?;
                    group.write(sent.offset, &group.now().0.to_le_bytes());
                    group.post_send(Rank::from(to), Tag(0), sent)?;
                    group.wait_all()?;
                } else if me == to {
                    group.post_recv(Rank::from(from), Tag(0), received)?;
                    group.wait_all()?;
                    let mut left = [0; 8];
                    group.read(received.offset, &mut left);
                    delays.record(group.now().0 - u64::from_le_bytes(left));
                }
            }
        }
    }
    Ok((delays.total(), Kept::default()))
}

/// What a rank found.
type Found = (Batch, Kept);

/// The canaries' p50, p75 and p90 in ns, and how a schedule was kept.
fn look(by: Look, loaded: bool, seed: u64) -> ([f64; 3], Kept) {
    let mut machine = Machine::load("small").unwrap();
    for (key, value) in MACHINE {
        machine = machine.changed(key, value).unwrap();
    }
    let job = Simulation::new(machine).ranks(RANKS).seed(seed);
    let finished = job.run(|bootstrap, raw| {
        let rank = bootstrap.rank().index();
        let mut transport = Collective::new(raw);
        if let Some(me) = CANARIES.iter().position(|of| *of == rank) {
            let canaries: Vec<Rank> = CANARIES.map(Rank::from).into();
            return match by {
                Look::OpenLoop => open_loop(transport, canaries, me, seed),
                Look::Probes => probes(transport, &canaries, me, seed),
            };
        }
        let others: Vec<Rank> = (0..RANKS).filter(|rank| !CANARIES.contains(rank)).map(Rank::from).collect();
        if loaded {
            transport.group(&[Rank::from(rank)], 0)?.wait_until(QUIET)?;
            let mut team = transport.group(&others, Congestor::AllToAll.visit(Segment(others.len())))?;
            Congestor::AllToAll.visit(Load(&mut team))?;
            assert!(team.now().0 > 2 * QUIET.0 + TIME.0 + TIME.0 / 5, "the load ended at {}", team.now().0);
        }
        Ok::<Found, Error>((Samples::growing(1).total(), Kept::default()))
    });
    let (found, kept): (Vec<Batch>, Vec<Kept>) = finished.unwrap().results.into_iter().unzip();
    let mut all = Kept::default();
    kept.into_iter().for_each(|of| all.merge(of));
    let view = TimeView::of(&Batch::joined(&found).histogram(), Weight::Even).unwrap();
    ([0.5, 0.75, 0.9].map(|quantile| view.quantile_ns(quantile)), all)
}

#[test]
fn an_open_loop_finds_what_probes_at_moments_of_their_own_find() {
    for seed in [1, 2, 3] {
        let (idle, _) = look(Look::Probes, false, seed);
        let (probed, _) = look(Look::Probes, true, seed);
        let (found, kept) = look(Look::OpenLoop, true, seed);
        let said = format!("idle {idle:?}, probes {probed:?}, open loop {found:?}, {kept:?}");
        assert!(probed[0] > 1.5 * idle[0], "there is congestion to be found: {said}");
        assert!(probed.iter().zip(found).all(|(probe, found)| (found / probe - 1.0).abs() < 0.1), "{said}");
        assert!(50 * kept.lost <= kept.slots && 8 * kept.late <= kept.slots, "{said}");
    }
}
