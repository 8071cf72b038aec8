//! An opened network as everything above the timed loops sees it.
//!
//! [`OpenNetwork`] is asked for a whole phase or a whole study at a time, so it may be a trait object and what uses it is
//! compiled once. [`Opened`] is the only implementation: from here down, loops and kernels are compiled for each transport.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Capabilities, Description, Group, Rank, Result, Transport};

use super::EncodedTally;
use super::canary::{CanaryPhase, CanaryRun, Finished};
use super::congestor::{CongestorPhase, CongestorRun, Until};
use super::pace::Schedule;
use crate::kernel::{CLOCK_SEGMENT, SharedClock};
use crate::models::{Repeated, StudyJob, beff, contention, hpcc, map, maxrate};

/// Measures a graph of messages that compete; `number` tells graphs apart. Nothing when the user interrupts.
pub type MeasureGraph<'a> = Box<dyn FnMut(&contention::Graph, usize) -> Result<Option<contention::Measured>> + 'a>;

/// A network under test, opened for one rank of the job.
pub trait OpenNetwork {
    /// As [`Transport::capabilities`].
    fn capabilities(&self) -> Capabilities;

    /// As [`Transport::describe`].
    fn describe(&self) -> Description;

    /// As [`Transport::try_one_sided`].
    fn try_one_sided(&mut self) -> Result<()>;

    /// Makes this rank's groups for one placement. Collective over the members of each.
    fn join(&mut self, membership: &Membership) -> Result<()>;

    /// Drops them.
    fn leave(&mut self);

    /// The group of everyone, for release, stop, and barriers between phases.
    fn world(&mut self) -> &mut dyn Group;

    /// Compares this rank's clock with the first one's. Collective over the world, which has joined with a clock.
    fn compare_clocks(&mut self) -> Result<SharedClock>;

    /// Measures a canary with this rank's team, in step with all canaries.
    fn measure(&mut self, phase: CanaryPhase<'_>) -> Result<Finished>;

    /// Loads the network with this rank's team. Where load ends with the canaries' parts they are met in `world`, which is on
    /// another network, or else in this one's own. It gives the load during each complete part, and whether the user cut it
    /// short.
    fn load(&mut self, phase: CongestorPhase<'_>, world: Option<&mut dyn Group>) -> Result<(Vec<EncodedTally>, bool)>;

    /// See [`maxrate::measure`].
    fn maxrate(&mut self, job: StudyJob<'_>, settings: &maxrate::Settings) -> Result<Repeated<maxrate::Found>>;

    /// See [`contention::Bench`].
    fn contention<'a>(&mut self, job: StudyJob<'a>, counts: contention::Counts) -> Result<MeasureGraph<'a>>
    where
        Self: 'a;

    /// See [`beff::measure`].
    fn beff(&mut self, job: StudyJob<'_>, settings: &beff::Settings) -> Result<Repeated<Option<beff::Beff>>>;

    /// See [`map::measure`].
    fn map(&mut self, job: StudyJob<'_>, task: map::Task<'_>, tell: &mut dyn FnMut(map::Progress)) -> Result<usize>;

    /// See [`hpcc::measure`].
    fn hpcc(&mut self, job: StudyJob<'_>, settings: &hpcc::Settings) -> Result<Repeated<hpcc::Hpcc>>;

    /// See [`hpcc::estimate`].
    fn hpcc_estimate(&mut self, job: StudyJob<'_>, settings: &hpcc::Settings) -> Result<hpcc::Expected>;
}

/// What is done with open networks, by every rank.
pub type Body<'a, O> = &'a dyn Fn(&mut dyn Bootstrap, &mut OpenPair<'_>) -> Result<O>;

/// The canaries' network, and the congestors' where it is another.
pub struct OpenPair<'a> {
    /// The canaries', on which everyone meets.
    pub canaries: &'a mut dyn OpenNetwork,
    /// The congestors' own.
    pub congestors: Option<&'a mut dyn OpenNetwork>,
}

impl<'a> OpenPair<'a> {
    /// What congestors use.
    pub fn congestors(&mut self) -> &mut (dyn OpenNetwork + 'a) {
        match &mut self.congestors {
            Some(own) => *own,
            None => self.canaries,
        }
    }
}

/// The groups that a rank makes on a network for one placement.
#[derive(Default)]
pub struct Membership {
    /// Everyone, where they meet on this network, and whether they need a common clock.
    pub world: Option<(Arc<[Rank]>, bool)>,
    /// All canaries, if this rank is one, and whether they need a common clock.
    pub canaries: Option<(Vec<Rank>, bool)>,
    /// The ranks that work on a kernel with this one, and the bytes of their segments.
    pub team: Option<(Vec<Rank>, usize)>,
}

/// A transport with the groups of the placement at hand.
pub struct Opened<T: Transport> {
    // Groups go before what they are made of.
    world: Option<T::Group>,
    pub(super) canaries: Option<T::Group>,
    team: Option<T::Group>,
    clock: SharedClock,
    transport: T,
}

impl<T: Transport> Opened<T> {
    /// Without groups.
    pub fn new(transport: T) -> Self {
        Opened { world: None, canaries: None, team: None, clock: SharedClock::default(), transport }
    }
}

const JOINED: &str = "this rank has joined";

impl<T: Transport> OpenNetwork for Opened<T> {
    fn capabilities(&self) -> Capabilities {
        self.transport.capabilities()
    }

    fn describe(&self) -> Description {
        self.transport.describe()
    }

    fn try_one_sided(&mut self) -> Result<()> {
        self.transport.try_one_sided()
    }

    fn join(&mut self, membership: &Membership) -> Result<()> {
        if let Some((everyone, clock)) = &membership.world {
            let bytes = if *clock { CLOCK_SEGMENT } else { 0 };
            self.world = Some(self.transport.group(everyone, bytes)?);
        }
        if let Some((members, clock)) = &membership.canaries {
            let canaries = self.canaries.insert(self.transport.group(members, CLOCK_SEGMENT)?);
            if *clock {
                self.clock = SharedClock::compare(canaries)?;
            }
        }
        if let Some((members, bytes)) = &membership.team {
            self.team = Some(self.transport.group(members, *bytes)?);
        }
        Ok(())
    }

    fn leave(&mut self) {
        (self.world, self.canaries, self.team) = (None, None, None);
    }

    fn world(&mut self) -> &mut dyn Group {
        self.world.as_mut().expect(JOINED)
    }

    fn compare_clocks(&mut self) -> Result<SharedClock> {
        SharedClock::compare(self.world.as_mut().expect(JOINED))
    }

    fn measure(&mut self, phase: CanaryPhase<'_>) -> Result<Finished> {
        let schedule = phase.pace.map(|pace| Schedule::new(self.clock, pace, phase.seed));
        let (team, canaries) = (self.team.as_mut().expect(JOINED), self.canaries.as_mut().expect(JOINED));
        let kernel = phase.test.kernel;
        kernel.visit(CanaryRun { phase, team, canaries, schedule })
    }

    fn load(&mut self, phase: CongestorPhase<'_>, world: Option<&mut dyn Group>) -> Result<(Vec<EncodedTally>, bool)> {
        let mut phase = phase;
        if let (Some(bursts), Some(world), Some(team)) = (&mut phase.bursts, &world, &self.team) {
            *bursts = bursts.on_clock(world.now(), team.now());
        }
        let until = match (phase.parts, world) {
            (None, _) => Until::Elapsed,
            (Some(parts), Some(world)) => Until::Canaries { world, parts },
            (Some(parts), None) => Until::Canaries { world: self.world.as_mut().expect(JOINED), parts },
        };
        let kernel = phase.test.kernel;
        kernel.visit(CongestorRun { team: self.team.as_mut().expect(JOINED), phase, until })
    }

    fn maxrate(&mut self, job: StudyJob<'_>, settings: &maxrate::Settings) -> Result<Repeated<maxrate::Found>> {
        maxrate::measure(job, &mut self.transport, settings)
    }

    fn contention<'a>(&mut self, job: StudyJob<'a>, counts: contention::Counts) -> Result<MeasureGraph<'a>>
    where
        Self: 'a,
    {
        let mut bench = contention::Bench::new(job, &mut self.transport, counts)?;
        Ok(Box::new(move |graph, number| bench.graph(graph, number)))
    }

    fn beff(&mut self, job: StudyJob<'_>, settings: &beff::Settings) -> Result<Repeated<Option<beff::Beff>>> {
        beff::measure(job, &mut self.transport, settings)
    }

    fn map(&mut self, job: StudyJob<'_>, task: map::Task<'_>, tell: &mut dyn FnMut(map::Progress)) -> Result<usize> {
        map::measure(job, &mut self.transport, task, tell)
    }

    fn hpcc(&mut self, job: StudyJob<'_>, settings: &hpcc::Settings) -> Result<Repeated<hpcc::Hpcc>> {
        hpcc::measure(job, &mut self.transport, settings)
    }

    fn hpcc_estimate(&mut self, job: StudyJob<'_>, settings: &hpcc::Settings) -> Result<hpcc::Expected> {
        hpcc::estimate(job, &mut self.transport, settings)
    }
}
