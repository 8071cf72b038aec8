//! The control of a load test: canaries that meet no queue.

use super::bench::{Bench, for_each_user};

/// A small load test: the kind of its control, and the latency under load in the run and in the control.
fn controlled(bench: &Bench, words: &[&str]) -> (serde_json::Value, f64, f64) {
    let mut all = vec!["run", "--hosts", "10", "--leaves", "2", "--placements", "3", "--canaries", "lat"];
    all.extend(["--congestors", "incast", "--seed", "3", "--format", "json", "--quiet"]);
    all.extend(words);
    let result: serde_json::Value = serde_json::from_str(&bench.ok(&all)).expect("the result file");
    let control = &result["lab"]["control"];
    assert!(!control["verdicts"][0]["cause"].is_null(), "{control}, {}", result["notes"]);
    let loaded = |run: &serde_json::Value| {
        let tests = run["tests"].as_array().expect("a list");
        let of = tests.iter().find(|test| test["phase"] == "loaded").expect("a loaded test");
        of["summary"]["times"]["p75"].as_f64().expect("a figure")
    };
    (control["kind"].clone(), loaded(&result["runs"][0]), loaded(&control["run"]))
}

#[test]
fn canaries_that_pass_the_queues_wait_less_than_half_as_long() {
    for_each_user("express", |bench| {
        // A full queue of slow links takes 52 ms, ten times what a rank of a busy machine waits for a processor. Not the
        // impact: its isolated part is the machine's.
        let (kind, shaped, express) = controlled(bench, &["--link-rate", "20mbit", "--budget", "600ms"]);
        assert_eq!(kind, "express");
        assert!(express < shaped / 2.0, "{shaped} us with queues, {express} us past them");
    });
}

#[test]
fn links_without_queues_are_the_other_control() {
    for_each_user("unshaped", |bench| {
        // How much the processor then suffers depends on the processor.
        let (kind, ..) = controlled(bench, &["--control=unshaped", "--budget", "200ms"]);
        assert_eq!(kind, "unshaped");
    });
}
