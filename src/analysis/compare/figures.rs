//! Figures of studies and of congestors, side by side: parameters of fits, rates, times of edges, HPCC's figures, what each congestor
//! of a file delivered alone and while each canary measured.
//!
//! They have no batches of passes. Where a figure has a 95% interval of its own, the ratio's follows from both, on a
//! logarithmic scale; where it has none, neither has the ratio, and no difference is called significant.

use serde::Serialize;

use super::{Cell, Verdict};
use crate::analysis::{Kind, Span};
use crate::kernel::Congestor;
use crate::models::hpcc::{self, Hpcc, NAMES};
use crate::models::maxrate::Model;
use crate::result::{CongestorLoad, ContentionResult, Estimate, FitResult, MaxRateResult, ResultFile, Run};
use crate::stats::{Factor, Interval, Spread, holm, t95, two_sided_p};
use crate::text::plural;

/// Said where verdicts on such figures are shown.
pub const FIGURES_TEST: &str =
    "Student's t on the ratio's logarithm, from the figures' own intervals; corrected by Holm";

/// Whether more of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// As of a rate.
    More,
    /// As of a time.
    Less,
    /// It is a fact, not a merit.
    Neither,
}

/// One figure of one side.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Figure {
    pub group: String,
    pub name: String,
    pub unit: &'static str,
    pub value: f64,
    pub(super) interval: Option<Interval>,
    /// The degrees of freedom behind the interval, where they are known.
    pub(super) freedom: Option<f64>,
    pub good: Good,
}

/// Of an interval that has the fewest repetitions that give one: tails that are rather too heavy than too light.
const LEAST_FREEDOM: f64 = 2.0;

/// One figure on every side.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct FigureRow {
    pub group: String,
    pub name: String,
    pub unit: String,
    pub cells: Vec<Cell>,
}

/// Rows for the figures that the first side and at least one other have. All of them are one family of tests.
pub(super) fn rows(sides: &[Vec<Figure>]) -> Vec<FigureRow> {
    let Some((first, rest)) = sides.split_first() else { return Vec::new() };
    let twin = |of: &Figure, side: &[Figure]| -> Option<Figure> {
        side.iter().find(|other| other.group == of.group && other.name == of.name).cloned()
    };
    let row = |of: &Figure| {
        let others: Vec<Option<Figure>> = rest.iter().map(|side| twin(of, side)).collect();
        if others.iter().all(Option::is_none) {
            return None;
        }
        let base = Cell::base(Some(of.value));
        let cells = std::iter::once(base).chain(others.iter().map(|other| cell(of, other.as_ref())));
        Some(FigureRow {
            group: of.group.clone(),
            name: of.name.clone(),
            unit: of.unit.to_owned(),
            cells: cells.collect(),
        })
    };
    let mut rows: Vec<FigureRow> = first.iter().filter_map(row).collect();
    let mut family: Vec<&mut Cell> =
        rows.iter_mut().flat_map(|row| &mut row.cells).filter(|cell| cell.p_value.is_some()).collect();
    let adjusted = holm(&family.iter().filter_map(|cell| cell.p_value).collect::<Vec<_>>());
    for (cell, p_value) in family.iter_mut().zip(adjusted) {
        cell.p_value = Some(p_value);
        cell.verdict = cell.ratio.map(|of| Verdict::of(of.factor > 1.0, p_value));
    }
    rows
}

fn cell(base: &Figure, other: Option<&Figure>) -> Cell {
    let Some(other) = other else { return Cell::base(None) };
    let ratio = match base.good {
        Good::More => base.value / other.value,
        Good::Less => other.value / base.value,
        Good::Neither => f64::NAN,
    };
    let spread = |of: &Figure| {
        let Interval { low, high } = of.interval?;
        (low > 0.0 && high >= low).then(|| (high / low).ln() / 2.0)
    };
    let apart = spread(base).zip(spread(other)).map(|(a, b)| a.hypot(b));
    let interval = apart.map(|apart| Interval { low: ratio / apart.exp(), high: ratio * apart.exp() });
    let freedom = base.freedom.unwrap_or(LEAST_FREEDOM).min(other.freedom.unwrap_or(LEAST_FREEDOM));
    let chance = |apart: f64| match apart > 0.0 {
        true => two_sided_p(ratio.ln().abs() / apart * t95(freedom), freedom),
        // Without any spread, nothing is no evidence and anything else is certain.
        false => f64::from(u8::from(ratio == 1.0)),
    };
    let sound = ratio.is_finite() && ratio > 0.0;
    let p_value = apart.filter(|_| sound).map(chance);
    let ratio = sound.then_some(Factor { factor: ratio, interval });
    let verdict = ratio.map(|_| Verdict::Unknown);
    Cell { ratio, p_value, verdict, ..Cell::base(Some(other.value)) }
}

/// Everything a study has to compare over one network.
pub fn study_figures(file: &ResultFile, run: &Run) -> Vec<Figure> {
    let Some(models) = file.study_over(run) else { return Vec::new() };
    let mut all = models.maxrate.as_ref().map(maxrate).unwrap_or_default();
    all.extend(models.contention.iter().flat_map(contention));
    for of in models.beff.iter().flat_map(crate::models::beff::Beff::figures) {
        let crate::models::beff::Figure { ours, theirs, value, interval } = of;
        let (name, unit) = ours.rsplit_once(", ").unwrap_or((ours, ""));
        let good = if unit == "us" { Good::Less } else { Good::More };
        let group = "HPC Challenge latency and bandwidth".to_owned();
        let freedom = models.beff.as_ref().and_then(|beff| beff.complete_repetitions).map(|count| count as f64 - 1.0);
        all.push(Figure { group, name: format!("{name} ({theirs})"), unit, value, interval, freedom, good });
    }
    all.extend(models.hpcc.iter().flat_map(hpcc));
    all
}

/// HPCC's figures; intervals where latency and bandwidth were repeated.
fn hpcc(result: &Hpcc) -> Vec<Figure> {
    let shown = NAMES.iter().filter(|name| name.good != hpcc::Good::Neither);
    let figure = |name: &hpcc::Name| {
        let good = if name.good == hpcc::Good::Less { Good::Less } else { Good::More };
        let beff = result.beff.as_ref();
        Some(Figure {
            group: "HPC Challenge".to_owned(),
            name: format!("{} ({})", name.ours, name.theirs),
            unit: name.unit,
            value: result.figure(name.theirs)?,
            interval: beff.and_then(|beff| beff.intervals.get(name.theirs).copied()),
            freedom: beff.and_then(|beff| beff.complete_repetitions).map(|count| count as f64 - 1.0),
            good,
        })
    };
    shown.filter_map(figure).collect()
}

/// The fit of the largest messages, where rates are what limits, and what was measured there.
fn maxrate(result: &MaxRateResult) -> Vec<Figure> {
    let mut all = Vec::new();
    let large = result.regimes.last().and_then(|regime| regime.fit(Model::MaxRate));
    if let Some(FitResult { latency_s, pair_bytes_per_s, node_bytes_per_s, saturating_pairs, .. }) = large {
        let group = "Max-rate model, large messages";
        let mut parameter = |name: &str, unit, of: &Estimate, scale: f64, good| {
            let bounds = of.low.zip(of.high).filter(|(low, _)| *low > 0.0);
            let interval = bounds.map(|(low, high)| Interval { low: low * scale, high: high * scale });
            let (group, name) = (group.to_owned(), name.to_owned());
            all.push(Figure { group, name, unit, value: of.value * scale, interval, freedom: None, good });
        };
        parameter("latency", "us", latency_s, 1e6, Good::Less);
        parameter("rate of a pair, R_C", "MB/s", pair_bytes_per_s, 1e-6, Good::More);
        if let Some(node) = node_bytes_per_s {
            parameter("rate of a node, R_N", "MB/s", node, 1e-6, Good::More);
        }
        if let Some(pairs) = saturating_pairs {
            let (group, name) = (group.to_owned(), "pairs that fill a node".to_owned());
            let (value, unit) = (*pairs, "");
            all.push(Figure { group, name, unit, value, interval: None, freedom: None, good: Good::Neither });
        }
    }
    let Some(&bytes) = result.sizes().last() else { return all };
    for pairs in result.pairs() {
        let seen = result.observations.iter().filter(|seen| (seen.pairs, seen.bytes) == (pairs, bytes));
        let rates: Vec<f64> = seen.map(|seen| seen.rate() * 1e-6).collect();
        // The mean that Student's t on logarithms is about, not a median beside it.
        let Some(spread) = Spread::of(&rates) else { continue };
        let group = format!("Measured aggregate rate, geometric mean, {}", tailback_transport::Bytes(bytes as u64));
        let name = plural(pairs, "pair");
        let (value, interval, freedom) = (spread.factor, spread.interval, Some(rates.len() as f64 - 1.0));
        all.push(Figure { group, name, unit: "MB/s", value, interval, freedom, good: Good::More });
    }
    all.extend(result.spans().iter().filter_map(slowest));
    all
}

/// What the worst two nodes do, of what was measured: a model's parameters have their own group.
fn slowest(span: &Span) -> Option<Figure> {
    let (good, value) = match span.kind {
        Kind::Time => (Good::Less, span.most.0),
        Kind::Rate => (Good::More, span.least.0),
        Kind::Parameter => return None,
    };
    let way = if span.both { ", both ways at once" } else { "" };
    let (group, name) = (format!("The slowest pair of nodes{way}"), span.figure.clone());
    Some(Figure { group, name, unit: span.unit, value, interval: None, freedom: None, good })
}

fn contention(result: &ContentionResult) -> Vec<Figure> {
    let mut all = Vec::new();
    for graph in &result.graphs {
        let group = format!("Contention graph {}", graph.name);
        let mut figure = |name: String, unit, value, interval| {
            let group = group.clone();
            all.push(Figure { group, name, unit, value, interval, freedom: None, good: Good::Less });
        };
        let ms = |interval: Interval| Interval { low: 1e3 * interval.low, high: 1e3 * interval.high };
        let interval = graph.reference_interval.map(ms);
        figure("time without contention, T_ref".into(), "ms", 1e3 * graph.reference_s, interval);
        for (at, edge) in graph.edges.iter().enumerate() {
            let (source, destination) = (&edge.source, &edge.destination);
            let same =
                |other: &&crate::result::EdgeResult| (&other.source, &other.destination) == (source, destination);
            let twins = graph.edges[..at].iter().filter(same).count();
            let number = if twins > 0 { format!(" #{}", twins + 1) } else { String::new() };
            if let Some(seconds) = edge.measured_s {
                let (name, multiple) =
                    (format!("{source}>{destination}{number}, measured"), seconds / graph.reference_s);
                figure(name, "T_ref", multiple, edge.multiple_interval);
            }
        }
    }
    all
}

/// The congestors that a file measured, in the order of the registry.
pub(super) fn kinds(file: &ResultFile) -> Vec<Congestor> {
    let measured: Vec<Congestor> = file.runs.iter().flat_map(loads).map(|(_, load)| load.kernel).collect();
    Congestor::ALL.iter().copied().filter(|kernel| measured.contains(kernel)).collect()
}

/// What one kind did in every run.
pub(super) fn of_congestor(file: &ResultFile, kernel: Congestor) -> Vec<Figure> {
    let several = file.runs.len() > 1;
    let mut all = Vec::new();
    for run in &file.runs {
        for (state, load) in loads(run).filter(|(_, load)| load.kernel == kernel) {
            let group = if several { format!("{}: {state}", run.label()) } else { state };
            let mut figure = |name: &str, unit, value| {
                let (group, name) = (group.clone(), name.to_owned());
                all.push(Figure { group, name, unit, value, interval: None, freedom: None, good: Good::More });
            };
            figure("delivered by all its ranks", "MiB/s", load.delivered_mib_per_s);
            if load.ranks > 0 {
                figure("delivered by a rank", "MiB/s", load.delivered_mib_per_s / load.ranks as f64);
            }
            if let Some(summary) = &load.summary {
                figure("one iteration, p50", "MiB/s/rank", summary.percentiles.p50);
                figure("one iteration, p99", "MiB/s/rank", summary.percentiles.p99);
            }
        }
    }
    all
}

fn loads(run: &Run) -> impl Iterator<Item = (String, &CongestorLoad)> {
    let alone = run.congestors.iter().map(|load| ("Congestors alone".to_owned(), load));
    let beside = run.tests.iter().flat_map(|test| {
        let state = format!("While {} measured", test.kernel.info().key);
        test.load.iter().map(move |load| (state.clone(), load))
    });
    alone.chain(beside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::maxrate::{Observation, Settings};

    fn figure(value: f64, half: Option<f64>, good: Good) -> Figure {
        let interval = half.map(|half| Interval { low: value / half, high: value * half });
        Figure { group: "g".into(), name: "n".into(), unit: "u", value, interval, freedom: Some(4.0), good }
    }

    #[test]
    fn ratios_are_times_worse_and_judged_by_both_intervals() {
        let verdict = |a: Figure, b: Figure| {
            let row = rows(&[vec![a], vec![b]]).remove(0);
            (row.cells[1].ratio.map(|ratio| ratio.factor), row.cells[1].verdict)
        };
        let (ratio, found) = verdict(figure(10.0, Some(1.1), Good::More), figure(5.0, Some(1.1), Good::More));
        assert_eq!((ratio, found), (Some(2.0), Some(Verdict::Worse)));
        let (ratio, found) = verdict(figure(10.0, Some(1.1), Good::Less), figure(5.0, Some(1.1), Good::Less));
        assert_eq!((ratio, found), (Some(0.5), Some(Verdict::Better)));
        let (_, found) = verdict(figure(10.0, Some(2.0), Good::More), figure(5.0, Some(2.0), Good::More));
        assert_eq!(found, Some(Verdict::NotSignificant));
        let (_, found) = verdict(figure(10.0, None, Good::More), figure(5.0, Some(1.1), Good::More));
        assert_eq!(found, Some(Verdict::Unknown));
        assert_eq!(verdict(figure(10.0, None, Good::Neither), figure(5.0, None, Good::Neither)), (None, None));
    }

    #[test]
    fn many_figures_are_corrected_together() {
        // Apart by 1.2 times what one alone needs.
        let apart = (1.2 * 1.1f64.ln().hypot(1.1f64.ln())).exp();
        let side = |count: usize, value: f64| -> Vec<Figure> {
            let named = |at: usize| Figure { name: at.to_string(), ..figure(value, Some(1.1), Good::Less) };
            (0..count).map(named).collect()
        };
        let marked = |count: usize| {
            let found = rows(&[side(count, 1.0), side(count, apart)]);
            found.iter().filter(|row| row.cells[1].verdict == Some(Verdict::Worse)).count()
        };
        assert_eq!((marked(1), marked(10)), (1, 0));
    }

    fn rates(seconds: &[f64]) -> Vec<Figure> {
        let observations = seconds.iter().map(|&seconds| Observation { pairs: 2, bytes: 1_000_000, seconds });
        let settings = Settings { largest: 1_000_000, repetitions: seconds.len(), ..Settings::default() };
        let observations = observations.collect();
        maxrate(&MaxRateResult {
            settings,
            observations,
            took: None,
            regimes: Vec::new(),
            between: Vec::new(),
            thresholds: Vec::new(),
            halos: Vec::new(),
        })
    }

    #[test]
    fn measured_rates_are_geometric_means_with_students_interval_when_there_are_enough() {
        let found = rates(&[1.0, 2.0, 4.0]).remove(0);
        assert!((found.value - 1.0).abs() < 1e-9, "{found:?}");
        let half = 4.302_652_73 * 2f64.ln() / 3f64.sqrt();
        assert!((found.interval.unwrap().high.ln() / half - 1.0).abs() < 1e-6, "{found:?}");
        assert_eq!(rates(&[1.0, 2.0]).remove(0).interval, None);
        // Not 2.0 from some count on: t of 11 degrees of freedom is 2.201.
        let many = rates(&[1.0, 4.0].repeat(6)).remove(0);
        let half = 2.200_985_16 * (12f64 / 11.0).sqrt() * 2f64.ln() / 12f64.sqrt();
        assert!(((many.interval.unwrap().high / many.value).ln() / half - 1.0).abs() < 1e-6, "{many:?}");
    }
}
