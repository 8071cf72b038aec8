//! Jobs without congestors: the same canaries on the same placements, and conditions side by side.

use crate::common::{Folder, refused, run, succeed};
use serde_json::Value;

const PLAN: &str = "run -n 6 --preset quick --placements 3 --budget 300ms --canaries lat,allreduce --seed 7 --quiet";

#[test]
fn quiet_wild_and_loaded_jobs_stand_side_by_side() {
    let folder = Folder::new();
    let (loaded, page) = (folder.path("loaded.json"), folder.path("report.html"));
    succeed(&format!("{PLAN} --congestors a2a,incast --out {loaded}"));
    let wild: Vec<String> = (0..3).map(|day| folder.path(&format!("wild{day}.json"))).collect();
    for file in &wild {
        let shown = succeed(&format!("{PLAN} --congestors none --label monday --format table --out {file}")).stdout;
        assert!(shown.contains("idle         4 nodes") && !shown.contains("Under load"), "{shown}");
    }
    let (with, without) = (folder.json("loaded.json"), folder.json("wild0.json"));
    assert_eq!(without["label"], "monday");
    for placement in 0..3 {
        let canaries = |file: &Value| -> Vec<bool> {
            let roles = file["runs"][0]["placements"][placement]["roles"].as_array().unwrap().clone();
            roles.iter().map(|of| of[0] == "canary").collect()
        };
        assert_eq!(canaries(&with), canaries(&without), "the same nodes measure");
    }
    let all = wild.join(" ");
    let compared = succeed(&format!("compare {loaded} {all} --json")).json();
    let rows = compared["conditions"].as_array().unwrap();
    let lat: Vec<(&str, u64)> = rows
        .iter()
        .filter(|row| row["kernel"] == "lat")
        .map(|row| (row["condition"].as_str().unwrap(), row["jobs"].as_u64().unwrap()))
        .collect();
    assert_eq!(lat, [("quiet", 1), ("monday", 3), ("loaded", 1)]);
    assert!(rows[1]["quartiles"][0].as_f64().unwrap() <= rows[1]["median"].as_f64().unwrap());
    let shown = succeed(&format!("compare {loaded} {all}")).stdout;
    assert!(shown.contains("Quiet, in the wild and loaded: figures of whole jobs"), "{shown}");
    succeed(&format!("report {loaded} {all} --out {page}"));
    assert!(folder.text("report.html").contains("Quiet, in the wild and loaded"));
}

const SIM: &str = "run --transport sim --machine small --canaries lat --budget 200us --placements 3 -q";

#[test]
fn a_wild_job_of_canaries_alone_is_matched_by_who_measures() {
    let folder = Folder::new();
    let job = |name: &str, more: &str| {
        let path = folder.path(name);
        succeed(&format!("{SIM} {more} --out {path}"));
        path
    };
    let loaded = job("loaded.json", "-n 10 --congestors a2a");
    let wild = job("wild.json", "-n 2 --congestors none --canary-fraction 100%");
    let other = job("other.json", "-n 3 --congestors none --canary-fraction 100%");
    let nodes = folder.json("wild.json")["system"]["nodes"].as_array().unwrap().clone();
    assert!(nodes.len() == 2 && nodes.iter().all(|node| node["roles"] == serde_json::json!(["canary"])), "{nodes:?}");
    let rows = succeed(&format!("compare {loaded} {wild} --json")).json()["conditions"].clone();
    let conditions: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["condition"].as_str().unwrap()).collect();
    assert_eq!(conditions, ["quiet", "wild", "loaded"]);
    let unlike = run(&format!("compare {loaded} {other}")).stderr;
    assert!(unlike.contains("nodes: 2 measure on the first side, 3 measure on this one"), "{unlike}");
    let all = format!("{SIM} -n 10 --canary-fraction 100%");
    refused(&[(&all, "canary fraction 100% leaves no node for congestors")]);
}

#[test]
fn what_needs_load_is_refused_without_congestors() {
    refused(&[
        ("run -n 4 --congestors none --fail-if lat.p99.impact>2", "without congestors nothing is measured under load"),
        ("run -n 4 --congestors none,a2a", "--congestors none stands alone"),
        ("run -n 4 --congestors none --congestors-alone", "none to be measured alone"),
        ("congest -n 4 --congestors none --duration 1s", "congest without congestors loads nothing"),
    ]);
}
