//! Who loaded the network: what the congestors delivered while each canary measured, and the node map, a cell per node in the
//! order of their ranks, with its role as colour and as a sign.

use super::{Plot, WIDTH, bar, escape, fit, label, line, text};
use crate::analysis::compare::Side;
use crate::engine::LoadState;
use crate::kernel::Congestor;
use crate::result::{Node, NodeRole, ResultFile};
use crate::text::figure;

/// The load on one side; nothing when no canary ran under load.
pub fn load(side: &Side<'_>) -> Option<Plot> {
    const LEFT: f64 = 92.0;
    const RIGHT: f64 = WIDTH - 62.0;
    const BAR: f64 = 15.0;
    let tests: Vec<_> =
        side.run.tests.iter().filter(|test| test.phase == LoadState::Loaded && !test.load.is_empty()).collect();
    let loads = tests.iter().flat_map(|test| &test.load);
    let most = loads.map(|load| load.delivered_mib_per_s).fold(0.0f64, f64::max);
    if tests.is_empty() || !most.is_finite() || most <= 0.0 {
        return None;
    }
    let x = |value: f64| LEFT + value / most * (RIGHT - LEFT);
    let (mut y, mut body, mut told) = (4.0, String::new(), Vec::new());
    for test in &tests {
        body += &text(8.0, y + 12.0, "start", "name", &fit(&format!("during {}", test.title), 60));
        y += 18.0;
        for load in &test.load {
            let value = figure(load.delivered_mib_per_s);
            let title =
                format!("{} during {}: {value} MiB/s delivered by {} ranks", load.title, test.title, load.ranks);
            body += &text(LEFT - 6.0, y + 11.0, "end", "tick", load.kernel.info().key);
            body += &bar(LEFT, y + 1.5, x(load.delivered_mib_per_s) - LEFT, BAR - 3.0, &colour(load.kernel), &title);
            body += &text(x(load.delivered_mib_per_s) + 5.0, y + 11.0, "start", "value", &value);
            y += BAR;
        }
        let total: f64 = test.load.iter().map(|load| load.delivered_mib_per_s).sum();
        told.push(format!("during {} {} MiB/s in all", test.title, figure(total)));
        y += 8.0;
    }
    for part in [0.5, 1.0] {
        body.insert_str(0, &line((x(most * part), 4.0), (x(most * part), y), "grid"));
        body += &text(x(most * part), y + 12.0, "middle", "tick", &label((most * part).round()));
    }
    body.insert_str(0, &line((LEFT, 4.0), (LEFT, y), "axis"));
    body +=
        &text((LEFT + RIGHT) / 2.0, y + 28.0, "middle", "axis-title", "MiB/s delivered, all ranks of a kind together");
    Some(Plot::new(&["load", &side.label], side.label.clone(), told.join("; "), y + 36.0, body))
}

/// The place of a congestor in the registry, which decides its colour.
fn number(kernel: Congestor) -> usize {
    Congestor::ALL.iter().position(|known| *known == kernel).unwrap_or(0)
}

fn colour(kernel: Congestor) -> String {
    format!("role{}", number(kernel))
}

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
            let at = number(kernel);
            (colour(kernel), (at + 1).to_string(), format!("congestor {}", kernel.info().key))
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
