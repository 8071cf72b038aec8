//! The protocols do what they say, by the counters of the emulated network.

use serde_json::Value;

use crate::common::{self, Job, read_json, tailback, words};

/// Bytes that left the senders and the root of an incast for each message that was delivered.
fn per_message(file: &Value, run: &Value, bytes: f64) -> (f64, f64) {
    let protocol = run["transport"]["protocol"].as_str().unwrap();
    let phases = file["lab"]["phases"].as_array().unwrap();
    let named = |phase: &&Value| {
        let name = phase["phase"].as_str().unwrap();
        name.starts_with("alone") && name.ends_with(&format!("over tcp, {protocol}"))
    };
    let ports = phases.iter().find(named).expect("the phase")["ports"].as_array().unwrap();
    let sum = |side: &str, host: &str| -> f64 {
        let own = ports.iter().filter(|port| port[side] == host);
        own.map(|port| port["bytes"].as_f64().unwrap()).sum()
    };
    let incast = serde_json::json!([{ "congestor": "incast" }]);
    let nodes = file["system"]["nodes"].as_array().unwrap().iter().filter(|node| node["roles"] == incast);
    let mut hosts: Vec<&str> = nodes.map(|node| node["name"].as_str().unwrap()).collect();
    // What all others send to is the root.
    hosts.sort_by(|a, b| sum("to", b).total_cmp(&sum("to", a)));
    let messages = run["congestors"][0]["delivered_bytes"].as_f64().unwrap() / bytes;
    assert!(messages > 100.0, "{protocol}: only {messages} messages");
    let sent: f64 = hosts[1..].iter().map(|host| sum("from", host)).sum();
    (sent / messages, sum("from", hosts[0]) / messages)
}

/// Short messages, so that they weigh little beside what is said about them.
#[test]
fn the_networks_counters_show_each_protocol_at_work() {
    const BYTES: f64 = 64.0;
    const HEADER: f64 = 32.0;
    let _turn = common::turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let mut command = tailback(words(
        "lab run --hosts 6 --leaves 1 --seed 3 --placements 1 --blocks 1 --canaries lat --congestors incast --congestors-alone --no-control \
         --budget 500ms --set incast.bytes=64 --protocol eager,put,get --eager-threshold 0",
    ));
    command.env_remove("TAILBACK_NO_LAB").arg("--out").arg(&path);
    let outcome = Job::start_beside(command).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let file = read_json(&path);
    let runs = file["runs"].as_array().unwrap();
    let [eager, put, get] = [0, 1, 2].map(|at| per_message(&file, &runs[at], BYTES));
    // What is sent at least, whatever the kernel adds to it.
    let (rts, cts, fin) = (HEADER + 24.0, HEADER + 16.0, HEADER + 8.0);
    let (data, request) = (HEADER + BYTES, HEADER);
    assert!(eager.0 >= data, "eager senders: {eager:?}");
    assert!(put.0 >= rts + data + request + fin && put.1 >= cts + request, "put: RTS, put, flush, FIN; CTS: {put:?}");
    assert!(get.0 >= rts + data && get.1 >= request + fin, "get: RTS, data; request, FIN: {get:?}");
    // A root that only receives has nothing to say; one that gets says more; one that is put to is told more.
    assert!(eager.1 < get.1 && eager.1 < put.1, "root: {eager:?} {put:?} {get:?}");
    assert!(eager.0 < get.0 && get.0 < put.0, "senders: {eager:?} {put:?} {get:?}");
}
