//! Ranks that are killed or stopped, in any phase: the others end soon, and one line says who, where and when.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Folder, Job, cpu_ticks, eventually, is_gone, roles, succeed, tailback, words};
use rustix::process::{Pid, Signal, kill_process};

/// Ends at all; how soon is measured in `measured::failures`.
const LIMIT: Duration = Duration::from_secs(120);
/// A phase is told when it is entered.
const BEAT: Duration = Duration::from_millis(300);
/// One placement, isolated and then loaded, so that a moment has one phase.
const RUN: &str = "run -n 10 --loop closed --seed 5 --placements 1 --blocks 1 --canaries lat --budget";

/// Kills a rank and waits for the end of all others, which must name it; how long they took.
fn kill(job: Job, ranks: &[Pid], victim: usize, phase: &str) -> Duration {
    let start = Instant::now();
    kill_process(ranks[victim], Signal::KILL).expect("the rank is there");
    let outcome = job.end_within(LIMIT);
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
    let took = start.elapsed();
    let line = outcome.refusal();
    let named = format!("tailback: error: rank {victim} (host {}) was lost in phase \"{phase}", host());
    assert!(line.starts_with(&named), "{line}");
    took
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Waits until a rank has done more than it takes to start, and its phase is told: in a closed loop, which does not rest.
fn wait_until_busy(rank: Pid) {
    wait_until_used(rank, 40);
}

/// Waits until a rank has used so many ticks more of processor time, and a phase that begins with that is told.
fn wait_until_used(rank: Pid, ticks: u64) {
    let before = cpu_ticks(rank);
    eventually("the phase has begun", || (cpu_ticks(rank) > before + ticks).then_some(()));
    std::thread::sleep(BEAT);
}

/// Rank 0, a canary, a congestor and the last rank, each once.
fn victims(roles: &BTreeMap<String, Vec<usize>>) -> BTreeSet<usize> {
    BTreeSet::from([0, roles["canary"][0], roles["incast"][0], 9])
}

/// All of them.
const EACH: usize = 4;

#[test]
fn tests_that_were_finished_before_a_rank_was_lost_are_kept() {
    for victim in [0, 2] {
        let folder = Folder::new();
        let line = format!(
            "network -n 4 --canaries lat,allreduce --loop closed --budget 5s --out {}",
            folder.path("result.json")
        );
        let endless = "--set lat.measurements=1000 --set lat.iterations=1000000 --set allreduce.iterations=10000000";
        let mut job = Job::start(tailback(words(&format!("{line} {endless}"))));
        let ranks = job.ranks(4);
        job.eventually("the first test is kept", || folder.has("result.json").then_some(()));
        wait_until_used(ranks[victim], 1);
        kill(job, &ranks, victim, "idle allreduce 8 B\"");
        let file = folder.json("result.json");
        assert_eq!(file["interrupted"], true);
        let kept: Vec<_> = file["runs"][0]["tests"].as_array().unwrap().iter().map(|test| &test["kernel"]).collect();
        assert_eq!(kept, ["lat"], "killed {victim}");
        assert!(
            file["notes"].to_string().contains("the job ended before these runs were complete: tcp"),
            "{}",
            file["notes"]
        );
    }
}

/// Kills rank 0 and so many kinds of ranks in all while canaries measure alone; how long the others took to end.
pub fn kill_while_isolated(kinds: usize) -> Vec<Duration> {
    let line = format!("{RUN} 60s");
    let roles = roles(&line);
    let one = |victim| {
        let mut job = Job::start(tailback(words(&line)));
        let ranks = job.ranks(10);
        wait_until_busy(ranks[roles["canary"][0]]);
        kill(job, &ranks, victim, "idle lat 8 B\"")
    };
    victims(&roles).into_iter().take(kinds).map(one).collect()
}

#[test]
fn a_rank_killed_while_canaries_measure_alone_is_named() {
    kill_while_isolated(EACH);
}

/// The same under load, in phases of `budget`.
pub fn kill_under_load(kinds: usize, budget: &str) -> Vec<Duration> {
    let line = format!("{RUN} {budget}");
    let roles = roles(&line);
    let one = |victim| {
        let folder = Folder::new();
        let mut job = Job::start(tailback(words(&format!("{line} --out {}", folder.path("result.json")))));
        let ranks = job.ranks(10);
        job.eventually("the idle test is kept", || folder.has("result.json").then_some(()));
        // Until then a congestor had nothing to do.
        wait_until_used(ranks[roles["incast"][0]], 3);
        kill(job, &ranks, victim, "loaded lat 8 B\"")
    };
    victims(&roles).into_iter().take(kinds).map(one).collect()
}

#[test]
fn a_rank_killed_under_load_is_named() {
    kill_under_load(EACH, "6s");
}

#[test]
fn a_rank_killed_at_any_moment_ends_the_job() {
    kill_at_moments(16);
}

/// Kills ranks in turn, at so many moments from the first process to the last barrier; how long the others took to end.
pub fn kill_at_moments(moments: u32) -> Vec<Duration> {
    let line = "run -n 6 --canaries lat,allreduce --budget 100ms";
    let mut took = Vec::new();
    // How long a job lives: learnt from those that ended before they were struck, since the machine's speed changes.
    let mut whole = Duration::from_secs(4);
    // Bounded: a job that is over brings `whole` below its own length.
    for attempt in 0..4 * moments {
        let begun = Instant::now();
        let mut job = Job::start(tailback(words(line)));
        let ranks = job.ranks(6);
        std::thread::sleep(whole * took.len() as u32 / moments);
        let victim = attempt as usize % 6;
        let start = Instant::now();
        // It may be over already, and waited for.
        let _ = kill_process(ranks[victim], Signal::KILL);
        let outcome = job.end_within(LIMIT);
        eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
        if outcome.code() == Some(0) {
            assert!(outcome.errors().is_empty(), "{outcome:?}");
            whole = whole.min(begun.elapsed()) * 9 / 10;
            continue;
        }
        took.push(start.elapsed());
        let said = outcome.refusal();
        // Rank 0 is known by its address until it has told its name.
        let names = [host(), "127.0.0.1".to_owned()].map(|host| format!("rank {victim} (host {host})"));
        assert!(
            names.iter().any(|name| said.contains(name)) && said.contains(" in phase \""),
            "{}: {said}",
            took.len()
        );
        if took.len() as u32 == moments {
            return took;
        }
    }
    panic!("only {} of {moments} moments lay inside a job: the last lasted {whole:?}", took.len());
}

/// The others miss a rank that is stopped, as `how` says, and on a machine that is too busy for them the launcher does.
fn assert_missed(line: &str, rank: &str, how: &str) {
    let by_launcher = "has been stopped for 9 s, by SIGSTOP or a debugger, while others run";
    assert!(line.contains(rank) && (line.contains(how) || line.ends_with(by_launcher)), "{line}");
}

#[test]
fn a_stopped_rank_is_named_by_the_watchdog() {
    // A closed loop is busy when it measures.
    let line = "run -n 4 --seed 5 --placements 1 --blocks 1 --canaries lat --loop closed --budget 60s --stall-limit 3s";
    let canary = roles(line)["canary"][0];
    for victim in [0, 3] {
        let mut job = Job::start(tailback(words(line)));
        let ranks = job.ranks(4);
        wait_until_busy(ranks[canary]);
        kill_process(ranks[victim], Signal::STOP).expect("the rank is there");
        let outcome = job.end_within(LIMIT);
        eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
        let line = outcome.refusal();
        assert_missed(line, &format!("rank {victim} (host {})", host()), "no sign of life for ");
    }
}

#[test]
fn waiting_for_a_long_test_is_no_stall() {
    // Congestors have nothing to do for longer than the limit while the canaries measure alone.
    let outcome = succeed("run -n 4 --placements 1 --blocks 1 --canaries lat --budget 4s --stall-limit 2s");
    assert!(outcome.errors().is_empty());
}

#[test]
fn a_stopped_rank_is_named_though_it_may_make_no_progress_for_longer() {
    let mut job =
        Job::start(tailback(words("network -n 3 --ranks-per-node 1 --canaries lat --loop closed --budget 60s")));
    let ranks = job.ranks(3);
    wait_until_busy(ranks[1]);
    kill_process(ranks[1], Signal::STOP).expect("the rank is there");
    let outcome = job.end_within(LIMIT);
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
    let line = outcome.refusal();
    let missed = "was lost in phase \"idle lat 8 B\": no sign of life for 7 s";
    assert_missed(line, &format!("rank 1 (host {})", host()), missed);
}

#[test]
fn ranks_that_stopped_together_go_on_together() {
    let mut job =
        Job::start(tailback(words("network -n 3 --ranks-per-node 1 --canaries lat --loop closed --budget 15s")));
    let ranks = job.ranks(3);
    wait_until_busy(ranks[1]);
    let signal = |signal| ranks.iter().for_each(|rank| kill_process(*rank, signal).expect("the rank is there"));
    signal(Signal::STOP);
    // Longer than a rank may be silent.
    std::thread::sleep(Duration::from_secs(10));
    signal(Signal::CONT);
    let outcome = job.end();
    assert_eq!((outcome.code(), outcome.errors().len()), (Some(0), 0), "{outcome:?}");
}

#[test]
fn a_rank_that_stopped_before_it_joined_is_named() {
    let program = env!("CARGO_BIN_EXE_tailback");
    let script = "[ $TAILBACK_RANK = 1 ] && kill -STOP $$; exec \"$0\" network --budget 100ms --quiet";
    let outcome = Job::start(tailback(["launch", "-n", "3", "--", "sh", "-c", script, program])).end();
    let expected =
        format!("tailback: error: rank 1 (host {}) has been stopped for 9 s, by SIGSTOP or a debugger", host());
    assert!(outcome.refusal().starts_with(&expected), "{outcome:?}");
}

#[test]
fn ranks_that_were_asked_for_something_else_are_named() {
    let base = "network --budget 100ms --quiet --ranks-per-node 1";
    for (rank, other) in [(2, "--seed 7"), (1, "--set lat.bytes=64"), (3, "--protocol put")] {
        let script = format!("[ $TAILBACK_RANK = {rank} ] && exec \"$0\" {base} {other}; exec \"$0\" {base}");
        let program = env!("CARGO_BIN_EXE_tailback");
        let arguments = ["launch", "-n", "4", "--", "sh", "-c", &script, program];
        let outcome = Job::start(tailback(arguments)).end();
        let expected = format!(
            "tailback: error: rank {rank} (host {}) was started with other options than rank 0: all ranks of a job run the \
             same command",
            host()
        );
        assert_eq!(outcome.refusal(), expected);
    }
}

/// Libraries of a fabric tidy up at an exit. One that waits there for ever, as what another thread does in it may make it,
/// must not keep a rank whose launcher is gone.
#[test]
fn a_library_that_does_not_let_ranks_exit_is_not_waited_for() {
    let folder = Folder::new();
    let source = folder.write(
        "stuck.c",
        "#include <unistd.h>\n__attribute__((destructor)) static void stuck(void) { for (;;) sleep(1000); }\n",
    );
    let library = folder.path("stuck.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status();
    assert!(compiled.expect("what links Rust compiles C").success());
    let script =
        format!(r#"LD_PRELOAD={library} exec "$0" network --ranks-per-node 1 --loop closed --budget 100s --quiet"#);
    let binary = env!("CARGO_BIN_EXE_tailback");
    let mut job = Job::start(tailback(["launch", "-n", "3", "--", "sh", "-c", &script, binary]));
    let ranks = job.ranks(3);
    wait_until_busy(ranks[1]);
    job.signal(Signal::KILL);
    assert_eq!(job.end_within(LIMIT).status.signal(), Some(9));
    eventually("all ranks ended", || ranks.iter().all(|pid| is_gone(*pid)).then_some(()));
}
