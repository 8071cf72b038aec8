use std::collections::BTreeSet;

use super::*;
use crate::assemble::synthetic;

#[test]
fn names_end_with_their_units_and_are_one_each() {
    let names: BTreeSet<&str> = METRICS.iter().map(|of| of.name).collect();
    assert_eq!(names.len(), METRICS.len());
    for Metric { name, unit, help } in METRICS {
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(is_name && name.starts_with("tailback_"), "{name}");
        assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}: {unit}");
        assert!(!help.ends_with('.') && !help.contains(['\\', '"', '\n']), "{name}: {help}");
    }
}

#[test]
fn every_figure_is_in_base_units_under_a_listed_name() {
    let file = synthetic::file("tcp", None, 3.0);
    let all = samples(&file);
    let found = |metric: Metric, canary: &str, label: (&'static str, &str)| {
        let has = |of: &Sample, (name, value): (&'static str, &str)| of.labels.contains(&(name, value.to_owned()));
        let mut those = all.iter().filter(|of| of.metric == metric && has(of, ("canary", canary)) && has(of, label));
        let first = those.next().expect("it is there").value;
        assert!(those.next().is_none(), "{} of {canary} is there twice", metric.name);
        first
    };
    let answer = |canary| file.runs[0].answers().find(|of| of.test.kernel.to_string() == canary).expect("measured");
    let (lat, bw) = (answer("lat"), answer("bw-sync"));
    let near = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 1e-12, "{one} {other}");
    near(found(ADDED, "lat", ("statistic", "time-p90")), lat.added.unwrap().value / 1e6);
    near(found(ADDED_BYTE, "bw-sync", ("statistic", "avg")), bw.added.unwrap().value / 1e6 / 1_048_576.0);
    near(found(IMPACT, "lat", ("network", "tcp")), lat.impact.unwrap().factor);
    assert_eq!(found(REPORTABLE, "lat", ("network", "tcp")), 1.0);
    for sample in &all {
        assert!(METRICS.contains(&sample.metric), "{sample:?}");
        assert!(sample.labels.iter().all(|(name, _)| LABELS.contains(name)), "{sample:?}");
    }
    let of = |statistic: &str| {
        let wanted = [("state", "loaded".to_owned()), ("statistic", statistic.to_owned())];
        let lat = all.iter().filter(|of| of.metric == LATENCY && of.labels.contains(&("canary", "lat".into())));
        lat.filter(|of| wanted.iter().all(|label| of.labels.contains(label))).map(|of| of.value).collect::<Vec<_>>()
    };
    near(of("time-p90")[0], lat.loaded / 1e6);
    assert_eq!(of("time-p90").len(), 1);
}

#[test]
fn text_has_a_head_for_each_metric_one_end_and_no_series_twice() {
    let mut file = synthetic::file("tcp", Some("put"), 3.0);
    file.label = Some("a \"quoted\\\nlabel".into());
    let text = openmetrics(&[&file]);
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    assert!(text.contains("label=\"a \\\"quoted\\\\\\nlabel\""), "{text}");
    assert!(text.contains("network=\"tcp, put\""), "{text}");
    let series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').expect("a value").0)
        .collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len(), "{text}");
    for metric in METRICS {
        let heads = text.matches(&format!("# TYPE {} gauge\n", metric.name)).count();
        assert_eq!(heads, usize::from(series.iter().any(|of| of.split('{').next() == Some(metric.name))), "{metric:?}");
    }
    assert!(samples(&file).len() > 90 && samples(&file).len() == series.len(), "none is lost");
}

#[test]
fn thresholds_of_a_job_have_their_answer() {
    use crate::stats::Outcome;
    let file = synthetic::file("tcp", None, 3.0);
    let check = |outcome| Check {
        run: "tcp".into(),
        threshold: format!("lat.avg.impact > {outcome:?}"),
        required: String::new(),
        outcome,
        found: String::new(),
    };
    let checks = [Outcome::Pass, Outcome::Fail, Outcome::NotMeasured, Outcome::Inconclusive].map(check);
    let text = openmetrics_of_job(&file, &checks);
    let told: BTreeSet<&str> = text.lines().filter(|of| of.starts_with("tailback_threshold_answer{")).collect();
    assert_eq!(told.len(), 4, "{text}");
    for (word, code) in [("Pass", 0), ("Fail", 1), ("NotMeasured", 2), ("Inconclusive", 3)] {
        let expected = format!("threshold=\"lat.avg.impact > {word}\"}} {code}");
        assert!(told.iter().any(|line| line.contains("network=\"tcp\"") && line.ends_with(&expected)), "{told:?}");
    }
}

#[test]
fn without_times_a_newer_verdict_takes_the_place_of_an_older_one() {
    let mut older = synthetic::file("tcp", None, 1.0);
    older.build.version = "0.0.1".into();
    let newer = ResultFile { started: "2026-01-03T03:04:05Z".into(), ..synthetic::file("tcp", None, 40.0) };
    let told = |text: &str| {
        let lines =
            text.lines().filter(|of| of.starts_with("tailback_verdict{") || of.starts_with("tailback_build_info{"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let of_newer = told(&openmetrics(&[&newer]));
    assert!(of_newer.len() == 2 && of_newer != told(&openmetrics(&[&older])), "{of_newer:?}");
    assert_eq!(
        [told(&openmetrics(&[&older, &newer])), told(&openmetrics(&[&newer, &older]))],
        [of_newer.clone(), of_newer]
    );
}

#[test]
fn several_results_are_told_apart_by_their_times() {
    let file = synthetic::file("tcp", None, 3.0);
    let later = ResultFile { started: "2026-01-03T03:04:05Z".into(), ..synthetic::file("tcp", None, 4.0) };
    let text = MetricsFormat::Openmetrics.render(&[&later, &file]).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("tailback_canary_impact_ratio{")).collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[0].ends_with(" 1767323045") && lines[1].ends_with(" 1767409445"), "{lines:?}");
    assert_eq!(lines[0].split(' ').next(), lines[1].split(' ').next());
    // The same job twice is once in it.
    let twice = MetricsFormat::Openmetrics.render(&[&file, &file]).unwrap();
    assert_eq!(twice, MetricsFormat::Openmetrics.render(&[&file]).unwrap());
    let unknown = ResultFile { started: "unknown".into(), ..file.clone() };
    let said = MetricsFormat::Openmetrics.render(&[&unknown, &file]).unwrap_err();
    assert!(said.contains("do not say when they started"), "{said}");
    let alone = MetricsFormat::Openmetrics.render(&[&unknown]).unwrap();
    assert!(!alone.contains("1767323045") && alone.ends_with("# EOF\n"));
}

#[test]
fn lines_for_databases_are_one_for_each_figure() {
    let mut file = synthetic::file("tcp", Some("put"), 3.0);
    file.label = Some("a=b\\\nc".into());
    let count = samples(&file).len();
    let lines = MetricsFormat::Influx.render(&[&file]).unwrap();
    assert_eq!(lines.lines().count(), count);
    let added = lines.lines().find(|line| line.starts_with("tailback_canary_added_seconds,")).unwrap();
    assert!(added.contains(",label=a\\=b/\u{fffd}c,network=tcp\\,\\ put,canary=lat,"), "{added}");
    assert!(added.ends_with(" 1767323045000000000") && added.contains(" value=0.0000"), "{added}");
    let lines = MetricsFormat::JsonLines.render(&[&file]).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), count);
    let of = lines.iter().find(|line| line["metric"] == "tailback_canary_added_seconds").unwrap();
    assert_eq!((&of["time"], &of["unit"]), (&"2026-01-02T03:04:05Z".into(), &"seconds".into()));
    assert_eq!(of["labels"]["label"], "a=b\\\nc");
}
