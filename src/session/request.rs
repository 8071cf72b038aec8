//! What the user asked for, and what rank 0 makes of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cli::{self, CheckOptions, CongestOptions, LocalOptions, NetworkOptions, RunOptions, TransportOptions};
use crate::output::Format;
use crate::plan::{Patch, Plan, Preset};
use crate::result::{self, Command};

/// Congestion without an end: a day is longer than any allocation that would not be interrupted.
const ENDLESS: Duration = Duration::from_secs(86_400);

/// What the user asked for, before anything is decided.
pub struct Request {
    pub(super) command: Command,
    pub(super) plan: cli::PlanOptions,
    patch: Patch,
    duration: Option<Duration>,
    /// What to do when there is no launcher.
    pub local: LocalOptions,
    /// How the network under test is reached.
    pub transport: TransportOptions,
    pub(super) output: cli::OutputOptions,
    pub(super) checks: CheckOptions,
}

/// What rank 0 decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Decision {
    pub command: Command,
    pub plan: Plan,
    pub seed: u64,
    pub duration_s: f64,
    pub dry_run: bool,
}

impl Request {
    /// `tailback run`.
    pub fn run(options: RunOptions) -> Result<Self, String> {
        let alone = options.roles.congestors_alone
            || (options.common.output.verbose && options.common.output.format == Format::Gpcnet);
        let patch = Patch {
            canaries: options.canaries.canaries,
            congestors: options.congestors.mix()?,
            canary_fraction: options.roles.canary_fraction,
            split: options.roles.split,
            congestors_alone: alone.then_some(true),
            ..Patch::default()
        };
        Self::new(Command::Run, options.plan, patch, None, options.common).map(|request| Request {
            local: options.local,
            checks: options.checks,
            ..request
        })
    }

    /// `tailback network`.
    pub fn network(options: NetworkOptions) -> Result<Self, String> {
        let patch = Patch { canaries: options.canaries.canaries, ..Patch::default() };
        Self::new(Command::Network, options.plan, patch, None, options.common)
    }

    /// `tailback congest`.
    pub fn congest(options: CongestOptions) -> Result<Self, String> {
        let patch = Patch { congestors: options.congestors.mix()?, ..Patch::default() };
        let duration = options.duration.unwrap_or(ENDLESS);
        Self::new(Command::Congest, options.plan, patch, Some(duration), options.common)
    }

    fn new(
        command: Command,
        plan: cli::PlanOptions,
        patch: Patch,
        duration: Option<Duration>,
        common: cli::CommonOptions,
    ) -> Result<Self, String> {
        let local = LocalOptions::default();
        let checks = CheckOptions::default();
        let cli::CommonOptions { transport, output } = common;
        Ok(Request { command, plan, patch, duration, local, transport, output, checks })
    }

    /// The plan, with every mistake in it found, and a look at whether its results could be kept.
    pub fn resolve(&self, preset: Preset) -> Result<Plan, String> {
        let mut patches = self.plan.patches(self.patch.clone())?;
        if self.command == Command::Network {
            // The network test starts from all canaries; a plan file may still choose among them and set their counts.
            let all = crate::kernel::Canary::ALL.to_vec();
            patches.insert(0, Patch { canaries: Some(all), ..Patch::default() });
        }
        let plan = Plan::resolve(preset, &patches).map_err(|error| error.to_string())?;
        self.check_thresholds(&plan)?;
        for path in self.files() {
            result::check_writable(path).map_err(|error| error.to_string())?;
        }
        Ok(plan)
    }

    /// A threshold that this plan cannot meet or miss is a mistake, better found before the run than after.
    fn check_thresholds(&self, plan: &Plan) -> Result<(), String> {
        for threshold in &self.checks.fail_if {
            if threshold.ratio {
                return Err(format!("'{threshold}': ratios are for `tailback compare`"));
            }
            if !plan.canaries.iter().any(|test| test.kernel == threshold.kernel) {
                return Err(format!("'{threshold}': the plan does not measure {}", threshold.kernel));
            }
        }
        Ok(())
    }

    /// What must be added to the command line so that ranks decide as this process did.
    pub fn fixed(&self, plan: &Plan, seed: u64) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.plan.preset.is_none() {
            words.extend(["--preset".into(), plan.preset.to_string().into()]);
        }
        if self.plan.seed.is_none() {
            words.extend(["--seed".into(), seed.to_string().into()]);
        }
        words
    }

    /// The seed asked for, or a new one. 32 bits: easy to read out and to type.
    pub fn seed(&self) -> u64 {
        self.plan.seed.unwrap_or_else(|| rand::random::<u32>().into())
    }

    /// Whether the plan is only to be shown.
    pub fn is_dry_run(&self) -> bool {
        self.plan.dry_run
    }

    /// What was asked for.
    pub fn command(&self) -> Command {
        self.command
    }

    /// Whether the user wants results only.
    pub fn quiet(&self) -> bool {
        self.output.quiet
    }

    /// Tells the user something, on stderr.
    pub fn say(&self, text: &str) {
        if !self.output.quiet {
            eprintln!("tailback: {text}");
        }
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.output.out.iter().chain(&self.output.csv).chain(&self.checks.junit)
    }

    pub(super) fn decide(&self) -> Result<Decision, String> {
        Ok(Decision {
            command: self.command,
            plan: self.resolve(Preset::Gpcnet)?,
            seed: self.seed(),
            duration_s: self.duration.unwrap_or_default().as_secs_f64(),
            dry_run: self.plan.dry_run,
        })
    }
}
