//! Views of a result: tables for people, GPCNeT's own tables for scripts that scrape them, CSV, and progress.
//!
//! Results go to stdout, progress and notes to stderr. Every view is a function from a [`ResultFile`] to text.

mod activity;
pub(crate) mod burst;
pub(crate) mod by_size;
mod calibration;
mod compared;
pub(crate) mod counted;
mod csv;
mod gpcnet;
pub mod history;
pub(crate) mod hpcc;
pub(crate) mod load_test;
pub(crate) mod locate;
pub(crate) mod map;
pub(crate) mod maxrate;
mod metrics;
pub(crate) mod models;
mod over_jobs;
mod progress;
mod study_summary;
pub(crate) mod summary;
pub(crate) mod sweep;
pub(crate) mod tuning;

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use clap::ColorChoice;

use crate::analysis::compare::{Comparison, Side};
use crate::result::{Command, ResultFile};
use crate::text::printable;

pub use calibration::mix;
pub use compared::compared;
pub use history::history;
pub use hpcc::expected;
pub use load_test::placement_lines;
pub use locate::{located, located_csv};
pub use map::{MapOutline, planned_map};
pub use maxrate::{given_halos, halos};
pub use metrics::{LABELS, METRICS, Metric, MetricsFormat, openmetrics, openmetrics_of_job};
pub use models::{contention, draw, steps, study};
pub use over_jobs::over_jobs;
pub use progress::Progress;
pub use sweep::sweeps;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The verdict and a row per test, in a dozen lines
    #[default]
    Summary,
    /// Aligned tables with confidence intervals
    Table,
    /// GPCNeT's tables, to the letter (80 columns; 140 with --verbose)
    Gpcnet,
    /// One line per test and state
    Csv,
    /// The result file itself
    Json,
}

impl Format {
    /// The text of `result` in this format.
    pub fn render(self, result: &ResultFile, verbose: bool) -> String {
        match self {
            Format::Table if !result.studies().is_empty() => study(result),
            Format::Summary if verbose => Format::Table.render(result, true) + &Format::Summary.render(result, false),
            // A search is told by its steps.
            Format::Summary if result.command == Command::Calibrate => load_test::render(result, false),
            Format::Summary if result.command == Command::Burst => burst::render(result, columns()),
            Format::Summary if let Some(record) = &result.sweep => sweep::render(result, record, columns()),
            Format::Summary => match (&result.tuning, result.conclusion()) {
                (Some(record), Some(_)) => tuning::render(result, record, columns()),
                (None, Some(conclusion)) => summary::render(result, &conclusion, columns()),
                (_, None) => study_summary::render(result, columns()),
            },
            Format::Table => load_test::render(result, verbose),
            Format::Gpcnet => gpcnet::render(result, verbose),
            Format::Csv => csv::render(result),
            Format::Json => serde_json::to_string_pretty(result).expect("a result is plain data") + "\n",
        }
    }
}

/// A result as its run ended, with the same verdict and rows, and then all tables.
pub fn in_full(result: &ResultFile, verbose: bool) -> String {
    let [summary, tables] =
        [Format::Summary, Format::Table].map(|of| of.render(result, verbose && of == Format::Table));
    // Of some commands the tables are all there is.
    let has_verdict = result.studies().is_empty() && summary != tables && !result.runs.is_empty();
    if !has_verdict {
        return tables;
    }
    format!("{}\nDetails\n\n{tables}", summary.replace(" Tables: -v.", ""))
}

/// Simulated alternatives beside the first of them.
pub fn alternatives(sides: &[Side<'_>], comparison: &Comparison) -> String {
    summary::alternatives(sides, comparison, columns())
}

/// The width of the terminal, up to what is easily read; elsewhere as of old.
fn columns() -> usize {
    const USUAL: u16 = 80;
    const WIDEST: u16 = 120;
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    usize::from(size.map_or(USUAL, |size| size.ws_col).clamp(USUAL, WIDEST))
}

/// The same with its verdicts in colour, where that is wanted.
pub fn print_coloured(text: &str, wanted: ColorChoice) -> Result<u8, String> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let coloured = match wanted {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb,
    };
    let text = printable(text);
    if coloured { write_out(&summary::coloured(&text)) } else { write_out(&text) }
}

/// Prints to stdout and gives the exit code; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<u8, String> {
    write_out(&printable(text))
}

fn write_out(text: &str) -> Result<u8, String> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(0),
    }
}
