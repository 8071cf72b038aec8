//! Graphs with a name: the paper's own, and the basic conflicts with a size.

use std::str::FromStr;

use super::{Graph, MOST_EDGES};

/// A graph by its name: `out-3`, `in-4`, `ring-5`, `pairs-2`, patterns of applications, or one of the paper's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    name: String,
    pairs: Vec<(String, String)>,
}

/// The paper's graphs, by figure.
const PAPER: [(&str, &[(&str, &str)]); 7] = [
    ("fig2.1", &[("a", "b"), ("a", "c"), ("a", "d")]),
    ("fig2.2", &[("b", "a"), ("b", "d"), ("c", "a"), ("c", "d")]),
    ("fig2.3", &[("a", "b"), ("a", "c"), ("a", "d"), ("d", "b"), ("d", "c")]),
    ("fig2.4", &[("a", "b"), ("a", "c"), ("d", "b"), ("e", "c")]),
    ("fig3", &[("0", "1"), ("0", "2"), ("0", "3"), ("4", "3"), ("4", "5"), ("6", "5")]),
    ("graph-a", &[("0", "1"), ("0", "2"), ("4", "2"), ("5", "2"), ("3", "1")]),
    ("graph-b", &[("0", "1"), ("0", "2"), ("3", "2"), ("4", "2"), ("5", "2")]),
];

/// Larger ones would be a mistake of the hand: every node needs a rank for each of its edges.
const LARGEST: usize = 1024;

impl Shape {
    /// What a user may type.
    pub const NAMES: &str = "out-N, in-N, ring-N, pairs-N, incast-N, alltoall-N, halo-RxC, or of the paper fig2.1, fig2.2, fig2.3, fig2.4, \
         fig3, graph-a, graph-b";

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its edges.
    pub fn graph(&self) -> Graph {
        Graph::new(&self.pairs).expect("named shapes have edges and no self loops")
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let pairs = match PAPER.iter().find(|(known, _)| *known == name) {
            Some((_, pairs)) => pairs.iter().map(|(source, to)| ((*source).to_owned(), (*to).to_owned())).collect(),
            None => sized(name).ok_or_else(|| format!("invalid shape '{name}': expected {}", Shape::NAMES))?,
        };
        Ok(Shape { name: name.to_owned(), pairs })
    }
}

fn sized(name: &str) -> Option<Vec<(String, String)>> {
    let (kind, size) = name.split_once('-')?;
    if kind == "halo" {
        return halo(size);
    }
    let size: usize = size.parse().ok().filter(|size| (1..=LARGEST).contains(size))?;
    let pair = |source: usize, to: usize| (source.to_string(), to.to_string());
    Some(match kind {
        "out" => (1..=size).map(|to| pair(0, to)).collect(),
        "in" | "incast" => (1..=size).map(|source| pair(source, 0)).collect(),
        "ring" if size > 1 => (0..size).map(|source| pair(source, (source + 1) % size)).collect(),
        "alltoall" if size > 1 && size * (size - 1) <= MOST_EDGES => (0..size)
            .flat_map(|source| (0..size).filter(move |&to| to != source).map(move |to| pair(source, to)))
            .collect(),
        "pairs" => (0..size).map(|source| pair(2 * source, 2 * source + 1)).collect(),
        _ => return None,
    })
}

/// Every node of a grid sends to its neighbours left, right, above and below.
fn halo(size: &str) -> Option<Vec<(String, String)>> {
    let (rows, columns) = size.split_once('x')?;
    let read = |text: &str| text.parse().ok().filter(|size| (1..=LARGEST).contains(size));
    let (rows, columns): (usize, usize) = (read(rows)?, read(columns)?);
    let messages = 2 * (rows * (columns - 1) + columns * (rows - 1));
    if !(1..=MOST_EDGES).contains(&messages) {
        return None;
    }
    let mut pairs = Vec::with_capacity(messages);
    for node in 0..rows * columns {
        let (row, column) = (node / columns, node % columns);
        let neighbours = [
            (column > 0).then(|| node - 1),
            (column + 1 < columns).then_some(node + 1),
            (row > 0).then(|| node - columns),
            (row + 1 < rows).then_some(node + columns),
        ];
        pairs.extend(neighbours.into_iter().flatten().map(|to| (node.to_string(), to.to_string())));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_graphs() {
        let edges = |name: &str| name.parse::<Shape>().unwrap().graph().edges().len();
        assert_eq!(["out-3", "in-4", "ring-5", "pairs-2", "fig3"].map(edges), [3, 4, 5, 2, 6]);
        assert_eq!(["incast-4", "alltoall-4", "halo-2x3", "halo-1x2"].map(edges), [4, 12, 14, 2]);
    }

    #[test]
    fn what_is_no_shape_is_answered_with_those_that_are() {
        for name in [
            "star",
            "out-0",
            "ring-1",
            "in-9999",
            "out-x",
            "alltoall-1",
            "alltoall-99",
            "halo-3",
            "halo-1x1",
            "halo-0x2",
        ] {
            let message = name.parse::<Shape>().unwrap_err();
            assert!(message.contains(name) && message.contains("graph-a"), "{message}");
        }
    }
}
