//! A map of pairs of nodes: a heat map for each figure, senders down and receivers across, in the order of their groups. The darker a
//! cell, the more times as long it takes as the middle of all. Of many nodes a cell stands for several.

use std::collections::BTreeMap;

use super::{Plot, WIDTH, cell, line, text};
use crate::analysis::map::{MapKind, by_group};
use crate::output::map::{groups, shown};
use crate::result::{MapPair, MapResult};
use crate::stats::median;
use crate::text::{Table, factor};

/// More rows and columns are drawn together: larger pages are slow, and smaller cells are not seen.
const MOST: usize = 48;
/// So many times the middle are as dark as it gets, so many as light.
const DARKEST: f64 = 3.0;
const LIGHTEST: f64 = 0.8;
const LEFT: f64 = 78.0;
const TOP: f64 = 8.0;

/// A plot for each figure that was measured.
pub fn map(name: &str, map: &MapResult) -> Vec<Plot> {
    [MapKind::OneWay, MapKind::Latency, MapKind::BothWays]
        .into_iter()
        .filter_map(|kind| heat(name, map, kind))
        .collect()
}

/// A cell: its row and column, the middle of its pairs' figures, and how many they are.
struct Cell {
    at: (usize, usize),
    value: f64,
    pairs: usize,
}

/// Nodes in their order, so many of them in each row.
struct Axis<'a> {
    map: &'a MapResult,
    order: Vec<u32>,
    per_row: usize,
}

impl Axis<'_> {
    fn rows(&self) -> usize {
        self.order.len().div_ceil(self.per_row)
    }

    /// The nodes of a row: one, or the first and the last.
    fn label(&self, row: usize) -> String {
        let nodes = &self.order[row * self.per_row..((row + 1) * self.per_row).min(self.order.len())];
        let name = |node: u32| self.map.nodes.get(node as usize).map_or("?", String::as_str);
        match nodes {
            [one] => name(*one).to_owned(),
            [first, .., last] => format!("{}..{}", name(*first), name(*last)),
            [] => String::new(),
        }
    }

    /// Rows before which another group begins.
    fn bounds(&self) -> Vec<f64> {
        let Some(groups) = &self.map.groups else { return Vec::new() };
        let of = |at: usize| groups.get(self.order[at] as usize);
        let begins = (1..self.order.len()).filter(|at| of(*at) != of(at - 1));
        begins.map(|at| at as f64 / self.per_row as f64).collect()
    }
}

fn heat(name: &str, map: &MapResult, kind: MapKind) -> Option<Plot> {
    let order = by_group(map);
    let axis = Axis { map, per_row: order.len().div_ceil(MOST).max(1), order };
    let cells = cells(&axis, kind);
    let middle = median(&mut cells.iter().map(|of| of.value).collect::<Vec<_>>()).filter(|of| *of > 0.0)?;
    let side = (WIDTH - LEFT - 8.0) / axis.rows() as f64;
    let (mut body, mut slowest) = (String::new(), (0.0, String::new()));
    for Cell { at: (row, column), value, pairs } in &cells {
        let times = kind.times(*value, middle);
        let part = (times / LIGHTEST).max(1.0).ln() / (DARKEST / LIGHTEST).ln();
        let several = if *pairs > 1 { format!(" (median of {pairs})") } else { String::new() };
        let ends = format!("{} > {}", axis.label(*row), axis.label(*column));
        let title = format!("{ends}: {}{several}, {} the middle", shown(kind, *value), factor(times));
        if times > slowest.0 {
            slowest = (times, title.clone());
        }
        let place = (LEFT + *column as f64 * side, TOP + *row as f64 * side);
        let size = if side > 4.0 { side - 0.6 } else { side };
        body += &cell(place, (size, size), "class=\"cell busy\"", 0.06 + 0.9 * part.min(1.0), &title);
    }
    let end = TOP + axis.rows() as f64 * side;
    for bound in axis.bounds() {
        let at = bound * side;
        body += &line((LEFT, TOP + at), (LEFT + end - TOP, TOP + at), "axis");
        body += &line((LEFT + at, TOP), (LEFT + at, end), "axis");
    }
    let every = (12.0 / side).ceil().max(1.0) as usize;
    for row in (0..axis.rows()).step_by(every) {
        let label = axis.label(row);
        // A row's first node: the rest is told on hovering.
        let label = label.split("..").next().unwrap_or(&label);
        body += &text(LEFT - 4.0, TOP + (row as f64 + 0.5) * side + 4.0, "end", "tick", &short(label));
    }
    let said = groups(map).unwrap_or_else(|| "No groups are known".to_owned());
    let per = if axis.per_row > 1 { format!(" A cell is {0} by {0} nodes.", axis.per_row) } else { String::new() };
    body +=
        &text(WIDTH / 2.0, end + 16.0, "middle", "axis-title", "receivers across, senders down; more colour: slower");
    let title = format!("{} between nodes, {name}", word(kind));
    let summary = format!("{said}.{per} Middle {}; slowest {}", shown(kind, middle), slowest.1);
    Some(Plot::new(&["map", &title], title.clone(), summary, end + 26.0, body, data(&axis, &cells, kind)))
}

fn word(kind: MapKind) -> &'static str {
    match kind {
        MapKind::Latency => "Latency",
        MapKind::OneWay => "Bandwidth one way",
        MapKind::BothWays => "Bandwidth both ways",
    }
}

/// At most as many letters as stand beside a row.
fn short(label: &str) -> String {
    const MOST_LETTERS: usize = 11;
    let letters: Vec<char> = label.chars().collect();
    match letters.len() {
        0..=MOST_LETTERS => label.to_owned(),
        count => format!("..{}", letters[count - (MOST_LETTERS - 2)..].iter().collect::<String>()),
    }
}

/// The cells that have a pair. A latency is of both directions.
fn cells(axis: &Axis<'_>, kind: MapKind) -> Vec<Cell> {
    let mut row_of = vec![0; axis.map.nodes.len()];
    axis.order.iter().enumerate().for_each(|(at, node)| row_of[*node as usize] = at / axis.per_row);
    let mut all: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for pair in &axis.map.pairs {
        let MapPair { from, to, .. } = *pair;
        let (Some(&row), Some(&column), Some(figure)) =
            (row_of.get(from as usize), row_of.get(to as usize), kind.of(pair))
        else {
            continue;
        };
        all.entry((row, column)).or_default().push(figure.median);
        if kind == MapKind::Latency {
            all.entry((column, row)).or_default().push(figure.median);
        }
    }
    let cell = |(at, mut values): (_, Vec<f64>)| Some(Cell { at, pairs: values.len(), value: median(&mut values)? });
    all.into_iter().filter_map(cell).filter(|of| of.value > 0.0).collect()
}

fn data(axis: &Axis<'_>, cells: &[Cell], kind: MapKind) -> Table {
    let unit = if kind == MapKind::Latency { "latency s" } else { "bytes/s" };
    Table::of(cells)
        .column("from", |of| axis.label(of.at.0))
        .column("to", |of| axis.label(of.at.1))
        .column("pairs", |of| of.pairs)
        .column(unit, |of| of.value)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::map::tests::map as drawn;

    #[test]
    fn a_cell_for_each_pair_and_lines_between_groups() {
        let mut of = drawn(6, |_, _| 1.0, |a, _| if a == 3 { 2.0 } else { 10.0 });
        of.groups = Some(vec![0, 1, 0, 1, 0, 1]);
        let plots = map("a", &of);
        assert_eq!(plots.len(), 3);
        let svg = plots[0].inline();
        assert_eq!(svg.matches("class=\"cell busy\"").count(), 30);
        assert_eq!(svg.matches("class=\"axis\"").count(), 2, "one bound across and one down");
        assert!(svg.contains("n3 &gt; n0: ") && svg.contains("x the middle"), "{svg}");
        assert!(plots[0].summary.contains("slowest n3 > "), "{}", plots[0].summary);
        assert_eq!(plots[1].inline().matches("class=\"cell busy\"").count(), 30, "latencies are of both directions");
    }

    #[test]
    fn many_nodes_share_cells() {
        let of = drawn(130, |_, _| 1.0, |_, _| 10.0);
        let plots = map("a", &of);
        let svg = plots[0].inline();
        assert!(svg.matches("class=\"cell busy\"").count() <= MOST * MOST, "130 nodes in rows of 3");
        assert!(plots[0].summary.contains("A cell is 3 by 3 nodes"), "{}", plots[0].summary);
        assert!(map("a", &MapResult::default()).is_empty());
    }
}
