//! `tailback history`: what a folder of results says, and what its thresholds come to.

use crate::common::{Folder, refused, run, succeed};

/// A folder with as many nights of a result that GPCNeT's log has, on which loaded latencies are `times` what the log says.
fn nights(count: usize, times: impl Fn(usize) -> f64) -> Folder {
    let folder = Folder::new();
    let log = folder.write("job.log", include_str!("data/gpcnet.log"));
    succeed(&format!("import gpcnet {log} --nth 2 --out {}", folder.path("night.json")));
    let first = folder.json("night.json");
    std::fs::remove_file(folder.path("night.json")).unwrap();
    for night in 0..count {
        let mut file = first.clone();
        file["started"] = format!("2026-{:02}-{:02}T02:00:00Z", night / 28 + 1, night % 28 + 1).into();
        for test in file["runs"][0]["tests"].as_array_mut().unwrap() {
            // The same small noise on every figure.
            let noise = 1.0 + 0.01 * ((night * 7 % 5) as f64 - 2.0);
            let is_loaded_latency = test["phase"] == "loaded" && test["kernel"] == "lat";
            let scale = if is_loaded_latency { noise * times(night) } else { noise };
            let avg = test["printed"]["avg"].as_f64().unwrap();
            test["printed"]["avg"] = (avg * scale).into();
        }
        folder.write(&format!("n{night}.json"), file.to_string());
    }
    folder
}

#[test]
fn a_change_is_found_with_its_night_and_its_size() {
    let folder = nights(30, |night| if night < 18 { 1.0 } else { 1.2 });
    folder.write("notes.json", "{}");
    let line = format!("history {}", folder.path(""));
    let told = succeed(&line);
    let first = told.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("WORSE since 2026-01-19: lat.avg.loaded by +20.") || first.contains("lat.avg.added by +"),
        "{first}"
    );
    for text in ["run over mpi (GPCNeT 1.3", "30 nights, 2026-01-01 to", "lat.avg.loaded", "more figures. Levels", "█"]
    {
        assert!(told.stdout.contains(text), "{text}: {}", told.stdout);
    }
    assert!(told.stderr.contains("passed over: notes.json: it is no Tailback result"), "{}", told.stderr);
    let json = succeed(&format!("{line} --json --figure lat.p99.loaded")).json();
    let of = |key: &str| json[0]["series"].as_array().unwrap().iter().find(|of| of["key"] == key).unwrap().clone();
    let changes = of("lat.avg.loaded")["changes"].clone();
    assert!(changes[0]["since"] == "2026-01-19" && changes[0]["is_worse"] == true && changes[1].is_null(), "{changes}");
    assert!((changes[0]["part"].as_f64().unwrap() - 0.2).abs() < 0.02, "{changes}");
    assert_eq!(
        (of("lat.avg.idle")["changes"].to_string(), of("lat.p99.loaded")["changes"].to_string()),
        ("[]".into(), "[]".into())
    );
    // The second look is at the index; both say the same, and so does one without it.
    assert!(folder.has(".tailback-history"));
    assert_eq!(succeed(&line).stdout, told.stdout);
    assert_eq!(succeed(&format!("{line} --no-index")).stdout, told.stdout);
    assert!(
        told.stdout.lines().count() <= 12 && told.stdout.lines().all(|of| of.chars().count() <= 80),
        "{}",
        told.stdout
    );
    let nightly = succeed(&format!("{line} -v")).stdout;
    assert!(
        nightly.contains("\nEvery night\n")
            && nightly.contains("bw-sync.avg.idle")
            && nightly.matches("2026-01-").count() >= 28,
        "{nightly}"
    );
}

#[test]
fn the_last_night_is_held_against_its_past() {
    let folder = nights(21, |night| if night < 20 { 1.0 } else { 1.3 });
    let code = |threshold: &str| {
        let outcome = run(&format!("history {} --fail-if {threshold}", folder.path("")));
        (outcome.code(), outcome.stderr)
    };
    for (threshold, expected, word) in [
        ("lat.avg.loaded.change>10%", 1, "FAIL: run over mpi"),
        ("lat.avg.loaded.change>50%", 0, "PASS: "),
        ("lat.avg.loaded.change>30%", 3, "INCONCLUSIVE: "),
        ("get-lat.avg.loaded.change>30%", 2, "NOT MEASURED: "),
        ("lat.avg.idle.change>10%", 0, "PASS: "),
        ("lat.avg.loaded.level>10%", 0, "shows no change of level in 21 nights"),
        ("lat.avg.idle.cv>0.1", 0, "PASS: "),
        ("lat.avg.idle<1us", 0, "PASS: n20.json"),
    ] {
        let (found, said) = code(threshold);
        assert!(found == Some(expected) && said.contains(word), "{threshold}: {found:?} {said}");
    }
    // A job that was cut short is the last night, and no night of the history.
    let mut file = folder.json("n20.json");
    file["started"] = "2026-03-01T02:00:00Z".into();
    file["interrupted"] = true.into();
    folder.write("n21.json", file.to_string());
    let (found, said) = code("lat.avg.idle.change>10%");
    assert!(
        found == Some(2) && said.contains("the run is complete") && said.contains("or were interrupted: 1"),
        "{said}"
    );
}

#[test]
fn a_change_that_lasts_goes_on_to_fail_until_the_past_is_given_up() {
    let folder = nights(40, |night| if night < 20 { 1.0 } else { 1.2 });
    let outcome = |words: &str| {
        let outcome = run(&format!("history {} {words}", folder.path("")));
        (outcome.code(), outcome.stderr)
    };
    let (found, said) = outcome("--fail-if lat.avg.loaded.change>10%");
    assert!(found == Some(0) && said.contains("PASS: "), "twenty nights later the last one is as those before: {said}");
    let (found, said) = outcome("--fail-if lat.avg.loaded.level>10%");
    assert!(found == Some(1) && said.contains("FAIL: run over mpi") && said.contains("% since 2026-01-21"), "{said}");
    let (found, said) = outcome("--fail-if lat.avg.loaded.level>10% --since 2026-01-21");
    assert!(found == Some(0) && said.contains("shows no change of level in 20 nights"), "{said}");
    let (found, said) = outcome("--fail-if lat.avg.loaded.level>10% --since 2026-02-10T02:00");
    assert!(
        found == Some(3) && said.contains("INCONCLUSIVE: ") && said.contains("has too few nights to tell: 3, at"),
        "{said}"
    );
    let (found, said) = outcome("--fail-if lat.avg.loaded.change>10% --since 2026-02-10");
    assert!(
        found == Some(3) && said.contains("has too few nights to tell: 2 of its level before the last one"),
        "{said}"
    );
    // A page of it.
    let page = folder.path("history.html");
    let (found, said) = outcome(&format!("--html {page}"));
    assert!(found == Some(0) && said.contains("wrote "), "{said}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<strong>WORSE</strong> since 2026-01-21") && page.contains("<svg"), "{page}");
}

#[test]
fn logs_without_times_are_in_the_order_of_their_names() {
    let folder = nights(12, |night| if night < 6 { 1.0 } else { 2.0 });
    for night in 0..12 {
        let mut file = folder.json(&format!("n{night}.json"));
        file["started"] = "unknown".into();
        folder.write(&format!("n{night}.json"), file.to_string());
    }
    let told = succeed(&format!("history {}", folder.path(""))).stdout;
    assert!(told.starts_with("WORSE since n6.json: ") && told.contains("12 nights, n0.json to n11.json"), "{told}");
}

#[test]
fn what_is_no_history_is_refused() {
    let folder = Folder::new();
    let path = folder.path("");
    refused(&[
        (&format!("history {path}none"), "cannot read "),
        (&format!("history {path}"), "has no complete result"),
        (&format!("history {path} --fail-if lat.p99.loaded.ratio>2"), "ratios are for `tailback compare`"),
        (&format!("history {path} --fail-if lat.p99.loaded.change>2us"), "expected a number with or without %"),
        ("run --fail-if lat.p99.loaded.level>2", "changes from night to night are for `tailback history`"),
        ("run --fail-if lat.p99.loaded.change>2", "changes from night to night are for `tailback history`"),
    ]);
    let folder = nights(2, |_| 1.0);
    let path = folder.path("");
    refused(&[
        (&format!("history {path} --figure lat.p42.loaded"), "invalid figure 'lat.p42.loaded'"),
        (&format!("history {path} --since yesterday"), "expected a day or a time, e.g. 2026-11-19"),
        (&format!("history {path} --since 2027-01-01"), "has no complete result since 2027-01-01"),
        (&format!("history {path} --label none"), "has no complete result of the label 'none'"),
        (&format!("show {path}/n1.json --fail-if lat.p99.loaded.change>2"), "`tailback history` takes it"),
    ]);
    assert!(succeed(&format!("history {path}")).stdout.starts_with("CANNOT SAY: 2 nights are too few"));
}
