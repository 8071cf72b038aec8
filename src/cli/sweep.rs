//! `tailback sweep`: the load test at several values of a key of its plan, and the curves that they make.

use std::path::PathBuf;

use clap::{Arg, Args};

use super::options::RunOptions;
use crate::analysis::threshold::Threshold;
use crate::job::Request;
use crate::plan::Swept;
use crate::result::Command;
use crate::units;

/// Options of `tailback sweep`.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
#[command(mut_args(without_unused))]
pub struct SweepOptions {
    /// A key and its values, one or two of them: congestor.rate=12.5%..100%/8 (intensity: the part of what congestors reach at
    /// full rate), load-fraction, canary-fraction, congestors=a2a,incast,a2a+incast, pace, protocol, transport, nodes and
    /// ranks-per-node (the first so many of the job's; the others stay idle), or a setting as for --set, e.g.
    /// lat.bytes=8,1KiB,64KiB; of fractions also LOW..HIGH/COUNT
    #[arg(value_name = "KEY=VALUES")]
    keys: Vec<Swept>,

    /// Find where along the key a condition begins to hold, e.g. 'lat.time-p90.impact > 2'; repeatable, a condition is written
    /// as for --fail-if
    #[arg(long, value_name = "CONDITION", help_heading = "Thresholds")]
    crosses: Vec<Threshold>,

    /// Go on with the sweep of this result file, whose job was killed or interrupted: the same command and this. Points that are
    /// finished (FILE.journal has them) are not measured again; the result goes to FILE unless --out says otherwise
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// With sim: so many points at a time, each on a thread of its own; the result is the same
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 1, hide_default_value = true)]
    jobs: usize,

    #[command(flatten)]
    run: RunOptions,
}

/// Hides what is refused here with the reason.
fn without_unused(option: Arg) -> Arg {
    const UNUSED: [&str; 3] = ["launches", "control", "no_control"];
    if UNUSED.contains(&option.get_id().as_str()) { option.hide(true) } else { option }
}

impl SweepOptions {
    /// What is asked for, as plain values.
    pub fn request(mut self) -> Result<Request, String> {
        let refused = [
            ("--congestors each", self.run.congestors.each().is_some(), "sweep congestors=a2a,incast instead"),
            ("--launches", self.run.local.launches > 1, "points take turns within one job"),
            ("--control", self.run.local.control.is_some(), "a control is for `tailback run` with one load"),
            (
                "--jobs",
                self.jobs > 1 && self.run.common.settings.machine.is_none(),
                "only simulated points do not disturb each other",
            ),
            ("--precision", self.run.roles.precision.is_some(), "all points have the same placements"),
        ];
        if let Some((option, _, why)) = refused.into_iter().find(|(_, given, _)| *given) {
            return Err(format!("{option}: not for sweep: {why}"));
        }
        let out = &mut self.run.common.output.out;
        *out = out.take().or_else(|| self.resume.clone());
        self.keys.extend(self.run.plan.take_sweep()?);
        let request = self.run.request_over(self.keys)?;
        Ok(Request { command: Command::Sweep, crosses: self.crosses, jobs: self.jobs, resume: self.resume, ..request })
    }
}
