//! How soon a job ends that has lost a rank or its launcher.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{Job, eventually, is_gone, tailback, words};
use crate::failures::{kill_at_moments, kill_under_load, kill_while_isolated};

/// What the product promises.
const PROMISED: Duration = Duration::from_secs(5);

fn assert_promised(took: &[Duration]) {
    eprintln!("all ended after {took:?}");
    assert!(took.iter().all(|took| *took < PROMISED), "{took:?}");
}

#[test]
fn the_others_end_within_five_seconds_of_a_ranks_death() {
    assert_promised(&kill_while_isolated(2));
}

#[test]
fn the_others_end_within_five_seconds_of_a_ranks_death_under_load() {
    assert_promised(&kill_under_load(2, "3s"));
}

#[test]
fn the_others_end_within_five_seconds_of_a_ranks_death_at_any_moment() {
    assert_promised(&kill_at_moments(4));
}

#[test]
fn ranks_end_within_five_seconds_of_their_launchers_death() {
    let mut job = Job::start(tailback(words("congest -n 4")));
    let ranks = job.ranks(4);
    job.signal(Signal::KILL);
    let start = Instant::now();
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
    assert_promised(&[start.elapsed()]);
}
