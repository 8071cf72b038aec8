//! The launcher: exit codes, signals, output, and ranks that never outlive it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::Test;

pub const TESTS: &[Test] = &[
    ("a_job_runs_to_its_end", a_job_runs_to_its_end),
    ("a_hundred_ranks", a_hundred_ranks),
    ("lines_stay_whole", lines_stay_whole),
    ("the_environment_is_complete", the_environment_is_complete),
    ("a_failing_rank_ends_all", a_failing_rank_ends_all),
    ("code_1_is_a_result", code_1_is_a_result),
    ("an_abort_gives_2_and_one_line", an_abort_gives_2_and_one_line),
    ("a_killed_rank_gives_2_and_one_line", a_killed_rank_gives_2_and_one_line),
    ("a_killed_root_gives_2_and_one_line", a_killed_root_gives_2_and_one_line),
    ("a_stopped_rank_is_ended_too", a_stopped_rank_is_ended_too),
    ("a_silent_signal_death_is_told", a_silent_signal_death_is_told),
    ("signals_reach_ranks", signals_reach_ranks),
    ("ranks_that_end_in_order_have_the_last_word", ranks_that_end_in_order_have_the_last_word),
    ("a_second_interrupt_kills", a_second_interrupt_kills),
    ("ranks_do_not_outlive_the_launcher", ranks_do_not_outlive_the_launcher),
    ("an_unknown_command_is_said", an_unknown_command_is_said),
];

/// Whoever runs the tests may ignore signals (nohup does), and that is inherited: these are not.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,QUIT,TERM"]).arg(std::env::current_exe().unwrap());
    command.arg("as-launcher").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn launch(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Starts `size` working ranks and gives the launcher and the ranks' process ids, in rank order.
fn start_working(size: usize, arguments: &[&str]) -> (Child, Vec<Pid>) {
    let mut child =
        command(&[&[&size.to_string(), "prefix", "self", "work", "2"], arguments].concat()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut pids = vec![None; size];
    for _ in 0..size {
        let line = lines.next().unwrap().unwrap();
        let (rank, pid) = line.strip_prefix('[').and_then(|l| l.split_once("] ready ")).unwrap();
        pids[rank.parse::<usize>().unwrap()] = Pid::from_raw(pid.parse().unwrap());
    }
    (child, pids.into_iter().map(Option::unwrap).collect())
}

fn wait_gone(pids: &[Pid]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while pids.iter().any(|pid| test_kill_process(*pid).is_ok() && !is_zombie(*pid)) {
        assert!(Instant::now() < deadline, "ranks are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An orphan that has ended may wait for whoever adopted it.
fn is_zombie(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    status.lines().any(|l| l.starts_with("State:") && l.contains('Z'))
}

fn a_job_runs_to_its_end() {
    for size in ["1", "2", "7"] {
        let out = launch(&[size, "merge", "self", "ok"]);
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()));
        assert_eq!(text(&out.stdout), format!("{size} ranks, tailback launch\n"));
    }
}

fn a_hundred_ranks() {
    let out = launch(&["100", "merge", "self", "ok"]);
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()));
    assert_eq!(text(&out.stdout), "100 ranks, tailback launch\n");
}

fn lines_stay_whole() {
    let out = launch(&["6", "prefix", "self", "lines"]);
    assert_eq!(out.status.code(), Some(0));
    let lines: BTreeSet<String> = text(&out.stdout).lines().map(str::to_owned).collect();
    let expected = |rank: usize| (0..200).map(move |l| format!("[{rank}] {}", format!("{rank}.{l} ").repeat(20)));
    assert_eq!(lines, (0..6).flat_map(expected).collect());
    assert_eq!(text(&launch(&["2", "merge", "self", "print"]).stdout), "no end of line\nno end of line\n");
}

fn the_environment_is_complete() {
    let script = "echo $TAILBACK_RANK $TAILBACK_SIZE $TAILBACK_HOST $WRAPPED $SETUP ${#TAILBACK_SECRET}; cat";
    let out = launch(&["4", "merge", "sh", "-c", script]);
    let shown = text(&out.stdout);
    let lines: BTreeSet<&str> = shown.lines().collect();
    let expected = ["0 4 node0 0 0 64", "1 4 node0 1 1 64", "2 4 node1 2 2 64", "3 4 node1 3 3 64"];
    assert_eq!(lines, expected.into_iter().collect());
}

fn a_failing_rank_ends_all() {
    let start = Instant::now();
    let out = launch(&["4", "merge", "self", "exit7-2"]);
    assert_eq!(out.status.code(), Some(7));
    assert_eq!(text(&out.stderr), "tailback: error: rank 2 ended with exit code 7\n");
    assert!(start.elapsed() < Duration::from_secs(60), "the others sleep for 120 s");
}

fn code_1_is_a_result() {
    let out = launch(&["3", "merge", "self", "exit1-0"]);
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(1), String::new()));
}

fn an_abort_gives_2_and_one_line() {
    let out = launch(&["4", "merge", "self", "abort-2"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "tailback: error: rank 2 (host node1), phase \"loaded test\": the answer is wrong\n");
}

fn killed(victim: usize) -> (Option<i32>, String) {
    let (child, pids) = start_working(5, &[]);
    std::thread::sleep(Duration::from_millis(2500));
    kill_process(pids[victim], Signal::KILL).unwrap();
    let out = child.wait_with_output().unwrap();
    wait_gone(&pids);
    (out.status.code(), text(&out.stderr))
}

fn a_killed_rank_gives_2_and_one_line() {
    let (code, said) = killed(3);
    assert_eq!(code, Some(2));
    let line = "[0] tailback: error: rank 3 (host node1) was lost in phase \"loaded test\": connection closed\n";
    assert_eq!(said, line);
}

fn a_killed_root_gives_2_and_one_line() {
    let (code, said) = killed(0);
    assert_eq!(code, Some(2));
    let line = "[1] tailback: error: rank 0 (host node0) was lost in phase \"loaded test\": connection closed\n";
    assert_eq!(said, line);
}

fn a_stopped_rank_is_ended_too() {
    let (child, pids) = start_working(4, &["6"]);
    std::thread::sleep(Duration::from_millis(2500));
    kill_process(pids[2], Signal::STOP).unwrap();
    let out = child.wait_with_output().unwrap();
    wait_gone(&pids);
    assert_eq!(out.status.code(), Some(2));
    let line = "[0] tailback: error: rank 2 (host node1) was lost in phase \"loaded test\": no sign of life for 6 s\n";
    assert_eq!(text(&out.stderr), line);
}

fn a_silent_signal_death_is_told() {
    let out = launch(&["2", "merge", "sh", "-c", "kill -9 $$"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(said.starts_with("tailback: error: rank ") && said.contains(") was ended by signal 9 in phase"), "{said}");
    assert_eq!(said.lines().count(), 1);
}

fn signals_reach_ranks() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let (child, pids) = start_working(3, &[]);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(code), String::new()));
        wait_gone(&pids);
    }
}

fn ranks_that_end_in_order_have_the_last_word() {
    for (last, code) in [("exit 0", 0), ("exit 7", 7)] {
        let script = format!("trap '{last}' INT; echo ready; while true; do sleep 0.05; done");
        let mut child = command(&["2", "merge", "sh", "-c", &script]).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        (0..2).for_each(|_| assert_eq!(lines.next().unwrap().unwrap(), "ready"));
        kill_process(pid, Signal::INT).unwrap();
        drop(lines);
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(code), String::new()));
    }
}

fn a_second_interrupt_kills() {
    let script = "trap '' INT; echo ready; while true; do sleep 1; done";
    let mut child = command(&["2", "merge", "sh", "-c", script]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    (0..2).for_each(|_| assert_eq!(lines.next().unwrap().unwrap(), "ready"));
    let start = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "the ranks ignore the first");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(60));
}

fn ranks_do_not_outlive_the_launcher() {
    let (mut child, pids) = start_working(4, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_gone(&pids);
}

fn an_unknown_command_is_said() {
    let mut child = command(&["2", "merge", "./no-such-program"]);
    // The wrapper would find out by itself; without it the launcher does.
    let out = child.env("NO_WRAPPER", "1").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "tailback: error: cannot start rank 0: ./no-such-program: command not found\n");
}
