//! A program of the user's as a canary: what is started, by which launcher, and what is read off it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlanError;
use crate::kernel::Canary;

/// The unit of a wall time.
pub const SECONDS: &str = "s";

/// Processes of a program on a node: each is a line in a file for its launcher.
const MOST_PER_NODE: usize = 10_000;

/// What starts the processes of an application on the victims' hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// Slurm inside an allocation, else Open MPI or MPICH, as `mpirun --version` says
    #[default]
    Auto,
    /// mpirun of Open MPI
    Openmpi,
    /// mpiexec.hydra of MPICH, and of what is built on it
    Mpich,
    /// srun, inside an allocation
    Slurm,
    /// CMD as it is, on the first victim; hosts are in its environment
    None,
}

/// Which figures of an application are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Small ones: a time
    #[default]
    Less,
    /// Large ones: a rate
    More,
}

impl Better {
    /// The canary that an application with such a figure is.
    pub fn canary(self) -> Canary {
        match self {
            Better::Less => Canary::App,
            Better::More => Canary::AppRate,
        }
    }
}

/// An application that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Its words, before {hosts} and the like are replaced.
    pub command: Vec<String>,
    /// How tables call it.
    pub name: String,
    /// What starts its processes.
    pub launcher: Launcher,
    /// Its processes on each victim node; absent: as many as Tailback has ranks there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_node: Option<usize>,
    /// A regular expression whose only group is the figure in its output; absent: its wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The unit of the figure.
    pub unit: String,
    /// The longest that a repetition may take, in seconds.
    pub limit_s: f64,
    /// Repetitions on each placement that are not measured.
    pub warm_up: u32,
    /// Whether its processes have the idle-poll shim of the emulated cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle_shim: bool,
}

impl Application {
    /// The row title of the tables.
    pub fn title(&self) -> String {
        format!("{} {}", Canary::App.info().title, self.name)
    }

    /// The longest that a repetition may take.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.limit_s)
    }

    /// Whether its figure is its wall time.
    pub fn is_timed(&self) -> bool {
        self.figure.is_none()
    }

    pub(super) fn validate(&self) -> Result<(), PlanError> {
        let invalid = |detail: String| Err(PlanError::Invalid(detail));
        if self.command.iter().all(|word| word.trim().is_empty()) {
            return invalid("the application has no command: give it behind --".into());
        }
        if let Some(processes) = self.per_node.filter(|processes| !(1..=MOST_PER_NODE).contains(processes)) {
            return invalid(format!("invalid --per-node {processes}: expected 1 to {MOST_PER_NODE}"));
        }
        if !(self.limit_s >= 0.1 && self.limit_s <= 604_800.0) {
            return invalid(format!("invalid limit {} s: expected 100 ms to a week", self.limit_s));
        }
        if self.warm_up > 100 {
            return invalid(format!("invalid --warm-up {}: expected up to 100", self.warm_up));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Patch, Plan, Preset};

    fn application() -> Application {
        Application {
            command: vec!["lmp".into()],
            name: "lmp".into(),
            launcher: Launcher::Auto,
            per_node: None,
            figure: None,
            unit: "s".into(),
            limit_s: 600.0,
            warm_up: 1,
            idle_shim: false,
        }
    }

    fn plan(application: Application) -> Result<Plan, String> {
        let patch =
            Patch { application: Some((application, Better::Less)), canaries: Some(vec![]), ..Patch::default() };
        Plan::resolve(Preset::Quick, &[patch]).map_err(|error| error.to_string())
    }

    #[test]
    fn an_application_is_the_first_canary_and_has_a_block_for_itself() {
        let plan = plan(application()).unwrap();
        let keys: Vec<&str> = plan.canaries.iter().map(|test| test.kernel.info().key).collect();
        assert_eq!(keys, ["app"]);
        assert_eq!(plan.longest_block_s(&plan.canaries[0]), 600.0);
        assert_eq!(plan.title(&plan.canaries[0]), "Application lmp");
    }

    #[test]
    fn canaries_beside_it_keep_their_budget() {
        let patch = Patch {
            application: Some((application(), Better::More)),
            canaries: Some(vec![Canary::Lat]),
            ..Patch::default()
        };
        let plan = Plan::resolve(Preset::Quick, &[patch]).unwrap();
        assert_eq!(plan.canaries.iter().map(|of| of.kernel).collect::<Vec<_>>(), [Canary::AppRate, Canary::Lat]);
        assert_eq!(plan.longest_block_s(&plan.canaries[1]), plan.block_s());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let with = |change: fn(&mut Application)| {
            let mut of = application();
            change(&mut of);
            plan(of).unwrap_err()
        };
        assert!(with(|of| of.command.clear()).contains("no command"));
        for of in [with(|of| of.per_node = Some(0)), with(|of| of.per_node = Some(4_000_000_000))] {
            assert!(of.starts_with("invalid --per-node") && of.ends_with("expected 1 to 10000"), "{of}");
        }
        assert!(with(|of| of.limit_s = 0.0).contains("limit 0 s"));
        let bare = Patch { canaries: Some(vec![Canary::App]), ..Patch::default() };
        let refused = Plan::resolve(Preset::Quick, &[bare]).unwrap_err().to_string();
        assert!(refused.contains("`tailback app -- CMD`"), "{refused}");
    }
}
