//! The congestor's loop: load that starts before the canary measures, ends after it, and never pauses in between.

use tailback_transport::{Group, Nanos, Proposal, Result};

use super::canary::Recorder;
use super::collect::Load;
use super::job::{Control, Team};
use super::lockstep::{Ballot, Lockstep, Next, Timing};
use crate::kernel::{CongestorVisitor, Kernel};
use crate::layout::natural_ring;
use crate::plan::CongestorTest;

/// How often a congestor group looks whether to stop.
const CHUNK: Nanos = Nanos(10_000_000);

/// How long a congestor runs.
pub(super) enum Until<'a, G: Group> {
    /// Until the canaries have measured: the world agrees first on the release, then on the stop.
    Canaries(&'a mut G),
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
        let mut watch = Watch::new(until, group.now());
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
            let agreed = lockstep.agree(group, Ballot { stop, interrupted })?;
            if agreed.stop {
                watch.finish(interrupted)?;
                let (iterations, seconds) = watch.window(group.now());
                let bytes = iterations * kernel.payload() as u64;
                let load = Load { ranks: 1, bytes, seconds, samples: recorder.samples.flatten() };
                return Ok((load, agreed.interrupted || watch.interrupted));
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
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Releasing,
    Loading,
    Over,
}

impl<'a, G: Group> Watch<'a, G> {
    fn new(until: Until<'a, G>, now: Nanos) -> Self {
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
        }
    }

    /// Lets the world's agreement advance, without waiting for it.
    fn glance(&mut self) -> Result<()> {
        if let (Until::Canaries(world), State::Releasing | State::Loading) = (&mut self.until, self.state)
            && self.seen.is_none()
        {
            self.seen = world.poll_agreement()?;
        }
        Ok(())
    }

    /// At a chunk's boundary. True when what was recorded so far lies before the canaries' release.
    fn look(&mut self, now: Nanos) -> Result<bool> {
        self.glance()?;
        let world = match &mut self.until {
            Until::Elapsed(limit) => {
                if self.released.is_none() {
                    self.released = Some((self.iterations, now));
                    self.state = State::Loading;
                    return Ok(true);
                }
                self.over = now.since(self.started) >= *limit;
                return Ok(false);
            }
            Until::Canaries(world) => world,
        };
        match self.state {
            // The first chunk is through: this rank loads the network, the canaries may start.
            State::Starting => {
                world.start_agreement([0; 4])?;
                self.state = State::Releasing;
                Ok(true)
            }
            State::Releasing => {
                if self.seen.take().is_none() {
                    return Ok(true);
                }
                world.start_agreement([0; 4])?;
                self.released = Some((self.iterations, now));
                self.state = State::Loading;
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
        let Until::Canaries(world) = &mut self.until else { return Ok(()) };
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
