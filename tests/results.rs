//! The happy path: tables, the result file and its schema, repeatability, CSV and JSON, and who writes where.

use crate::common::{Folder, Job, assert_schema, run, succeed, tailback, words};
use serde_json::Value;

const QUICK: &str = "run --budget 150ms";

#[test]
fn a_run_without_a_launcher_prints_its_tables() {
    let outcome = succeed(&format!("{QUICK} --format table"));
    let titles = [
        "Idle, samples of all placements pooled\n",
        "Under load, samples of all placements pooled\n",
        "Congestion impact: what load adds, and times worse",
        "Impact by other statistics",
    ];
    let tables: Vec<&str> = titles
        .iter()
        .map(|title| {
            let table = outcome.stdout.split(&format!("\n{title}")).nth(1);
            table.unwrap_or_else(|| panic!("{title}: {}", outcome.stdout)).split("\n\n").next().unwrap()
        })
        .collect();
    for row in ["lat 8 B", "bw-sync 128 KiB", "allreduce 8 B"] {
        for table in &tables {
            assert_eq!(table.matches(&format!("\n  {row}")).count(), 1, "{row} has a row in each table: {table}");
        }
    }
    assert!(tables[2].contains("95% interval over 5 placements"), "{}", tables[2]);
    assert!(outcome.stdout.contains("10 ranks on 10 nodes"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("no launcher: starting 10 ranks"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\ntailback: seed "), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("no launcher"), "notes are not results: {}", outcome.stdout);
}

#[test]
fn a_run_ends_with_a_verdict_in_a_dozen_lines_and_keeps_its_result() {
    let folder = Folder::new();
    let line = "run --transport sim --machine small -n 16 --budget 400us --placements 3 --congestors incast";
    let start = |more: &str| {
        let mut command = tailback(words(&format!("{line} {more}")));
        command.env_remove("TAILBACK_NO_OUT").current_dir(folder.path(""));
        Job::start(command).end()
    };
    let outcome = start("");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines.len() <= 12 && lines.iter().all(|line| line.chars().count() <= 80), "{}", outcome.stdout);
    assert!(["CONGESTION: ", "CANNOT SAY: "].iter().any(|word| lines[0].contains(word)), "{}", outcome.stdout);
    for row in
        ["lat 8 B", "bw-sync 128 KiB", "allreduce 8 B", "16 nodes (4 measure, 12 load) over simulated; 3 placements"]
    {
        assert!(outcome.stdout.contains(row), "{row}: {}", outcome.stdout);
    }
    let name = outcome.stderr.split("wrote ").nth(1).and_then(|rest| rest.split(';').next()).expect("where it is");
    assert!(name.starts_with("tailback-run-20") && name.ends_with(".json"), "{name}");
    assert_eq!(folder.json(name)["command"], "run");
    assert!(outcome.stderr.contains(&format!("next: tailback report {name}")), "{}", outcome.stderr);

    let labelled = start("--label 'x/y' -q");
    assert_eq!((labelled.code(), labelled.stderr.as_str(), folder.files()), (Some(0), "", 2), "{labelled:?}");
    for more in ["--no-out", "--format json", "--dry-run"] {
        assert_eq!((start(more).code(), folder.files()), (Some(0), 2), "{more} keeps none");
    }
    let coloured = start("--no-out --color always").stdout;
    assert!(coloured.starts_with('\u{1b}') && !outcome.stdout.contains('\u{1b}'), "{coloured}");
    // A folder that nobody may write to is no reason not to measure.
    let mut command = tailback(words(line));
    command.env_remove("TAILBACK_NO_OUT").current_dir("/proc");
    let outcome = Job::start(command).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("the result is not kept: "), "{}", outcome.stderr);
}

#[test]
fn the_schema_is_the_published_one() {
    assert_eq!(succeed("schema").stdout, include_str!("../docs/result.schema.json"));
}

#[test]
fn result_files_fit_the_schema() {
    let folder = Folder::new();
    for line in [
        "run --budget 100ms --congestors-alone",
        "run --budget 100ms -n 8 --ranks-per-node 2 --split slice",
        "network --budget 100ms -n 3",
        "congest --duration 200ms -n 4 --congestors bcast",
    ] {
        succeed(&format!("{line} --out {}", folder.path("result.json")));
        assert_schema(line, &folder.json("result.json"));
        assert_eq!(folder.files(), 1, "nothing else is left");
    }
    let mut result = folder.json("result.json");
    result["command"] = 7.into();
    std::panic::catch_unwind(|| assert_schema("no result", &result)).expect_err("the schema refuses it");
}

#[test]
fn the_printed_seed_repeats_the_placement() {
    let line = "run --budget 100ms --canaries lat -n 12 --format json";
    let first = succeed(line);
    let seed =
        first.stderr.lines().find_map(|line| line.strip_prefix("tailback: seed ")).expect("a printed seed").to_owned();
    let second = succeed(&format!("{line} --seed {seed}"));
    let (first, second) = (first.json(), second.json());
    assert_eq!(first["seed"].to_string(), seed);
    assert_eq!(first["system"]["nodes"], second["system"]["nodes"]);
    assert_eq!(first["plan"], second["plan"]);

    let shown = |seed: &str| succeed(&format!("run -n 12 --dry-run --seed {seed}")).stdout;
    assert_eq!(shown(&seed), shown(&seed));
    let canaries: Vec<String> = nodes_with(&second, "canary");
    let line = format!("  canary     {:>3} nodes: {}\n", canaries.len(), canaries.join(" "));
    assert!(shown(&seed).contains(&line), "{line}: {}", shown(&seed));
    let differs = (0..8).any(|other| {
        let placement = |text: String| text.split("Placement").nth(1).map(str::to_owned);
        placement(shown(&other.to_string())) != placement(shown(&seed))
    });
    assert!(differs, "other seeds give other placements");
}

#[test]
fn a_dry_run_of_congestion_alone_names_no_budget() {
    let shown = succeed("congest -n 4 --dry-run --duration 3s").stdout;
    assert!(!shown.contains("per test") && shown.contains("Expected duration: at most 5 s"), "{shown}");
}

fn nodes_with(result: &Value, role: &str) -> Vec<String> {
    let nodes = result["system"]["nodes"].as_array().unwrap();
    let named = nodes.iter().filter(|node| node["roles"].as_array().unwrap().contains(&role.into()));
    named.map(|node| node["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn csv_has_as_many_fields_in_every_line() {
    let folder = Folder::new();
    let line = "run --budget 100ms --congestors-alone --format csv --csv";
    let outcome = succeed(&format!("{line} {}", folder.path("result.csv")));
    assert_eq!(outcome.stdout, folder.text("result.csv"), "one form, wherever it goes");
    let lines: Vec<Vec<&str>> = outcome.stdout.lines().map(|line| line.split(',').collect()).collect();
    let header = &lines[0];
    assert!(lines.iter().all(|line| line.len() == header.len()), "{}", outcome.stdout);
    let column = |name: &str| header.iter().position(|field| *field == name).unwrap();
    // 3 canaries twice, 4 congestors alone and beside each of 3 canaries.
    assert_eq!(lines.len() - 1, 6 + 4 + 12, "{}", outcome.stdout);
    for line in &lines[1..] {
        let text = |name: &str| line[column(name)];
        let number = |name: &str| text(name).parse::<f64>().unwrap_or_else(|e| panic!("{name}: {e}: {line:?}"));
        let loaded = text("phase") == "loaded";
        if text("role") == "canary" {
            assert!(number("avg") > 0.0 && number("samples") >= 1.0 && number("wall_s") > 0.0, "{line:?}");
            assert_eq!(text("impact_avg").is_empty(), !loaded, "{line:?}");
        } else {
            assert!(number("delivered_bytes") >= 0.0, "{line:?}");
            assert_eq!(text("while").is_empty(), !loaded, "{line:?}");
        }
    }
}

#[test]
fn json_on_stdout_is_the_result_file() {
    let folder = Folder::new();
    let outcome = succeed(&format!("network --budget 100ms -n 4 --format json --out {}", folder.path("result.json")));
    assert_eq!(outcome.json(), folder.json("result.json"));
    assert_eq!(outcome.json()["runs"][0]["tests"].as_array().unwrap().len(), 8, "all canaries");
}

#[test]
fn the_load_is_measured_while_the_canary_is() {
    let result = succeed("run --budget 1s --placements 1 --blocks 1 --canaries lat --format json").json();
    let tests = result["runs"][0]["tests"].as_array().unwrap();
    assert_eq!(tests.iter().map(|test| test["phase"].as_str().unwrap()).collect::<Vec<_>>(), ["isolated", "loaded"]);
    let load = tests[1]["load"].as_array().unwrap();
    let kinds: Vec<&str> = load.iter().map(|load| load["kernel"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["a2a", "incast", "put-incast", "get-bcast"]);
    for kind in load {
        assert!(kind["delivered_bytes"].as_u64().unwrap() > 0, "{kind}");
        assert_eq!(kind["ranks"], 2, "{kind}");
    }
}

#[test]
fn a_plan_file_is_followed_by_every_command() {
    let folder = Folder::new();
    let kernels = |line: &str| -> Vec<(String, u64)> {
        let plan = folder.path("plan.toml");
        let result = succeed(&format!("{line} --plan {plan} -n 4 --format json")).json();
        let tests = result["runs"][0]["tests"].as_array().unwrap();
        tests.iter().map(|t| (t["kernel"].as_str().unwrap().to_owned(), t["bytes"].as_u64().unwrap())).collect()
    };
    folder.write("plan.toml", "budget = '100ms'\ncanaries = ['put-bw', 'lat']\n[set]\n'put-bw.bytes' = '4KiB'\n");
    let chosen = [("put-bw".to_owned(), 4096), ("lat".to_owned(), 8)];
    assert_eq!(kernels("network"), chosen);
    assert_eq!(kernels("run"), [chosen.clone(), chosen.clone()].concat());
    assert_eq!(kernels("network --canaries put-bw"), chosen[..1], "the command line has the last word");
    folder.write("plan.toml", "budget = '100ms'\n[set]\n'put-bw.bytes' = '4KiB'\n");
    assert_eq!(kernels("network").len(), 8, "all canaries when the file names none");
}

#[test]
fn quiet_leaves_stderr_empty() {
    let outcome = succeed("run --budget 100ms --canaries lat --quiet");
    assert_eq!(outcome.stderr, "");
    let outcome = run("run --quiet --canaries latency");
    assert!(outcome.refusal().contains("unknown canary 'latency'"), "errors are no notes: {outcome:?}");
}

#[test]
fn congest_runs_for_its_time() {
    let outcome = succeed("congest --duration 500ms -n 6");
    assert!(outcome.stdout.starts_with("The congestors delivered "), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("left out"), "six nodes hold three kinds, which is said: {}", outcome.stderr);
}

#[test]
fn an_open_loop_keeps_a_schedule_and_says_when_it_cannot() {
    // On virtual time: a busy machine has no time for a schedule.
    let lab = "--transport sim --machine lab --quiet";
    let result =
        succeed(&format!("network {lab} -n 4 --canaries lat,bw --pace 5ms --budget 400ms --format json")).json();
    assert_eq!(result["plan"]["pace_s"], 0.005);
    let tests = result["runs"][0]["tests"].as_array().unwrap();
    let kept = &tests[0]["schedule"];
    // 80 of them, give or take 9, that are 5 ms apart in the mean, of four ranks; an iteration takes a fiftieth of that.
    let [iterations, late, lost] = ["iterations", "late", "lost"].map(|of| kept[of].as_u64().unwrap());
    assert!((4 * 50..=4 * 110).contains(&iterations) && 10 * late < iterations && 50 * lost <= iterations, "{kept}");
    assert_eq!(tests[0]["summary"]["samples"], iterations - lost);
    // Equal times already: the median by time is the median of the samples.
    let [by_time, by_message] =
        [&tests[0]["summary"]["times"], &tests[0]["summary"]].map(|of| of["p50"].as_f64().unwrap());
    assert!((by_time / by_message - 1.0).abs() < 1e-3, "{by_time} {by_message}");
    assert!(tests[1]["schedule"].is_null(), "a bandwidth has no schedule");

    // Two messages each way take longer than ten microseconds, so most iterations begin late.
    let shown = succeed(&format!(
        "run {lab} -n 6 --canaries lat --congestors a2a --pace 10us --placements 3 --budget 30ms --format table"
    ))
    .stdout;
    assert_eq!(shown.matches("overloaded: needs --pace ").count(), 2, "isolated and loaded: {shown}");
    assert!(shown.contains("Open loop: iterations at random moments, 0.01 ms apart in the mean"), "{shown}");

    // Left open, the distance follows from what an iteration takes, so that few are late, loaded or not.
    let run = "run --canaries lat,allreduce,bw-sync --congestors a2a -n 8 --placements 3 --budget 300ms --format json";
    let result = succeed(&format!("{run} {lab} --loop open")).json();
    for test in result["runs"][0]["tests"].as_array().unwrap() {
        let Some(kept) = test["schedule"].as_object() else { continue };
        let [iterations, late, lost] = ["iterations", "late", "lost"].map(|of| kept[of].as_u64().unwrap());
        assert!(iterations >= 100 && 4 * late < iterations && 50 * lost <= iterations, "{}: {kept:?}", test["title"]);
        assert!(test["covered"].is_null(), "what is between iterations is meant to be");
    }
    // And one after the other there is next to nothing between them.
    let result = succeed(&format!("{run} {lab} --loop closed")).json();
    for test in result["runs"][0]["tests"].as_array().unwrap() {
        let covered = test["covered"].as_f64().unwrap();
        assert!((0.9..=1.0).contains(&covered), "{} {}: {covered}", test["phase"], test["title"]);
    }
}

#[test]
fn a_result_on_stdout_is_alone_there() {
    let outcome = succeed("network -n 2 --ranks-per-node 1 --canaries lat --budget 50ms --quiet --out -");
    assert_eq!(outcome.json()["command"], "network", "{}", outcome.stdout);
    let study = succeed("beff -n 2 --rings 1 --repetitions 1 --bandwidth-bytes 1000 --quiet --out -");
    assert_eq!(study.json()["command"], "beff", "{}", study.stdout);
}

#[test]
fn a_network_test_can_fail_a_check() {
    let line = "network --transport sim --machine small -n 2 --canaries lat --budget 200us --quiet --fail-if";
    let with = |threshold: &str| {
        let mut arguments = words(line);
        arguments.push(threshold.to_owned());
        Job::start(tailback(arguments)).end()
    };
    let failed = with("lat.avg.isolated > 0.000001");
    assert_eq!(failed.code(), Some(1), "{failed:?}");
    assert!(failed.stderr.contains("FAIL:"), "{failed:?}");
    let passed = with("lat.avg.isolated > 1e9");
    assert_eq!(passed.code(), Some(0));
    assert!(passed.stderr.contains("tailback: PASS: simulated, eager: lat.avg.idle <= "), "{}", passed.stderr);
    let refused = with("lat.p99.impact > 2");
    assert!(refused.refusal().ends_with("the network test has no load: only idle figures"), "{refused:?}");
}
