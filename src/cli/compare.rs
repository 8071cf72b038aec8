//! `tailback compare`: results side by side, and whether they differ.

use std::path::PathBuf;

use clap::Args;

use super::checks::CheckOptions;
use crate::compare::{self, By, sides};
use crate::result::{self, ResultFile};
use crate::stats::Statistic;

/// Options of `tailback compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Result files; the first is what the others are compared with
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Compare the runs of one file with each other
    #[arg(long, value_enum)]
    by: Option<By>,

    /// Compare results of different plans, ranks or nodes all the same
    #[arg(long)]
    force: bool,

    /// Every statistic, not only avg and p99
    #[arg(short, long)]
    verbose: bool,

    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    checks: CheckOptions,
}

impl CompareOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let files = read(&self.files)?;
        let sides = sides::chosen(&files, self.by)?;
        let statistics: &[Statistic] = if self.verbose { &Statistic::ALL } else { &[Statistic::Avg, Statistic::P99] };
        let comparison = compare::compare(&sides, statistics);
        let fatal: Vec<String> =
            comparison.differences.iter().filter(|d| d.fatal).map(|d| format!("{}: {}", d.side, d.what)).collect();
        if !fatal.is_empty() && !self.force {
            let list = fatal.join("\n  ");
            return Err(format!("these results are not comparable (--force compares them all the same):\n  {list}"));
        }
        if comparison.rows.is_empty() {
            return Err("these results have no test in common".into());
        }
        let text = if self.json {
            serde_json::to_string_pretty(&comparison).expect("plain data") + "\n"
        } else {
            compare::render(&comparison)
        };
        super::print(&text)?;
        let mut checks = Vec::new();
        let all = if self.checks.has_ratios() { compare::compare(&sides, &Statistic::ALL) } else { comparison };
        for threshold in &self.checks.fail_if {
            if threshold.ratio {
                checks.extend(threshold.check_ratios(&all));
            } else {
                checks.extend(sides.iter().map(|side| threshold.check(&side.label, side.run)));
            }
        }
        self.checks.conclude(&checks)
    }
}

/// Reads result files, in order.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, ResultFile)>, String> {
    let read = |path: &PathBuf| result::read(path).map(|file| (path.clone(), file)).map_err(|error| error.to_string());
    paths.iter().map(read).collect()
}
