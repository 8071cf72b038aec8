//! `tailback app`: what congestion does to a program of the user's.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::options::RunOptions;
use crate::body::{check_pattern, guard};
use crate::job::Request;
use crate::plan::{Application, Better, Launcher, SECONDS};
use crate::result::Command;
use crate::units;

/// Options of `tailback app`.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true, after_help = PLACEHOLDERS)]
pub struct AppOptions {
    #[command(flatten)]
    application: ApplicationOptions,
    #[command(flatten)]
    run: RunOptions,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const PLACEHOLDERS: &str = "CMD is started by the first of the nodes that measure, once for each repetition, without a shell. \
     Replaced in it: {hosts} (the nodes with commas), {hostfile} (a file with a line for each process), {processes} (how many), \
     {nodes}, {per_node} and {launch} (the launcher's words for all of that). A CMD that has none of these is put behind \
     {launch}. The same is in TAILBACK_APP_HOSTS, TAILBACK_APP_HOSTFILE and TAILBACK_APP_N.";

/// What is read off a program, and how it is started.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Application")]
#[allow(missing_docs)]
pub struct ApplicationOptions {
    /// What the program is measured by: the only group of this regular expression, where it last matches the output,
    /// e.g. 'Loop time of ([0-9.]+)' [default: its wall time]
    #[arg(long, value_name = "REGEX", value_parser = check_pattern)]
    pub figure: Option<String>,

    /// Whether less or more of the figure is better; more makes it the canary app-rate in thresholds
    #[arg(long, value_enum, default_value_t, requires = "figure")]
    pub figure_is: Better,

    /// The figure's unit, as tables show it
    #[arg(long, value_name = "TEXT", default_value = "as printed", requires = "figure")]
    pub figure_unit: String,

    /// What starts the program's processes
    #[arg(long, value_enum, default_value_t)]
    pub launcher: Launcher,

    /// Processes of the program on each node [default: as many as Tailback has ranks there]
    #[arg(long, value_name = "N")]
    pub per_node: Option<usize>,

    /// The longest that a repetition may take: a program that takes longer is ended, and the job with it
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10m")]
    pub limit: Duration,

    /// Repetitions on each placement, before all others, that are not measured
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub warm_up: u32,

    /// In the emulated cluster: preload the idle-poll shim, for MPI processes that outnumber the cores
    #[arg(long)]
    pub idle_shim: bool,

    /// How tables call the program [default: its file name]
    #[arg(long, value_name = "TEXT")]
    pub app_name: Option<String>,
}

impl ApplicationOptions {
    /// Whether anything was said of a program.
    pub fn is_given(&self) -> bool {
        let Self { figure, launcher, per_node, idle_shim, app_name, .. } = self;
        figure.is_some() || *launcher != Launcher::Auto || per_node.is_some() || *idle_shim || app_name.is_some()
    }

    /// The application that these words are.
    pub fn application(self, command: Vec<String>, name: &str) -> (Application, Better) {
        let name = self.app_name.unwrap_or_else(|| name.to_owned());
        let unit = if self.figure.is_some() { self.figure_unit } else { SECONDS.to_owned() };
        let application = Application {
            command,
            name,
            launcher: self.launcher,
            per_node: self.per_node,
            figure: self.figure,
            unit,
            limit_s: self.limit.as_secs_f64(),
            warm_up: self.warm_up,
            idle_shim: self.idle_shim,
        };
        (application, self.figure_is)
    }
}

impl AppOptions {
    /// What is asked for, as plain values.
    pub fn request(self) -> Result<Request, String> {
        let words: Result<Vec<String>, OsString> = self.command.into_iter().map(OsString::into_string).collect();
        let words = words.map_err(|word| format!("'{}' is no text", word.display()))?;
        let name = name_of(&words);
        request(self.run, self.application, words, &name)
    }
}

/// A run that measures a program, and the canaries that were asked for beside it.
pub fn request(
    run: RunOptions,
    application: ApplicationOptions,
    command: Vec<String>,
    name: &str,
) -> Result<Request, String> {
    let mut request = run.request()?;
    request.command = Command::App;
    if let Some(own) = request.patches.last_mut() {
        own.application = Some(application.application(command, name));
    }
    Ok(request)
}

/// The program among the words: launchers and what is replaced are passed over as far as they are known.
pub fn name_of(words: &[String]) -> String {
    let launchers = ["mpirun", "mpiexec", "srun", "{launch}", "time", "env", "sh", "-c"];
    let program = words.iter().find(|word| !launchers.contains(&word.as_str())).or(words.first());
    let first = program.and_then(|word| word.split_whitespace().find(|word| !launchers.contains(word)));
    let first = first.unwrap_or("program");
    first.rsplit('/').next().unwrap_or(first).to_owned()
}

/// Options of the process that stands between a rank and the program it started.
#[derive(Clone, Debug, Args)]
pub struct GuardOptions {
    /// Where all goes that the program writes
    #[arg(long)]
    output: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl GuardOptions {
    /// Runs the program under guard.
    pub fn execute(&self) -> u8 {
        guard(&self.output, &self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_its_file() {
        for (line, expected) in [
            ("/usr/bin/lmp -in x", "lmp"),
            ("{launch} ./xhpl", "xhpl"),
            ("mpirun {hosts}", "{hosts}"),
            ("time {launch} hpcc", "hpcc"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&words), expected, "{line}");
        }
        assert_eq!(name_of(&["sh".into(), "-c".into(), "{launch} lmp -in x".into()]), "lmp");
    }
}
