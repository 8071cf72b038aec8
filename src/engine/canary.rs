//! The canary's timed loop.

use tailback_transport::{Group, Nanos, Result};

use super::job::{Control, Team};
use super::lockstep::{Ballot, Lockstep, Next, Timing};
use crate::kernel::{CanaryVisitor, Kernel};
use crate::layout::Neighbours;
use crate::plan::CanaryTest;
use crate::stats::{Direction, Samples};

/// A test is cut into about this many chunks, so that its end is this exact a fraction of its budget.
const CHUNKS: u64 = 40;
const MIB: f64 = 1_048_576.0;

/// What a canary rank brings back from a test.
pub(super) struct Finished {
    pub samples: Samples,
    pub wall: Nanos,
    pub interrupted: bool,
}

/// One test on one rank: the team's traffic, all canaries' agreement.
pub(super) struct CanaryRun<'a, G: Group> {
    pub test: &'a CanaryTest,
    pub team: &'a mut Team<G>,
    pub canaries: &'a mut G,
    pub rings: &'a [Neighbours],
    pub budget: Nanos,
    pub control: &'a Control,
}

impl<G: Group> CanaryVisitor for CanaryRun<'_, G> {
    type Output = Result<Finished>;

    fn visit<K: Kernel>(self) -> Result<Finished> {
        let group = &mut self.team.group;
        let kernel = K::new(self.test.counts.shape(), group.size(), group.rank());
        kernel.fill(group)?;
        let recorder = Recorder::new::<K>(&kernel, self.test.kernel.info().direction);
        TimedLoop::new(self, kernel, recorder).run()
    }
}

struct TimedLoop<'a, G: Group, K> {
    run: CanaryRun<'a, G>,
    kernel: K,
    recorder: Recorder,
    lockstep: Lockstep,
    started: Nanos,
    /// Decided by the team's size, the same on every rank of the job's largest team.
    iterations: u64,
}

/// What the agreement at a boundary said.
struct Stop {
    interrupted: bool,
}

impl<'a, G: Group, K: Kernel> TimedLoop<'a, G, K> {
    fn new(run: CanaryRun<'a, G>, kernel: K, recorder: Recorder) -> Self {
        let counts = &run.test.counts;
        let iterations = run.test.kernel.info().scaled(counts.iterations, run.team.largest).into();
        let started = run.canaries.now();
        let target = Nanos(run.budget.0 / CHUNKS);
        let lockstep = Lockstep::new(Timing::AtBoundary, target, u64::MAX / 8, started);
        TimedLoop { run, kernel, recorder, lockstep, started, iterations }
    }

    fn run(mut self) -> Result<Finished> {
        let counts = self.run.test.counts;
        let passes = u64::from(counts.rings) * u64::from(counts.measurements);
        let mut stop = None;
        for pass in 0..passes {
            let ring = self.run.rings[pass as usize % self.run.rings.len()];
            self.run.canaries.barrier()?;
            stop = self.pass(ring)?;
            if pass == 0 || stop.is_some() || pass + 1 == passes {
                self.check(ring)?;
            }
            if stop.is_some() {
                break;
            }
        }
        let wall = self.run.canaries.now().since(self.started);
        let interrupted = stop.is_some_and(|stop| stop.interrupted);
        Ok(Finished { samples: self.recorder.samples, wall, interrupted })
    }

    /// Warm-up and timed iterations on one ring. An agreed stop ends it early, at the same iteration on every rank.
    fn pass(&mut self, ring: Neighbours) -> Result<Option<Stop>> {
        let mut timed = 0;
        let warmup = u64::from(self.run.test.counts.warmup);
        for iteration in 0..warmup + self.iterations {
            let group = &mut self.run.team.group;
            let start = group.now();
            self.kernel.iterate(group, ring)?;
            let took = group.now().since(start);
            // The first iteration of a test is timed if nothing else is: a budget may leave room for no other.
            if iteration >= warmup {
                self.recorder.record(took);
                timed += 1;
            }
            if self.lockstep.step() == Next::Boundary
                && let Some(stop) = self.boundary()?
            {
                if timed == 0 && self.recorder.samples.passes() == 0 {
                    self.recorder.record(took);
                    timed = 1;
                }
                if timed > 0 {
                    self.recorder.close_pass();
                }
                return Ok(Some(stop));
            }
        }
        self.recorder.close_pass();
        Ok(None)
    }

    fn boundary(&mut self) -> Result<Option<Stop>> {
        self.run.control.monitor.tick();
        let now = self.run.canaries.now();
        let spent = now.since(self.started).0 + self.lockstep.expected(now).0;
        let interrupted = self.run.control.interrupted();
        let mine = Ballot { stop: interrupted || spent >= self.run.budget.0, interrupted };
        let agreed = self.lockstep.agree(self.run.canaries, mine)?;
        Ok(agreed.stop.then_some(Stop { interrupted: agreed.interrupted }))
    }

    /// Between two barriers nobody writes, so what arrived can be looked at.
    fn check(&mut self, ring: Neighbours) -> Result<()> {
        self.run.canaries.barrier()?;
        self.kernel.check(&mut self.run.team.group, ring)?;
        self.run.canaries.barrier()
    }
}

/// Turns iteration times into samples and passes into figures.
pub(super) struct Recorder {
    pub samples: Samples,
    direction: Direction,
    /// A sample in ns is an iteration's time times this.
    scale: Option<f64>,
    pass_ns: u64,
    pass_iterations: u64,
}

impl Recorder {
    pub(super) fn new<K: Kernel>(kernel: &K, direction: Direction) -> Self {
        let scale = match direction {
            Direction::Latency => Some(1.0 / K::PARTS as f64),
            Direction::Bandwidth => (kernel.payload() > 0).then(|| MIB / kernel.payload() as f64),
        };
        Recorder { samples: Samples::new(), direction, scale, pass_ns: 0, pass_iterations: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, took: Nanos) {
        self.pass_ns += took.0;
        self.pass_iterations += 1;
        if let Some(scale) = self.scale {
            self.samples.record((took.0 as f64 * scale).round() as u64);
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
        (self.pass_ns, self.pass_iterations) = (0, 0);
    }
}
