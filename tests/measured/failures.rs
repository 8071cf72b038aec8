//! How soon a job ends that has lost a rank or its launcher.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{Job, eventually, is_gone, roles, tailback, words};
use crate::failures::{RUN, kill, victims, wait_until_busy};

/// What the product promises.
const PROMISED: Duration = Duration::from_secs(5);

#[test]
fn the_others_end_within_five_seconds_of_a_ranks_death() {
    let line = format!("{RUN} 60s");
    let roles = roles(&line);
    for victim in victims(&roles) {
        let mut job = Job::start(tailback(words(&line)));
        let ranks = job.ranks(10);
        wait_until_busy(ranks[roles["canary"][0]]);
        let start = Instant::now();
        let outcome = kill(job, &ranks, victim);
        eprintln!("rank {victim} killed, all ended after {:?}: {}", start.elapsed(), outcome.stderr.trim());
        assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
    }
}

#[test]
fn ranks_end_within_five_seconds_of_their_launchers_death() {
    let mut job = Job::start(tailback(words("congest -n 4")));
    let ranks = job.ranks(4);
    job.signal(Signal::KILL);
    let start = Instant::now();
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
    assert!(start.elapsed() < PROMISED, "{:?}", start.elapsed());
}
