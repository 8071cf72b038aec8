//! A load that nobody told the search of is found again, and whatever ends a search, what it found by then is kept.

use std::path::{Path, PathBuf};

use crate::common::{Job, eventually, run, succeed, tailback, words};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

/// 19 of 24 nodes do not measure.
const SMALL: &str = "--transport sim --machine small -n 24";
const SIZES: &str = "--set congestor.a2a.bytes=64KiB --set congestor.incast.bytes=64KiB";
const OTHERS: f64 = 19.0;

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

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
    for node in file["system"]["nodes"].as_array_mut().unwrap() {
        node["roles"] = json!(["idle"]);
    }
    let phases = file["machine"]["phases"].as_array_mut().unwrap();
    phases.retain(|phase| phase["phase"].as_str().unwrap().starts_with("loaded"));
    for phase in phases {
        phase["phase"] = phase["phase"].as_str().unwrap().replace("loaded", "isolated").into();
    }
}

/// Records a load of so many nodes each of a2a and incast, as a wild one.
fn record(folder: &Path, nodes: [u32; 2], budget: &str) -> PathBuf {
    let path = folder.join("wild.json");
    let [a2a, incast] = nodes;
    let fraction = f64::from(a2a + incast) / OTHERS;
    succeed(&format!(
        "run {SMALL} {SIZES} --budget {budget} --placements 5 --seed 11 --quiet --congestors a2a={a2a},incast={incast} \
         --load-fraction {fraction} --out {}",
        path.display()
    ));
    let mut file = read_json(&path);
    wild(&mut file);
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

#[test]
fn a_secret_mix_is_found_in_at_most_twenty_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let secret = [12, 4];
    let like = record(folder.path(), secret, "1500us");
    let line = format!("calibrate {SMALL} {SIZES} --congestors a2a,incast --quiet --like {}", like.display());
    let shown = succeed(&format!("{line} --write {} --out {}", path("found.toml"), path("found.json"))).stdout;
    let file = read_json(&folder.path().join("found.json"));
    let search = &file["calibration"];
    let runs = search["runs"].as_array().unwrap();
    assert!(runs.len() <= 20 && search["nodes"] == OTHERS, "{shown}");
    let part = |of: &Value| of["share"].as_f64().unwrap();
    let shares: Vec<f64> = search["shares"].as_array().unwrap().iter().map(part).collect();
    let wanted = secret.map(|nodes| f64::from(nodes) / OTHERS);
    for (found, wanted) in shares.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 0.1, "{secret:?}\n{shown}");
    }
    let resting = 1.0 - wanted.iter().sum::<f64>();
    assert!((part(&search["resting"]) - resting).abs() <= 0.1, "{secret:?}\n{shown}");
    let distance = |run: usize| runs[run]["distance"].as_f64().unwrap();
    let found = usize::try_from(search["found"].as_u64().unwrap()).unwrap();
    assert!(distance(found) < distance(0), "{shown}");
    assert!(shown.contains("<- found") && shown.contains("not ruled out"), "{shown}");
    // The plan is one, and has the congestors that were found.
    let planned = succeed(&format!("run {SMALL} --plan {} --dry-run", path("found.toml"))).stdout;
    assert!(planned.contains("a2a") && planned.contains("incast"), "{planned}");
    succeed(&format!("compare {} {}", like.display(), path("found.json")));
    succeed(&format!("report {} {} --out {}", like.display(), path("found.json"), path("report.html")));
    assert_eq!(succeed(&format!("show {}", path("found.json"))).stdout, shown);
}

#[test]
fn the_same_seed_searches_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let like = record(folder.path(), [8, 4], "200us");
    let search = |seed: u64| {
        let (plan, out, kept) =
            (folder.path().join("plan.toml"), folder.path().join("out.json"), folder.path().join("kept"));
        let line = format!("calibrate {SMALL} {SIZES} --congestors a2a,incast --runs 6 --seed {seed} --quiet");
        let (like, plan, out, kept) = (like.display(), plan.display(), out.display(), kept.display());
        succeed(&format!("{line} --like {like} --write {plan} --out {out} --keep {kept}"));
        read_json(&folder.path().join("out.json"))["calibration"].clone()
    };
    let one = search(3);
    assert_eq!((&one, one["runs"].as_array().unwrap().len()), (&search(3), 6));
    assert_ne!(one["runs"], search(4)["runs"]);
    let kept = read_json(&folder.path().join("kept/run-06.json"));
    let schema = serde_json::from_str(include_str!("../docs/result.schema.json")).unwrap();
    for file in [&kept, &read_json(&folder.path().join("out.json"))] {
        let problems: Vec<String> =
            jsonschema::validator_for(&schema).unwrap().iter_errors(file).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
    assert_eq!(kept["command"], "calibrate");
    assert!(folder.path().join("kept/run-01.json").exists() && !folder.path().join("kept/run-07.json").exists());
}

/// A wild run on plain local ranks, and the words of a search for it.
fn local(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let like = path("wild.json");
    succeed(&format!(
        "run -n 8 --preset quick --placements 2 --budget 200ms --canaries lat --congestors none --quiet --out {like}"
    ));
    format!(
        "calibrate -n 8 --like {like} --congestors a2a,incast --write {} --out {}",
        path("plan.toml"),
        path("out.json")
    )
}

/// Asserts that a search that was cut short left a plan that can be run and a result that says so.
fn assert_kept(folder: &Path) {
    let file = read_json(&folder.join("out.json"));
    assert_eq!((&file["interrupted"], &file["command"]), (&true.into(), &"calibrate".into()));
    let runs = file["calibration"]["runs"].as_array().unwrap().len();
    assert!((1..20).contains(&runs), "{runs} runs");
    succeed(&format!("run -n 8 --plan {} --dry-run", folder.join("plan.toml").display()));
}

#[test]
fn an_interrupted_search_keeps_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let line = local(folder.path());
    let job = Job::start(tailback(words(&line)));
    eventually("a first run", || folder.path().join("out.json").exists().then_some(()));
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("interrupted in run "), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Calibrated to"), "{}", outcome.stdout);
    assert_kept(folder.path());
}

#[test]
fn a_search_whose_rank_is_killed_keeps_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let line = local(folder.path());
    let mut job = Job::start(tailback(words(&format!("{line} --quiet"))));
    let ranks = job.ranks(8);
    eventually("a first run", || folder.path().join("out.json").exists().then_some(()));
    kill_process(ranks[5], Signal::KILL).unwrap();
    let outcome = job.end();
    assert!(outcome.refusal().contains("rank 5"), "{outcome:?}");
    assert_kept(folder.path());
}

#[test]
fn what_cannot_be_searched_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let sim = "--transport sim --machine small -n 8 --budget 100us --placements 1 --quiet";
    succeed(&format!("run {sim} --congestors none --canaries lat --out {}", path("wild.json")));
    succeed(&format!("network {sim} --out {}", path("network.json")).replace("--placements 1", ""));
    succeed(&format!("run {sim} --canaries lat --protocol eager,put --congestors a2a --out {}", path("two.json")));
    std::fs::write(path("nothing.json"), "{}").unwrap();
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
        let outcome = run(&format!("calibrate {over} --like {} --write plan.toml {more} --quiet", path(like)));
        assert!(outcome.refusal().contains(expected), "{like} {more}: {}", outcome.stderr);
    }
    let dry =
        succeed(&format!("calibrate {over} --congestors a2a --like {} --write plan.toml --dry-run", path("wild.json")));
    assert!(dry.stdout.contains("Up to 20 such runs, under load only"), "{}", dry.stdout);
    assert!(!Path::new("plan.toml").exists());
}
