//! A recorded run that a calibration is to come close to, and the plan that it gives.

use std::path::PathBuf;

use crate::calibration::{By, Observed};
use crate::lab::LabSpec;
use crate::plan::{Patch, Plan};
use crate::result::{self, ResultFile};

/// The search that is wanted.
#[derive(Clone, Debug)]
pub struct CalibrationSelection {
    /// The recorded run.
    pub like: PathBuf,
    /// What is compared.
    pub by: By,
    /// The most runs.
    pub runs: usize,
    /// Sizes of messages to choose from, ascending; none: each congestor keeps its own.
    pub sizes: Vec<usize>,
    /// Where the plan file goes.
    pub write: PathBuf,
    /// Where the result of every run goes.
    pub keep: Option<PathBuf>,
}

impl CalibrationSelection {
    /// The recorded run, where it is one that can be compared with.
    pub(crate) fn recorded(&self) -> Result<ResultFile, String> {
        let file = result::read(&self.like).map_err(|error| error.to_string())?;
        let refused = |why: &str| Err(format!("{}: {why}", self.like.display()));
        if let Some(program) = &file.imported {
            return refused(&format!(
                "it was imported from {program}, which keeps no samples: record one by `tailback run`"
            ));
        }
        if !file.command.is_load_test() {
            let word = file.command.word();
            return refused(&format!("it is of `tailback {word}`: record one by `tailback run --congestors none`"));
        }
        if !file.plan.canaries.iter().any(|test| !test.kernel.is_application()) {
            return refused("it measures a program alone: canaries are compared");
        }
        Observed::of(&file, self.by).map_err(|why| format!("{}: {why}", self.like.display()))?;
        Ok(file)
    }

    /// The plan of the search: what the recorded run measured, beside the congestors of its preset, with `patches` over it.
    pub(crate) fn plan(&self, patches: &[Patch]) -> Result<Plan, String> {
        let recorded = self.recorded()?.plan;
        let preset = recorded.preset.plan();
        // Where all nodes measured, others are to load now.
        let all_measured = recorded.canary_fraction == 1.0;
        let mut plan = Plan {
            congestors: preset.congestors,
            canary_fraction: if all_measured { preset.canary_fraction } else { recorded.canary_fraction },
            load_fraction: 1.0,
            load_fractions: Vec::new(),
            congestors_alone: false,
            each_congestor: false,
            each_own_share: false,
            ring_histograms: false,
            precision: None,
            application: None,
            ..recorded
        };
        plan.canaries.retain(|test| !test.kernel.is_application());
        let plan = plan.patched(patches).map_err(|error| error.to_string())?;
        if plan.congestors.is_empty() {
            return Err("calibrate chooses among congestors: name some with --congestors".into());
        }
        for &bytes in &self.sizes {
            let mut sized = plan.clone();
            sized.congestors.iter_mut().for_each(|test| test.counts.bytes = bytes);
            sized.patched(&[]).map_err(|error| format!("--bytes: {error}"))?;
        }
        Ok(plan)
    }

    /// The shape of the emulated cluster it was recorded in, if it was.
    pub(crate) fn lab(&self) -> Option<LabSpec> {
        Some(self.recorded().ok()?.lab?.spec)
    }

    /// As the recorded run is called.
    pub(crate) fn name(&self, file: &ResultFile) -> String {
        let label = file.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        format!("{}{label}", self.like.display())
    }
}
