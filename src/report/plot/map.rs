//! A map of pairs of nodes: a heat map for each figure, senders down and receivers across, in the order of their groups. The darker a
//! cell, the more times as long it takes as the middle of all. Of many nodes a row stands for several of a group, or for several
//! groups, and a cell for the slowest of its pairs: a median would hide a slow node among those of its row.

use std::collections::BTreeMap;
use std::ops::Range;

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

/// A cell: its row and column, the slowest of its pairs' figures, and how many they are.
struct Cell {
    at: (usize, usize),
    value: f64,
    pairs: usize,
}

/// Nodes in their order, and which of them are a row.
struct Axis<'a> {
    map: &'a MapResult,
    order: Vec<u32>,
    rows: Vec<Range<usize>>,
}

impl<'a> Axis<'a> {
    fn new(map: &'a MapResult) -> Self {
        let order = by_group(map);
        let group = |at: &usize| map.groups.as_ref().and_then(|of| of.get(order[*at] as usize));
        let nodes: Vec<usize> = (0..order.len()).collect();
        let groups: Vec<usize> = nodes.chunk_by(|a, b| group(a) == group(b)).map(<[usize]>::len).collect();
        // Whole groups, or else even parts of one; in either case as few in a row as there is room for.
        let lengths: Vec<usize> = match groups.len() {
            count if count > MOST => groups.chunks(count.div_ceil(MOST)).map(|of| of.iter().sum()).collect(),
            _ => (1..)
                .map(|most| groups.iter().flat_map(|nodes| parts(*nodes, most)).collect())
                .find(|rows: &Vec<usize>| rows.len() <= MOST)
                .unwrap_or_default(),
        };
        let mut end = 0;
        let mut row = |length: usize| {
            end += length;
            end - length..end
        };
        let rows = lengths.into_iter().map(&mut row).collect();
        Axis { map, order, rows }
    }

    /// The nodes of a row: one, or the first and the last.
    fn label(&self, row: usize) -> String {
        let name = |node: u32| self.map.nodes.get(node as usize).map_or("?", String::as_str);
        match &self.order[self.rows[row].clone()] {
            [one] => name(*one).to_owned(),
            [first, .., last] => format!("{}..{}", name(*first), name(*last)),
            [] => String::new(),
        }
    }

    /// Rows before which another group begins; none where every row is one.
    fn bounds(&self) -> Vec<usize> {
        let Some(groups) = &self.map.groups else { return Vec::new() };
        let of = |at: usize| groups.get(self.order[at] as usize);
        let begins = |row: &usize| of(self.rows[*row].start) != of(self.rows[*row].start - 1);
        let bounds: Vec<usize> = (1..self.rows.len()).filter(begins).collect();
        if bounds.len() + 1 == self.rows.len() { Vec::new() } else { bounds }
    }

    /// The most nodes of a row.
    fn most(&self) -> usize {
        self.rows.iter().map(Range::len).max().unwrap_or(0)
    }
}

/// So many nodes in as few parts of at most so many as there can be, as even as can be.
fn parts(nodes: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = nodes.div_ceil(most);
    (0..count).map(move |at| nodes * (at + 1) / count - nodes * at / count)
}

fn heat(name: &str, map: &MapResult, kind: MapKind) -> Option<Plot> {
    let axis = Axis::new(map);
    let cells = cells(&axis, kind);
    let values = map.pairs.iter().filter_map(|pair| Some(kind.of(pair)?.median));
    let middle = median(&mut values.collect::<Vec<f64>>()).filter(|of| *of > 0.0)?;
    let side = (WIDTH - LEFT - 8.0) / axis.rows.len() as f64;
    let (mut body, mut slowest) = (String::new(), (0.0, String::new()));
    for Cell { at: (row, column), value, pairs } in &cells {
        let times = kind.times(*value, middle);
        let part = (times / LIGHTEST).max(1.0).ln() / (DARKEST / LIGHTEST).ln();
        let several = if *pairs > 1 { format!(" (slowest of {pairs})") } else { String::new() };
        let ends = format!("{} > {}", axis.label(*row), axis.label(*column));
        let title = format!("{ends}: {}{several}, {} the middle", shown(kind, *value), factor(times));
        if times > slowest.0 {
            slowest = (times, title.clone());
        }
        let place = (LEFT + *column as f64 * side, TOP + *row as f64 * side);
        let size = if side > 4.0 { side - 0.6 } else { side };
        body += &cell(place, (size, size), "class=\"cell busy\"", 0.06 + 0.9 * part.min(1.0), &title);
    }
    let end = TOP + axis.rows.len() as f64 * side;
    for bound in axis.bounds() {
        let at = bound as f64 * side;
        body += &line((LEFT, TOP + at), (LEFT + end - TOP, TOP + at), "axis");
        body += &line((LEFT + at, TOP), (LEFT + at, end), "axis");
    }
    let every = (12.0 / side).ceil().max(1.0) as usize;
    for row in (0..axis.rows.len()).step_by(every) {
        let label = axis.label(row);
        // A row's first node: the rest is told on hovering.
        let label = label.split("..").next().unwrap_or(&label);
        body += &text(LEFT - 4.0, TOP + (row as f64 + 0.5) * side + 4.0, "end", "tick", &short(label));
    }
    let said = groups(map).unwrap_or_else(|| "No groups are known".to_owned());
    let per = match axis.most() {
        0 | 1 => String::new(),
        most => format!(" A cell is the slowest pair of up to {most} by {most} nodes."),
    };
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
    for (row, nodes) in axis.rows.iter().enumerate() {
        axis.order[nodes.clone()].iter().for_each(|node| row_of[*node as usize] = row);
    }
    let mut all: BTreeMap<(usize, usize), Cell> = BTreeMap::new();
    for pair in &axis.map.pairs {
        let MapPair { from, to, .. } = *pair;
        let (Some(&row), Some(&column), Some(figure)) =
            (row_of.get(from as usize), row_of.get(to as usize), kind.of(pair))
        else {
            continue;
        };
        let value = figure.median;
        if value <= 0.0 {
            continue;
        }
        let other = (kind == MapKind::Latency).then_some((column, row));
        for at in std::iter::once((row, column)).chain(other) {
            let cell = all.entry(at).or_insert(Cell { at, value, pairs: 0 });
            cell.pairs += 1;
            cell.value = if kind.times(value, cell.value) > 1.0 { value } else { cell.value };
        }
    }
    all.into_values().collect()
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
        assert_eq!(svg.matches("class=\"cell busy\"").count(), 44 * 44, "130 nodes in rows of 3");
        assert!(plots[0].summary.contains("slowest pair of up to 3 by 3 nodes"), "{}", plots[0].summary);
        assert!(map("a", &MapResult::default()).is_empty());
    }

    /// A slow node is seen among those of its row, and no row is of parts of two groups.
    #[test]
    fn rows_are_of_whole_groups_or_of_one() {
        let mut of = drawn(200, |_, _| 1.0, |a, _| if a == 30 { 5.0 } else { 10.0 });
        let mut rows = |per_group: u32| {
            of.groups = Some((0..200).map(|node| node / per_group).collect());
            let (axis, plot) = (Axis::new(&of), map("a", &of).remove(0));
            let slow = plot.inline().matches("2.00x the middle</title></rect>").count();
            assert_eq!(slow, axis.rows.len(), "the row of n30");
            assert!(plot.summary.ends_with("2.00x the middle"), "{}", plot.summary);
            let lengths: Vec<usize> = axis.rows.iter().map(Range::len).collect();
            (lengths, axis.bounds())
        };
        // 50 groups of 4: two in a row. 20 of 10: each in two rows of 5, with lines between them.
        assert_eq!(rows(4), (vec![8; 25], vec![]));
        assert_eq!(rows(10), (vec![5; 40], (1..20).map(|group| 2 * group).collect()));
        // Three groups of 80, 80 and 40: rows of 5, the most even ones of at most 48.
        assert_eq!(rows(80), (vec![5; 40], vec![16, 32]));
    }
}
