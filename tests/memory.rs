//! A rank's memory does not grow with the length of a test, and stays small.
//!
//! What is looked at is RssAnon: all memory that is no mapped file, so heap, stacks and segments together. That is more
//! than a rank's own structures, so a limit on it is a limit on them.

use std::time::Duration;

use crate::common::{Job, cpu_ticks, eventually, memory_kib, roles, tailback, words};

const LIMIT_KIB: u64 = 8 * 1024;
/// Of the rank that collects: what all ranks send up may be there at once, the more the less it gets to run.
const COLLECTING_KIB: u64 = 12 * 1024;

#[test]
fn memory_does_not_grow_with_the_test() {
    let mut job = Job::start(tailback(words("network -n 2 --canaries lat --budget 100s --preset gpcnet")));
    let ranks = job.ranks(2);
    // By processor time: how much was measured by then does not depend on what else runs.
    let sample = |seconds: u64| {
        eventually("it has worked", || ranks.iter().all(|pid| cpu_ticks(*pid) > 100 * seconds).then_some(()));
        ranks.iter().map(|pid| memory_kib(*pid, "RssAnon").expect("a running rank")).collect::<Vec<_>>()
    };
    let (early, late) = (sample(2), sample(6));
    eprintln!("RssAnon in KiB after 2 s {early:?}, after 6 s {late:?}");
    for (early, late) in early.iter().zip(&late) {
        // A few pages may be touched late for the first time; the samples themselves would be megabytes.
        assert!(*late <= early + 64, "{early} KiB after 2 s, {late} KiB after 6 s");
        assert!(*late < LIMIT_KIB, "{late} KiB");
    }
}

/// The most memory each rank of a job ever had, sampled.
fn highest(line: &str, size: usize) -> Vec<u64> {
    let mut job = Job::start(tailback(words(line)));
    let ranks = job.ranks(size);
    let mut highest = vec![0; size];
    while job.is_running() {
        for (pid, highest) in ranks.iter().zip(&mut highest) {
            *highest = memory_kib(*pid, "RssAnon").unwrap_or(0).max(*highest);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    eprintln!("highest RssAnon in KiB by rank {highest:?}");
    assert_eq!(job.end().code(), Some(0));
    highest
}

#[test]
fn ranks_stay_small_whatever_they_do() {
    // Small messages, so that segments do not count; rank 0, which collects, once as canary and once as congestor.
    let line = |seed: u64| format!("run -n 10 --canaries lat,allreduce --budget 1s --seed {seed}");
    let measures = |seed: &u64| roles(&line(*seed))["canary"].contains(&0);
    let canary = (0..100).find(measures).expect("one in five");
    let congestor = (0..100).find(|seed| !measures(seed)).expect("four in five");
    for seed in [canary, congestor] {
        let highest = highest(&line(seed), 10);
        let limits = std::iter::once(COLLECTING_KIB).chain(std::iter::repeat(LIMIT_KIB));
        assert!(highest.iter().zip(limits).all(|(kib, limit)| (1..limit).contains(kib)), "{highest:?}");
    }
}
