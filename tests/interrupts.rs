//! Ctrl-C and friends: a job ends in order, shows what it has, and its exit code tells.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use crate::common::{Folder, Job, Outcome, cpu_ticks, eventually, is_gone, tailback, words};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Ends at all.
const LIMIT: Duration = Duration::from_secs(120);

/// Two phases that take their budget, after each of which what is complete is kept.
const TWO_PHASES: &str = "network --loop closed -n 6 --canaries lat,allreduce --budget 5s --set lat.measurements=1000 \
                          --set lat.iterations=1000000 --set allreduce.iterations=10000000";

fn start(line: &str, ranks: usize) -> (Job, Vec<Pid>) {
    let mut command: Command = tailback(words(line));
    command.process_group(0);
    let mut job = Job::start(command);
    let ranks = job.ranks(ranks);
    (job, ranks)
}

/// A job that never rests, under way.
fn start_busy(line: &str, ranks: usize) -> (Job, Vec<Pid>) {
    let (mut job, ranks) = start(line, ranks);
    job.eventually("work has begun", || ranks.iter().any(|pid| cpu_ticks(*pid) > 80).then_some(()));
    (job, ranks)
}

/// A job in the second of two phases, whose result is `result.json` in the folder.
fn start_second_phase(folder: &Folder) -> (Job, Vec<Pid>) {
    let (mut job, ranks) = start(&format!("{TWO_PHASES} --out {}", folder.path("result.json")), 6);
    job.eventually("the first phase is kept", || folder.has("result.json").then_some(()));
    (job, ranks)
}

fn end(job: Job, ranks: &[Pid]) -> Outcome {
    let outcome = job.end_within(LIMIT);
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
    outcome
}

#[test]
fn an_interrupted_job_shows_and_keeps_its_complete_phases_and_fails() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = Folder::new();
        let (job, ranks) = start_second_phase(&folder);
        job.signal(signal);
        let outcome = end(job, &ranks);
        assert_eq!(outcome.code(), Some(2), "{outcome:?}");
        assert!(outcome.stdout.contains("lat 8 B"), "{outcome:?}");
        assert!(!outcome.stdout.contains("allreduce"), "it was cut short: {}", outcome.stdout);
        assert!(outcome.stdout.contains("Interrupted: what was not complete is left out"), "{outcome:?}");
        assert!(outcome.errors().is_empty(), "the user knows why: {}", outcome.stderr);
        let result = folder.json("result.json");
        assert_eq!((&result["interrupted"], folder.files()), (&true.into(), 1));
        assert_eq!(result["runs"][0]["tests"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn an_interrupt_of_the_whole_process_group_is_one_interrupt() {
    let folder = Folder::new();
    let (job, ranks) = start_second_phase(&folder);
    kill_process_group(job.pid(), Signal::INT).unwrap();
    let outcome = end(job, &ranks);
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("Interrupted:"), "{outcome:?}");
}

/// When a job's time is over, batch systems signal every task themselves, and once more through their launcher.
#[test]
fn signals_that_a_batch_system_repeats_are_one_request() {
    let folder = Folder::new();
    let (job, ranks) = start_second_phase(&folder);
    for _ in 0..2 {
        ranks.iter().for_each(|pid| kill_process(*pid, Signal::TERM).unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
    let outcome = end(job, &ranks);
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert_eq!(folder.json("result.json")["interrupted"], true, "{outcome:?}");
}

#[test]
fn congestion_ends_well_when_interrupted() {
    let (job, ranks) = start_busy("congest -n 6", 6);
    job.signal(Signal::INT);
    let outcome = end(job, &ranks);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.stdout.starts_with("The congestors delivered ") && outcome.errors().is_empty(), "{outcome:?}");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let folder = Folder::new();
    let (job, ranks) = start_second_phase(&folder);
    job.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(5));
    job.signal(Signal::INT);
    assert_eq!(end(job, &ranks).code(), Some(2));
}

#[test]
fn an_interrupt_at_any_early_moment_ends_the_job() {
    for step in 0..8u64 {
        let mut job = Job::start(tailback(words("run -n 6 --canaries lat --budget 30s")));
        let ranks = job.ranks(6);
        std::thread::sleep(Duration::from_millis(40 * step));
        job.signal(Signal::INT);
        let outcome = end(job, &ranks);
        assert_eq!(outcome.code(), Some(2), "{outcome:?}");
        assert!(outcome.errors().is_empty(), "step {step}: the user knows why: {}", outcome.stderr);
    }
}

/// Studies whose parts are over at once and of which there are more than anyone waits for.
const STUDIES: [(&str, usize, &str); 3] = [
    ("maxrate --most-pairs 1 --largest 64 --iterations 2 --repetitions 1000000", 2, "How many ranks per node"),
    ("contention --random 1 --count 20000 --nodes 2 --bytes 100 --repetitions 3", 2, "The model's times are off by"),
    ("beff -n 2 --rings 1 --bandwidth-bytes 100 --latency-iterations 2 --repetitions 1000000", 2, "random rings"),
];

#[test]
fn an_interrupted_study_shows_and_keeps_what_is_complete() {
    let folder = Folder::new();
    let file = folder.path("result.json");
    for (line, ranks, shown) in STUDIES {
        // Nobody outside sees when the first part is complete: if none was yet, a later interrupt finds some.
        let interrupted = |after: u64| {
            let (job, ranks) = start_busy(&format!("{line} --no-lab --quiet --out {file}"), ranks);
            std::thread::sleep(Duration::from_millis(after));
            job.signal(Signal::INT);
            let outcome = end(job, &ranks);
            assert_eq!(outcome.code(), Some(2), "{line}: {}", outcome.stderr);
            outcome
        };
        let delays = [100, 1000, 5000, 20_000];
        let found = delays.into_iter().map(interrupted).find(|outcome| !outcome.stdout.is_empty());
        let outcome = found.unwrap_or_else(|| panic!("{line}: nothing is complete after {delays:?} ms"));
        assert!(outcome.stdout.contains(shown), "{line}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("\nInterrupted: what was not complete is left out\n"), "{line}");
        assert!(outcome.errors().is_empty(), "{line}: the user knows why: {}", outcome.stderr);
        let result = tailback::result::read(file.as_ref()).unwrap();
        assert!(result.interrupted && result.notes.iter().any(|note| note.contains(" were complete; the rest")));
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(folder.files(), 0);
}

#[test]
fn an_interrupted_study_without_anything_complete_says_so_in_a_line() {
    let folder = Folder::new();
    // One graph of short steps, more of them than anyone waits for.
    let line = "contention --random 1 --count 1 --nodes 2 --bytes 100 --repetitions 1000000 --no-lab --quiet --out";
    let (job, ranks) = start_busy(&format!("{line} {}", folder.path("result.json")), 2);
    job.signal(Signal::INT);
    let outcome = end(job, &ranks);
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""), "{outcome:?}");
    let said = "tailback: interrupted before the first graph was complete: there is nothing to show\n";
    assert_eq!(outcome.stderr, said);
    assert_eq!(folder.files(), 0, "an older file there would be worth more than nothing");
}
