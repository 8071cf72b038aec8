//! From result files to answers: compare, thresholds, reports, imports, and files that are none.

use crate::common::{Folder, refused, run, succeed};

/// A job whose figures do not depend on what else this machine does.
const SIMULATED: &str = "--transport sim --machine small -n 8 --placements 3 --budget 400us";

fn measure(folder: &Folder, name: &str, more: &str) -> String {
    let file = folder.path(name);
    succeed(&format!("run {SIMULATED} {more} --out {file}"));
    file
}

#[test]
fn results_are_compared_checked_and_reported() {
    let folder = Folder::new();
    let simulated = |seed: u32| measure(&folder, &format!("sim-{seed}.json"), &format!("--seed {seed}"));
    let checks = "--fail-if lat.avg.loaded>0 --fail-if lat.avg.loaded.ratio<0";
    let pair = format!("{} {}", simulated(1), simulated(2));
    let checked = run(&format!("compare {pair} {checks} --junit {}", folder.path("checks.xml")));
    assert_eq!(checked.code(), Some(1), "{checked:?}");
    assert_eq!(checked.stderr.matches("tailback: FAIL: ").count(), 2, "{}", checked.stderr);
    let junit = folder.text("checks.xml");
    assert!(junit.contains("<testsuites tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\">"), "{junit}");

    let real = |name: &str| {
        let file = folder.path(name);
        // Closed loops have samples on the busiest machine, and nobody looks at what others take of it.
        succeed(&format!("run --budget 100ms --seed 7 --loop closed --no-counters --out {file}"));
        file
    };
    let (a, b, c) = (real("a.json"), real("b.json"), real("c.json"));
    let compared = succeed(&format!("compare {a} {b} -v")).stdout;
    for text in [
        "Idle (geometric",
        "Under load (geometric",
        "Added time",
        "Congestion impact",
        "ratio",
        "Welch's test",
        "these two jobs",
    ] {
        assert!(compared.contains(text), "{text}: {compared}");
    }
    let several = run(&format!("compare {a} {b} --with {c} --within 50% -v"));
    assert!(several.code().is_some_and(|code| [0, 1, 3].contains(&code)), "{several:?}");
    for text in ["(2 jobs)", "detectable %", "Standard deviations of added time", "same: within 50%"] {
        assert!(several.stdout.contains(text), "{text}: {}", several.stdout);
    }
    let open = run(&format!("compare {a} {b} --fail-if lat.avg.loaded.ratio>1"));
    assert_eq!(open.code(), Some(3), "one job a side decides nothing: {open:?}");
    let missing = run(&format!("compare {a} {b} --fail-if get-lat.avg.loaded>1"));
    assert_eq!(missing.code(), Some(2), "{missing:?}");
    refused(&[
        (&format!("compare {a} {a} --with {b}"), "are the same job"),
        (&format!("compare {a} {b} --within 0%"), "invalid margin '0%'"),
    ]);

    std::fs::create_dir(folder.path("nothing")).unwrap();
    let early = succeed(&format!("compare {a} {b} --history {}", folder.path("nothing")));
    assert!(early.stderr.contains("has no two earlier results of this plan"), "{}", early.stderr);

    let (page, plots) = (folder.path("report.html"), folder.path("plots"));
    succeed(&format!("report {a} {b} --published --out {page} --plots {plots}"));
    let html = folder.text("report.html");
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    let written: Vec<String> =
        std::fs::read_dir(plots).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(written.contains(&"impact-lat.svg".to_owned()), "{written:?}");
    assert_eq!(written.len(), html.matches("<svg").count(), "{written:?}");
}

#[test]
fn a_run_fails_its_thresholds_with_code_1_and_refuses_senseless_ones() {
    let failed = run(&format!("run {SIMULATED} --fail-if lat.avg.isolated>0 --fail-if lat.avg.isolated<0"));
    assert_eq!(failed.code(), Some(1), "{failed:?}");
    assert_eq!(failed.stderr.matches("tailback: FAIL: ").count(), 1, "{}", failed.stderr);
    refused(&[
        ("run --fail-if a2a.p99.impact>1", "the plan does not measure a2a"),
        ("run --placements 2 --fail-if lat.time-p90.added>1", "has no interval with --placements 2"),
        ("run --fail-if lat.p99.loaded.ratio>1", "ratios are for `tailback compare`"),
        ("run --fail-if lat.p95.impact>1", ""),
    ]);
}

#[test]
fn what_is_no_result_is_refused_and_nothing_is_overwritten() {
    let folder = Folder::new();
    let page = folder.write("report.html", "mine");
    for (text, expected) in
        [("", "it is empty"), ("{\"schema_version\": 9}", "schema version 9"), ("{\"a\": ", "cut short")]
    {
        let bad = folder.write("bad.json", text);
        refused(&[(&format!("report {bad} --out {page}"), expected)]);
        assert_eq!(folder.text("report.html"), "mine");
    }
}

#[test]
fn gpcnets_tables_become_a_result_that_is_shown_in_every_format() {
    let folder = Folder::new();
    let original = succeed("run --budget 100ms --format gpcnet").stdout;
    let (log, file) = (folder.write("gpcnet.log", &original), folder.path("gpcnet.json"));
    succeed(&format!("import gpcnet {log} --out {file}"));
    let own = folder.path("own.json");
    succeed(&format!("run --budget 100ms --placements 1 --blocks 1 --loop closed --out {own}"));
    let compared = succeed(&format!("compare {file} {own} --force -v")).stdout;
    assert!(compared.contains("lat 8 B") && compared.contains("no test"), "{compared}");
    succeed(&format!("report {file} --out {}", folder.path("r.html")));
    let show = |format: &str| succeed(&format!("show {file} --format {format}")).stdout;
    let table = show("table");
    assert!(table.starts_with("Imported from GPCNeT 1.3: 10 ranks on 10 nodes"), "{table}");
    assert_eq!(table.matches("lat 8 B").count(), 3, "isolated, loaded, impact: {table}");
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
    let folder = Folder::new();
    let mix = measure(&folder, "mix.json", "--congestors incast,a2a --congestors-alone");
    let within = succeed(&format!("compare {mix} --by congestor")).stdout;
    for text in ["Congestors alone\n", "While lat measured\n", "delivered by all its ranks"] {
        assert!(within.contains(text), "{text}: {within}");
    }
    let one = measure(&folder, "one.json", "--congestors a2a");
    refused(&[
        (&format!("compare {mix} {one}"), "not comparable"),
        (&format!("compare {one} --by congestor"), "fewer than two congestors"),
    ]);
    let between = succeed(&format!("compare {mix} {one} --by congestor -v")).stdout;
    assert!(between.contains("Congestion impact") && between.contains("note: a2a: congestors: "), "{between}");
}

#[test]
fn studies_are_compared_and_reported() {
    let folder = Folder::new();
    let study = |name: &str, line: &str| {
        let file = folder.path(name);
        succeed(&format!("{line} --quiet --out {file}"));
        file
    };
    // Simulated: a busy machine's measurements may fit no model.
    let maxrate = "maxrate --transport sim --machine small --most-pairs 2 --largest 16384 --repetitions 4";
    let (a, b) = (study("a.json", maxrate), study("b.json", maxrate));
    let compared = succeed(&format!("compare {a} {b} -v")).stdout;
    assert!(
        compared.contains("Measured aggregate rate, geometric mean, 16 KiB") && compared.contains("2 pairs"),
        "{compared}"
    );
    let beff = study("beff.json", "beff --no-lab -n 2 --rings 1 --bandwidth-bytes 20000 --latency-iterations 3");
    let graph = study("graph.json", "contention --no-lab --shape in-2,ring-3 --bytes 20000 --repetitions 1");
    refused(&[(&format!("compare {a} {beff}"), "not comparable")]);
    for (file, expected) in [(&beff, "MaxPingPongLatency_usec"), (&graph, "1>0, measured")] {
        assert!(succeed(&format!("compare {file} {file}")).stdout.contains(expected), "{expected}");
    }
    let (page, plots) = (folder.path("report.html"), folder.path("plots"));
    let line = format!("report {a} {b} {beff} {graph} --out {page} --plots {plots}");
    succeed(&line);
    let html = folder.text("report.html");
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
        assert!(folder.text(&format!("plots/{name}")).contains("<svg"), "{name}");
    }
    if cfg!(feature = "png") {
        succeed(&format!("{line} --png"));
        assert!(std::fs::read(format!("{plots}/maxrate-rates-a-simulated.png")).unwrap().starts_with(b"\x89PNG"));
    } else {
        refused(&[(&format!("{line} --png"), "built without PNG")]);
    }
}
