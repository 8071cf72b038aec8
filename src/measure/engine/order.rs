//! The order of blocks: which state and which canary comes when.

use super::LoadState;

/// What is measured at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub canary: Option<usize>,
    pub congestor: Option<usize>,
    pub block: usize,
}

/// Parts that follow each other in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub phase: LoadState,
    pub parts: Vec<Part>,
}

impl Stretch {
    pub(super) fn of(phase: LoadState, part: Part) -> Self {
        Stretch { phase, parts: vec![part] }
    }
}

/// Isolated and loaded in the order of blocks: ABBA where `mirrored` is false, else BAAB, over and over.
fn order(blocks: usize, mirrored: bool) -> Vec<LoadState> {
    let at = |place: usize| (matches!(place % 4, 1 | 2) != mirrored).then_some(LoadState::Loaded);
    (0..2 * blocks).map(|place| at(place).unwrap_or(LoadState::Isolated)).collect()
}

/// All blocks of all canaries. Which state and which canary come first is drawn; canaries go forwards in one block and
/// backwards in the next, so that each has both of its states at the same mean time.
pub(super) fn stretches(blocks: usize, canaries: usize, seed: u64) -> Vec<Stretch> {
    let mixed = seed ^ (seed >> 7) ^ (seed >> 31);
    let first = (mixed >> 1) as usize % canaries.max(1);
    let mut stretches: Vec<Stretch> = Vec::new();
    for (block, phase) in order(blocks, mixed & 1 == 1).into_iter().enumerate() {
        let mut tests: Vec<usize> = (0..canaries).map(|at| (first + at) % canaries).collect();
        if block % 2 == 1 {
            tests.reverse();
        }
        let parts = tests.into_iter().map(|test| Part { canary: Some(test), congestor: None, block });
        match stretches.last_mut().filter(|last| last.phase == phase) {
            Some(last) => last.parts.extend(parts),
            None => stretches.push(Stretch { phase, parts: parts.collect() }),
        }
    }
    stretches
}

/// The order in which runs take turns on the placement with this index. Backwards on every second placement, so that what
/// changes evenly with time cancels over each two; over twice as many placements as runs, each run has every place equally
/// often and follows every other equally often (Williams' design).
pub fn turns(runs: usize, index: u32) -> Vec<usize> {
    // 0, 1, last, 2, last but one: no two neighbours are the same distance apart.
    let zigzag = (0..runs).map(|at| if at % 2 == 1 { at.div_ceil(2) } else { (runs - at / 2) % runs });
    let mut order: Vec<usize> = zigzag.map(|of| (of + index as usize / 2) % runs).collect();
    if index % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_take_turns_so_that_drift_cancels_and_none_follows_another_more_often() {
        for runs in 1..=6 {
            let orders: Vec<Vec<usize>> = (0..2 * runs as u32).map(|index| turns(runs, index)).collect();
            let place = |order: &Vec<usize>, run| order.iter().position(|of| *of == run).expect("each has a turn");
            for run in 0..runs {
                for two in orders.chunks(2) {
                    assert_eq!(place(&two[0], run) + place(&two[1], run), runs - 1, "{orders:?}");
                }
                for at in 0..runs {
                    assert_eq!(orders.iter().filter(|order| place(order, run) == at).count(), 2, "{orders:?}");
                }
                for other in (0..runs).filter(|other| *other != run) {
                    let follows = orders.iter().filter(|order| order.windows(2).any(|of| of == [other, run]));
                    assert_eq!(follows.count(), 2, "{runs} runs: {run} after {other}: {orders:?}");
                }
            }
        }
        assert_eq!([0, 1, 2, 3].map(|index| turns(2, index)), [[0, 1], [1, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn blocks_balance_the_states_over_time() {
        let text = |blocks, mirrored| -> String {
            order(blocks, mirrored).iter().map(|phase| if *phase == LoadState::Loaded { 'B' } else { 'A' }).collect()
        };
        assert_eq!((text(2, false).as_str(), text(2, true).as_str()), ("ABBA", "BAAB"));
        assert_eq!(text(4, false), "ABBAABBA");
    }

    #[test]
    fn every_canary_has_both_states_at_the_same_mean_time_and_load_comes_up_once_or_twice() {
        for (seed, loads) in [(0, 1), (1, 2), (2, 1), (7, 2)] {
            let stretches = stretches(2, 3, seed);
            let all: Vec<(LoadState, Part)> =
                stretches.iter().flat_map(|of| of.parts.iter().map(|part| (of.phase, *part))).collect();
            assert_eq!(all.len(), 12);
            let times = |test, phase| -> Vec<usize> {
                let wanted = |(state, part): &(LoadState, Part)| *state == phase && part.canary == Some(test);
                (0..all.len()).filter(|&at| wanted(&all[at])).collect()
            };
            for test in 0..3 {
                let (isolated, loaded) = (times(test, LoadState::Isolated), times(test, LoadState::Loaded));
                assert_eq!((isolated.len(), loaded.len()), (2, 2));
                assert_eq!(isolated.iter().sum::<usize>(), loaded.iter().sum::<usize>(), "{seed} {all:?}");
            }
            let ramps = stretches.iter().filter(|of| of.phase == LoadState::Loaded).count();
            assert_eq!(ramps, loads, "{seed}");
        }
        let first = |seed| stretches(2, 3, seed)[0].parts[0].canary;
        assert!((0..8).map(first).collect::<std::collections::HashSet<_>>().len() == 3, "each canary begins sometimes");
    }
}
