//! `tailback app`: a program is run alone and under load, its figures are kept, and whatever goes wrong leaves nothing
//! behind.

use std::path::Path;
use std::time::Duration;

use crate::common::{self, Job, Outcome, eventually, is_gone, succeed, tailback, words};
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

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a result file")).expect("JSON")
}

fn blocks(test: &Value) -> impl Iterator<Item = (u64, f64)> + '_ {
    let blocks = test["blocks"].as_array().expect("blocks").iter();
    blocks.map(|block| (block["place"].as_u64().expect("a place"), block["headline"].as_f64().expect("a figure")))
}

#[test]
fn every_repetition_is_kept_in_the_state_and_order_it_ran() {
    let folder = tempfile::tempdir().unwrap();
    let (file, count) = (folder.path().join("app.json"), folder.path().join("count"));
    // Says how often it has been run, and how many hosts and processes it was given.
    let program = format!(
        "echo . >> {0}; echo run $(wc -l < {0}); test \"$TAILBACK_APP_N {{nodes}}\" = '2 1' || exit 9; sleep 0.3",
        count.display()
    );
    let figure = "--figure run.([0-9]+) --figure-unit runs";
    let outcome = app(&format!("--placements 3 {figure} --out {}", file.display()), &program);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = read(&file);
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
    assert!(outcome.stdout.contains("by the mean of an application's repetitions"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("95% interval over 3 placements"), "{}", outcome.stdout);
}

#[test]
fn its_result_is_compared_reported_checked_and_shown_like_a_canarys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (before, after) = (path("before.json"), path("after.json"));
    let figure = "--figure took.([0-9.]+) --figure-unit s --app-name sleep";
    for (file, seconds) in [(&before, "0.05"), (&after, "0.25")] {
        let fail = "--fail-if app.avg.isolated>5 --fail-if app.avg.impact>50";
        let program = format!("sleep 0.1; echo took {seconds}");
        let outcome = app(&format!("--placements 3 --canaries lat {figure} {fail} --out {file}"), &program);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("Application sleep") && outcome.stdout.contains("RR Two-sided Lat"));
    }
    let compared = succeed(&format!("compare --force {before} {after} --json")).json();
    let rows = compared["rows"].as_array().unwrap();
    let row = |state: &str| {
        let of = |row: &&Value| row["kernel"] == "app" && row["state"] == state && row["statistic"] == "avg";
        rows.iter().find(of).unwrap_or_else(|| panic!("no {state} in {compared}"))
    };
    let ratio = row("isolated")["cells"][1]["ratio"]["factor"].as_f64().unwrap();
    assert!((ratio - 5.0).abs() < 1e-6, "a program that says five times as much: {ratio}");
    assert_eq!(row("impact")["primary"], true);
    assert_eq!(common::run(&format!("compare {before} {after}")).code(), Some(2), "they are different programs");
    let page = path("report.html");
    succeed(&format!("report {before} {after} --out {page}"));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Application sleep") && !html.contains("NaN"));
    assert!(succeed(&format!("show {before} --format csv")).stdout.contains(",canary,app,"));
    let failed = app("--placements 3 --fail-if app.avg.isolated>0.001", "sleep 0.05");
    assert_eq!(failed.code(), Some(1), "{failed:?}");
    assert!(failed.stderr.contains("failed: tcp, eager: app.avg.isolated > 0.001"), "{}", failed.stderr);
}

#[test]
fn more_of_a_figure_may_be_better() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rate.json");
    let options = "--placements 1 --figure rate.([0-9]+) --figure-is more --fail-if app-rate.avg.isolated<100";
    let outcome = app(&format!("{options} --out {}", file.display()), "echo rate 100 500");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = read(&file);
    assert_eq!(result["runs"][0]["impacts"][0]["kernel"], "app-rate");
    assert_eq!(result["runs"][0]["impacts"][0]["impact"]["avg"]["factor"], 1.0);
}

/// A program that fails in its third run ends the job with code 2; the runs before are kept.
fn fails_third(program: &str, options: &str) -> (Outcome, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (file, count) = (folder.path().join("app.json"), folder.path().join("count"));
    let third = format!("echo . >> {0}; [ $(wc -l < {0}) -lt 3 ] || {{ {program}; }}; echo figure 1", count.display());
    let options = format!("--placements 3 --figure figure.([0-9]) {options} --out {}", file.display());
    let outcome = app(&options, &third);
    (outcome, read(&file))
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
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    // In a session of its own, out of reach of the process group.
    let program = format!("setsid sh -c 'echo $$ >> {}; sleep 62' & sleep 0.3", pids.display());
    let outcome = app("--placements 1 --app-name mine", &program);
    assert!(outcome.refusal().contains("the application mine ended, but"), "{outcome:?}");
    for line in std::fs::read_to_string(&pids).unwrap().lines() {
        let pid = Pid::from_raw(line.parse().unwrap()).unwrap();
        eventually("it has ended", || is_gone(pid).then_some(()));
    }
}

/// Starts a program that says its process and sleeps, and waits until it does so under load or alone.
fn sleeping(folder: &Path) -> (Job, Vec<Pid>, Pid) {
    let file = folder.join("pid");
    let mut job = start("--placements 1", &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 63", file.display()));
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
        let folder = tempfile::tempdir().unwrap();
        let (job, ranks, program) = sleeping(folder.path());
        kill_process(ranks[victim], Signal::KILL).unwrap();
        let outcome = job.end_within(Duration::from_secs(30));
        assert_eq!(outcome.code(), Some(2), "{outcome:?}");
        assert_eq!(outcome.errors().len(), 1, "{outcome:?}");
        all_gone(&ranks, program);
    }
}

#[test]
fn kill_9_of_the_launcher_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let (job, ranks, program) = sleeping(folder.path());
    job.signal(Signal::KILL);
    drop(job);
    all_gone(&ranks, program);
}

#[test]
fn kill_9_of_the_programs_own_launcher_leaves_none_of_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let program = format!("sleep 64 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", file.display());
    let mut job = start("--placements 1 --app-name mine", &program);
    let ranks = job.ranks(4);
    let told = eventually("the program runs", || std::fs::read_to_string(&file).ok());
    let pids: Vec<Pid> = told.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    kill_process(pids[0], Signal::KILL).unwrap();
    let outcome = job.end_within(Duration::from_secs(30));
    assert!(outcome.refusal().contains("the application mine was ended by signal 9"), "{outcome:?}");
    all_gone(&ranks, pids[1]);
}

#[test]
fn ctrl_c_ends_the_program_too() {
    let folder = tempfile::tempdir().unwrap();
    let (job, ranks, program) = sleeping(folder.path());
    job.signal(Signal::INT);
    let outcome = job.end_within(Duration::from_secs(30));
    assert_eq!(outcome.code(), Some(2), "{outcome:?}");
    assert!(outcome.errors().is_empty(), "the user knows why: {outcome:?}");
    all_gone(&ranks, program);
}

#[test]
fn mistakes_are_one_line() {
    for (line, expected) in [
        ("app -n 4", "<CMD>"),
        ("app -n 4 --figure 12 -- true", "has 0 groups"),
        ("app -n 4 --figure ( -- true", "is no regular expression"),
        ("app -n 4 --figure-is more -- true", "--figure"),
        ("app -n 4 --per-node 0 -- true", "invalid --per-node 0: expected 1 to 10000"),
        ("app -n 4 --limit 0s -- true", "limit 0 s is not between"),
        ("app -n 4 --fail-if lat.p99.impact>2 -- true", "the plan does not measure lat, but app"),
        ("app --transport sim --machine small -- true", "cannot run over a simulated network"),
        ("run -n 4 --canaries app", "`tailback app -- CMD` measures a program"),
        ("app -n 4 --launcher none -- /no/such/program", "/no/such/program: command not found"),
        ("lab run --figure (x)", "options of a program need --app CMD"),
    ] {
        let outcome = common::run(line);
        assert!(outcome.refusal().contains(expected), "{line}: {outcome:?}");
    }
}

#[test]
fn a_dry_run_says_how_often_the_program_is_run() {
    let shown = succeed("app -n 4 --dry-run --placements 3 --limit 90s -- lmp -in melt").stdout;
    assert!(shown.contains("15 runs (1 a placement are not measured), each at most 90 s"), "{shown}");
    assert!(shown.contains("by its wall time: lmp -in melt"), "{shown}");
}

#[test]
fn each_load_is_a_column_and_each_victim_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let (file, page) = (folder.path().join("each.json"), folder.path().join("each.html"));
    let mut line = words(FOUR);
    line.retain(|word| word != "--congestors" && word != "a2a");
    let more = format!("-n 8 --congestors each,a2a,incast --canaries lat --placements 1 --out {}", file.display());
    line.extend(words(&more));
    let words: Vec<&str> = line.iter().map(String::as_str).chain(["--", "sleep", "0.1"]).collect();
    let outcome = Job::start(tailback(words)).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let runs = read(&file)["runs"].as_array().unwrap().clone();
    let beside: Vec<&str> = runs.iter().map(|run| run["beside"].as_str().unwrap()).collect();
    assert_eq!(beside, ["a2a", "incast", "all"]);
    for (run, kinds) in runs.iter().zip([1, 1, 2]) {
        let loaded = run["tests"].as_array().unwrap().iter().find(|test| test["phase"] == "loaded").unwrap().clone();
        assert_eq!(loaded["load"].as_array().unwrap().len(), kinds, "{loaded}");
    }
    let table = outcome.stdout.split("Victims and aggressors").nth(1).expect("the table");
    let rows: Vec<&str> = table.lines().skip(1).take(3).map(str::trim).collect();
    assert!(rows[0].starts_with("victim") && rows[0].ends_with("all"), "{rows:?}");
    assert!(rows[1].starts_with("Application sleep") && rows[2].starts_with("RR Two-sided Lat"), "{rows:?}");
    succeed(&format!("report {} --out {}", file.display(), page.display()));
    assert!(std::fs::read_to_string(&page).unwrap().contains("id=\"aggressors\""));
}
