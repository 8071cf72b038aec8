//! Counters of the nodes beside every phase: a command's, recorded devices', and what becomes of a command that goes wrong.

use std::fs;
use std::path::Path;

use crate::common::{Folder, Job, Outcome, refused, succeed, tailback, words};
use serde_json::Value;

/// Runs a quick load test of ten ranks on this host with these counters.
fn run(command: Option<&str>, environment: &[(&str, &Path)]) -> Outcome {
    let line = "run --budget 100ms --placements 2 --canaries lat --congestors incast --format json";
    let mut start = tailback(words(line));
    command.map(|command| start.args(["--counters-cmd", command]));
    start.envs(environment.iter().copied());
    Job::start(start).end()
}

/// What devices of a kind counted in a phase: one entry for each of them.
fn counted<'a>(result: &'a Value, phase: &str, source: &str) -> Vec<&'a Value> {
    let phases = result["counters"]["phases"].as_array().expect("phases");
    let phase = phases.iter().find(|of| of["phase"].as_str().unwrap().starts_with(phase)).expect("the phase");
    phase["devices"].as_array().unwrap().iter().filter(|of| of["source"] == source).collect()
}

#[test]
fn a_command_is_read_around_every_phase_on_the_first_node() {
    let outcome = run(Some("echo nanoseconds $(date +%s%N); echo never: 7"), &[]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = outcome.json();
    for phase in ["isolated", "loaded"] {
        let of = counted(&result, phase, "command");
        assert_eq!(of.len(), 1, "one reader: {of:?}");
        let seconds = of[0]["seconds"].as_f64().unwrap();
        let clock = of[0]["counters"]["nanoseconds"].as_f64().unwrap() * 1e-9;
        assert!(seconds > 0.0 && clock > 0.0, "{of:?}");
        // Reading takes its time, on a busy machine more; a counter that was not taken around the phase is years off.
        assert!((clock - seconds).abs() < 0.5 * seconds + 5.0, "{of:?}");
        assert_eq!(of[0]["counters"].get("never"), None, "it did not move: {of:?}");
    }
    assert!(!counted(&result, "loaded", "net").is_empty(), "the interface is read beside it");
}

#[test]
fn what_a_reader_of_tables_sees() {
    let folder = Folder::new();
    let file = folder.path("result.json");
    let mut start = tailback(words(&format!("run --budget 100ms --canaries lat --format table --out {file}")));
    start.args(["--counters-cmd", "echo switch drops $(date +%s%N)", "--counters-cmd-on", "every"]);
    let outcome = Job::start(start).end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(
        outcome.stdout.contains("Counters of the nodes that tell of congestion, those that rose most first\n"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stdout.contains("command switch drops"), "{}", outcome.stdout);
    succeed(&format!("report {file} --out {}", folder.path("page.html")));
    let page = folder.text("page.html");
    let table = page.split("<table>").find(|table| table.contains(">ratio</th>") && table.contains("most on"));
    assert!(table.expect("a table").contains(">command switch drops</th>"), "the report has the ratios");
    let again = folder.write("again.json", folder.text("result.json"));
    let compared = succeed(&format!("compare {file} {again} -v")).stdout;
    let table = compared.split("Counters that tell of congestion, a second over all devices").nth(1).expect("a table");
    let row = table.lines().find(|line| line.contains("command switch drops")).expect("the command's counter");
    assert!(row.trim_end().ends_with("1.00x"), "as much as itself: {row}");
}

#[test]
fn a_command_that_cannot_work_is_refused_before_anything_is_measured() {
    for (command, why) in [
        ("echo no switch here >&2; exit 3", "it ended with exit code 3: no switch here"),
        ("echo hello", "it prints \"hello\", which is no name and value"),
        ("true", "it prints no counter"),
    ] {
        let outcome = run(Some(command), &[]);
        let said = outcome.refusal();
        assert!(said.contains("--counters-cmd on ") && said.contains(why), "{said}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn a_command_that_fails_later_is_a_note_and_the_measurement_stands() {
    let folder = Folder::new();
    let file = folder.path("times");
    let command =
        format!("echo x >> {file}; n=$(wc -l < {file}); [ $n -le 3 ] || {{ echo gone >&2; exit 1; }}; echo a $n");
    let outcome = run(Some(&command), &[]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = outcome.json();
    let told: Vec<&str> = result["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let told: Vec<&&str> = told.iter().filter(|note| note.contains("--counters-cmd")).collect();
    let [note] = &told[..] else { panic!("one line: {told:?}") };
    assert!(note.contains("exit code 1: gone; it is not run there again"), "{note}");
    assert_eq!(folder.text("times").lines().count(), 4, "it was not run again");
    assert!(!counted(&result, "loaded", "net").is_empty(), "the other counters stay");
    assert_eq!(result["runs"][0]["impacts"].as_array().unwrap().len(), 1, "the measurement stands");
}

#[test]
fn recorded_devices_stand_in_for_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let statistics = folder.path().join("sys/class/net/lo/statistics");
    fs::create_dir_all(&statistics).unwrap();
    fs::write(statistics.join("rx_dropped"), "41\n").unwrap();
    fs::write(statistics.join("rx_bytes"), "5\n").unwrap();
    let (sys, proc) = (folder.path().join("sys"), folder.path().join("proc"));
    let outcome = run(None, &[("TAILBACK_SYS", &sys), ("TAILBACK_PROC", &proc)]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let result = outcome.json();
    let of = counted(&result, "loaded", "net");
    assert_eq!((of.len(), of[0]["device"].as_str()), (1, Some("lo")));
    assert_eq!(of[0]["counters"], serde_json::json!({ "rx_dropped": 0.0 }), "what tells is kept, whatever it did");
    assert!(counted(&result, "loaded", "tcp").is_empty());
}

#[test]
fn counters_can_be_left_alone() {
    let result = succeed("network --budget 50ms -n 3 --canaries lat --no-counters --format json").json();
    assert_eq!(result.get("counters"), None);
    refused(&[
        ("run --no-counters --counters-cmd true", "cannot be used with"),
        ("run --transport sim --machine small --counters-cmd true", "a simulated one counts by itself"),
    ]);
}
