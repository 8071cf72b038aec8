//! Contention graphs: messages that compete for the ports of nodes, what a model says of them, and how to draw them.
//!
//! A [`Graph`] is a set of messages that start together with the same size, or have sizes and starts of their own.
//! [`penalties`] gives the factor by which the model slows each of them while all are under way, [`Learned`] what a network
//! was measured to do; [`predict`] follows them step by step until the last has arrived;
//! [`first_step`] goes the other way, from measured times to penalties. After M. Martinasso and J.-F. Méhaut, "A
//! Contention-Aware Performance Model for HPC-Based Networks: A Case Study of the InfiniBand Network", Euro-Par 2011.

mod draw;
mod graph;
mod learned;
mod measure;
#[cfg(test)]
mod paper;
mod parse;
mod penalty;
mod predict;
mod shapes;
mod solve;

pub use draw::{dot, svg};
pub use graph::{Edge, Graph, MOST_EDGES, Message};
pub use learned::Learned;
pub use measure::{Bench, Counts, ranks_needed};
pub use penalty::{Model, penalties, port_shares};
pub use predict::{Alone, Prediction, Step, predict, predict_messages};
pub use shapes::Shape;
pub use solve::first_step;
pub use solve::{Measured, MeasuredEdge};

/// Message size of the paper, in bytes: 20 MB.
pub const PAPER_BYTES: u64 = 20_971_520;

/// Time of one such message without contention on the paper's machine, in seconds.
pub const PAPER_T_REF: f64 = 0.010_706;

/// Why a graph cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("line {line}: expected `source destination [bytes [start]]`, found '{text}'")]
    Line { line: usize, text: String },
    #[error("{place}: {expected} expected, found {found}")]
    Dot { place: String, expected: &'static str, found: String },
    #[error("{place}: {detail}")]
    Message { place: String, detail: String },
    #[error("an undirected DOT graph has no senders: write `digraph` and `->`")]
    Undirected,
    #[error("'{0}' sends to itself: messages inside a node use no port")]
    SelfLoop(String),
    #[error("'{0}' is no name for a node: tables have it on one line")]
    Name(String),
    #[error("the graph has no edge")]
    Empty,
    #[error(
        "the graph has more than {MOST_EDGES} edges, which the model takes at most: every message that arrives changes all others"
    )]
    TooManyEdges,
    #[error("{edges} edges need at least 2 nodes; there are {nodes}")]
    TooFewNodes { edges: usize, nodes: usize },
}
