//! The canary's timed loop.

use tailback_transport::{Group, Nanos, Result};

use super::burst::{Bursts, Folding};
use super::control::Control;
use super::lockstep::{Ballot, Lockstep, Next};
use super::pace::{Kept, Schedule};
use super::timetable::Due;
use crate::kernel::{Kernel, KernelVisitor, Ring, until_steady};
use crate::layout::Neighbours;
use crate::plan::{CanaryTest, Pace};
use crate::stats::{Direction, Folded, MAX_BATCHES, Rule, Samples, Took};

/// A test is cut into about this many chunks, so that its end is this exact a fraction of its budget.
const CHUNKS: u64 = 40;
/// The warm-up of a test takes at most this part of its budget, on top of it.
const WARM_UP: u64 = 10;
/// Between two of a schedule's iterations an agreement is asked after about so often.
const POLLS: u64 = 8;
/// A chunk of an open loop has room for so many slots: in a short block an agreement takes longer than one.
const SLOTS: u64 = 4;
/// So many iterations are looked at before a schedule is made.
const LOOKED_AT: usize = 5;
/// A block that has too few iterations when its time is over goes on for so many times as long at most.
const LONGEST_BLOCK: u64 = 3;
const MIB: f64 = 1_048_576.0;

/// What a canary rank brings back from a test.
#[allow(missing_docs)]
pub struct Finished {
    pub samples: Samples,
    /// The same by ring, where that was asked for.
    pub rings: Vec<Samples>,
    /// The quickest message from the left and from the right in every ring, in turn, in ns; nothing unless samples are messages
    /// of neighbours that were drawn.
    pub quickest: Vec<u32>,
    /// By the time since the last burst, where load comes in bursts.
    pub folded: Option<Folded>,
    pub wall: Nanos,
    /// How much of that time was inside timed iterations.
    pub covered: Nanos,
    /// How long the canary ran untimed, until it was steady or until the load before it was no longer felt.
    pub settled: Nanos,
    /// How many iterations that took, ring by ring.
    pub warm_up: Took,
    /// How its schedule was kept, where it had one.
    pub kept: Kept,
    pub interrupted: bool,
}

/// How long a pass over a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// The plan's iterations, as GPCNeT counts them: a slow network sees fewer rings.
    Counted,
    /// An equal part of the budget for each ring, so that slow and quick phases see the same rings for the same time.
    Timed,
}

/// One test, as it is measured now.
pub struct CanaryPhase<'a> {
    /// What is measured.
    pub test: &'a CanaryTest,
    /// The size of the largest team of canaries, which decides counts that all teams share.
    pub largest_team: usize,
    /// This rank's neighbours in every ring.
    pub rings: &'a [Neighbours],
    /// How long a pass over a ring is.
    pub passes: Passes,
    /// How long the test may take.
    pub budget: Nanos,
    /// When it is to be over, where the run has a length to keep: its time is then more or less than the budget.
    pub due: Option<Due>,
    /// Whether every ring is visited once, by count, before the budget can end the test.
    pub all_rings: bool,
    /// Whether the samples of each ring are also kept by themselves.
    pub by_ring: bool,
    /// A block with fewer iterations than this goes on beyond its time, within limits.
    pub fewest: u64,
    /// When iterations begin, where not one after the other.
    pub pace: Option<Pace>,
    /// Of the schedule's random distances: the same on every canary, another in every phase.
    pub seed: u64,
    /// When load is on, where it comes in bursts.
    pub bursts: Option<Bursts>,
    /// Load has just ended: warm up until it is no longer felt, at most so long.
    pub settle: Option<Nanos>,
    /// Followed and stopped by.
    pub control: &'a Control,
}

/// It on one rank: the team's traffic, all canaries' agreement.
pub(super) struct CanaryRun<'a, G: Group> {
    pub phase: CanaryPhase<'a>,
    pub team: &'a mut G,
    pub canaries: &'a mut G,
    /// When iterations begin, where they have a pace.
    pub schedule: Option<Schedule>,
}

impl<G: Group> KernelVisitor for CanaryRun<'_, G> {
    type Output = Result<Finished>;

    fn visit<K: Kernel>(self) -> Result<Finished> {
        let group = &mut *self.team;
        let kernel = K::new(self.phase.test.counts.sizes(), group.size(), group.rank());
        kernel.fill(group, self.phase.test.counts.sizes());
        let mut recorder = Recorder::new::<K>(
            &kernel,
            self.phase.test.kernel.info().direction,
            if self.schedule.is_some() { 1 } else { K::PARTS },
            self.phase.control.samples(MAX_BATCHES),
        );
        let info = self.phase.test.kernel.info();
        if self.schedule.is_some() && (info.direction, info.ring) == (Direction::Latency, Ring::Random) {
            recorder.quickest = vec![u32::MAX; 2 * self.phase.rings.len()];
        }
        if self.phase.by_ring {
            recorder.rings = self.phase.rings.iter().map(|_| self.phase.control.samples_of_part()).collect();
        }
        TimedLoop::new(self, kernel, recorder).run()
    }
}

struct TimedLoop<'a, G: Group, K> {
    run: CanaryRun<'a, G>,
    kernel: K,
    recorder: Recorder,
    folding: Option<Folding>,
    lockstep: Lockstep,
    started: Nanos,
    /// How long it may take from then on.
    length: Nanos,
    /// The pass under way, from 0, and its ring.
    pass: u64,
    ring: Neighbours,
    /// How many iterations a pass has at most. Decided by the team's size, the same on every rank of the job's largest team.
    iterations: u64,
    /// How many were timed, in all passes.
    timed: u64,
}

impl<'a, G: Group, K: Kernel> TimedLoop<'a, G, K> {
    fn new(run: CanaryRun<'a, G>, kernel: K, recorder: Recorder) -> Self {
        let counts = &run.phase.test.counts;
        let iterations = match run.phase.passes {
            Passes::Counted => run.phase.test.kernel.info().scaled(counts.iterations, run.phase.largest_team).into(),
            Passes::Timed => u64::MAX / 8,
        };
        let started = run.canaries.now();
        let lockstep = Self::lockstep(&run, started);
        let ring = run.phase.rings[0];
        let folding = run.phase.bursts.map(|bursts| Folding::new(bursts, run.phase.budget));
        let length = run.phase.budget;
        TimedLoop { run, kernel, recorder, folding, lockstep, started, length, pass: 0, ring, iterations, timed: 0 }
    }

    fn lockstep(run: &CanaryRun<'_, G>, now: Nanos) -> Lockstep {
        let chunk = run.phase.budget.0 / CHUNKS;
        match &run.schedule {
            None => Lockstep::new(Nanos(chunk), u64::MAX / 8, now),
            Some(schedule) => {
                Lockstep::new(Nanos(chunk.max(SLOTS * schedule.mean().0)), u64::MAX / 8, now).beginning_with(SLOTS)
            }
        }
    }

    fn run(mut self) -> Result<Finished> {
        let (settled, warm_up) = self.warm_up()?;
        let mut agreed = Ballot::default();
        for pass in 0..self.passes() {
            self.pass = pass;
            self.on_ring(pass as usize % self.run.phase.rings.len());
            if K::PUTS {
                self.run.canaries.barrier()?;
            }
            agreed = match self.run.schedule {
                Some(_) => self.open_pass(pass)?,
                None => self.closed_pass(pass)?,
            };
            if agreed.is_over() || pass + 1 == self.passes() {
                self.lockstep.finish(self.run.canaries)?;
                break;
            }
        }
        let wall = self.run.canaries.now().since(self.started);
        if self.run.schedule.is_some() {
            // Of the last ring some may have had one neighbour's message only: both are checked.
            self.kernel.iterate(self.run.team, self.ring)?;
        }
        self.check()?;
        let kept = self.run.schedule.map_or_else(Kept::default, |schedule| schedule.kept);
        let Recorder { samples, rings, quickest, covered, .. } = self.recorder;
        let (folded, interrupted) = (self.folding.map(|of| of.folded), agreed.interrupted);
        Ok(Finished { samples, rings, quickest, folded, wall, covered, settled, warm_up, kept, interrupted })
    }

    /// What follows is on this ring.
    fn on_ring(&mut self, at: usize) {
        (self.ring, self.recorder.ring) = (self.run.phase.rings[at], at);
    }

    fn passes(&self) -> u64 {
        let counts = self.run.phase.test.counts;
        match self.run.phase.passes {
            Passes::Counted => u64::from(counts.rings) * u64::from(counts.measurements),
            Passes::Timed if self.run.schedule.is_some() => 1,
            Passes::Timed => self.run.phase.rings.len() as u64,
        }
    }

    /// Iterates untimed until the rate is steady on every ring, for at most a part of the budget: libraries make
    /// connections and set themselves up while they are used. After load, on the first ring until iterations have stopped
    /// getting quicker: what queues and connections still hold of it would otherwise count as isolated.
    fn warm_up(&mut self) -> Result<(Nanos, Took)> {
        let CanaryRun { phase: CanaryPhase { rings, settle, budget, control, .. }, team, canaries, .. } = &mut self.run;
        let kernel = &self.kernel;
        let begin = canaries.now();
        let limit = settle.unwrap_or(Nanos(budget.0 / WARM_UP));
        let rings = if settle.is_some() { &rings[..1] } else { *rings };
        let usual = Rule { warm: true, ..Rule::default() };
        let rule = match settle {
            // A queue that drains gets quicker by far more than this, which on a busy machine is noise.
            Some(longest) => Rule { batch: Nanos(budget.0 / CHUNKS), within: 1.5, longest: *longest, ..usual },
            None => {
                let longest = Nanos(limit.0 / rings.len() as u64).min(usual.longest);
                Rule { batch: Nanos(longest.0 / 10).min(usual.batch), longest, ..usual }
            }
        };
        let mut took = Took::default();
        let mut spent = 0;
        canaries.barrier()?;
        for &ring in rings {
            // What was spent is agreed on, so all canaries stop at the same ring.
            if spent >= limit.0 {
                break;
            }
            self.ring = ring;
            let interrupted = || control.interrupted();
            let rested = until_steady(&mut **canaries, rule, &control.monitor, interrupted, |canaries, iterations| {
                let start = canaries.now();
                (0..iterations).try_for_each(|_| kernel.iterate(*team, ring))?;
                Ok(canaries.now().since(start))
            })?;
            // The first boundary of what is timed ends a test that was interrupted.
            let Some(rested) = rested else { break };
            took.add(&rested);
            spent += rested.spent.0;
        }
        let budget = *budget;
        self.check()?;
        if let Some(schedule) = &mut self.run.schedule {
            let (mut quickest, mut longest) = (Nanos(u64::MAX), Nanos(0));
            for ring in self.run.phase.rings.iter().cycle().take(LOOKED_AT) {
                let start = self.run.team.now();
                self.kernel.iterate(self.run.team, *ring)?;
                let took = self.run.team.now().since(start);
                (quickest, longest) = (quickest.min(took), longest.max(took));
            }
            schedule.begin(self.run.canaries, [quickest, longest], budget)?;
        }
        self.started = self.run.canaries.now();
        self.length = self.run.phase.due.map_or(budget, |due| due.budget(self.started, budget));
        self.lockstep = Self::lockstep(&self.run, self.started);
        Ok((self.started.since(begin), took))
    }

    /// Timed iterations on one ring, one after the other, until the group agreed on another part of the test, or all of
    /// the pass's iterations are made. An agreed end comes at the same iteration on every rank.
    fn closed_pass(&mut self, pass: u64) -> Result<Ballot> {
        let mut timed = 0;
        let warmup = match self.run.phase.passes {
            Passes::Counted => u64::from(self.run.phase.test.counts.warmup),
            Passes::Timed => 0,
        };
        for iteration in 0..warmup + self.iterations {
            let group = &mut *self.run.team;
            let start = group.now();
            self.kernel.iterate(group, self.ring)?;
            let took = group.now().since(start);
            // The first iteration of a test is timed if nothing else is: a budget may leave room for no other.
            if iteration >= warmup {
                self.recorder.record(took);
                timed += 1;
                self.timed += 1;
            }
            let agreed = match self.lockstep.step() {
                Next::Iterate => continue,
                Next::Poll => {
                    self.lockstep.poll(self.run.canaries)?;
                    continue;
                }
                Next::Boundary => self.boundary()?.0,
            };
            if agreed.part > pass {
                if timed == 0 && self.recorder.samples.passes() == 0 {
                    self.recorder.record(took);
                    timed = 1;
                }
                if self.counts(timed) {
                    self.recorder.close_pass();
                }
                return Ok(agreed);
            }
        }
        self.recorder.close_pass();
        Ok(Ballot::default())
    }

    /// The same by a schedule, on another ring each time. What an agreement was waited for is nobody's latency.
    fn open_pass(&mut self, pass: u64) -> Result<Ballot> {
        let mut free = self.run.canaries.now();
        loop {
            let Some(schedule) = &mut self.run.schedule else { return Ok(Ballot::default()) };
            // What is left of the time until then is the agreement's.
            while self.lockstep.is_open() && self.run.canaries.now().0 < schedule.due().0 {
                let soon = self.run.canaries.now().0 + schedule.mean().0 / POLLS;
                self.run.canaries.wait_until(Nanos(soon.min(schedule.due().0)))?;
                self.lockstep.poll(self.run.canaries)?;
            }
            let (due, group) = (schedule.due(), &mut *self.run.team);
            let slot = schedule.slot(group, free)?;
            let turn = schedule.kept.slots;
            let ring = (turn / 2) as usize % self.run.phase.rings.len();
            (self.ring, self.recorder.ring) = (self.run.phase.rings[ring], ring);
            let start = group.now();
            self.kernel.message(group, self.ring, turn)?;
            free = group.now();
            let took = free.since(start);
            schedule.took(took, free);
            self.timed += 1;
            if let Some(late) = slot {
                self.recorder.record(Nanos(late.0 + took.0));
                self.recorder.see(turn, took);
            }
            // A burst that stops a message hides nothing: those that were due meanwhile would have waited behind it.
            if let (Some(folding), Some(waited)) = (&mut self.folding, schedule.waited(due)) {
                folding.record(due, Nanos(waited.0 + took.0));
            }
            if self.lockstep.step() != Next::Boundary {
                continue;
            }
            let (agreed, waited) = self.boundary()?;
            if let Some(schedule) = &mut self.run.schedule {
                schedule.slow_down(agreed.longest, self.run.phase.budget);
                if waited.0 > 0 {
                    schedule.excuse(self.run.canaries.now());
                }
            }
            if agreed.part > pass {
                self.recorder.close_pass();
                return Ok(agreed);
            }
        }
    }

    /// Whether a pass that was ended after so many timed iterations has a mean worth as much as the others'.
    fn counts(&self, timed: u64) -> bool {
        match self.run.phase.passes {
            Passes::Timed => timed > 0,
            Passes::Counted => timed > 0 && (2 * timed >= self.iterations || self.recorder.samples.passes() == 0),
        }
    }

    /// Proposes where to be at the next boundary, as near as chunks allow, and gives what was agreed for this one.
    fn boundary(&mut self) -> Result<(Ballot, Nanos)> {
        self.run.phase.control.monitor.tick();
        let now = self.run.canaries.now();
        let next = now.since(self.started).0 + self.lockstep.expected(now).0;
        let (budget, half_a_chunk) = (self.run.phase.budget.0, self.lockstep.expected(now).0 / 2);
        let interrupted = self.run.phase.control.interrupted();
        let is_over = match self.run.phase.passes {
            Passes::Timed if self.timed + self.lockstep.chunk() < self.run.phase.fewest => {
                next + half_a_chunk >= LONGEST_BLOCK * budget
            }
            // All ranks are in the same pass.
            Passes::Counted if self.run.phase.all_rings && self.pass < u64::from(self.run.phase.test.counts.rings) => {
                false
            }
            _ => next + half_a_chunk >= self.length.0,
        };
        let part = match self.run.phase.passes {
            _ if interrupted || is_over => Ballot::OVER,
            Passes::Counted => 0,
            Passes::Timed => {
                let part = u128::from(next + half_a_chunk) * u128::from(self.passes()) / u128::from(self.length.0);
                (part as u64).min(self.passes() - 1)
            }
        };
        let longest = self.run.schedule.as_mut().map_or(Nanos(0), Schedule::longest);
        self.lockstep.agree(self.run.canaries, Ballot { part, interrupted, longest })
    }

    /// Between two barriers nobody writes, so what arrived can be looked at.
    fn check(&mut self) -> Result<()> {
        self.run.canaries.barrier()?;
        self.kernel.check(&mut *self.run.team, self.ring)?;
        self.run.canaries.barrier()
    }
}

/// Turns iteration times into samples and passes into figures.
pub(super) struct Recorder {
    pub samples: Samples,
    /// Those of each ring, where they are kept by themselves, and the ring that is recorded now.
    rings: Vec<Samples>,
    ring: usize,
    /// See [`Finished::quickest`].
    quickest: Vec<u32>,
    direction: Direction,
    /// A sample in ns is the time that was recorded times this.
    scale: Option<f64>,
    pass_ns: u64,
    pass_iterations: u64,
    /// The time inside all iterations that were recorded.
    covered: Nanos,
}

impl Recorder {
    /// A latency is the part `1 / parts` of what is recorded.
    pub(super) fn new<K: Kernel>(kernel: &K, direction: Direction, parts: u64, samples: Samples) -> Self {
        let scale = match direction {
            Direction::Latency => Some(1.0 / parts as f64),
            Direction::Bandwidth => (kernel.payload() > 0).then(|| MIB / kernel.payload() as f64),
        };
        let (rings, ring, quickest) = (Vec::new(), 0, Vec::new());
        Recorder { samples, rings, ring, quickest, direction, scale, pass_ns: 0, pass_iterations: 0, covered: Nanos(0) }
    }

    /// A message of this turn took so long.
    #[inline]
    fn see(&mut self, turn: u64, took: Nanos) {
        if !self.quickest.is_empty() {
            let at = (turn % self.quickest.len() as u64) as usize;
            self.quickest[at] = self.quickest[at].min(u32::try_from(took.0).unwrap_or(u32::MAX));
        }
    }

    #[inline]
    pub(super) fn record(&mut self, took: Nanos) {
        self.pass_ns += took.0;
        self.pass_iterations += 1;
        self.covered.0 += took.0;
        if let Some(scale) = self.scale {
            let ns = (took.0 as f64 * scale).round() as u64;
            self.samples.record(ns);
            if let Some(own) = self.rings.get_mut(self.ring) {
                own.record(ns);
            }
        }
    }

    pub(super) fn close_pass(&mut self) {
        let mean_ns = self.pass_ns as f64 / self.pass_iterations.max(1) as f64;
        let figure = self.scale.filter(|_| self.pass_ns > 0).map(|scale| self.direction.figure(mean_ns * scale));
        self.samples.close_pass(figure);
        (self.pass_ns, self.pass_iterations) = (0, 0);
    }

    /// Forgets everything recorded so far.
    pub(super) fn restart(&mut self) {
        self.samples.clear();
        (self.pass_ns, self.pass_iterations, self.covered) = (0, 0, Nanos(0));
    }
}
