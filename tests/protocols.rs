//! Several runs in one job: over every protocol, into one file, whatever becomes of the later ones.

use std::time::Duration;

use crate::common::{Folder, Job, assert_schema, succeed, tailback, words};
use crate::mistakes::refused;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const QUICK: &str = "-n 6 --seed 5 --placements 3 --canaries lat,bw --congestors incast,put-incast --budget 100ms";

/// A phase that takes its whole budget, so that there is time to do something in it.
const SLOW: &str = "network -n 4 --canaries lat --budget 5s --protocol eager,put \
                    --set lat.rings=1 --set lat.measurements=1000 --set lat.iterations=1000000";

fn labels(file: &Value) -> Vec<(String, Option<u64>)> {
    let runs = file["runs"].as_array().expect("runs").iter();
    let label = |run: &Value| {
        let facts = &run["transport"];
        let name = format!("{} {}", facts["backend"].as_str().unwrap(), facts["protocol"].as_str().unwrap());
        (name, facts["eager_threshold_bytes"].as_u64())
    };
    runs.map(label).collect()
}

/// The result file, once it is there and whole.
fn read(folder: &Folder) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(folder.path("result.json")).ok()?).ok()
}

#[test]
fn every_protocol_runs_the_same_plan_into_one_file() {
    let folder = Folder::new();
    let path = folder.path("result.json");
    let outcome = succeed(&format!("run {QUICK} --protocol eager,put,get --format table --out {path}"));
    for heading in ["over tcp", "eager protocol", "put protocol", "get protocol", "Runs side by side"] {
        assert!(outcome.stdout.contains(heading), "{heading}: {}", outcome.stdout);
    }
    let turns = "3 runs take turns on every placement: over tcp, eager; over tcp, put; over tcp, get";
    assert!(outcome.stderr.contains(turns), "{}", outcome.stderr);

    let file = folder.json("result.json");
    let expected = [("tcp eager", None), ("tcp put", Some(1024)), ("tcp get", Some(1024))];
    assert_eq!(labels(&file), expected.map(|(name, threshold)| (name.to_owned(), threshold)));
    for run in file["runs"].as_array().unwrap() {
        assert_eq!(run["tests"].as_array().unwrap().len(), 4, "two canaries, alone and loaded");
        assert_eq!(run["impacts"].as_array().unwrap().len(), 2);
        assert!(run["tests"].as_array().unwrap().iter().all(|test| !test["summary"].is_null()));
    }
    assert_schema("three protocols", &file);
}

/// On the simulator: where no test can be reported, as on a busy machine, there is nothing to say of protocols.
#[test]
fn every_view_knows_the_protocols_apart() {
    let folder = Folder::new();
    let (path, page) = (folder.path("result.json"), folder.path("page.html"));
    let simulated = "run --transport sim --machine small -n 8 --seed 5 --canaries lat,bw --congestors incast,put-incast --budget 1ms";
    let screen = succeed(&format!("{simulated} --protocol eager,put,get --out {path}")).stdout;
    assert!(screen.contains("lat over sim: eager") && screen.contains("SIMULATED"), "{screen}");
    assert!(succeed(&format!("compare {path} --by protocol --json")).json()["protocols"].is_array());
    let compared = succeed(&format!("compare {path} --by protocol -v")).stdout;
    assert!(compared.contains("Compared with simulated, eager") && compared.contains("simulated, get"), "{compared}");
    succeed(&format!("report {path} --out {page}"));
    let page = folder.text("page.html");
    assert!(page.contains("simulated, put") && page.contains("Network or protocol"));
}

#[test]
fn formats_and_thresholds_tell_runs_apart() {
    let line = format!("run {QUICK} --protocol put,get --eager-threshold 100");
    let csv = succeed(&format!("{line} --format csv")).stdout;
    for protocol in ["tcp,put,", "tcp,get,"] {
        assert!(csv.lines().filter(|line| line.starts_with(protocol)).count() >= 4, "{csv}");
    }
    let tables = succeed(&format!("{line} --format gpcnet")).stdout;
    assert_eq!(tables.matches("Network Tests running with Congestion Tests - Key Results").count(), 2, "{tables}");
    assert!(tables.starts_with("Over tcp, put\n") && tables.contains("\nOver tcp, get\n"), "{tables}");
    let mut failing = tailback(words(&format!("{line} --transport sim --machine small --budget 300us")));
    failing.args(["--fail-if", "lat.avg.isolated > 0"]);
    let outcome = Job::start(failing).end();
    assert_eq!(outcome.code(), Some(1), "{outcome:?}");
    for label in ["simulated, put", "simulated, get"] {
        assert!(outcome.stderr.contains(&format!("tailback: FAIL: {label}: ")), "{}", outcome.stderr);
    }
}

#[test]
fn a_dry_run_lists_the_runs_and_counts_their_time() {
    let duration = |line: &str| {
        let shown = succeed(&format!("run {QUICK} --dry-run {line}")).stdout;
        let said = shown.split("Expected duration: at most ").nth(1).expect("a duration");
        (shown.clone(), said.split_whitespace().next().unwrap().parse::<f64>().unwrap())
    };
    let ((one, single), (three, triple)) = (duration(""), duration("--protocol eager,put,get --eager-threshold 4KiB"));
    assert!(!one.contains("Runs, in turn on every placement"), "{one}");
    assert!(three.contains("Runs, in turn on every placement\n  tcp, eager\n  tcp, put above 4 KiB\n"), "{three}");
    assert!(triple > 2.0 * single, "{single} {triple}");
}

#[test]
fn an_interrupt_in_a_later_run_keeps_the_runs_before() {
    let folder = Folder::new();
    let mut job = Job::start(tailback(words(&format!("{SLOW} --out {}", folder.path("result.json")))));
    let draft = job.eventually("the first run is kept", || read(&folder));
    assert_eq!((labels(&draft).len(), &draft["interrupted"]), (1, &Value::Bool(true)));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("Interrupted: what was not complete is left out"), "{outcome:?}");
    let file = folder.json("result.json");
    assert_eq!((labels(&file).len(), &file["interrupted"]), (1, &Value::Bool(true)));
    assert_eq!(file["runs"][0]["tests"].as_array().unwrap().len(), 1);
}

#[test]
fn a_rank_lost_in_a_later_run_leaves_the_runs_before_and_names_the_run() {
    let folder = Folder::new();
    let mut job = Job::start(tailback(words(&format!("{SLOW} --out {}", folder.path("result.json")))));
    let ranks = job.ranks(4);
    job.eventually("the first run is kept", || read(&folder));
    // Signs of life, which carry the phase, come once a second.
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(ranks[2], Signal::KILL).expect("the rank is there");
    let outcome = job.end();
    assert!(outcome.refusal().contains("idle lat 8 B over tcp, put\""), "{outcome:?}");
    let file = folder.json("result.json");
    assert_eq!(labels(&file), [("tcp eager".to_owned(), None)]);
    let notes = file["notes"].to_string();
    assert!(notes.contains("the job ended before these runs were complete: tcp, put"), "{notes}");
}

#[test]
fn nonsense_is_refused_before_anything_runs() {
    for (line, expected) in [
        ("run --transport tcp,tcp", "--transport names tcp twice"),
        ("run --protocol put,put", "--protocol names put twice"),
        ("run --protocol push", "unknown protocol \"push\": use eager, put or get"),
        ("run --eager-threshold 4KiB", "--eager-threshold is for the put and get protocols"),
        ("run --protocol put --eager-threshold much", "invalid size 'much'"),
        ("run --transport tcp,mpi", "--transport mpi needs an MPI launcher"),
        ("beff --mpi-thread funneled", "--mpi-thread is for --transport mpi"),
        ("run --mpi-thread one", "invalid value 'one' for '--mpi-thread <LEVEL>'"),
        ("run --transport udp", "invalid value 'udp' for '--transport <LIST>'"),
    ] {
        refused(line, expected);
    }
}
