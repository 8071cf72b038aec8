//! Views of a result: tables for people, GPCNeT's own tables for scripts that scrape them, CSV, and progress.
//!
//! Results go to stdout, progress and notes to stderr. Every view is a function from a [`ResultFile`] to text.

mod between;
mod calibration;
mod counters;
mod csv;
mod gpcnet;
mod halo;
mod how_many;
mod hpcc;
mod impacts;
mod maxrate;
mod models;
mod ports;
mod print;
mod progress;
mod simulated;
mod steps;
mod summary;

use crate::result::ResultFile;

pub(crate) use between::{between_cells, span_cells};
pub use calibration::mix;
pub use halo::halos;
pub(crate) use how_many::answer;
pub(crate) use hpcc::number;
pub(crate) use maxrate::estimate;
pub use models::{contention, draw, study};
pub use print::print;
pub use progress::Progress;
pub use steps::steps;
pub use summary::placement_lines;

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
            Format::Table => summary::render(result, verbose),
            Format::Gpcnet => gpcnet::render(result, verbose),
            Format::Csv => csv::render(result),
            Format::Json => serde_json::to_string_pretty(result).expect("a result is plain data") + "\n",
        }
    }
}
