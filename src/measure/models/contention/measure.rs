//! Measures the edges of a graph on any transport.
//!
//! Node i of the graph is node i of the job. Every end of an edge has a rank of its own, so that each edge is timed by
//! itself: by its sender, from the end of a barrier of all until the receiver's one-byte answer. A receiver's own clock
//! would start when it leaves the barrier, which may be after the message came; and clocks of two nodes do not compare.
//!
//! A repetition measures every edge alone and all of them together, in an order that the seed decides anew each time, so
//! that what changes with time falls on both alike. Each of these is repeated until the slowest edge's rate is steady.
//!
//! Messages with starts of their own begin by one clock, which the first rank compares with the others' before: every sender
//! waits until its message is due, and times it from then. One that starts when others have arrived is told so by a rank of its
//! own node that sent or received them.

use tailback_transport::{Bootstrap, Error, Group, Nanos, Rank, Result, Span, Tag, Transport};

use super::solve::{Measured, Repetitions, Times};
use super::{Graph, Message, Model};
use crate::kernel::{CLOCK_SEGMENT, SharedClock, fill_pattern};
use crate::layout::{Nodes, order};
use crate::models::measure::{Control, StudyJob, check, everyone, forget, share};
use crate::stats::{Rule, Took, median};

const DATA: Tag = Tag(3);
const ANSWER: Tag = Tag(4);
/// Says that a message has arrived for which another waits.
const ARRIVED: Tag = Tag(5);
/// Before each timed message an untimed one of at most so many bytes: other edges were measured since the last.
const WARM_UP_BYTES: usize = 1 << 16;
/// Messages with starts begin so long after all ranks have agreed on it: some may have been asleep.
const HEAD_START: Nanos = Nanos(500_000);

/// How many ranks each node of a graph needs: one for every end of an edge.
pub fn ranks_needed(graph: &Graph) -> Vec<usize> {
    let (out, into) = graph.degrees();
    out.iter().zip(into).map(|(out, into)| out + into).collect()
}

/// What is sent, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// The length of messages that have none of their own.
    pub bytes: usize,
    /// That of the longest of all graphs.
    pub longest: usize,
    /// Whole measurements of a graph.
    pub repetitions: usize,
    /// The model whose penalties are looked for.
    pub model: Model,
}

/// A group of all ranks that measures graphs.
pub struct Bench<'a, G> {
    bootstrap: &'a mut dyn Bootstrap,
    group: G,
    nodes: &'a Nodes,
    bytes: usize,
    repetitions: usize,
    model: Model,
    seed: u64,
    control: Control<'a>,
    /// Where what was received lies: after the longest message that is sent.
    received: usize,
    clock: SharedClock,
    /// How many messages the graph's measurements took so far.
    took: Took,
}

impl<'a, G: Group> Bench<'a, G> {
    /// Makes the group. Collective.
    pub fn new(
        StudyJob { bootstrap, nodes, seed, control }: StudyJob<'a>,
        transport: &mut impl Transport<Group = G>,
        Counts { bytes, longest, repetitions, model }: Counts,
    ) -> Result<Self> {
        let received = longest.max(bytes).max(CLOCK_SEGMENT);
        let group = everyone(bootstrap, transport, received, 1)?;
        let (repetitions, took, clock) = (repetitions.max(1), Took::default(), SharedClock::default());
        Ok(Bench { bootstrap, group, nodes, bytes, repetitions, model, seed, control, received, clock, took })
    }

    /// The times of all edges together and alone, and the penalties they imply. Smaller graphs, needed for the latter,
    /// are measured too: at most as many as there are edges. Nothing when the user interrupts. `number` tells graphs
    /// apart, for orders of their own.
    pub fn graph(&mut self, graph: &Graph, number: usize) -> Result<Option<Measured>> {
        self.control.monitor.enter("contention graph");
        let traffic = self.traffic(graph)?;
        self.took = Took::default();
        let count = traffic.ends.len();
        let only = |edge: usize| (0..count).map(|other| other == edge).collect::<Vec<bool>>();
        let together = vec![true; count];
        let states: Vec<Vec<bool>> = (0..count).map(only).chain([together.clone()]).collect();
        if traffic.timed {
            self.clock = SharedClock::compare(&mut self.group)?;
            // The comparison wrote where messages are sent from.
            fill_pattern(&mut self.group, 0, CLOCK_SEGMENT);
        }
        let Some(mut times) = self.times(&traffic, &states, number)? else { return Ok(None) };
        let whole = times.pop().unwrap_or_default();
        // The edges alone are one time each: by repetition, then by edge, as together.
        let repetition = |at: usize| times.iter().map(|edge| edge[at][0]).collect();
        let alone = (0..whole.len()).map(repetition).collect();
        let mut all = Repetitions { alone, stages: vec![(together, whole)] };
        if traffic.timed {
            let sizes: Vec<f64> = traffic.bytes.iter().map(|bytes| *bytes as f64 / self.bytes as f64).collect();
            return Ok(Some(all.measured_messages(&sizes, self.took)));
        }
        loop {
            let live = all.left();
            if !live.contains(&true) {
                return Ok(Some(all.measured(graph, self.model, self.took)));
            }
            let Some(mut times) = self.times(&traffic, std::slice::from_ref(&live), number)? else { return Ok(None) };
            all.stages.push((live, times.pop().unwrap_or_default()));
        }
    }

    fn traffic(&self, graph: &Graph) -> Result<Traffic> {
        let bytes = |message: &Message| message.bytes.map_or(self.bytes, |bytes| bytes as usize);
        Ok(Traffic {
            ends: self.ends(graph)?,
            bytes: graph.messages().iter().map(bytes).collect(),
            starts: graph.messages().iter().map(|message| Nanos(message.start_ns)).collect(),
            told: self.told(graph)?,
            timed: !graph.is_uniform(),
        })
    }

    /// Which rank tells the sender of which message that one it waits for has arrived: (teller, message).
    fn told(&self, graph: &Graph) -> Result<Vec<(Rank, usize)>> {
        let (ends, edges) = (self.ends(graph)?, graph.edges());
        let teller = |waits: usize, other: usize| {
            let node = edges[waits].source;
            if edges[other].destination == node {
                return Ok((ends[other].1, waits));
            }
            if edges[other].source == node {
                return Ok((ends[other].0, waits));
            }
            let [waits, other] = [waits, other].map(|edge| graph.label(edges[edge]));
            let node = graph.node(node);
            Err(Error::Setup(format!(
                "{waits} starts after {other}, which {node} neither sends nor receives: such starts are predicted only, add \
                 --predict-only"
            )))
        };
        let all = graph.messages().iter().enumerate();
        all.flat_map(|(at, message)| message.after.iter().map(move |other| (at, *other)))
            .map(|(at, other)| teller(at, other))
            .collect()
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

    /// For each state (which edges are under way), the times of its edges in every repetition, on every rank; nothing
    /// when interrupted.
    fn times(&mut self, traffic: &Traffic, states: &[Vec<bool>], number: usize) -> Result<Option<Vec<Times>>> {
        let mut mine: Vec<(usize, usize, usize, f64)> = Vec::new();
        for repetition in 0..self.repetitions {
            // A number of its own for every draw of the study.
            let draw = ((number as u64) << 32) | repetition as u64;
            for at in order(self.seed, draw, states.len()) {
                let Some(timed) = self.steady(traffic, &states[at])? else { return Ok(None) };
                mine.extend(timed.into_iter().map(|(edge, seconds)| (at, repetition, edge, seconds)));
            }
        }
        let mut all: Vec<_> = share(self.bootstrap, &mine)?.into_iter().flatten().collect();
        // By state and repetition, then in the graph's order of edges.
        all.sort_unstable_by_key(|&(state, repetition, edge, _)| (state, repetition, edge));
        let mut times: Vec<Times> = vec![vec![Vec::new(); self.repetitions]; states.len()];
        all.into_iter().for_each(|(state, repetition, _, seconds)| times[state][repetition].push(seconds));
        Ok(Some(times))
    }

    /// Repeats a state until the slowest of its edges is steady: this rank's own edge and its time, if it sends. Nothing
    /// when interrupted.
    fn steady(&mut self, traffic: &Traffic, live: &[bool]) -> Result<Option<Vec<(usize, f64)>>> {
        let (me, control, ends) = (self.group.rank(), self.control, &traffic.ends);
        let sends = (0..ends.len()).find(|&edge| live[edge] && ends[edge].0 == me);
        let receives = (0..ends.len()).find(|&edge| live[edge] && ends[edge].1 == me);
        // An edge alone begins when it can.
        let timed = traffic.timed && live.iter().filter(|live| **live).count() > 1;
        let told = |wanted: &dyn Fn(Rank, usize) -> bool| -> Vec<(Rank, usize)> {
            let all = traffic.told.iter().filter(|_| timed);
            all.copied().filter(|(teller, edge)| wanted(*teller, *edge)).collect()
        };
        let mut place = Place {
            to: sends.map(|edge| (ends[edge].1, traffic.bytes[edge])),
            from: receives.map(|edge| (ends[edge].0, traffic.bytes[edge])),
            received: self.received,
            start: sends.filter(|_| timed).map_or(Nanos(0), |edge| traffic.starts[edge]),
            waited: Nanos(0),
            tellers: told(&|_, edge| sends == Some(edge)).into_iter().map(|(teller, _)| teller).collect(),
            listeners: told(&|teller, _| teller == me).into_iter().map(|(_, edge)| ends[edge].0).collect(),
            clock: timed.then_some(self.clock),
            agreed_in: Nanos(1),
        };
        place.once(&mut self.group, WARM_UP_BYTES)?;
        let mut batches: Vec<f64> = Vec::new();
        let rule = Rule { warm: true, ..control.rule };
        let rested = control.until_steady(&mut self.group, rule, |group, iterations| {
            let (mut own, mut waited) = (0, 0);
            for _ in 0..iterations {
                own += place.once(group, usize::MAX)?.0;
                waited += place.waited.0;
                // One message may take long, and a batch is many.
                control.monitor.tick();
            }
            batches.push(own as f64 * 1e-9 / iterations as f64);
            Ok(Nanos(if own == 0 { 0 } else { own + waited }))
        })?;
        let Some(rested) = rested else { return Ok(None) };
        self.took.add(&rested);
        // The same batches for every edge.
        let first = batches.len() - rested.batches;
        let seconds = median(&mut batches[first..]).unwrap_or_default();
        Ok(Some(sends.into_iter().map(|edge| (edge, seconds)).collect()))
    }
}

/// The messages of a graph.
struct Traffic {
    /// The sending and the receiving rank of each.
    ends: Vec<(Rank, Rank)>,
    bytes: Vec<usize>,
    starts: Vec<Nanos>,
    /// Which rank tells the sender of which message of an arrival that it waits for.
    told: Vec<(Rank, usize)>,
    /// Whether they have sizes or starts of their own.
    timed: bool,
}

/// A rank's part in a state: whom it sends to and whom it receives from, how much, and where that goes.
#[derive(Clone)]
struct Place {
    to: Option<(Rank, usize)>,
    from: Option<(Rank, usize)>,
    received: usize,
    /// How long after the first its message starts, or after the arrivals that it waits for.
    start: Nanos,
    /// How long it waited last time.
    waited: Nanos,
    /// Who tells it of arrivals, and whom it tells when its own message has arrived.
    tellers: Vec<Rank>,
    listeners: Vec<Rank>,
    /// The clock that starts are by; none when all start from a barrier.
    clock: Option<SharedClock>,
    /// How long agreeing on a start took last time.
    agreed_in: Nanos,
}

impl Place {
    /// Sends every live edge's message once, or `most` bytes of it; this rank's time, 0 if it does not send.
    fn once<G: Group>(&mut self, group: &mut G, most: usize) -> Result<Nanos> {
        if let Some((from, bytes)) = self.from {
            return self.receive(group, from, bytes.min(most)).map(|()| Nanos(0));
        }
        let due = self.together(group)?;
        self.to.map_or(Ok(Nanos(0)), |(to, bytes)| self.send(group, to, bytes.min(most), due))
    }

    /// Waits for all ranks; when this one's message is due, by its own clock, where messages have starts.
    fn together<G: Group>(&mut self, group: &mut G) -> Result<Option<Nanos>> {
        let Some(clock) = self.clock else { return group.barrier().map(|()| None) };
        let begin = group.now();
        group.start_agreement([clock.shared(begin), self.agreed_in.0, 0, 0])?;
        let [latest, slowest, ..] = group.wait_agreement()?;
        self.agreed_in = group.now().since(begin);
        // Still to come when the last rank hears of it: agreeing takes as long as it took, or a little more.
        let first = latest + 2 * slowest + HEAD_START.0;
        Ok(Some(clock.own(first + self.start.0)))
    }

    /// The receive is posted before the barrier, so that no message finds its receiver unready.
    fn receive<G: Group>(&mut self, group: &mut G, from: Rank, bytes: usize) -> Result<()> {
        forget(group, self.received, bytes);
        group.post_recv(from, DATA, Span::new(self.received, bytes))?;
        self.together(group)?;
        group.wait_all()?;
        self.tell(group)?;
        group.post_send(from, ANSWER, Span::new(0, 1))?;
        group.wait_all()?;
        check(group, from, self.received, bytes)
    }

    /// Says that this rank's message has arrived.
    fn tell<G: Group>(&self, group: &mut G) -> Result<()> {
        self.listeners.iter().try_for_each(|listener| group.post_send(*listener, ARRIVED, Span::new(0, 1)))
    }

    /// The time until the answer is here. A sender receives no data: what it hears may lie where that would.
    fn send<G: Group>(&mut self, group: &mut G, to: Rank, bytes: usize, due: Option<Nanos>) -> Result<Nanos> {
        let entered = group.now();
        for teller in &self.tellers {
            group.post_recv(*teller, ARRIVED, Span::new(self.received, 1))?;
            group.wait_all()?;
        }
        let due = if self.tellers.is_empty() { due } else { Some(Nanos(group.now().0 + self.start.0)) };
        self.waited = if self.tellers.is_empty() { self.start } else { group.now().since(entered) };
        group.post_recv(to, ANSWER, Span::new(self.received, 1))?;
        let begin = match due {
            // Counted from when it should have begun, however late it was.
            Some(due) => group.wait_until(due).map(|()| due)?,
            None => group.now(),
        };
        group.post_send(to, DATA, Span::new(0, bytes))?;
        group.wait_all()?;
        let taken = group.now().since(begin);
        self.tell(group)?;
        group.wait_all()?;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Lane;
    use tailback_testkit::loopback::{Fault, Job, Transfer};

    use super::super::Shape;
    use super::*;
    use crate::models::measure::testing::study;

    fn measure(job: Job, ranks: usize, per_node: usize, shape: &str) -> Result<Vec<Measured>> {
        let found = interrupted(job, (ranks, per_node), shape, None)?;
        Ok(found.into_iter().map(|found| found.expect("nobody interrupts")).collect())
    }

    fn interrupted(
        job: Job,
        (ranks, per_node): (usize, usize),
        shape: &str,
        by: Option<Rank>,
    ) -> Result<Vec<Option<Measured>>> {
        let graph = shape.parse::<Shape>().map_or_else(|_| shape.parse().unwrap(), |shape| shape.graph());
        let nodes = Nodes::virtual_nodes(ranks, per_node);
        let counts = Counts { bytes: 10_000, longest: 20_000, repetitions: 3, model: Model::Text };
        study(job, &nodes, by, |job, transport| Bench::new(job, transport, counts)?.graph(&graph, 0))
    }

    #[test]
    fn every_edge_is_timed_and_ranks_agree() {
        let found = measure(Job::new(9), 9, 3, "ring-3").unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(found[0].reference > 0.0 && found[0].reference_interval.is_some());
        assert_eq!(found[0].edges.len(), 3);
        // Alone and together, three times; stages of later arrivals come on top.
        assert!(found[0].took.measurements >= 12 && found[0].took.fewest >= 1, "{:?}", found[0].took);
        assert!(found[0].edges.iter().all(|edge| edge.seconds > 0.0 && edge.multiple_interval.is_some()));
    }

    #[test]
    fn messages_of_their_own_are_timed_from_their_starts() {
        let found = measure(Job::new(6), 6, 2, "0 1 20000\n0 2 5000 30ms\n1 2 1 60ms").unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(found[0].reference > 0.0 && found[0].edges.len() == 3);
        // A wait for the start is no part of the time, and no step is solved back.
        assert!(found[0].edges.iter().all(|edge| edge.seconds > 0.0 && edge.seconds < 0.03), "{found:?}");
        assert!(found[0].edges.iter().all(|edge| edge.penalty.is_none()));
    }

    #[test]
    fn messages_start_when_those_they_wait_for_have_arrived() {
        // A node that received it, and one that sent it.
        let found = measure(Job::new(9), 9, 3, "0 1 20000\n1 2 5000 0>1+20ms\n0 2 5000 0>1").unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(found[0].edges.iter().all(|edge| edge.seconds > 0.0 && edge.seconds < 0.02), "{found:?}");
        let message = measure(Job::new(8), 8, 2, "0 1\n2 3 5000 0>1").unwrap_err().to_string();
        assert!(message.contains("2>3 starts after 0>1, which 2 neither sends nor receives"), "{message}");
    }

    #[test]
    fn an_interrupt_of_one_rank_ends_all_of_them() {
        assert_eq!(interrupted(Job::new(4), (4, 1), "pairs-2", Some(Rank(1))).unwrap(), vec![None; 4]);
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
