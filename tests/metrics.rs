//! Metrics of results: written beside them, exported from them, and known to the example dashboard.

use std::collections::BTreeSet;

use crate::common::{Folder, read_json, refused, succeed};
use serde_json::Value;
use tailback::output::{LABELS, METRICS};

const SIMULATED: &str =
    "run --transport sim --machine small -n 16 --budget 400us --placements 3 --congestors incast --seed 3 -q";

#[test]
fn metrics_are_written_beside_a_result_and_exported_from_it() {
    let folder = Folder::new();
    let (prom, result) = (folder.path("tailback.prom"), folder.path("r.json"));
    succeed(&format!("{SIMULATED} --label night --metrics {prom} --out {result}"));
    let text = folder.text("tailback.prom");
    assert!(text.ends_with("# EOF\n") && text.contains("# UNIT tailback_canary_added_seconds seconds\n"), "{text}");
    assert!(
        text.contains("tailback_canary_added_seconds{command=\"run\",label=\"night\",network=\"simulated, eager\","),
        "{text}"
    );
    // The same with the time of the result, once for all its lines.
    let exported = succeed(&format!("export --format openmetrics {result}")).stdout;
    let time = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let with_times = lines(&exported);
    let times: BTreeSet<String> = with_times.iter().map(|line| time(line)).collect();
    assert_eq!(times.len(), 1, "{exported}");
    let without: Vec<String> = with_times.iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(without, lines(&text));
    // For a collector without times, and of two results the newer one, in whatever order they are given.
    let export = |words: &str| succeed(&format!("export --format openmetrics --no-timestamps {words}")).stdout;
    assert_eq!(export(&result), text);
    let mut older = folder.json("r.json");
    older["started"] = "2026-01-01T02:00:00Z".into();
    older["duration_s"] = 1e6.into();
    let older = folder.write("older.json", older.to_string());
    assert_eq!(
        [export(&format!("{result} {older}")), export(&format!("{older} {result}"))],
        [text.clone(), text.clone()]
    );
    for (format, begins) in [("influx", "tailback_"), ("json-lines", "{")] {
        let out = folder.path(format);
        assert_eq!(succeed(&format!("export --format {format} {result} --out {out}")).stdout, "");
        let text = folder.text(format);
        assert_eq!(text.lines().count(), without.len(), "{text}");
        assert!(text.lines().all(|line| line.starts_with(begins)), "{text}");
    }
}

#[test]
fn imported_results_and_studies_have_metrics() {
    let folder = Folder::new();
    let log = folder.write("job.log", include_str!("data/gpcnet.log"));
    succeed(&format!("import gpcnet {log} --nth 1 --out {}", folder.path("g.json")));
    let text = succeed(&format!("export --format openmetrics {}", folder.path("g.json"))).stdout;
    assert!(text.contains("statistic=\"p99\"} ") && !text.contains("tailback_build_info"), "{text}");
    let suite = folder.write("hpccoutf.txt", include_str!("data/hpccoutf.txt"));
    succeed(&format!("import hpcc {suite} --out {}", folder.path("h.json")));
    let text = succeed(&format!("export --format openmetrics {}", folder.path("h.json"))).stdout;
    assert!(text.contains("# TYPE tailback_study_seconds gauge") && text.contains("unit=\"flop/s\""), "{text}");
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let folder = Folder::new();
    let log = folder.write("job.log", include_str!("data/gpcnet.log"));
    succeed(&format!("import gpcnet {log} --nth 1 --out {}", folder.path("g.json")));
    let [file, result] = ["none.json", "g.json"].map(|name| folder.path(name));
    refused(&[
        (&format!("export --format influx --no-timestamps {result}"), "--no-timestamps is for --format openmetrics"),
        (&format!("export {result}"), "--format"),
        (&format!("export --format xml {result}"), "[possible values: openmetrics, influx, json-lines]"),
        (&format!("export --format influx {file}"), "cannot read"),
        (&format!("export --format influx {result} --out {result}"), "is a result: give another file"),
        (&format!("export --format openmetrics {result} {result}"), "do not say when they started"),
        (&format!("{SIMULATED} --metrics {file}/x --no-out"), "cannot write"),
        (
            "simulate --machine small --what-if routing.kind=minimal --metrics x.prom",
            "--out, --csv and --metrics are for one result",
        ),
    ]);
}

/// Words of a query that are no text between quotes.
fn words(query: &str) -> Vec<String> {
    let bare: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    bare.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Every text of the document under this key.
fn under<'a>(document: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match document {
        Value::Object(all) => all.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == key => found.push(text),
            _ => under(value, key, found),
        }),
        Value::Array(all) => all.iter().for_each(|value| under(value, key, found)),
        _ => {}
    }
}

#[test]
fn queries_of_the_dashboard_name_metrics_and_labels_that_there_are() {
    const LANGUAGE: [&str; 9] =
        ["sum", "max", "min", "by", "and", "time", "avg_over_time", "label_values", "prometheus"];
    let document = read_json(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/grafana/tailback.json").as_ref());
    let mut queries = Vec::new();
    under(&document, "expr", &mut queries);
    under(&document, "query", &mut queries);
    assert!(queries.len() > 10, "{queries:?}");
    let is_known = |word: &str| {
        METRICS.iter().any(|metric| metric.name == word) || LABELS.contains(&word) || LANGUAGE.contains(&word)
    };
    for query in &queries {
        let unknown: Vec<String> = words(query)
            .into_iter()
            .filter(|word| !is_known(word) && !word.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?} in {query}");
    }
    assert!(!is_known("tailback_canary_added_ms") && !is_known("host"), "the test would see it");
    // What legends show is a label too.
    let mut legends = Vec::new();
    under(&document, "legendFormat", &mut legends);
    let shown = legends.iter().flat_map(|legend| legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()));
    assert_eq!(shown.filter(|label| !LABELS.contains(label)).collect::<Vec<_>>(), Vec::<&str>::new());
}
