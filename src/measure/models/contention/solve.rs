//! From repeated times of a graph's edges back to the penalties of the first step, with intervals (the paper's section 3.3).
//!
//! What a message moved after the first arrival follows from the later steps' lengths and the penalties of the graphs
//! that were left; the rest it moved in the first step. The penalties of the smaller graphs are measured in the same way, or a
//! model's.
//!
//! Everything is on logarithms: a time is the geometric mean over repetitions, and so is the contention-free time. A
//! repetition measured both, so each gives a ratio of its own, and Student's t over those is the interval: what changes
//! between repetitions cancels. Penalties that are solved back through later steps have no such ratio; their interval
//! comes from leaving out one repetition at a time, which for a graph of one step is the same.

use super::{Graph, Model, penalties};
use crate::models::measure::geometric_mean;
use crate::stats::{Interval, Spread, Took, left_out};

/// What was measured of a graph. Intervals are 95%, and absent with fewer than three repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The contention-free time in seconds.
    pub reference: f64,
    /// Its interval.
    pub reference_interval: Option<Interval>,
    /// Every edge, in the graph's order.
    pub edges: Vec<MeasuredEdge>,
    /// How many messages of an edge a measurement took.
    pub took: Took,
}

/// What was measured of one edge while all were under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredEdge {
    /// Its time.
    pub seconds: f64,
    /// The interval of its time in multiples of the contention-free time.
    pub multiple_interval: Option<Interval>,
    /// The penalty of the first step, solved back; none where the times cannot tell.
    pub penalty: Option<f64>,
    /// Its interval.
    pub penalty_interval: Option<Interval>,
}

/// Seconds, by repetition and edge.
pub(super) type Times = Vec<Vec<f64>>;

/// The times of a graph: its edges each alone, and stages from the whole graph to its last edges, always without those
/// that arrived first.
pub(super) struct Repetitions {
    pub(super) alone: Times,
    /// Which edges are under way, and their times.
    pub(super) stages: Vec<(Vec<bool>, Times)>,
}

impl Repetitions {
    /// The edges that are left after the first arrival of the last stage.
    pub(super) fn left(&self) -> Vec<bool> {
        let Some((live, times)) = self.stages.last() else { return Vec::new() };
        let times = means(times, None);
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        let mut of_live = times.into_iter();
        live.iter().map(|live| *live && of_live.next().is_some_and(|time| is_later(time, first))).collect()
    }

    /// Everything that follows from the times; where a smaller graph was not measured, `model` says what it would have been.
    pub(super) fn measured(&self, graph: &Graph, model: Model, took: Took) -> Measured {
        let solved = self.penalties(graph, model, None);
        let without: Vec<Vec<Option<f64>>> =
            (0..self.alone.len()).map(|skipped| self.penalties(graph, model, Some(skipped))).collect();
        let mut measured = self.measured_messages(&vec![1.0; solved.len()], took);
        for (at, edge) in measured.edges.iter_mut().enumerate() {
            let others: Option<Vec<f64>> = without.iter().map(|penalties| penalties[at]).collect();
            edge.penalty = solved[at];
            edge.penalty_interval = solved[at].zip(others).and_then(|(whole, others)| left_out(whole, &others));
        }
        measured
    }

    /// The times of messages with sizes (in multiples of the reference's) and starts of their own. No penalties: what they
    /// would be solved back from is graphs whose messages start together.
    pub(super) fn measured_messages(&self, sizes: &[f64], took: Took) -> Measured {
        let one = |edges: &Vec<f64>| geometric_mean(edges.iter().zip(sizes).map(|(seconds, size)| seconds / size));
        let references: Vec<f64> = self.alone.iter().map(one).collect();
        let interval = |values: &[f64]| Spread::of(values).and_then(|spread| spread.interval);
        let together = &self.stages[0].1;
        let edge = |(at, seconds): (usize, f64)| {
            let multiples: Vec<f64> = together.iter().zip(&references).map(|(edges, one)| edges[at] / one).collect();
            MeasuredEdge { seconds, multiple_interval: interval(&multiples), penalty: None, penalty_interval: None }
        };
        Measured {
            reference: geometric_mean(references.iter().copied()),
            reference_interval: interval(&references),
            edges: means(together, None).into_iter().enumerate().map(edge).collect(),
            took,
        }
    }

    /// Penalties of the first step, from all repetitions or all but one.
    fn penalties(&self, graph: &Graph, model: Model, skipped: Option<usize>) -> Vec<Option<f64>> {
        let reference = geometric_mean(means(&self.alone, skipped).into_iter());
        let mut solved: Vec<(Graph, Vec<f64>)> = Vec::new();
        let mut found = Vec::new();
        for (live, times) in self.stages.iter().rev() {
            let stage = graph.live(live);
            let multiples: Vec<f64> = means(times, skipped).iter().map(|seconds| seconds / reference).collect();
            found = first_step(&stage, &multiples, |smaller| known(&solved, smaller, model));
            let usable = found.iter().map(|penalty| penalty.unwrap_or(1.0).max(1.0)).collect();
            solved.push((stage, usable));
        }
        found
    }
}

/// Every edge's geometric mean over the repetitions, or over all but one.
fn means(times: &Times, skipped: Option<usize>) -> Vec<f64> {
    let edges = times.first().map_or(0, Vec::len);
    let kept = || times.iter().enumerate().filter(|(at, _)| Some(*at) != skipped).map(|(_, edges)| edges);
    (0..edges).map(|edge| geometric_mean(kept().map(|edges| edges[edge]))).collect()
}

/// The penalties of a smaller graph, if it was measured. The arrivals of the large graph may leave other edges than the
/// measured chain has: then the model's are the nearest thing known.
fn known(solved: &[(Graph, Vec<f64>)], smaller: &Graph, model: Model) -> Vec<f64> {
    match solved.iter().find(|(graph, _)| graph == smaller) {
        Some((_, penalties)) => penalties.clone(),
        None => penalties(smaller, model),
    }
}

/// Arrivals closer than this part of their time are one: what divides equal messages by chance is no step of a graph,
/// and solving it as one would make large penalties of small noise.
const TOGETHER: f64 = 0.15;

/// Whether an arrival is one of its own after another.
pub(super) fn is_later(time: f64, than: f64) -> bool {
    time > than * (1.0 + TOGETHER)
}

/// Penalties of the first step from `times`, in multiples of the contention-free time. `later` gives the penalties of
/// a smaller graph. None for an edge whose measured times leave it no data to move in the first step.
pub fn first_step(graph: &Graph, times: &[f64], mut later: impl FnMut(&Graph) -> Vec<f64>) -> Vec<Option<f64>> {
    let ends = arrivals(times);
    let mut moved_later = vec![0.0; times.len()];
    for pair in ends.windows(2) {
        let live: Vec<bool> = times.iter().map(|&time| is_later(time, pair[0])).collect();
        let smaller = later(&graph.live(&live));
        let edges = (0..times.len()).filter(|&edge| live[edge]);
        for (edge, penalty) in edges.zip(smaller) {
            // An edge that arrives within a group of arrivals was under way until its own time only.
            moved_later[edge] += (pair[1].min(times[edge]) - pair[0]) / penalty;
        }
    }
    let first = ends.first().copied().unwrap_or_default();
    let penalty = |(&time, later): (&f64, f64)| {
        let moved = 1.0 - later;
        let step = if is_later(time, first) { first } else { time };
        (moved > 0.0).then(|| step / moved)
    };
    times.iter().zip(moved_later).map(penalty).collect()
}

/// The distinct arrival times, ascending; those close together are one, at its earliest.
fn arrivals(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut ends: Vec<f64> = Vec::new();
    for time in sorted {
        if ends.last().is_none_or(|&last| is_later(time, last)) {
            ends.push(time);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use chacha20::rand_core::{Rng, SeedableRng};

    use super::super::{Model, Shape, penalties, predict};
    use super::*;

    /// Normal noise on logarithms, after Box and Muller.
    fn noise(rng: &mut ChaCha8Rng, size: f64) -> f64 {
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = ((1.0 - uniform()).ln() * -2.0, uniform() * std::f64::consts::TAU);
        (size * radius.sqrt() * angle.cos()).exp()
    }

    /// Times of a state in every repetition, each of which finds the network as fast as `drift` says.
    fn times(rng: &mut ChaCha8Rng, multiples: &[f64], drift: &[f64]) -> Times {
        let mut once = |drift: &f64| multiples.iter().map(|of| 0.01 * of * drift * noise(rng, 0.03)).collect();
        drift.iter().map(&mut once).collect()
    }

    /// A graph whose messages take what the model says, with noise, on a network that drifts from repetition to
    /// repetition; smaller graphs are measured later, when it is another again.
    fn repetitions(graph: &Graph, rng: &mut ChaCha8Rng, count: usize) -> Repetitions {
        let mut drift: Vec<f64> = (0..count).map(|_| noise(rng, 0.1)).collect();
        let edges = graph.edges().len();
        let mut all = Repetitions { alone: times(rng, &vec![1.0; edges], &drift), stages: Vec::new() };
        let mut live = vec![true; edges];
        while live.contains(&true) {
            let predicted = predict(&graph.live(&live), Model::Text).times;
            all.stages.push((live.clone(), times(rng, &predicted, &drift)));
            drift = (0..count).map(|_| noise(rng, 0.1)).collect();
            live = all.left();
        }
        all
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // One step, and several: graph A's messages arrive at three times.
        for (shape, least) in [("in-3", 0.93), ("graph-a", 0.90)] {
            let graph = shape.parse::<Shape>().unwrap().graph();
            let (times, truth) = (predict(&graph, Model::Text).times, penalties(&graph, Model::Text));
            let (mut multiples, mut solved, mut count) = (0u32, 0u32, 0u32);
            for seed in 0..400 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let found = repetitions(&graph, &mut rng, 5).measured(&graph, Model::Text, Took::default());
                for (at, edge) in found.edges.iter().enumerate() {
                    count += 1;
                    multiples += u32::from(!edge.multiple_interval.unwrap().excludes(times[at]));
                    solved += u32::from(edge.penalty_interval.is_some_and(|of| !of.excludes(truth[at])));
                }
            }
            let part = |held: u32| f64::from(held) / f64::from(count);
            eprintln!("{shape}: times {:.3}, penalties {:.3} of {count}", part(multiples), part(solved));
            assert!((0.93..=0.97).contains(&part(multiples)), "{shape}: {}", part(multiples));
            assert!((least..=0.99).contains(&part(solved)), "{shape}: {}", part(solved));
        }
    }

    #[test]
    fn two_repetitions_have_no_interval() {
        let graph = "in-2".parse::<Shape>().unwrap().graph();
        let found =
            repetitions(&graph, &mut ChaCha8Rng::seed_from_u64(1), 2).measured(&graph, Model::Text, Took::default());
        assert!(found.reference > 0.0 && found.reference_interval.is_none());
        assert!(found.edges.iter().all(|edge| edge.penalty.is_some() && edge.penalty_interval.is_none()));
    }

    #[test]
    fn a_penalty_of_one_step_is_the_time_in_references() {
        let graph = "out-3".parse::<Shape>().unwrap().graph();
        let found =
            repetitions(&graph, &mut ChaCha8Rng::seed_from_u64(3), 5).measured(&graph, Model::Text, Took::default());
        for edge in found.edges {
            let (multiple, penalty) = (edge.multiple_interval.unwrap(), edge.penalty_interval.unwrap());
            assert!((edge.penalty.unwrap() * found.reference / edge.seconds - 1.0).abs() < 1e-9);
            assert!(
                (multiple.low / penalty.low - 1.0).abs() < 1e-9 && (multiple.high / penalty.high - 1.0).abs() < 1e-9
            );
        }
    }

    #[test]
    fn predicted_times_give_their_penalties_back() {
        for shape in ["fig2.1", "fig2.2", "fig2.3", "fig2.4", "graph-a", "graph-b", "fig3", "in-3", "out-3"] {
            let graph = shape.parse::<Shape>().unwrap().graph();
            for model in [Model::Text, Model::Figure3] {
                let solved = first_step(&graph, &predict(&graph, model).times, |smaller| penalties(smaller, model));
                for (solved, expected) in solved.iter().zip(penalties(&graph, model)) {
                    let solved = solved.expect("the model's own times leave data for every step");
                    assert!((solved / expected - 1.0).abs() < 1e-6, "{shape}: {solved}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn equal_messages_that_chance_divides_have_their_own_times_as_penalties() {
        let graph = "out-3".parse::<Shape>().unwrap().graph();
        let solved = first_step(&graph, &[2.92, 3.34, 3.35], |smaller| penalties(smaller, Model::Text));
        assert_eq!(solved, [Some(2.92), Some(3.34), Some(3.35)]);
    }

    #[test]
    fn times_that_no_graph_has_are_not_solved() {
        let graph = "out-2".parse::<Shape>().unwrap().graph();
        let solved = first_step(&graph, &[1.0, 9.0], |smaller| penalties(smaller, Model::Text));
        assert_eq!(solved, [Some(1.0), None]);
    }
}
