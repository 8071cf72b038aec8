//! The job as one rank sees it: its role, its groups, and how it is controlled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailback_transport::{Bootstrap, Group, Monitor, Nanos, Rank, Result, Transport};

use super::application::{SharedStarter, asleep};
use super::collect::Measured;
use super::{Phase, PhaseId};
use crate::backend::Pair;
use crate::kernel::{CLOCK_SEGMENT, CanaryVisitor, CongestorVisitor, Kernel, Ring, Shape, SharedClock};
use crate::layout::{Layout, Neighbours, Role, natural_ring, random_rings};
use crate::plan::{CanaryTest, Plan};
use crate::stats::Samples;

/// Hears of a phase and its budget when it begins.
pub type OnPhase = Arc<dyn Fn(&PhaseId, Nanos) + Send + Sync>;

/// Hears that a phase is over, when nobody measures any more.
pub type OnEnd = Arc<dyn Fn() + Send + Sync>;

/// How the outside follows and stops a run.
#[derive(Clone)]
pub struct Control {
    /// Where this rank is.
    pub monitor: Arc<Monitor>,
    /// Set by a signal handler when the user wants the job to end.
    pub interrupt: Arc<AtomicBool>,
    /// Called on every rank when a phase begins, with its budget.
    pub on_phase: OnPhase,
    /// Called on every rank when it is over, before what it measured is collected.
    pub on_end: OnEnd,
    /// What this run goes over, where the job has several: its phases say so.
    pub over: Option<String>,
    /// Which placement it is, from 1, and of how many, where there are several.
    pub placement: Option<(u32, u32)>,
    /// The shortest time for which load is looked at by itself.
    pub grain: Nanos,
    /// Starts the plan's application, where it has one.
    pub starter: Option<SharedStarter>,
}

/// [`Control::grain`] in real time: whatever is shorter tells more of the scheduler than of the load.
pub const REAL_GRAIN: Nanos = Nanos(20_000_000);
/// The same on virtual time, where nothing but the network takes any.
pub const VIRTUAL_GRAIN: Nanos = Nanos(1_000);

/// Hears on rank 0, between phases, of all that was measured so far.
pub type Keep<'a> = &'a dyn Fn(&[Measured]);

impl Control {
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Where samples go: in real time, into memory that is all there, so that none has to wait for it.
    pub(super) fn samples(&self, batches: usize) -> Samples {
        if self.grain < REAL_GRAIN { Samples::growing(batches) } else { Samples::new() }
    }

    /// A phase that is measured begins.
    pub(super) fn enter(&self, phase: &PhaseId, budget: Nanos) {
        self.step(phase);
        (self.on_phase)(phase, budget);
    }

    /// A step of a phase begins, or one before or after all of them.
    pub(super) fn step(&self, phase: &PhaseId) {
        self.monitor.enter(&phase.to_string());
    }

    /// A phase of this run.
    pub(super) fn phase(&self, state: Option<Phase>, test: impl Into<String>) -> PhaseId {
        PhaseId { state, test: test.into(), over: self.over.clone(), placement: self.placement }
    }
}

/// The ranks that work together on one kernel.
pub(super) struct Team<G> {
    pub group: G,
    /// The size of the largest team of this role, which decides counts that all teams share.
    pub largest: usize,
}

/// A group on the canaries' network, and one on the congestors'.
pub(super) type CanaryGroup<P> = <<P as Pair>::Canary as Transport>::Group;
pub(super) type CongestorGroup<P> = <<P as Pair>::Congestor as Transport>::Group;

/// A run in progress on one rank.
pub struct Job<'a, B: Bootstrap, P: Pair> {
    pub(super) bootstrap: &'a mut B,
    pub(super) plan: &'a Plan,
    pub(super) control: Control,
    pub(super) role: Role,
    /// Everyone: release, stop, and barriers between phases.
    pub(super) world: CanaryGroup<P>,
    /// Every canary of every slice, on canaries.
    pub(super) canaries: Option<CanaryGroup<P>>,
    /// Their clock, where they have a schedule.
    pub(super) clock: SharedClock,
    /// This rank's team, if it is a canary.
    pub(super) canary_team: Option<Team<CanaryGroup<P>>>,
    /// This rank's team, if it is a congestor.
    pub(super) congestor_team: Option<Team<CongestorGroup<P>>>,
    /// Which of the plan's congestors have nodes.
    pub(super) present: Vec<bool>,
    /// Why the application gave no figure, on the rank that started it.
    pub(super) trouble: Option<String>,
    /// Who keeps what is measured, should the job not come to its end.
    pub(super) keep: Option<Keep<'a>>,
    seed: u64,
    slice: usize,
}

impl<'a, B: Bootstrap, P: Pair> Job<'a, B, P> {
    /// Makes the groups. Collective over the job.
    pub fn new(
        bootstrap: &'a mut B,
        networks: &mut P,
        plan: &'a Plan,
        layout: &Layout,
        seed: u64,
        control: Control,
    ) -> Result<Self> {
        control.step(&control.phase(None, "connecting"));
        let me = bootstrap.rank();
        let role = layout.role(me);
        let world = networks.canary().group(&bootstrap.everyone(), 0)?;
        let mut canaries = match role {
            Role::Canary => Some(networks.canary().group(&layout.canaries(), CLOCK_SEGMENT)?),
            _ => None,
        };
        let clock = match &mut canaries {
            Some(canaries) if plan.pace_s.is_some() => SharedClock::compare(canaries)?,
            _ => SharedClock::default(),
        };
        let members = layout.team(me);
        let (largest, bytes) = (layout.largest_team(role), segment(plan, role, members.len()));
        let canary_team = match role {
            Role::Canary => Some(Team { group: networks.canary().group(&members, bytes)?, largest }),
            _ => None,
        };
        let congestor_team = match role {
            Role::Congestor(_) => Some(Team { group: networks.congestor().group(&members, bytes)?, largest }),
            _ => None,
        };
        let slice = layout.nodes().slice_of(me);
        let present = (0..plan.congestors.len()).map(|kind| layout.largest_team(Role::Congestor(kind)) > 1).collect();
        Ok(Job {
            bootstrap,
            plan,
            control,
            role,
            world,
            canaries,
            clock,
            canary_team,
            congestor_team,
            present,
            trouble: None,
            keep: None,
            seed,
            slice,
        })
    }

    /// The same, and from now on `keep` hears of what was measured.
    #[must_use]
    pub fn kept_by(self, keep: Keep<'a>) -> Self {
        Job { keep: Some(keep), ..self }
    }

    /// This rank's neighbours in every ring of a test.
    pub(super) fn rings(&self, test: &CanaryTest) -> Vec<Neighbours> {
        let Some(team) = &self.canary_team else { return Vec::new() };
        let (size, me) = (team.group.size(), team.group.rank());
        match test.kernel.info().ring {
            Ring::Random => random_rings(self.seed, self.slice, size, me, test.counts.rings as usize),
            Ring::Natural | Ring::None => vec![natural_ring(size, me); test.counts.rings as usize],
        }
    }

    /// The seed of this placement.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Everyone meets; true when anyone was interrupted.
    pub(super) fn meet(&mut self, interrupted: bool) -> Result<bool> {
        let interrupted = u64::from(interrupted || self.control.interrupted());
        self.control.monitor.wait();
        self.world.start_agreement([0, interrupted, 0, 0])?;
        let agreed = match self.plan.application {
            Some(_) => asleep(&mut self.world)?,
            None => self.world.wait_agreement()?,
        };
        self.control.monitor.tick();
        Ok(agreed[1] != 0)
    }

    /// Whether this rank is the one that starts the application: the first canary.
    pub(super) fn starts_application(&self) -> bool {
        self.canaries.as_ref().is_some_and(|canaries| canaries.rank() == Rank(0))
    }

    /// Ends the job in order: nobody leaves while another may still need an answer. Rank 0 learns what kept the
    /// application from a figure, if anything did.
    pub fn finish(mut self) -> Result<Option<String>> {
        self.control.step(&self.control.phase(None, "finishing"));
        self.world.barrier()?;
        let mut trouble = None;
        if self.plan.application.is_some() {
            let mine = self.trouble.take().unwrap_or_default().into_bytes();
            let told = self.bootstrap.reduce(mine, &mut |mine, theirs| {
                mine.extend(theirs);
                Ok(())
            })?;
            let text = told.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            trouble = text.filter(|text| !text.is_empty());
        }
        self.bootstrap.barrier()?;
        Ok(trouble)
    }
}

/// Enough memory for every kernel that a rank of this role runs.
fn segment(plan: &Plan, role: Role, size: usize) -> usize {
    struct Segment(Shape, usize);
    impl CanaryVisitor for Segment {
        type Output = usize;
        fn visit<K: Kernel>(self) -> usize {
            K::segment(self.0, self.1)
        }
    }
    impl CongestorVisitor for Segment {
        type Output = usize;
        fn visit<K: Kernel>(self) -> usize {
            K::segment(self.0, self.1)
        }
    }
    match role {
        Role::Idle => 0,
        Role::Congestor(kind) => {
            let test = &plan.congestors[kind];
            test.kernel.visit(Segment(test.counts.shape(), size))
        }
        Role::Canary => {
            let of = |test: &CanaryTest| test.kernel.visit(Segment(test.counts.shape(), size));
            plan.canaries.iter().map(of).max().unwrap_or(0)
        }
    }
}
