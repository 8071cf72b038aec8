//! Penalties that were measured on a network, in the place of rules: the paper's way to networks other than its own.
//!
//! What a message meets depends on the messages it is joined to by ports, so penalties are kept and looked up by connected part
//! of a graph, whatever its nodes are called: two parts are the same when their nodes can be matched so that as many messages
//! run between every two of them. Messages that no such match can tell apart have one penalty, the geometric mean of theirs.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Edge, Graph, Model, penalties};
use crate::models::measure::geometric_mean;

/// A match is looked for in so many attempts. Parts of a few nodes need far fewer; of regular ones there may be too many to
/// try, and then rules do.
const MOST_ATTEMPTS: u32 = 100_000;

/// What was learned, and the rules for everything else.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learned {
    /// Where from, for people.
    pub source: String,
    /// Which rules predict parts that were not measured.
    pub rules: Model,
    known: Vec<Known>,
}

/// A connected part with penalties by the kind of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    part: Part,
    penalties: BTreeMap<u64, f64>,
}

impl Learned {
    /// Learns from graphs whose messages' penalties were measured together.
    pub fn new(source: String, rules: Model, measured: &[(Graph, Vec<f64>)]) -> Self {
        let mut seen: Vec<(Part, BTreeMap<u64, Vec<f64>>)> = Vec::new();
        for (graph, penalties) in measured {
            for edges in parts(graph) {
                let part = Part::of(graph, &edges);
                let at = seen.iter().position(|(known, _)| known.is_like(&part)).unwrap_or_else(|| {
                    seen.push((part.clone(), BTreeMap::new()));
                    seen.len() - 1
                });
                for (kind, edge) in part.kinds.iter().zip(edges) {
                    // Faster than alone is noise.
                    seen[at].1.entry(*kind).or_default().push(penalties[edge].max(1.0));
                }
            }
        }
        let known = |(part, all): (Part, BTreeMap<u64, Vec<f64>>)| {
            let penalties = all.into_iter().map(|(kind, all)| (kind, geometric_mean(all.into_iter()))).collect();
            Known { part, penalties }
        };
        Learned { source, rules, known: seen.into_iter().map(known).collect() }
    }

    /// How many different connected parts are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The penalty of every edge while all of them are under way, and how many were looked up rather than computed by rules.
    pub fn penalties(&self, graph: &Graph) -> (Vec<f64>, usize) {
        let mut found = penalties(graph, self.rules);
        let mut looked_up = 0;
        for edges in parts(graph) {
            let part = Part::of(graph, &edges);
            let Some(known) = self.known.iter().find(|known| known.part.is_like(&part)) else { continue };
            looked_up += edges.len();
            for (kind, edge) in part.kinds.iter().zip(edges) {
                found[edge] = known.penalties[kind];
            }
        }
        (found, looked_up)
    }
}

/// The edges of each connected part.
fn parts(graph: &Graph) -> Vec<Vec<usize>> {
    let mut root: Vec<usize> = (0..graph.node_count()).collect();
    fn find(root: &mut [usize], node: usize) -> usize {
        let mut at = node;
        while root[at] != at {
            root[at] = root[root[at]];
            at = root[at];
        }
        at
    }
    for &Edge { source, destination } in graph.edges() {
        let (a, b) = (find(&mut root, source), find(&mut root, destination));
        root[a] = b;
    }
    let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, edge) in graph.edges().iter().enumerate() {
        all.entry(find(&mut root, edge.source)).or_default().push(at);
    }
    all.into_values().collect()
}

/// A connected graph without names.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    nodes: usize,
    edges: Vec<(usize, usize)>,
    /// What can be told of a node, and of a message, without a name.
    colours: Vec<u64>,
    kinds: Vec<u64>,
}

impl Part {
    fn of(graph: &Graph, edges: &[usize]) -> Self {
        let mut index: HashMap<usize, usize> = HashMap::new();
        let mut node = |node: usize| {
            let next = index.len();
            *index.entry(node).or_insert(next)
        };
        let all = edges.iter().map(|&at| graph.edges()[at]);
        let edges: Vec<(usize, usize)> = all.map(|edge| (node(edge.source), node(edge.destination))).collect();
        let nodes = index.len();
        let mut colours = vec![0u64; nodes];
        // Every round tells a node of its neighbours' colours: after as many as there are nodes, nothing new is told.
        for _ in 0..nodes {
            let mut told: Vec<Vec<(bool, u64)>> = vec![Vec::new(); nodes];
            for &(source, destination) in &edges {
                told[source].push((true, colours[destination]));
                told[destination].push((false, colours[source]));
            }
            let mixed = told.into_iter().zip(&colours).map(|(mut told, own)| {
                told.sort_unstable();
                told.into_iter().fold(mix(1, *own), |hash, (out, colour)| mix(mix(hash, u64::from(out)), colour))
            });
            colours = mixed.collect();
        }
        let kinds = edges.iter().map(|&(source, to)| mix(mix(2, colours[source]), colours[to])).collect();
        Part { nodes, edges, colours, kinds }
    }

    /// Whether the nodes of both can be matched.
    fn is_like(&self, other: &Part) -> bool {
        let sorted = |of: &[u64]| {
            let mut of = of.to_vec();
            of.sort_unstable();
            of
        };
        let alike = (self.nodes, self.edges.len()) == (other.nodes, other.edges.len())
            && sorted(&self.colours) == sorted(&other.colours)
            && sorted(&self.kinds) == sorted(&other.kinds);
        alike && self.matches(other, &self.between(), &other.between(), &mut Vec::new(), &mut MOST_ATTEMPTS.clone())
    }

    fn between(&self) -> HashMap<(usize, usize), usize> {
        let mut count = HashMap::new();
        self.edges.iter().for_each(|edge| *count.entry(*edge).or_default() += 1);
        count
    }

    /// Whether what is matched so far, node by node of this part, can be completed.
    fn matches(
        &self,
        other: &Part,
        mine: &HashMap<(usize, usize), usize>,
        theirs: &HashMap<(usize, usize), usize>,
        matched: &mut Vec<usize>,
        attempts: &mut u32,
    ) -> bool {
        let next = matched.len();
        if next == self.nodes {
            return true;
        }
        for candidate in 0..other.nodes {
            if *attempts == 0 {
                return false;
            }
            *attempts -= 1;
            let same = |(node, &to): (usize, &usize)| {
                mine.get(&(next, node)) == theirs.get(&(candidate, to))
                    && mine.get(&(node, next)) == theirs.get(&(to, candidate))
            };
            if self.colours[next] == other.colours[candidate]
                && !matched.contains(&candidate)
                && matched.iter().enumerate().all(same)
            {
                matched.push(candidate);
                if self.matches(other, mine, theirs, matched, attempts) {
                    return true;
                }
                matched.pop();
            }
        }
        false
    }
}

/// Mixes a number into a hash that is the same in every program: files are read by others than wrote them.
fn mix(hash: u64, with: u64) -> u64 {
    let mixed = (hash ^ with.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    fn graph(pairs: &[(&str, &str)]) -> Graph {
        Graph::new(pairs).unwrap()
    }

    #[test]
    fn a_graph_is_known_by_its_shape_and_not_by_its_names() {
        let measured = [("fig2.4".parse::<Shape>().unwrap().graph(), vec![3.0, 3.2, 1.1, 1.3])];
        let learned = Learned::new("x".into(), Model::Text, &measured);
        // The same in another order and with other names; messages that no name tells apart have one penalty.
        let (found, looked_up) = learned.penalties(&graph(&[("p", "u"), ("s", "u"), ("s", "v"), ("q", "v")]));
        let (out, lone) = ((3.0f64 * 3.2).sqrt(), (1.1f64 * 1.3).sqrt());
        assert_eq!(looked_up, 4);
        assert!(found.iter().zip([lone, out, out, lone]).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn parts_that_are_not_joined_are_looked_up_apart_and_rules_do_the_rest() {
        let measured = [("in-2".parse::<Shape>().unwrap().graph(), vec![1.7, 1.7])];
        let learned = Learned::new("x".into(), Model::Text, &measured);
        assert_eq!(learned.len(), 1);
        let pairs = [("a", "b"), ("c", "b"), ("d", "e"), ("d", "f"), ("d", "g")];
        let (found, looked_up) = learned.penalties(&graph(&pairs));
        assert_eq!((found.as_slice(), looked_up), ([1.7, 1.7, 3.0, 3.0, 3.0].as_slice(), 2));
    }

    #[test]
    fn the_other_direction_and_another_count_are_other_graphs() {
        let of = |pairs: &[(&str, &str)]| {
            let graph = graph(pairs);
            let edges: Vec<usize> = (0..graph.edges().len()).collect();
            Part::of(&graph, &edges)
        };
        let (into, out, twice) =
            (of(&[("a", "b"), ("c", "b")]), of(&[("b", "a"), ("b", "c")]), of(&[("a", "b"), ("a", "b")]));
        assert!(into.is_like(&into) && !into.is_like(&out) && !out.is_like(&twice));
        // All nodes of both have the same degrees, and no rounds of colours tell them apart: only a match does.
        let ring = |size: usize, offset: usize| {
            (0..size).map(move |at| ((offset + at).to_string(), (offset + (at + 1) % size).to_string()))
        };
        let (six, threes): (Vec<_>, Vec<_>) = (ring(6, 0).collect(), ring(3, 0).chain(ring(3, 3)).collect());
        let whole = |pairs: &[(String, String)]| {
            let graph = Graph::new(pairs).unwrap();
            Part::of(&graph, &(0..6).collect::<Vec<_>>())
        };
        assert!(whole(&six).is_like(&whole(&six)) && !whole(&six).is_like(&whole(&threes)));
    }
}
