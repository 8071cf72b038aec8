//! What becomes of a job when a rank dies, stops or gives up: one message, and everybody ends with code 2.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tailback_bootstrap::Secret;

use crate::Test;
use crate::address::free_address;

pub const TESTS: &[Test] = &[
    ("ranks_as_processes_finish", ranks_as_processes_finish),
    ("a_killed_leaf_is_named", a_killed_leaf_is_named),
    ("a_killed_inner_rank_is_named", a_killed_inner_rank_is_named),
    ("a_killed_root_is_named_by_rank_1", a_killed_root_is_named_by_rank_1),
    ("a_stopped_rank_is_named", a_stopped_rank_is_named),
    ("a_stopped_inner_rank_is_named", a_stopped_inner_rank_is_named),
    ("a_stopped_root_is_named_by_rank_1", a_stopped_root_is_named_by_rank_1),
    ("an_abort_is_printed_once", an_abort_is_printed_once),
    ("a_panic_ends_the_job", a_panic_ends_the_job),
    ("a_wrong_secret_is_said", a_wrong_secret_is_said),
];

/// Far above the 5 s it takes: the machine may be busy with other tests.
const END_LIMIT: Duration = Duration::from_secs(20);

struct Job {
    ranks: Vec<Child>,
}

impl Job {
    fn start(size: usize, arguments: &[&str]) -> Self {
        let secret = Secret::random().unwrap();
        Self::start_with(size, arguments, |_| secret.to_hex())
    }

    fn start_with(size: usize, arguments: &[&str], secret: impl Fn(usize) -> String) -> Self {
        let root = free_address();
        let start = |rank: usize| {
            Command::new(std::env::current_exe().unwrap())
                .arg("as-rank")
                .args(arguments)
                .env("TAILBACK_RANK", rank.to_string())
                .env("TAILBACK_SIZE", size.to_string())
                .env("TAILBACK_ROOT", root.to_string())
                .env("TAILBACK_SECRET", secret(rank))
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
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert!(line.starts_with("ready"), "{line:?}");
        }
        std::thread::sleep(Duration::from_millis(3500));
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
                std::thread::sleep(Duration::from_millis(10));
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

/// Kills or stops `victim` of a working job; `speaker` must print `message` and all others end silently with 2.
fn strike(size: usize, arguments: &[&str], victim: usize, signal: Signal, speaker: usize, message: &str) {
    let mut job = Job::start(size, &[&["work"], arguments].concat());
    job.wait_ready();
    job.signal(victim, signal);
    let (codes, said) = job.end(&[victim]);
    for rank in (0..size).filter(|r| *r != victim) {
        let expected = if rank == speaker { format!("tailback: error: {message}\n") } else { String::new() };
        assert_eq!((codes[rank], said[rank].as_str()), (Some(2), expected.as_str()), "rank {rank}");
    }
}

fn ranks_as_processes_finish() {
    for (size, fan_out) in [(1, "32"), (2, "32"), (3, "1"), (40, "32")] {
        let (codes, said) = Job::start(size, &["ok", fan_out]).end(&[]);
        assert_eq!(codes, vec![Some(0); size]);
        assert_eq!(said.concat(), "");
    }
}

fn a_killed_leaf_is_named() {
    let message = "rank 6 (host node6) was lost in phase \"loaded test\": connection closed";
    strike(7, &["2"], 6, Signal::KILL, 0, message);
}

fn a_killed_inner_rank_is_named() {
    let message = "rank 1 (host node1) was lost in phase \"loaded test\": connection closed";
    strike(15, &["2"], 1, Signal::KILL, 0, message);
}

fn a_killed_root_is_named_by_rank_1() {
    let message = "rank 0 (host node0) was lost in phase \"loaded test\": connection closed";
    strike(7, &["2"], 0, Signal::KILL, 1, message);
}

fn a_stopped_rank_is_named() {
    let message = "rank 6 (host node6) was lost in phase \"loaded test\": no sign of life for 6 s";
    strike(7, &["2", "6"], 6, Signal::STOP, 0, message);
}

fn a_stopped_inner_rank_is_named() {
    let message = "rank 1 (host node1) was lost in phase \"loaded test\": no sign of life for 6 s";
    strike(7, &["2", "6"], 1, Signal::STOP, 0, message);
}

fn a_stopped_root_is_named_by_rank_1() {
    let message = "rank 0 (host node0) was lost in phase \"loaded test\": no sign of life for 7 s";
    strike(7, &["2", "6"], 0, Signal::STOP, 1, message);
}

fn an_abort_is_printed_once() {
    let (codes, said) = Job::start(7, &["abort-2", "2"]).end(&[]);
    assert_eq!(codes, vec![Some(2); 7]);
    assert_eq!(said.concat(), "tailback: error: rank 2 (host node2), phase \"loaded test\": the answer is wrong\n");
}

fn a_panic_ends_the_job() {
    let (codes, said) = Job::start(3, &["panic-1", "2"]).end(&[]);
    assert_eq!(codes, vec![Some(2); 3]);
    assert_eq!(said[0], "tailback: error: rank 1 (host node1), phase \"loaded test\": it panicked\n");
    assert!(said[1].contains("a bug") && said[2].is_empty(), "{said:?}");
}

fn a_wrong_secret_is_said() {
    let mut job = Job::start_with(2, &["ok"], |_| Secret::random().unwrap().to_hex());
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
