//! What a run of the suite hands back: the outcome of every case, or the first fault.

use std::fmt;

use tailback_transport::Rank;

/// What became of the cases of a run that found no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many ranks took part.
    pub size: usize,
    /// Every case, in order, with its outcome.
    pub outcomes: Vec<(&'static str, Outcome)>,
}

/// What became of a case without fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its checks held on every rank.
    Passed,
    /// The transport lacks an operation it needs; the transport's reason.
    Skipped(String),
}

impl Report {
    /// How many cases passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Passed).count()
    }

    /// The skipped cases with their reasons.
    pub fn skipped(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.outcomes.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Skipped(reason) => Some((*name, reason.as_str())),
            Outcome::Passed => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.outcomes {
            match outcome {
                Outcome::Passed => writeln!(f, "passed   {name}")?,
                Outcome::Skipped(reason) => writeln!(f, "skipped  {name}: {reason}")?,
            }
        }
        let skipped = self.outcomes.len() - self.passed();
        write!(f, "{} ranks: {} cases passed, {skipped} skipped", self.size, self.passed())
    }
}

/// The first fault that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("conformance case \"{case}\" failed on rank {rank}: {detail}")]
pub struct Failure {
    /// The case's name.
    pub case: &'static str,
    /// The rank of the job that saw the fault.
    pub rank: Rank,
    /// What was wrong: which byte of which transfer, or the transport's error.
    pub detail: String,
}
