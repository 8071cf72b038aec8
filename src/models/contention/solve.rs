//! From measured times back to the penalties of the first step (the paper's section 3.3).
//!
//! What a message moved after the first arrival follows from the later steps' lengths and the penalties of the graphs
//! that were left; the rest it moved in the first step. The penalties of the smaller graphs come from the caller:
//! measured in the same way, or a model's.

use super::Graph;

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
    use super::super::{Model, Shape, penalties, predict};
    use super::*;

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
