//! `tailback calibrate`: the load that does what a recorded run shows.

use std::path::PathBuf;

use clap::{Arg, Args};

use super::options::RunOptions;
use crate::calibration::{By, MOST_RUNS};
use crate::job::{CalibrationSelection, Request};
use crate::result::Command;
use crate::units;

/// Options of `tailback calibrate`.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
#[command(mut_args(without_unused))]
pub struct CalibrateOptions {
    /// A result whose canaries met a load that is to be made again: `run --congestors none --label wild`, or any load test
    #[arg(long, value_name = "FILE", help_heading = "Calibration")]
    like: PathBuf,

    /// Write the plan file here, for `run --plan` and `app --plan`; after every run, so that an interrupted search leaves what
    /// it found
    #[arg(long, value_name = "FILE", help_heading = "Calibration")]
    write: PathBuf,

    /// What is compared
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = "Calibration")]
    by: By,

    /// The most runs that the search may take, up to 20
    #[arg(long, value_name = "N", default_value_t = MOST_RUNS, help_heading = "Calibration")]
    runs: usize,

    /// Sizes of congestors' messages to choose from as well, e.g. 4KiB,64KiB [default: each congestor keeps the plan's]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::message, help_heading = "Calibration")]
    bytes: Vec<usize>,

    /// Keep the result of every run in this folder
    #[arg(long, value_name = "DIR", help_heading = "Calibration")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// Hides what is of a load test, and refused here with the reason.
fn without_unused(option: Arg) -> Arg {
    const UNUSED: [&str; 14] = [
        "preset",
        "load_fraction",
        "pair_with",
        "launches",
        "congestors_alone",
        "precision",
        "longest",
        "control",
        "no_control",
        "fail_if",
        "junit",
        "strict",
        "csv",
        "metrics",
    ];
    if UNUSED.contains(&option.get_id().as_str()) { option.hide(true) } else { option }
}

impl CalibrateOptions {
    /// What is asked for, as plain values.
    pub fn request(self) -> Result<Request, String> {
        let (roles, local, checks) = (&self.run.roles, &self.run.local, &self.run.checks);
        let refused = [
            ("--preset", self.run.plan.preset.is_some(), "what is measured is what the recorded run measured"),
            ("--load-fraction", !roles.load_fraction.is_empty(), "that is what is searched for"),
            ("--congestors-alone", roles.congestors_alone, "congestors are run beside canaries"),
            ("--congestors each", self.run.congestors.each().is_some(), "every congestor is run by itself anyway"),
            ("--pair-with", roles.pair_with.is_some(), "placements are those of the recorded run"),
            ("--launches", local.launches > 1, "the search runs many jobs as it is"),
            ("--precision", roles.precision.is_some(), "all runs have the same placements"),
            ("--control", local.control.is_some(), "a control is for `tailback run` with the plan that is found"),
            ("--fail-if", !checks.fail_if.is_empty(), "thresholds are for `tailback run` with the plan that is found"),
            ("--csv", self.run.common.output.csv.is_some(), "--keep DIR keeps the results of all runs"),
            (
                "--metrics",
                self.run.common.output.metrics.is_some(),
                "`tailback export` takes the results that --keep DIR keeps",
            ),
        ];
        if let Some((option, _, why)) = refused.into_iter().find(|(_, given, _)| *given) {
            return Err(format!("{option} is not for calibrate: {why}"));
        }
        if !(1..=MOST_RUNS).contains(&self.runs) {
            return Err(format!("--runs {}: choose up to {MOST_RUNS}", self.runs));
        }
        let mut sizes = self.bytes;
        sizes.sort_unstable();
        sizes.dedup();
        let selection = CalibrationSelection {
            like: self.like,
            by: self.by,
            runs: self.runs,
            sizes,
            write: self.write,
            keep: self.keep,
        };
        let request = self.run.request()?;
        Ok(Request { command: Command::Calibrate, calibration: Some(selection), ..request })
    }
}
