//! What becomes of a job when a process of it is killed, stops or panics: one message, and everybody ends with code 2.
//!
//! This program starts itself again: [`as_rank`] is what such a process runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tailback_bootstrap::{JoinConfig, Secret, TcpBootstrap};
use tailback_transport::{Bootstrap, Monitor};

use crate::job::free_address;

/// Far above the 5 s it takes: the machine may be busy with other tests.
const END_LIMIT: Duration = Duration::from_secs(20);

/// The environment variable that says what a rank does: `work` or `panic`.
const BEHAVIOUR: &str = "TEST_BEHAVIOUR";

#[test]
#[ignore = "a rank that other tests start"]
#[allow(clippy::print_stdout, reason = "the tests wait for it")]
fn as_rank() {
    let mut config = JoinConfig::from_env().unwrap().unwrap();
    (config.fan_out, config.stall_limit) = (2, Some(Duration::from_secs(6)));
    let (rank, monitor) = (config.rank, Arc::new(Monitor::new()));
    let mut bootstrap = TcpBootstrap::join(config, monitor.clone()).unwrap();
    monitor.enter("loaded test");
    assert!(rank.0 != 1 || std::env::var(BEHAVIOUR).unwrap() != "panic", "a bug");
    // Of a rank that is lost here, the watcher tells, and ends this process too.
    if bootstrap.barrier().is_ok() {
        println!("ready");
    }
    for _ in 0..6000 {
        monitor.tick();
        thread::sleep(Duration::from_millis(20));
    }
}

struct Job {
    ranks: Vec<Child>,
}

impl Job {
    fn start(size: usize, behaviour: &str, secret: impl Fn(usize) -> Secret) -> Self {
        let root = free_address();
        let start = |rank: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args(["processes::as_rank", "--exact", "--ignored", "--nocapture"])
                .env(BEHAVIOUR, behaviour)
                .env("TAILBACK_RANK", rank.to_string())
                .env("TAILBACK_SIZE", size.to_string())
                .env("TAILBACK_ROOT", root.to_string())
                .env("TAILBACK_SECRET", secret(rank).to_hex())
                .env("TAILBACK_HOST", format!("node{rank}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Job { ranks: (0..size).map(start).collect() }
    }

    /// Waits until every rank works, and a heartbeat longer.
    fn wait_ready(&mut self) {
        for child in &mut self.ranks {
            let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap().ends_with("ready")), "it ended");
        }
        thread::sleep(Duration::from_millis(3500));
    }

    fn signal(&self, rank: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.ranks[rank]), signal).unwrap();
    }

    /// The ranks' exit codes and what each wrote to stderr. Ranks in `stopped` are killed once the others ended.
    fn end(mut self, stopped: &[usize]) -> (Vec<Option<i32>>, Vec<String>) {
        let deadline = Instant::now() + END_LIMIT;
        let mut codes = vec![None; self.ranks.len()];
        for (rank, child) in self.ranks.iter_mut().enumerate().filter(|(r, _)| !stopped.contains(r)) {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    codes[rank] = status.code();
                    break;
                }
                if Instant::now() > deadline {
                    self.ranks.iter_mut().for_each(|c| drop(c.kill()));
                    panic!("rank {rank} did not end within {END_LIMIT:?}");
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        let mut said = Vec::new();
        for child in &mut self.ranks {
            let _ = child.kill();
            let _ = child.wait();
            let mut text = String::new();
            child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
            said.push(text);
        }
        (codes, said)
    }
}

/// Kills or stops `victim` of a working job of 7; `speaker` must print `message` and all others end silently with 2.
fn strike(victim: usize, signal: Signal, speaker: usize, message: &str) {
    let secret = Secret::random().unwrap();
    let mut job = Job::start(7, "work", |_| secret.clone());
    job.wait_ready();
    job.signal(victim, signal);
    let (codes, said) = job.end(&[victim]);
    let lost = format!("rank {victim} (host node{victim}) was lost in phase \"loaded test\"");
    for rank in (0..7).filter(|r| *r != victim) {
        let expected = if rank == speaker { format!("tailback: error: {lost}: {message}\n") } else { String::new() };
        assert_eq!((codes[rank], said[rank].as_str()), (Some(2), expected.as_str()), "rank {rank}");
    }
}

/// A leaf, an inner rank and the root, which rank 1 misses.
const VICTIMS: [(usize, usize); 3] = [(6, 0), (1, 0), (0, 1)];

#[test]
fn a_killed_rank_is_named() {
    for (victim, speaker) in VICTIMS {
        strike(victim, Signal::KILL, speaker, "connection closed");
    }
}

#[test]
fn a_stopped_rank_is_named() {
    for (victim, speaker) in VICTIMS {
        let limit = if victim == 0 { 7 } else { 6 };
        strike(victim, Signal::STOP, speaker, &format!("no sign of life for {limit} s"));
    }
}

#[test]
fn a_panic_ends_the_job() {
    let secret = Secret::random().unwrap();
    let (codes, said) = Job::start(3, "panic", |_| secret.clone()).end(&[]);
    assert_eq!(codes, vec![Some(2); 3]);
    assert_eq!(said[0], "tailback: error: rank 1 (host node1), phase \"loaded test\": it panicked\n");
    assert!(said[1].contains("a bug") && said[2].is_empty(), "{said:?}");
}

#[test]
fn a_wrong_secret_is_said() {
    let mut job = Job::start(2, "work", |_| Secret::random().unwrap());
    // Both would try for a minute; both say at once what is wrong.
    let mut first_line = |rank: usize| {
        let mut line = String::new();
        BufReader::new(job.ranks[rank].stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    };
    let (root, other) = (first_line(0), first_line(1));
    job.signal(0, Signal::KILL);
    job.signal(1, Signal::KILL);
    job.end(&[0, 1]);
    assert!(other.starts_with("tailback: warning: what listens at 127."), "{other}");
    assert!(other.contains("job secret of rank 1: check TAILBACK_SECRET is the same for all ranks"), "{other}");
    assert!(root.contains("it says it is rank 1 and has another job secret"), "{root}");
}
