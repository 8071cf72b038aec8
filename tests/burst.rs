//! Load in bursts: a queue that drains on a simulated network, every view, and what is refused.

use serde_json::Value;

use crate::common::{Folder, refused, result_of, succeed};

/// 24 ranks send to one, whose port they fill; nothing is lost.
const INCAST: &str = "--transport sim --machine small -n 32 --seed 3 --congestors incast";

/// The canary in bursts.
fn record(run: &Value) -> &Value {
    let tests = run["tests"].as_array().expect("tests");
    tests.iter().map(|test| &test["burst"]).find(|of| !of.is_null()).expect("a canary in bursts")
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("a number: {of}"))
}

#[test]
fn latency_is_back_when_the_queue_has_drained() {
    // A burst is over before the first of a megabyte has gone: each rank sends one message in each, and then the queue drains.
    const ON_US: f64 = 5.0;
    let (file, shown) = result_of(&format!(
        "burst --on 5us --off 2995us {INCAST} --set incast.bytes=1MiB --placements 2 --budget 120ms"
    ));
    let bursts = record(&file["runs"][0]);
    let senders = 24.0;
    let drained_us = senders * 1_048_576.0 / 25e9 * 1e6 - ON_US;
    let recovery = &bursts["p99"]["recovery_us"];
    let part = number(&recovery["value"]) / drained_us;
    assert!((0.95..1.05).contains(&part), "{recovery} of {drained_us} us: {bursts}\n{shown}");
    assert!(recovery["interval"]["low"].is_number(), "{recovery}");
    // It is felt at once: in the first part of the curve.
    assert!(number(&bursts["p99"]["felt_us"]["value"]) < 50.0, "{}", bursts["p99"]);
    assert!(number(&bursts["clock_error_us"]) < ON_US, "{bursts}");
    let load = &bursts["loads"][0];
    assert!((number(&load["iterations_per_burst"]) - 1.0).abs() < 0.1, "{load}");
    // Of the whole pause nothing is left out.
    let curve = bursts["curve"].as_array().unwrap();
    assert!(curve.iter().all(|part| part["samples"].as_u64() >= Some(50)), "{bursts}");
}

#[test]
fn every_view_knows_bursts() {
    let folder = Folder::new();
    let (path, csv, page) = (folder.path("result.json"), folder.path("table.csv"), folder.path("page.html"));
    let outcome = succeed(&format!(
        "burst --on 5us,20us --off 300us,600us {INCAST} --set incast.bytes=128KiB --placements 2 --budget 12ms --out {path} \
         --csv {csv}"
    ));
    assert!(outcome.stderr.contains("4 runs take turns on every placement"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("recovery (peak), by burst and pause"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("the ranks' clocks agree within"), "{}", outcome.stdout);
    let runs = folder.json("result.json")["runs"].as_array().unwrap().len();
    assert_eq!(runs, 4);
    let table = folder.text("table.csv");
    assert!(table.contains("\"burst.on=5us burst.off=300us\""), "{table}");
    // Every part of every folded curve is a line with its time since the onset.
    let (file, mut parts) = (folder.json("result.json"), 0);
    for run in file["runs"].as_array().unwrap() {
        for part in record(run)["curve"].as_array().unwrap() {
            let (since, samples) = (number(&part["since_us"]), part["samples"].as_u64().unwrap());
            let is_it = |line: &&str| line.contains(",folded,lat,") && line.contains(&format!(",{since},"));
            assert!(
                table.lines().filter(is_it).any(|line| line.contains(&format!(",us,{samples},"))),
                "{part}\n{table}"
            );
            parts += 1;
        }
    }
    assert_eq!(table.lines().filter(|line| line.contains(",folded,")).count(), parts);
    assert!(table.lines().next().unwrap().ends_with(",since_us,point"), "{table}");
    let tables = succeed(&format!("show {path} -v")).stdout;
    assert!(tables.contains("Latency since the onset of a burst: lat at burst.on=20us burst.off=600us"), "{tables}");
    succeed(&format!("report {path} --out {page}"));
    let page = folder.text("page.html");
    assert!(page.contains("Recovery by burst and pause, lat") && page.contains("id=\"bursts\""));
    let plan = folder.write("plan.toml", "[burst]\non = \"20us\"\noff = 0.0002\n");
    let told = succeed(&format!("burst --plan {plan} {INCAST} --dry-run")).stdout;
    assert!(told.contains("Load comes in bursts of 20.0 us with pauses of 200 us"), "{told}");
}

#[test]
fn what_cannot_be_measured_in_bursts_is_refused() {
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[burst]\non = \"2ms\"\noff = \"8ms\"\n");
    let sim = "--transport sim --machine small";
    let short = format!("burst --on 1us --off 100us {sim} -n 16");
    refused(&[
        ("burst", "burst needs --on TIME and --off TIME"),
        ("burst --on 2ms", "bursts need how long load is on and how long it pauses"),
        ("burst --on 2 --off x", "--off: "),
        ("burst --on 0s --off 8ms", "--on: invalid time 0 ms: expected 1 us"),
        ("burst --on 2ms --off 8ms --congestors none", "bursts without congestors load nothing"),
        ("burst --on 2ms --off 8ms --canaries lat,bw", "bw: bursts are felt by latency canaries in an open loop only"),
        ("burst --on 2ms --off 8ms --loop closed", "lat: bursts are felt by latency canaries in an open loop only"),
        ("burst --on 2ms --off 8ms --set congestor.rate=50%", "a2a: in bursts congestors are at full rate"),
        ("burst --on 2ms --off 8ms --set lat.bytes=8,16", "--set lat.bytes: burst goes over --on and --off only"),
        ("burst --on 2s --off 8s", "a burst and its pause take 10000 ms"),
        ("burst --on 2ms --off 8ms --launches 2", "--launches: not for burst"),
        ("burst --on 2ms,2ms --off 8ms", "two points of the sweep are the same"),
        (&format!("run --plan {plan}"), "the plan has bursts: use `tailback burst`"),
        ("sweep burst.on=1ms,2ms", "burst.on=1ms: without bursts"),
        (&short, "the clocks of the ranks are known to within"),
    ]);
}
