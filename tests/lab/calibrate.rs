//! A load that other jobs make is met, recorded, and made again by a search that was told nothing of it.

use std::process::{Child, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::bench::Bench;

const HOSTS: usize = 16;

/// Starts a job with a rank on each of these hosts, as someone else's launcher would.
fn start(bench: &Bench, hosts: &[usize], line: &str) -> Vec<Child> {
    let rank = |(rank, host): (usize, &usize)| {
        let mut command = bench.command(&["exec", &format!("h{host}"), "--", bench.program.to_str().expect("is text")]);
        command.args(line.split_whitespace());
        command.env("TAILBACK_RANK", rank.to_string()).env("TAILBACK_SIZE", hosts.len().to_string());
        command.env("TAILBACK_ROOT", format!("10.78.0.{}:4777", hosts[0] + 1)).env("TAILBACK_SECRET", "ab".repeat(32));
        command.env("TAILBACK_DATA_IF", "d0").env("TAILBACK_BOOTSTRAP_IF", "c0").env("TAILBACK_WAIT", "block");
        command.env("TAILBACK_GROUP", format!("leaf{}", host * 2 / HOSTS));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
    };
    hosts.iter().enumerate().map(rank).collect()
}

/// Waits for a job, which must succeed, and gives what rank 0 said.
fn end(ranks: Vec<Child>) -> String {
    let outputs: Vec<Output> = ranks.into_iter().map(|rank| rank.wait_with_output().expect("ends")).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(outputs[0].stdout.clone()).expect("is text")
}

fn everywhere(bench: &Bench, line: &str) -> String {
    end(start(bench, &(0..HOSTS).collect::<Vec<_>>(), line))
}

/// The hosts that do not measure, those of the two leaves in turn.
fn others(bench: &Bench, plan: &str) -> Vec<usize> {
    let shown =
        everywhere(bench, &format!("run {plan} --canaries lat --budget 200ms --congestors none --format json --quiet"));
    let result: serde_json::Value = serde_json::from_str(&shown).expect("the result file");
    let nodes = result["system"]["nodes"].as_array().expect("a list");
    let rests =
        |host: &usize| nodes.iter().any(|node| node["name"] == format!("h{host}") && node["roles"][0] == "idle");
    let (one, other): (Vec<usize>, Vec<usize>) = (0..HOSTS).filter(rests).partition(|host| host * 2 / HOSTS == 0);
    let turns = 0..one.len().max(other.len());
    turns.flat_map(|at| [one.get(at), other.get(at)]).flatten().copied().collect()
}

#[test]
fn a_load_that_others_make_is_found_again() {
    const PLAN: &str = "--preset lab --placements 1 --blocks 4 --seed 5";
    const SECRET: [usize; 2] = [6, 3];
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    let bench = Bench::new("calibrate", false);
    let folder = bench.dir.parent().expect("is in a directory");
    let path = |name: &str| folder.join(name).display().to_string();
    let (wild, plan, found) = (path("wild.json"), path("plan.toml"), path("found.json"));
    bench.ok(&["up"]);
    let others = others(&bench, PLAN);
    assert_eq!(others.len(), 12);

    let (a2a, rest) = others.split_at(SECRET[0]);
    let jobs = [("a2a", a2a), ("incast", &rest[..SECRET[1]])];
    let loads = jobs.map(|(kind, hosts)| {
        start(&bench, hosts, &format!("congest --preset lab --congestors {kind} --duration 10m --quiet"))
    });
    std::thread::sleep(Duration::from_secs(2));
    everywhere(&bench, &format!("run {PLAN} --budget 2s --congestors none --label wild --quiet --out {wild}"));
    for load in loads {
        kill_process(Pid::from_child(&load[0]), Signal::INT).expect("it loads");
        end(load);
    }

    let line =
        format!("calibrate --like {wild} --congestors a2a,incast --runs 16 --write {plan} --out {found} --quiet");
    let shown = everywhere(&bench, &line);
    let result: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&found).expect("is there")).expect("is a result");
    let search = &result["calibration"];
    assert!(search["runs"].as_array().expect("a list").len() <= 16);
    for (found, nodes) in search["shares"].as_array().expect("a list").iter().zip(SECRET) {
        let (share, secret) = (found["share"].as_f64().expect("a number"), nodes as f64 / others.len() as f64);
        assert!((share - secret).abs() <= 0.1, "{} has {share}, and had {secret}\n{shown}", found["kernel"]);
    }
    assert!(std::fs::read_to_string(&plan).expect("is there").contains("[congestors]"));
}
