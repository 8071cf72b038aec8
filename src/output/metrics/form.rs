//! The forms in which metrics are written.
//!
//! OpenMetrics is kept to what the older text format of Prometheus has too, so that node_exporter's textfile collector reads it: gauges
//! only, and without times where it is for such a collector, which refuses them. With times, which it takes to keep several results of
//! one kind apart, it is for a database that is filled with the past.

use std::fmt::Write as _;

use super::{BUILD, METRICS, Metric, Sample, VERDICT, answers, samples};
use crate::analysis::checks::Check;
use crate::result::ResultFile;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MetricsFormat {
    /// OpenMetrics text with the time of every result, for Prometheus and its like
    Openmetrics,
    /// Line protocol, for InfluxDB and its like
    Influx,
    /// A JSON object per line and figure
    JsonLines,
}

impl MetricsFormat {
    /// All results in this form. OpenMetrics tells figures of several results apart by their times only, so each needs one.
    pub fn render(self, files: &[&ResultFile]) -> Result<String, String> {
        match self {
            MetricsFormat::Openmetrics => {
                if files.len() > 1 && files.iter().any(|file| file.started_s().is_none()) {
                    return Err(
                        "results that do not say when they started can only be told apart by influx and json-lines, \
                                or exported one by one"
                            .into(),
                    );
                }
                Ok(text(files.iter().map(|file| (file.started_s(), samples(file)))))
            }
            MetricsFormat::Influx => Ok(each(files, influx)),
            MetricsFormat::JsonLines => Ok(each(files, json)),
        }
    }
}

/// Metrics of a job that has just ended, with what its thresholds came to; without times, for a collector.
pub fn openmetrics_of_job(file: &ResultFile, checks: &[Check]) -> String {
    let mut all = samples(file);
    all.extend(answers(file, checks));
    text([(None, all)])
}

/// Metrics without times, for a collector that reads the file whenever it is asked. A figure that several results have is that of the
/// newest; where one does not say when it was, that of the last.
pub fn openmetrics(files: &[&ResultFile]) -> String {
    let mut files = files.to_vec();
    if files.iter().all(|file| file.started_s().is_some()) {
        files.sort_by_key(|file| file.started_s());
    }
    let mut results: Vec<Vec<Sample>> = files.into_iter().map(samples).collect();
    // Verdicts and versions are labels, so another one is another series: the newer takes the older's place all the same.
    let of_what = |sample: &Sample| {
        let result = sample.labels.iter().filter(|(name, _)| ["command", "label"].contains(name));
        [VERDICT, BUILD].contains(&sample.metric).then(|| (sample.metric.name, result.cloned().collect::<Vec<_>>()))
    };
    for at in 1..results.len() {
        let (older, newer) = results.split_at_mut(at);
        let newer: Vec<_> = newer[0].iter().filter_map(of_what).collect();
        older.iter_mut().for_each(|of| of.retain(|of| of_what(of).is_none_or(|of| !newer.contains(&of))));
    }
    text(results.into_iter().map(|samples| (None, samples)))
}

fn text(results: impl IntoIterator<Item = (Option<u64>, Vec<Sample>)>) -> String {
    let mut lines: Vec<(Metric, String, Option<u64>, f64)> = Vec::new();
    for (time, samples) in results {
        for Sample { metric, labels, value } in samples {
            let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escaped(value));
            let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
            lines.push((metric, if labels.is_empty() { labels } else { format!("{{{labels}}}") }, time, value));
        }
    }
    let mut out = String::new();
    for metric in METRICS {
        let mut mine: Vec<_> = lines.iter().filter(|(of, ..)| of == metric).collect();
        // The figures of one series follow each other in time; of the same moment the last counts.
        mine.reverse();
        mine.sort_by(|(_, a, from, _), (_, b, to, _)| (a, from).cmp(&(b, to)));
        mine.dedup_by(|(_, a, from, _), (_, b, to, _)| (a, from) == (b, to));
        if mine.is_empty() {
            continue;
        }
        let Metric { name, unit, help } = metric;
        let _ = writeln!(out, "# TYPE {name} gauge");
        if !unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {help}.");
        for (_, labels, time, value) in mine {
            let time = time.map(|seconds| format!(" {seconds}")).unwrap_or_default();
            let _ = writeln!(out, "{name}{labels} {value}{time}");
        }
    }
    out + "# EOF\n"
}

/// A label's value between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn each(files: &[&ResultFile], line: impl Fn(&ResultFile, &Sample) -> String) -> String {
    files.iter().flat_map(|file| samples(file).into_iter().map(|sample| line(file, &sample) + "\n")).collect()
}

/// `name,label=value value=1 TIME`, with the time in ns.
fn influx(file: &ResultFile, sample: &Sample) -> String {
    let mut out = sample.metric.name.to_owned();
    for (name, value) in &sample.labels {
        let _ = write!(out, ",{name}={}", tag(value));
    }
    let time = file.started_s().map(|seconds| format!(" {}", u128::from(seconds) * 1_000_000_000)).unwrap_or_default();
    format!("{out} value={}{time}", sample.value)
}

/// A tag's value. There is no way to write the end of a line, nor a backslash before what it would take for its own.
fn tag(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            ',' | '=' | ' ' => out.extend(['\\', character]),
            '\\' => out.push('/'),
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

fn json(file: &ResultFile, sample: &Sample) -> String {
    let Sample { metric, labels, value } = sample;
    let labels: serde_json::Map<String, serde_json::Value> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    let time = file.started_s().map(|_| &file.started);
    serde_json::json!({"time": time, "metric": metric.name, "unit": metric.unit, "value": value, "labels": labels})
        .to_string()
}
