//! A load that nobody told the search of is found again, and whatever ends a search, what it found by then is kept.

use std::path::Path;

use crate::common::{Folder, Job, assert_schema, refused, succeed, tailback, words};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

/// 19 of 24 nodes do not measure.
const SMALL: &str = "--transport sim --machine small -n 24";
const SIZES: &str = "--set congestor.a2a.bytes=64KiB --set congestor.incast.bytes=64KiB";
const OTHERS: f64 = 19.0;

/// What a job without congestors would have recorded beside this load: all that tells of the load itself is taken away.
fn wild(file: &mut Value) {
    let run = &mut file["runs"][0];
    run["tests"].as_array_mut().unwrap().retain(|test| test["phase"] == "loaded");
    for test in run["tests"].as_array_mut().unwrap() {
        (test["phase"], test["load"]) = ("isolated".into(), json!([]));
    }
    (run["impacts"], run["placements"]) = (json!([]), json!([]));
    (file["plan"]["congestors"], file["notes"], file["label"]) = (json!([]), json!([]), "wild".into());
    file["plan"].as_object_mut().unwrap().remove("load_fraction");
    let loads = |node: &&mut Value| node["roles"][0] != "canary";
    for node in file["system"]["nodes"].as_array_mut().unwrap().iter_mut().filter(loads) {
        node["roles"] = json!(["idle"]);
    }
    let phases = file["machine"]["phases"].as_array_mut().unwrap();
    phases.retain(|phase| phase["phase"].as_str().unwrap().starts_with("loaded"));
    for phase in phases {
        phase["phase"] = phase["phase"].as_str().unwrap().replace("loaded", "isolated").into();
    }
}

/// Records a load of so many nodes each of a2a and incast, as a wild one, with a search's options.
fn record(folder: &Folder, nodes: [u32; 2], options: &str) -> String {
    let [a2a, incast] = nodes;
    let fraction = f64::from(a2a + incast) / OTHERS;
    succeed(&format!(
        "run {SMALL} {SIZES} {options} --seed 11 --quiet --congestors a2a={a2a},incast={incast} \
         --load-fraction {fraction} --out {}",
        folder.path("wild.json")
    ));
    let mut file = folder.json("wild.json");
    wild(&mut file);
    folder.write("wild.json", file.to_string())
}

#[test]
fn a_secret_mix_is_found_in_at_most_twenty_runs() {
    let folder = Folder::new();
    let [plan, found, page] = ["found.toml", "found.json", "report.html"].map(|name| folder.path(name));
    let secret = [12, 4];
    let like = record(&folder, secret, "--budget 1ms --placements 4");
    let line = format!("calibrate {SMALL} {SIZES} --congestors a2a,incast --quiet --like {like}");
    let shown = succeed(&format!("{line} --write {plan} --out {found}")).stdout;
    let file = folder.json("found.json");
    let search = &file["calibration"];
    let runs = search["runs"].as_array().unwrap();
    assert!(runs.len() <= 20 && search["nodes"] == OTHERS, "{shown}");
    let part = |of: &Value| of["share"].as_f64().unwrap();
    let shares: Vec<f64> = search["shares"].as_array().unwrap().iter().map(part).collect();
    let wanted = secret.map(|nodes| f64::from(nodes) / OTHERS);
    for (share, wanted) in shares.iter().zip(wanted) {
        assert!((share - wanted).abs() <= 0.1, "{secret:?}\n{shown}");
    }
    let resting = 1.0 - wanted.iter().sum::<f64>();
    assert!((part(&search["resting"]) - resting).abs() <= 0.1, "{secret:?}\n{shown}");
    let distance = |run: usize| runs[run]["distance"].as_f64().unwrap();
    let best = usize::try_from(search["found"].as_u64().unwrap()).unwrap();
    assert!(distance(best) < distance(0), "{shown}");
    assert!(shown.contains("<- found") && shown.contains("not ruled out"), "{shown}");
    // The plan is one, and has the congestors that were found.
    let planned = succeed(&format!("run {SMALL} --plan {plan} --dry-run")).stdout;
    assert!(planned.contains("a2a") && planned.contains("incast"), "{planned}");
    succeed(&format!("compare {like} {found}"));
    succeed(&format!("report {like} {found} --out {page}"));
    assert_eq!(succeed(&format!("show {found}")).stdout, shown);
}

#[test]
fn the_same_seed_searches_the_same_way() {
    let folder = Folder::new();
    let like = record(&folder, [8, 4], "--budget 100us --placements 2 --canaries lat");
    let search = |seed: u64| {
        let [plan, out, kept] = ["plan.toml", "out.json", "kept"].map(|name| folder.path(name));
        let line = format!("calibrate {SMALL} {SIZES} --congestors a2a,incast --runs 6 --seed {seed} --quiet");
        succeed(&format!("{line} --like {like} --write {plan} --out {out} --keep {kept}"));
        folder.json("out.json")["calibration"].clone()
    };
    let one = search(3);
    assert_eq!((&one, one["runs"].as_array().unwrap().len()), (&search(3), 6));
    assert_ne!(one["runs"], search(4)["runs"]);
    for name in ["kept/run-01.json", "kept/run-06.json", "out.json"] {
        assert_schema(name, &folder.json(name));
    }
    assert_eq!(folder.json("kept/run-06.json")["command"], "calibrate");
    assert!(!folder.has("kept/run-07.json"));
}

/// A wild run on plain local ranks, and the words of a search for it.
fn local(folder: &Folder) -> String {
    let [like, plan, out] = ["wild.json", "plan.toml", "out.json"].map(|name| folder.path(name));
    succeed(&format!(
        "run -n 8 --preset quick --placements 2 --budget 200ms --canaries lat --congestors none --quiet --out {like}"
    ));
    format!("calibrate -n 8 --like {like} --congestors a2a,incast --write {plan} --out {out}")
}

/// Asserts that a search that was cut short left a plan that can be run and a result that says so.
fn assert_kept(folder: &Folder) {
    let file = folder.json("out.json");
    assert_eq!((&file["interrupted"], &file["command"]), (&true.into(), &"calibrate".into()));
    let runs = file["calibration"]["runs"].as_array().unwrap().len();
    assert!((1..20).contains(&runs), "{runs} runs");
    succeed(&format!("run -n 8 --plan {} --dry-run", folder.path("plan.toml")));
}

#[test]
fn an_interrupted_search_keeps_what_it_found() {
    let folder = Folder::new();
    let mut job = Job::start(tailback(words(&local(&folder))));
    job.eventually("a first run", || folder.has("out.json").then_some(()));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("interrupted in run "), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Calibrated to"), "{}", outcome.stdout);
    assert_kept(&folder);
}

#[test]
fn a_search_whose_rank_is_killed_keeps_what_it_found() {
    let folder = Folder::new();
    let mut job = Job::start(tailback(words(&format!("{} --quiet", local(&folder)))));
    let ranks = job.ranks(8);
    job.eventually("a first run", || folder.has("out.json").then_some(()));
    kill_process(ranks[5], Signal::KILL).unwrap();
    let outcome = job.end();
    assert!(outcome.refusal().contains("rank 5"), "{outcome:?}");
    assert_kept(&folder);
}

#[test]
fn what_cannot_be_searched_is_refused_by_name() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let sim = "--transport sim --machine small -n 8 --budget 100us --placements 1 --quiet";
    succeed(&format!("run {sim} --congestors none --canaries lat --out {}", path("wild.json")));
    succeed(&format!("network {sim} --out {}", path("network.json")).replace("--placements 1", ""));
    succeed(&format!("run {sim} --canaries lat --protocol eager,put --congestors a2a --out {}", path("two.json")));
    folder.write("nothing.json", "{}");
    let over = "--transport sim --machine small -n 8";
    for (like, more, expected) in [
        ("missing.json", "", "cannot read"),
        ("nothing.json", "", "is no Tailback result"),
        ("network.json", "", "it is of `tailback network`"),
        ("two.json", "", "it has 2 runs"),
        (
            "wild.json",
            "--congestors a2a,incast --runs 3",
            "3 runs are too few: with 2 kinds of congestors a search has",
        ),
        ("wild.json", "--runs 21", "--runs 21: choose up to 20"),
        ("wild.json", "--preset quick", "--preset is not for calibrate"),
        ("wild.json", "--fail-if lat.p99.impact>2", "--fail-if is not for calibrate"),
        ("wild.json", "--congestors none", "calibrate chooses among congestors"),
        ("wild.json", "--congestors a2a,incast,bcast,allreduce --bytes 12", "--bytes: allreduce: bytes = 12"),
        ("wild.json", "--congestors a2a,incast,bcast,put-bcast", "4 kinds are too many"),
        ("wild.json", "--congestors a2a --protocol eager,put", "over one network"),
        ("wild.json", "--out plan.toml", "plan.toml"),
    ] {
        refused(&[(&format!("calibrate {over} --like {} --write plan.toml {more} --quiet", path(like)), expected)]);
    }
    let dry =
        succeed(&format!("calibrate {over} --congestors a2a --like {} --write plan.toml --dry-run", path("wild.json")));
    assert!(dry.stdout.contains("Up to 20 such runs, under load only"), "{}", dry.stdout);
    assert!(!Path::new("plan.toml").exists());
}
