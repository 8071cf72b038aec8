//! What ports of an emulated or simulated network and the nodes' own devices counted: violins over all that have a counter, with
//! median, mean and extremes, and the devices as dots. Of one file by phase; of all files by condition, on one scale.

use super::{Area, LINE, Plot, WIDTH, block, class_of, dot, label, line, lines};
use crate::analysis::{Condition, CounterSpread, RelativeCounter, beside_isolated};
use crate::lab::{PortCounters, PortKind};
use crate::result::{CountersRecord, PhaseCounters};
use crate::text::{Table, factor, figure};

const LEFT: f64 = 14.0;
const RIGHT: f64 = WIDTH - 20.0;
/// A row without its text, and from the end of that to the middle of its violin.
const ROW: f64 = 42.0;
const MIDDLE: f64 = 20.0;
/// Half the height of a violin.
const HALF: f64 = 15.0;
/// Points of an outline.
const POINTS: usize = 72;
/// Letters of a row's figures that fit a plot's width.
const LETTERS: usize = 58;

/// A counter of a port.
struct Counter {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Below this, values are drawn as good as zero.
    floor: f64,
    /// Whether more time means more of it.
    grows: bool,
    value: fn(&PortCounters) -> Option<f64>,
}

const fn port(
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    value: fn(&PortCounters) -> Option<f64>,
) -> Counter {
    Counter { key, title, unit, floor: 1.0, grows: true, value }
}

const COUNTERS: [Counter; 6] = [
    Counter { floor: 0.01, ..port("sent", "Sent by each port", "MiB", |port| Some(port.bytes as f64 / 1_048_576.0)) },
    port("drops", "Dropped at each port", "packets", |port| Some(port.queue.as_ref()?.drops as f64)),
    port("waits", "Waits of each port for its rate", "times", |port| Some(port.queue.as_ref()?.overlimits as f64)),
    port("stalled", "Time of each port without room at the other end", "us", |port| {
        Some(1e-3 * port.simulated?.stalled_ns as f64)
    }),
    port("marks", "Marked at each port", "packets", |port| Some(port.marks() as f64)),
    Counter {
        grows: false,
        ..port("queue", "Longest queue of each port", "KiB", |port| {
            Some(port.simulated?.longest_queue_bytes as f64 / 1024.0)
        })
    },
];

/// One plot for each counter of each kind of port that counted anything, a second where the phases' lengths are known.
pub fn ports(name: &str, phases: &[PhaseCounters], dots: usize) -> Vec<Plot> {
    let timed = phases.iter().all(|phase| phase.seconds.is_some_and(|seconds| seconds > 0.0));
    let plot = |(counter, kind): (&Counter, PortKind)| {
        let per_s = counter.grows && timed;
        let mut spreads: Vec<_> = phases.iter().map(|phase| phase.spread(kind, counter.value, per_s)).collect();
        beside_isolated(&mut spreads);
        let unit = if per_s { format!("{} per second", counter.unit) } else { counter.unit.to_owned() };
        let title = format!("{}, {name}", counter.title.replace("port", &format!("{} port", kind.word())));
        let rows = by_phase(spreads);
        Violins { id: ["ports", kind.word(), counter.key, name], title, unit, floor: counter.floor, rows, dots }.plot()
    };
    let all = COUNTERS.iter().flat_map(|counter| PortKind::ALL.map(|kind| (counter, kind)));
    all.filter_map(plot).collect()
}

/// One plot for each counter: quiet, wild and loaded jobs of all files on one scale.
pub fn conditions(counters: &[RelativeCounter], dots: usize) -> Vec<Plot> {
    let plot = |of: &RelativeCounter| {
        let counter = format!("{} {}", of.source, of.counter);
        let (unit, floor) = match of.quiet_per_s {
            Some(mean) => (format!("times the quiet mean of {} per second", label(mean)), RELATIVE_FLOOR),
            None => ("per second (nothing in the quiet state)".to_owned(), 1.0),
        };
        let class = |condition| match condition {
            Condition::Quiet => "calm",
            Condition::Wild => "wild",
            Condition::Loaded => "busy",
        };
        let rows = of.rows.iter().map(|row| Row {
            name: row.name.clone(),
            class: class(row.condition),
            spread: row.spread.clone(),
        });
        let title = format!("{counter}, by condition");
        Violins { id: ["conditions", &of.source, &of.counter, ""], title, unit, floor, rows: rows.collect(), dots }
            .plot()
    };
    counters.iter().filter_map(plot).collect()
}

/// Below this part of the quiet mean, values are drawn as good as zero.
const RELATIVE_FLOOR: f64 = 0.1;

/// A row for each phase.
fn by_phase(spreads: Vec<CounterSpread>) -> Vec<Row> {
    let row =
        |spread: CounterSpread| Row { name: spread.phase.to_string(), class: class_of(spread.phase.state), spread };
    spreads.into_iter().map(row).collect()
}

/// One plot for each of the `most` counters that rose most under load. What a single device counts needs no plot.
pub fn devices(name: &str, counters: &CountersRecord, (most, dots): (usize, usize)) -> Vec<Plot> {
    let plot = |(source, counter): (String, String)| {
        let (spreads, counter) = (counters.spreads(&source, &counter), format!("{source} {counter}"));
        let several = spreads.iter().any(|of| of.devices.len() > 1);
        let (id, title, unit) =
            (["counters", counter.as_str(), name, ""], format!("{counter}, {name}"), "per second".to_owned());
        several.then(|| Violins { id, title, unit, floor: 1.0, rows: by_phase(spreads), dots }.plot()).flatten()
    };
    counters.telling().into_iter().filter_map(plot).take(most).collect()
}

/// What a plot of violins shows.
struct Violins<'a> {
    /// Its name, part by part.
    id: [&'a str; 4],
    title: String,
    unit: String,
    /// Below this, values are drawn as good as zero.
    floor: f64,
    rows: Vec<Row>,
    /// At most so many devices of a row are drawn as such, those with the most first; all of them make the violin.
    dots: usize,
}

/// One violin.
struct Row {
    name: String,
    class: &'static str,
    spread: CounterSpread,
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

impl Violins<'_> {
    /// The plot, if anything was counted.
    fn plot(self) -> Option<Plot> {
        let most = self.rows.iter().filter_map(|of| Some(of.spread.most()?.1)).fold(0.0f64, f64::max);
        if most <= 0.0 {
            return None;
        }
        let axis = Axis { floor: self.floor, most };
        let heights = self.rows.iter().map(|row| ROW + LINE * words(row).concat().len() as f64);
        let area = Area { left: LEFT, right: RIGHT, top: 6.0, bottom: 6.0 + heights.clone().sum::<f64>() };
        let uprights = axis.ticks().into_iter().map(|tick| area.upright(axis.at(tick), &label(tick)));
        let mut body = uprights.collect::<String>() + &area.base();
        let (mut told, mut top) = (Vec::new(), 6.0);
        for (row, height) in self.rows.iter().zip(heights) {
            body += &self.violin(row, &axis, top);
            told.push(format!("{}: {}", row.name, figures(&row.spread, true)));
            top += height;
        }
        body += &area.title(30.0, &self.unit);
        let data = self.data();
        Some(Plot::new(&self.id, self.title, told.join("; "), area.bottom + 38.0, body, data))
    }

    /// The figures of every row, then the devices that are drawn.
    fn data(&self) -> Table {
        let rows = self.rows.iter().flat_map(|row| {
            let of = &row.spread;
            let extremes = [("minimum", of.least()), ("maximum", of.most())];
            let extremes =
                extremes.into_iter().filter_map(|(what, of)| of.map(|(name, value)| (what, name.as_str(), *value)));
            let devices = of.devices.iter().take(self.dots).map(|(name, value)| ("value", name.as_str(), *value));
            let figures = [("median", "", of.median), ("mean", "", of.mean), ("p95", "", of.p95)].into_iter();
            figures.chain(extremes).chain(devices).map(move |figure| (row.name.clone(), figure))
        });
        Table::of(rows)
            .column("phase", |(phase, _)| phase.clone())
            .column("statistic", |(_, (what, ..))| *what)
            .column("device", |(_, (_, device, _))| *device)
            .column(&self.unit, |(_, (.., value))| *value)
            .done()
    }

    fn violin(&self, row: &Row, axis: &Axis, top: f64) -> String {
        let Row { class, spread, .. } = row;
        let [name, said] = words(row);
        let below = top + 12.0 + LINE * name.len() as f64;
        let mut out = block(LEFT, top + 11.0, "start", "name", &name) + &block(LEFT, below, "start", "tick", &said);
        let (Some(least), Some(most)) = (spread.least(), spread.most()) else { return out };
        let middle = top + LINE * (name.len() + said.len()) as f64 + MIDDLE;
        let parts: Vec<f64> = spread.devices.iter().map(|of| axis.part(of.1)).collect();
        out += &outline(&parts, middle, class);
        let upright = |value: f64, half: f64, class: &str| {
            line((axis.at(value), middle - half), (axis.at(value), middle + half), class)
        };
        out += &line((axis.at(least.1), middle), (axis.at(most.1), middle), "whisker");
        out += &upright(least.1, HALF / 3.0, "whisker");
        out += &upright(most.1, HALF / 3.0, "whisker");
        out += &upright(spread.mean, HALF, &format!("mark {class}"));
        out += &upright(spread.median, HALF, "whisker");
        for (device, value) in spread.devices.iter().take(self.dots) {
            let title = format!("{device}, {}: {} {}", row.name, figure(*value), self.unit);
            out += &dot((axis.at(*value), middle), 2, class, &title);
        }
        out
    }
}

/// A row's name and its figures, in lines.
fn words(of: &Row) -> [Vec<String>; 2] {
    [lines(&of.name, LETTERS), lines(&figures(&of.spread, false), LETTERS)]
}

/// A row's figures; in words, with who counted most.
fn figures(of: &CounterSpread, words: bool) -> String {
    let (Some(least), Some(most)) = (of.least(), of.most()) else { return "nothing has it".into() };
    let times = of.times_isolated.map(|times| format!(" ({} idle)", factor(times))).unwrap_or_default();
    let [median, mean, p95, least, highest] = [of.median, of.mean, of.p95, least.1, most.1].map(figure);
    let range = match words {
        true => format!("minimum {least}, maximum {highest} at {}", most.0),
        false => format!("from {least} to {highest}"),
    };
    format!("median {median}, mean {mean}{times}, p95 {p95}, {range}")
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
    // Where hardly any device is, the outline would only look like a line.
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
