//! What views ask of a result, so that none of them cares whether its figures were measured or imported.

use hdrhistogram::Histogram;
use tailback_transport::{Bytes, Description};

use super::{
    CollectiveBandwidth, Headline, ModelResults, NodeRole, PlacementRecord, ResultFile, Run, Test, TransportFacts,
};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::plan::{PROTOCOL, SweptValue, TRANSPORT, point_name};
use crate::stats::{Factor, Statistic};

/// Each of them once, in the order of their first.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// What labels say of a point of a sweep, beside the networks that they name; nothing where that is all.
pub(crate) fn at_point(values: &[SweptValue]) -> String {
    beside_networks(values).map(|name| format!(" at {name}")).unwrap_or_default()
}

/// A point without the keys that its run's networks tell already.
fn beside_networks(values: &[SweptValue]) -> Option<String> {
    let others = values.iter().filter(|value| ![TRANSPORT, PROTOCOL].contains(&&*value.key));
    let others: Vec<SweptValue> = others.cloned().collect();
    (!others.is_empty()).then(|| point_name(&others))
}

/// Why a job has less than its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShort<'a> {
    /// It could not go on, and why.
    Failed(&'a str),
    /// Somebody ended it.
    Interrupted,
}

impl CutShort<'_> {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            CutShort::Failed(_) => "failed",
            CutShort::Interrupted => "interrupted",
        }
    }

    /// As a sentence begins.
    pub fn sentence(&self) -> String {
        match self {
            CutShort::Failed(why) => format!("Failed: {why}"),
            CutShort::Interrupted => "Interrupted".into(),
        }
    }
}

impl ResultFile {
    /// Whether and why it has less than its plan.
    pub fn cut_short(&self) -> Option<CutShort<'_>> {
        let failed = self.failed.as_deref().map(CutShort::Failed);
        failed.or(self.interrupted.then_some(CutShort::Interrupted))
    }

    /// When it started, in seconds since 1970; nothing where nobody knows.
    pub fn started_s(&self) -> Option<u64> {
        epoch_seconds(&self.started)
    }

    /// Canaries of the file's runs, in the order of their first test.
    pub fn kernels(&self) -> Vec<Canary> {
        distinct(self.runs.iter().flat_map(|run| &run.tests).map(|test| test.kernel))
    }

    /// What a study found over each of its networks; nothing in files of other commands.
    pub fn studies(&self) -> Vec<(&Run, &ModelResults)> {
        self.runs.iter().filter_map(|run| Some((run, self.study_over(run)?))).collect()
    }

    /// What a study found over one of its networks.
    pub fn study_over<'a>(&'a self, run: &'a Run) -> Option<&'a ModelResults> {
        run.models.as_ref().or(self.models.as_ref())
    }

    /// How many placements were measured, in the run with the most.
    pub fn placements(&self) -> usize {
        self.runs.iter().map(|run| run.placements.len()).max().unwrap_or(0)
    }

    /// How many ranks share a port, on average; nothing where the ports are not known.
    pub fn ranks_per_port(&self) -> Option<f64> {
        let ports = self.system.ports?.per_node as usize * self.system.nodes.len();
        (ports > 0).then(|| self.system.ranks as f64 / ports as f64)
    }

    /// Whether its runs are of several message sizes.
    pub fn is_by_size(&self) -> bool {
        self.runs.iter().any(|run| run.size_bytes.is_some())
    }

    /// Whether it is a load test whose load was whatever else used the machine.
    pub fn is_wild(&self) -> bool {
        self.command.is_load_test() && self.plan.congestors.is_empty()
    }

    /// The nodes on which canaries are, and how many ranks those have.
    pub fn measuring(&self) -> [usize; 2] {
        let measuring = || self.system.nodes.iter().filter(|node| node.roles.contains(&NodeRole::Canary));
        [measuring().count(), measuring().map(|node| node.ranks.len()).sum()]
    }
}

/// `2026-01-02T03:04:05Z` in seconds since 1970, as results tell the time: in UTC, and none before 1970.
fn epoch_seconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if text.len() != 20 || marks.iter().any(|(at, mark)| text.as_bytes()[*at] != *mark) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March end with the day that some have more.
    let year = year - u64::from(month < 3);
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?)
}

impl TransportFacts {
    /// The facts of a transport as it describes itself, with its eager threshold where it has one.
    pub fn of(description: Description, threshold: Option<Bytes>) -> Self {
        let Description { backend, library, mut details } = description;
        // They have keys of their own.
        let protocol = details.remove("protocol");
        details.remove("eager threshold");
        TransportFacts { backend, library, protocol, eager_threshold_bytes: threshold.map(|bytes| bytes.0), details }
    }

    /// The backend as people read it: figures of a simulated network say so wherever they stand.
    pub fn network(&self) -> &str {
        match self.backend.as_str() {
            "sim" => "simulated",
            backend => backend,
        }
    }

    /// The rails with what every rank has on each, where there is more than one.
    pub fn rails_text(&self) -> Option<String> {
        let count: usize = self.details.get("rails")?.parse().ok()?;
        let above = self.details.get("striped_above_bytes").and_then(|bytes| bytes.parse().ok()).map(Bytes);
        let above = above.map(|bytes| format!(", messages above {bytes} in parts")).unwrap_or_default();
        let record = |rail: usize| {
            let of = |name: &str| self.details.get(&Description::rail_key(rail, name));
            of("devices").or_else(|| of("interfaces")).map(String::as_str).unwrap_or("unknown")
        };
        let rails: Vec<String> = (0..count).map(|rail| format!("rail {rail} is {}", record(rail))).collect();
        Some(format!("{count} rails{above}: {}", rails.join(", ")))
    }

    /// Backend and, where there is a choice, protocol.
    pub fn label(&self) -> String {
        match &self.protocol {
            Some(protocol) => format!("{}, {protocol}", self.network()),
            None => self.network().to_owned(),
        }
    }
}

impl ResultFile {
    /// What tells a run from the others of the file, for a row or a plot: `incast`, or `tcp, put with incast`.
    pub fn run_name(&self, run: &Run) -> String {
        let mut parts = self.apart(run).into_iter();
        let Some((_, first)) = parts.next() else { return run.label() };
        parts.fold(first, |name, (word, part)| format!("{name} {word} {part}"))
    }

    /// The same for a sentence: `with incast`, or `over tcp, put with incast`.
    pub fn run_phrase(&self, run: &Run) -> String {
        let parts: Vec<String> = self.apart(run).into_iter().map(|(word, part)| format!("{word} {part}")).collect();
        if parts.is_empty() { format!("over {}", run.label()) } else { parts.join(" ") }
    }

    /// Network, size, load, setting and point of a run, each where the runs differ in it.
    fn apart(&self, run: &Run) -> Vec<(&'static str, String)> {
        type Part = fn(&Run) -> Option<String>;
        let parts: [(&str, Part); 5] = [
            ("over", |run| Some(run.network())),
            ("at", |run| run.size_bytes.map(|bytes| Bytes(bytes as u64).to_string())),
            ("with", |run| run.beside.clone()),
            ("set to", |run| run.setting.clone()),
            ("at", |run| beside_networks(&run.point)),
        ];
        let differ = |part: Part| self.runs.iter().any(|other| part(other) != part(run));
        let told = parts.into_iter().filter(|(_, part)| differ(*part));
        told.filter_map(|(word, part)| Some((word, part(run)?))).collect()
    }
}

impl Run {
    /// What it went over, under which load, with which setting and at which point.
    pub fn label(&self) -> String {
        let size = self.size_bytes.map(|bytes| format!(", {}", Bytes(bytes as u64))).unwrap_or_default();
        let beside = self.beside.as_ref().map(|load| format!(" beside {load}")).unwrap_or_default();
        let setting = self.setting.as_ref().map(|setting| format!(" set to {setting}")).unwrap_or_default();
        format!("{}{size}{beside}{setting}{}", self.network(), at_point(&self.point))
    }

    /// Its networks, without load, setting or point.
    pub fn network(&self) -> String {
        let under = self.congestors_over.as_ref().map(|of| format!(" under {}", of.label())).unwrap_or_default();
        format!("{}{under}", self.transport.label())
    }

    /// The test of a kernel in a state.
    pub fn test(&self, kernel: Canary, phase: LoadState) -> Option<&Test> {
        self.tests.iter().find(|test| test.kernel == kernel && test.phase == phase)
    }

    /// The headline of a kernel, where there is one.
    pub fn headline(&self, kernel: Canary) -> Option<&Headline> {
        self.impacts.iter().find(|impact| impact.kernel == kernel)?.headline.as_ref()
    }

    /// Each placement's factor, in their order; nothing unless every placement has one.
    pub fn factors(&self, kernel: Canary, statistic: Statistic) -> Option<Vec<f64>> {
        let factors: Option<Vec<f64>> = self.placements.iter().map(|of| of.factor(kernel, statistic)).collect();
        factors.filter(|factors| !factors.is_empty())
    }

    /// Each placement's figure in a state, in their order; nothing unless every placement has one.
    pub fn figures(&self, kernel: Canary, phase: LoadState, statistic: Statistic) -> Option<Vec<f64>> {
        let figure = |of: &PlacementRecord| of.test(kernel, phase)?.summary.as_ref()?.get(statistic);
        let figures: Option<Vec<f64>> = self.placements.iter().map(figure).collect();
        figures.filter(|figures| !figures.is_empty())
    }

    /// The impact factor of a kernel: the stored one, or the quotient of printed figures.
    pub fn impact(&self, kernel: Canary, statistic: Statistic) -> Option<Factor> {
        if let Some(of) = self.impacts.iter().find(|impact| impact.kernel == kernel) {
            return of.impact.get(statistic);
        }
        let (calm, busy) = (self.test(kernel, LoadState::Isolated)?, self.test(kernel, LoadState::Loaded)?);
        let factor = calm.direction.factor(calm.figure(statistic)?, busy.figure(statistic)?);
        factor.is_finite().then_some(Factor { factor, interval: None })
    }

    /// The 99th percentile under load over the isolated average: GPCNeT's paper speaks of that, its program divides by the
    /// isolated 99th percentile.
    pub fn p99_over_average(&self, kernel: Canary) -> Option<f64> {
        let (calm, busy) = (self.test(kernel, LoadState::Isolated)?, self.test(kernel, LoadState::Loaded)?);
        let factor = calm.direction.factor(calm.figure(Statistic::Avg)?, busy.figure(Statistic::P99)?);
        factor.is_finite().then_some(factor)
    }
}

impl CollectiveBandwidth {
    /// Of a kernel whose ranks send `mean` MiB a second each, in teams of `ranks`.
    pub fn of(kernel: Canary, mean: f64, ranks: usize) -> Option<Self> {
        let factor = kernel.info().bus?.factor(ranks);
        (factor > 0.0).then(|| CollectiveBandwidth { ranks, algorithm_mib_per_s: mean / factor, bus_mib_per_s: mean })
    }
}

impl Test {
    /// A figure, measured or printed.
    pub fn figure(&self, statistic: Statistic) -> Option<f64> {
        let printed = || {
            let printed = self.printed?;
            match statistic {
                Statistic::Avg => Some(printed.avg),
                Statistic::P99 => Some(printed.p99),
                Statistic::P999 => printed.p999,
                _ => None,
            }
        };
        match &self.summary {
            Some(summary) => summary.get(statistic),
            None => printed(),
        }
    }

    /// The best figure and the worst one, measured or printed.
    pub fn extremes(&self) -> (Option<f64>, Option<f64>) {
        match (&self.summary, &self.printed) {
            (Some(of), _) => (Some(of.best), Some(of.worst)),
            (None, Some(of)) => self.direction.best_and_worst(of.min, of.max),
            (None, None) => (None, None),
        }
    }

    /// All samples, where they were kept. The reader has made sure that they decode.
    pub fn samples(&self) -> Option<Histogram<u64>> {
        self.histogram.as_ref()?.decode().ok().filter(|histogram| !histogram.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use tailback_engine::Protocol;

    use super::*;
    use crate::assemble::synthetic;
    use crate::backend::{Backend, MessagePath, Network};
    use crate::engine::PhaseId;
    use crate::result::{KnownBy, NodePorts};

    #[test]
    fn bandwidths_of_collectives_are_nccls() {
        // 1 GiB over 8 ranks in 1 s: an allreduce sends 1.75 GiB from each, an all-to-all 7/8 GiB.
        let told = |kernel, mean, ranks| {
            let of = CollectiveBandwidth::of(kernel, mean, ranks)?;
            Some((of.ranks, of.algorithm_mib_per_s, of.bus_mib_per_s))
        };
        assert_eq!(told(Canary::RingAllreduce, 1792.0, 8), Some((8, 1024.0, 1792.0)));
        for kernel in [Canary::AllToAll, Canary::Allgather, Canary::ReduceScatter] {
            assert_eq!(told(kernel, 896.0, 8), Some((8, 1024.0, 896.0)));
        }
        assert_eq!(told(Canary::RingAllreduce, 100.0, 2), Some((2, 100.0, 100.0)));
        assert_eq!((told(Canary::Bw, 100.0, 8), told(Canary::Allgather, 100.0, 1)), (None, None));
    }

    #[test]
    fn times_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-03-01T00:00:01Z", Some(1_772_323_201)),
            ("unknown", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-02 03:04:05Z", None),
        ] {
            assert_eq!(epoch_seconds(text), seconds, "{text}");
        }
    }

    #[test]
    fn ranks_are_counted_by_port() {
        let mut file = synthetic::file("mpi", None, 2.0);
        assert_eq!(file.ranks_per_port(), None);
        file.system.ports = Some(NodePorts { per_node: 4, known_by: KnownBy::User });
        file.system.ranks = 320;
        assert_eq!(file.ranks_per_port(), Some(8.0), "320 ranks on 10 nodes");
    }

    #[test]
    fn what_networks_tell_of_a_point_is_not_told_twice() {
        let value = |key: &str, value: &str| SweptValue { key: key.into(), value: value.into(), number: None };
        let mut file = synthetic::file("tcp", Some("put"), 2.0);
        file.runs[0].point = vec![value("protocol", "put")];
        let mut other = file.runs[0].clone();
        other.transport.protocol = Some("get".into());
        other.point = vec![value("protocol", "get"), value("bytes", "8")];
        file.runs.push(other);
        let names: Vec<String> = file.runs.iter().map(|run| file.run_name(run)).collect();
        assert_eq!(names, ["tcp, put", "tcp, get at bytes=8"]);
        let labels: Vec<String> = file.runs.iter().map(Run::label).collect();
        assert_eq!(labels, ["tcp, put", "tcp, get at bytes=8"]);
    }

    #[test]
    fn phases_and_runs_have_one_label_of_a_network() {
        for &backend in Backend::value_variants() {
            let messages = backend.is_raw().then_some(MessagePath { protocol: Protocol::Put, threshold: Bytes(1) });
            let label = Network { backend, messages }.label();
            let protocol = messages.map(|of| ("protocol".to_owned(), of.protocol.to_string()));
            let (backend, details) = (backend.to_string(), protocol.into_iter().collect());
            let facts = TransportFacts::of(Description { backend, library: String::new(), details }, None);
            assert_eq!(facts.label(), label);
            assert_eq!(PhaseId::from(format!("loaded lat over {label}")).over, Some(label));
        }
    }
}
