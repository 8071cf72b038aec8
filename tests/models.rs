//! The studies, end to end: predictions without a network, measurements over tcp, result files that fit the schema.

mod common;

use common::{run, succeed};

fn validator() -> jsonschema::Validator {
    let schema = serde_json::from_str(include_str!("../docs/result.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Runs a study as local ranks and gives its result file and what it printed.
fn study(line: &str) -> (serde_json::Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let outcome = succeed(&format!("{line} --no-lab --quiet --out {}", out.display()));
    let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    let problems: Vec<String> = validator().iter_errors(&file).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{line}: {problems:?}");
    assert!(tailback::result::read(&out).is_ok(), "{line}: our own reader refuses it");
    (file, outcome.stdout)
}

#[test]
fn predictions_need_no_network() {
    let outcome = succeed("contention --shape graph-a --predict-only");
    for expected in ["0>1", "5.000 4.000 2.000", "0.036133", "3.375", "1.250"] {
        assert!(outcome.stdout.contains(expected), "{expected} in\n{}", outcome.stdout);
    }
    let figure_3 = succeed("contention --shape fig3 --model figure3 --predict-only").stdout;
    assert!(figure_3.contains("0.016059") && figure_3.contains("2.783"), "{figure_3}");
    let random = || succeed("contention --random 7 --seed 5 --predict-only").stdout;
    assert_eq!(random(), random());
}

#[test]
fn a_graph_file_is_read_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("three.dot"), "digraph { a -> d; b -> d; c -> d }").unwrap();
    let line = format!("contention --predict-only --graph {}", path("three.dot").display());
    let shown = succeed(&format!("{line} --draw {}", path("three.svg").display())).stdout;
    assert_eq!(shown.matches("3.000").count(), 6, "{shown}");
    assert!(std::fs::read_to_string(path("three.svg")).unwrap().starts_with("<svg"));
    succeed(&format!("{line} --draw {}", path("again.gv").display()));
    assert!(std::fs::read_to_string(path("again.gv")).unwrap().contains("\"a\" -> \"d\" [label=\"3.00\"]"));
}

#[test]
fn mistakes_are_one_line() {
    for (line, expected) in [
        ("contention --predict-only", "--graph <FILE>|--shape <LIST>|--random <LIST>"),
        ("contention --predict-only --shape star", "'star' is no shape"),
        ("contention --predict-only --graph /nowhere/graph", "cannot read /nowhere/graph"),
        ("contention --no-lab --shape out-3 --ranks-per-node 1 -q", "start 3 ranks per node"),
        ("beff --no-lab -n 1 -q", "at least 2 ranks"),
        ("maxrate --no-lab -n 2 --ranks-per-node 2 -q", "needs two nodes"),
    ] {
        let outcome = run(line);
        assert!(outcome.refusal().contains(expected), "{line}: {}", outcome.stderr);
    }
}

#[test]
fn contention_is_measured() {
    let (file, shown) = study("contention --shape in-2 --bytes 200000 --repetitions 3");
    let graph = &file["models"]["contention"]["graphs"][0];
    assert_eq!((graph["edges"].as_array().unwrap().len(), file["command"].as_str()), (2, Some("contention")));
    assert!(graph["reference_s"].as_f64().unwrap() > 0.0);
    assert!(graph["edges"][0]["measured_s"].as_f64().unwrap() > 0.0);
    assert!(
        graph["reference_interval"]["low"].is_number() && graph["edges"][0]["multiple_interval"]["low"].is_number()
    );
    assert!(graph["took"]["measurements"].as_u64().unwrap() >= 9, "{}", graph["took"]);
    assert!(shown.contains("measured penalty") && shown.contains("messages of an edge a measurement"), "{shown}");
    assert!(shown.contains("measured penalty") && shown.contains("Error by number of edges"), "{shown}");
}

#[test]
fn beff_has_hpccs_names() {
    let (file, shown) = study("beff -n 3 --rings 2 --bandwidth-bytes 20000 --latency-iterations 5");
    let beff = &file["models"]["beff"];
    assert_eq!((&beff["pairs"], &beff["complete_repetitions"]), (&3.into(), &5.into()));
    assert!(beff["intervals"]["MaxPingPongLatency_usec"]["low"].is_number(), "{beff}");
    // Repeated until steady, from the number asked for on.
    for took in [&beff["latency_took"], &beff["bandwidth_took"]] {
        assert!(took["fewest"].as_u64().unwrap() > 4 && took["measurements"].as_u64().unwrap() >= 15, "{took}");
    }
    assert!(shown.contains("latencies: ") && shown.contains("warm-up included"), "{shown}");
    for name in ["MaxPingPongLatency_usec", "RandomlyOrderedRingLatency_usec", "NaturallyOrderedRingBandwidth_GBytes"] {
        assert!(shown.contains(name), "{name} in\n{shown}");
    }
}

#[test]
fn maxrate_answers_its_question() {
    let (file, shown) = study("maxrate --most-pairs 2 --largest 32768 --repetitions 2 --iterations 5");
    assert_eq!(file["models"]["maxrate"]["observations"].as_array().unwrap().len(), 2 * 16 * 2);
    let took = &file["models"]["maxrate"]["took"];
    assert!(took["measurements"] == 2 * 16 * 2 && took["fewest"].as_u64().unwrap() > 5, "{took}");
    assert!(shown.contains("How many ranks per node should talk at once"), "{shown}");
}
