//! The time budget holds, whatever runs, on however many ranks, and however loaded the machine is.

use crate::common::succeed;
use serde_json::Value;

/// A quarter over budget, and what a busy machine may take to wake ranks once more at the end.
fn over_budget(result: &Value, budget: f64) -> Option<String> {
    // Where blocks take turns, three quarters of the time of both states are loaded.
    let take_turns = result["plan"]["blocks"].as_u64().unwrap() > 1;
    result["runs"][0]["tests"].as_array().unwrap().iter().find_map(|test| {
        let budget = match test["phase"].as_str().unwrap() {
            "isolated" if take_turns => 0.5 * budget,
            "loaded" if take_turns => 1.5 * budget,
            _ => budget,
        };
        let wall = test["wall_s"].as_f64().unwrap();
        let name = format!("{} {}", test["phase"], test["title"]);
        eprintln!("{name}: {wall:.3} s of {budget} s, {} samples", test["summary"]["samples"]);
        assert!(test["summary"]["samples"].as_u64().unwrap() > 0, "{name} measured nothing");
        (wall > 1.25 * budget + 0.25).then(|| format!("{name} took {wall} s of {budget} s"))
    })
}

/// The result of a run of so many seconds a test. One that took longer is repeated: a machine that stood still for a moment
/// does so once, a budget that does not hold does not hold again.
fn measured(line: &str, budget: f64) -> Value {
    let mut late = Vec::new();
    for _ in 0..3 {
        let result = succeed(&format!("{line} --budget {budget}s --format json --quiet")).json();
        match over_budget(&result, budget) {
            Some(test) => late.push(test),
            None => return result,
        }
    }
    panic!("{line}: {}", late.join("; "));
}

fn titles(result: &Value, phase: &str) -> usize {
    let tests = result["runs"][0]["tests"].as_array().unwrap();
    tests.iter().filter(|test| test["phase"] == phase).count()
}

#[test]
fn all_canaries_under_all_congestors_on_too_few_cores() {
    let result = measured(
        "run -n 24 --placements 1 --blocks 1 --canaries lat,get-lat,bw,put-bw,bw-sync,nat-bw,allreduce,a2a \
         --congestors a2a,incast,put-incast,get-incast,get-bcast,bcast,put-bcast,allreduce",
        0.6,
    );
    assert_eq!((titles(&result, "isolated"), titles(&result, "loaded")), (8, 8));
    assert_eq!(result["runs"][0]["tests"][15]["load"].as_array().unwrap().len(), 8, "all congestors were there");
}

#[test]
fn all_canaries_on_any_number_of_ranks() {
    for ranks in [2, 3, 5, 7] {
        let result = measured(&format!("network -n {ranks}"), 0.3);
        assert_eq!(titles(&result, "isolated"), 8);
    }
}

#[test]
fn load_tests_on_few_and_odd_numbers_of_ranks() {
    for (line, canaries) in [("-n 4", 2), ("-n 5", 2), ("-n 7", 2), ("-n 4 --ranks-per-node 2", 2)] {
        let result = measured(&format!("run {line} --placements 1 --blocks 1"), 0.3);
        let nodes = result["system"]["nodes"].as_array().unwrap();
        let measuring = nodes.iter().filter(|node| node["roles"].as_array().unwrap().contains(&"canary".into()));
        assert_eq!(measuring.count(), canaries, "{line}");
        if !line.ends_with('7') {
            assert!(!result["notes"].as_array().unwrap().is_empty(), "{line}: what is missing is said");
        }
    }
}

#[test]
fn uneven_nodes() {
    // 3, 3, 3 and 1: the upper slices lack the last node.
    let result = measured("run -n 10 --ranks-per-node 3 --placements 1 --blocks 1", 0.3);
    let sizes: Vec<usize> =
        result["system"]["nodes"].as_array().unwrap().iter().map(|n| n["ranks"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [3, 3, 3, 1]);
    measured("network -n 10 --ranks-per-node 3", 0.3);
}

/// The budget of a test is that of all its blocks together.
#[test]
fn placements_and_blocks_share_the_budget() {
    let result = measured("run -n 8 --canaries lat,allreduce", 2.0);
    let placements = result["runs"][0]["placements"].as_array().unwrap();
    assert_eq!(placements.len(), 5);
    for test in placements.iter().flat_map(|placement| placement["tests"].as_array().unwrap()) {
        for block in test["blocks"].as_array().unwrap() {
            // Six rings, or fewer where the warm-up's part of the block was over before.
            let rings = block["warm_up"]["measurements"].as_u64().unwrap();
            assert!((1..=6).contains(&rings) && block["settled_s"].as_f64().unwrap() > 0.0, "{block}");
        }
        let places: Vec<u64> =
            test["blocks"].as_array().unwrap().iter().map(|block| block["place"].as_u64().unwrap()).collect();
        assert!(places == [0, 3] || places == [1, 2], "ABBA or its mirror: {places:?}");
    }
}

#[test]
fn counts_are_cut_to_the_budget() {
    let counts = "--set lat.iterations=200 --set lat.warmup=200";
    let result = measured(&format!("run -n 10 --placements 1 --blocks 1 --loop closed {counts}"), 0.5);
    assert_eq!(result["plan"]["canaries"][0]["iterations"], 200);
}
