//! The studies in the emulated cluster, whose links have known rates: what the models find must be those.
//!
//! The machine may be busy, and a busy processor only ever slows: every figure is the median of three short runs, or of five
//! when those are off. No speed is asserted but the links' own.

use crate::common::{Job, read_json, tailback, words};
use serde_json::Value;

/// Runs a study on hosts of a lab; it leaves a file that says so.
fn study(line: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let mut command = tailback(words(&format!("{line} --quiet --out {}", out.display())));
    command.env_remove("TAILBACK_NO_LAB");
    let outcome = Job::start(command).end();
    assert_eq!(outcome.code(), Some(0), "{line}\n{}{}", outcome.stdout, outcome.stderr);
    let file = read_json(&out);
    assert!(tailback::result::read(&out).is_ok(), "{line}: our own reader refuses it");
    assert_eq!(file["lab"]["phases"][0]["phase"], file["command"]);
    assert!(!file["lab"]["phases"][0]["ports"].as_array().unwrap().is_empty());
    file
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Takes the median of three measurements, or of five, and asserts that it is within `part` of `expected`.
fn assert_near(what: &str, expected: f64, part: f64, mut measure: impl FnMut() -> f64) {
    let mut values: Vec<f64> = (0..3).map(|_| measure()).collect();
    let near = |values: &[f64]| (median(values.to_vec()) / expected - 1.0).abs() <= part;
    if !near(&values) {
        values.extend((0..2).map(|_| measure()));
    }
    eprintln!("{what}: {values:.2?}, expected {expected:.2}");
    assert!(near(&values), "{what}: {values:?}, not within {part} of {expected}");
}

#[test]
fn the_nodes_rate_is_the_links() {
    assert_near("R_N over the link's rate", 1.0, 0.10, || {
        let file = study("maxrate --one-way --most-pairs 3 --repetitions 1 --iterations 4");
        let link = file["lab"]["spec"]["link_rate_bits_per_second"].as_f64().unwrap() / 8.0;
        let regimes = file["models"]["maxrate"]["regimes"].as_array().unwrap();
        let fits = regimes.last().unwrap()["fits"].as_array().unwrap();
        let fit = fits.iter().find(|fit| fit["model"] == "max-rate").expect("it is fitted");
        // An R_N that was not found is as far off as can be.
        fit["node_bytes_per_s"]["value"].as_f64().unwrap_or(f64::INFINITY) / link
    });
}

/// Two ranks of each host exchange four messages of 256 KiB: as long as the models of the same run say, within a quarter.
#[test]
fn a_halo_exchange_takes_what_the_model_says() {
    assert_near("predicted over measured time of a halo exchange", 1.0, 0.25, || {
        let file = study("maxrate --one-way --most-pairs 2 --repetitions 3 --iterations 4 --halo 4x256KiB");
        let found = &file["models"]["maxrate"];
        let fits = found["regimes"].as_array().unwrap().last().unwrap()["fits"].as_array().unwrap();
        let fit = fits.iter().find(|fit| fit["model"] == "max-rate").expect("it is fitted");
        let number = |value: &Value| value["value"].as_f64();
        let (latency, pair) = (number(&fit["latency_s"]).unwrap(), number(&fit["pair_bytes_per_s"]).unwrap());
        let node = number(&fit["node_bytes_per_s"]).unwrap_or(f64::INFINITY);
        let predicted = 4.0 * (latency + 2.0 * 262_144.0 / node.min(2.0 * pair));
        let seconds = found["halos"][0]["seconds"].as_array().unwrap();
        predicted / median(seconds.iter().map(|of| of.as_f64().unwrap()).collect())
    });
}

#[test]
fn three_messages_through_one_port_have_a_penalty_of_three() {
    for shape in ["in-3", "out-3"] {
        assert_near(shape, 3.0, 0.15, || {
            let file = study(&format!("contention --shape {shape} --bytes 6000000 --repetitions 1"));
            let edges = file["models"]["contention"]["graphs"][0]["edges"].as_array().unwrap().clone();
            assert_eq!(edges.len(), 3);
            median(edges.iter().map(|edge| edge["measured_penalty"].as_f64().unwrap_or(f64::INFINITY)).collect())
        });
    }
}

/// Three messages into one port that start apart and have different sizes: each is predicted within 15%.
#[test]
fn messages_with_starts_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.txt");
    std::fs::write(&graph, "b a 16MB\nc a 12MB 150ms\nd a 10MB 300ms\n").unwrap();
    let line = format!("contention --graph {} --bytes 6000000 --repetitions 1", graph.display());
    let mut runs: Vec<Vec<f64>> = Vec::new();
    let errors = |runs: &[Vec<f64>]| -> Vec<f64> {
        (0..3).map(|edge| median(runs.iter().map(|run| run[edge]).collect())).collect()
    };
    let near = |runs: &[Vec<f64>]| errors(runs).iter().all(|error| error.abs() < 0.15);
    while runs.len() < 3 || (runs.len() < 5 && !near(&runs)) {
        let file = study(&line);
        let found = &file["models"]["contention"]["graphs"][0];
        let reference = found["reference_s"].as_f64().unwrap();
        let error =
            |edge: &Value| edge["predicted"].as_f64().unwrap() * reference / edge["measured_s"].as_f64().unwrap() - 1.0;
        runs.push(found["edges"].as_array().unwrap().iter().map(error).collect());
    }
    eprintln!("errors of the predicted times: {:.3?}, medians {:.3?}", runs, errors(&runs));
    assert!(near(&runs), "{runs:?}");
}
