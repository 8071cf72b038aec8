//! The node map: a cell per node in the order of their ranks, with its role as colour and as a sign.

use super::{Plot, WIDTH, escape, text};
use crate::kernel::Congestor;
use crate::result::{Node, NodeRole, ResultFile};

/// More nodes are told as numbers only: cells could not be told apart.
const MOST_NODES: usize = 4096;
/// Up to this many nodes, cells are large enough for a sign.
const LARGE_CELLS: usize = 160;

/// The map of one file; nothing when its placement is not known.
pub fn nodes(name: &str, file: &ResultFile) -> Option<Plot> {
    let nodes = &file.system.nodes;
    if nodes.is_empty() || nodes.iter().all(|node| node.roles.is_empty()) {
        return None;
    }
    let large = nodes.len() <= LARGE_CELLS;
    let cell = if large { 27.0 } else { 9.0 };
    let columns = ((WIDTH - 8.0) / cell) as usize;
    let shown = if nodes.len() <= MOST_NODES { nodes.len() } else { 0 };
    let mut body = String::new();
    for (at, node) in nodes.iter().take(shown).enumerate() {
        let (x, y) = (4.0 + (at % columns) as f64 * cell, 4.0 + (at / columns) as f64 * cell);
        body += &draw(node, x, y, cell - if large { 3.0 } else { 1.0 }, large);
    }
    let mut y = 4.0 + shown.div_ceil(columns) as f64 * cell + 14.0;
    let mut told = Vec::new();
    for (class, sign, what, count) in legend(nodes) {
        body += &format!("<rect x=\"4\" y=\"{:.1}\" width=\"14\" height=\"14\" rx=\"2\" class=\"{class}\"/>", y - 8.0);
        body += &text(11.0, y + 2.5, "middle", "sign", &sign);
        let nodes = if count == 1 { "node" } else { "nodes" };
        body += &text(24.0, y + 3.0, "start", "tick", &format!("{what}: {count} {nodes}"));
        told.push(format!("{what} on {count} {nodes}"));
        y += 19.0;
    }
    Some(Plot::new(&["nodes", name], name.to_owned(), told.join(", "), y, body))
}

/// Class, sign and name of a role. Congestors are numbered in the order of the registry.
fn look(role: NodeRole) -> (String, String, String) {
    match role {
        NodeRole::Canary => ("canary".into(), "C".into(), "canary".into()),
        NodeRole::Idle => ("idle".into(), "–".into(), "idle".into()),
        NodeRole::Congestor(kernel) => {
            let at = Congestor::ALL.iter().position(|known| *known == kernel).unwrap_or(0);
            (format!("role{at}"), (at + 1).to_string(), format!("congestor {}", kernel.info().key))
        }
    }
}

fn legend(nodes: &[Node]) -> Vec<(String, String, String, usize)> {
    let mut all: Vec<(String, String, String, usize)> = Vec::new();
    for role in nodes.iter().flat_map(|node| &node.roles) {
        let (class, sign, what) = look(*role);
        match all.iter_mut().find(|known| known.0 == class) {
            Some(known) => known.3 += 1,
            None => all.push((class, sign, what, 1)),
        }
    }
    all.sort_by(|a, b| (a.1 != "C", &a.1).cmp(&(b.1 != "C", &b.1)));
    all
}

/// A cell, cut into strips when roles share the node.
fn draw(node: &Node, x: f64, y: f64, size: f64, sign: bool) -> String {
    let looks: Vec<_> = node.roles.iter().map(|role| look(*role)).collect();
    let roles: Vec<&str> = looks.iter().map(|look| look.2.as_str()).collect();
    let ranks = match node.ranks[..] {
        [] => String::new(),
        [rank] => format!(", rank {rank}"),
        [first, .., last] => format!(", {} ranks from {first} to {last}", node.ranks.len()),
    };
    let mut out = format!("<g><title>{}</title>", escape(&format!("{}: {}{ranks}", node.name, roles.join(" and "))));
    let width = size / looks.len().max(1) as f64;
    for (at, (class, mark, _)) in looks.iter().enumerate() {
        let left = x + at as f64 * width;
        out += &format!(
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{size:.1}\" rx=\"{}\" class=\"{class}\"/>",
            if sign { 3 } else { 1 }
        );
        if sign && looks.len() <= 2 {
            out += &text(left + width / 2.0, y + size / 2.0 + 4.0, "middle", "sign", mark);
        }
    }
    out + "</g>"
}
