//! The studies, end to end: predictions without a network, measurements over tcp, result files that fit the schema.

use serde_json::Value;

use crate::common::{Folder, refused, result_of, succeed};

/// Runs a study as local ranks and gives its result file and what it printed.
fn study(line: &str) -> (Value, String) {
    result_of(&format!("{line} --no-lab"))
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
    let folder = Folder::new();
    let graph = folder.write("three.dot", "digraph { a -> d; b -> d; c -> d }");
    let line = format!("contention --predict-only --graph {graph}");
    let shown = succeed(&format!("{line} --draw {}", folder.path("three.svg"))).stdout;
    assert_eq!(shown.matches("3.000").count(), 6, "{shown}");
    assert!(folder.text("three.svg").starts_with("<svg"));
    succeed(&format!("{line} --draw {}", folder.path("again.gv")));
    assert!(folder.text("again.gv").contains("\"a\" -> \"d\" [label=\"3.00\"]"));
}

#[test]
fn mistakes_are_one_line() {
    refused(&[
        ("contention --predict-only", "--graph <FILE>|--shape <LIST>|--random <LIST>"),
        ("contention --predict-only --shape star", "invalid shape 'star': expected out-N"),
        ("contention --predict-only --graph /nowhere/graph", "cannot read /nowhere/graph"),
        ("contention --no-lab --shape out-3 --ranks-per-node 1 -q", "start 3 ranks per node"),
        ("contention --predict-only --shape in-2 --model gossip", "neither a result file nor one of text, figure3"),
        ("contention --predict-only --shape in-2 --model Cargo.toml", "Cargo.toml"),
        ("contention --graph tests/data/late.graph -q", "starts after 90 s is not measured"),
        ("maxrate --predict /nowhere/file --halo 6x1KiB", "/nowhere/file"),
        ("maxrate --predict Cargo.toml", "--halo <LIST>"),
        ("maxrate --compute 1ms", "--halo <LIST>"),
        ("maxrate --parameters nowhere --halo 6x1KiBx8", "'nowhere' is neither a file nor blue-waters"),
        ("maxrate --parameters Cargo.toml --halo 6x1KiBx8", "Cargo.toml: expected the columns"),
        ("maxrate --parameters blue-waters --halo 6x1KiB", "say how many ranks of a node exchange"),
        ("maxrate --transport sim --machine small --halo 6x1KiB --compute 1ms -q", "takes no virtual time"),
        ("maxrate --predict Cargo.toml --halo 6", "invalid halo '6': expected"),
        ("maxrate --node-pairs none -q", "invalid node pairs 'none': expected first, all"),
        ("maxrate --thresholds 0 -q", "invalid message size '0': expected 1 B to 1 GiB"),
        ("beff --no-lab -n 1 -q", "at least 2 ranks"),
        ("maxrate --no-lab -n 2 --ranks-per-node 2 -q", "needs two nodes"),
    ]);
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
    for expected in ["measured penalty", "messages of an edge a measurement", "Error by number of edges"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
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

/// Every two nodes, each way and both at once: each stands in the result, the table, the comparison and the report.
#[test]
fn maxrate_tells_pairs_of_nodes_and_directions_apart() {
    let folder = Folder::new();
    let line = "maxrate --transport sim --machine small -n 6 --ranks-per-node 2 --largest 4096 --repetitions 2";
    let (file, shown) = result_of(&format!("{line} --node-pairs all --both-directions"));
    let path = folder.write("all.json", file.to_string());
    let found = &file["models"]["maxrate"];
    let between = found["between"].as_array().unwrap();
    let ways: Vec<&str> = between.iter().map(|of| of["direction"].as_str().unwrap()).collect();
    assert_eq!(ways, ["there", "back", "both"].repeat(3));
    // 2 pairs, 13 sizes, 2 repetitions; the middle of them has as many.
    let count = |of: &Value| of["observations"].as_array().unwrap().len();
    assert!(between.iter().all(|of| count(of) == 2 * 13 * 2) && count(found) == 2 * 13 * 2);
    for expected in [
        "Over 6 ways between nodes",
        "(both ways at once",
        "most / least",
        "virtual0 > virtual1",
        "virtual1 <> virtual2",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let csv = succeed(&format!("show {path} --format csv")).stdout;
    assert!(csv.contains("between,first_node,second_node,pairs") && csv.contains("virtual1 > virtual0"), "{csv}");
    let compared = succeed(&format!("compare {path} {path}")).stdout;
    assert!(compared.contains("The slowest pair of nodes, both ways at once"), "{compared}");
    succeed(&format!("report {path} --out {}", folder.path("report.html")));
    let page = folder.text("report.html");
    assert!(page.contains("between each two nodes") && page.contains("virtual0 &lt;&gt; virtual1"));
    // Drawn pairs, to and fro: no direction, and as many as asked for.
    let (file, shown) = result_of(&format!("{line} --node-pairs 2 --signed"));
    let between = file["models"]["maxrate"]["between"].as_array().unwrap();
    assert!(between.len() == 2 && between.iter().all(|of| of["direction"].is_null()));
    assert_eq!(file["models"]["maxrate"]["settings"]["signed"], true);
    assert!(shown.contains("Over 2 pairs of nodes, one after the other"), "{shown}");
}

#[test]
fn halo_exchanges_are_predicted_from_a_result() {
    let folder = Folder::new();
    let path = folder.path("maxrate.json");
    succeed(&format!("maxrate --transport sim --machine small --most-pairs 4 --repetitions 1 -q --out {path}"));
    let shown = succeed(&format!("maxrate --predict {path} --halo 6x64KiB,4x4MiBx16")).stdout;
    for expected in [
        "6 messages of 64 KiB from each of 4 ranks of a node",
        "4 messages of 4 MiB from each of 16 ranks",
        "beyond what was measured, up to 4 ranks",
        "over postal, 1 pair",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    refused(&[(&format!("maxrate --predict {path} --halo 6x1KiB --out {path}"), "--predict makes none")]);
}

/// On a simulated node nothing but the network takes time: what is measured is what the models of the same run say.
#[test]
fn halo_exchanges_are_measured_beside_their_prediction() {
    let line = "maxrate --transport sim --machine small --most-pairs 2 --repetitions 3 --halo 4x256KiB,4x128KiBx2/1";
    let (file, shown) = result_of(line);
    let halos = file["models"]["maxrate"]["halos"].as_array().unwrap();
    assert_eq!(halos.len(), 2);
    for seen in halos {
        assert!(seen["seconds"].as_array().unwrap().len() == 3 && seen["overlap"].is_null(), "{seen}");
    }
    assert_eq!(shown.matches("  Measured: ").count(), 2, "{shown}");
    assert!(shown.contains("through 1 of them in messages of 256 KiB"), "{shown}");
}

#[test]
fn halo_exchanges_are_predicted_from_given_parameters() {
    let shown = succeed("maxrate --parameters blue-waters --halo 1x16KiBx16,6x1KiBx16").stdout;
    for expected in
        ["rendezvous messages: Blue Waters (Cray XE6)", "eager messages", "242.1", "4.115 ranks fill the node"]
    {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
}

/// The library's own threshold is found to the byte.
#[test]
fn thresholds_between_protocols_are_found_by_bisection() {
    let line =
        "maxrate --transport sim --machine small --protocol put --eager-threshold 5000 --most-pairs 1 --repetitions 1";
    let (file, shown) = result_of(&format!("{line} --largest 65536"));
    let thresholds = file["models"]["maxrate"]["thresholds"].as_array().unwrap();
    assert!(
        thresholds.iter().any(|of| of["largest_bytes"] == 5000 && of["smallest_bytes"] == 5001),
        "{thresholds:?}\n{shown}"
    );
    assert!(shown.contains("5000 B is the largest before it"), "{shown}");
}

/// A message that waits for another has the port to itself, where both at once would take twice as long.
#[test]
fn messages_that_wait_for_arrivals_are_measured() {
    let folder = Folder::new();
    let trace = folder.write("chain.txt", "a b\na c 1MB a>b\nc d 1MB a>c+1ms\n");
    let line = format!("contention --transport sim --machine small --graph {trace} --bytes 1MB --repetitions 3");
    let (file, shown) = result_of(&line);
    let graph = &file["models"]["contention"]["graphs"][0];
    let reference = graph["reference_s"].as_f64().unwrap();
    for edge in graph["edges"].as_array().unwrap() {
        let multiple = edge["measured_s"].as_f64().unwrap() / reference;
        assert!((0.9..1.1).contains(&multiple), "{multiple} {edge}");
    }
    assert!(shown.contains("after a>b") && shown.contains("0.001000 after a>c"), "{shown}");
    let predicted =
        succeed(&format!("contention --graph {trace} --bytes 1MB --predict-only --steps --t-ref 0.01")).stdout;
    assert!(predicted.contains("c>d: 1000000 B from 0.021000 s, arrives at 0.031000 s"), "{predicted}");
    let apart = folder.write("apart.txt", "a b\nc d 1MB a>b\n");
    refused(&[(&format!("contention --no-lab --graph {apart} --bytes 1000 -q"), "predicted only, add --predict-only")]);
}

#[test]
fn messages_of_their_own_are_measured() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "# a trace\na b 300000\nc b 100000 2ms\na d 200000 1ms\n");
    let (file, shown) = study(&format!("contention --graph {trace} --bytes 200000 --repetitions 3"));
    let edges = file["models"]["contention"]["graphs"][0]["edges"].as_array().unwrap();
    assert_eq!((&edges[1]["message"]["bytes"], &edges[1]["message"]["start_ns"]), (&100_000.into(), &2_000_000.into()));
    assert!(edges.iter().all(|edge| edge["measured_s"].as_f64().unwrap() > 0.0 && edge["measured_penalty"].is_null()));
    assert!(shown.contains("0.002000") && shown.contains("measured s"), "{shown}");
}

#[test]
fn penalties_are_learned_from_a_result() {
    let folder = Folder::new();
    let learned = folder.path("learned.json");
    let measured = "contention --transport sim --machine small --shape in-2,out-2 --bytes 200000 --repetitions 3 -q";
    succeed(&format!("{measured} --out {learned}"));
    let predict = format!("contention --predict-only --model {learned} --shape");
    let shown = succeed(&format!("{predict} in-2")).stdout;
    assert!(shown.contains("100% of its steps' penalties are measured ones from"), "{shown}");
    let shown = succeed(&format!("{predict} in-3")).stdout;
    assert!(shown.contains("  0% of its steps' penalties") && shown.contains("3.000"), "{shown}");
}
