//! Sweeps: points that take turns, intensity on a simulated network and the queues that it fills, views, and what is refused.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Folder, refused, result_of, succeed};

/// An incast that fills the port in front of its root once enough of it is under way.
const INCAST: &str = "--transport sim --machine small -n 16 --seed 3 --canaries lat --congestors incast";

/// Rates of a curve with whether each shows an impact, in order.
fn points(file: &Value) -> Vec<(f64, bool)> {
    let points = file["sweep"]["curves"][0]["points"].as_array().expect("a curve");
    points.iter().map(|of| (of["value"]["number"].as_f64().unwrap(), of["shows_impact"].as_bool().unwrap())).collect()
}

/// The nanoseconds for which ports had no room for a packet under load, by the rate of the point.
fn stalled(file: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for phase in file["machine"]["phases"].as_array().expect("phases of the machine") {
        let name = phase["phase"].as_str().unwrap();
        let Some((_, rate)) = name.split_once("congestor.rate=").filter(|_| name.starts_with("loaded")) else {
            continue;
        };
        let ports = phase["ports"].as_array().unwrap();
        let here: u64 = ports.iter().filter_map(|port| port["simulated"]["stalled_ns"].as_u64()).sum();
        *all.entry(rate.split('%').next().unwrap().to_owned()).or_default() += here;
    }
    all
}

#[test]
fn the_onset_of_intensity_is_where_the_first_queue_is_full() {
    let (file, shown) = result_of(&format!(
        "sweep congestor.rate=12.5%..100%/8 {INCAST} --set incast.bytes=16KiB --placements 6 --budget 1ms"
    ));
    let points = points(&file);
    assert_eq!((points.len(), points[0].0, points[7].0), (8, 0.125, 1.0));
    let onset = file["sweep"]["curves"][0]["onset"]["point"].as_u64().expect("an onset") as usize;
    assert!(points[onset].1 && points[..onset].iter().all(|of| !of.1), "{points:?}");
    let stalled = stalled(&file);
    let full = |rate: &f64| stalled[&format!("{}", 100.0 * rate)] > 0;
    let first = points.iter().position(|(rate, _)| full(rate)).expect("full load fills a queue");
    assert!(onset.abs_diff(first) <= 1, "onset {onset}, first full queue {first}: {points:?} {stalled:?}\n{shown}");
    // The load that was delivered follows the rate.
    let loads: Vec<f64> = file["sweep"]["curves"][0]["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["load_mib_per_s"].as_f64().unwrap())
        .collect();
    for (load, (rate, _)) in loads.iter().zip(&points) {
        let wanted = rate * loads[7];
        assert!((load - wanted).abs() < 0.15 * loads[7], "{load} of {wanted} MiB/s at {rate}: {loads:?}");
    }
}

#[test]
fn a_key_that_does_nothing_has_no_onset() {
    // How many iterations an incast has between agreements.
    let (file, _) = result_of(&format!(
        "sweep congestor.incast.bytes=8,16,24 {INCAST} --placements 4 --budget 400us --load-fraction 10%"
    ));
    assert_eq!(file["sweep"]["curves"][0]["onset"]["none"], "no value shows an impact");
}

#[test]
fn every_view_knows_the_points_apart() {
    let folder = Folder::new();
    let (path, csv, page) = (folder.path("result.json"), folder.path("table.csv"), folder.path("page.html"));
    let line = format!(
        "sweep congestor.rate=50%,100% lat.bytes=8,4KiB {INCAST} --set incast.bytes=64KiB --placements 3 --budget 300us \
         --crosses 'lat.avg.impact > 1.2' --out {path} --csv {csv}"
    );
    let words = line.replace("'lat.avg.impact > 1.2'", "lat.avg.impact>1.2");
    let outcome = succeed(&words);
    assert!(outcome.stderr.contains("4 runs take turns on every placement"), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("lat (lat.bytes=8)") && outcome.stdout.contains("lat.avg.impact > 1.2"),
        "{outcome:?}"
    );
    let runs = folder.json("result.json")["runs"].as_array().unwrap().len();
    assert_eq!(runs, 4);
    let table = folder.text("table.csv");
    assert!(table.lines().next().unwrap().ends_with(",setting,point"), "{table}");
    assert!(table.contains(",congestor.rate=50% lat.bytes=4KiB\n"), "{table}");
    assert!(succeed(&format!("show {path} -v")).stdout.contains("Sweep: every point of every curve"));
    assert!(succeed(&format!("compare {path}")).stdout.contains("at congestor.rate=100% lat.bytes=8"));
    let beside = succeed(&format!("compare {path} {path}")).stdout;
    assert_eq!(beside.lines().filter(|line| line.contains("congestor.rate=50%")).count(), 2, "{beside}");
    succeed(&format!("report {path} --out {page}"));
    let page = folder.text("page.html");
    assert!(page.contains("lat by congestor.rate and lat.bytes") && page.contains("id=\"sweep\""));
}

#[test]
fn a_plan_file_may_have_the_keys() {
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[sweep]\n\"load-fraction\" = [0.5, \"100%\"]\n");
    let told = succeed(&format!("sweep --plan {plan} {INCAST} --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: load-fraction=0.5, load-fraction=100%"), "{told}");
    let told = succeed(&format!("run {INCAST} --set lat.bytes=8,64 --dry-run")).stdout;
    assert!(told.contains("2 points take turns on every placement: lat.bytes=8, lat.bytes=64"), "{told}");
    let told = succeed("sweep congestor.rate=25%..100%/4 --budget 1s -n 6 --dry-run").stdout;
    assert!(told.contains("Expected duration: at most "), "{told}");
}

#[test]
fn what_cannot_be_swept_is_refused_before_anything_is_measured() {
    let folder = Folder::new();
    let plan = folder.write("plan.toml", "[sweep]\n\"congestor.rate\" = \"50%,100%\"\n");
    refused(&[
        ("sweep", "sweep needs a key: give KEY=VALUES"),
        ("sweep congestor.rate=0%,50%", "congestor.rate=0%: invalid rate 0 of a2a: expected 1% to 100%"),
        ("sweep congestor.rate=50%", "a sweep of 1 points: expected 2 to 64"),
        ("sweep bytes=8,16", "invalid key 'bytes': expected congestor.rate, load-fraction"),
        ("sweep congestor.rate=50%,100% --congestors none", "a sweep without congestors has no load"),
        ("sweep congestor.rate=50%,100% --congestors each", "--congestors each: not for sweep"),
        ("sweep congestor.rate=50%,100% --launches 2", "--launches: not for sweep"),
        ("sweep canary-fraction=20%,99% -n 4 --transport sim --machine small", "canary-fraction=99%: "),
        (
            "sweep congestor.rate=50%,100% --crosses a2a.avg.impact>2",
            "--crosses 'a2a.avg.impact > 2': the plan does not measure a2a",
        ),
        (&format!("run --plan {plan}"), "the plan has a sweep over congestor.rate: use `tailback sweep`"),
    ]);
}
