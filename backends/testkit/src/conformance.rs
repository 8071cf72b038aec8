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

use tailback_engine::Collective;
use tailback_transport::{Bootstrap, Capabilities, Operation, Support, Transport};

mod arena;
mod background;
mod collectives;
mod groups;
mod memory;
mod messages;
mod onesided;
mod pattern;
mod plane;
mod report;
mod sizes;

use crate::loopback::{Loopback, LoopbackBootstrap};
use arena::{Arena, Case};

pub use memory::ring_memory;
pub use report::{Failure, Outcome, Report};

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
