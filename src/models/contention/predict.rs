//! How long each message takes: penalties hold until a message arrives, then those of the smaller graph do.

use super::{Graph, Model, penalties};

/// Remaining parts of a message below this are rounding, not data.
const ROUNDING: f64 = 1e-9;

/// A stretch of time during which the same messages are under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When it ends, in multiples of the contention-free time.
    pub end: f64,
    /// Every edge's penalty; none for those that have arrived.
    pub penalties: Vec<Option<f64>>,
}

/// A graph from start to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Every edge's time, in multiples of the contention-free time.
    pub times: Vec<f64>,
    /// The steps, in order; at most one for each edge.
    pub steps: Vec<Step>,
}

impl Prediction {
    /// The penalties of an edge, step by step.
    pub fn penalties_of(&self, edge: usize) -> Vec<f64> {
        self.steps.iter().map_while(|step| step.penalties[edge]).collect()
    }
}

/// Follows the messages of `graph` until the last arrives.
pub fn predict(graph: &Graph, model: Model) -> Prediction {
    let count = graph.edges().len();
    let (mut left, mut live) = (vec![1.0; count], vec![true; count]);
    let (mut times, mut steps) = (vec![0.0; count], Vec::new());
    let mut now = 0.0;
    while live.contains(&true) {
        let mut step: Vec<Option<f64>> = vec![None; count];
        let places = (0..count).filter(|&edge| live[edge]);
        for (edge, penalty) in places.zip(penalties(&graph.live(&live), model)) {
            step[edge] = Some(penalty);
        }
        let ends = step.iter().zip(&left).filter_map(|(penalty, left)| Some((*penalty)? * left));
        let length = ends.fold(f64::INFINITY, f64::min);
        now += length;
        for edge in 0..count {
            let Some(penalty) = step[edge] else { continue };
            left[edge] -= length / penalty;
            if left[edge] < ROUNDING {
                (live[edge], times[edge]) = (false, now);
            }
        }
        steps.push(Step { end: now, penalties: step });
    }
    Prediction { times, steps }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{PAPER_T_REF, Shape};
    use super::*;

    fn check(shape: &str, model: Model, times: &[f64], steps: &[&[f64]]) {
        let found = predict(&shape.parse::<Shape>().unwrap().graph(), model);
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 5e-4;
        assert_eq!(found.times.len(), times.len());
        assert!(found.times.iter().zip(times).all(|(&a, &b)| close(a, b)), "{shape}: {:?}", found.times);
        for (edge, expected) in steps.iter().enumerate() {
            let by_step = found.penalties_of(edge);
            assert_eq!(by_step.len(), expected.len(), "{shape}, edge {edge}: {by_step:?}");
            assert!(by_step.iter().zip(*expected).all(|(&a, &b)| close(a, b)), "{shape}, edge {edge}: {by_step:?}");
        }
    }

    #[test]
    fn the_papers_examples() {
        check("fig2.1", Model::Text, &[3.0; 3], &[&[3.0][..]; 3]);
        check("fig2.2", Model::Text, &[2.0; 4], &[&[2.0][..]; 4]);
        let (ab, cd) = (&[5.0, 4.0, 2.0][..], &[2.5, 2.5][..]);
        check("graph-a", Model::Text, &[3.375, 3.375, 2.5, 2.5, 1.25], &[ab, ab, cd, cd, &[1.25]]);
        let (ab, cde) = (&[5.0, 2.0][..], &[3.5][..]);
        check("graph-b", Model::Text, &[4.1, 4.1, 3.5, 3.5, 3.5], &[ab, ab, cde, cde, cde]);
        let (abc, de) = (&[3.5, 3.5, 3.0][..], &[3.3333, 2.3333][..]);
        let times = [3.3976, 3.3976, 3.3976, 2.7833, 2.7833, 1.5];
        check("fig3", Model::Figure3, &times, &[abc, abc, abc, de, de, &[1.5]]);
    }

    #[test]
    fn seconds_of_figures_3_and_4() {
        let seconds = |shape: &str, model| {
            let found = predict(&shape.parse::<Shape>().unwrap().graph(), model);
            found.times.iter().map(|time| time * PAPER_T_REF).collect::<Vec<_>>()
        };
        let cases = [
            ("graph-a", Model::Text, vec![0.036132, 0.036132, 0.026765, 0.026765, 0.013382]),
            ("graph-b", Model::Text, vec![0.043894, 0.043894, 0.037471, 0.037471, 0.037471]),
            ("fig3", Model::Figure3, vec![0.0363749, 0.0363749, 0.0363749, 0.0297984, 0.0297984, 0.016059]),
        ];
        for (shape, model, expected) in cases {
            let found = seconds(shape, model);
            assert!(found.iter().zip(&expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-3), "{shape}: {found:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn times_are_ordered_and_all_data_arrives(edges in 1usize..=12, nodes in 2usize..10, seed: u64) {
            let graph = Graph::random(edges, nodes, seed).unwrap();
            for model in Model::ALL {
                let found = predict(&graph, model);
                prop_assert!(found.steps.len() <= edges);
                prop_assert!(found.steps.windows(2).all(|pair| pair[0].end < pair[1].end));
                let last = found.steps.last().unwrap().end;
                for (edge, &time) in found.times.iter().enumerate() {
                    prop_assert!((1.0 - 1e-9..=last).contains(&time));
                    let (mut start, mut moved) = (0.0, 0.0);
                    for step in &found.steps {
                        moved += step.penalties[edge].map_or(0.0, |penalty| (step.end - start) / penalty);
                        start = step.end;
                    }
                    prop_assert!((moved - 1.0).abs() < 1e-6, "edge {} moved {}", edge, moved);
                }
            }
        }
    }
}
