//! From result files to answers: compare, thresholds, reports, imports, and files that are none.

use std::path::Path;

use crate::common::{run, succeed};

fn measure(folder: &Path, name: &str, more: &str) -> String {
    let file = folder.join(name).display().to_string();
    succeed(&format!("run --budget 100ms --seed 7 {more} --out {file}"));
    file
}

#[test]
fn results_are_compared_checked_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (measure(folder.path(), "a.json", ""), measure(folder.path(), "b.json", ""));
    let compared = succeed(&format!("compare {a} {b}")).stdout;
    for text in ["Isolated\n", "Under load\n", "Congestion impact", "ratio", "Student's t", "(primary)"] {
        assert!(compared.contains(text), "{text}: {compared}");
    }
    let junit = folder.path().join("checks.xml");
    let line = format!(
        "compare {a} {b} --fail-if lat.avg.loaded>0 --fail-if lat.avg.loaded.ratio<0 --junit {}",
        junit.display()
    );
    let checked = run(&line);
    assert_eq!(checked.code(), Some(1), "{checked:?}");
    assert_eq!(checked.stderr.matches("tailback: failed: ").count(), 2, "{}", checked.stderr);
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("<testsuites tests=\"3\" failures=\"2\" skipped=\"0\">"), "{junit}");

    let (page, plots) = (folder.path().join("report.html"), folder.path().join("plots"));
    succeed(&format!("report {a} {b} --published --out {} --plots {}", page.display(), plots.display()));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    let written: Vec<String> =
        std::fs::read_dir(plots).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(written.contains(&"impact-lat.svg".to_owned()), "{written:?}");
    assert_eq!(written.len(), html.matches("<svg").count(), "{written:?}");
}

#[test]
fn unlike_results_are_refused_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (measure(folder.path(), "a.json", ""), measure(folder.path(), "b.json", "-n 12"));
    let refused = run(&format!("compare {a} {b}"));
    assert!(refused.refusal().contains("not comparable"), "{refused:?}");
    assert!(refused.stderr.contains("ranks: 10 on the first side, 12 on this one"), "{}", refused.stderr);
    let forced = succeed(&format!("compare {a} {b} --force")).stdout;
    assert!(forced.contains("NOT COMPARABLE: b: ranks"), "{forced}");
}

#[test]
fn a_run_fails_its_thresholds_with_code_1_and_refuses_senseless_ones() {
    let failed = run("run --budget 100ms --fail-if lat.avg.isolated>0 --fail-if lat.avg.isolated<0");
    assert_eq!(failed.code(), Some(1), "{failed:?}");
    assert_eq!(failed.stderr.matches("tailback: failed: ").count(), 1, "{}", failed.stderr);
    assert!(run("run --fail-if a2a.p99.impact>1").refusal().contains("the plan does not measure a2a"));
    assert!(run("run --fail-if lat.p99.loaded.ratio>1").refusal().contains("ratios are for `tailback compare`"));
    assert_eq!(run("run --fail-if lat.p95.impact>1").code(), Some(2));
}

#[test]
fn gpcnets_tables_become_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("gpcnet.log"), folder.path().join("gpcnet.json"));
    std::fs::write(&log, succeed("run --budget 100ms --format gpcnet").stdout).unwrap();
    succeed(&format!("import gpcnet {} --out {}", log.display(), file.display()));
    let own = measure(folder.path(), "own.json", "--preset gpcnet");
    let compared = succeed(&format!("compare {} {own} --force", file.display())).stdout;
    assert!(compared.contains("RR Two-sided Lat (8 B)") && compared.contains("no test"), "{compared}");
    succeed(&format!("report {} --out {}", file.display(), folder.path().join("r.html").display()));
}

#[test]
fn what_is_no_result_is_refused_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, page) = (folder.path().join("bad.json"), folder.path().join("report.html"));
    std::fs::write(&page, "mine").unwrap();
    for (text, expected) in
        [("", "it is empty"), ("{\"schema_version\": 9}", "schema version 9"), ("{\"a\": ", "cut short")]
    {
        std::fs::write(&bad, text).unwrap();
        let refused = run(&format!("report {} --out {}", bad.display(), page.display()));
        assert!(refused.refusal().contains(expected), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
    }
}

#[test]
fn imported_figures_are_shown_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("gpcnet.log"), folder.path().join("gpcnet.json"));
    let original = succeed("run --budget 100ms --format gpcnet").stdout;
    std::fs::write(&log, &original).unwrap();
    succeed(&format!("import gpcnet {} --out {}", log.display(), file.display()));
    let show = |format: &str| succeed(&format!("show {} --format {format}", file.display())).stdout;
    let table = show("table");
    assert!(table.starts_with("Imported from GPCNeT 1.3: 10 ranks on 10 nodes"), "{table}");
    assert_eq!(table.matches("RR Two-sided Lat (8 B)").count(), 3, "isolated, loaded, impact: {table}");
    assert!(!table.contains("no samples"), "{table}");
    assert_eq!(show("gpcnet").matches("usec").count(), original.matches("usec").count());
    let csv = show("csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 6, "{csv}");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let avg = lines[0].iter().position(|name| *name == "avg").unwrap();
    assert!(lines[1..].iter().all(|line| line[avg].parse::<f64>().is_ok()), "{csv}");
}

#[test]
fn congestors_are_compared_within_a_file_and_between_files() {
    let folder = tempfile::tempdir().unwrap();
    let mix = measure(folder.path(), "mix.json", "--congestors incast,a2a --congestors-alone");
    let within = succeed(&format!("compare {mix} --by congestor")).stdout;
    for text in ["Congestors alone\n", "While lat measured\n", "delivered by all its ranks"] {
        assert!(within.contains(text), "{text}: {within}");
    }
    let one = measure(folder.path(), "one.json", "--congestors a2a");
    assert!(run(&format!("compare {mix} {one}")).refusal().contains("not comparable"));
    let between = succeed(&format!("compare {mix} {one} --by congestor")).stdout;
    assert!(between.contains("Congestion impact") && between.contains("note: a2a: congestors: "), "{between}");
    assert!(run(&format!("compare {one} --by congestor")).refusal().contains("fewer than two congestors"));
}

#[test]
fn studies_are_compared_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let study = |name: &str, line: &str| {
        let file = folder.path().join(name).display().to_string();
        succeed(&format!("{line} --quiet --out {file}"));
        file
    };
    // Simulated: a busy machine's measurements may fit no model.
    let maxrate = "maxrate --transport sim --machine small --most-pairs 2 --largest 16384 --repetitions 4";
    let (a, b) = (study("a.json", maxrate), study("b.json", maxrate));
    let compared = succeed(&format!("compare {a} {b}")).stdout;
    assert!(
        compared.contains("Measured aggregate rate, geometric mean, 16 KiB") && compared.contains("2 pairs"),
        "{compared}"
    );
    let beff = study("beff.json", "beff --no-lab -n 2 --rings 1 --bandwidth-bytes 20000 --latency-iterations 3");
    let graph = study("graph.json", "contention --no-lab --shape in-2,ring-3 --bytes 20000 --repetitions 1");
    assert!(run(&format!("compare {a} {beff}")).refusal().contains("not comparable"));
    for (file, expected) in [(&beff, "MaxPingPongLatency_usec"), (&graph, "1>0, measured")] {
        assert!(succeed(&format!("compare {file} {file}")).stdout.contains(expected), "{expected}");
    }
    let page = folder.path().join("report.html");
    let plots = folder.path().join("plots");
    let line = format!("report {a} {b} {beff} {graph} --out {} --plots {}", page.display(), plots.display());
    succeed(&line);
    let html = std::fs::read_to_string(&page).unwrap();
    for text in
        ["How many ranks per node", "Relative error of the max-rate model", "MaxPingPongLatency_usec", "ring-3: "]
    {
        assert!(html.contains(text), "{text}");
    }
    for name in [
        "maxrate-rates-a-simulated.svg",
        "contention-graph-2-graph.svg",
        "contention-errors-graph.svg",
        "beff-latency-beff.svg",
    ] {
        assert!(plots.join(name).is_file(), "{name}");
    }
    if cfg!(feature = "png") {
        succeed(&format!("{line} --png"));
        assert!(std::fs::read(plots.join("maxrate-rates-a-simulated.png")).unwrap().starts_with(b"\x89PNG"));
    } else {
        assert!(run(&format!("{line} --png")).refusal().contains("built without PNG"));
    }
}
