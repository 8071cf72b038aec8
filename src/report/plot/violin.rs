//! What the ports of an emulated or simulated network did in each phase: a violin per phase, over all ports, with the ports as dots.

use super::axis::label;
use super::{Plot, WIDTH, escape, fit, line, text};
use crate::engine::Phase;
use crate::lab::PortCounters;
use crate::result::PhaseCounters;
use crate::text::figure;

const LEFT: f64 = 14.0;
const RIGHT: f64 = WIDTH - 20.0;
const ROW: f64 = 52.0;
/// Half the height of a violin.
const HALF: f64 = 15.0;
/// Points of an outline.
const POINTS: usize = 72;
/// A counter of a port.
struct Counter {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Below this, values are drawn as good as zero.
    floor: f64,
    value: fn(&PortCounters) -> Option<f64>,
}

const COUNTERS: [Counter; 5] = [
    Counter {
        key: "sent",
        title: "Sent by each port",
        unit: "MiB",
        floor: 0.01,
        value: |port| Some(port.bytes as f64 / 1_048_576.0),
    },
    Counter {
        key: "drops",
        title: "Dropped at each port",
        unit: "packets",
        floor: 1.0,
        value: |port| port.queue.as_ref().map(|queue| queue.drops as f64),
    },
    Counter {
        key: "waits",
        title: "Waits of each port for its rate",
        unit: "times",
        floor: 1.0,
        value: |port| port.queue.as_ref().map(|queue| queue.overlimits as f64),
    },
    Counter {
        key: "stalled",
        title: "Time of each port without room at the other end",
        unit: "us",
        floor: 1.0,
        value: |port| port.simulated.map(|of| 1e-3 * of.stalled_ns as f64),
    },
    Counter {
        key: "queue",
        title: "Longest queue of each port",
        unit: "KiB",
        floor: 1.0,
        value: |port| port.simulated.map(|of| of.longest_queue_bytes as f64 / 1024.0),
    },
];

/// One plot for each counter that counted anything. At most `dots` ports of a phase are drawn as such, those with the
/// most first; all of them make the violin.
pub fn counters(name: &str, phases: &[PhaseCounters], dots: usize) -> Vec<Plot> {
    COUNTERS.iter().filter_map(|counter| violins(name, phases, counter, dots)).collect()
}

/// A logarithmic axis that begins at zero.
struct Axis {
    floor: f64,
    most: f64,
}

impl Axis {
    /// From 0 to 1.
    fn part(&self, value: f64) -> f64 {
        (value / self.floor).ln_1p() / (self.most / self.floor).ln_1p()
    }

    fn at(&self, value: f64) -> f64 {
        LEFT + self.part(value) * (RIGHT - LEFT)
    }

    fn ticks(&self) -> Vec<f64> {
        let decades = (0..16).map(|decade| self.floor * 10f64.powi(decade)).filter(|tick| *tick >= 10.0 * self.floor);
        let inside: Vec<f64> = decades.take_while(|tick| *tick <= self.most * 1.001).collect();
        let every = inside.len().div_ceil(6).max(1);
        [0.0].into_iter().chain(inside.into_iter().step_by(every)).collect()
    }
}

fn violins(name: &str, phases: &[PhaseCounters], counter: &Counter, dots: usize) -> Option<Plot> {
    let values = |phase: &PhaseCounters| -> Vec<(String, f64)> {
        let port = |port: &PortCounters| Some((format!("{} to {}", port.from, port.to), (counter.value)(port)?));
        phase.ports.iter().filter_map(port).collect()
    };
    let all: Vec<(&PhaseCounters, Vec<(String, f64)>)> = phases.iter().map(|phase| (phase, values(phase))).collect();
    let most = all.iter().flat_map(|(_, ports)| ports.iter().map(|port| port.1)).fold(0.0f64, f64::max);
    if most <= 0.0 {
        return None;
    }
    let axis = Axis { floor: counter.floor, most };
    let bottom = 6.0 + all.len() as f64 * ROW;
    let mut body = String::new();
    for tick in axis.ticks() {
        body += &line((axis.at(tick), 6.0), (axis.at(tick), bottom), "grid");
        body += &text(axis.at(tick), bottom + 14.0, "middle", "tick", &label(tick));
    }
    body += &line((LEFT, bottom), (RIGHT, bottom), "axis");
    let mut told = Vec::new();
    for (at, (phase, ports)) in all.iter().enumerate() {
        let (drawn, said) = violin(phase, ports, (counter, dots), &axis, 6.0 + at as f64 * ROW);
        body += &drawn;
        told.push(said);
    }
    let title = format!("{}, {name}", counter.title);
    body += &text((LEFT + RIGHT) / 2.0, bottom + 30.0, "middle", "axis-title", counter.unit);
    Some(Plot::new(&["ports", counter.key, name], title, told.join("; "), bottom + 38.0, body))
}

fn violin(
    phase: &PhaseCounters,
    ports: &[(String, f64)],
    (counter, dots): (&Counter, usize),
    axis: &Axis,
    top: f64,
) -> (String, String) {
    let class = if phase.phase.contains(Phase::Isolated.word()) { "calm" } else { "busy" };
    let mut out = text(LEFT, top + 11.0, "start", "name", &fit(&phase.phase, 60));
    let mut sorted: Vec<&(String, f64)> = ports.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    if sorted.is_empty() {
        return (out, format!("{}: no port has it", phase.phase));
    }
    let median = (sorted[(sorted.len() - 1) / 2].1 + sorted[sorted.len() / 2].1) / 2.0;
    let middle = top + 20.0 + HALF;
    out += &outline(&sorted.iter().map(|port| axis.part(port.1)).collect::<Vec<_>>(), middle, class);
    let at = axis.at(median);
    out += &line((at, middle - HALF), (at, middle + HALF), &format!("mark {class}"));
    for (port, value) in sorted.iter().take(dots) {
        let title = format!("{port}, {}: {} {}", phase.phase, figure(*value), counter.unit);
        out += &format!(
            "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"2.5\" class=\"dot {class}\"><title>{}</title></circle>",
            axis.at(*value),
            escape(&title)
        );
    }
    let worst = sorted[0];
    let told = format!(
        "{}: median {} {unit}, most {} {unit} at {}",
        phase.phase,
        figure(median),
        figure(worst.1),
        worst.0,
        unit = counter.unit
    );
    (out, told)
}

/// The density of `parts`, mirrored, by a Gaussian kernel of Silverman's width.
fn outline(parts: &[f64], middle: f64, class: &str) -> String {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let deviation = (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / count).sqrt();
    let width = (1.06 * deviation * count.powf(-0.2)).max(0.012);
    let density = |at: f64| parts.iter().map(|part| (-((at - part) / width).powi(2) / 2.0).exp()).sum::<f64>();
    let places: Vec<f64> = (0..=POINTS).map(|point| point as f64 / POINTS as f64).collect();
    let heights: Vec<f64> = places.iter().map(|&at| density(at)).collect();
    let peak = heights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let x = |at: f64| LEFT + at * (RIGHT - LEFT);
    // Where hardly any port is, the outline would only look like a line.
    let shown: Vec<(f64, f64)> = places
        .iter()
        .zip(&heights)
        .map(|(&at, height)| (x(at), height / peak * HALF))
        .filter(|of| of.1 > 0.15)
        .collect();
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return String::new() };
    let mut path = format!("M{:.1} {middle:.1}", first.0);
    for (x, height) in &shown {
        path += &format!("L{x:.1} {:.1}", middle - height);
    }
    path += &format!("L{:.1} {middle:.1}", last.0);
    for (x, height) in shown.iter().rev() {
        path += &format!("L{x:.1} {:.1}", middle + height);
    }
    format!("<path d=\"{path}Z\" class=\"area {class}\"/>")
}
