//! The command line: what the user types, turned into a request for the rest.
//!
//! Exit codes: 0 = ran and passed its thresholds, 1 = a threshold failed, 2 = it could not run, 3 = inconclusive.

mod app;
mod burst;
mod calibrate;
mod compare;
mod export;
mod help;
mod history;
mod import;
mod info;
mod lab;
mod launch;
mod locate;
mod machine;
mod manual;
mod models;
mod options;
#[cfg(test)]
mod reference;
mod report;
mod show;
mod simulate;
mod sizes;
mod sweep;
mod terms;
mod tune;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::backend;
use crate::job::{Request, with_result_file};
use crate::lab::LabSpec;
use crate::launch::{start as begin, start_in_lab};
use crate::output::print;
use crate::result;

use app::ApplicationOptions;
use options::{CongestOptions, NetworkOptions, RunOptions};

/// Measures what congestion does to HPC and data-centre networks.
///
/// Canary kernels are measured idle and again while congestor kernels load the network; the ratio is the congestion
/// impact. Start it under a launcher (mpirun, srun, `tailback launch`), or alone: then it starts ranks on this machine
/// by itself.
#[derive(Debug, Parser)]
#[command(name = "tailback", version, max_term_width = 110, after_long_help = help::EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load test: every canary idle and under load
    Run(Box<RunOptions>),
    /// What congestion does to a program of yours: idle and under load
    App(Box<app::AppOptions>),
    /// Which setting of the network is better: tried in turn, ranked
    Tune(Box<tune::TuneOptions>),
    /// Load test at several values of a key, e.g. the load: the curve
    Sweep(Box<sweep::SweepOptions>),
    /// Load in bursts: when latency feels one, its peak, its recovery
    Burst(Box<burst::BurstOptions>),
    /// Network test: all canaries, no load
    Network(NetworkOptions),
    /// Only load the network, for a time or until interrupted
    Congest(CongestOptions),
    /// Find the congestors that do what a recorded run shows
    Calibrate(Box<calibrate::CalibrateOptions>),
    /// Print a result file again
    Show(show::ShowOptions),
    /// Compare results: added times, and which differ significantly
    Compare(compare::CompareOptions),
    /// Results night after night: what changed, since when, by how much
    History(history::HistoryOptions),
    /// Make one self-contained HTML page of results
    Report(report::ReportOptions),
    /// Write results as metrics, for databases and monitoring
    Export(export::ExportOptions),
    /// Turn another program's results into a result file
    Import(import::ImportOptions),
    /// How many ranks of a node should talk at once: max-rate model
    Maxrate(models::MaxRateOptions),
    /// Messages that compete for ports: predicted and measured
    Contention(Box<models::ContentionOptions>),
    /// HPC Challenge's latency and bandwidth: ping-pong and rings
    Beff(models::BeffOptions),
    /// The HPC Challenge suite, from HPL to bandwidth, and its balance
    Hpcc(Box<models::HpccOptions>),
    /// Latency and bandwidth between all pairs of nodes: which are slow
    Map(Box<models::MapOptions>),
    /// Which node, cable or uplink is slow, and which was merely busy
    Locate(Box<locate::LocateOptions>),
    /// Start a command as ranks on this machine
    Launch(launch::LaunchArguments),
    /// An emulated cluster on this machine
    #[command(subcommand)]
    Lab(Lab),
    /// Load test on a simulated machine and alternatives, side by side
    Simulate(Box<simulate::SimulateOptions>),
    /// Machines to simulate, for --transport sim
    #[command(subcommand)]
    Machine(machine::MachineCommand),
    /// Show what this machine and this binary can do
    Info(info::InfoOptions),
    /// What the words of tables and options mean
    #[command(help_template = "{about}\n", long_about = terms::TERMS)]
    Terms,
    /// Print the JSON schema of result files
    Schema,
    /// Print a new job secret, for TAILBACK_SECRET
    Secret,
    /// Print completions of commands and options for a shell
    Completions(manual::CompletionsOptions),
    /// Write the manual pages
    Man(manual::ManOptions),
    /// Stands between a rank and the program it started
    #[command(hide = true)]
    Guard(app::GuardOptions),
    /// Changes settings for a rank, and puts the former one back
    #[command(hide = true)]
    Setter(tune::SetterOptions),
}

#[derive(Debug, Subcommand)]
enum Lab {
    /// Bring a lab up, run the load test with a rank on each host, bring it down
    Run(Box<LabRunOptions>),
    #[command(flatten)]
    Other(lab::LabCommand),
}

#[derive(Debug, clap::Args)]
struct LabRunOptions {
    #[command(flatten)]
    lab: LabSpec,
    /// Measure a program instead of canaries, as `tailback app` does; a shell understands CMD
    #[arg(long, value_name = "CMD", help_heading = "Application")]
    app: Option<String>,
    #[command(flatten)]
    application: ApplicationOptions,
    #[command(flatten)]
    run: RunOptions,
}

impl LabRunOptions {
    fn request(self) -> Result<Request, String> {
        let Some(line) = self.app else {
            let misplaced = self.application.is_given();
            return if misplaced { Err("options of a program need --app CMD".into()) } else { self.run.request() };
        };
        let words = vec!["sh".to_owned(), "-c".to_owned(), line];
        let name = app::name_of(&words);
        app::request(self.run, self.application, words, &name)
    }
}

impl Cli {
    /// What was typed, or what clap says instead.
    pub fn typed() -> Result<Self, clap::Error> {
        Self::try_parse().map_err(|error| match error.kind() {
            // Only help is arranged: a rank of many has no memory to spare for it.
            ErrorKind::DisplayHelp => help::arranged(Self::command()).try_get_matches().err().unwrap_or(error),
            _ => error,
        })
    }
}

/// Does what was asked and gives the exit code; an error is one line for stderr.
pub fn execute(cli: Cli) -> Result<u8, String> {
    match cli.command {
        Command::Run(options) => start(options.request()),
        Command::App(options) => start(options.request()),
        Command::Tune(options) => start(options.request()),
        Command::Sweep(options) => start(options.request()),
        Command::Burst(options) => start(options.request()),
        Command::Network(options) => start(options.request()),
        Command::Congest(options) => start(options.request()),
        Command::Calibrate(options) => start(options.request()),
        Command::Show(options) => options.execute(),
        Command::Compare(options) => options.execute(),
        Command::History(options) => options.execute(),
        Command::Report(options) => options.execute(),
        Command::Export(options) => options.execute(),
        Command::Import(options) => options.execute(),
        Command::Maxrate(options) => once(options.execute()),
        Command::Contention(options) => once(options.execute()),
        Command::Beff(options) => once(options.execute()),
        Command::Hpcc(options) => once(options.execute()),
        Command::Map(options) => once(options.execute()),
        Command::Locate(options) => once(options.execute()),
        Command::Launch(arguments) => arguments.execute(),
        Command::Lab(Lab::Run(options)) => {
            let spec = options.lab.clone();
            start_with(options.request(), |request| start_in_lab(request, &spec))
        }
        Command::Lab(Lab::Other(command)) => lab::execute(command),
        Command::Simulate(options) => options.execute(),
        Command::Machine(command) => command.execute(),
        Command::Info(options) => print(&options.text()),
        Command::Terms => print(&format!("{}\n", terms::TERMS)),
        Command::Schema => print(result::SCHEMA),
        Command::Completions(options) => options.execute(Cli::command()),
        Command::Man(options) => options.execute(Cli::command()),
        Command::Guard(options) => Ok(options.execute()),
        Command::Setter(options) => Ok(options.execute()),
        Command::Secret => {
            print(&format!("{}\n", tailback_bootstrap::Secret::random().map_err(|e| e.to_string())?.to_hex()))
        }
    }
}

fn start(request: Result<Request, String>) -> Result<u8, String> {
    start_with(request, begin)
}

fn start_with(
    request: Result<Request, String>,
    how: impl FnOnce(&Request) -> Result<u8, String>,
) -> Result<u8, String> {
    match request {
        Ok(request) => how(&with_result_file(request)),
        Err(_) if !backend::is_reporting_rank() => Ok(2),
        Err(message) => Err(message),
    }
}

/// A mistake that every rank finds alike is one rank's to tell.
fn once(outcome: Result<u8, String>) -> Result<u8, String> {
    outcome.or_else(|message| if backend::is_reporting_rank() { Err(message) } else { Ok(2) })
}

/// What clap says instead of a command line: help and the version as they are, a mistake as one line from one rank.
pub fn refuse(error: &clap::Error) -> Result<u8, String> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&error.render().to_string()),
        _ if !backend::is_reporting_rank() => Ok(2),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{}", error.render());
            Ok(2)
        }
        _ => {
            let told = negative_value(error).or_else(|| of_another_command(error));
            Err(told.unwrap_or_else(|| one_line(&error.render().to_string())))
        }
    }
}

/// What to say of an option that other commands have.
fn of_another_command(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let long =
        argument.split([' ', '=']).next()?.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let having = commands_with(&Cli::command(), "tailback", long);
    // Some commands have a better answer.
    let text = error.render().to_string();
    let answered = text.contains("tip:") && !text.contains("tip: a similar argument exists");
    (!answered && !having.is_empty()).then(|| {
        let shown = having.iter().take(3).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        format!("unexpected argument '{argument}' found; tip: --{long} is an option of {shown}")
    })
}

/// The commands below `command`, which is called `name`, with this long option that users may see.
fn commands_with(command: &clap::Command, name: &str, long: &str) -> Vec<String> {
    let mut found = Vec::new();
    for of in command.get_subcommands().filter(|of| !of.is_hide_set()) {
        let name = format!("{name} {}", of.get_name());
        if of.get_arguments().any(|argument| argument.get_long() == Some(long) && !argument.is_hide_set()) {
            found.push(name.clone());
        }
        found.extend(commands_with(of, &name, long));
    }
    found
}

/// What to say of a number below zero, which looks like an option of its own: whose value it was meant to be.
fn negative_value(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidArg) else { return None };
    // Clap may name only the first character after the dash.
    let words: Vec<String> = std::env::args().collect();
    meant_for(value, &words)
}

fn meant_for(value: &str, words: &[String]) -> Option<String> {
    let digit = value.strip_prefix('-')?.chars().next().filter(|next| next.is_ascii_digit() || *next == '.')?;
    let at = words.iter().position(|word| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(digit)))?;
    let option = words.get(at.checked_sub(1)?).filter(|option| option.starts_with('-'))?;
    Some(format!("invalid value '{}' for '{option}': it cannot be negative", words[at]))
}

/// Clap's first paragraph and its tips; usage and pointers to the help are left out.
fn one_line(text: &str) -> String {
    let paragraphs =
        text.trim().split("\n\n").map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    let kept = paragraphs.enumerate().filter(|(at, paragraph)| *at == 0 || paragraph.starts_with("tip:"));
    let kept: Vec<String> = kept.map(|(_, paragraph)| paragraph).collect();
    kept.join("; ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(arguments: &[&str]) -> String {
        let error = Cli::try_parse_from([&["tailback"], arguments].concat()).expect_err("a mistake");
        one_line(&error.render().to_string())
    }

    #[test]
    fn options_of_other_commands_are_told_from_unknown_ones() {
        let tip = |arguments: &[&str]| {
            of_another_command(&Cli::try_parse_from([&["tailback"], arguments].concat()).expect_err("a mistake"))
        };
        let told = tip(&["run", "--queue", "32KiB"]).expect("the lab has it");
        assert_eq!(
            told,
            "unexpected argument '--queue' found; tip: --queue is an option of `tailback lab run`, `tailback lab up`"
        );
        assert_eq!(tip(&["run", "--bugdet", "1s"]), None);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_cannot_apply_is_not_in_the_help() {
        let all = help::arranged(Cli::command());
        let shown = |name: &str, id: &str| {
            let command = all.find_subcommand(name).unwrap();
            command.get_arguments().any(|arg| arg.get_id() == id && !arg.is_hide_set())
        };
        assert!(shown("run", "wait") && !shown("simulate", "wait") && !shown("simulate", "fail_if"));
        assert_eq!(shown("run", "gid_index"), cfg!(feature = "verbs"));
        assert_eq!(shown("run", "machine"), cfg!(feature = "sim"));
        let is_listed = |name: &str| !all.find_subcommand(name).unwrap().is_hide_set();
        assert_eq!(["simulate", "machine"].map(is_listed), [cfg!(feature = "sim"); 2]);
        assert_eq!(is_listed("hpcc"), cfg!(feature = "hpcc"));
        assert!(is_listed("run") && is_listed("beff"));
    }

    #[test]
    fn a_negative_value_names_its_option() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let said = meant_for("-1", &words("tailback run --seed -15 --quiet"));
        assert_eq!(said.as_deref(), Some("invalid value '-15' for '--seed': it cannot be negative"));
        assert_eq!(meant_for("-x", &words("tailback run -x")), None);
        assert_eq!(meant_for("-1", &words("tailback -1")), None);
    }

    #[test]
    fn mistakes_are_one_line() {
        for (arguments, expected) in [
            (
                &["run", "--bugdet", "2s"][..],
                "unexpected argument '--bugdet' found; tip: a similar argument exists: '--budget'",
            ),
            (
                &["run", "--format", "xml"],
                "invalid value 'xml' for '--format <FORMAT>' [possible values: summary, table, gpcnet, csv, json]",
            ),
            (&["launch", "-n", "2"], "the following required arguments were not provided: <COMMAND>..."),
            (&["rum"], "unrecognized subcommand 'rum'; tip: a similar subcommand exists: 'run'"),
        ] {
            assert_eq!(mistake(arguments), expected);
        }
    }
}
