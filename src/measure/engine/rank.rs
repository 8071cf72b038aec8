//! The job as one rank sees it: its role, its groups, and how it is controlled.

use tailback_transport::{Bootstrap, Rank, Result};

use super::application::asleep;
use super::collect::Measured;
use super::control::Control;
use super::network::{Membership, OpenNetwork, OpenPair};
use crate::kernel::{Kernel, KernelVisitor, Ring, Sizes};
use crate::layout::{Layout, Neighbours, Role, natural_ring, random_rings};
use crate::plan::{CanaryTest, Plan};

/// Hears on rank 0, between phases, of all that was measured so far.
pub type Keep<'a> = &'a dyn Fn(&[Measured]);

/// A run in progress on one rank.
pub struct Job<'a> {
    pub(super) bootstrap: &'a mut dyn Bootstrap,
    /// The canaries' network, on which everyone meets.
    pub(super) network: &'a mut dyn OpenNetwork,
    /// The congestors', where it is another.
    pub(super) congestor_network: Option<&'a mut dyn OpenNetwork>,
    pub(super) plan: &'a Plan,
    pub(super) control: Control,
    pub(super) role: Role,
    /// The size of this rank's team and its place in it.
    team: (usize, Rank),
    /// The size of the largest team of this role, which decides counts that all teams share.
    pub(super) largest_team: usize,
    /// Whether this rank is the first canary, which starts the application.
    pub(super) starts_application: bool,
    /// Which of the plan's congestors have nodes.
    pub(super) present: Vec<bool>,
    /// Why the application gave no figure, on the rank that started it.
    pub(super) trouble: Option<String>,
    /// Who keeps what is measured, should the job not come to its end.
    pub(super) keep: Option<Keep<'a>>,
    seed: u64,
    slice: usize,
}

impl<'a> Job<'a> {
    /// Makes the groups. Collective over the job.
    pub fn new(
        bootstrap: &'a mut dyn Bootstrap,
        networks: &'a mut OpenPair<'_>,
        plan: &'a Plan,
        layout: &Layout,
        seed: u64,
        control: Control,
    ) -> Result<Self> {
        control.step(&control.phase(None, "connecting"));
        let me = bootstrap.rank();
        let role = layout.role(me);
        let members = layout.team(me);
        let place = members.iter().position(|member| *member == me).unwrap_or(0);
        let team = (members.len(), Rank::from(place));
        let bytes = segment(plan, role, members.len());
        let canaries = matches!(role, Role::Canary).then(|| layout.canaries());
        let starts_application = canaries.as_ref().is_some_and(|canaries| canaries[0] == me);
        let mut own = Membership {
            world: Some((bootstrap.everyone(), plan.burst.is_some())),
            canaries: canaries
                .map(|canaries| (canaries, plan.canaries.iter().any(|test| plan.pace_of(test).is_some()))),
            team: (role != Role::Idle).then_some((members, bytes)),
        };
        let network: &mut dyn OpenNetwork = &mut *networks.canaries;
        let mut congestor_network: Option<&mut dyn OpenNetwork> = None;
        if let Some(other) = &mut networks.congestors {
            congestor_network = Some(&mut **other);
        }
        let elsewhere = match congestor_network {
            Some(_) if matches!(role, Role::Congestor(_)) => own.team.take(),
            _ => None,
        };
        network.join(&own)?;
        if let (Some(other), Some(_)) = (&mut congestor_network, &elsewhere) {
            other.join(&Membership { team: elsewhere, ..Membership::default() })?;
        }
        let present = (0..plan.congestors.len()).map(|kind| layout.largest_team(Role::Congestor(kind)) > 1).collect();
        Ok(Job {
            bootstrap,
            network,
            congestor_network,
            plan,
            control,
            role,
            team,
            largest_team: layout.largest_team(role),
            starts_application,
            present,
            trouble: None,
            keep: None,
            seed,
            slice: layout.nodes().slice_of(me),
        })
    }

    /// The same, and from now on `keep` hears of what was measured.
    #[must_use]
    pub fn kept_by(self, keep: Keep<'a>) -> Self {
        Job { keep: Some(keep), ..self }
    }

    /// This rank's neighbours in every ring of a test.
    pub(super) fn rings(&self, test: &CanaryTest) -> Vec<Neighbours> {
        let (size, me) = self.team;
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
        let world = self.network.world();
        world.start_agreement([0, interrupted, 0, 0])?;
        let agreed = match self.plan.application {
            Some(_) => asleep(world)?,
            None => world.wait_agreement()?,
        };
        self.control.monitor.tick();
        Ok(agreed[1] != 0)
    }

    /// Ends the job in order: nobody leaves while another may still need an answer. Rank 0 learns what kept the
    /// application from a figure, if anything did.
    pub fn finish(mut self) -> Result<Option<String>> {
        self.control.step(&self.control.phase(None, "finishing"));
        self.network.world().barrier()?;
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
        self.network.leave();
        if let Some(other) = self.congestor_network {
            other.leave();
        }
        Ok(trouble)
    }
}

/// Enough memory for every kernel that a rank of this role runs.
fn segment(plan: &Plan, role: Role, size: usize) -> usize {
    struct Segment(Sizes, usize);
    impl KernelVisitor for Segment {
        type Output = usize;
        fn visit<K: Kernel>(self) -> usize {
            K::segment(self.0, self.1)
        }
    }
    match role {
        Role::Idle => 0,
        Role::Congestor(kind) => {
            let test = &plan.congestors[kind];
            test.kernel.visit(Segment(test.counts.sizes(), size))
        }
        Role::Canary => {
            let of = |test: &CanaryTest| test.kernel.visit(Segment(test.counts.sizes(), size));
            plan.canaries.iter().map(of).max().unwrap_or(0)
        }
    }
}
