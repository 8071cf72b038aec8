//! Views of a result: tables for people, GPCNeT's own tables for scripts that scrape them, CSV, and progress.
//!
//! Results go to stdout, progress and notes to stderr. Every view is a function from a [`ResultFile`] to text.

mod activity;
mod calibration;
pub(crate) mod counted;
mod csv;
mod gpcnet;
pub(crate) mod hpcc;
pub(crate) mod load_test;
pub(crate) mod maxrate;
pub(crate) mod models;
mod over_jobs;
mod progress;

use std::io::{ErrorKind, Write as _};

use crate::result::ResultFile;
use crate::text::printable;

pub use calibration::mix;
pub use load_test::placement_lines;
pub use maxrate::halos;
pub use models::{contention, draw, steps, study};
pub use over_jobs::over_jobs;
pub use progress::Progress;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned tables with confidence intervals
    #[default]
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
            Format::Table => load_test::render(result, verbose),
            Format::Gpcnet => gpcnet::render(result, verbose),
            Format::Csv => csv::render(result),
            Format::Json => serde_json::to_string_pretty(result).expect("a result is plain data") + "\n",
        }
    }
}

/// Prints to stdout and gives the exit code; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<u8, String> {
    match std::io::stdout().lock().write_all(printable(text).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(0),
    }
}
