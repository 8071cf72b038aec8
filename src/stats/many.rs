//! Many comparisons at once. Twenty tests of nothing at 5% mark one thing on average, so what is claimed after many
//! tests is claimed at 5% for all of them together, by Holm's correction: it needs no independence, which figures of
//! one run do not have.

use serde::Serialize;

use super::spread::paired;

/// The chance at which a family of tests may claim anything when there is nothing.
pub const FAMILY_ERROR: f64 = 0.05;

/// Holm's adjusted p-values, in the order given: below 0.05 means significant with all tests taken together.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, &at) in order.iter().enumerate() {
        least = least.max((p_values.len() - rank) as f64 * p_values[at]).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

/// The level at which Holm's correction tests each, in the order given. An interval of that level excludes "no difference"
/// exactly where [`holm`] marks one.
pub fn holm_levels(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let (mut levels, mut left) = (vec![FAMILY_ERROR; p_values.len()], p_values.len());
    for &at in &order {
        levels[at] = FAMILY_ERROR / left as f64;
        // From the first that is not marked on, all have its level.
        left -= usize::from(p_values[at] < levels[at]);
    }
    levels
}

/// Two alternatives held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The first, by its place.
    pub first: usize,
    /// The second, by its place.
    pub second: usize,
    /// The second's factor over the first's.
    pub ratio: f64,
    /// Adjusted for all pairs.
    pub p_value: f64,
}

impl Pair {
    /// Whether the two differ.
    pub fn differs(&self) -> bool {
        self.p_value < FAMILY_ERROR
    }
}

/// Every alternative against every other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllPairs {
    /// Every pair once.
    pub pairs: Vec<Pair>,
    /// The one that is less than every other, if one is.
    pub least: Option<usize>,
    /// The one that is greater than every other, if one is.
    pub greatest: Option<usize>,
}

impl AllPairs {
    /// Of each alternative's logarithms of factors, one for each placement, in the same order for all. Nothing when
    /// there are fewer than two alternatives, fewer than three placements, or unequal numbers of them.
    pub fn of(ln_factors: &[Vec<f64>]) -> Option<Self> {
        Self::of_all(std::slice::from_ref(&ln_factors.to_vec())).pop().flatten()
    }

    /// The same for several figures at once, whose pairs are one family: alternatives that are all the same get a least
    /// or a greatest by any of the figures in at most one of twenty cases, however many there are of either.
    pub fn of_all(figures: &[Vec<Vec<f64>>]) -> Vec<Option<Self>> {
        let mut all: Vec<Option<Vec<Pair>>> = figures.iter().map(|ln_factors| every_pair(ln_factors)).collect();
        let p_values: Vec<f64> = all.iter().flatten().flatten().map(|pair| pair.p_value).collect();
        let family = all.iter_mut().flatten().flatten();
        family.zip(holm(&p_values)).for_each(|(pair, p_value)| pair.p_value = p_value);
        let judged = |(pairs, ln_factors): (Option<Vec<Pair>>, &Vec<Vec<f64>>)| Some(judge(pairs?, ln_factors.len()));
        all.into_iter().zip(figures).map(judged).collect()
    }
}

/// Every pair with its own p-value.
fn every_pair(ln_factors: &[Vec<f64>]) -> Option<Vec<Pair>> {
    if ln_factors.len() < 2 {
        return None;
    }
    let factors: Vec<Vec<f64>> = ln_factors.iter().map(|logs| logs.iter().map(|log| log.exp()).collect()).collect();
    let mut pairs = Vec::new();
    for second in 1..factors.len() {
        for first in 0..second {
            let found = paired(&factors[first], &factors[second])?;
            pairs.push(Pair { first, second, ratio: found.ratio, p_value: found.p_value? });
        }
    }
    Some(pairs)
}

/// Who stands out of so many, by pairs whose p-values are adjusted.
fn judge(pairs: Vec<Pair>, alternatives: usize) -> AllPairs {
    // Whether `one` is on the same side of all others.
    let stands_out = |one: usize, less: bool| {
        let mut own = pairs.iter().filter(|pair| pair.first == one || pair.second == one);
        own.all(|pair| pair.differs() && ((pair.first == one) == less) == (pair.ratio > 1.0))
    };
    let least = (0..alternatives).find(|&one| stands_out(one, true));
    let greatest = (0..alternatives).find(|&one| stands_out(one, false));
    AllPairs { pairs, least, greatest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_is_as_in_the_textbook() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn holms_levels_mark_what_its_p_values_mark() {
        assert_eq!(holm_levels(&[0.04, 0.001, 0.5]), [0.025, 0.05 / 3.0, 0.025]);
        assert_eq!(holm_levels(&[0.02, 0.001, 0.04]), [0.025, 0.05 / 3.0, 0.05]);
        for p_values in [[0.012, 0.04, 0.03, 0.005], [0.2, 0.01, 0.01, 0.01], [0.05, 0.05, 0.05, 0.0]] {
            let by_level: Vec<bool> = p_values.iter().zip(holm_levels(&p_values)).map(|(p, of)| *p < of).collect();
            let adjusted: Vec<bool> = holm(&p_values).iter().map(|p| *p < FAMILY_ERROR).collect();
            assert_eq!(by_level, adjusted, "{p_values:?}");
        }
    }

    /// Logarithms with what placements have in common, an own mean, and a little noise.
    fn alternative(mean: f64, noise: [f64; 6]) -> Vec<f64> {
        let common = [0.1, 0.9, -0.6, 0.4, -0.3, 0.2];
        common.iter().zip(noise).map(|(common, noise)| mean + common + 0.02 * noise).collect()
    }

    const NOISE: [[f64; 6]; 3] =
        [[1.0, -0.5, 0.3, -1.2, 0.8, -0.4], [-0.7, 0.9, 1.1, -0.2, -0.9, 0.1], [0.2, -1.1, -0.3, 0.6, 0.4, 0.5]];

    #[test]
    fn one_that_beats_every_other_is_named() {
        let three = [alternative(1.0, NOISE[0]), alternative(0.5, NOISE[1]), alternative(1.7, NOISE[2])];
        let found = AllPairs::of(&three).unwrap();
        assert_eq!((found.least, found.greatest), (Some(1), Some(2)));
        assert!(found.pairs.iter().all(Pair::differs) && found.pairs.len() == 3);
        assert!((found.pairs[0].ratio / (-0.5f64).exp() - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn two_that_share_the_first_place_leave_it_empty() {
        let three = [alternative(0.5, NOISE[0]), alternative(0.5, NOISE[1]), alternative(1.7, NOISE[2])];
        let found = AllPairs::of(&three).unwrap();
        assert_eq!((found.least, found.greatest), (None, Some(2)));
    }

    #[test]
    fn identical_ones_are_not_told_apart() {
        let same = vec![vec![1.0, 2.0, 3.0]; 3];
        let found = AllPairs::of(&same).unwrap();
        assert_eq!((found.least, found.greatest), (None, None));
    }

    #[test]
    fn figures_of_one_family_are_corrected_together() {
        let close = [alternative(1.0, NOISE[0]), alternative(1.022, NOISE[1])];
        let alone = AllPairs::of(&close).unwrap().pairs[0];
        let same = vec![alternative(1.0, NOISE[0]), alternative(1.0, NOISE[2])];
        let family = AllPairs::of_all(&[close.to_vec(), same, Vec::new()]);
        let together = family[0].as_ref().unwrap().pairs[0];
        assert!((together.p_value / alone.p_value - 2.0).abs() < 1e-9 && alone.p_value < 0.5, "{alone:?} {together:?}");
        assert!(family[1].is_some() && family[2].is_none());
    }

    #[test]
    fn too_little_is_said() {
        assert_eq!(AllPairs::of(&[vec![1.0, 2.0, 3.0]]), None);
        assert_eq!(AllPairs::of(&[vec![1.0, 2.0], vec![1.0, 2.0]]), None);
        assert_eq!(AllPairs::of(&[vec![1.0, 2.0, 3.0], vec![1.0, 2.0]]), None);
    }
}
