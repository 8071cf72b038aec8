//! Reading result files: whatever the bytes are, the answer is a result that can be shown, or one line that says why not.

use std::path::Path;

use super::{ControlRecord, MapResult, ResultError, ResultFile, SCHEMA_VERSION, Test, possible};
use crate::input::Limit;
use crate::stats::Summary;

/// No latency in microseconds and no bandwidth in MiB/s is less than this, or as much as that.
const LEAST_FIGURE: f64 = 1e-12;
pub(crate) const LARGEST_FIGURE: f64 = 1e15;

/// Reads and checks a result file.
pub fn read(path: &Path) -> Result<ResultFile, ResultError> {
    let name = path.display().to_string();
    let bytes = Limit::RESULT.read(path).map_err(|source| ResultError::Read { path: name.clone(), source })?;
    parse(&bytes, &name)
}

/// The result in `bytes`, which `path` names in errors.
pub fn parse(bytes: &[u8], path: &str) -> Result<ResultFile, ResultError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: Option<serde_json::Value>,
    }
    let malformed = |detail: String| ResultError::Malformed { path: path.into(), detail };
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("it is no text".into()))?;
    let damaged = |error: serde_json::Error| match error.classify() {
        serde_json::error::Category::Eof if text.trim().is_empty() => malformed("it is empty".into()),
        serde_json::error::Category::Eof => malformed(format!("it is cut short ({error})")),
        _ => malformed(error.to_string()),
    };
    // The version first: another version's fields would only confuse the message.
    let version: Version = serde_json::from_str(text).map_err(damaged)?;
    match version.schema_version {
        Some(found) if found.as_u64().is_some_and(|found| (1..=u64::from(SCHEMA_VERSION)).contains(&found)) => {}
        Some(found) if found.is_u64() => {
            return Err(ResultError::Version { path: path.into(), found: found.as_u64().unwrap_or_default() });
        }
        _ => return Err(malformed("it has no schema_version: another program wrote it".into())),
    }
    possible::check(text).map_err(damaged)?;
    let result: ResultFile = serde_json::from_str(text).map_err(damaged)?;
    check(&result).map_err(malformed)?;
    Ok(result)
}

/// What the types do not say: histograms decode, figures are numbers a plot can show.
fn check(result: &ResultFile) -> Result<(), String> {
    if result.runs.is_empty() {
        return Err("it has no runs".into());
    }
    let models = result.models.iter().chain(result.runs.iter().filter_map(|run| run.models.as_ref()));
    models.filter_map(|of| of.map.as_ref()).try_for_each(MapResult::check)?;
    let control = result.lab.iter().filter_map(|lab| lab.control.as_ref()).flat_map(ControlRecord::runs);
    for run in result.runs.iter().chain(control) {
        for test in &run.tests {
            let batches = test.batches.iter().map(|batch| &batch.histogram);
            for histogram in test.histogram.iter().chain(batches) {
                histogram.decode().map_err(|detail| format!("{}: {detail}", test.title))?;
            }
            check_figures(test).map_err(|detail| format!("{} ({}): {detail}", test.title, test.phase.word()))?;
        }
        for test in run.placements.iter().flat_map(|of| &of.tests) {
            for ring in &test.rings {
                ring.decode().map_err(|detail| format!("a ring of {}: {detail}", test.kernel))?;
            }
        }
    }
    Ok(())
}

/// Figures that no network has: nothing shows them, and no ratio of them means anything.
fn check_figures(test: &Test) -> Result<(), String> {
    let measured = test.summary.iter().flat_map(|of| {
        let Summary { avg, best, worst, worst_batch_avg, .. } = of;
        let statistics = crate::stats::Statistic::ALL.into_iter().filter_map(|statistic| of.raw(statistic));
        [*avg, *best, *worst, *worst_batch_avg].into_iter().chain(statistics)
    });
    if let Some(bad) = measured.into_iter().find(|figure| !(LEAST_FIGURE..LARGEST_FIGURE).contains(figure)) {
        return Err(format!("{bad:e} {} cannot be", test.unit));
    }
    // Programs that round print a zero for what is less.
    let printed =
        test.printed.iter().flat_map(|of| [Some(of.avg), Some(of.p99), of.p999, of.min, of.max].into_iter().flatten());
    match printed.into_iter().find(|figure| !(0.0..LARGEST_FIGURE).contains(figure)) {
        Some(bad) => Err(format!("{bad:e} {} cannot be", test.unit)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::analysis::compare::{compare, render, sides};
    use crate::assemble::synthetic;
    use crate::report::Report;
    use crate::result::{MapHost, MapPair, MapPlace, MapProbe, MapProbes, ModelResults};
    use crate::stats::Statistic;

    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| serde_json::to_vec(&synthetic::file("tcp", None, 3.0)).unwrap());

    fn refusal(bytes: &[u8]) -> String {
        parse(bytes, "x.json").unwrap_err().to_string()
    }

    #[test]
    fn unusable_files_are_refused_with_a_reason() {
        let text = String::from_utf8(WHOLE.clone()).unwrap();
        for (bytes, expected) in [
            (String::new(), "it is empty"),
            ("{\"schema_version\": 1".into(), "it is cut short"),
            (text[..text.len() / 2].into(), "it is cut short"),
            ("[1, 2]".into(), "is no Tailback result"),
            ("{\"hello\": 1}".into(), "another program wrote it"),
            ("{\"schema_version\": \"one\"}".into(), "another program wrote it"),
            ("{\"schema_version\": 1}".into(), "missing field"),
            (text.replace("\"schema_version\":2", "\"schema_version\":3"), "has schema version 3"),
            (text.replace("\"command\":\"run\"", "\"command\":\"ru\\n\""), "unknown variant `ru `"),
            (text.replace("\"histogram\":\"H", "\"histogram\":\"#"), "histogram is no base64"),
            (text.replace("\"histogram\":\"HISTF", "\"histogram\":\"AAAAA"), "damaged histogram"),
        ] {
            let found = refusal(bytes.as_bytes());
            assert!(found.contains(expected), "{expected}: {found}");
            assert!(!found.contains('\n'), "{found}");
        }
        assert!(refusal(&[0xff, 0xfe, 0x00]).contains("it is no text"));
        assert!(refusal("[".repeat(100_000).as_bytes()).contains("is no Tailback result"));
    }

    #[test]
    fn maps_are_of_nodes_and_groups_that_there_are() {
        let pair = |from, to| MapPair { from, to, ..MapPair::default() };
        let map = |pairs: Vec<MapPair>, groups: Option<Vec<u32>>| MapResult {
            nodes: vec!["a".into(), "b".into()],
            pairs,
            groups,
            ..MapResult::default()
        };
        assert_eq!(map(vec![pair(0, 1), pair(1, 0)], Some(vec![0, 1])).check(), Ok(()));
        let probed = |place: MapPlace, pairs: Vec<MapPair>, host: u32| MapResult {
            probes: Some(MapProbes {
                probes: vec![MapProbe { place, is_control: false, pairs }],
                hosts: vec![MapHost { node: host, ..MapHost::default() }],
                ..MapProbes::default()
            }),
            ..map(Vec::new(), None)
        };
        assert_eq!(probed(MapPlace::Between(0, 1), vec![pair(1, 0)], 1).check(), Ok(()));
        for (map, expected) in [
            (probed(MapPlace::Node(2), Vec::new(), 0), "a map of 2 nodes has a probe of others"),
            (probed(MapPlace::Between(0, 2), Vec::new(), 0), "a map of 2 nodes has a probe of others"),
            (probed(MapPlace::Node(0), vec![pair(0, 2)], 0), "a map of 2 nodes has a probe of others"),
            (probed(MapPlace::Node(0), Vec::new(), 2), "a map of 2 nodes has a node 2"),
            (map(vec![pair(0, 2)], None), "a map of 2 nodes has a node 2"),
            (map(Vec::new(), Some(vec![0])), "a map of 2 nodes has groups of 1"),
            (map(Vec::new(), Some(vec![0, u32::MAX])), "a map of 2 nodes has a group 4294967295"),
        ] {
            let mut file = synthetic::file("tcp", None, 3.0);
            file.models = Some(ModelResults { map: Some(map), ..ModelResults::default() });
            let found = refusal(&serde_json::to_vec(&file).unwrap());
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let file = synthetic::file("tcp", None, 3.0);
        for bad in [-5.0, 0.0, 1e308] {
            let mut file = file.clone();
            file.runs[0].tests[0].summary.as_mut().unwrap().percentiles.p99 = bad;
            let found = refusal(&serde_json::to_vec(&file).unwrap());
            let places = ["runs[0].tests[0].summary.p99", &file.runs[0].tests[0].title];
            assert!(found.contains("cannot be") && places.iter().any(|place| found.contains(place)), "{found}");
        }
        let found = refusal(&serde_json::to_vec(&ResultFile { runs: Vec::new(), ..file }).unwrap());
        assert!(found.ends_with("it has no runs"), "{found}");
    }

    #[test]
    fn whole_files_come_back() {
        let back = parse(&WHOLE, "x.json").unwrap();
        assert_eq!(serde_json::to_vec(&back).unwrap(), *WHOLE);
    }

    /// What is read can be shown: no view may choke on odd figures.
    fn views(result: ResultFile) {
        let files = vec![("a.json".into(), result.clone()), ("b.json".into(), result)];
        let _ = render(&compare(&sides(&files), &[Statistic::P99]));
        let html = Report::new(&files, false).html();
        assert!(!html.contains("NaN"), "a plot holds no number");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(parse(&bytes, "x").is_err());
        }

        #[test]
        fn cut_files_are_refused(cut in 0.0f64..0.999) {
            prop_assert!(parse(&WHOLE[..(WHOLE.len() as f64 * cut) as usize], "x").is_err());
        }

        #[test]
        fn mutated_files_are_read_or_refused(places in proptest::collection::vec((0.0f64..1.0, any::<u8>()), 1..4)) {
            let mut bytes = WHOLE.clone();
            for (place, byte) in places {
                let at = (place * bytes.len() as f64) as usize;
                bytes[at] = byte;
            }
            let _ = parse(&bytes, "x");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        #[test]
        fn mutated_digits_break_no_view(places in proptest::collection::vec((0.0f64..1.0, b'0'..=b'9'), 1..200)) {
            let mut bytes = WHOLE.clone();
            for (place, digit) in places {
                let at = (place * bytes.len() as f64) as usize;
                if bytes[at].is_ascii_digit() {
                    bytes[at] = digit;
                }
            }
            if let Ok(result) = parse(&bytes, "x") {
                views(result);
            }
        }
    }
}
