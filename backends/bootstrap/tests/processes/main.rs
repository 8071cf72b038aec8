//! The bootstrap and the launcher with real processes: this program starts itself as ranks and as launchers.
//!
//! Without the standard harness, because a rank's stdout must hold nothing but what the rank prints. Arguments filter
//! tests by name, and `--list` and `--exact` are understood, as usual.

#![allow(clippy::print_stdout, reason = "the launcher's tests are about what ranks print")]

#[path = "../address/mod.rs"]
mod address;
mod failures;
mod launcher;
mod roles;

use std::panic::catch_unwind;
use std::time::Instant;

type Test = (&'static str, fn());

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("as-rank") => return roles::rank(&arguments[1..]),
        Some("as-launcher") => return roles::launcher(&arguments[1..]),
        _ => {}
    }
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let all = || failures::TESTS.iter().chain(launcher::TESTS);
    if has("--list") {
        // As cargo nextest wants it. None is ignored.
        all().filter(|_| !has("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let filters: Vec<&str> = arguments.iter().map(String::as_str).filter(|a| !a.starts_with('-')).collect();
    let is_meant = |name: &str, filter: &str| if has("--exact") { name == filter } else { name.contains(filter) };
    let tests = all().filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| is_meant(name, filter)));
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
