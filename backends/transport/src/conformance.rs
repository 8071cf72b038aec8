//! The executable definition of [`Transport`] and [`Bootstrap`]: named cases that every backend instantiates.
//!
//! Every rank of a job, thread or process, calls [`run`] with its own two planes. Ranks go through the cases in step:
//! after each, they exchange what they found over the bootstrap, so that all report the same [`Failure`], which names
//! the case, the rank and the byte. A case that sees wrong data goes on to its end, for its peers count on it; an error
//! of the transport ends it at once on that rank, and the caller then ends the job ([`Bootstrap::abort`]).
//!
//! Cases whose operations the transport does not have are in the [`Report`] as skipped, with the transport's reason.
//!
//! Out of scope: speed, and what happens when a rank dies. Sleeps only make bad luck likely; no verdict depends on time.

mod arena;
mod background;
mod collectives;
mod groups;
mod messages;
mod onesided;
mod pattern;
mod plane;

use std::fmt;

use crate::loopback::{Loopback, LoopbackBootstrap};
use crate::{Bootstrap, Capabilities, Collective, Operation, Rank, Support, Transport};
use arena::{Arena, Case};

/// Payload sizes that every kind of transfer is tried with: small, large, and around what the verbs backend sends inside
/// a request (204 bytes), in a buffer of 8 KiB with a short header and with a long one.
const SIZES: [usize; 11] = [0, 1, 8, 204, 205, 4096, 8168, 8176, 8177, 131_072, LARGEST];

/// The largest of [`SIZES`].
const LARGEST: usize = 6_553_600;

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

/// The names of all cases, in the order they run.
#[must_use]
pub fn names() -> Vec<&'static str> {
    cases::<LoopbackBootstrap, Collective<Loopback>>().into_iter().map(|case| case.name).collect()
}

/// Runs every case. Called by every rank of the job.
///
/// # Errors
/// The first fault. The same on every rank, except after an error of the transport.
pub fn run<B: Bootstrap, T: Transport>(bootstrap: &mut B, transport: &mut T) -> Result<Report, Failure> {
    run_only(bootstrap, transport, |_| true)
}

/// Runs the cases whose name `chosen` says yes to, the same on every rank.
///
/// # Errors
/// As [`run`].
pub fn run_only<B: Bootstrap, T: Transport>(
    bootstrap: &mut B,
    transport: &mut T,
    chosen: impl Fn(&str) -> bool,
) -> Result<Report, Failure> {
    let capabilities = transport.capabilities();
    let mut report = Report { size: bootstrap.size(), outcomes: Vec::new() };
    for case in cases::<B, T>().into_iter().filter(|case| chosen(case.name)) {
        let outcome = match missing(&capabilities, case.needs) {
            Some(reason) => Outcome::Skipped(reason),
            None => Arena::run(bootstrap, transport, &case).map(|()| Outcome::Passed)?,
        };
        report.outcomes.push((case.name, outcome));
    }
    Ok(report)
}

/// All cases, simplest first: a backend in the making passes them from the top.
fn cases<B: Bootstrap, T: Transport>() -> Vec<Case<B, T>> {
    [
        plane::cases as fn() -> Vec<Case<B, T>>,
        messages::cases,
        onesided::cases,
        groups::cases,
        collectives::cases,
        background::cases,
    ]
    .into_iter()
    .flat_map(|cases| cases())
    .collect()
}

/// Why the transport cannot do what a case needs.
fn missing(capabilities: &Capabilities, needs: &[Operation]) -> Option<String> {
    needs.iter().find_map(|&operation| match capabilities.of(operation) {
        Support::Yes => None,
        Support::No(reason) => Some(format!("no {operation}: {reason}")),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let names = names();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.len() > 40);
    }
}
