//! HPC Challenge over several systems: the paper's Kiviat diagram, and its bars of communication for computation.

use std::f64::consts::TAU;

use super::axis::LogAxis;
use super::{Plot, WIDTH, bar, escape, extent, fit, grid_across, line, text};
use crate::models::hpcc::{Hpcc, name, ratios};
use crate::report::published::Balanced;
use crate::text::figure;

/// A file's name, what it found, and on how many ranks.
pub type System<'a> = (String, &'a Hpcc, usize);

/// The eight axes of the diagram on HPCC's own pages.
const AXES: [(&str, &str); 8] = [
    ("HPL", "HPL_Tflops"),
    ("PTRANS", "PTRANS_GBs"),
    ("RandomAccess", "MPIRandomAccess_GUPs"),
    ("FFT", "MPIFFT_Gflops"),
    ("STREAM", "StarSTREAM_Triad"),
    ("DGEMM", "StarDGEMM_Gflops"),
    ("ring bandwidth", "RandomlyOrderedRingBandwidth_GBytes"),
    ("ring latency", "RandomlyOrderedRingLatency_usec"),
];
const RADIUS: f64 = 130.0;
const MIDDLE: (f64, f64) = (WIDTH / 2.0, 165.0);
/// There are as many colours of lines.
const MOST_SYSTEMS: usize = 5;
const ROW: f64 = 34.0;
const RIGHT: f64 = WIDTH - 70.0;
const LEFT: f64 = 8.0;

/// Systems on axes that end at the best of them; only of two or more does that say anything.
pub fn kiviat(systems: &[System<'_>]) -> Option<Plot> {
    let systems = &systems[..systems.len().min(MOST_SYSTEMS)];
    let merit = |found: &Hpcc, theirs: &str| {
        let value = found.figure(theirs).filter(|value| *value > 0.0)?;
        Some(if name(theirs).is_some_and(|name| name.good == crate::models::hpcc::Good::Less) {
            1.0 / value
        } else {
            value
        })
    };
    let shared = |(_, theirs): &&(&str, &str)| systems.iter().all(|(_, found, _)| merit(found, theirs).is_some());
    let axes: Vec<&(&str, &str)> = AXES.iter().filter(shared).collect();
    if systems.len() < 2 || axes.len() < 3 {
        return None;
    }
    let point = |axis: usize, part: f64| {
        let angle = TAU * axis as f64 / axes.len() as f64 - TAU / 4.0;
        (MIDDLE.0 + part * RADIUS * angle.cos(), MIDDLE.1 + part * RADIUS * angle.sin())
    };
    let mut body = String::new();
    for ring in [0.25, 0.5, 0.75, 1.0] {
        body += &polygon((0..axes.len()).map(|axis| point(axis, ring)), "grid", "");
    }
    for (at, (short, _)) in axes.iter().enumerate() {
        body += &line(MIDDLE, point(at, 1.0), "grid");
        let (x, y) = point(at, 1.1);
        let anchor = if (x - MIDDLE.0).abs() < 20.0 {
            "middle"
        } else if x < MIDDLE.0 {
            "end"
        } else {
            "start"
        };
        body += &text(x, y + 4.0, anchor, "tick", short);
    }
    let best: Vec<f64> = axes
        .iter()
        .map(|(_, theirs)| systems.iter().filter_map(|(_, found, _)| merit(found, theirs)).fold(0.0, f64::max))
        .collect();
    let mut told = Vec::new();
    for (number, (label, found, _)) in systems.iter().enumerate() {
        let parts: Vec<f64> =
            axes.iter().zip(&best).map(|((_, theirs), best)| merit(found, theirs).unwrap_or(0.0) / best).collect();
        let shown: Vec<String> =
            axes.iter().zip(&parts).map(|((short, _), part)| format!("{short} {:.0}%", 100.0 * part)).collect();
        let title = format!("{label}: {}", shown.join(", "));
        let corners = parts.iter().enumerate().map(|(axis, part)| point(axis, *part));
        body += &polygon(corners, &format!("curve line{number}"), &title);
        let y = 2.0 * MIDDLE.1 + 6.0 + 17.0 * number as f64;
        body += &text(LEFT, y, "start", &format!("text{number}"), &fit(label, 60));
        told.push(title);
    }
    let height = 2.0 * MIDDLE.1 + 17.0 * systems.len() as f64;
    let title = "HPC Challenge: part of the best of these systems on every axis".to_owned();
    Some(Plot::new(&["hpcc", "kiviat"], title, told.join("; "), height, body))
}

fn polygon(corners: impl Iterator<Item = (f64, f64)>, class: &str, title: &str) -> String {
    let points: Vec<String> = corners.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
    format!("<polygon points=\"{}\" fill=\"none\" class=\"{class}\">{title}</polygon>", points.join(" "))
}

/// Random-ring bandwidth for HPL's rate, a bar a system, beside those of the paper's table.
pub fn balance(systems: &[System<'_>], published: &[Balanced]) -> Option<Plot> {
    const WHAT: &str = "random rings / HPL";
    let own = |(label, found, ranks): &System<'_>| {
        let ratio = ratios(found, *ranks).into_iter().find(|ratio| ratio.name == WHAT)?;
        Some((label.clone(), ratio.value, "own"))
    };
    let mut bars: Vec<(String, f64, &str)> =
        systems.iter().filter_map(own).filter(|(_, value, _)| *value > 0.0).collect();
    if bars.is_empty() {
        return None;
    }
    bars.extend(published.iter().map(|system| (system.label(), system.byte_per_kflop, "published")));
    let (low, high) = extent(bars.iter().map(|(_, value, _)| *value));
    let axis = LogAxis::new(low / 2.0, high, LEFT, RIGHT);
    let bottom = 6.0 + bars.len() as f64 * ROW;
    let mut body = grid_across(&axis, 4.0, bottom);
    let mut told = Vec::new();
    for (at, (label, value, class)) in bars.iter().enumerate() {
        let y = 6.0 + at as f64 * ROW;
        let shown = format!("{label}: {} byte/kflop", figure(*value));
        body += &text(LEFT, y + 11.0, "start", "name", &fit(label, 58));
        body += &bar(LEFT, y + 15.0, axis.at(*value) - LEFT, 12.0, class, &shown);
        body += &text(axis.at(*value) + 5.0, y + 25.0, "start", "value", &figure(*value));
        told.push(shown);
    }
    body += &text((LEFT + RIGHT) / 2.0, bottom + 30.0, "middle", "axis-title", "byte/kflop");
    let title = "Balance: bytes in random rings for 1000 operations of HPL".to_owned();
    Some(Plot::new(&["hpcc", "balance"], title, told.join("; "), bottom + 38.0, body))
}
