//! What was measured between two nodes, and what of all of them is the middle.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Observation;
use crate::stats::median;

/// Which way messages went between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the first node to the second.
    There,
    /// From the second to the first.
    Back,
    /// Both ways at once: a message of every pair each way, and the time until both are there.
    Both,
}

impl Direction {
    /// All of them, as they are told.
    pub const ALL: [Direction; 3] = [Direction::There, Direction::Back, Direction::Both];
}

/// The observations of two nodes, in one direction where they were apart.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Between {
    pub nodes: (usize, usize),
    pub direction: Option<Direction>,
    /// Repetition by repetition, in the order measured.
    pub observations: Vec<Observation>,
}

/// What is fitted of all of them: in every repetition, the median of each (k, n) over the pairs of nodes and over the
/// directions that were by themselves. What both directions do at once is another question.
pub fn middle(all: &[Between], repetitions: usize) -> Vec<Observation> {
    let single: Vec<&Between> = all.iter().filter(|of| of.direction != Some(Direction::Both)).collect();
    if let [only] = single[..] {
        return only.observations.clone();
    }
    let mut out = Vec::new();
    for repetition in 0..repetitions {
        let mut cells: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for of in &single {
            let count = of.observations.len() / repetitions;
            for seen in &of.observations[repetition * count..][..count] {
                cells.entry((seen.pairs, seen.bytes)).or_default().push(seen.seconds);
            }
        }
        out.extend(cells.into_iter().filter_map(|((pairs, bytes), mut seconds)| {
            Some(Observation { pairs, bytes, seconds: median(&mut seconds)? })
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_of_each_repetition_and_leaves_both_ways_at_once_out() {
        let of = |second: usize, direction, seconds: [f64; 2]| Between {
            nodes: (0, second),
            direction,
            observations: seconds.map(|seconds| Observation { pairs: 1, bytes: 8, seconds }).to_vec(),
        };
        let seconds = |all: &[Between]| middle(all, 2).iter().map(|seen| seen.seconds).collect::<Vec<_>>();
        let one = of(1, None, [1.0, 9.0]);
        assert_eq!(seconds(std::slice::from_ref(&one)), [1.0, 9.0]);
        assert_eq!(seconds(&[one, of(2, None, [2.0, 5.0]), of(3, None, [9.0, 1.0])]), [2.0, 5.0]);
        let [there, back, both] = Direction::ALL.map(Some);
        assert_eq!(
            seconds(&[of(1, there, [1.0, 2.0]), of(1, back, [3.0, 4.0]), of(1, both, [90.0, 90.0])]),
            [2.0, 3.0]
        );
    }

    #[test]
    fn nodes_with_more_ranks_alone_have_more_pairs() {
        let of = |most: usize| Between {
            nodes: (0, most),
            direction: None,
            observations: (1..=most).map(|pairs| Observation { pairs, bytes: 8, seconds: most as f64 }).collect(),
        };
        let found: Vec<(usize, f64)> =
            middle(&[of(1), of(3)], 1).iter().map(|seen| (seen.pairs, seen.seconds)).collect();
        assert_eq!(found, [(1, 2.0), (2, 3.0), (3, 3.0)]);
    }
}
