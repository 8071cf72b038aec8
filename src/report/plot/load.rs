//! Who loaded the network: what the congestors delivered while each canary measured, and the node map, a cell per node in the
//! order of their ranks, with its role as colour and as a sign.

use super::{LINE, Plot, WIDTH, bar, block, escape, label, line, lines, text};
use crate::analysis::compare::Side;
use crate::engine::LoadState;
use crate::kernel::Congestor;
use crate::result::{Node, NodeRole, ResultFile, distinct};
use crate::text::{Table, figure, plural};

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
        let name = lines(&format!("during {}", test.title), 60);
        body += &block(8.0, y + 12.0, "start", "name", &name);
        y += 5.0 + LINE * name.len() as f64;
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
    let rows = tests.iter().flat_map(|test| test.load.iter().map(move |load| (&test.title, load)));
    let data = Table::of(rows)
        .column("during", |(test, _)| *test)
        .column("congestor", |(_, load)| load.kernel.info().key)
        .column("ranks", |(_, load)| load.ranks)
        .column("MiB/s delivered", |(_, load)| load.delivered_mib_per_s)
        .done();
    Some(Plot::new(&["load", &side.label], side.label.clone(), told.join("; "), y + 36.0, body, data))
}

/// So many colours there are.
const COLOURS: usize = 8;

/// The place of a congestor in the registry decides its colour; of more kinds than colours, two may have the same.
fn colour(kernel: Congestor) -> String {
    format!("role{}", Congestor::ALL.iter().position(|known| *known == kernel).unwrap_or(0) % COLOURS)
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
    let roles = looks(nodes);
    let large = nodes.len() <= LARGE_CELLS;
    let cell = if large { 27.0 } else { 9.0 };
    let columns = ((WIDTH - 8.0) / cell) as usize;
    let shown = if nodes.len() <= MOST_NODES { nodes.len() } else { 0 };
    let mut body = String::new();
    for (at, node) in nodes.iter().take(shown).enumerate() {
        let (x, y) = (4.0 + (at % columns) as f64 * cell, 4.0 + (at / columns) as f64 * cell);
        body += &draw(node, &roles, (x, y), cell - if large { 3.0 } else { 1.0 }, large);
    }
    let mut y = 4.0 + shown.div_ceil(columns) as f64 * cell + 14.0;
    let mut told = Vec::new();
    for (role, Look { class, sign, what }) in &roles {
        let count = nodes.iter().flat_map(|node| &node.roles).filter(|of| *of == role).count();
        body += &format!("<rect x=\"4\" y=\"{:.1}\" width=\"14\" height=\"14\" rx=\"2\" class=\"{class}\"/>", y - 8.0);
        body += &text(11.0, y + 2.5, "middle", "sign", sign);
        let nodes = plural(count, "node");
        body += &text(24.0, y + 3.0, "start", "tick", &format!("{what}: {nodes}"));
        told.push(format!("{what} on {nodes}"));
        y += 19.0;
    }
    let words = |node: &Node| words(node, &roles);
    let ranks = |node: &Node| node.ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let data = Table::of(nodes)
        .column("node", |node| node.name.clone())
        .column("ranks", |node| ranks(node))
        .column("roles", |node| words(node))
        .done();
    Some(Plot::new(&["nodes", name], name.to_owned(), told.join(", "), y, body, data))
}

/// How a role is shown.
struct Look {
    class: String,
    sign: String,
    what: String,
}

/// Every role of these nodes: canaries, congestors in the order of the registry, numbered from 1, idle nodes.
fn looks(nodes: &[Node]) -> Vec<(NodeRole, Look)> {
    let order = |role: &NodeRole| match role {
        NodeRole::Canary => (0, 0),
        NodeRole::Congestor(kernel) => (1, Congestor::ALL.iter().position(|known| known == kernel).unwrap_or(0)),
        NodeRole::Idle => (2, 0),
    };
    let mut roles = distinct(nodes.iter().flat_map(|node| node.roles.iter().copied()));
    roles.sort_by_key(order);
    let mut number = 0;
    let mut look = |role: NodeRole| match role {
        NodeRole::Canary => Look { class: "canary".into(), sign: "C".into(), what: "canary".into() },
        NodeRole::Idle => Look { class: "idle".into(), sign: "–".into(), what: "idle".into() },
        NodeRole::Congestor(kernel) => {
            number += 1;
            let what = format!("congestor {}", kernel.info().key);
            Look { class: colour(kernel), sign: number.to_string(), what }
        }
    };
    roles.into_iter().map(|role| (role, look(role))).collect()
}

fn looks_of<'a>(node: &Node, roles: &'a [(NodeRole, Look)]) -> Vec<&'a Look> {
    let look = |role: &NodeRole| roles.iter().find(|(known, _)| known == role).map(|(_, look)| look);
    node.roles.iter().filter_map(look).collect()
}

fn words(node: &Node, roles: &[(NodeRole, Look)]) -> String {
    looks_of(node, roles).iter().map(|look| look.what.as_str()).collect::<Vec<_>>().join(" and ")
}

/// A cell, cut into strips when roles share the node.
fn draw(node: &Node, roles: &[(NodeRole, Look)], (x, y): (f64, f64), size: f64, sign: bool) -> String {
    let looks = looks_of(node, roles);
    let ranks = match node.ranks[..] {
        [] => String::new(),
        [rank] => format!(", rank {rank}"),
        [first, .., last] => format!(", {} ranks from {first} to {last}", node.ranks.len()),
    };
    let title = format!("{}: {}{ranks}", node.name, words(node, roles));
    let mut out = format!("<g><title>{}</title>", escape(&title));
    let width = size / looks.len().max(1) as f64;
    for (at, Look { class, sign: mark, .. }) in looks.iter().enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn congestors_of_a_map_are_numbered_without_gaps() {
        let nodes = synthetic::file("tcp", None, 2.0).system.nodes;
        let signs: Vec<String> = looks(&nodes).into_iter().map(|(_, look)| look.sign).collect();
        assert!(signs.len() > 2 && signs[0] == "C", "{signs:?}");
        assert!(signs[1..].iter().enumerate().all(|(at, sign)| *sign == (at + 1).to_string()), "{signs:?}");
    }
}
