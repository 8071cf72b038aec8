//! How long each message takes: penalties hold until a message arrives or another starts, then those of the new graph do. A
//! message may start when others have arrived.

use super::{Graph, Message, Model, penalties};

/// Remaining parts of a message below this are rounding, not data.
const ROUNDING: f64 = 1e-9;

/// A stretch of time during which the same messages are under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When it ends, in multiples of the contention-free time.
    pub end: f64,
    /// Every edge's penalty; none for those that have not started, or have arrived.
    pub penalties: Vec<Option<f64>>,
}

/// A graph from start to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Every edge's time from its own start, in multiples of the contention-free time.
    pub times: Vec<f64>,
    /// When it starts, in the same.
    pub starts: Vec<f64>,
    /// The steps, in order; at most one for each start and each arrival.
    pub steps: Vec<Step>,
}

impl Prediction {
    /// The penalties of an edge, step by step.
    pub fn penalties_of(&self, edge: usize) -> Vec<f64> {
        self.steps.iter().filter_map(|step| step.penalties[edge]).collect()
    }
}

/// What one message without rivals is: all times are in multiples of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// Its size.
    pub bytes: u64,
    /// Its time in seconds; that of another size is in proportion.
    pub seconds: f64,
}

/// Follows the messages of `graph`, as if all were alike, until the last arrives.
pub fn predict(graph: &Graph, model: Model) -> Prediction {
    let count = graph.edges().len();
    follow(graph, |live| penalties(live, model), vec![1.0; count], &vec![(&[][..], 0.0); count])
}

/// The same with the sizes and starts that its messages have, by the penalties that `of` gives of those under way.
pub fn predict_messages(graph: &Graph, of: impl FnMut(&Graph) -> Vec<f64>, alone: Alone) -> Prediction {
    let bytes = |message: &Message| message.bytes.unwrap_or(alone.bytes) as f64;
    let sizes = graph.messages().iter().map(|message| bytes(message) / alone.bytes as f64).collect();
    let delay = |message: &Message| message.start_ns as f64 * 1e-9 / alone.seconds;
    let waits: Vec<(&[usize], f64)> =
        graph.messages().iter().map(|message| (&message.after[..], delay(message))).collect();
    follow(graph, of, sizes, &waits)
}

/// An event queue of starts and arrivals. `left` is what every message has to bring, `waits` which arrivals it waits for, and how
/// long after the last of them it begins.
fn follow(
    graph: &Graph,
    mut of: impl FnMut(&Graph) -> Vec<f64>,
    mut left: Vec<f64>,
    waits: &[(&[usize], f64)],
) -> Prediction {
    let count = graph.edges().len();
    // What is rounding of a large message would be all of a small one.
    let nothing: Vec<f64> = left.iter().map(|size| size * ROUNDING).collect();
    let mut arrived = vec![false; count];
    // Of one that waits it is not known yet.
    let mut starts: Vec<f64> =
        waits.iter().map(|(after, delay)| if after.is_empty() { *delay } else { f64::INFINITY }).collect();
    let (mut times, mut steps) = (vec![0.0; count], Vec::new());
    let mut now = starts.iter().copied().fold(f64::INFINITY, f64::min);
    while arrived.contains(&false) {
        let live: Vec<bool> = (0..count).map(|edge| !arrived[edge] && starts[edge] <= now).collect();
        let next = starts.iter().copied().filter(|start| *start > now).fold(f64::INFINITY, f64::min);
        if !live.contains(&true) {
            now = next;
            continue;
        }
        let mut step: Vec<Option<f64>> = vec![None; count];
        let places = (0..count).filter(|&edge| live[edge]);
        for (edge, penalty) in places.zip(of(&graph.live(&live))) {
            step[edge] = Some(penalty);
        }
        let ends = step.iter().zip(&left).filter_map(|(penalty, left)| Some((*penalty)? * left));
        let first = ends.fold(f64::INFINITY, f64::min);
        // To the very start of the next one, which a sum might miss. What is left is counted by the step's length: late in a
        // long run, a difference of times would round a small message away, or never let it arrive.
        let (length, end) = if next - now < first { (next - now, next) } else { (first, now + first) };
        for edge in 0..count {
            let Some(penalty) = step[edge] else { continue };
            left[edge] -= length / penalty;
            if left[edge] <= nothing[edge] {
                (arrived[edge], times[edge]) = (true, end - starts[edge]);
            }
        }
        for (start, (after, delay)) in starts.iter_mut().zip(waits) {
            if start.is_infinite() && after.iter().all(|other| arrived[*other]) {
                *start = end + delay;
            }
        }
        now = end;
        steps.push(Step { end: now, penalties: step });
    }
    Prediction { times, starts, steps }
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

    fn timed(text: &str) -> Prediction {
        let graph: Graph = text.parse().unwrap();
        predict_messages(&graph, |live| penalties(live, Model::Text), Alone { bytes: 1000, seconds: 0.001 })
    }

    #[test]
    fn a_message_that_starts_later_finds_what_is_left() {
        // Alone for half of it, then two share the port: half at penalty 2 takes 1, and the other then goes on alone.
        let found = timed("a b\na c 1000 500us");
        assert!((found.times[0] - 1.5).abs() < 1e-9 && (found.times[1] - 1.5).abs() < 1e-9, "{found:?}");
        let ends = found.steps.iter().map(|step| step.end);
        assert!(ends.zip([0.5, 1.5, 2.0]).all(|(end, expected)| (end - expected).abs() < 1e-9), "{found:?}");
        assert_eq!(found.penalties_of(1), [2.0, 1.0]);
        // One that comes after all others have arrived meets nobody.
        let found = timed("a b\na c 1000 9ms");
        assert!((found.times[1] - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.steps.len(), 2);
    }

    #[test]
    fn a_message_may_start_when_others_have_arrived() {
        // One after the other, each has the port to itself; the third waits for both and half a millisecond more.
        let found = timed("a b\na c 1000 a>b\nc b 1000 a>b,a>c+500us");
        assert!(found.times.iter().all(|time| (time - 1.0).abs() < 1e-9), "{found:?}");
        assert!(
            found.starts.iter().zip([0.0, 1.0, 2.5]).all(|(own, expected)| (own - expected).abs() < 1e-9),
            "{found:?}"
        );
        assert_eq!(found.steps.len(), 3);
        // A pipeline that meets what is still under way: a>b has 1.5, of which c>b takes from 1 to 2.
        let found = timed("a b 2000\nd c 1000\nc b 500 d>c");
        assert!((found.starts[2] - 1.0).abs() < 1e-9 && (found.times[2] - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.times[0] - 2.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_smaller_message_leaves_the_port_to_the_other() {
        let found = timed("a b 1000\na c 250");
        assert!((found.times[1] - 0.5).abs() < 1e-9 && (found.times[0] - 1.25).abs() < 1e-9, "{found:?}");
        let late = timed("a b\na c 1 1000h\nb c 1GiB");
        assert!(late.times.iter().all(|time| time.is_finite()), "{late:?}");
        let tiny = timed("a b 1\na c 1GiB");
        assert!((tiny.times[0] - 0.002).abs() < 1e-9, "{tiny:?}");
    }

    #[test]
    fn messages_that_are_alike_are_predicted_alike() {
        for shape in ["fig3", "graph-a", "in-4"] {
            let graph = shape.parse::<Shape>().unwrap().graph();
            let alone = Alone { bytes: 7, seconds: 3.0 };
            assert_eq!(
                predict_messages(&graph, |live| penalties(live, Model::Text), alone),
                predict(&graph, Model::Text),
                "{shape}"
            );
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
