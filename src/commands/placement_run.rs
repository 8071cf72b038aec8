//! One run on one placement: the plan over one network, from groups to collected phases.

use tailback_transport::{Bootstrap, Description, Error, Nanos, Operation, Result};

use super::request::Decision;
use crate::engine::{self, Control, Job, Measured, OpenPair};
use crate::kernel::Info;
use crate::layout::Layout;
use crate::plan::Plan;
use crate::result::Command;

/// Hears on rank 0 of the canaries' network, the congestors', and all that was measured so far.
pub(super) type KeepRun<'a> = &'a dyn Fn(&Description, &Description, &[Measured]);

/// The plan over one network.
pub(super) struct PlacementRun<'a> {
    pub decision: &'a Decision,
    /// The decision's, with the congestors of this run.
    pub plan: &'a Plan,
    pub layout: &'a Layout,
    pub seed: u64,
    pub control: Control,
    /// Who keeps what is measured, should the job not come to its end.
    pub keep: Option<KeepRun<'a>>,
}

/// What a run left.
pub(super) struct Outcome {
    /// Of the canaries' network, and of the congestors'.
    pub description: Description,
    pub congestors: Description,
    /// On rank 0, its complete phases.
    pub phases: Vec<Measured>,
    /// Whether the user cut it short, or the application did; the same on every rank.
    pub interrupted: bool,
    /// On rank 0, why the application did.
    pub trouble: Option<String>,
}

impl PlacementRun<'_> {
    /// Does it, as one rank. Collective over the job.
    pub(super) fn measure(&self, bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>) -> Result<Outcome> {
        let Decision { command, duration_s, .. } = self.decision;
        let (canaries, congestors) = self.decision.kernels(self.plan);
        if is_one_sided(&canaries) {
            networks.canaries.try_one_sided()?;
        }
        if is_one_sided(&congestors) {
            networks.congestors().try_one_sided()?;
        }
        let early = (networks.canaries.describe(), networks.congestors().describe());
        let keep = |measured: &[Measured]| {
            if let Some(keep) = self.keep {
                keep(&early.0, &early.1, measured);
            }
        };
        let job = Job::new(bootstrap, networks, self.plan, self.layout, self.seed, self.control.clone())?;
        let mut job = job.kept_by(&keep);
        let (phases, interrupted) = match command {
            Command::Run | Command::App => engine::load_test(&mut job)?,
            Command::Calibrate => engine::under_load(&mut job)?,
            Command::Network => engine::network_test(&mut job)?,
            Command::Congest => engine::congest(&mut job, Nanos((duration_s * 1e9) as u64))?,
            study => return Err(Error::Setup(format!("{study:?} is a study and has no plan"))),
        };
        let trouble = job.finish()?;
        // At the end: what grew with the need, such as connections, is then known.
        let (description, congestors) = (networks.canaries.describe(), networks.congestors().describe());
        Ok(Outcome { description, congestors, phases, interrupted, trouble })
    }
}

fn is_one_sided(kernels: &[Info]) -> bool {
    kernels.iter().flat_map(|info| info.needs).any(|operation| matches!(operation, Operation::Put | Operation::Get))
}
