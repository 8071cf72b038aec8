//! `tailback burst`: load that comes in bursts, and latency folded over them.

use clap::{Arg, Args};

use super::options::RunOptions;
use crate::job::Request;
use crate::plan::{BURST_OFF, BURST_ON, Patch, Swept};
use crate::result::Command;
use crate::units;

/// Options of `tailback burst`.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
#[command(mut_args(without_unused))]
pub struct BurstOptions {
    /// How long load is on, e.g. 2ms; several values between commas take turns
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Bursts")]
    on: Vec<String>,

    /// How long it pauses then, e.g. 8ms; several values between commas take turns, with each value of --on
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Bursts")]
    off: Vec<String>,

    #[command(flatten)]
    run: RunOptions,
}

/// Hides what is refused here with the reason.
fn without_unused(option: Arg) -> Arg {
    const UNUSED: [&str; 5] = ["launches", "control", "no_control", "precision", "longest"];
    if UNUSED.contains(&option.get_id().as_str()) { option.hide(true) } else { option }
}

impl BurstOptions {
    /// What is asked for, as plain values.
    pub fn request(mut self) -> Result<Request, String> {
        let refused = [
            ("--congestors each", self.run.congestors.each().is_some(), "name one congestor at a time"),
            ("--launches", self.run.local.launches > 1, "intervals are over the bursts of one job"),
            ("--control", self.run.local.control.is_some(), "a control is for `tailback run` with one load"),
            ("--precision", self.run.roles.precision.is_some(), "intervals are over bursts: use a longer --budget"),
        ];
        if let Some((option, _, why)) = refused.into_iter().find(|(_, given, _)| *given) {
            return Err(format!("{option}: not for burst: {why}"));
        }
        if let Some(swept) = self.run.plan.take_sweep()?.first() {
            return Err(format!("--set {}: burst goes over --on and --off only", swept.key));
        }
        let first = |option: &str, values: &[String]| {
            let seconds = |value: &String| units::duration(value).map(|of| of.as_secs_f64());
            let all = values.iter().map(seconds).collect::<Result<Vec<f64>, String>>();
            all.map(|of| of.first().copied()).map_err(|error| format!("{option}: {error}"))
        };
        let burst = (first("--on", &self.on)?, first("--off", &self.off)?);
        let lists = [(BURST_ON, &self.on), (BURST_OFF, &self.off)];
        let swept = lists.into_iter().filter(|(_, values)| values.len() > 1);
        let sweep = swept.map(|(key, values)| Swept::of(key, &values.join(","))).collect::<Result<Vec<_>, String>>()?;
        let mut request = self.run.request()?;
        request.patches.push(Patch {
            burst: (burst != (None, None)).then_some(burst),
            sweep: (!sweep.is_empty()).then_some(sweep),
            ..Patch::default()
        });
        Ok(Request { command: Command::Burst, ..request })
    }
}
