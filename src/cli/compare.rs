//! `tailback compare`: results side by side, and whether they differ.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::analysis::compare::{self, By, Comparison, sides};
use crate::job::Checks;
use crate::output;
use crate::result::{self, ResultFile};
use crate::stats::Statistic;

/// Options of `tailback compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Result files; the first is what the others are compared with
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What the comparison is about: the runs of one file by transport or protocol, its congestors, or files that differ in
    /// their congestors or in their number of ranks. A difference that is asked for is no obstacle
    #[arg(long, value_enum)]
    by: Option<By>,

    /// Compare results of different plans, ranks or nodes all the same
    #[arg(long)]
    force: bool,

    /// Every statistic, not only time-p75, avg and p99
    #[arg(short, long)]
    verbose: bool,

    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    checks: Checks,
}

impl CompareOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let files = read(&self.files)?;
        if let ([(path, file)], Some(By::Congestor)) = (&files[..], self.by) {
            return self.congestors(path, file);
        }
        let thresholds = &self.checks;
        let sides = sides::chosen(&files, self.by)?;
        let statistics: &[Statistic] = if self.verbose { &Statistic::ALL } else { &compare::SHOWN };
        let mut comparison = compare::compare(&sides, statistics);
        if let Some(by) = self.by {
            comparison.differences.iter_mut().filter(|of| of.is_asked_for(by)).for_each(|of| of.fatal = false);
        }
        let fatal: Vec<String> =
            comparison.differences.iter().filter(|d| d.fatal).map(|d| format!("{}: {}", d.side, d.what)).collect();
        if !fatal.is_empty() && !self.force {
            let list = fatal.join("\n  ");
            return Err(format!("these results are not comparable (--force compares them all the same):\n  {list}"));
        }
        if comparison.rows.is_empty() && comparison.figures.is_empty() {
            return Err("these results have no test in common".into());
        }
        self.print(&comparison)?;
        let mut checks = Vec::new();
        let all = if thresholds.has_ratios() { compare::compare(&sides, &Statistic::ALL) } else { comparison };
        for threshold in &thresholds.fail_if {
            if threshold.ratio {
                checks.extend(threshold.check_ratios(&all));
            } else {
                checks.extend(sides.iter().map(|side| threshold.check(&side.label, side.run)));
            }
        }
        thresholds.conclude(&checks)
    }

    fn print(&self, comparison: &Comparison) -> Result<u8, String> {
        output::print(&if self.json {
            serde_json::to_string_pretty(comparison).expect("plain data") + "\n"
        } else {
            compare::render(comparison)
        })
    }

    /// The congestors of one file.
    fn congestors(&self, path: &Path, file: &ResultFile) -> Result<u8, String> {
        let thresholds = &self.checks;
        if thresholds.has_ratios() {
            return Err("ratios are of files: congestors of one file have none to be checked".into());
        }
        let comparison = compare::compare_congestors(file)
            .ok_or_else(|| format!("{} has loads of fewer than two congestors", path.display()))?;
        self.print(&comparison)?;
        thresholds.check(file)
    }
}

/// Reads result files, in order.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, ResultFile)>, String> {
    let read = |path: &PathBuf| result::read(path).map(|file| (path.clone(), file)).map_err(|error| error.to_string());
    paths.iter().map(read).collect()
}
