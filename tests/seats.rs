//! What a result tells of where ranks sit: the cores they spin on, where their watchers are, and their memory.

use std::fs;
use std::process::Command;

use crate::common::{self, Job, Outcome, tailback, words};
use serde_json::Value;

const SHORT: &str = "network -n 2 --budget 50ms --canaries lat --no-lab --no-counters --format json";
/// So long that a watcher wakes, also on a busy machine.
const LONGER: &str = "network -n 2 --budget 2s --canaries lat --no-lab --no-counters --format json";

fn told(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    outcome.json()
}

/// The processors that this test may use.
fn allowed() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim();
    list.split(',')
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            first.parse::<usize>().unwrap()..=last.parse().unwrap()
        })
        .collect()
}

#[test]
fn watchers_are_off_the_ranks_cores_where_there_are_others() {
    let first = allowed()[0];
    let mut bound = Command::new("taskset");
    let product = tailback(words(&format!("{LONGER} --wait yield")));
    bound.args(["-c", &first.to_string()]).arg(product.get_program()).args(product.get_args());
    product.get_envs().for_each(|(name, value)| _ = value.map(|value| bound.env(name, value)));
    let result = told(&Job::start(bound).end());
    let ends = result["system"]["ends"].as_array().expect("every rank's");
    for end in ends {
        assert_eq!(end["cores"], first.to_string());
        let (cores, why) = (end["watcher"]["cores"].as_str().unwrap(), end["watcher"]["why"].as_str().unwrap());
        match why {
            "off the cores of ranks" => assert!(!cores.split([',', '-']).any(|of| of == first.to_string()), "{end}"),
            why => assert!(why.starts_with("left where ranks are: ") && cores == first.to_string(), "{end}"),
        }
    }
    let watch = &result["system"]["watch"];
    assert_eq!(watch["watchers"], 2);
    assert!(watch["wakeups"].as_u64().unwrap() > 0 && watch["most_per_s"].as_f64().unwrap() > 0.0, "{watch}");
}

#[test]
fn ranks_that_may_use_every_core_leave_it_to_the_scheduler() {
    let result = told(&Job::start(tailback(words(&format!("{SHORT} --wait yield")))).end());
    let why = result["system"]["ends"][0]["watcher"]["why"].as_str().unwrap();
    let expected = ["ranks are on all of the", "the scheduler has", "off the cores of ranks"];
    assert!(expected.iter().any(|words| why.contains(words)), "{why}");
}

#[test]
fn ranks_that_sleep_are_in_no_watchers_way() {
    let result = told(&Job::start(tailback(words(&format!("{SHORT} --wait block")))).end());
    assert_eq!(result["system"]["ends"][0]["watcher"]["why"], "left where ranks are: ranks sleep while they wait");
}

#[test]
fn threads_of_one_core_are_told_from_cores() {
    let folder = tempfile::tempdir().unwrap();
    let cpus = folder.path().join("devices/system/cpu");
    let all = allowed();
    let list = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    for cpu in &all {
        let topology = cpus.join(format!("cpu{cpu}/topology"));
        fs::create_dir_all(&topology).unwrap();
        fs::write(topology.join("thread_siblings_list"), &list).unwrap();
    }
    fs::write(cpus.join("online"), &list).unwrap();
    let mut start = tailback(words(SHORT));
    start.env("TAILBACK_SYS", folder.path());
    let result = told(&Job::start(start).end());
    let wait = result["runs"][0]["transport"]["details"]["wait"].as_str().expect("how it waits").to_owned();
    let expected = if all.len() > 1 { "pause" } else { "block" };
    assert!(wait.starts_with(expected), "{wait}, on {} threads of one core", all.len());
}

#[test]
fn huge_pages_are_recorded_and_their_absence_can_be_an_error() {
    // Messages of a megabyte, so that segments are worth a huge page.
    let large = format!("{SHORT} --canaries bw --set canary.bw.bytes=1MiB");
    let tried = told(&Job::start(tailback(words(&format!("{large} --huge-pages")))).end());
    let memory = &tried["system"]["memory"];
    assert_eq!(memory["huge_pages"], "try");
    let of = |name: &str| memory[name].as_u64().unwrap();
    let huge = of("reserved_huge_bytes") + of("transparent_huge_bytes");
    assert!(huge > 0 || memory["why"].is_string(), "had, or the reason is said: {memory}");
    assert!(memory["near_bytes"].as_u64().is_none_or(|near| near > 0), "{memory}");
    let noted = tried["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert!(noted.filter(|note| note.starts_with("memory of messages, over all ranks: ")).count() == 1, "{tried}");
    let required = Job::start(tailback(words(&format!("{large} --huge-pages=require")))).end();
    match memory["why"].is_string() {
        true => assert!(required.refusal().contains("there are no huge pages for a segment of"), "{required:?}"),
        false => assert_eq!(required.code(), Some(0), "{required:?}"),
    }
    let usual = told(&Job::start(tailback(words(SHORT))).end());
    assert_eq!(usual["system"]["memory"]["huge_pages"], "no");
    let refused = common::run("run --transport sim --machine small --huge-pages");
    assert!(refused.refusal().contains("--huge-pages is for tcp, libfabric and verbs"), "{refused:?}");
}

#[test]
fn ports_of_a_node_are_what_the_user_says() {
    let result = told(&Job::start(tailback(words(&format!("{SHORT} --ports-per-node 4")))).end());
    assert_eq!(result["system"]["ports"], serde_json::json!({ "per_node": 4, "known_by": "user" }));
    let result = told(&Job::start(tailback(words(SHORT))).end());
    assert_eq!(result["system"].get("ports"), None, "the loopback has none");
    let refused = common::run("run --transport sim --machine small --ports-per-node 2");
    assert!(refused.refusal().contains("a simulated machine has the ports that its file says"), "{refused:?}");
    assert!(common::run("run --ports-per-node 0").refusal().contains("0 is not in 1..=64"));
}
