//! Results as metrics, for what watches a machine: each figure has a name, a base unit and labels that tell it from others.
//!
//! All names are in one list, which the forms (OpenMetrics, InfluxDB's lines, JSON) and the example dashboard are held to. Every metric is
//! a gauge: a result says what was, and counts nothing. What was not measured is absent.

mod form;

use crate::analysis::Conclusion;
use crate::analysis::checks::Check;
use crate::analysis::compare::{StudyFigure, study_figures};
use crate::result::{Answer, ResultFile, Run, Test};
use crate::stats::{Direction, Factor, Interval, Statistic};

pub use form::{MetricsFormat, openmetrics, openmetrics_of_job};

const MIB: f64 = 1_048_576.0;

/// What a figure is called, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Metric {
    pub name: &'static str,
    /// What the name ends with; empty for what has no unit.
    pub unit: &'static str,
    pub help: &'static str,
}

macro_rules! metrics {
    ($($id:ident $name:literal $unit:literal $help:literal)*) => {
        $(const $id: Metric = Metric { name: $name, unit: $unit, help: $help };)*
        /// Every metric there is, in the order in which they are written.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    BUILD "tailback_build_info" "" "The program that made the result, in its labels; always 1"
    STARTED "tailback_started_timestamp_seconds" "seconds" "When the job started, in seconds since 1970"
    DURATION "tailback_duration_seconds" "seconds" "How long the job took"
    COMPLETE "tailback_complete" "" "1 where the job came to the end of its plan, 0 where it failed or was interrupted"
    NODES "tailback_nodes" "" "Nodes of the job"
    RANKS "tailback_ranks" "" "Ranks of the job"
    VERDICT "tailback_verdict" "" "The verdict of a load test, in its label; always 1"
    THRESHOLD "tailback_threshold_answer" "" "What a threshold came to, as exit codes say it: 0 passed, 1 failed, 2 not measured, 3 inconclusive"
    LATENCY "tailback_canary_latency_seconds" "seconds" "Latency of a canary, idle and loaded, by statistic"
    BANDWIDTH "tailback_canary_bandwidth_bytes_per_second" "bytes_per_second" "Bandwidth of a canary per rank, idle and loaded, by statistic"
    ADDED "tailback_canary_added_seconds" "seconds" "Time that load adds to the latency of a canary"
    ADDED_LOW "tailback_canary_added_low_seconds" "seconds" "Lower end of the 95% interval of the added time"
    ADDED_HIGH "tailback_canary_added_high_seconds" "seconds" "Upper end of the 95% interval of the added time"
    ADDED_BYTE "tailback_canary_added_seconds_per_byte" "seconds_per_byte" "Time that load adds to a byte of a bandwidth canary"
    ADDED_BYTE_LOW "tailback_canary_added_low_seconds_per_byte" "seconds_per_byte" "Lower end of the 95% interval of the added time of a byte"
    ADDED_BYTE_HIGH "tailback_canary_added_high_seconds_per_byte" "seconds_per_byte" "Upper end of the 95% interval of the added time of a byte"
    IMPACT "tailback_canary_impact_ratio" "ratio" "How many times worse a canary is under load"
    IMPACT_LOW "tailback_canary_impact_low_ratio" "ratio" "Lower end of the 95% interval of the impact"
    IMPACT_HIGH "tailback_canary_impact_high_ratio" "ratio" "Upper end of the 95% interval of the impact"
    REPORTABLE "tailback_canary_reportable" "" "1 where added time and impact of a canary may be reported, 0 where something is against it"
    DELIVERED "tailback_congestor_delivered_bytes_per_second" "bytes_per_second" "What all ranks of a congestor delivered, alone or while a canary measured"
    APPLICATION "tailback_application_seconds" "seconds" "Time of an application, idle and loaded, by statistic"
    APPLICATION_ADDED "tailback_application_added_seconds" "seconds" "Time that load adds to an application"
    APPLICATION_FIGURE "tailback_application_figure" "" "Figure that an application prints, in the unit of its label, idle and loaded, by statistic"
    STUDY_TIME "tailback_study_seconds" "seconds" "Time that a study (maxrate, contention, beff, hpcc) found"
    STUDY_RATE "tailback_study_bytes_per_second" "bytes_per_second" "Rate that a study found"
    STUDY_FIGURE "tailback_study_figure" "" "Other figure that a study found, in the unit of its label"
}

/// Every label there is.
pub const LABELS: [&str; 18] = [
    "command",
    "label",
    "network",
    "canary",
    "bytes",
    "state",
    "statistic",
    "congestor",
    "beside",
    "application",
    "group",
    "figure",
    "unit",
    "verdict",
    "threshold",
    "version",
    "git",
    "profile",
];

/// One figure of one result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    metric: Metric,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// The figures of one result: its own, and those of a run with what tells it from others.
struct Samples<'a> {
    common: &'a [(&'static str, String)],
    all: Vec<Sample>,
}

impl Samples<'_> {
    /// Keeps a figure, unless it is no number.
    fn add(&mut self, metric: Metric, own: &[(&'static str, String)], value: f64) {
        if value.is_finite() {
            let labels = self.common.iter().chain(own).filter(|(_, text)| !text.is_empty()).cloned().collect();
            self.all.push(Sample { metric, labels, value });
        }
    }

    /// The same with the ends of its interval, each of which is a metric too.
    fn add_within(
        &mut self,
        metrics: [Metric; 3],
        own: &[(&'static str, String)],
        value: f64,
        interval: Option<Interval>,
    ) {
        self.add(metrics[0], own, value);
        if let Some(of) = interval {
            self.add(metrics[1], own, of.low);
            self.add(metrics[2], own, of.high);
        }
    }
}

/// What every figure of a result says of where it is from.
fn common(file: &ResultFile) -> [(&'static str, String); 2] {
    [("command", file.command.word().to_owned()), ("label", file.label.clone().unwrap_or_default())]
}

/// What a job's thresholds came to.
fn answers(file: &ResultFile, checks: &[Check]) -> Vec<Sample> {
    let common = common(file);
    let mut samples = Samples { common: &common, all: Vec::new() };
    for check in checks {
        let own = [("network", check.run.clone()), ("threshold", check.threshold.clone())];
        samples.add(THRESHOLD, &own, f64::from(check.code(false)));
    }
    samples.all
}

/// All that a result has, in the order of the list.
pub(super) fn samples(file: &ResultFile) -> Vec<Sample> {
    let common = common(file);
    let mut samples = Samples { common: &common, all: Vec::new() };
    of_file(&mut samples, file);
    let mut all = samples.all;
    for run in &file.runs {
        let common = [&common[..], &[("network", run.label())]].concat();
        let mut samples = Samples { common: &common, all: Vec::new() };
        run.tests.iter().for_each(|test| of_test(&mut samples, run, test));
        run.answers().for_each(|answer| of_answer(&mut samples, &answer));
        run.congestors.iter().for_each(|load| {
            let own = [("congestor", load.kernel.info().key.to_owned())];
            samples.add(DELIVERED, &own, load.delivered_mib_per_s * MIB);
        });
        study_figures(file, run).iter().for_each(|figure| of_study(&mut samples, figure));
        all.extend(samples.all);
    }
    let place = |of: &Sample| METRICS.iter().position(|metric| *metric == of.metric);
    all.sort_by_key(place);
    all
}

fn of_file(samples: &mut Samples<'_>, file: &ResultFile) {
    let build = &file.build;
    let told = [
        ("version", build.version.clone()),
        ("git", build.git.clone().unwrap_or_default()),
        ("profile", build.profile.clone()),
    ];
    // Of an imported result nobody knows which program it was, when and how long.
    if file.imported.is_none() {
        samples.add(BUILD, &told, 1.0);
        samples.add(DURATION, &[], file.duration_s);
    }
    if let Some(at) = file.started_s() {
        samples.add(STARTED, &[], at as f64);
    }
    samples.add(COMPLETE, &[], f64::from(u8::from(file.cut_short().is_none())));
    samples.add(NODES, &[], file.system.nodes.len() as f64);
    samples.add(RANKS, &[], file.system.ranks as f64);
    let verdict = match file.conclusion() {
        Some(Conclusion::Shown { severity, .. }) => severity.word().to_lowercase(),
        Some(Conclusion::CannotSay { .. }) => "cannot say".to_owned(),
        None => return,
    };
    samples.add(VERDICT, &[("verdict", verdict)], 1.0);
}

/// What tells a test from others of its run.
fn names(test: &Test) -> [(&'static str, String); 2] {
    match test.kernel.is_application() {
        true => [("application", test.title.clone()), ("bytes", String::new())],
        false => [("canary", test.kernel.to_string()), ("bytes", test.bytes.to_string())],
    }
}

fn of_test(samples: &mut Samples<'_>, run: &Run, test: &Test) {
    let state = ("state", test.phase.word().to_owned());
    for statistic in Statistic::ALL {
        let Some(figure) = run.typical(test.kernel, test.phase, statistic) else { continue };
        let own = [&names(test)[..], &[state.clone(), ("statistic", statistic.key().to_owned())]].concat();
        match test.kernel.info().direction {
            _ if test.kernel.is_application() && test.is_time() => samples.add(APPLICATION, &own, figure),
            _ if test.kernel.is_application() => {
                samples.add(APPLICATION_FIGURE, &[&own[..], &[("unit", test.unit.clone())]].concat(), figure);
            }
            Direction::Latency => samples.add(LATENCY, &own, figure * 1e-6),
            Direction::Bandwidth => samples.add(BANDWIDTH, &own, figure * MIB),
        }
    }
    for load in &test.load {
        let own = [("congestor", load.kernel.info().key.to_owned()), ("beside", test.kernel.to_string())];
        samples.add(DELIVERED, &own, load.delivered_mib_per_s * MIB);
    }
}

fn of_answer(samples: &mut Samples<'_>, answer: &Answer<'_>) {
    let test = answer.test;
    let statistic = ("statistic", answer.statistic.key().to_owned());
    let own = [&names(test)[..], &[statistic]].concat();
    if let Some(added) = answer.added {
        match test.direction {
            _ if test.kernel.is_application() => samples.add(APPLICATION_ADDED, &own, added.value),
            Direction::Latency => {
                let added = added.scaled(1e-6);
                samples.add_within([ADDED, ADDED_LOW, ADDED_HIGH], &own, added.value, added.interval);
            }
            Direction::Bandwidth => {
                let added = added.scaled(1e-6 / MIB);
                let metrics = [ADDED_BYTE, ADDED_BYTE_LOW, ADDED_BYTE_HIGH];
                samples.add_within(metrics, &own, added.value, added.interval);
            }
        }
    }
    if let Some(Factor { factor, interval }) = answer.impact {
        samples.add_within([IMPACT, IMPACT_LOW, IMPACT_HIGH], &own, factor, interval);
    }
    samples.add(REPORTABLE, &own, f64::from(u8::from(answer.judgement.is_reportable())));
}

fn of_study(samples: &mut Samples<'_>, figure: &StudyFigure) {
    let own = [("group", figure.group.clone()), ("figure", figure.name.clone())];
    let (metric, unit, scale) = match figure.unit {
        "s" => (STUDY_TIME, "", 1.0),
        "ms" => (STUDY_TIME, "", 1e-3),
        "us" => (STUDY_TIME, "", 1e-6),
        "MB/s" => (STUDY_RATE, "", 1e6),
        "GB/s" => (STUDY_RATE, "", 1e9),
        "Gflop/s" => (STUDY_FIGURE, "flop/s", 1e9),
        "Tflop/s" => (STUDY_FIGURE, "flop/s", 1e12),
        "Gupdate/s" => (STUDY_FIGURE, "update/s", 1e9),
        other => (STUDY_FIGURE, other, 1.0),
    };
    samples.add(metric, &[&own[..], &[("unit", unit.to_owned())]].concat(), figure.value * scale);
}

#[cfg(test)]
mod tests;
