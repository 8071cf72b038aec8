//! What canaries meet: the queues of all, queues of their own, or none, as in the control of a load test.

use super::bench::{Bench, as_ordinary_user};

/// A small load test's result.
pub fn load_test(bench: &Bench, words: &[&str]) -> serde_json::Value {
    let mut all = vec!["run", "--hosts", "10", "--leaves", "2", "--placements", "3", "--canaries", "lat"];
    all.extend(["--congestors", "incast", "--seed", "3", "--format", "json", "--quiet"]);
    all.extend(words);
    serde_json::from_str(&bench.ok(&all)).expect("the result file")
}

/// The canary's latency under load.
pub fn loaded(run: &serde_json::Value) -> f64 {
    let tests = run["tests"].as_array().expect("a list");
    let of = tests.iter().find(|test| test["phase"] == "loaded").expect("a loaded test");
    of["summary"]["times"]["p90"].as_f64().expect("a figure")
}

/// A load test with its control: the kind of that, and the latency under load in both.
pub fn controlled(bench: &Bench, words: &[&str]) -> (serde_json::Value, f64, f64) {
    let result = load_test(bench, words);
    let control = &result["lab"]["control"];
    assert!(!control["verdicts"][0]["cause"].is_null(), "{control}, {}", result["notes"]);
    // Routes of the lab have one of their own.
    let default = |run: &serde_json::Value| run["transport"]["details"]["default_congestion_control"].clone();
    assert!(default(&result["runs"][0]).is_null() && default(&control["run"]).is_null(), "{control}");
    (control["kind"].clone(), loaded(&result["runs"][0]), loaded(&control["run"]))
}

#[test]
fn links_without_queues_are_the_other_control() {
    as_ordinary_user("unshaped", |bench| {
        // How much the processor then suffers depends on the processor.
        let (kind, ..) = controlled(bench, &["--control=unshaped", "--budget", "200ms"]);
        assert_eq!(kind, "unshaped");
    });
}

#[test]
fn queues_mark_packets_where_the_kernel_can_and_are_refused_by_name_elsewhere() {
    as_ordinary_user("ecn", |bench| {
        let words =
            ["run", "--hosts", "4", "--no-control", "--budget", "200ms", "--ecn", "--congestion-control", "cubic"];
        let probe = "ip link add a0 type veth peer name b0 && tc qdisc add dev a0 root red limit 100000 min 30000 max 30001 \
                     avpkt 1000 burst 31 bandwidth 100mbit probability 1 ecn nodrop";
        let can = std::process::Command::new("unshare").args(["--map-root-user", "--net", "sh", "-c", probe]).output();
        if can.is_ok_and(|output| output.status.success()) {
            let result = load_test(bench, &words[3..]);
            assert_eq!(result["lab"]["spec"]["ecn"], true);
            let phases = result["lab"]["phases"].as_array().unwrap().iter();
            let ports = phases.flat_map(|phase| phase["ports"].as_array().unwrap());
            let marks: u64 = ports.map(|port| port["queue"]["marks"].as_u64().unwrap()).sum();
            assert!(marks > 0, "nothing was marked: {result}");
        } else {
            let refused = bench.refused(&[&words[..], &["--quiet"]].concat());
            assert!(refused.contains("--ecn: the kernel has no red queue"), "{refused}");
        }
        let refused = bench.refused(&["run", "--hosts", "4", "--ecn", "--unshaped", "--quiet"]);
        assert!(refused.contains("--ecn: links without a rate"), "{refused}");
    });
}

#[test]
fn roles_have_the_congestion_control_they_were_given() {
    as_ordinary_user("roles", |bench| {
        let words = ["--no-control", "--budget", "200ms", "--congestor-congestion-control", "reno"];
        let result = load_test(bench, &words);
        assert_eq!(result["runs"][0]["transport"]["details"]["congestor congestion control"], "reno");
        let refused = bench.refused(&["run", "--hosts", "4", "--canary-congestion-control", "none-such"]);
        assert!(refused.contains("congestion control 'none-such'") && refused.contains("reno"), "{refused}");
    });
}
