//! The executable definition of the traits, over libfabric. Ranks are processes: this program starts itself.
//!
//! ```text
//! conformance [FILTER]...                              every test whose name has one of the filters
//! conformance as-rank WHAT PROVIDER PROTOCOL [WAIT]    one rank of a job, under Tailback's launcher or MPI's
//! ```
//!
//! `TAILBACK_LIBFABRIC` names another library than the system's. Without the standard harness, because a rank's stdout
//! must hold nothing but what the rank prints.

#![allow(clippy::print_stdout, reason = "what ranks print is what the tests look at")]

mod jobs;
mod rank;

use std::panic::catch_unwind;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "as-rank") {
        return rank::main(&arguments[1..]);
    }
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let mut tests = jobs::tests();
    tests.retain(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())));
    if arguments.iter().any(|a| a == "--list") {
        tests.iter().for_each(|(name, _)| eprintln!("{name}: test"));
        return;
    }
    let mut failed = Vec::new();
    for (name, test) in tests {
        let start = Instant::now();
        let passed = catch_unwind(test).is_ok();
        eprintln!("test {name} ... {} ({:.1} s)", if passed { "ok" } else { "FAILED" }, start.elapsed().as_secs_f64());
        if !passed {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
