//! The control of a load test: canaries that meet no queue.

use super::bench::{Bench, for_each_user};

/// The control of a small load test, with its kind and the impacts of the run and of the control.
fn controlled(bench: &Bench, words: &[&str]) -> (serde_json::Value, f64, f64) {
    let mut all = vec!["run", "--hosts", "10", "--leaves", "2", "--placements", "3", "--canaries", "lat"];
    all.extend(["--congestors", "incast", "--budget", "1500ms", "--seed", "3", "--format", "json", "--quiet"]);
    all.extend(words);
    let result: serde_json::Value = serde_json::from_str(&bench.ok(&all)).expect("the result file");
    let control = &result["lab"]["control"];
    let verdict = &control["verdicts"][0];
    let of = |name: &str| verdict[name].as_f64().unwrap_or_else(|| panic!("{name} in {verdict}, {}", result["notes"]));
    (control["kind"].clone(), of("shaped"), of("control"))
}

#[test]
fn canaries_that_pass_the_queues_suffer_less_than_half() {
    for_each_user("express", |bench| {
        let (kind, shaped, express) = controlled(bench, &[]);
        assert_eq!(kind, "express");
        assert!(shaped > 5.0 && express < shaped / 2.0, "{shaped} with queues, {express} past them");
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
