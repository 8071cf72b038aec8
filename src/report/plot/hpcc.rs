//! HPC Challenge: its latencies and bandwidths as bars; over several systems, the paper's Kiviat diagram and its bars of
//! communication for computation.

use std::f64::consts::TAU;

use super::{Area, LINE, Plot, WIDTH, bar, block, escape, extent, line, lines, text};
use crate::models::beff::{Beff, Figure};
use crate::models::hpcc::{Good, Hpcc, name, ratios};
use crate::report::published::Balanced;
use crate::stats::Interval;
use crate::text::{Table, figure, within};

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
const LEFT: f64 = 8.0;

/// Systems on axes that end at the best of them; only of two or more does that say anything.
pub fn kiviat(systems: &[System<'_>]) -> Option<Plot> {
    let systems = &systems[..systems.len().min(MOST_SYSTEMS)];
    let merit = |found: &Hpcc, theirs: &str| {
        let value = found.figure(theirs).filter(|value| *value > 0.0)?;
        let less = name(theirs).is_some_and(|name| name.good == Good::Less);
        Some(if less { 1.0 / value } else { value })
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
    let (mut told, mut rows, mut y) = (Vec::new(), Vec::new(), 2.0 * MIDDLE.1 + 6.0);
    for (number, (label, found, _)) in systems.iter().enumerate() {
        let parts: Vec<f64> =
            axes.iter().zip(&best).map(|((_, theirs), best)| merit(found, theirs).unwrap_or(0.0) / best).collect();
        let shown: Vec<String> =
            axes.iter().zip(&parts).map(|((short, _), part)| format!("{short} {:.0}%", 100.0 * part)).collect();
        let title = format!("{label}: {}", shown.join(", "));
        let corners = parts.iter().enumerate().map(|(axis, part)| point(axis, *part));
        body += &polygon(corners, &format!("curve line{number}"), &title);
        let label_lines = lines(label, 60);
        body += &block(LEFT, y, "start", &format!("text{number}"), &label_lines);
        y += 4.0 + LINE * label_lines.len() as f64;
        told.push(title);
        let own = axes.iter().zip(&parts).map(|((_, theirs), part)| (label, *theirs, found.figure(theirs), *part));
        rows.extend(own);
    }
    let data = Table::of(rows)
        .column("system", |(label, ..)| *label)
        .column("figure", |(_, theirs, ..)| *theirs)
        .column("value", |(_, _, value, _)| *value)
        .column("part of the best", |(.., part)| *part)
        .done();
    let height = y - 6.0;
    let title = "HPC Challenge: part of the best of these systems on every axis".to_owned();
    Some(Plot::new(&["hpcc", "kiviat"], title, told.join("; "), height, body, data))
}

fn polygon(corners: impl Iterator<Item = (f64, f64)>, class: &str, title: &str) -> String {
    let points: Vec<String> = corners.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
    format!("<polygon points=\"{}\" fill=\"none\" class=\"{class}\">{title}</polygon>", points.join(" "))
}

/// Random-ring bandwidth for HPL's rate, a bar a system, beside those of the paper's table.
pub fn balance(systems: &[System<'_>], published: &[Balanced]) -> Option<Plot> {
    const WHAT: &str = "random rings / HPL";
    let row = |label: String, value: f64, class: &'static str| {
        let title = format!("{label}: {} byte/kflop", figure(value));
        Row { name: label, value, interval: None, class, told: title.clone(), title }
    };
    let own = |(label, found, ranks): &System<'_>| {
        let ratio = ratios(found, *ranks).into_iter().find(|ratio| ratio.name == WHAT && ratio.value > 0.0)?;
        Some(row(label.clone(), ratio.value, "own"))
    };
    let mut rows: Vec<Row> = systems.iter().filter_map(own).collect();
    if rows.is_empty() {
        return None;
    }
    rows.extend(published.iter().map(|system| row(system.label(), system.byte_per_kflop, "published")));
    let title = "Balance: bytes in random rings for 1000 operations of HPL".to_owned();
    bars(&["hpcc", "balance"], title, "byte/kflop", &rows)
}

/// Latencies, and bandwidths.
pub fn beff(name: &str, result: &Beff) -> Vec<Plot> {
    let plot = |(what, unit, class): (&str, &str, &'static str)| {
        let row = |Figure { ours, theirs, value, interval }: Figure| {
            let name = ours.rsplit_once(", ").map_or(ours, |(short, _)| short).to_owned();
            let shown = within(value, interval, figure);
            let (title, told) = (format!("{name} ({theirs}): {shown} {unit}"), format!("{name} {shown} {unit}"));
            Row { name, value, interval, class, title, told }
        };
        let figures = result.figures().into_iter().filter(|figure| figure.ours.ends_with(unit));
        let rows: Vec<Row> = figures.map(row).collect();
        bars(&["beff", what, name], format!("HPC Challenge {what}, {name}"), unit, &rows)
    };
    [("latency", "us", "role2"), ("bandwidth", "GB/s", "role0")].into_iter().filter_map(plot).collect()
}

/// A bar with its name above it.
struct Row {
    name: String,
    value: f64,
    interval: Option<Interval>,
    class: &'static str,
    title: String,
    told: String,
}

/// Bars on a logarithmic axis; a value that it does not have leaves a gap.
fn bars(id: &[&str], title: String, unit: &str, rows: &[Row]) -> Option<Plot> {
    /// A bar and what is below it.
    const HEIGHT: f64 = 21.0;
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    let (low, high) = extent(rows.iter().map(|of| of.value).filter(usable));
    if high <= 0.0 {
        return None;
    }
    let names: Vec<Vec<String>> = rows.iter().map(|row| lines(&row.name, 60)).collect();
    let height = |name: &Vec<String>| HEIGHT + LINE * name.len() as f64;
    let area = Area { left: LEFT, right: WIDTH - 70.0, top: 4.0, bottom: 6.0 + names.iter().map(height).sum::<f64>() };
    let axis = area.across(low / 2.0, high);
    let mut body = area.uprights(&axis);
    let (mut told, mut next) = (Vec::new(), 6.0);
    for (Row { value, interval, class, title, told: said, .. }, name) in rows.iter().zip(&names) {
        let top = next;
        next += height(name);
        if !usable(value) {
            continue;
        }
        body += &block(LEFT, top + 11.0, "start", "name", name);
        let (y, mut end) = (top + LINE * name.len() as f64 - 13.0, axis.at(*value));
        body += &bar(LEFT, y + 15.0, end - LEFT, 12.0, class, title);
        if let Some(interval) = interval.filter(|of| usable(&of.low) && usable(&of.high)) {
            // Bounds off the axis end at its edge: the table has them.
            let [low, high] = [interval.low, interval.high].map(|bound| axis.at(bound).clamp(LEFT, area.right));
            body += &line((low, y + 21.0), (high, y + 21.0), "whisker");
            end = end.max(high);
        }
        body += &text(end + 5.0, y + 25.0, "start", "value", &figure(*value));
        told.push(said.as_str());
    }
    body += &area.title(30.0, unit);
    let data = Table::of(rows)
        .column("name", |row| row.name.clone())
        .column(unit, |row| row.value)
        .column("low", |row| row.interval.map(|of| of.low))
        .column("high", |row| row.interval.map(|of| of.high))
        .done();
    Some(Plot::new(id, title, told.join("; "), area.bottom + 38.0, body, data))
}
