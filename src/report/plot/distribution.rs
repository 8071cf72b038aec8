//! Distributions of one test, isolated over loaded, on a log axis.

use hdrhistogram::Histogram;

use super::axis::LogAxis;
use super::{Plot, WIDTH, grid_across, line, text};
use crate::compare::Side;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::stats::{Direction, Statistic};
use crate::text::{escape, figure};

const BINS: usize = 56;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 168.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 16.0;

/// Shares of samples per bin, of the states that were measured.
struct Shares {
    class: &'static str,
    share: Vec<f64>,
    p99: Option<f64>,
}

/// The distribution of one canary on one side; nothing when no samples were kept.
pub fn distribution(side: &Side<'_>, kernel: Canary) -> Option<Plot> {
    let tests = side.sampled(kernel);
    let direction = tests.first()?.0.direction;
    let extremes = tests.iter().flat_map(|(_, samples)| [samples.min_nz(), samples.max()]);
    let (low, high) = extremes.fold((u64::MAX, 1), |(low, high), ns| (low.min(ns.max(1)), high.max(ns)));
    // A little air, so that the outermost bins are not cut at the frame.
    let (low, high) = (low as f64 / 1.05, high as f64 * 1.05);
    let ends = [direction.figure(low), direction.figure(high)];
    let axis = LogAxis::new(ends[0], ends[1], LEFT, RIGHT);
    let edges: Vec<f64> = (0..=BINS).map(|at| low * (high / low).powf(at as f64 / BINS as f64)).collect();
    let all: Vec<Shares> = tests
        .iter()
        .map(|(test, samples)| Shares {
            class: if test.phase == Phase::Isolated { "calm" } else { "busy" },
            share: shares(samples, low, high),
            p99: test.figure(Statistic::P99),
        })
        .collect();
    let peak = all.iter().flat_map(|of| &of.share).fold(0.0f64, |peak, &share| peak.max(share)).max(1e-9);
    let mut body = frame(&axis, peak, tests[0].0.unit.as_str());
    for of in &all {
        body += &area(of, &edges, direction, &axis, peak);
    }
    body += &targets(&all, &edges, direction, &axis, &tests[0].0.unit);
    let told = tests.iter().filter_map(|(test, _)| {
        let summary = test.summary.as_ref()?;
        let (p50, p99) = (figure(summary.p50), figure(summary.p99));
        Some(format!("{}: median {p50}, p99 {p99} {}", test.phase.word(), test.unit))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let title = format!("{}, {}", tests[0].0.title, side.label);
    Some(Plot::new(&["distribution", kernel.info().key, &side.label], title, told, BOTTOM + 40.0, body))
}

fn shares(samples: &Histogram<u64>, low: f64, high: f64) -> Vec<f64> {
    let mut share = vec![0.0; BINS];
    for bucket in samples.iter_recorded() {
        let part = (bucket.value_iterated_to() as f64 / low).ln() / (high / low).ln();
        let bin = ((part * BINS as f64) as usize).min(BINS - 1);
        share[bin] += bucket.count_at_value() as f64 / samples.len() as f64;
    }
    share
}

fn frame(axis: &LogAxis, peak: f64, unit: &str) -> String {
    let mut out = grid_across(axis, TOP, BOTTOM);
    for part in [0.5, 1.0] {
        let y = BOTTOM - part * (BOTTOM - TOP);
        out += &line((LEFT, y), (RIGHT, y), "grid");
        out += &text(LEFT - 5.0, y + 4.0, "end", "tick", &format!("{:.0}%", 100.0 * peak * part));
    }
    out += &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    out + &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", unit)
}

fn area(of: &Shares, edges: &[f64], direction: Direction, axis: &LogAxis, peak: f64) -> String {
    let x = |edge: usize| axis.at(direction.figure(edges[edge]));
    let y = |share: f64| BOTTOM - share / peak * (BOTTOM - TOP);
    let mut path = format!("M{:.1} {BOTTOM}", x(0));
    for (at, &share) in of.share.iter().enumerate() {
        path += &format!("V{:.1}H{:.1}", y(share), x(at + 1));
    }
    let mut out = format!("<path d=\"{path}V{BOTTOM}Z\" class=\"area {}\"/>", of.class);
    if let Some(p99) = of.p99 {
        let at = axis.at(p99);
        out += &line((at, TOP), (at, BOTTOM), &format!("mark {}", of.class));
        out += &text(at, TOP - 4.0, "middle", &format!("mark-name {}", of.class), "p99");
    }
    out
}

/// Invisible bars over the bins that hold something: what they hold is shown on hovering.
fn targets(all: &[Shares], edges: &[f64], direction: Direction, axis: &LogAxis, unit: &str) -> String {
    let mut out = String::new();
    for bin in (0..BINS).filter(|&bin| all.iter().any(|of| of.share[bin] > 0.0)) {
        let figures = [edges[bin], edges[bin + 1]].map(|edge| direction.figure(edge));
        let (low, high) = (figures[0].min(figures[1]), figures[0].max(figures[1]));
        let states = all.iter().map(|of| {
            let name = if of.class == "calm" { "isolated" } else { "loaded" };
            format!("{name} {:.2}%", 100.0 * of.share[bin])
        });
        let title = format!("{} to {} {unit}: {}", figure(low), figure(high), states.collect::<Vec<_>>().join(", "));
        let (x, width) = (axis.at(low), axis.at(high) - axis.at(low));
        out += &format!(
            "<rect x=\"{x:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{:.0}\" class=\"target\"><title>{}</title></rect>",
            BOTTOM - TOP,
            escape(&title)
        );
    }
    out
}
