//! What the user asked for, and what rank 0 makes of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::calibration_target::CalibrationSelection;
use super::locate_selection::LocateSelection;
use super::map_study::{KnownMap, MapStudy};
use super::runs_on::RunsOn;
use super::seed::Seed;
use super::study::Study;
use super::topology::{Groups, GroupsFrom};
use super::tune_selection::TuneSelection;
use crate::analysis::checks::{Check, exit_code, junit};
use crate::analysis::compare::{self, JobSet, sides};
use crate::analysis::threshold::{Of, Threshold};
use crate::backend::Settings;
use crate::kernel::{Canary, Info};
use crate::output::Format;
use crate::plan::{Application, BURST_OFF, BURST_ON, Loop, Patch, Plan, Preset};
use crate::result::{self, Command, ResultFile};
use crate::stats::Outcome;
use crate::text::printable;

/// Where settings take turns and nothing else is asked for.
const TUNE_PLACEMENTS: u32 = 6;
/// Where load comes in bursts, over which intervals are.
const BURST_PLACEMENTS: u32 = 3;
/// Where points of a sweep do.
const SWEEP_PLACEMENTS: u32 = 6;

/// What the user asked for, before anything is decided.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load test, one of its parts, or a study.
    pub command: Command,
    /// The study, where it is one.
    pub study: Option<StudySelection>,
    /// The preset asked for, if one was.
    pub preset: Option<Preset>,
    /// The seed asked for, if one was.
    pub seed: Option<Seed>,
    /// A result whose placements are to be repeated.
    pub pair_with: Option<PathBuf>,
    /// How many jobs are run, one after the other.
    pub launches: u32,
    /// Whether this job is one of them.
    pub one_of_several: bool,
    /// What ranks of one of several jobs are told beyond the user's own words.
    pub job_words: Vec<OsString>,
    /// What says which group of the topology each host belongs to.
    pub groups: Option<GroupsFrom>,
    /// Wall time of each test, if it was asked for.
    pub budget: Option<Duration>,
    /// Changes to the preset, in order: a plan file's, then the user's own.
    pub patches: Vec<Patch>,
    /// How long congestors run, where nothing else ends them.
    pub duration: Duration,
    /// The search for a mix, where one is wanted.
    pub calibration: Option<CalibrationSelection>,
    /// The settings that take turns, where some do.
    pub tuning: Option<TuneSelection>,
    /// Conditions whose place on the curves of a sweep is wanted.
    pub crosses: Vec<Threshold>,
    /// How many simulated points of a sweep are made at a time.
    pub jobs: usize,
    /// The result of a sweep that is to go on.
    pub resume: Option<PathBuf>,
    /// Only show what would be run.
    pub dry_run: bool,
    /// The control, where ranks run in the emulated cluster.
    pub control: ControlSelection,
    /// Where ranks run when there is no launcher.
    pub local: LocalRanks,
    /// How the network under test is reached.
    pub settings: Settings,
    /// How many network ports a node has, where the user says so.
    pub ports_per_node: Option<u32>,
    /// What of the nodes' own counters is read.
    pub counters: CountersSelection,
    /// What is shown and kept.
    pub output: Output,
    /// What is checked.
    pub checks: Checks,
}

/// The study that is wanted.
#[derive(Clone, Debug)]
pub struct StudySelection {
    /// What is studied.
    pub study: Study,
    /// Consecutive ranks that are a node, where hosts do not say.
    pub ranks_per_node: Option<usize>,
    /// Where to draw the first graph, with measured penalties.
    pub draw: Option<PathBuf>,
    /// The result of a map that is to go on.
    pub resume: Option<PathBuf>,
    /// What is made of the map, where it is to name suspects.
    pub locate: Option<LocateSelection>,
}

impl StudySelection {
    /// What is studied, with what is known of it; and the seed that this was drawn with.
    fn decided(&self) -> Result<(Study, Option<u64>), String> {
        let Some(path) = &self.resume else { return Ok((self.study.clone(), None)) };
        let study = MapStudy::resumed(path)?;
        let seed = study.known.as_ref().map(KnownMap::seed);
        Ok((Study::Map(study), seed))
    }
}

/// The control that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ControlSelection {
    /// Bypass where the canaries' packets can be marked, else unshaped
    #[default]
    Auto,
    /// The canaries' packets bypass every port's queue, under the same load (tcp only)
    #[value(alias = "express")]
    Bypass,
    /// Links without rates and queues, for everyone
    Unshaped,
    /// None
    #[value(skip)]
    No,
}

/// Which counters are read at the bounds of every phase.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Counters")]
pub struct CountersSelection {
    /// Do not read the counters of the nodes' adapters, interfaces and TCP at the bounds of every phase
    #[arg(long, conflicts_with = "counters_cmd")]
    pub no_counters: bool,

    /// Read counters from this shell command too, at the same moments: it prints a JSON object of numbers or
    /// {device: {counter: number}}, or lines of a name and a value, within 10 s
    #[arg(long, value_name = "CMD")]
    pub counters_cmd: Option<String>,

    /// Where it runs
    #[arg(long, value_enum, value_name = "WHERE", default_value_t, requires = "counters_cmd")]
    pub counters_cmd_on: RunsOn,
}

/// When text for people has colours.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Colors {
    /// Colours: on a terminal unless NO_COLOR is set, always, or never
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: clap::ColorChoice,
}

/// What is shown and kept.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// How results are printed
    #[arg(long, value_enum, default_value_t, default_value_if("json", "true", "json"), hide_possible_values = true)]
    pub format: Format,

    /// Print the result file: the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// All tables; with --format gpcnet also GPCNeT's 140-column tables and congestors alone
    #[arg(short, long)]
    pub verbose: bool,

    /// Write the result file (JSON, see `tailback schema`) here, whole or not at all; `-` is stdout, instead of tables
    /// [default: tailback-COMMAND-DATE-TIME.json in the working folder]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Without --out: keep no result file
    #[arg(long, env = "TAILBACK_NO_OUT", hide_env = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_out: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub colors: Colors,

    /// Write the results as CSV here, whole or not at all
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the figures as OpenMetrics here, whole or not at all: for node_exporter's textfile collector under a name that ends in
    /// .prom in its folder
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    /// What the result file calls the conditions of this job, e.g. wild
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// No progress and no notes on stderr
    #[arg(short, long)]
    pub quiet: bool,

    /// Nothing on stdout: results are only kept.
    #[arg(long, hide = true)]
    pub silent: bool,
}

/// What rank 0 decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub command: Command,
    /// Of a study, where its ranks are and nothing else.
    pub plan: Plan,
    pub study: Option<Study>,
    /// Of a simulated job, only what was asked for.
    pub seed: Option<u64>,
    /// Hosts and their groups, where the user said.
    pub groups: Option<Groups>,
    pub duration_s: f64,
    pub dry_run: bool,
}

impl Decision {
    /// The kernels of `plan` that the command runs: the canaries', and the congestors'.
    pub fn kernels(&self, plan: &Plan) -> (Vec<Info>, Vec<Info>) {
        let canaries = plan.canaries.iter().filter(|_| self.command != Command::Congest);
        let congestors = plan.congestors.iter().filter(|_| self.command != Command::Network);
        (canaries.map(|test| test.kernel.info()).collect(), congestors.map(|test| test.kernel.info()).collect())
    }
}

impl Request {
    /// A request that asks for nothing in particular.
    pub fn new(command: Command, local: LocalRanks, settings: Settings, output: Output) -> Self {
        Request {
            command,
            study: None,
            preset: None,
            seed: None,
            pair_with: None,
            launches: 1,
            one_of_several: false,
            job_words: Vec::new(),
            groups: None,
            budget: None,
            patches: Vec::new(),
            duration: Duration::ZERO,
            calibration: None,
            tuning: None,
            crosses: Vec::new(),
            jobs: 1,
            resume: None,
            dry_run: false,
            control: ControlSelection::No,
            local,
            settings,
            ports_per_node: None,
            counters: CountersSelection::default(),
            output,
            checks: Checks::default(),
        }
    }

    /// The plan, with every mistake in it found, and a look at whether its results could be kept.
    pub fn resolve(&self, preset: Preset) -> Result<Plan, String> {
        let mut patches = self.patches.clone();
        if self.command != Command::Burst && patches.iter().any(|patch| patch.burst.is_some()) {
            return Err("the plan has bursts: use `tailback burst`".into());
        }
        if self.command == Command::App {
            // GPCNeT's own plan has one placement and one block: too few for a program that runs once in each.
            patches.insert(
                0,
                Patch { placements: Some(5), blocks: Some(2), canaries: Some(Vec::new()), ..Patch::default() },
            );
        }
        if let Some(tuning) = &self.tuning {
            tuning.check()?;
            if self.settings.machine.is_some() {
                return Err(
                    "no command changes a simulated network: `tailback simulate --what-if` compares settings of one"
                        .into(),
                );
            }
            // Turns of an even number cancel what changes with time.
            patches.insert(0, Patch { placements: Some(TUNE_PLACEMENTS), blocks: Some(2), ..Patch::default() });
        }
        if self.command == Command::Burst {
            patches.insert(
                0,
                Patch {
                    placements: Some(BURST_PLACEMENTS),
                    blocks: Some(2),
                    canaries: Some(vec![Canary::Lat]),
                    canary_loop: Some(Loop::Open),
                    ..Patch::default()
                },
            );
        }
        if self.command == Command::Sweep {
            patches.insert(0, Patch { placements: Some(SWEEP_PLACEMENTS), blocks: Some(2), ..Patch::default() });
        }
        if self.command == Command::Network {
            // The network test starts from all canaries of GPCNeT; a plan file may still choose among them and set their counts.
            // Each is measured once, for as long as its budget is.
            let all = Canary::GPCNETS.to_vec();
            patches.insert(0, Patch { canaries: Some(all), ..Patch::default() });
            patches.push(Patch { placements: Some(1), blocks: Some(1), ..Patch::default() });
        }
        let plan = match (&self.study, &self.calibration) {
            (Some(of), _) => Plan { ranks_per_node: of.ranks_per_node, ..Plan::of_a_study() },
            (_, Some(selection)) => selection.plan(&patches)?,
            _ => Plan::resolve(preset, &patches).map_err(|error| error.to_string())?,
        };
        self.check_sweep(&plan)?;
        if self.command == Command::Congest && plan.congestors.is_empty() {
            return Err("congest without congestors loads nothing".into());
        }
        if plan.application.is_some() && self.settings.machine.is_some() {
            return Err("a program cannot run over a simulated network: app is for real and emulated ones".into());
        }
        if self.counters.counters_cmd.is_some() && self.settings.machine.is_some() {
            return Err("--counters-cmd reads counters of real networks: a simulated one counts by itself".into());
        }
        if self.ports_per_node.is_some() && self.settings.machine.is_some() {
            return Err(
                "--ports-per-node is for real networks: a simulated machine has the ports that its file says".into()
            );
        }
        if plan.preset == Preset::Sim && self.settings.machine.is_none() {
            return Err("--preset sim is for --transport sim: real networks need real time".into());
        }
        self.check_thresholds(&plan)?;
        self.paired()?;
        result::check_distinct(self.files())?;
        for path in self.files() {
            result::check_writable(path).map_err(|error| error.to_string())?;
        }
        Ok(plan)
    }

    /// A sweep has keys, and nothing else has.
    fn check_sweep(&self, plan: &Plan) -> Result<(), String> {
        match (self.command == Command::Burst, plan.burst) {
            (true, None) => {
                return Err(
                    "burst needs --on TIME and --off TIME, e.g. --on 2ms --off 8ms, or [burst] in a plan file".into()
                );
            }
            (true, Some(_)) => {
                let other = plan.sweep.iter().find(|of| ![BURST_ON, BURST_OFF].contains(&of.key.as_str()));
                return other
                    .map_or(Ok(()), |of| Err(format!("burst goes over --on and --off only, not over {}", of.key)));
            }
            (false, _) => {}
        }
        match (self.command == Command::Sweep, plan.sweep.is_empty()) {
            (true, true) => {
                Err("sweep needs a key: give KEY=VALUES, e.g. congestor.rate=12.5%..100%/8, or [sweep] in a \
                                 plan file"
                    .into())
            }
            (false, false) => Err(format!("the plan has a sweep over {}: use `tailback sweep`", plan.sweep[0].key)),
            (true, false) if plan.congestors.is_empty() => Err("a sweep without congestors has no load".into()),
            (true, false) => {
                let wrong = |of: &&Threshold| of.of != Of::Job || of.unmeasurable(plan).is_some();
                match self.crosses.iter().find(wrong) {
                    Some(of) => {
                        let why = of.unmeasurable(plan).unwrap_or_else(|| "expected a figure of one job".into());
                        Err(format!("--crosses '{of}': {why}"))
                    }
                    None => Ok(()),
                }
            }
            (false, true) => Ok(()),
        }
    }

    /// A threshold that this plan cannot meet or miss is a mistake, better found before the run than after.
    fn check_thresholds(&self, plan: &Plan) -> Result<(), String> {
        for threshold in &self.checks.fail_if {
            if threshold.of == Of::Ratio {
                return Err(format!("'{threshold}': ratios are for `tailback compare`"));
            }
            if threshold.of.is_over_nights() {
                return Err(format!("'{threshold}': changes from night to night are for `tailback history`"));
            }
            if threshold.of == Of::Variation && self.launches == 1 && !self.one_of_several {
                return Err(format!(
                    "'{threshold}': a coefficient of variation is of several jobs: use --launches, or `tailback compare` \
                     with the results of several"
                ));
            }
            if self.command == Command::Network && threshold.needs_load() {
                return Err(format!("'{threshold}': the network test has no load: only idle figures"));
            }
            if let Some(why) = threshold.unmeasurable(plan) {
                return Err(format!("'{threshold}': {why}"));
            }
        }
        Ok(())
    }

    /// What must be added to the command line so that ranks decide as this process did.
    pub fn fixed(&self, plan: &Plan) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        // What a recorded run measured has a preset already, and a study has none.
        if self.preset.is_none() && self.calibration.is_none() && self.study.is_none() {
            words.extend(["--preset".into(), plan.preset.to_string().into()]);
        }
        words.extend(self.job_words.iter().cloned());
        // Its journal is beside the file that this process has named.
        if let (Command::Sweep, Some(out)) = (self.command, &self.output.out) {
            words.extend(["--out".into(), out.into()]);
        }
        words
    }

    /// The program that is measured, where one is.
    pub fn application(&self) -> Option<&Application> {
        let application = self.patches.iter().rev().find_map(|patch| patch.application.as_ref());
        application.map(|(application, _)| application)
    }

    /// Whether phases are shown as they go by: a study has one, whose end nobody knows.
    pub fn shows_progress(&self) -> bool {
        !self.output.quiet && self.study.is_none()
    }

    /// Tells the user something, on stderr.
    pub fn say(&self, text: &str) {
        if !self.output.quiet {
            // One write: a launcher puts its ranks' writes together, not their lines.
            let line = format!("tailback: {}\n", printable(text));
            eprint!("{line}");
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let plan = self.calibration.as_ref().map(|selection| &selection.write);
        let drawing = self.study.as_ref().and_then(|of| of.draw.as_ref());
        let locate = self.study.as_ref().and_then(|of| of.locate.as_ref());
        let suspects = locate.into_iter().flat_map(|of| of.drain_list.iter().chain(&of.junit));
        let output = &self.output;
        output
            .out
            .iter()
            .chain(&output.csv)
            .chain(&output.metrics)
            .chain(&self.checks.junit)
            .chain(plan)
            .chain(drawing)
            .chain(suspects)
    }

    /// The seed asked for, or that of the result whose placements are to be repeated.
    pub(crate) fn asked_seed(&self) -> Result<Option<Seed>, String> {
        let recorded = self.calibration.as_ref().map(CalibrationSelection::recorded).transpose()?;
        Ok(self.seed.or(self.paired()?.or(recorded).map(|file| Seed::Number(file.seed))))
    }

    pub(crate) fn decide(&self) -> Result<Decision, String> {
        if self.launches > 1 {
            return Err("--launches starts jobs itself, which it cannot inside a launcher's: repeat the launcher's \
                        command, each with an --out of its own"
                .into());
        }
        let plan = self.resolve(Preset::Quick)?;
        let new = if plan.preset == Preset::Gpcnet { Seed::Time } else { Seed::draw() };
        // A simulation is repeatable; on a real network every job is to be a new draw.
        let drawn = self.settings.machine.is_none().then_some(new);
        let (study, known_seed) = self.study.as_ref().map(StudySelection::decided).transpose()?.unzip();
        let asked = match (self.asked_seed()?, drawn) {
            // What was drawn for a sweep stays so.
            (None | Some(Seed::Time), Some(drawn)) => Some(self.resumed_seed()?.map_or(drawn, Seed::Number)),
            (asked, _) => asked,
        };
        Ok(Decision {
            command: self.command,
            plan,
            study,
            seed: known_seed.flatten().or(asked.map(Seed::number)),
            groups: self.groups.as_ref().map(GroupsFrom::read).transpose()?,
            duration_s: self.duration.as_secs_f64(),
            dry_run: self.dry_run,
        })
    }
}

/// Thresholds and where to report them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Thresholds")]
pub struct Checks {
    /// Exit with code 1 if this holds, e.g. 'lat.added > 500us' (time that load adds), 'lat.impact > 10' or
    /// 'bw-sync.idle < 5 Gbit/s'; repeatable. A figure fails when all of its interval does; what its interval leaves
    /// open is inconclusive: exit code 3, with how many more placements or jobs would decide. In a comparison also
    /// 'lat.p99.loaded.ratio > 1.2': times worse than the first side; over several jobs (compare, --launches) also
    /// 'lat.avg.loaded.cv > 0.05': their coefficient of variation
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,

    /// Write the outcome of every threshold as a JUnit file
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub junit: Option<PathBuf>,

    /// Fail what is inconclusive: exit code 1 rather than 3
    #[arg(long, requires = "fail_if")]
    pub strict: bool,
}

impl Checks {
    /// Whether any threshold is about a comparison.
    pub fn has_ratios(&self) -> bool {
        self.fail_if.iter().any(|threshold| threshold.of == Of::Ratio)
    }

    /// Holds the thresholds of one job against every run of a file.
    pub fn check(&self, file: &ResultFile) -> Vec<Check> {
        if self.fail_if.is_empty() {
            return Vec::new();
        }
        let of_job = || self.fail_if.iter().filter(|threshold| threshold.of == Of::Job);
        let runs = file.runs.iter().map(|run| (run.label(), run));
        let checks = runs.flat_map(|(name, run)| of_job().map(move |of| of.check(&name, run)));
        checks.chain(Check::incomplete(file)).collect()
    }

    /// The same against several, told.
    pub fn check_all<'a>(&self, files: impl IntoIterator<Item = &'a ResultFile>) -> Result<u8, String> {
        let checks: Vec<Check> = files.into_iter().flat_map(|file| self.check(file)).collect();
        self.conclude(&checks)
    }

    /// Holds thresholds of variation against several jobs.
    pub fn check_variation(&self, files: &[(PathBuf, ResultFile)]) -> Result<u8, String> {
        let sets: Vec<JobSet<'_>> = sides(files).into_iter().map(JobSet::from).collect();
        let repeated = compare::repeated(&sets);
        let of_several = self.fail_if.iter().filter(|threshold| threshold.of == Of::Variation);
        let checks: Vec<Check> = of_several.flat_map(|threshold| threshold.check_variation(&repeated)).collect();
        if checks.is_empty() { Ok(0) } else { self.conclude(&checks) }
    }

    /// Tells on stderr what each threshold came to, writes the JUnit file, and gives the exit code.
    pub fn conclude(&self, checks: &[Check]) -> Result<u8, String> {
        for check in checks {
            let Check { run, required, found, .. } = check;
            let word = match check.outcome {
                Outcome::Pass => "PASS",
                Outcome::Fail => "FAIL",
                Outcome::Inconclusive => "INCONCLUSIVE",
                Outcome::NotMeasured => "NOT MEASURED",
            };
            let it = if ["is ", "was ", "failed"].iter().any(|verb| found.starts_with(verb)) { "it " } else { "" };
            eprintln!("tailback: {word}: {run}: {required} is required: {it}{found}");
        }
        if let Some(path) = &self.junit {
            result::write_text(path, &junit(checks, self.strict)).map_err(|error| error.to_string())?;
        }
        Ok(exit_code(checks, self.strict))
    }
}

/// Where ranks run when there is no launcher.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Transport")]
pub struct LocalRanks {
    /// Without a launcher: how many ranks to start on this machine [default: one per host of the lab, else 10; with sim
    /// what the --machine has]
    #[arg(short = 'n', long, value_name = "N")]
    pub ranks: Option<usize>,

    /// Without a launcher: plain ranks on this machine rather than the emulated cluster
    #[arg(long, env = "TAILBACK_NO_LAB", hide_env = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_lab: bool,
}
