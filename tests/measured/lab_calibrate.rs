//! A load that was met in the emulated cluster is made again, in one that the search makes like it. How near shares come to what
//! they were is shown over the simulator (`tests/calibrate.rs`), where nothing else takes processor time.

use std::process::{Command, Output};

use crate::lab::bench::Bench;

fn run(bench: &Bench, line: &str) -> Output {
    let mut command = Command::new(&bench.program);
    command.args(line.split_whitespace()).env("TAILBACK_LAB_DIR", &bench.dir);
    let output = command.output().expect("starts");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_load_is_told_from_another_kind_in_a_cluster_like_the_one_it_was_met_in() {
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    let bench = Bench::new("calibrate", false);
    let folder = bench.dir.parent().expect("is in a directory");
    let path = |name: &str| folder.join(name).display().to_string();
    let (wild, plan, found) = (path("wild.json"), path("plan.toml"), path("found.json"));
    let canaries = "--canaries lat,bw-sync --budget 400ms --placements 2 --quiet";
    run(&bench, &format!("lab run --hosts 8 --no-control --congestors a2a {canaries} --out {wild}"));
    run(
        &bench,
        &format!("calibrate --like {wild} --congestors incast,a2a --runs 5 --write {plan} --out {found} --quiet"),
    );

    let text = std::fs::read_to_string(&found).expect("is there");
    let result: serde_json::Value = serde_json::from_str(&text).expect("is a result");
    assert_eq!(result["lab"]["hosts"].as_array().map(Vec::len), Some(8), "the recorded one's shape");
    let search = &result["calibration"];
    assert_eq!(search["runs"].as_array().map(Vec::len), Some(5));
    let share = |kernel: &str| {
        let shares = search["shares"].as_array().expect("a list");
        let of = shares.iter().find(|share| share["kernel"] == kernel);
        of.and_then(|of| of["share"].as_f64()).unwrap_or_else(|| panic!("no {kernel} in {search}"))
    };
    assert!(share("a2a") > share("incast"), "{search}");
    let plan = format!("lab run --hosts 8 --plan {plan} --dry-run");
    assert!(String::from_utf8_lossy(&run(&bench, &plan).stdout).contains("a2a"), "it is a plan");
    bench.assert_nothing_left();
}
