//! The samples of one canary, idle and under load: how they spread, percentile by percentile, and, of an application,
//! every repetition.

use hdrhistogram::Histogram;

use super::{Area, LogAxis, Plot, WIDTH, class_of, dot, extent, line, polyline, text};
use crate::analysis::compare::Side;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::stats::{Direction, Statistic, quantile_ns};
use crate::text::{Table, escape, figure};

pub(super) const BINS: usize = 56;
const BINNED: Area = Area { left: 40.0, right: WIDTH - 16.0, top: 14.0, bottom: 168.0 };

/// Shares of samples per bin, of a state that was measured.
struct Shares {
    phase: LoadState,
    share: Vec<f64>,
    mean: Option<f64>,
    p99: Option<f64>,
}

/// Bins of equal width on a logarithmic scale, in ns.
pub(super) struct Binned {
    pub low: f64,
    pub high: f64,
    pub edges: Vec<f64>,
}

/// Bins that hold all of these samples.
pub(super) fn edges(all: impl Iterator<Item = Histogram<u64>>) -> Binned {
    let extremes = all.flat_map(|samples| [samples.min_nz(), samples.max()]);
    let (low, high) = extremes.fold((u64::MAX, 1), |(low, high), ns| (low.min(ns.max(1)), high.max(ns)));
    // A little air, so that the outermost bins are not cut at the frame.
    let (low, high) = (low as f64 / 1.05, high as f64 * 1.05);
    let edges = (0..=BINS).map(|at| low * (high / low).powf(at as f64 / BINS as f64)).collect();
    Binned { low, high, edges }
}

/// The distribution of one canary on one side; nothing when no samples were kept.
pub fn distribution(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    let tests = side.sampled(kernel);
    let (direction, unit) = (tests.first()?.0.direction, &tests[0].0.unit);
    let Binned { low, high, edges } = edges(tests.iter().map(|(_, samples)| samples.clone()));
    let axis = BINNED.across(direction.figure(low), direction.figure(high));
    let all: Vec<Shares> = tests
        .iter()
        .map(|(test, samples)| Shares {
            phase: test.phase,
            share: shares(samples, low, high),
            mean: test.figure(Statistic::Avg),
            p99: test.figure(Statistic::P99),
        })
        .collect();
    let peak = all.iter().flat_map(|of| &of.share).fold(0.0f64, |peak, &share| peak.max(share)).max(1e-9);
    let mut body = BINNED.uprights(&axis);
    for part in [0.5, 1.0] {
        body += &BINNED.level(BINNED.at(0.0, part).1, "grid", &format!("{:.0}%", 100.0 * peak * part));
    }
    body += &BINNED.base();
    body += &BINNED.title(31.0, unit);
    for of in &all {
        body += &outline(of, &edges, direction, &axis, peak);
    }
    body += &targets(&all, &edges, direction, &axis, unit);
    let told = tests.iter().filter_map(|(test, _)| {
        let summary = test.summary.as_ref()?;
        let [mean, p50, p99] = [summary.avg, summary.percentiles.p50, summary.percentiles.p99].map(figure);
        Some(format!("{}: mean {mean}, median {p50}, p99 {p99} {}", test.phase.word(), test.unit))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let title = format!("{}, {}", tests[0].0.title, side.label);
    let id = ["distribution", kernel.info().key, &side.label];
    let data = binned(&all, &edges, direction, unit);
    Some(Plot::new(&id, title, told, BINNED.bottom + 40.0, body, data))
}

/// A bin as figures, the lower one first.
pub(super) fn bounds(edges: &[f64], bin: usize, direction: Direction) -> (f64, f64) {
    let [one, other] = [edges[bin], edges[bin + 1]].map(|edge| direction.figure(edge));
    (one.min(other), one.max(other))
}

fn binned(all: &[Shares], edges: &[f64], direction: Direction, unit: &str) -> Table {
    Table::of(0..BINS)
        .column(format!("from {unit}"), |&bin| bounds(edges, bin, direction).0)
        .column(format!("to {unit}"), |&bin| bounds(edges, bin, direction).1)
        .columns(all, |table, of| table.column(format!("{} share", of.phase.word()), |&bin| of.share[bin]))
        .done()
}

pub(super) fn shares(samples: &Histogram<u64>, low: f64, high: f64) -> Vec<f64> {
    let mut share = vec![0.0; BINS];
    for bucket in samples.iter_recorded() {
        let part = (bucket.value_iterated_to() as f64 / low).ln() / (high / low).ln();
        let bin = ((part * BINS as f64) as usize).min(BINS - 1);
        share[bin] += bucket.count_at_value() as f64 / samples.len() as f64;
    }
    share
}

fn outline(of: &Shares, edges: &[f64], direction: Direction, axis: &LogAxis, peak: f64) -> String {
    let Area { top, bottom, .. } = BINNED;
    let class = class_of(Some(of.phase));
    let x = |edge: usize| axis.at(direction.figure(edges[edge]));
    let mut path = format!("M{:.1} {bottom}", x(0));
    for (at, &share) in of.share.iter().enumerate() {
        path += &format!("V{:.1}H{:.1}", BINNED.at(0.0, share / peak).1, x(at + 1));
    }
    let mut out = format!("<path d=\"{path}V{bottom}Z\" class=\"area {class}\"/>");
    for (value, name, style) in [(of.mean, "mean", "mean"), (of.p99, "p99", "mark")] {
        let Some(at) = value.map(|value| axis.at(value)) else { continue };
        out += &line((at, top), (at, bottom), &format!("{style} {class}"));
        out += &text(at, top - 4.0, "middle", &format!("mark-name {class}"), name);
    }
    out
}

/// Invisible bars over the bins that hold something: what they hold is shown on hovering.
fn targets(all: &[Shares], edges: &[f64], direction: Direction, axis: &LogAxis, unit: &str) -> String {
    let Area { top, bottom, .. } = BINNED;
    let mut out = String::new();
    for bin in (0..BINS).filter(|&bin| all.iter().any(|of| of.share[bin] > 0.0)) {
        let (low, high) = bounds(edges, bin, direction);
        let states = all.iter().map(|of| format!("{} {:.2}%", of.phase.word(), 100.0 * of.share[bin]));
        let title = format!("{} to {} {unit}: {}", figure(low), figure(high), states.collect::<Vec<_>>().join(", "));
        let (x, width) = (axis.at(low), axis.at(high) - axis.at(low));
        out += &format!(
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{:.0}\" class=\"target\"><title>{}</title></rect>",
            bottom - top,
            escape(&title)
        );
    }
    out
}

/// The figure that a share of the samples is at least as good as, with an axis that counts nines; nothing when no samples
/// were kept.
pub fn percentiles(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    /// Points on a decade of the nines axis.
    const POINTS: usize = 14;
    const AREA: Area = Area { left: 46.0, right: WIDTH - 26.0, top: 12.0, bottom: 180.0 };
    let tests = side.sampled(kernel);
    let first = tests.first()?.0;
    let most = tests.iter().map(|(_, samples)| samples.len()).max()?;
    let nines = (most as f64).log10().clamp(1.0, 6.0);
    let curves: Vec<(LoadState, Vec<(f64, f64)>)> = tests
        .iter()
        .map(|(test, samples)| {
            let own = (samples.len() as f64).log10().clamp(0.1, 6.0);
            let steps = (own * POINTS as f64) as usize + 1;
            let point = |step: usize| {
                let at = own * step as f64 / steps as f64;
                (at, test.direction.figure(quantile_ns(samples, 1.0 - 10f64.powf(-at)).max(1.0)))
            };
            (test.phase, (0..=steps).map(point).collect())
        })
        .collect();
    let (low, high) = extent(curves.iter().flat_map(|(_, points)| points.iter().map(|point| point.1)));
    let axis = AREA.up(low / 1.1, high * 1.1);
    let x = |nine: f64| AREA.at(nine / nines, 0.0).0;
    let mut body = AREA.levels(&axis);
    let named = [(0.0, "0%"), (0.301, "50%"), (1.0, "90%"), (2.0, "99%"), (3.0, "99.9%"), (4.0, "99.99%")];
    let more = [(5.0, "99.999%"), (6.0, "99.9999%")];
    // With many nines the first two labels would touch.
    let fits = |at: f64| at <= nines + 1e-9 && !(at == 0.301 && nines > 4.5);
    for (at, name) in named.into_iter().chain(more).filter(|(at, _)| fits(*at)) {
        body += &AREA.upright(x(at), name);
    }
    body += &AREA.base();
    let mut told = Vec::new();
    for (phase, points) in &curves {
        let (name, class) = (phase.word(), class_of(Some(*phase)));
        let place = |&(at, value): &(f64, f64)| (x(at), axis.at(value));
        body += &polyline(points.iter().map(place), class);
        for point in points.iter().step_by(2) {
            let title = format!("{name}, {}: {} {}", share(point.0), figure(point.1), first.unit);
            body += &dot(place(point), 3, class, &title);
        }
        let (from, to) = (figure(points.first()?.1), figure(points.last()?.1));
        told.push(format!("{name} from {from} to {to} {}", first.unit));
    }
    let of = format!("{}, by share of samples at least as good", first.unit);
    body += &text(AREA.left, AREA.bottom + 31.0, "start", "axis-title", &of);
    let title = format!("{}, {}", first.title, side.label);
    let id = ["percentiles", kernel.info().key, &side.label];
    let points = curves.iter().flat_map(|(phase, points)| points.iter().map(|point| (*phase, *point)));
    let data = Table::of(points)
        .column("state", |(phase, _)| phase.word())
        .column("share at least as good", |(_, (at, _))| 1.0 - 10f64.powf(-at))
        .column(&first.unit, |(_, (_, value))| *value)
        .done();
    Some(Plot::new(&id, title, told.join("; "), AREA.bottom + 38.0, body, data))
}

fn share(nines: f64) -> String {
    let text = format!("{:.4}", 100.0 * (1.0 - 10f64.powf(-nines)));
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Every repetition of an application as a dot, placement by placement, idle above and under load below; nothing for
/// kernels, which have distributions.
pub fn repetitions(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    const ROW: f64 = 24.0;
    let test = side.run.tests.iter().find(|test| test.kernel == kernel && kernel.is_application())?;
    let figures = |placement: usize, phase: LoadState| -> Vec<f64> {
        let of = side.run.placements[placement].test(kernel, phase);
        of.map_or_else(Vec::new, |test| test.blocks.iter().filter_map(|block| block.headline).collect())
    };
    let placements = side.run.placements.len();
    let all =
        (0..placements).flat_map(|at| [figures(at, LoadState::Isolated), figures(at, LoadState::Loaded)].concat());
    let (low, high) = extent(all);
    if !(low > 0.0 && high.is_finite() && high > 0.0) {
        return None;
    }
    let area = Area { left: 92.0, right: WIDTH - 16.0, top: 4.0, bottom: 8.0 + placements as f64 * ROW };
    let axis = area.across(low, high);
    let mut body = area.uprights(&axis);
    let mut rows = Vec::new();
    for at in 0..placements {
        let top = 8.0 + at as f64 * ROW;
        body += &text(area.left - 8.0, top + 13.0, "end", "tick", &format!("placement {}", at + 1));
        for (phase, y) in [(LoadState::Isolated, top + 5.0), (LoadState::Loaded, top + 14.0)] {
            for value in figures(at, phase) {
                let title = format!("placement {}, {}: {} {}", at + 1, phase.word(), figure(value), test.unit);
                body += &dot((axis.at(value), y), 4, class_of(Some(phase)), &title);
                rows.push((at + 1, phase, value));
            }
        }
    }
    body += &area.title(30.0, &test.unit);
    let title = format!("{}, {}", test.title, side.label);
    let told = format!("{placements} placements, figures from {} to {} {}", figure(low), figure(high), test.unit);
    let data = Table::of(rows)
        .column("placement", |(placement, ..)| *placement)
        .column("state", |(_, phase, _)| phase.word())
        .column(&test.unit, |(.., value)| *value)
        .done();
    Some(Plot::new(&["repetitions", kernel.info().key, &side.label], title, told, area.bottom + 38.0, body, data))
}
