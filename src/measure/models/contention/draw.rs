//! Pictures of a graph with its penalties: SVG for people, DOT for their tools.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::Graph;

/// The graph in DOT; every edge is labelled with its penalty.
pub fn dot(graph: &Graph, penalties: &[f64]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = String::from("digraph contention {\n");
    for (edge, penalty) in graph.edges().iter().zip(penalties) {
        let (source, destination) = (quoted(graph.node(edge.source)), quoted(graph.node(edge.destination)));
        let _ = writeln!(out, "  {source} -> {destination} [label=\"{penalty:.2}\"];");
    }
    out + "}\n"
}

const SIZE: f64 = 520.0;
const RADIUS: f64 = 200.0;
const NODE: f64 = 22.0;
/// How far a curve bends from the straight line, per parallel edge.
const BEND: f64 = 34.0;

/// The graph as SVG: nodes on a circle, edges curved so that parallel and opposite ones stay apart, penalties beside
/// them, the colour from blue (1) to red (the largest).
pub fn svg(graph: &Graph, penalties: &[f64]) -> String {
    let count = graph.node_count();
    let place = |node: usize| {
        let angle = TAU * node as f64 / count as f64 - TAU / 4.0;
        (SIZE / 2.0 + RADIUS * angle.cos(), SIZE / 2.0 + RADIUS * angle.sin())
    };
    let largest = penalties.iter().copied().fold(1.0, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" font-family=\"sans-serif\" \
         font-size=\"14\" text-anchor=\"middle\">\n<title>Contention graph with penalties</title>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" fill=\"context-stroke\"/></marker></defs>\n"
    );
    for (at, (edge, penalty)) in graph.edges().iter().zip(penalties).enumerate() {
        let parallel = graph.edges()[..at].iter().filter(|earlier| *earlier == edge).count();
        curve(&mut out, place(edge.source), place(edge.destination), parallel, (*penalty, largest));
    }
    for node in 0..count {
        let ((x, y), name) = (place(node), escaped(graph.node(node)));
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{NODE}\" fill=\"#fff\" stroke=\"#333\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\">{name}</text>",
            y + 5.0
        );
    }
    out + "</svg>\n"
}

fn curve(out: &mut String, from: (f64, f64), to: (f64, f64), parallel: usize, (penalty, largest): (f64, f64)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    let bend = BEND * (1 + parallel) as f64;
    let middle = ((from.0 + to.0) / 2.0 - dy / length * bend, (from.1 + to.1) / 2.0 + dx / length * bend);
    let rim = |end: (f64, f64)| {
        let (dx, dy) = (middle.0 - end.0, middle.1 - end.1);
        let length = dx.hypot(dy);
        (end.0 + dx / length * NODE, end.1 + dy / length * NODE)
    };
    let (start, end) = (rim(from), rim(to));
    let hue = if largest > 1.0 { 220.0 * (1.0 - (penalty - 1.0) / (largest - 1.0)) } else { 220.0 };
    let label = (from.0 / 4.0 + middle.0 / 2.0 + to.0 / 4.0, from.1 / 4.0 + middle.1 / 2.0 + to.1 / 4.0);
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"hsl({hue:.0} 70% 40%)\" \
         stroke-width=\"2\" marker-end=\"url(#head)\"/><text x=\"{:.1}\" y=\"{:.1}\" stroke=\"#fff\" stroke-width=\"4\" \
         paint-order=\"stroke\">{penalty:.2}</text>",
        start.0,
        start.1,
        middle.0,
        middle.1,
        end.0,
        end.1,
        label.0,
        label.1 + 5.0
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_and_node_is_drawn_and_names_cannot_break_out() {
        let graph = Graph::new(&[("a<b", "c"), ("c", "a<b"), ("a<b", "c")]).unwrap();
        let picture = svg(&graph, &[2.5, 1.0, 2.5]);
        assert_eq!((picture.matches("<path d=\"M").count(), picture.matches("<circle").count()), (4, 2));
        assert!(picture.contains(">2.50</text>") && picture.contains("a&lt;b") && !picture.contains("NaN"));
        assert!(dot(&graph, &[2.5, 1.0, 2.5]).contains("\"c\" -> \"a<b\" [label=\"1.00\"]"));
    }
}
