//! A contention graph: directed edges between named nodes. Parallel edges are allowed, self loops are not.

use std::collections::HashMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GraphError;

/// A prediction has a step for every arrival, with a penalty for every message that is left.
pub const MOST_EDGES: usize = 4096;

/// A message: from a node to another, by their positions among the graph's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Edge {
    pub source: usize,
    pub destination: usize,
}

/// What a message is where it is not like the others: how large, and when it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its bytes; those of all others where nothing is said.
    pub bytes: Option<u64>,
    /// Nanoseconds from the first start, or from the last arrival that it waits for.
    pub start_ns: u64,
    /// The messages that it waits for, by their positions among the graph's, all before its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
}

/// Messages between nodes: together and of one size, unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<String>,
    edges: Vec<Edge>,
    messages: Vec<Message>,
}

impl Graph {
    /// The graph of these messages; nodes in the order in which they are first named.
    pub fn new<S: AsRef<str>>(pairs: &[(S, S)]) -> Result<Self, GraphError> {
        if pairs.len() > MOST_EDGES {
            return Err(GraphError::TooManyEdges);
        }
        let mut index: HashMap<&str, usize> = HashMap::new();
        let mut nodes = Vec::new();
        let mut edges = Vec::with_capacity(pairs.len());
        for (source, destination) in pairs {
            let (source, destination) = (source.as_ref(), destination.as_ref());
            if let Some(name) = [source, destination].into_iter().find(|name| name.contains(char::is_control)) {
                return Err(GraphError::Name(name.escape_debug().to_string()));
            }
            if source == destination {
                return Err(GraphError::SelfLoop(source.to_owned()));
            }
            let mut node = |name| {
                *index.entry(name).or_insert_with(|| {
                    nodes.push(str::to_owned(name));
                    nodes.len() - 1
                })
            };
            edges.push(Edge { source: node(source), destination: node(destination) });
        }
        let messages = vec![Message::default(); edges.len()];
        if edges.is_empty() { Err(GraphError::Empty) } else { Ok(Graph { nodes, edges, messages }) }
    }

    /// The same edges with messages of their own, in the edges' order.
    ///
    /// # Panics
    /// If there are not as many messages as edges, or one waits for itself or for a later one.
    #[must_use]
    pub fn with_messages(self, messages: Vec<Message>) -> Self {
        assert_eq!(messages.len(), self.edges.len(), "a message for every edge");
        let waits_for_earlier = |(at, of): (usize, &Message)| of.after.iter().all(|other| *other < at);
        assert!(messages.iter().enumerate().all(waits_for_earlier), "a message waits for earlier ones");
        Graph { messages, ..self }
    }

    /// What each edge's message is.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether all messages start together and have one size.
    pub fn is_uniform(&self) -> bool {
        self.messages.iter().all(|message| *message == Message::default())
    }

    /// `edges` messages between `nodes` nodes, drawn uniformly from all ordered pairs; the same for the same seed.
    /// Nodes that no edge touches are left out.
    pub fn random(edges: usize, nodes: usize, seed: u64) -> Result<Self, GraphError> {
        if nodes < 2 {
            return Err(GraphError::TooFewNodes { edges, nodes });
        }
        if edges > MOST_EDGES {
            return Err(GraphError::TooManyEdges);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // The bias of a 64-bit modulo is below one in 10^17 for any number of nodes in use.
        let mut below = |bound: usize| (rng.next_u64() % bound as u64) as usize;
        let pairs: Vec<(String, String)> = (0..edges)
            .map(|_| {
                let (source, other) = (below(nodes), below(nodes - 1));
                let destination = if other < source { other } else { other + 1 };
                (source.to_string(), destination.to_string())
            })
            .collect();
        Graph::new(&pairs)
    }

    /// The edges, in the order given.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// How many nodes have an edge.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node's name.
    pub fn node(&self, node: usize) -> &str {
        &self.nodes[node]
    }

    /// An edge in words: `a>b`.
    pub fn label(&self, edge: Edge) -> String {
        format!("{}>{}", self.nodes[edge.source], self.nodes[edge.destination])
    }

    /// The same nodes with only those edges whose position `keep` accepts.
    pub(super) fn live(&self, keep: &[bool]) -> Graph {
        let kept = |at: &usize| keep[*at];
        let edges = (0..self.edges.len()).filter(kept).map(|at| self.edges[at]).collect();
        // What is under way waits for nothing.
        let bytes = |at: usize| Message { bytes: self.messages[at].bytes, ..Message::default() };
        let messages = (0..self.edges.len()).filter(kept).map(bytes).collect();
        Graph { nodes: self.nodes.clone(), edges, messages }
    }

    /// How many edges leave each node, and how many enter it.
    pub(super) fn degrees(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut out, mut into) = (vec![0; self.nodes.len()], vec![0; self.nodes.len()]);
        for edge in &self.edges {
            out[edge.source] += 1;
            into[edge.destination] += 1;
        }
        (out, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_keep_the_order_of_their_first_edge_and_parallel_edges_stay() {
        let graph = Graph::new(&[("x", "b"), ("b", "a"), ("x", "b")]).unwrap();
        assert_eq!((graph.node_count(), graph.node(0), graph.node(2)), (3, "x", "a"));
        assert_eq!(graph.edges()[0], graph.edges()[2]);
        assert_eq!(graph.degrees(), (vec![2, 1, 0], vec![0, 2, 1]));
    }

    #[test]
    fn self_loops_and_emptiness_are_refused() {
        assert_eq!(Graph::new(&[("a", "b"), ("c", "c")]), Err(GraphError::SelfLoop("c".into())));
        assert_eq!(Graph::new::<&str>(&[]), Err(GraphError::Empty));
        assert_eq!(Graph::random(3, 1, 0), Err(GraphError::TooFewNodes { edges: 3, nodes: 1 }));
    }

    #[test]
    fn more_edges_than_can_be_followed_are_refused_with_the_limit() {
        let said = Graph::random(usize::MAX, 1000, 1).unwrap_err().to_string();
        assert!(said.starts_with("the graph has more than 4096 edges"), "{said}");
        assert_eq!(Graph::new(&[("a", "b"); MOST_EDGES + 1]), Err(GraphError::TooManyEdges));
        assert!(Graph::new(&[("a", "b"); MOST_EDGES]).is_ok());
    }

    #[test]
    fn a_seed_is_a_graph() {
        assert_eq!(Graph::random(9, 5, 7), Graph::random(9, 5, 7));
        assert_ne!(Graph::random(9, 5, 7), Graph::random(9, 5, 8));
        assert_eq!(Graph::random(9, 5, 7).unwrap().edges().len(), 9);
    }
}
