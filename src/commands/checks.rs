//! `--fail-if` and `--junit`, wherever there are figures to check.

use std::path::PathBuf;

use crate::analysis::threshold::{Check, Threshold, junit};
use crate::result::{self, ResultFile};
use crate::stats::Outcome;

/// Thresholds and where to report them.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// What must not hold.
    pub fail_if: Vec<Threshold>,

    /// Where the outcome of every threshold goes, as JUnit.
    pub junit: Option<PathBuf>,
    /// Whether what is inconclusive fails.
    pub strict: bool,
}

impl Checks {
    /// Whether any threshold is about a comparison.
    pub fn has_ratios(&self) -> bool {
        self.fail_if.iter().any(|threshold| threshold.ratio)
    }

    /// Holds the thresholds against every run of a file.
    pub fn check(&self, file: &ResultFile) -> Result<u8, String> {
        let runs = file.runs.iter().map(|run| (run.label(), run));
        let checks: Vec<Check> =
            runs.flat_map(|(name, run)| self.fail_if.iter().map(move |of| of.check(&name, run))).collect();
        self.conclude(&checks)
    }

    /// Tells on stderr what failed or stayed open, writes the JUnit file, and gives the exit code.
    pub fn conclude(&self, checks: &[Check]) -> Result<u8, String> {
        let mut code = 0;
        for check in checks {
            let Check { run, threshold, found, .. } = check;
            match check.outcome {
                Outcome::Pass => {}
                Outcome::Fail => {
                    eprintln!("tailback: failed: {run}: {threshold}: it {found}");
                    code = 1;
                }
                Outcome::Inconclusive => {
                    let hint = if self.strict { "" } else { " (more placements tell; --strict fails it)" };
                    eprintln!("tailback: inconclusive: {run}: {threshold}: it {found}{hint}");
                    code = code.max(u8::from(self.strict));
                }
            }
        }
        if let Some(path) = &self.junit {
            result::write_text(path, &junit(checks, self.strict)).map_err(|error| error.to_string())?;
        }
        Ok(code)
    }
}
