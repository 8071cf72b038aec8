//! Plots of contention graphs: each drawn with its penalties, its times predicted and measured, all messages' measured times
//! over their predicted ones (the paper's figure 5), errors by size.

use std::f64::consts::TAU;

use super::{Area, LINE, Plot, WIDTH, bar, block, dot, escape, label, line, lines, text};
use crate::result::{ContentionResult, EdgeResult, GraphResult};
use crate::text::{Table, figure};

/// Graphs that are drawn; a sweep over hundreds of random ones is for the tables.
const MOST_GRAPHS: usize = 12;
const RADIUS: f64 = 150.0;
const MIDDLE: (f64, f64) = (WIDTH / 2.0, 190.0);
const NODE: f64 = 20.0;
/// How far a curve bends from the straight line, per parallel edge.
const BEND: f64 = 26.0;
/// More edges are a thicket; the table has them.
const MOST_EDGES: usize = 40;

/// Every plot of a study.
pub fn contention(name: &str, result: &ContentionResult) -> Vec<Plot> {
    let graphs = result.graphs.iter().enumerate().take(MOST_GRAPHS);
    let drawn = graphs.flat_map(|(at, of)| [graph(name, at + 1, of), times(name, at + 1, of)]);
    drawn.chain([scatter(name, result), errors(name, result)]).flatten().collect()
}

/// The graph with the penalty of every edge: measured where it was, else predicted.
fn graph(name: &str, number: usize, of: &GraphResult) -> Option<Plot> {
    let mut nodes: Vec<&str> = of.edges.iter().flat_map(|edge| [&*edge.source, &*edge.destination]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if of.edges.is_empty() || of.edges.len() > MOST_EDGES {
        return None;
    }
    let place = |node: &str| {
        let at = nodes.iter().position(|known| *known == node).unwrap_or(0);
        let angle = TAU * at as f64 / nodes.len() as f64 - TAU / 4.0;
        (MIDDLE.0 + RADIUS * angle.cos(), MIDDLE.1 + RADIUS * angle.sin())
    };
    let (mut arrows, mut labels) = (String::new(), String::new());
    for (at, edge) in of.edges.iter().enumerate() {
        let same = |other: &&EdgeResult| (&other.source, &other.destination) == (&edge.source, &edge.destination);
        let parallel = of.edges[..at].iter().filter(same).count();
        let (drawn, label) = arrow(place(&edge.source), place(&edge.destination), parallel, edge);
        arrows += &drawn;
        labels += &label;
    }
    let mut body = arrows;
    for node in &nodes {
        let (x, y) = place(node);
        body += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{NODE}\" class=\"node\"/>");
        // What is too long for its circle stands below it.
        body += &match node.chars().count() {
            0..=6 => text(x, y + 4.5, "middle", "name", node),
            _ => block(x, y + NODE + 12.0, "middle", "name", &lines(node, 18)),
        };
    }
    body += &labels;
    let measured = of.edges.iter().any(|edge| edge.measured_penalty.is_some());
    let what = if measured { "measured penalty (predicted)" } else { "predicted penalty" };
    let told: Vec<String> =
        of.edges.iter().map(|edge| format!("{} to {}: {}", edge.source, edge.destination, penalties(edge))).collect();
    let title = format!("{}: {what}, {name}", of.name);
    let id = ["contention", "graph", &number.to_string(), name];
    Some(Plot::new(&id, title, told.join("; "), 2.0 * MIDDLE.1 + LINE, body, edges(of)))
}

/// Every message of a graph, in multiples of the contention-free time.
fn edges(of: &GraphResult) -> Table {
    Table::of(&of.edges)
        .column("from", |edge| edge.source.clone())
        .column("to", |edge| edge.destination.clone())
        .column("penalty predicted", |edge| edge.penalties.first().copied())
        .column("penalty measured", |edge| edge.measured_penalty)
        .column("time predicted T_ref", |edge| edge.predicted)
        .column("time measured T_ref", |edge| edge.measured_s.map(|seconds| seconds / of.reference_s))
        .column("time measured s", |edge| edge.measured_s)
        .done()
}

fn penalties(edge: &EdgeResult) -> String {
    let predicted = edge.penalties.first().copied().unwrap_or(1.0);
    edge.measured_penalty.map_or_else(|| format!("{predicted:.2}"), |own| format!("{own:.2} ({predicted:.2})"))
}

/// An arrow and its label; labels are drawn last, so that no arrow crosses one.
fn arrow(from: (f64, f64), to: (f64, f64), parallel: usize, edge: &EdgeResult) -> (String, String) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let bend = BEND * (1 + parallel) as f64;
    let middle = ((from.0 + to.0) / 2.0 - dy / length * bend, (from.1 + to.1) / 2.0 + dx / length * bend);
    let rim = |end: (f64, f64), gap: f64| {
        let (dx, dy) = (middle.0 - end.0, middle.1 - end.1);
        let length = dx.hypot(dy).max(1.0);
        (end.0 + dx / length * gap, end.1 + dy / length * gap, dx / length, dy / length)
    };
    let (start, tip) = (rim(from, NODE), rim(to, NODE));
    let base = rim(to, NODE + 9.0);
    let side = (-tip.3 * 4.0, tip.2 * 4.0);
    let title = format!("{} to {}: {}", edge.source, edge.destination, penalties(edge));
    let drawn = format!(
        "<path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" class=\"arrow\"><title>{}</title></path>\
         <path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" class=\"head\"/>",
        start.0,
        start.1,
        middle.0,
        middle.1,
        base.0,
        base.1,
        escape(&title),
        tip.0,
        tip.1,
        base.0 + side.0,
        base.1 + side.1,
        base.0 - side.0,
        base.1 - side.1
    );
    // A third of the way: labels of edges into one node would meet at the middle.
    let part = |from: f64, middle: f64, to: f64| 0.42 * from + 0.46 * middle + 0.12 * to;
    let (x, y) = (part(from.0, middle.0, to.0), part(from.1, middle.1, to.1));
    (drawn, text(x, y + 4.0, "middle", "value", &penalties(edge)))
}

/// Times of every edge in multiples of the contention-free time, predicted and measured.
fn times(name: &str, number: usize, of: &GraphResult) -> Option<Plot> {
    let measured = |edge: &EdgeResult| edge.measured_s.map(|seconds| seconds / of.reference_s);
    let all = of.edges.iter().flat_map(|edge| [Some(edge.predicted), measured(edge)]).flatten();
    let most = all.filter(|value| value.is_finite()).fold(0.0f64, f64::max);
    if of.edges.len() > MOST_EDGES || most <= 0.0 {
        return None;
    }
    let who = |edge: &EdgeResult| format!("{}>{}", edge.source, edge.destination);
    let height = |edge: &EdgeResult| (LINE * lines(&who(edge), 9).len() as f64 + 6.0).max(30.0);
    let bottom = 6.0 + of.edges.iter().map(height).sum::<f64>();
    let area = Area { left: 70.0, right: WIDTH - 58.0, top: 4.0, bottom };
    let x = |value: f64| area.at(value / most, 0.0).0;
    let mut body: String = ticks(most, 100.0).map(|tick| area.upright(x(tick), &label(tick))).collect();
    let (mut told, mut next) = (Vec::new(), 6.0);
    for edge in &of.edges {
        let (y, who) = (next, who(edge));
        next += height(edge);
        body += &block(area.left - 6.0, y + 16.0, "end", "name", &lines(&who, 9));
        let states = [("predicted", "calm-bar", Some(edge.predicted)), ("measured", "busy-bar", measured(edge))];
        for (at, (what, class, value)) in states.into_iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let top = y + 1.0 + 12.0 * at as f64;
            let title = format!("{who}, {what}: {} T_ref, {:.6} s", figure(value), value * of.reference_s);
            body += &bar(area.left, top, x(value) - area.left, 11.0, class, &title);
            body += &text(x(value) + 5.0, top + 9.5, "start", "value", &format!("{value:.2}"));
            told.push(format!("{who} {what} {value:.2}"));
        }
    }
    body += &line((area.left, area.top), (area.left, area.bottom), "axis");
    body += &area.title(30.0, "time in T_ref");
    let title = format!("{}: times predicted (blue) and measured (orange), {name}", of.name);
    let id = ["contention", "times", &number.to_string(), name];
    Some(Plot::new(&id, title, told.join("; "), area.bottom + 38.0, body, edges(of)))
}

/// At most eight values from 0 up to `most`; `beyond` is their step where none of the usual ones is wide enough.
fn ticks(most: f64, beyond: f64) -> impl Iterator<Item = f64> {
    let steps = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    let step = steps.into_iter().find(|step| most / step <= 7.0).unwrap_or(beyond);
    (0..=7).map(move |at| f64::from(at) * step).filter(move |tick| *tick <= most)
}

/// Measured times over predicted ones in multiples of the contention-free time, of all messages; nothing when none was
/// measured.
fn scatter(name: &str, result: &ContentionResult) -> Option<Plot> {
    const AREA: Area = Area { left: 46.0, right: WIDTH - 20.0, top: 12.0, bottom: 300.0 };
    /// What the paper calls an acceptable error.
    const ACCEPTED: f64 = 0.15;
    /// More would hide each other, and fill a page.
    const MOST_DOTS: usize = 2000;
    let mut dots: Vec<(f64, f64, String)> = Vec::new();
    for graph in &result.graphs {
        for edge in &graph.edges {
            let Some(measured) = edge.measured_s.map(|seconds| seconds / graph.reference_s) else { continue };
            if measured.is_finite() && edge.predicted.is_finite() {
                let who = format!("{}: {}>{}", graph.name, edge.source, edge.destination);
                dots.push((edge.predicted, measured, who));
            }
        }
    }
    let most = dots.iter().map(|(predicted, measured, _)| predicted.max(*measured)).fold(0.0, f64::max) * 1.05;
    if most <= 0.0 {
        return None;
    }
    let at = |predicted: f64, measured: f64| AREA.at(predicted / most, measured / most);
    let mut body = String::new();
    for tick in ticks(most, most / 4.0) {
        body += &AREA.level(at(0.0, tick).1, "grid", &label(tick));
        body += &AREA.below(at(tick, 0.0).0, &label(tick));
    }
    body += &line(at(0.0, 0.0), at(most, most), "axis");
    // Where the prediction is off by as much as the paper accepts: e = predicted / measured - 1.
    for error in [-ACCEPTED, ACCEPTED] {
        let reach = most * (1.0 + error).min(1.0);
        body += &line(at(0.0, 0.0), at(reach, reach / (1.0 + error)), "mark calm");
    }
    let off = |(predicted, measured, _): &&(f64, f64, String)| (predicted / measured - 1.0).abs() > ACCEPTED;
    let outside = dots.iter().filter(off).count();
    for (predicted, measured, who) in dots.iter().step_by(dots.len().div_ceil(MOST_DOTS).max(1)) {
        let title = format!("{who}: predicted {predicted:.2} T_ref, measured {measured:.2}");
        body += &dot(at(*predicted, *measured), 4, "busy", &title);
    }
    body += &AREA.base();
    body += &AREA.title(31.0, "predicted time in T_ref");
    let told = format!("{} of {} messages are off by more than 15%", outside, dots.len());
    let title = format!("Measured over predicted time in T_ref, with 15% to both sides, {name}");
    let data = Table::of(&dots)
        .column("message", |(.., who)| who.clone())
        .column("predicted T_ref", |(predicted, ..)| *predicted)
        .column("measured T_ref", |(_, measured, _)| *measured)
        .done();
    Some(Plot::new(&["contention", "scatter", name], title, told, AREA.bottom + 38.0, body, data))
}

/// The mean error of every graph over its number of edges; nothing when all have as many.
fn errors(name: &str, result: &ContentionResult) -> Option<Plot> {
    let point = |of: &GraphResult| {
        let errors: Vec<f64> = of.edges.iter().filter_map(|edge| edge.error(of.reference_s)).map(f64::abs).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        mean.is_finite().then(|| (of.edges.len(), 100.0 * mean, of.name.clone()))
    };
    let points: Vec<(usize, f64, String)> = result.graphs.iter().filter_map(point).collect();
    let (least, most) = (points.iter().map(|of| of.0).min()?, points.iter().map(|of| of.0).max()?);
    let high = points.iter().map(|of| of.1).fold(1.0f64, f64::max);
    if least == most {
        return None;
    }
    const AREA: Area = Area { left: 46.0, right: WIDTH - 20.0, top: 12.0, bottom: 190.0 };
    let width = AREA.right - AREA.left - 20.0;
    let x = |edges: usize| AREA.left + 10.0 + (edges - least) as f64 / (most - least) as f64 * width;
    let mut body = String::new();
    for part in [0.0, 0.5, 1.0] {
        let y = AREA.at(0.0, high * part / high).1;
        body += &AREA.level(y, "grid", &format!("{:.0}%", high * part));
    }
    for edges in (least..=most).step_by((most - least).div_ceil(10).max(1)) {
        body += &AREA.below(x(edges), &edges.to_string());
    }
    for (edges, error, graph) in &points {
        let title = format!("{graph}, {edges} edges: mean error {error:.1}%");
        body += &dot((x(*edges), AREA.at(0.0, error / high).1), 4, "busy", &title);
    }
    body += &AREA.title(31.0, "edges of the graph");
    let told = format!("{} graphs of {least} to {most} edges, largest mean error {high:.1}%", points.len());
    let title = format!("Mean error of the predicted times by number of edges, {name}");
    let data = Table::of(&points)
        .column("graph", |(.., graph)| graph.clone())
        .column("edges", |(edges, ..)| *edges)
        .column("mean error %", |(_, error, _)| *error)
        .done();
    Some(Plot::new(&["contention", "errors", name], title, told, AREA.bottom + 38.0, body, data))
}
