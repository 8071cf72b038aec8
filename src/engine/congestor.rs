//! The congestor's loop: load that starts before the canary measures, ends after it, and never pauses in between.

use tailback_transport::{Group, Nanos, Proposal, Result};

use super::Slices;
use super::canary::Recorder;
use super::collect::Load;
use super::job::{Control, Team};
use super::lockstep::{Ballot, Lockstep, Next, Timing};
use crate::kernel::{CongestorVisitor, Kernel};
use crate::layout::natural_ring;
use crate::plan::CongestorTest;

/// How often a congestor group looks whether to stop.
const CHUNK: Nanos = Nanos(10_000_000);

/// Load is kept in slices of at most this.
const SLICE: Nanos = Nanos(100_000_000);
/// A load that is not steady after so many slices is not waited for.
const PATIENCE: u64 = 10;

/// The width of slices in a phase of `budget`: short phases have shorter ones.
fn slice(budget: Nanos) -> Nanos {
    Nanos((budget.0 / 4).clamp(SLICE.0 / 5, SLICE.0))
}

/// How long a congestor runs.
pub(super) enum Until<'a, G: Group> {
    /// Until the canaries have measured, which takes about so long: the world agrees first on the release, once the load
    /// is steady, then on the stop.
    Canaries(&'a mut G, Nanos),
    /// For a time, or until interrupted.
    Elapsed(Nanos),
}

/// One congestor on one rank.
pub(super) struct CongestorRun<'a, G: Group> {
    pub test: &'a CongestorTest,
    pub team: &'a mut Team<G>,
    pub until: Until<'a, G>,
    pub control: &'a Control,
}

impl<G: Group> CongestorVisitor for CongestorRun<'_, G> {
    type Output = Result<(Load, bool)>;

    fn visit<K: Kernel>(self) -> Result<(Load, bool)> {
        let CongestorRun { test, team, until, control } = self;
        let group = &mut team.group;
        let kernel = K::new(test.counts.shape(), group.size(), group.rank());
        let ring = natural_ring(group.size(), group.rank());
        warm_up(&kernel, group, test.counts.warmup)?;

        let mut recorder = Recorder::new::<K>(&kernel, test.kernel.info().direction);
        let longest = test.kernel.info().scaled(test.counts.iterations, group.size());
        let mut lockstep = Lockstep::new(Timing::Overlapped, CHUNK, longest.into(), group.now());
        let mut watch = Watch::new(until, group.now(), kernel.payload() as f64);
        loop {
            let start = group.now();
            kernel.iterate(group, ring)?;
            recorder.record(group.now().since(start));
            watch.iterations += 1;
            match lockstep.step() {
                Next::Iterate => continue,
                Next::Glance => {
                    lockstep.glance(group)?;
                    watch.glance()?;
                    continue;
                }
                Next::Boundary => {}
            }
            control.monitor.tick();
            recorder.close_pass();
            if watch.look(group.now())? {
                recorder.restart();
            }
            let interrupted = control.interrupted() || watch.interrupted;
            let stop = watch.over || (interrupted && watch.may_stop_itself());
            let agreed = lockstep.agree(group, Ballot { stop, interrupted, next: false })?;
            if agreed.stop {
                watch.finish(interrupted)?;
                let (iterations, seconds) = watch.window(group.now());
                let bytes = iterations * kernel.payload() as u64;
                let cut = agreed.interrupted || watch.interrupted;
                let Watch { slices, steady, .. } = watch;
                let samples = recorder.samples.flatten();
                return Ok((Load { ranks: 1, bytes, seconds, samples, slices, steady }, cut));
            }
        }
    }
}

/// Warm-up and a look at the data before anything counts.
fn warm_up<K: Kernel, G: Group>(kernel: &K, group: &mut G, iterations: u32) -> Result<()> {
    let ring = natural_ring(group.size(), group.rank());
    kernel.fill(group)?;
    group.barrier()?;
    for _ in 0..iterations.max(1) {
        kernel.iterate(group, ring)?;
    }
    group.barrier()?;
    kernel.check(group, ring)?;
    group.barrier()
}

/// Looks for the end of the load, and counts what was moved while the canaries measured.
struct Watch<'a, G: Group> {
    until: Until<'a, G>,
    state: State,
    iterations: u64,
    /// Iterations and time at release, and at the stop.
    released: Option<(u64, Nanos)>,
    stopped: Option<(u64, Nanos)>,
    started: Nanos,
    over: bool,
    interrupted: bool,
    /// What a glance already brought of the world's agreement under way.
    seen: Option<Proposal>,
    /// Bytes of an iteration, and what was moved: since the start until the release, then since that.
    payload: f64,
    slices: Slices,
    recorded: u64,
    steady: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Releasing,
    Loading,
    Over,
}

impl<'a, G: Group> Watch<'a, G> {
    fn new(until: Until<'a, G>, now: Nanos, payload: f64) -> Self {
        let budget = match &until {
            Until::Canaries(_, budget) | Until::Elapsed(budget) => *budget,
        };
        Watch {
            until,
            state: State::Starting,
            iterations: 0,
            released: None,
            stopped: None,
            started: now,
            over: false,
            interrupted: false,
            seen: None,
            payload,
            slices: Slices::new(slice(budget)),
            recorded: 0,
            steady: true,
        }
    }

    /// Puts what was moved since the last boundary into its slices.
    fn keep(&mut self, now: Nanos) {
        let since = self.released.map_or(self.started, |(_, at)| at);
        let moved = (self.iterations - self.recorded) as f64 * self.payload;
        self.recorded = self.iterations;
        self.slices.add(now.since(since), moved);
    }

    /// The canaries start now: what was kept so far lies before that.
    fn release(&mut self, now: Nanos) {
        self.released = Some((self.iterations, now));
        self.slices = Slices::new(self.slices.width());
        self.state = State::Loading;
    }

    /// Lets the world's agreement advance, without waiting for it.
    fn glance(&mut self) -> Result<()> {
        if let (Until::Canaries(world, _), State::Releasing | State::Loading) = (&mut self.until, self.state)
            && self.seen.is_none()
        {
            self.seen = world.poll_agreement()?;
        }
        Ok(())
    }

    /// At a chunk's boundary. True when what was recorded so far lies before the canaries' release.
    fn look(&mut self, now: Nanos) -> Result<bool> {
        self.glance()?;
        if self.state != State::Over {
            self.keep(now);
        }
        let world = match &mut self.until {
            Until::Elapsed(limit) => {
                if self.released.is_none() {
                    self.release(now);
                    return Ok(true);
                }
                self.over = now.since(self.started) >= *limit;
                return Ok(false);
            }
            Until::Canaries(world, _) => world,
        };
        match self.state {
            // This rank's load has come up: the canaries may start.
            State::Starting => {
                self.steady = self.slices.steady();
                if self.steady || now.since(self.started).0 >= PATIENCE * self.slices.width().0 {
                    world.start_agreement([0; 4])?;
                    self.state = State::Releasing;
                }
                Ok(true)
            }
            State::Releasing => {
                if self.seen.take().is_none() {
                    return Ok(true);
                }
                world.start_agreement([0; 4])?;
                self.release(now);
                Ok(true)
            }
            State::Loading => {
                if let Some(agreed) = self.seen.take() {
                    self.stopped = Some((self.iterations, now));
                    self.interrupted = agreed[1] != 0;
                    self.over = true;
                    self.state = State::Over;
                }
                Ok(false)
            }
            State::Over => Ok(false),
        }
    }

    /// A rank under canaries must keep to their sequence; alone it may end at once.
    fn may_stop_itself(&self) -> bool {
        matches!(self.until, Until::Elapsed(_))
    }

    /// Sees the sequence through when a team mate saw the stop first.
    fn finish(&mut self, interrupted: bool) -> Result<()> {
        let Until::Canaries(world, _) = &mut self.until else { return Ok(()) };
        if self.state == State::Starting {
            world.start_agreement([0; 4])?;
            self.state = State::Releasing;
        }
        if self.state == State::Releasing {
            if self.seen.take().is_none() {
                world.wait_agreement()?;
            }
            world.start_agreement([0, u64::from(interrupted), 0, 0])?;
            self.state = State::Loading;
        }
        if self.state == State::Loading {
            let agreed = match self.seen.take() {
                Some(agreed) => agreed,
                None => world.wait_agreement()?,
            };
            self.interrupted |= agreed[1] != 0;
            self.state = State::Over;
        }
        Ok(())
    }

    /// Iterations and seconds between release and stop.
    fn window(&self, now: Nanos) -> (u64, f64) {
        let Some((first, from)) = self.released else { return (0, 0.0) };
        let (last, to) = self.stopped.unwrap_or((self.iterations, now));
        (last - first, to.since(from).as_secs_f64())
    }
}
