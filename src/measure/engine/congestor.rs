//! The congestor's loop: load that starts before the canary measures, ends after it, and never pauses in between.
//!
//! A congestor with a rate below 1 runs at full rate first, until its load is steady and without any canary. Its team
//! agrees on how long an iteration took then, and from there on begins one whenever that time over the rate has passed, however
//! long the ones before took. So it delivers that part of what it reaches at full rate, as far as the network lets it: a pause
//! after each iteration would not do, as iterations are shorter where fewer of them are under way. Members begin one after the
//! other, over as much of the time between as an iteration leaves: the less load, the fewer of them send at a time. Between
//! iterations they answer their team and the world as ever.

use std::cell::Cell;

use tailback_transport::{Group, Nanos, Proposal, Rank, Result, Span, Tag};

use super::Slices;
use super::burst::Bursts;
use super::canary::Recorder;
use super::collect::{EncodedTally, Load, Tally};
use super::control::{Control, REAL_GRAIN};
use super::lockstep::{Ballot, Lockstep, Next};
use crate::kernel::{Kernel, KernelVisitor};
use crate::layout::natural_ring;
use crate::plan::{CongestorTest, Counts};
use crate::stats::Samples;

/// A load that is not steady after so many slices is not waited for.
const PATIENCE: u64 = 3;
/// A load with a rate that is behind its schedule by more than so many iterations does not make up for the rest.
const MOST_BEHIND: u64 = 4;
/// Besides [`Ballot::OVER`]: it is known how long an iteration takes at full rate.
const KNOWN: u64 = 1;

/// How often a congestor group looks whether to stop.
fn chunk(budget: Nanos, grain: Nanos) -> Nanos {
    Nanos((budget.0 / 16).clamp(grain.0 / 2, REAL_GRAIN.0 / 2))
}

/// A load, as it is wanted now.
pub struct CongestorPhase<'a> {
    /// What loads.
    pub test: &'a CongestorTest,
    /// Which of the plan's congestors it is, and of how many.
    pub kind: (usize, usize),
    /// How long a part of it may take.
    pub budget: Nanos,
    /// The canaries' parts that it lasts for; without, it lasts for the budget.
    pub parts: Option<usize>,
    /// How long an iteration takes at full rate, once that is known; only of a load with a rate.
    pub full_rate: &'a Cell<Option<Nanos>>,
    /// Whether it ends as soon as that is known, before it goes on at its rate.
    pub probe: bool,
    /// When it is on, where it comes in bursts.
    pub bursts: Option<Bursts>,
    /// Followed and stopped by.
    pub control: &'a Control,
}

/// What ends a congestor.
pub(super) enum Until<'a> {
    /// The canaries have measured their parts: the world agrees first on the release, once the load is steady, then on the end
    /// of each part. The load goes on from part to part. The world may be on another network than the team.
    Canaries { world: &'a mut dyn Group, parts: usize },
    /// The budget is over, or the user interrupts.
    Elapsed,
}

/// One congestor on one rank. It gives its load during each complete part, and whether the user cut it short.
pub(super) struct CongestorRun<'a, G: Group> {
    pub phase: CongestorPhase<'a>,
    pub team: &'a mut G,
    pub until: Until<'a>,
}

impl<G: Group> KernelVisitor for CongestorRun<'_, G> {
    type Output = Result<(Vec<EncodedTally>, bool)>;

    fn visit<K: Kernel>(self) -> Self::Output {
        let CongestorRun {
            phase: CongestorPhase { test, kind, budget, control, full_rate, probe, bursts, .. },
            team: group,
            until,
        } = self;
        let kernel = K::new(test.counts.sizes(), group.size(), group.rank());
        let ring = natural_ring(group.size(), group.rank());
        warm_up(&kernel, group, &test.counts)?;

        let mut recorder = Recorder::new(&kernel, test.kernel.info().direction, K::PARTS, control.samples(1));
        let longest = test.kernel.info().scaled(test.counts.iterations, group.size());
        let chunk = chunk(budget, control.grain);
        let mut lockstep = Lockstep::new(chunk, longest.into(), group.now());
        let mut watch = Watch::new(until, kind, group.now(), kernel.payload(), budget, control.grain);
        let slowed = test.rate < 1.0;
        let mut beat = full_rate.get().filter(|_| slowed).map(|full| Beat::new(full, test.rate, chunk, group));
        if slowed && beat.is_none() {
            watch.stage = Stage::Probing;
        }
        let mut looked = group.now();
        loop {
            if let Some(beat) = &mut beat {
                rest(group, beat.due, beat.every, &mut lockstep, &mut watch, &mut recorder)?;
                beat.began(group.now());
            }
            if let Some(next) = bursts.and_then(|of| of.next(group.now())) {
                rest(group, next, Nanos((chunk.0 / 4).max(1)), &mut lockstep, &mut watch, &mut recorder)?;
            }
            let start = group.now();
            let (every, last) = (chunk, &mut looked);
            kernel.iterate(&mut Attentive { group, watch: &mut watch, every, last }, ring)?;
            recorder.record(group.now().since(start));
            watch.iterations += 1;
            match lockstep.step() {
                Next::Iterate => continue,
                Next::Poll => {
                    lockstep.poll(group)?;
                    watch.poll()?;
                    continue;
                }
                Next::Boundary => {}
            }
            control.monitor.tick();
            recorder.close_pass();
            watch.look(group.now(), &mut recorder)?;
            let interrupted = control.interrupted() || watch.interrupted;
            let stop = watch.stage == Stage::Over || interrupted && watch.may_stop_itself();
            let known = watch.full_rate_iteration(group.now()).filter(|_| beat.is_none());
            let part = if stop { Ballot::OVER } else { known.map_or(0, |_| KNOWN) };
            let (agreed, _) =
                lockstep.agree(group, Ballot { part, interrupted, longest: known.unwrap_or(Nanos(0)) })?;
            if agreed.part == KNOWN && beat.is_none() {
                full_rate.set(Some(agreed.longest));
                if probe {
                    // Every member hears of it at this boundary.
                    lockstep.finish(group)?;
                    group.barrier()?;
                    return Ok((watch.loads, agreed.interrupted));
                }
                beat = Some(Beat::new(agreed.longest, test.rate, chunk, group));
                watch.probed(group.now());
            }
            if agreed.is_over() {
                // A team mate may still be in its last iteration and need this rank to serve it. What follows is the
                // world's, which may be on another network.
                group.barrier()?;
                watch.finish(group.now(), &mut recorder)?;
                return Ok((watch.loads, agreed.interrupted || watch.interrupted));
            }
        }
    }
}

/// When iterations of a load with a rate begin.
struct Beat {
    /// How far apart.
    distance: Nanos,
    /// When the next one is due.
    due: Nanos,
    /// How often a resting rank looks whether others want an answer.
    every: Nanos,
}

impl Beat {
    /// From now on, for iterations that take so long at full rate, beside agreements that are to be over in a `chunk`.
    fn new<G: Group>(full: Nanos, rate: f64, chunk: Nanos, group: &G) -> Self {
        let distance = Nanos((full.0 as f64 / rate) as u64);
        let apart = distance.0.saturating_sub(full.0) / group.size() as u64;
        let due = Nanos(group.now().0 + apart * u64::from(group.rank().0));
        Beat { distance, due, every: Nanos((distance.0 / 8).min(chunk.0 / 4).max(1)) }
    }

    /// An iteration begins now: the next is due in its time.
    fn began(&mut self, now: Nanos) {
        let behind = MOST_BEHIND * self.distance.0;
        self.due = Nanos((self.due.0 + self.distance.0).max(now.0.saturating_sub(behind)));
    }
}

/// Waits until the next iteration is due, and looks so often whether others want an answer: agreements of the team and of the
/// world advance meanwhile.
fn rest<G: Group>(
    group: &mut G,
    due: Nanos,
    every: Nanos,
    lockstep: &mut Lockstep,
    watch: &mut Watch<'_>,
    recorder: &mut Recorder,
) -> Result<()> {
    loop {
        let now = group.now();
        // Nobody measures any more: whoever is in an iteration already is not kept waiting.
        if now.0 >= due.0 || watch.stage == Stage::Over {
            return Ok(());
        }
        group.wait_until(Nanos(due.0.min(now.0 + every.0)))?;
        lockstep.poll(group)?;
        watch.look(group.now(), recorder)?;
    }
}

/// Warm-up and a look at the data before anything counts.
fn warm_up<K: Kernel, G: Group>(kernel: &K, group: &mut G, counts: &Counts) -> Result<()> {
    let ring = natural_ring(group.size(), group.rank());
    kernel.fill(group, counts.sizes());
    group.barrier()?;
    for _ in 0..counts.warmup.max(1) {
        kernel.iterate(group, ring)?;
    }
    group.barrier()?;
    kernel.check(group, ring)?;
    group.barrier()
}

/// Looks for the end of each part, and keeps what was moved in it.
struct Watch<'a> {
    until: Until<'a>,
    budget: Nanos,
    stage: Stage,
    interrupted: bool,
    /// What a poll already brought of the world's agreement under way.
    seen: Option<Proposal>,
    /// Iterations since the start, and those at the last boundary.
    iterations: u64,
    recorded: u64,
    /// Bytes of an iteration.
    payload: usize,
    /// Iterations and time when this part began, and what was moved since.
    since: (u64, Nanos),
    slices: Slices,
    steady: bool,
    /// Iterations and time after the first slice at full rate.
    probed_from: Option<(u64, Nanos)>,
    /// Of complete parts, encoded, which is a hundredth of their size.
    loads: Vec<EncodedTally>,
    kind: (usize, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// At full rate, to learn how long an iteration takes.
    Probing,
    Starting,
    Releasing,
    Loading,
    Over,
}

impl<'a> Watch<'a> {
    fn new(until: Until<'a>, kind: (usize, usize), now: Nanos, payload: usize, budget: Nanos, grain: Nanos) -> Self {
        Watch {
            until,
            budget,
            stage: Stage::Starting,
            interrupted: false,
            seen: None,
            iterations: 0,
            recorded: 0,
            payload,
            since: (0, now),
            slices: Slices::of_phase(budget, grain),
            steady: true,
            probed_from: None,
            loads: Vec::new(),
            kind,
        }
    }

    /// Puts what was moved since the last boundary into its slices.
    fn keep(&mut self, now: Nanos) {
        // A rank that rests until its next iteration is due has not stopped: what it moves then counts for the rest, too.
        if self.iterations == self.recorded {
            return;
        }
        let moved = (self.iterations - self.recorded) as f64 * self.payload as f64;
        self.recorded = self.iterations;
        self.slices.add(now.since(self.since.1), moved);
    }

    /// A part begins now: what was kept so far lies before it.
    fn begin(&mut self, now: Nanos, recorder: &mut Recorder) {
        recorder.restart();
        self.since = (self.iterations, now);
        self.slices = Slices::new(self.slices.width());
        self.stage = Stage::Loading;
    }

    /// A part is over.
    fn end(&mut self, now: Nanos, recorder: &mut Recorder) {
        let (first, from) = self.since;
        let load = Load {
            ranks: 1,
            bytes: (self.iterations - first) * self.payload as u64,
            seconds: now.since(from).as_secs_f64(),
            samples: Samples::of_batch(recorder.samples.total()),
            slices: self.slices.clone(),
            steady: self.steady,
        };
        let (kind, kinds) = self.kind;
        self.loads.push(Tally::of_load(kind, kinds, load).into());
    }

    /// How long an iteration takes at full rate, once that is known.
    fn full_rate_iteration(&mut self, now: Nanos) -> Option<Nanos> {
        if self.stage != Stage::Probing || self.slices.whole().is_empty() {
            return None;
        }
        // The first slice has the first agreements in it, which a team waits for.
        let (first, from) = *self.probed_from.get_or_insert((self.iterations, now));
        let known = self.iterations > first && self.came_up(now);
        known.then(|| Nanos(now.since(from).0 / (self.iterations - first)))
    }

    /// The team goes on at its rate, whose load comes up anew.
    fn probed(&mut self, now: Nanos) {
        if self.stage == Stage::Probing {
            self.since = (self.iterations, now);
            self.slices = Slices::new(self.slices.width());
            self.stage = Stage::Starting;
        }
    }

    /// Whether the load is steady, or was waited for long enough.
    fn came_up(&self, now: Nanos) -> bool {
        self.slices.steady() || now.since(self.since.1).0 >= PATIENCE * self.slices.width().0
    }

    /// Lets the world's agreement advance, without waiting for it.
    fn poll(&mut self) -> Result<()> {
        if let (Until::Canaries { world, .. }, Stage::Releasing | Stage::Loading) = (&mut self.until, self.stage)
            && self.seen.is_none()
        {
            self.seen = world.poll_agreement()?;
        }
        Ok(())
    }

    /// At a chunk's boundary.
    fn look(&mut self, now: Nanos, recorder: &mut Recorder) -> Result<()> {
        self.poll()?;
        if self.stage != Stage::Over {
            self.keep(now);
        }
        let came_up = self.came_up(now);
        match (&mut self.until, self.stage) {
            (Until::Elapsed, Stage::Starting | Stage::Releasing) => self.begin(now, recorder),
            (Until::Elapsed, Stage::Loading) => {
                if now.since(self.since.1) >= self.budget {
                    self.end(now, recorder);
                    self.stage = Stage::Over;
                }
            }
            (_, Stage::Probing) => {}
            (Until::Canaries { world, .. }, Stage::Starting) => {
                // Once this rank's load has come up, the canaries may start.
                self.steady = self.slices.steady();
                if came_up {
                    world.start_agreement([0; 4])?;
                    self.stage = Stage::Releasing;
                }
                recorder.restart();
            }
            (Until::Canaries { .. }, Stage::Releasing | Stage::Loading) => {
                if let Some(agreed) = self.seen.take() {
                    self.pass(agreed, now, recorder)?;
                }
            }
            (_, Stage::Over) => {}
        }
        Ok(())
    }

    /// The world has agreed: on the release, or on the end of a part, after which the next begins.
    fn pass(&mut self, agreed: Proposal, now: Nanos, recorder: &mut Recorder) -> Result<()> {
        self.interrupted |= agreed[1] != 0;
        if self.stage == Stage::Loading && !self.interrupted {
            self.end(now, recorder);
        }
        match &mut self.until {
            Until::Canaries { world, parts, .. } if !self.interrupted && self.loads.len() < *parts => {
                world.start_agreement([0; 4])?;
                self.begin(now, recorder);
            }
            _ => self.stage = Stage::Over,
        }
        Ok(())
    }

    /// A rank under canaries must keep to their sequence; alone it may end at once.
    fn may_stop_itself(&self) -> bool {
        matches!(self.until, Until::Elapsed)
    }

    /// The team stops. A team mate may have seen the last agreement of the world first: that one is under way here too.
    /// Congestion that was interrupted has delivered what it has.
    fn finish(&mut self, now: Nanos, recorder: &mut Recorder) -> Result<()> {
        let agreed = match (&mut self.until, self.stage) {
            (Until::Elapsed, Stage::Probing | Stage::Starting | Stage::Releasing | Stage::Loading) => {
                self.end(now, recorder);
                return Ok(());
            }
            (Until::Canaries { world, .. }, Stage::Releasing | Stage::Loading) => match self.seen.take() {
                Some(agreed) => agreed,
                None => world.wait_agreement()?,
            },
            _ => return Ok(()),
        };
        self.pass(agreed, now, recorder)
    }
}

/// A congestor's group while it iterates: between two waits of an iteration, the agreement of all ranks may advance. Everything
/// else is the group's own.
///
/// An agreement takes a round for each doubling of the ranks, and a rank takes part in a round only when it looks. Iterations
/// of an all-to-all beside full queues take milliseconds to seconds: if ranks looked once in each, the end of a part would be
/// known a dozen iterations late.
struct Attentive<'a, 'w, G> {
    group: &'a mut G,
    watch: &'a mut Watch<'w>,
    /// Looks are at least this far apart.
    every: Nanos,
    /// The last one.
    last: &'a mut Nanos,
}

impl<G: Group> Attentive<'_, '_, G> {
    fn look(&mut self) -> Result<()> {
        let now = self.group.now();
        if now.since(*self.last) < self.every {
            return Ok(());
        }
        *self.last = now;
        self.watch.poll()
    }
}

impl<G: Group> Group for Attentive<'_, '_, G> {
    fn rank(&self) -> Rank {
        self.group.rank()
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn now(&self) -> Nanos {
        self.group.now()
    }

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        self.group.wait_until(at)
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.group.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.group.write(offset, from);
    }

    fn add_words(&mut self, left: Span, right: usize, into: usize) {
        self.group.add_words(left, right, into);
    }

    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.group.post_send(to, tag, span)
    }

    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.group.post_recv(from, tag, span)
    }

    fn wait_all(&mut self) -> Result<()> {
        self.group.wait_all()?;
        self.look()
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.group.put(to, local, remote)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.group.get(from, local, remote)
    }

    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.group.flush(peer)?;
        self.look()
    }

    fn barrier(&mut self) -> Result<()> {
        self.group.barrier()
    }

    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.group.allreduce(values)
    }

    fn start_barrier(&mut self) -> Result<()> {
        self.group.start_barrier()
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        self.group.poll_barrier()
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        self.group.start_agreement(mine)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        self.group.poll_agreement()
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        self.group.wait_agreement()
    }
}
