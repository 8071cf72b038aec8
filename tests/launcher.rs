//! `tailback launch`, and jobs that others start: by hand, or under an environment like Slurm's.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::{self, Job, Outcome, succeed, tailback, words};

fn launch(options: &str, script: &str) -> Outcome {
    let mut arguments = words(&format!("launch {options} -- sh -c"));
    arguments.push(script.to_owned());
    Job::start(tailback(arguments)).end()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn output_keeps_its_lines_and_streams() {
    let outcome = launch("-n 3", "echo out $TAILBACK_RANK of $TAILBACK_SIZE; echo err $TAILBACK_RANK >&2");
    assert_eq!(outcome.code(), Some(0));
    assert_eq!(sorted(&outcome.stdout), ["out 0 of 3", "out 1 of 3", "out 2 of 3"]);
    assert_eq!(sorted(&outcome.stderr), ["err 0", "err 1", "err 2"]);
    let outcome = launch("-n 2 --prefix", "echo out; echo err >&2");
    assert_eq!(
        (sorted(&outcome.stdout), sorted(&outcome.stderr)),
        (vec!["[0] out", "[1] out"], vec!["[0] err", "[1] err"])
    );
}

#[test]
fn pretended_hosts() {
    let outcome = launch("-n 5 --ranks-per-node 2", "echo $TAILBACK_RANK $TAILBACK_HOST ${#TAILBACK_SECRET}");
    assert_eq!(sorted(&outcome.stdout), ["0 node0 64", "1 node0 64", "2 node1 64", "3 node1 64", "4 node2 64"]);
}

#[test]
fn lines_of_several_writes_stay_whole() {
    let script =
        "for line in $(seq 100); do for part in $(seq 20); do printf $TAILBACK_RANK.$line-; done; echo; done; printf x";
    let outcome = launch("-n 4 --prefix", script);
    let lines = |rank: usize| (1..=100).map(move |line| format!("[{rank}] {}", format!("{rank}.{line}-").repeat(20)));
    let expected = (0..4).flat_map(|rank| lines(rank).chain([format!("[{rank}] x")]));
    assert_eq!(outcome.stdout.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn exit_codes() {
    assert_eq!(launch("-n 3", "exit 0").code(), Some(0));
    let outcome = launch("-n 3", "[ $TAILBACK_RANK != 0 ]");
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(1), ""), "a result: a threshold failed");
    let outcome = launch("-n 3", "[ $TAILBACK_RANK != 0 ] || exit 3");
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(3), ""), "a result: a threshold is inconclusive");
    let outcome = launch("-n 3", "if [ $TAILBACK_RANK = 1 ]; then exit 7; fi; sleep 60");
    assert_eq!(
        (outcome.code(), outcome.stderr.as_str()),
        (Some(7), "tailback: error: rank 1 ended with exit code 7\n")
    );
    let outcome = launch("-n 3", "if [ $TAILBACK_RANK = 2 ]; then kill -9 $$; fi; sleep 60");
    assert!(outcome.refusal().contains("rank 2 (host ") && outcome.stderr.contains("signal 9"), "{outcome:?}");
    assert!(common::run("launch -n 2 -- ./no-such-program").refusal().contains("./no-such-program: command not found"));
}

/// Starts two ranks that run `script` and are told so many times to end once both have begun.
fn interrupted(script: &str, signals: &[Signal]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun.");
    let script = format!("{script}; touch {}$TAILBACK_RANK; while true; do sleep 0.05; done", begun.display());
    let mut job = Job::start(tailback(["launch", "-n", "2", "--", "sh", "-c", &script]));
    job.eventually("both have begun", || (std::fs::read_dir(folder.path()).unwrap().count() == 2).then_some(()));
    for (number, signal) in signals.iter().enumerate() {
        std::thread::sleep(std::time::Duration::from_millis(300 * number as u64));
        job.signal(*signal);
    }
    job.end()
}

#[test]
fn signals_reach_ranks_whose_own_code_counts() {
    let (int, term) = (Signal::INT, Signal::TERM);
    for (script, signals, code) in [
        ("true", &[int][..], 130),
        ("true", &[term], 143),
        ("true", &[Signal::QUIT], 131),
        ("trap 'exit 0' INT", &[int], 0),
        ("trap 'exit 7' INT", &[int], 7),
        // Ranks that do not listen are killed when the user asks again.
        ("trap '' INT", &[int, int], 130),
    ] {
        let outcome = interrupted(script, signals);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(code), ""), "{script} {signals:?}");
    }
}

#[test]
fn ranks_of_tailback_find_each_other() {
    let program = Path::new(env!("CARGO_BIN_EXE_tailback")).display();
    let outcome = succeed(&format!(
        "launch -n 6 --ranks-per-node 2 -- {program} network --preset quick --budget 100ms --canaries lat,a2a --format json"
    ));
    let result = outcome.json();
    let nodes: Vec<&str> =
        result["system"]["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["node0", "node1", "node2"]);
    assert_eq!(result["system"]["launcher"], "tailback launch");
    assert!(!outcome.stdout.contains("SECRET"), "the secret is not kept");
    let info = succeed(&format!("launch -n 1 -- {program} info"));
    assert!(info.stdout.contains("rank 0 of 1, started by tailback launch"), "{}", info.stdout);
}

/// Two processes that a cluster's launcher would start.
fn pair(line: &str, environment: impl Fn(usize, &mut Command)) -> [Outcome; 2] {
    let _turn = common::turn();
    let jobs = [0, 1].map(|rank| {
        let mut command = tailback(words(line));
        environment(rank, &mut command);
        Job::start_beside(command)
    });
    jobs.map(Job::end)
}

#[test]
fn ranks_by_hand_on_two_hosts() {
    let root = common::free_address();
    let secret = succeed("secret").stdout.trim().to_owned();
    assert_eq!(secret.len(), 64);
    let [first, second] = pair("network --budget 100ms --canaries lat --format json", |rank, command| {
        command.env("TAILBACK_RANK", rank.to_string()).env("TAILBACK_SIZE", "2").env("TAILBACK_SECRET", &secret);
        command.env("TAILBACK_ROOT", root.to_string()).env("TAILBACK_HOST", ["east", "west"][rank]);
    });
    assert_eq!((first.code(), second.code()), (Some(0), Some(0)), "{first:?} {second:?}");
    assert_eq!((second.stdout.as_str(), second.stderr.as_str()), ("", ""), "only rank 0 speaks");
    let nodes = &first.json()["system"]["nodes"];
    assert_eq!((&nodes[0]["name"], &nodes[1]["name"]), (&"east".into(), &"west".into()));
    assert_eq!(first.json()["plan"]["preset"], "quick", "under a launcher the plan is the same as without");
}

fn slurm(rank: usize, command: &mut Command) {
    // A job number of its own, as the port is derived from it.
    let job = std::process::id().to_string();
    command.env("SLURM_PROCID", rank.to_string()).env("SLURM_NTASKS", "2").env("SLURM_JOB_ID", job);
    command.env("SLURM_STEP_ID", "0").env("SLURM_STEP_NODELIST", "localhost");
}

#[test]
fn slurms_variables_make_a_job() {
    let secret = succeed("secret").stdout.trim().to_owned();
    let line = "network --ranks-per-node 1 --budget 100ms --canaries lat,bw --format json";
    let [first, second] = pair(line, |rank, command| {
        slurm(rank, command);
        command.env("TAILBACK_SECRET", &secret);
    });
    assert_eq!((first.code(), second.code()), (Some(0), Some(0)), "{first:?} {second:?}");
    assert_eq!(first.json()["system"]["launcher"], "Slurm");
    assert_eq!(second.stdout, "");
}

#[test]
fn slurm_without_a_secret_is_said_once() {
    let [first, second] = pair("network", slurm);
    assert!(first.refusal().contains("export TAILBACK_SECRET=$(tailback secret)"), "{first:?}");
    assert_eq!((second.code(), second.stderr.as_str()), (Some(2), ""));
}

/// The binary under a limit on open files, as `ulimit` takes it.
fn limited(limit: &str, line: &str, environment: &[(&str, &str)]) -> Outcome {
    let program = Path::new(env!("CARGO_BIN_EXE_tailback")).display();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec {program} {line}")]).env_clear().env("PATH", "/usr/bin:/bin");
    shell.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
    Job::start(shell).end()
}

#[test]
fn a_limit_on_open_files_is_met_before_the_job() {
    let outcome = limited("-n 100", "launch -n 40 -- true", &[]);
    let said = outcome.refusal();
    assert!(said.contains("the launcher of 40 ranks needs 144 open files, and the limit is 100"), "{said}");
    assert!(said.contains("ulimit -n 144"), "what to type: {said}");
    // A soft limit is no obstacle.
    assert_eq!(limited("-Sn 100", "launch -n 40 -- true", &[]).code(), Some(0));
    // Rank 0 of a job that somebody else starts: before it waits for anyone.
    let secret = succeed("secret").stdout.trim().to_owned();
    let job = [
        ("TAILBACK_RANK", "0"),
        ("TAILBACK_SIZE", "500"),
        ("TAILBACK_ROOT", "127.0.0.1:9"),
        ("TAILBACK_SECRET", secret.as_str()),
    ];
    let outcome = limited("-n 300", "network", &job);
    let said = outcome.refusal();
    assert!(said.contains("rank 0 of 500 needs 662 open files, and the limit is 300"), "{said}");
}
