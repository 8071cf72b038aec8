//! The penalties of messages that are under way together, on InfiniBand.
//!
//! For a message e from s to d, with o(v) the messages that leave v, i(v) those that enter it, and the rivals of e the
//! messages into d from other sources:
//! - all messages of s have the penalty o(s) + max k(e') over its messages e', because a held-back card delays all its
//!   messages;
//! - (a) k(e') = 0 when i(d') <= o(s) and every rival's source has outdegree o(s): the senders pace themselves;
//! - (b) a source with one message and one rival r has 1 + 1/(ρ(r) - 1): it takes what the rival leaves;
//! - (c) otherwise k(e') = Σ 1/o(source of rival), over the rivals of all messages of s: also of those that pace themselves.
//!
//! The paper does not follow (b) everywhere; [`Model`] makes the choice explicit. Two lone sources into one node are
//! each other's rivals: the fixed point of (b), 2, is taken.

use std::collections::HashMap;

use super::{Edge, Graph};

/// Which reading of the penalty rules.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The text's rules, read so that the paper's figures 2 and 4 follow
    #[default]
    Text,
    /// As the paper's figure 3 computes: a lone source with one rival follows rule (c), not (b)
    Figure3,
    /// The text's rules, then no port receives more than its rate (the paper's graph B receives 1.057 times it)
    PortLimited,
    /// The text's rules, but a message that paces itself by rule (a) adds nothing to the sum of rule (c) either
    PacedApart,
}

impl Model {
    /// All of them.
    #[cfg(test)]
    pub(super) const ALL: [Model; 4] = [Model::Text, Model::Figure3, Model::PortLimited, Model::PacedApart];
}

/// The penalty of every edge while all of them are under way.
pub fn penalties(graph: &Graph, model: Model) -> Vec<f64> {
    let (out, into) = graph.degrees();
    let ports = Ports::of(graph, &out);
    let mut sums = vec![0.0; out.len()];
    let mut held_back = vec![false; out.len()];
    for edge in graph.edges() {
        let own = out[edge.source];
        let paced = into[edge.destination] <= own && ports.senders_alike[edge.destination];
        held_back[edge.source] |= !paced;
        if !(paced && model == Model::PacedApart) {
            sums[edge.source] += ports.rivals_share(edge, own);
        }
    }
    let total: Vec<f64> =
        (0..out.len()).map(|node| out[node] as f64 + if held_back[node] { sums[node] } else { 0.0 }).collect();
    let by_rule_b = |edge: &Edge| {
        // A lone message beside one other at its destination.
        if (out[edge.source], into[edge.destination]) != (1, 2) {
            return None;
        }
        let rival = ports.sources[edge.destination] - edge.source;
        // A rival that is a lone source too shares evenly with this one: rule (c) gives both 2 as well.
        (out[rival] > 1).then(|| 1.0 + 1.0 / (total[rival] - 1.0))
    };
    let penalty = |edge: &Edge| match model {
        Model::Figure3 => total[edge.source],
        Model::Text | Model::PortLimited | Model::PacedApart => by_rule_b(edge).unwrap_or(total[edge.source]),
    };
    let penalties: Vec<f64> = graph.edges().iter().map(penalty).collect();
    if model == Model::PortLimited { limited(graph, penalties) } else { penalties }
}

/// What is known of each destination's port, gathered once for all edges: looking at every pair of edges would take the
/// square of their number.
struct Ports {
    /// The sum over its edges of 1 / messages of their source.
    shares: Vec<f64>,
    /// The sum of the sources of its edges; of two, it gives the other.
    sources: Vec<usize>,
    /// Whether all its sources send equally many messages.
    senders_alike: Vec<bool>,
    /// How many edges there are between two nodes.
    parallel: HashMap<(usize, usize), usize>,
}

impl Ports {
    fn of(graph: &Graph, out: &[usize]) -> Self {
        let count = out.len();
        let mut ports = Ports {
            shares: vec![0.0; count],
            sources: vec![0; count],
            senders_alike: vec![true; count],
            parallel: HashMap::new(),
        };
        let mut first: Vec<Option<usize>> = vec![None; count];
        for &Edge { source, destination } in graph.edges() {
            ports.shares[destination] += 1.0 / out[source] as f64;
            ports.sources[destination] += source;
            ports.senders_alike[destination] &= *first[destination].get_or_insert(out[source]) == out[source];
            *ports.parallel.entry((source, destination)).or_default() += 1;
        }
        ports
    }

    /// The sum over messages of other sources to the same destination, of 1 / messages of their source. `own` is how many
    /// this one's has.
    fn rivals_share(&self, edge: &Edge, own: usize) -> f64 {
        let parallel = self.parallel[&(edge.source, edge.destination)];
        self.shares[edge.destination] - parallel as f64 / own as f64
    }
}

/// The part of its port's rate that every node sends, and that every node receives, under these penalties.
pub fn port_shares(graph: &Graph, penalties: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut sent, mut received) = (vec![0.0; graph.node_count()], vec![0.0; graph.node_count()]);
    for (edge, penalty) in graph.edges().iter().zip(penalties) {
        sent[edge.source] += 1.0 / penalty;
        received[edge.destination] += 1.0 / penalty;
    }
    (sent, received)
}

/// Slows the messages into each overfull port until it is just full. Slowing never fills another port, so once is enough.
fn limited(graph: &Graph, penalties: Vec<f64>) -> Vec<f64> {
    let (_, received) = port_shares(graph, &penalties);
    let edges = graph.edges().iter().zip(penalties);
    edges.map(|(edge, penalty)| penalty * received[edge.destination].max(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Shape;
    use super::*;

    fn of(shape: &str, model: Model) -> Vec<f64> {
        penalties(&shape.parse::<Shape>().unwrap().graph(), model)
    }

    fn same(found: &[f64], expected: &[f64]) {
        let close = found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 5e-4);
        assert!(found.len() == expected.len() && close, "{found:?}, not {expected:?}");
    }

    #[test]
    fn figure_2() {
        same(&of("fig2.1", Model::Text), &[3.0; 3]);
        same(&of("fig2.2", Model::Text), &[2.0; 4]);
        same(&of("fig2.3", Model::Text), &[4.0, 4.0, 4.0, 2.6667, 2.6667]);
        same(&of("fig2.4", Model::Text), &[4.0, 4.0, 1.3333, 1.3333]);
    }

    #[test]
    fn first_steps_of_figures_3_and_4() {
        same(&of("graph-a", Model::Text), &[5.0, 5.0, 2.5, 2.5, 1.25]);
        same(&of("graph-b", Model::Text), &[5.0, 5.0, 3.5, 3.5, 3.5]);
        same(&of("fig3", Model::Text), &[3.5, 3.5, 3.5, 3.3333, 3.3333, 1.4286]);
        same(&of("fig3", Model::Figure3), &[3.5, 3.5, 3.5, 3.3333, 3.3333, 1.5]);
    }

    /// Of a>b a>c d>b d>x e>c, a>b paces itself with d>b, and a>c does not with e>c.
    #[test]
    fn the_sum_of_rule_c_is_over_all_messages_of_the_source() {
        let pairs = [("a", "b"), ("a", "c"), ("d", "b"), ("d", "x"), ("e", "c")];
        let graph = Graph::new(&pairs).unwrap();
        same(&penalties(&graph, Model::Text), &[3.5, 3.5, 2.0, 2.0, 1.4]);
        same(&penalties(&graph, Model::PacedApart), &[3.0, 3.0, 2.0, 2.0, 1.5]);
        let differ = |seed: &u64| {
            let graph = Graph::random(8, 6, *seed).unwrap();
            penalties(&graph, Model::Text) != penalties(&graph, Model::PacedApart)
        };
        let part = (0..500).filter(differ).count() as f64 / 500.0;
        assert!((0.05..0.4).contains(&part), "{part} of random graphs differ");
    }

    #[test]
    fn basic_conflicts_share_evenly() {
        for model in Model::ALL {
            for size in 1..=6 {
                same(&of(&format!("out-{size}"), model), &vec![size as f64; size]);
                same(&of(&format!("in-{size}"), model), &vec![size as f64; size]);
            }
            same(&of("pairs-3", model), &[1.0; 3]);
            same(&of("ring-5", model), &[1.0; 5]);
        }
    }

    #[test]
    fn the_papers_graph_b_receives_more_than_a_port_carries() {
        let graph = "graph-b".parse::<Shape>().unwrap().graph();
        let (_, received) = port_shares(&graph, &penalties(&graph, Model::Text));
        assert!((received[2] - 1.0571).abs() < 1e-4, "{received:?}");
        let (_, received) = port_shares(&graph, &penalties(&graph, Model::PortLimited));
        assert!((received[2] - 1.0).abs() < 1e-12, "{received:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn penalties_slow_and_ports_carry_what_they_can(edges in 1usize..=12, nodes in 2usize..10, seed: u64) {
            let graph = Graph::random(edges, nodes, seed).unwrap();
            for model in Model::ALL {
                let penalties = penalties(&graph, model);
                prop_assert!(penalties.iter().all(|&penalty| penalty >= 1.0 && penalty.is_finite()), "{penalties:?}");
                let (sent, received) = port_shares(&graph, &penalties);
                prop_assert!(sent.iter().all(|&share| share <= 1.0 + 1e-9), "{sent:?}");
                // The rules of the paper overfill receiving ports by up to 1.5 times in graphs of this size.
                let limit = if model == Model::PortLimited { 1.0 + 1e-9 } else { 1.5 };
                prop_assert!(received.iter().all(|&share| share <= limit), "{received:?} by {model:?}");
            }
        }
    }
}
