//! From job to job: seeds that are drawn, placements that are repeated, and several jobs of one command.

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Folder, Job, refused, run, succeed, tailback, words};

const SMALL: &str = "run -n 8 --no-lab --preset quick --placements 2 --budget 80ms --canaries lat --congestors incast";

fn roles(file: &Value) -> Vec<Value> {
    file["runs"][0]["placements"].as_array().unwrap().iter().map(|placement| placement["roles"].clone()).collect()
}

#[test]
fn every_job_draws_its_seed_and_may_repeat_anothers() {
    let folder = Folder::new();
    let (one, other, pair) = (folder.path("one.json"), folder.path("other.json"), folder.path("pair.json"));
    succeed(&format!("{SMALL} --quiet --out {one}"));
    succeed(&format!("{SMALL} --quiet --out {other}"));
    succeed(&format!("{SMALL} --quiet --canaries allreduce --pair-with {one} --out {pair}"));
    let [first, second, paired] = ["one.json", "other.json", "pair.json"].map(|name| folder.json(name));
    assert_ne!(first["seed"], second["seed"], "drawn for each");
    assert!(first["seed"].as_u64().unwrap() <= u64::from(u32::MAX));
    assert_eq!(first["seed"], paired["seed"]);
    assert_eq!(roles(&first), roles(&paired));

    for (more, expected) in [
        ("-n 10", "nodes: 8 there, 10 here"),
        ("-n 16 --ranks-per-node 2", "ranks per node: 1 there, 2 here"),
        ("--placements 3", "placements: 2 there, 3 here"),
        ("--congestors a2a", "congestors: incast=1 there, incast=1,a2a=1 here"),
        ("--canary-fraction 50%", "canary fraction: 0.2 there, 0.5 here"),
    ] {
        let refusal = run(&format!("{SMALL} {more} --pair-with {one}"));
        assert!(refusal.refusal().contains(expected), "{more}: {}", refusal.stderr);
    }
    let study = folder.path("study.json");
    succeed(&format!("beff -n 2 --no-lab --rings 1 --bandwidth-bytes 1000 --latency-iterations 2 -q --out {study}"));
    refused(&[(&format!("{SMALL} --pair-with {study}"), "it has no placements to repeat")]);
    refused(&[(&format!("{SMALL} --pair-with {}", folder.path("none.json")), "--pair-with: ")]);
}

#[test]
fn other_groups_give_other_placements_and_are_refused() {
    let folder = Folder::new();
    let group = |name: &str, left: usize| {
        let line = |node: usize| format!("virtual{node} {}\n", if node < left { "a" } else { "b" });
        folder.write(name, (0..8).map(line).collect::<String>())
    };
    let (even, odd, one) = (group("even", 4), group("odd", 1), folder.path("one.json"));
    let small = SMALL.replace("--preset quick", "--preset quick --placement balanced");
    succeed(&format!("{small} --quiet --seed 5 --groups {even} --out {one}"));
    succeed(&format!("{small} --quiet --groups {even} --pair-with {one}"));
    let refusal = run(&format!("{small} --groups {odd} --pair-with {one}"));
    assert!(refusal.refusal().contains("has other roles (other groups of nodes"), "{}", refusal.stderr);
}

#[test]
fn a_simulation_is_repeatable_unless_another_is_asked_for() {
    const SIM: &str =
        "run --transport sim --machine small -n 8 --canaries lat --congestors incast --budget 100us --placements 1 -q";
    let folder = Folder::new();
    let seed = |name: &str, more: &str| {
        succeed(&format!("{SIM} {more} --out {}", folder.path(name)));
        folder.json(name)["seed"].clone()
    };
    assert_eq!(seed("a.json", ""), seed("b.json", ""));
    let shown = succeed(&format!("{SIM} --launches 2 --out {}", folder.path("r.json"))).stdout;
    assert!(shown.contains(" in 2 of 2 jobs\nTime that load adds"), "{shown}");
    assert_eq!(["r-1.json", "r-2.json"].map(|name| folder.json(name)["seed"].clone()), [1, 2]);
    refused(&[(&format!("{SIM} --launches 2 --seed 4"), "a simulation gives the same again")]);
    assert!(seed("t.json", "--seed time").as_u64().unwrap() > FIRST_OF_2026);
    succeed(&format!("{SIM} --launches 2 --seed time --out {}", folder.path("s.json")));
    assert_ne!(folder.json("s-1.json")["seed"], folder.json("s-2.json")["seed"]);
}

#[test]
fn variation_between_jobs_is_shown_and_held_against_a_limit() {
    const SIM: &str = "run --transport sim --machine small -n 10 --canaries lat --congestors a2a,incast --budget 200us \
                       --placements 1 --loop closed -q";
    let folder = Folder::new();
    let outcome =
        run(&format!("{SIM} --launches 4 --fail-if lat.time-p90.isolated.cv>0.0001 --out {}", folder.path("r.json")));
    assert_eq!(outcome.code(), Some(1), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Variation between jobs: coefficient of variation"), "{}", outcome.stdout);
    let files: Vec<Value> = (1..=4).map(|job| folder.json(&format!("r-{job}.json"))).collect();
    let figure = |file: &Value| {
        let tests = file["runs"][0]["tests"].as_array().unwrap();
        tests.iter().find(|test| test["phase"] == "isolated").unwrap()["summary"]["times"]["p90"].as_f64().unwrap()
    };
    let figures: Vec<f64> = files.iter().map(figure).collect();
    let mean = figures.iter().sum::<f64>() / 4.0;
    let truth = (figures.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / 3.0).sqrt() / mean;
    let said = format!("FAIL: r (4 jobs): lat.time-p90.idle.cv <= 0.0001 is required: it is {truth:.3} [");
    assert!(outcome.stderr.contains(&said), "{said}: {}", outcome.stderr);
    // The same of the files, later.
    let all: Vec<String> = (1..=4).map(|job| folder.path(&format!("r-{job}.json"))).collect();
    let all = all.join(" ");
    let compared = succeed(&format!("compare {all} --fail-if lat.avg.loaded.cv>1000 --json")).json();
    let rows = compared["variation"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["state"] == "impact" && row["jobs"] == 4), "{rows:?}");
    refused(&[
        (&format!("{SIM} --fail-if lat.avg.loaded.cv>0.1"), "is of several jobs: use --launches"),
        (&format!("{SIM} --launches 2 --fail-if lat.avg.added.cv>0.1"), "which has no coefficient of variation"),
    ]);
}

/// In milliseconds since 1970.
const FIRST_OF_2026: u64 = 1_767_225_600_000;

#[test]
fn gpcnets_seed_is_the_time() {
    let seed = |more: &str| -> u64 {
        let shown = succeed(&format!("run -n 10 --no-lab --preset gpcnet --dry-run {more}")).stdout;
        let words = shown.split("seed ").nth(1).expect("it is shown");
        words.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().expect("a number")
    };
    assert!(seed("") > FIRST_OF_2026);
    assert_eq!(seed("--seed 7"), 7);
}

#[test]
fn launches_are_jobs_of_their_own() {
    let folder = Folder::new();
    let shown = succeed(&format!("{SMALL} --launches 2 --out {}", folder.path("r.json")));
    let [one, other] = ["r-1.json", "r-2.json"].map(|name| folder.json(name));
    assert_eq!(folder.files(), 2, "no file for all of them");
    assert_ne!(one["seed"], other["seed"]);
    let started = |file: &Value| file["started"].as_str().expect("a time").to_owned();
    assert!(started(&one) <= started(&other), "one after the other");
    assert!(shown.stderr.contains("tailback: job 2 of 2\n"), "{}", shown.stderr);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let row = lines.last().expect("a row");
    assert!(lines.len() <= 5 && lines[0].contains(" of 2 jobs") && row.contains("lat 8 B"), "{}", shown.stdout);
    assert!(lines.iter().all(|line| line.len() <= 90), "{}", shown.stdout);

    // What the line says is the mean of what the files say.
    let factor = |file: &Value| file["runs"][0]["impacts"][0]["headline"]["factor"].as_f64().unwrap();
    let mean = (factor(&one) + factor(&other)) / 2.0;
    let told: Vec<f64> = row.split_whitespace().filter_map(|word| word.strip_suffix('x')?.parse().ok()).collect();
    // It has two decimals.
    assert!((told[0] - mean).abs() < 0.006 + 0.01 * mean, "{told:?} {mean}");

    succeed(&format!("{SMALL} -q --seed 3 --launches 2 --out {}", folder.path("s.json")));
    let [one, other] = ["s-1.json", "s-2.json"].map(|name| folder.json(name));
    assert_eq!((roles(&one), one["seed"].clone()), (roles(&other), 3.into()));

    let launcher = format!("launch -n 8 -- {} {SMALL} --launches 2", env!("CARGO_BIN_EXE_tailback"));
    let refusal = run(&launcher);
    assert_eq!(refusal.code(), Some(2));
    assert!(refusal.stderr.contains("repeat the launcher's command"), "{}", refusal.stderr);
    assert_eq!(refusal.stderr.matches("--launches").count(), 1, "said once: {}", refusal.stderr);
    refused(&[
        (&format!("{SMALL} --launches 2 --out -"), "a file for each job"),
        (&format!("{SMALL} --launches 2 --format json"), "--out keeps the result of each"),
        (&format!("{SMALL} --launches 0"), "0 is not in 1..=1000"),
    ]);
}

#[test]
fn an_interrupt_ends_all_launches_and_what_was_complete_is_kept() {
    let folder = Folder::new();
    let line = SMALL.replace("--budget 80ms", "--budget 4s --placements 8");
    let mut job = Job::start(tailback(words(&format!("{line} --launches 3 --out {}", folder.path("r.json")))));
    job.eventually("the second job's draft", || folder.has("r-2.json").then_some(()));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no further job is run"), "{}", outcome.stderr);
    assert!(!folder.has("r-3.json"));
    assert_eq!(folder.json("r-1.json")["interrupted"], false);
}

#[test]
fn what_the_machine_did_is_kept_for_every_phase() {
    let folder = Folder::new();
    let file = folder.path("r.json");
    let shown = succeed(&format!("{SMALL} -v -q --out {file}")).stdout;
    assert!(shown.contains("\nWhat the machine did, over all ranks\n"), "{shown}");
    let result = folder.json("r.json");
    let activity = result["system"]["activity"].as_array().expect("kept").clone();
    let of = |state: &str| activity.iter().filter(|of| of["phase"].as_str().unwrap().starts_with(state)).count();
    // Blocks that follow each other in one state are one phase: ABBA or BAAB.
    assert_eq!(of("isolated ") + of("loaded "), 6, "{activity:?}");
    assert!(of("isolated ") >= 2 && of("loaded ") >= 2, "{activity:?}");
    for of in &activity {
        assert!(of["voluntary_switches"].as_u64().is_some_and(|count| count > 0), "{of}");
        assert!(of["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{of}");
    }
    succeed(&format!("{SMALL} -q --no-counters --out {file}"));
    assert!(folder.json("r.json")["system"].get("activity").is_none());
}
