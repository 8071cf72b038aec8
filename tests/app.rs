//! `tailback app`: a program is run alone and under load, its figures are kept, and whatever goes wrong leaves nothing
//! behind.

use crate::common::{Folder, Job, Outcome, eventually, is_gone, refused, run, succeed, tailback, words};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Two nodes that measure and two that load, on plain ranks.
const FOUR: &str =
    "app -n 4 --canary-fraction 50% --congestors a2a --preset quick --launcher none --warm-up 0 --budget 300ms --quiet";

fn start(options: &str, program: &str) -> Job {
    let line: Vec<String> = words(&format!("{FOUR} {options}"));
    Job::start(tailback(line.iter().map(String::as_str).chain(["--", "sh", "-c", program])))
}

fn app(options: &str, program: &str) -> Outcome {
    start(options, program).end()
}

fn blocks(test: &Value) -> impl Iterator<Item = (u64, f64)> + '_ {
    let blocks = test["blocks"].as_array().expect("blocks").iter();
    blocks.map(|block| (block["place"].as_u64().expect("a place"), block["headline"].as_f64().expect("a figure")))
}

#[test]
fn every_repetition_is_kept_in_the_state_and_order_it_ran() {
    let folder = Folder::new();
    // Says how often it has been run, and how many hosts and processes it was given.
    let program = format!(
        "echo . >> {0}; echo run $(wc -l < {0}); test \"$TAILBACK_APP_N {{nodes}}\" = '2 1' || exit 9; sleep 0.3",
        folder.path("count")
    );
    let figure = "--figure run.([0-9]+) --figure-unit runs";
    let outcome = app(&format!("--placements 3 {figure} --out {}", folder.path("app.json")), &program);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = folder.json("app.json");
    assert_eq!((&result["command"], &result["interrupted"]), (&"app".into(), &false.into()));
    let placements = result["runs"][0]["placements"].as_array().unwrap();
    assert_eq!(placements.len(), 3);
    for (at, placement) in placements.iter().enumerate() {
        let tests = placement["tests"].as_array().unwrap();
        assert_eq!(tests.len(), 2, "alone and under load");
        let mut all: Vec<(u64, f64)> = tests.iter().flat_map(blocks).collect();
        all.sort_by_key(|(place, _)| *place);
        let figures: Vec<f64> = all.into_iter().map(|(_, figure)| figure).collect();
        let first = (4 * at) as f64;
        assert_eq!(figures, [first + 1.0, first + 2.0, first + 3.0, first + 4.0], "in the order they ran");
        let loaded = tests.iter().find(|test| test["phase"] == "loaded").unwrap();
        assert!(loaded["load"][0]["delivered_bytes"].as_u64().unwrap() > 0, "{loaded}");
        let isolated = tests.iter().find(|test| test["phase"] == "isolated").unwrap();
        assert!(isolated["load"].is_null(), "{isolated}");
    }
    let test = &result["runs"][0]["tests"][0];
    assert_eq!(
        (&test["kernel"], &test["unit"], &test["summary"]["samples"]),
        (&"app".into(), &"runs".into(), &6.into())
    );
    assert!(outcome.stdout.contains("Means over repetitions") && outcome.stdout.contains("3 placements"));
}

#[test]
fn its_result_is_compared_reported_checked_and_shown_like_a_canarys() {
    let folder = Folder::new();
    let (before, after) = (folder.path("before.json"), folder.path("after.json"));
    let figure = "--figure took.([0-9.]+) --figure-unit s --app-name sleep";
    for (file, seconds) in [(&before, "0.05"), (&after, "0.25")] {
        let fail = "--no-counters --fail-if app.avg.isolated>5 --fail-if app.avg.impact>50";
        let program = format!("sleep 0.1; echo took {seconds}");
        let outcome = app(&format!("--placements 3 --canaries lat {figure} {fail} --out {file}"), &program);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("Application sleep") && outcome.stdout.contains("lat 8 B"), "{outcome:?}");
    }
    let compared = succeed(&format!("compare --force {before} {after} --json")).json();
    let rows = compared["rows"].as_array().unwrap();
    let row = |state: &str| {
        let of = |row: &&Value| row["kernel"] == "app" && row["state"] == state && row["statistic"] == "avg";
        rows.iter().find(of).unwrap_or_else(|| panic!("no {state} in {compared}"))
    };
    let ratio = row("isolated")["cells"][1]["ratio"]["factor"].as_f64().unwrap();
    assert!((ratio - 5.0).abs() < 1e-6, "a program that says five times as much: {ratio}");
    assert_eq!((&row("added")["primary"], &row("added")["unit"]), (&true.into(), &"s".into()));
    refused(&[(&format!("compare {before} {after}"), "not comparable")]);
    succeed(&format!("report {before} {after} --out {}", folder.path("report.html")));
    let html = folder.text("report.html");
    assert!(html.contains("Application sleep") && !html.contains("NaN"));
    assert!(succeed(&format!("show {before} --format csv")).stdout.contains(",canary,app,"));
    let failed = app("--placements 3 --no-counters --fail-if app.avg.isolated>0.001", "sleep 0.05");
    assert_eq!(failed.code(), Some(1), "{failed:?}");
    assert!(failed.stderr.contains("FAIL: tcp, eager: app.avg.idle <= 0.001 is required"), "{}", failed.stderr);
}

#[test]
fn more_of_a_figure_may_be_better() {
    let folder = Folder::new();
    let options =
        "--placements 1 --no-counters --figure rate.([0-9]+) --figure-is more --fail-if app-rate.avg.isolated<100";
    let outcome = app(&format!("{options} --out {}", folder.path("rate.json")), "echo rate 100 500");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = folder.json("rate.json");
    assert_eq!(result["runs"][0]["impacts"][0]["kernel"], "app-rate");
    assert_eq!(result["runs"][0]["impacts"][0]["impact"]["avg"]["factor"], 1.0);
}

/// A program that fails in its third run ends the job with code 2; the runs before are kept.
fn fails_third(program: &str, options: &str) -> (Outcome, Value) {
    let folder = Folder::new();
    let count = folder.path("count");
    let third = format!("echo . >> {count}; [ $(wc -l < {count}) -lt 3 ] || {{ {program}; }}; echo figure 1");
    let options = format!("--placements 3 --figure figure.([0-9]) {options} --out {}", folder.path("app.json"));
    let outcome = app(&options, &third);
    (outcome, folder.json("app.json"))
}

#[test]
fn a_program_that_fails_ends_the_job_and_loses_nothing() {
    for (program, options, expected, shown) in [
        ("echo no such input >&2; exit 3", "", "the application sh ended with exit code 3", "  | no such input"),
        ("kill -9 $$", "", "the application sh was ended by signal 9", ""),
        ("echo nothing; exit 0", "", "the application sh printed nothing that matches 'figure.([0-9])'", "  | nothing"),
        ("echo stuck; sleep 61", "--limit 1s", "the application sh did not end within 1 s (--limit)", "  | stuck"),
    ] {
        let (outcome, result) = fails_third(program, &format!("{options} --app-name sh"));
        let line = outcome.refusal();
        assert!(line.contains(expected) && line.contains("placement 1 of 3"), "{outcome:?}");
        assert!(outcome.stderr.contains(shown), "{outcome:?}");
        assert_eq!(result["interrupted"], true);
        let tests = result["runs"][0]["placements"][0]["tests"].as_array().unwrap();
        assert_eq!(tests.iter().flat_map(blocks).count(), 2, "two repetitions were complete: {tests:?}");
        let notes = result["notes"].to_string();
        assert!(notes.contains(expected), "{notes}");
    }
}

#[test]
fn processes_that_outlive_a_program_are_ended_and_named() {
    let folder = Folder::new();
    // In a session of its own, out of reach of the process group.
    let pids = folder.path("pids");
    let program = format!("setsid sh -c 'echo $$ >> {pids}; sleep 62' & until [ -s {pids} ]; do sleep 0.05; done");
    let outcome = app("--placements 1 --app-name mine", &program);
    assert!(outcome.refusal().contains("the application mine ended, but"), "{outcome:?}");
    for line in folder.text("pids").lines() {
        let pid = Pid::from_raw(line.parse().unwrap()).unwrap();
        eventually("it has ended", || is_gone(pid).then_some(()));
    }
}

/// Starts a program that says its process and sleeps, and waits until it does so under load or alone.
fn sleeping() -> (Job, Vec<Pid>, Pid) {
    let folder = Folder::new();
    let file = folder.path("pid");
    let mut job = start("--placements 1", &format!("echo $$ > {file}.new; mv {file}.new {file}; exec sleep 63"));
    let ranks = job.ranks(4);
    let pid = eventually("the program runs", || std::fs::read_to_string(&file).ok()?.trim().parse().ok());
    (job, ranks, Pid::from_raw(pid).unwrap())
}

fn all_gone(ranks: &[Pid], program: Pid) {
    eventually("nothing is left", || ranks.iter().chain([&program]).all(|pid| is_gone(*pid)).then_some(()));
}

#[test]
fn kill_9_of_any_rank_leaves_nothing_running() {
    for victim in 0..4 {
        let (job, ranks, program) = sleeping();
        kill_process(ranks[victim], Signal::KILL).unwrap();
        let outcome = job.end();
        assert_eq!(outcome.code(), Some(2), "{outcome:?}");
        assert_eq!(outcome.errors().len(), 1, "{outcome:?}");
        all_gone(&ranks, program);
    }
}

#[test]
fn kill_9_of_the_launcher_leaves_nothing_running() {
    let (job, ranks, program) = sleeping();
    job.signal(Signal::KILL);
    drop(job);
    all_gone(&ranks, program);
}

#[test]
fn kill_9_of_the_programs_own_launcher_leaves_none_of_its_processes() {
    let folder = Folder::new();
    let file = folder.path("pids");
    let program = format!("sleep 64 & echo $$ $! > {file}.new; mv {file}.new {file}; wait");
    let mut job = start("--placements 1 --app-name mine", &program);
    let ranks = job.ranks(4);
    let told = eventually("the program runs", || std::fs::read_to_string(&file).ok());
    let pids: Vec<Pid> = told.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    kill_process(pids[0], Signal::KILL).unwrap();
    let outcome = job.end();
    assert!(outcome.refusal().contains("the application mine was ended by signal 9"), "{outcome:?}");
    all_gone(&ranks, pids[1]);
}

#[test]
fn ctrl_c_ends_the_program_too() {
    let (job, ranks, program) = sleeping();
    job.signal(Signal::INT);
    let outcome = job.end();
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.errors().is_empty(), "the user knows why: {outcome:?}");
    all_gone(&ranks, program);
}

#[test]
fn mistakes_are_one_line() {
    refused(&[
        ("app -n 4", "<CMD>"),
        ("app -n 4 --figure 12 -- true", "has 0 groups"),
        ("app -n 4 --figure ( -- true", "invalid regular expression '('"),
        ("app -n 4 --figure-is more -- true", "--figure"),
        ("app -n 4 --per-node 0 -- true", "invalid --per-node 0: expected 1 to 10000"),
        ("app -n 4 --limit 0s -- true", "invalid limit 0 s: expected 100 ms"),
        ("app -n 4 --fail-if lat.p99.impact>2 -- true", "the plan does not measure lat, but app"),
        ("app --transport sim --machine small -- true", "cannot run over a simulated network"),
        ("run -n 4 --canaries app", "`tailback app -- CMD` measures a program"),
        ("lab run --figure (x)", "options of a program need --app CMD"),
    ]);
    // Found out by the job itself.
    let outcome = run("app -n 4 --launcher none -- /no/such/program");
    assert!(outcome.refusal().contains("/no/such/program: command not found"), "{outcome:?}");
}

#[test]
fn a_dry_run_says_how_often_the_program_is_run() {
    let shown = succeed("app -n 4 --dry-run --placements 3 --limit 90s -- lmp -in melt").stdout;
    assert!(shown.contains("15 runs (1 a placement are not measured), each at most 90 s"), "{shown}");
    assert!(shown.contains("by its wall time: lmp -in melt"), "{shown}");
}

#[test]
fn each_load_is_a_column_and_each_victim_a_row() {
    let folder = Folder::new();
    let (file, page) = (folder.path("each.json"), folder.path("each.html"));
    let mut line = words(FOUR);
    line.retain(|word| word != "--congestors" && word != "a2a");
    let more = format!("-n 8 --congestors each,a2a,incast --canaries lat --placements 1 --format table --out {file}");
    line.extend(words(&more));
    let words: Vec<&str> = line.iter().map(String::as_str).chain(["--", "sleep", "0.1"]).collect();
    let outcome = Job::start(tailback(words)).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let runs = folder.json("each.json")["runs"].as_array().unwrap().clone();
    let beside: Vec<&str> = runs.iter().map(|run| run["beside"].as_str().unwrap()).collect();
    assert_eq!(beside, ["a2a", "incast", "all"]);
    for (run, kinds) in runs.iter().zip([1, 1, 2]) {
        let loaded = run["tests"].as_array().unwrap().iter().find(|test| test["phase"] == "loaded").unwrap().clone();
        assert_eq!(loaded["load"].as_array().unwrap().len(), kinds, "{loaded}");
    }
    let table = outcome.stdout.split("Victims and aggressors").nth(1).expect("the table");
    let rows: Vec<&str> = table.lines().skip(1).take(3).map(str::trim).collect();
    assert!(rows[0].starts_with("victim") && rows[0].ends_with("all"), "{rows:?}");
    assert!(rows[1].starts_with("Application sleep") && rows[2].starts_with("lat 8 B"), "{rows:?}");
    succeed(&format!("report {file} --out {page}"));
    assert!(folder.text("each.html").contains("id=\"aggressors\""));
}
