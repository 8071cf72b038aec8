//! Patterns of today's programs, end to end: data checked on any number of ranks, bandwidths of collectives, and all sizes.

use crate::common::{Folder, refused, result_of as result, run, succeed};
use serde_json::Value;

const CANARIES: &str = "ring-allreduce,reduce-scatter,allgather,moe,pipeline";
const CONGESTORS: &str = "permutation,tornado,moe,storage,ring-allreduce,reduce-scatter,allgather,pipeline";

fn tests(file: &Value, run: usize) -> &Vec<Value> {
    file["runs"][run]["tests"].as_array().unwrap()
}

#[test]
fn every_pattern_measures_and_loads_on_any_number_of_ranks() {
    for ranks in [2, 3, 7, 8] {
        let line = format!("network --transport sim --machine small -n {ranks} --canaries {CANARIES} --budget 100us");
        let (file, _) = result(&line);
        for test in tests(&file, 0) {
            assert!(test["summary"]["iterations"].as_u64().unwrap() > 0, "{ranks}: {test}");
            let members = test["collective"]["ranks"].as_u64();
            assert_eq!(members, (test["direction"] == "bandwidth").then_some(ranks), "{test}");
        }
    }
    // Two nodes for each congestor.
    let line = format!(
        "run --transport sim --machine small -n 22 --canaries ring-allreduce,moe --congestors {CONGESTORS} --budget 100us --placements 1"
    );
    let (file, shown) = result(&line);
    for test in tests(&file, 0).iter().filter(|test| test["phase"] == "loaded") {
        let loads = test["load"].as_array().unwrap();
        assert_eq!(loads.len(), 8, "{test}");
        assert!(loads.iter().all(|load| load["delivered_bytes"].as_u64().unwrap() > 0), "{test}");
    }
    assert!(shown.contains("algbw") && shown.contains("busbw") && shown.contains("storage 8 KiB"), "{shown}");
}

#[test]
fn patterns_run_over_sockets() {
    let line =
        format!("network -n 3 --ranks-per-node 1 --canaries {CANARIES} --budget 50ms --set ring-allreduce.bytes=72");
    let (file, _) = result(&line);
    let ran = |test: &Value| test["summary"]["iterations"].as_u64().unwrap() > 0;
    assert!(tests(&file, 0).len() == 5 && tests(&file, 0).iter().all(ran), "{file:#}");
    let line = format!("congest -n 16 --ranks-per-node 1 --congestors {CONGESTORS} --duration 200ms");
    let (file, _) = result(&line);
    let loads = file["runs"][0]["congestors"].as_array().unwrap();
    assert!(loads.len() == 8 && loads.iter().all(|load| load["ranks"] == 2), "{loads:#?}");
}

#[test]
fn a_ring_allreduce_has_the_bus_bandwidth_of_the_link() {
    let line = "network --transport sim --machine small -n 4 --canaries ring-allreduce --set ring-allreduce.bytes=4MiB --budget 300us";
    let (file, shown) = result(line);
    let test = &tests(&file, 0)[0];
    let of = |key: &str| test["collective"][key].as_f64().unwrap();
    let (bus, algorithm) = (of("bus_mib_per_s"), of("algorithm_mib_per_s"));
    assert!((bus / algorithm - 1.5).abs() < 1e-9, "2 x 3/4: {bus} and {algorithm}");
    assert_eq!(test["summary"]["mean"].as_f64(), Some(bus), "{test}");
    // 200 Gbit/s, of which headers have a part.
    let link = 200e9 / 8.0 / 1_048_576.0;
    assert!((0.85 * link..=link).contains(&bus), "{bus} of {link} MiB/s");
    assert!(shown.contains("busbw"), "{shown}");
    let folder = Folder::new();
    let csv = folder.path("figures.csv");
    succeed(&format!("{line} -q --csv {csv}"));
    let text = folder.text("figures.csv");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|head| *head == "bus_mib_per_s").unwrap();
    assert!(lines[1][at].parse::<f64>().unwrap() > 0.85 * link, "{text}");
}

#[test]
fn settings_of_patterns_are_checked() {
    refused(&[
        (
            "run -n 4 --canaries reduce-scatter --set reduce-scatter.bytes=100",
            "reduce-scatter: bytes = 100 is not a multiple of 8",
        ),
        ("run -n 4 --congestors tornado --set tornado.window=2", "congestor tornado has no window"),
        ("run -n 4 --congestors storage --set storage.rings=2", "congestor storage has no rings"),
    ]);
    let line = "run -n 8 --ranks-per-node 1 --congestors storage --set storage.window=3 --dry-run";
    assert!(succeed(line).stdout.contains("storage 64 KiB"));
}

#[test]
fn every_size_has_a_row_and_a_run() {
    let folder = Folder::new();
    let out = folder.path("sizes.json");
    let line = "network --transport sim --machine small -n 4 --canaries lat,ring-allreduce --sizes 8..64,4KiB,1MiB --budget 100us";
    let outcome = succeed(&format!("{line} --out {out}"));
    assert!(
        outcome.stderr.contains("6 sizes x 2 canaries, 100 us each: about 1.20 ms of virtual time in all"),
        "{}",
        outcome.stderr
    );
    let file = folder.json("sizes.json");
    crate::common::assert_schema("sizes", &file);
    let sizes: Vec<u64> =
        file["runs"].as_array().unwrap().iter().map(|run| run["size_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [8, 16, 32, 64, 4096, 1 << 20]);
    for (at, size) in sizes.iter().enumerate() {
        assert!(tests(&file, at).len() == 2 && tests(&file, at).iter().all(|test| test["bytes"] == *size), "{file:#}");
    }
    let rate = |at: usize| tests(&file, at)[1]["collective"]["bus_mib_per_s"].as_f64().unwrap();
    assert!(rate(5) > 100.0 * rate(0), "large messages use the link: {} and {}", rate(0), rate(5));
    for text in [outcome.stdout, succeed(&format!("show {out} --format table")).stdout] {
        for expected in ["lat, in us", "ring-allreduce, in MiB/s/rank", "busbw"] {
            assert!(text.contains(expected), "{text}");
        }
        let rows = |size: &str| text.lines().filter(|line| line.trim_start().starts_with(size)).count();
        assert_eq!(["8 B ", "16 B ", "64 B ", "4 KiB ", "1 MiB "].map(rows), [2; 5], "{text}");
    }
    let csv = succeed(&format!("show {out} --format csv")).stdout;
    assert_eq!(csv.lines().count(), 1 + 12, "{csv}");
    succeed(&format!("report {out} --out {}", folder.path("report.html")));
    refused(&[(&format!("compare {out} {out}"), "several message sizes, which are not compared with each other")]);
}

#[test]
fn sizes_are_told_and_refused_before_anything_is_measured() {
    let plan =
        succeed("network -n 2 --ranks-per-node 1 --sizes 8..4MiB --canaries lat,bw,allreduce --budget 100ms --dry-run")
            .stdout;
    for expected in [
        "Message sizes take turns: 8 B, 16 B, 32 B,",
        "4 MiB\n",
        "20 sizes x 3 canaries, 100 ms each: about 6.00 s in all",
    ] {
        assert!(plan.contains(expected), "{plan}");
    }
    refused(&[
        ("network -n 2 --sizes 4..64", "invalid size '4': allreduce: bytes = 4 is not a multiple of 8"),
        ("network -n 2 --sizes 8,64,8 --canaries lat", "size 8 B is named twice"),
        ("network -n 2 --sizes 64..8", "invalid sizes '64..8': expected the smaller one first"),
        ("network -n 2 --sizes 8,2GiB", "invalid message size '2GiB': expected 1 B to 1 GiB"),
        ("network -n 2 --sizes 8 --set lat.bytes=64", "leave out --set KERNEL.bytes"),
    ]);
    assert_eq!(run("run -n 4 --sizes 8..64").code(), Some(2));
}
