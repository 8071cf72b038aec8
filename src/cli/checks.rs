//! `--fail-if` and `--junit`, wherever there are figures to check.

use std::path::PathBuf;

use clap::Args;

use crate::job::Checks;
use crate::threshold::Threshold;

/// Thresholds and where to report them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Thresholds")]
#[allow(missing_docs)]
pub struct CheckOptions {
    /// Exit with code 1 if this holds, e.g. 'lat.time-p75.impact > 10' or 'bw-sync.avg.isolated < 500'; repeatable. An
    /// impact fails when all of its interval does; what its interval leaves open is inconclusive. In a comparison also
    /// 'lat.p99.loaded.ratio > 1.2': times worse than the first file
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,

    /// Write the outcome of every threshold as a JUnit file
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub junit: Option<PathBuf>,

    /// Fail what is inconclusive
    #[arg(long, requires = "fail_if")]
    pub strict: bool,
}

impl CheckOptions {
    /// As plain values.
    pub fn checks(self) -> Checks {
        let CheckOptions { fail_if, junit, strict } = self;
        Checks { fail_if, junit, strict }
    }
}
