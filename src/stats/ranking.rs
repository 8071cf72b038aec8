//! Alternatives that were measured in turns on the same placements, ranked: every pair by its difference over placements.
//!
//! One is ranked before another only where the difference is significant with all pairs of all tests taken together (Holm).
//! Those that cannot be told apart share a place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::jobs::{Difference, paired_difference};
use super::many::{FAMILY_ERROR, holm, holm_levels};
use super::spread::Interval;

/// Two alternatives held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedPair {
    /// The first, by its number from 0.
    pub first: usize,
    /// The second, by its number from 0.
    pub second: usize,
    /// The mean of the second minus that of the first.
    pub difference: f64,
    /// Its interval, of the confidence that Holm's correction asks for: 0 is outside exactly where the two differ.
    pub interval: Interval,
    /// How likely a difference as far from 0 is when there is none, adjusted for all pairs of all tests.
    pub p_value: f64,
}

impl RankedPair {
    /// Whether the two differ.
    pub fn differs(&self) -> bool {
        self.p_value < FAMILY_ERROR
    }

    /// The lesser of the two and the greater, where they differ.
    pub fn order(&self) -> Option<(usize, usize)> {
        let order = if self.difference > 0.0 { (self.first, self.second) } else { (self.second, self.first) };
        self.differs().then_some(order)
    }
}

/// The order of alternatives by one test: less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Of each alternative: 1, and 1 more for each other that is less.
    pub places: Vec<usize>,
    /// Every pair once.
    pub pairs: Vec<RankedPair>,
}

impl Ranking {
    /// Of several tests, whose pairs are one family. Each has a list for each alternative, with a value for each placement in
    /// the same order. Nothing for a test with fewer than two alternatives, fewer than three placements, or unequal numbers of them.
    pub fn of_all(tests: &[Vec<Vec<f64>>]) -> Vec<Option<Self>> {
        let all: Vec<Option<Vec<Compared>>> = tests.iter().map(|values| every_pair(values)).collect();
        let p_values: Vec<f64> = all.iter().flatten().flatten().map(|of| of.p_value).collect();
        let mut family = holm(&p_values).into_iter().zip(holm_levels(&p_values));
        let mut judged = |of: &Compared| {
            let (p_value, level) = family.next()?;
            // Files hold nothing that is next to 0.
            let p_value = if p_value < 1e-30 { 0.0 } else { p_value };
            let interval = of.difference.interval(level)?;
            Some(RankedPair { first: of.first, second: of.second, difference: of.difference.value, interval, p_value })
        };
        let mut ranking = |(pairs, values): (&Option<Vec<Compared>>, &Vec<Vec<f64>>)| {
            let pairs: Vec<RankedPair> = pairs.as_ref()?.iter().filter_map(&mut judged).collect();
            let less = |one| pairs.iter().filter_map(RankedPair::order).filter(move |(_, greater)| *greater == one);
            let places = (0..values.len()).map(|one| 1 + less(one).count()).collect();
            Some(Ranking { places, pairs })
        };
        all.iter().zip(tests).map(&mut ranking).collect()
    }
}

/// A pair before the correction.
struct Compared {
    first: usize,
    second: usize,
    difference: Difference,
    p_value: f64,
}

fn every_pair(values: &[Vec<f64>]) -> Option<Vec<Compared>> {
    let pairs = (1..values.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    let compared = |(first, second): (usize, usize)| {
        let difference = paired_difference(&values[first], &values[second])?;
        Some(Compared { first, second, difference, p_value: difference.p_value()? })
    };
    pairs.map(compared).collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What placements have in common, an own mean, and noise.
    fn alternative(mean: f64, noise: [f64; 6]) -> Vec<f64> {
        let common = [10.0, 90.0, -60.0, 40.0, -30.0, 20.0];
        common.iter().zip(noise).map(|(common, noise)| mean + common + noise).collect()
    }

    const NOISE: [[f64; 6]; 3] =
        [[1.0, -0.5, 0.3, -1.2, 0.8, -0.4], [-0.7, 0.9, 1.1, -0.2, -0.9, 0.1], [0.2, -1.1, -0.3, 0.6, 0.4, 0.5]];

    #[test]
    fn what_differs_is_ranked_and_what_does_not_shares_a_place() {
        let three = vec![alternative(100.0, NOISE[0]), alternative(50.0, NOISE[1]), alternative(100.0, NOISE[2])];
        let found = Ranking::of_all(&[three]).remove(0).unwrap();
        assert_eq!(found.places, [2, 1, 2]);
        let differs: Vec<bool> = found.pairs.iter().map(RankedPair::differs).collect();
        assert_eq!(differs, [true, false, true]);
        assert_eq!(found.pairs[0].order(), Some((1, 0)));
        for pair in &found.pairs {
            assert_eq!(pair.differs(), pair.interval.excludes(0.0), "{pair:?}");
        }
    }

    #[test]
    fn a_difference_has_the_figures_of_the_textbook() {
        // Differences 1, 2, 3: mean 2, standard error 1 / sqrt 3, t(2) = 4.302653.
        let two = vec![vec![5.0, 7.0, 9.0], vec![6.0, 9.0, 12.0]];
        let pair = Ranking::of_all(&[two]).remove(0).unwrap().pairs[0];
        let half = 4.302_652_7 / 3f64.sqrt();
        assert!((pair.difference - 2.0).abs() < 1e-12);
        assert!((pair.interval.low - (2.0 - half)).abs() < 1e-6 && (pair.interval.high - (2.0 + half)).abs() < 1e-6);
    }

    /// 1 within a thousandth, twenty times: t is 4000, and t to the -19th is left of it.
    #[test]
    fn what_is_next_to_0_is_0() {
        let second = (0..20).map(|at| 1.0 + 0.001 * f64::from(at % 2)).collect();
        let pair = Ranking::of_all(&[vec![vec![0.0; 20], second]]).remove(0).unwrap().pairs[0];
        assert!(pair.p_value == 0.0 && pair.interval.high > pair.interval.low && pair.differs(), "{pair:?}");
    }

    #[test]
    fn all_tests_are_one_family() {
        let close = vec![alternative(0.0, NOISE[0]), alternative(1.2, NOISE[2])];
        let alone = Ranking::of_all(std::slice::from_ref(&close)).remove(0).unwrap().pairs[0].p_value;
        let same = vec![alternative(0.0, NOISE[0]), alternative(0.0, NOISE[1])];
        let together = Ranking::of_all(&[same, Vec::new(), close]);
        assert!(together[1].is_none());
        let adjusted = together[2].as_ref().unwrap().pairs[0].p_value;
        assert!((adjusted / alone - 2.0).abs() < 1e-9 && alone < 0.05, "{alone} {adjusted}");
    }

    #[test]
    fn equal_ones_are_told_apart_in_no_more_than_one_of_twenty() {
        // Noise from a fixed generator; the truth is that nothing differs.
        let mut state = 7u64;
        let mut noise = || {
            let mut sum = 0.0;
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1u64 << 53) as f64;
            }
            sum - 6.0
        };
        let runs = 1000;
        let mut told = 0;
        for _ in 0..runs {
            let tests: Vec<Vec<Vec<f64>>> =
                (0..3).map(|_| (0..3).map(|_| (0..6).map(|_| noise()).collect()).collect()).collect();
            told += usize::from(
                Ranking::of_all(&tests).iter().flatten().any(|of| of.places.iter().any(|place| *place > 1)),
            );
        }
        assert!((10..=65).contains(&told), "{told} of {runs}");
    }

    #[test]
    fn too_little_is_not_ranked() {
        let of = |values: &[&[f64]]| Ranking::of_all(&[values.iter().map(|of| of.to_vec()).collect()]).remove(0);
        assert_eq!(of(&[&[1.0, 2.0, 3.0]]), None);
        assert_eq!(of(&[&[1.0, 2.0], &[1.0, 2.0]]), None);
        assert_eq!(of(&[&[1.0, 2.0, 3.0], &[1.0, 2.0]]), None);
    }
}
