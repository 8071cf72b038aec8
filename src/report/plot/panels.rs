//! The samples of one canary in all runs on one axis, as figures 1 to 7 of the GPCNeT paper have them: a panel for each state, or
//! for each load that the canary was measured beside, and the runs overlaid in it, with mean and 99th percentile.

use super::samples::{BINS, Binned, bounds, edges, shares};
use super::{Area, LINE, LogAxis, Plot, WIDTH, block, line, lines, polyline, text};
use crate::analysis::compare::Side;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::distinct;
use crate::stats::{Direction, Statistic};
use crate::text::{Table, escape, figure};

/// Runs that are overlaid at most: as many as there are colours that can be told apart.
const MOST: usize = 6;
const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 16.0;
/// The height of a panel, and of what is above it.
const PANEL: f64 = 72.0;
const HEAD: f64 = 22.0;
/// Letters that fit beside each other.
const LETTERS: usize = 60;

/// One run's samples in one panel.
struct Overlaid {
    panel: String,
    run: String,
    share: Vec<f64>,
    mean: Option<f64>,
    p99: Option<f64>,
}

/// What the samples of some runs have in common.
struct Common<'a> {
    title: &'a str,
    unit: &'a str,
    direction: Direction,
    edges: Vec<f64>,
    axis: LogAxis,
}

/// A plot for every few runs; nothing of a single run, which has a plot of its own.
pub fn panels(sides: &[Side<'_>], kernel: Canary) -> Vec<Plot> {
    let sampled: Vec<&Side<'_>> = sides.iter().filter(|side| !side.sampled(kernel).is_empty()).collect();
    if sampled.len() < 2 {
        return Vec::new();
    }
    let binned = edges(sampled.iter().flat_map(|side| side.sampled(kernel)).map(|(_, samples)| samples));
    // Loads of one job have a panel each; other runs share theirs.
    let beside = sampled.iter().any(|side| side.run.beside.is_some());
    let each = if beside { sampled.len() } else { MOST };
    let chunks: Vec<&[&Side<'_>]> = sampled.chunks(each).collect();
    let several = chunks.len() > 1;
    let draw = |(at, chunk): (usize, &&[&Side<'_>])| plot(chunk, kernel, &binned, several.then_some(at + 1));
    chunks.iter().enumerate().filter_map(draw).collect()
}

fn plot(sides: &[&Side<'_>], kernel: Canary, edges: &Binned, number: Option<usize>) -> Option<Plot> {
    let first = sides.first()?.sampled(kernel).into_iter().next()?.0;
    let area = Area { left: LEFT, right: RIGHT, top: 0.0, bottom: 0.0 };
    let direction = first.direction;
    let axis = area.across(direction.figure(edges.low), direction.figure(edges.high));
    let of = Common { title: &first.title, unit: &first.unit, direction, edges: edges.edges.clone(), axis };
    let all = overlaid(sides, kernel, edges);
    let runs = distinct(all.iter().map(|of| of.run.clone()));
    let panels = distinct(all.iter().map(|of| of.panel.clone()));
    let mut body = String::new();
    let mut top = 2.0;
    if runs.len() > 1 {
        for (at, run) in runs.iter().enumerate() {
            let words = lines(run, LETTERS);
            body += &line((LEFT, top + 7.0), (LEFT + 18.0, top + 7.0), &format!("curve line{at}"));
            body += &block(LEFT + 24.0, top + 11.0, "start", &format!("tick text{at}"), &words);
            top += LINE * words.len() as f64 + 2.0;
        }
    }
    for panel in &panels {
        let those: Vec<&Overlaid> = all.iter().filter(|of| of.panel == *panel).collect();
        let area = Area { top: top + HEAD, bottom: top + HEAD + PANEL, ..area };
        body += &of.panel(panel, &those, &runs, &area);
        top = area.bottom;
    }
    let last = Area { top, bottom: top, ..area };
    let ticks = of.axis.ticks();
    body += &ticks.iter().map(|tick| last.below(of.axis.at(*tick), &super::label(*tick))).collect::<String>();
    body += &last.title(31.0, of.unit);
    let told = all.iter().map(|line| {
        let [mean, p99] = [line.mean, line.p99].map(|of| of.map_or_else(|| "unknown".into(), figure));
        format!("{}, {}: mean {mean}, p99 {p99} {}", line.panel, line.run, of.unit)
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let (title, key) = (format!("{}, all runs", of.title), kernel.info().key);
    let part = number.map(|number| number.to_string()).unwrap_or_default();
    let title = if part.is_empty() { title } else { format!("{title}, part {part}") };
    let data = of.data(&all);
    Some(Plot::new(&["distribution", key, "all runs", &part], title, told, top + 40.0, body, data))
}

/// Which panel each of the samples is in, and under which name.
fn overlaid(sides: &[&Side<'_>], kernel: Canary, edges: &Binned) -> Vec<Overlaid> {
    let networks = distinct(sides.iter().map(|side| side.run.transport.label()));
    let per_port = distinct(sides.iter().map(|side| side.file.ranks_per_port().map(f64::to_bits)));
    // Jobs that differ in their ranks per port are told apart by them, as in the paper; of equal ones, by their names.
    let by_port = per_port.len() == sides.len().div_ceil(networks.len()) && !per_port.contains(&None);
    let mut all: Vec<Overlaid> = Vec::new();
    for side in sides {
        let network = side.run.transport.label();
        let of_network = if networks.len() > 1 { format!(", {network}") } else { String::new() };
        let run = match side.file.ranks_per_port() {
            Some(ranks) if by_port && per_port.len() > 1 => {
                format!("{} ranks per port", figure(ranks).trim_end_matches('0').trim_end_matches('.'))
            }
            _ => side.label.clone(),
        };
        for (test, samples) in side.sampled(kernel) {
            let load = side.run.beside.as_deref().filter(|_| test.phase == LoadState::Loaded);
            let (panel, run) = match (load, &side.run.beside) {
                (Some(load), _) => (format!("loaded by {load}{of_network}"), String::new()),
                (None, Some(_)) => (format!("{}{of_network}", test.phase.word()), String::new()),
                (None, None) => (format!("{}{of_network}", test.phase.word()), run.clone()),
            };
            // The idle state of the first load stands for those of the others.
            if side.run.beside.is_some() && all.iter().any(|of| of.panel == panel) {
                continue;
            }
            let share = shares(&samples, edges.low, edges.high);
            let (mean, p99) = (test.figure(Statistic::Avg), test.figure(Statistic::P99));
            all.push(Overlaid { panel, run, share, mean, p99 });
        }
    }
    // Idle panels above the others, network by network.
    let order = distinct(all.iter().map(|of| of.panel.clone()));
    all.sort_by_key(|of| order.iter().position(|panel| *panel == of.panel));
    all
}

impl Common<'_> {
    fn panel(&self, title: &str, those: &[&Overlaid], runs: &[String], area: &Area) -> String {
        let peak = those.iter().flat_map(|of| &of.share).fold(1e-9f64, |peak, &share| peak.max(share));
        let mut out = text(area.left, area.top - 8.0, "start", "name", title);
        for tick in self.axis.ticks() {
            out += &line((self.axis.at(tick), area.top), (self.axis.at(tick), area.bottom), "grid");
        }
        out += &area.level(area.top, "grid", &format!("{:.0}%", 100.0 * peak));
        out += &area.base();
        for of in those {
            let colour = runs.iter().position(|run| *run == of.run).unwrap_or(0);
            let points = (0..BINS).flat_map(|bin| {
                let y = area.at(0.0, of.share[bin] / peak).1;
                [bin, bin + 1].map(|edge| (self.axis.at(self.direction.figure(self.edges[edge])), y))
            });
            out += &polyline(points, &format!("line{colour}"));
            for (value, class) in [(of.mean, "mean"), (of.p99, "mark")] {
                if let Some(x) = value.map(|value| self.axis.at(value)) {
                    out += &line((x, area.top), (x, area.bottom), &format!("{class} line{colour}"));
                }
            }
        }
        out + &self.targets(those, area)
    }

    /// Invisible bars over the bins that hold something: what they hold is shown on hovering.
    fn targets(&self, those: &[&Overlaid], area: &Area) -> String {
        let mut out = String::new();
        for bin in (0..BINS).filter(|&bin| those.iter().any(|of| of.share[bin] > 0.0)) {
            let (low, high) = bounds(&self.edges, bin, self.direction);
            let each = those.iter().map(|of| format!("{} {:.2}%", of.run, 100.0 * of.share[bin]).trim().to_owned());
            let each = each.collect::<Vec<_>>().join(", ");
            let title = format!("{} to {} {}: {each}", figure(low), figure(high), self.unit);
            let (x, width) = (self.axis.at(low), self.axis.at(high) - self.axis.at(low));
            out += &format!(
                "<rect x=\"{x:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"{PANEL:.0}\" class=\"target\"><title>{}</title></rect>",
                area.top,
                escape(&title)
            );
        }
        out
    }

    fn data(&self, all: &[Overlaid]) -> Table {
        let rows = all.iter().flat_map(|of| (0..BINS).filter(|&bin| of.share[bin] > 0.0).map(move |bin| (of, bin)));
        Table::of(rows)
            .column("panel", |(of, _)| of.panel.clone())
            .column("run", |(of, _)| of.run.clone())
            .column(format!("from {}", self.unit), |(_, bin)| bounds(&self.edges, *bin, self.direction).0)
            .column(format!("to {}", self.unit), |(_, bin)| bounds(&self.edges, *bin, self.direction).1)
            .column("share", |(of, bin)| of.share[*bin])
            .column(format!("mean {}", self.unit), |(of, _)| of.mean)
            .column(format!("p99 {}", self.unit), |(of, _)| of.p99)
            .done()
    }
}
