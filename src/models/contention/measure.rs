//! Measures the edges of a graph on any transport.
//!
//! Node i of the graph is node i of the job. Every end of an edge has a rank of its own, so that each edge is timed by
//! itself: by its sender, from the end of a barrier of all until the receiver's one-byte answer. A receiver's own clock
//! would start when it leaves the barrier, which may be after the message came; and clocks of two nodes do not compare.

use tailback_transport::{Bootstrap, Error, Group, Monitor, Rank, Result, Span, Tag, Transport};

use super::{Graph, first_step};
use crate::layout::Nodes;
use crate::models::measure::{check, everyone, forget, median, share};

const DATA: Tag = Tag(3);
const ANSWER: Tag = Tag(4);

/// What was measured of a graph, in seconds where not said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Median time of each edge while all are under way.
    pub seconds: Vec<f64>,
    /// Penalties of the first step, solved back; none where the times cannot tell.
    pub penalties: Vec<Option<f64>>,
}

/// How many ranks each node of a graph needs: one for every end of an edge.
pub fn ranks_needed(graph: &Graph) -> Vec<usize> {
    let (out, into) = graph.degrees();
    out.iter().zip(into).map(|(out, into)| out + into).collect()
}

/// A group of all ranks that measures graphs.
pub struct Bench<'a, B: Bootstrap, T: Transport> {
    bootstrap: &'a mut B,
    group: T::Group,
    nodes: &'a Nodes,
    bytes: usize,
    repetitions: usize,
    monitor: &'a Monitor,
}

impl<'a, B: Bootstrap, T: Transport> Bench<'a, B, T> {
    /// Makes the group. Collective.
    pub fn new(
        bootstrap: &'a mut B,
        transport: &mut T,
        nodes: &'a Nodes,
        (bytes, repetitions): (usize, usize),
        monitor: &'a Monitor,
    ) -> Result<Self> {
        let group = everyone(bootstrap, transport, bytes, 1)?;
        Ok(Bench { bootstrap, group, nodes, bytes, repetitions: repetitions.max(1), monitor })
    }

    /// The contention-free time: the median over the graph's edges, each measured alone.
    pub fn reference(&mut self, graph: &Graph) -> Result<f64> {
        let ends = self.ends(graph)?;
        let mut alone = Vec::new();
        for edge in 0..graph.edges().len() {
            let only: Vec<bool> = (0..graph.edges().len()).map(|other| other == edge).collect();
            alone.extend(self.times(&ends, &only)?.into_iter().flatten());
        }
        Ok(median(&mut alone).unwrap_or_default())
    }

    /// The times of all edges together, and the penalties they imply. Smaller graphs, needed for the latter, are
    /// measured too: at most as many as there are edges.
    pub fn graph(&mut self, graph: &Graph, reference: f64) -> Result<Measured> {
        self.monitor.enter("contention graph");
        let ends = self.ends(graph)?;
        let count = graph.edges().len();
        let mut live = vec![true; count];
        // From the whole graph to its last edges, always without those that arrived first.
        let mut stages: Vec<(Vec<bool>, Vec<f64>)> = Vec::new();
        while live.contains(&true) {
            let times: Vec<f64> =
                self.times(&ends, &live)?.into_iter().flatten().map(|seconds| seconds / reference).collect();
            let first = times.iter().copied().fold(f64::INFINITY, f64::min);
            stages.push((live.clone(), times.clone()));
            let mut of_live = times.into_iter();
            for edge in live.iter_mut().filter(|edge| **edge) {
                *edge = of_live.next().is_some_and(|time| super::solve::is_later(time, first));
            }
        }
        let mut solved: Vec<(Graph, Vec<f64>)> = Vec::new();
        let mut penalties = Vec::new();
        for (live, times) in stages.iter().rev() {
            let stage = graph.live(live);
            penalties = first_step(&stage, times, |smaller| known(&solved, smaller));
            let usable = penalties.iter().map(|penalty| penalty.unwrap_or(1.0).max(1.0)).collect();
            solved.push((stage, usable));
        }
        let seconds = stages[0].1.iter().map(|time| time * reference).collect();
        Ok(Measured { seconds, penalties })
    }

    /// The sending and the receiving rank of every edge.
    fn ends(&self, graph: &Graph) -> Result<Vec<(Rank, Rank)>> {
        let need = ranks_needed(graph);
        if need.len() > self.nodes.len() {
            let (need, have) = (need.len(), self.nodes.len());
            return Err(Error::Setup(format!("the graph has {need} nodes and the job {have}: use more nodes")));
        }
        let mut next = vec![0; need.len()];
        let mut take = |node: usize| {
            next[node] += 1;
            self.nodes.ranks(node).get(next[node] - 1).copied().ok_or_else(|| {
                let (name, have) = (self.nodes.name(node), self.nodes.ranks(node).len());
                let need = need[node];
                Error::Setup(format!(
                    "node '{}' of the graph has {need} edge ends and {name} has {have} ranks: start {need} ranks per node",
                    graph.node(node)
                ))
            })
        };
        graph.edges().iter().map(|edge| Ok((take(edge.source)?, take(edge.destination)?))).collect()
    }

    /// The median time of every live edge in seconds, on every rank.
    fn times(&mut self, ends: &[(Rank, Rank)], live: &[bool]) -> Result<Vec<Option<f64>>> {
        let me = self.group.rank();
        let sends = (0..ends.len()).find(|&edge| live[edge] && ends[edge].0 == me);
        let receives = (0..ends.len()).find(|&edge| live[edge] && ends[edge].1 == me);
        let mut times = Vec::with_capacity(self.repetitions);
        // The first round is a warm-up.
        for round in 0..=self.repetitions {
            self.monitor.tick();
            if let Some(edge) = receives {
                self.receive(ends[edge].0)?;
            } else {
                self.group.barrier()?;
            }
            if let Some(edge) = sends {
                let seconds = self.send(ends[edge].1)?;
                times.extend((round > 0).then_some(seconds));
            }
        }
        let own: Option<(usize, f64)> = sends.and_then(|edge| Some((edge, median(&mut times)?)));
        let mut all = vec![None; ends.len()];
        for (edge, seconds) in share(self.bootstrap, &own)?.into_iter().flatten() {
            all[edge] = Some(seconds);
        }
        Ok(all)
    }

    /// The receive is posted before the barrier, so that no message finds its receiver unready.
    fn receive(&mut self, from: Rank) -> Result<()> {
        forget(&mut self.group, self.bytes, self.bytes);
        self.group.post_recv(from, DATA, Span::new(self.bytes, self.bytes))?;
        self.group.barrier()?;
        self.group.wait_all()?;
        self.group.post_send(from, ANSWER, Span::new(0, 1))?;
        self.group.wait_all()?;
        check(&self.group, from, self.bytes, self.bytes)
    }

    /// Seconds until the answer is here. A sender receives nothing else: the answer may lie where data would.
    fn send(&mut self, to: Rank) -> Result<f64> {
        let begin = self.group.now();
        self.group.post_recv(to, ANSWER, Span::new(self.bytes, 1))?;
        self.group.post_send(to, DATA, Span::new(0, self.bytes))?;
        self.group.wait_all()?;
        Ok(self.group.now().since(begin).as_secs_f64())
    }
}

/// The penalties of a smaller graph, if it was measured. The arrivals of the large graph may leave other edges than the
/// measured chain has: then the nearest thing known is that nothing is faster than contention-free.
fn known(solved: &[(Graph, Vec<f64>)], smaller: &Graph) -> Vec<f64> {
    match solved.iter().find(|(graph, _)| graph == smaller) {
        Some((_, penalties)) => penalties.clone(),
        None => super::penalties(smaller, super::Model::default()),
    }
}

#[cfg(test)]
mod tests {
    use tailback_transport::loopback::{Fault, Job, Transfer};
    use tailback_transport::{Collective, Lane};

    use super::super::Shape;
    use super::*;

    fn measure(job: Job, ranks: usize, per_node: usize, shape: &str) -> Result<Vec<Measured>> {
        let graph = shape.parse::<Shape>().unwrap().graph();
        let nodes = Nodes::virtual_nodes(ranks, per_node);
        job.run(|mut bootstrap, raw| {
            let monitor = Monitor::new();
            let mut transport = Collective::new(raw);
            let mut bench = Bench::new(&mut bootstrap, &mut transport, &nodes, (10_000, 3), &monitor)?;
            let reference = bench.reference(&graph)?;
            bench.graph(&graph, reference)
        })
    }

    #[test]
    fn every_edge_is_timed_and_ranks_agree() {
        let found = measure(Job::new(9), 9, 3, "ring-3").unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!((found[0].seconds.len(), found[0].penalties.len()), (3, 3));
        assert!(found[0].seconds.iter().all(|&seconds| seconds > 0.0));
    }

    #[test]
    fn too_few_ranks_or_nodes_are_refused_with_what_is_needed() {
        let message = measure(Job::new(4), 4, 1, "out-3").unwrap_err().to_string();
        assert!(message.contains("3 ranks per node"), "{message}");
        let message = measure(Job::new(2), 2, 1, "out-3").unwrap_err().to_string();
        assert!(message.contains("4 nodes and the job 2"), "{message}");
    }

    struct Corrupts;

    impl Fault for Corrupts {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            if transfer.from == Rank(0) && transfer.label.is_some_and(|(lane, _)| lane == Lane::Data) {
                payload.iter_mut().skip(9_999).for_each(|byte| *byte ^= 1);
            }
        }
    }

    #[test]
    fn corruption_is_detected_and_its_sender_named() {
        let message = measure(Job::new(2).fault(Corrupts), 2, 1, "pairs-1").unwrap_err().to_string();
        assert!(message.contains("with rank 0") && message.contains("byte 9999"), "{message}");
    }
}
