//! Over placements: what factors of several placements of one job say together, and two sets of them against each
//! other.
//!
//! Placements are drawn independently, so their factors are the independent observations that a run has; what happens
//! within one is not. Factors multiply, so all of this is on their logarithms: geometric mean, Student's t.
//!
//! No interval for fewer than three placements: with two there is one degree of freedom, t is 12.7, and the interval
//! would span orders of magnitude and say nothing; with one there is no spread at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student::{t95, two_sided_p};

/// Fewer placements have no interval.
pub const FEWEST_PLACEMENTS: usize = 3;

/// A factor over placements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Geometric mean over the placements.
    pub factor: f64,
    /// The 95% confidence interval of that mean; absent with fewer than three placements.
    pub interval: Option<Interval>,
    /// Where the factor of one more placement lies with 95%; absent with fewer than three placements.
    pub prediction: Option<Interval>,
    /// The least placement's factor.
    pub lowest: f64,
    /// The greatest placement's factor.
    pub highest: f64,
    /// Standard deviation of the factors' natural logarithms; 0 for a single placement.
    pub sd_ln: f64,
    /// How many placements.
    pub placements: usize,
}

impl Spread {
    /// Of one factor for each placement; nothing when there is none, or one that is no positive number.
    pub fn of(factors: &[f64]) -> Option<Self> {
        let logs = Logs::of(factors)?;
        let enough = logs.count >= FEWEST_PLACEMENTS;
        let around = |spread: f64| around(logs.mean, t95(logs.freedom()) * spread);
        Some(Spread {
            factor: logs.mean.exp(),
            interval: enough.then(|| around(logs.error())),
            prediction: enough.then(|| around((logs.variance + logs.error().powi(2)).sqrt())),
            lowest: factors.iter().copied().fold(f64::INFINITY, f64::min),
            highest: factors.iter().copied().fold(0.0, f64::max),
            sd_ln: logs.variance.sqrt(),
            placements: logs.count,
        })
    }
}

/// How many times as large one set of factors is as another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Geometric mean of the second set over that of the first.
    pub ratio: f64,
    /// The 95% confidence interval; absent with fewer than three placements on either side.
    pub interval: Option<Interval>,
    /// How likely a ratio as far from 1 is, two-sided, when there is no difference; absent as the interval is.
    pub p_value: Option<f64>,
}

/// `after` over `before`, placement by placement: both were measured on the same placements, in the same order. What
/// placements have in common cancels. Nothing when the sets differ in length or hold what is no positive number.
pub fn paired(before: &[f64], after: &[f64]) -> Option<Ratio> {
    if before.len() != after.len() || !before.iter().chain(after).all(|factor| positive(*factor)) {
        return None;
    }
    let ratios: Vec<f64> = before.iter().zip(after).map(|(before, after)| after / before).collect();
    let logs = Logs::of(&ratios)?;
    let enough = logs.count >= FEWEST_PLACEMENTS;
    Some(Ratio::new(logs.mean, logs.error(), logs.freedom(), enough))
}

/// `after` over `before`, of placements that have nothing to do with each other, by Welch's test. Nothing when a set is
/// empty or holds what is no positive number.
pub fn unpaired(before: &[f64], after: &[f64]) -> Option<Ratio> {
    let (before, after) = (Logs::of(before)?, Logs::of(after)?);
    let (a, b) = (before.error().powi(2), after.error().powi(2));
    let freedom = welch(&[(a, before.freedom()), (b, after.freedom())]);
    let enough = before.count.min(after.count) >= FEWEST_PLACEMENTS;
    Some(Ratio::new(after.mean - before.mean, (a + b).sqrt(), freedom, enough))
}

impl Ratio {
    fn new(mean: f64, error: f64, freedom: f64, enough: bool) -> Self {
        Ratio {
            ratio: mean.exp(),
            interval: enough.then(|| around(mean, t95(freedom) * error)),
            // Without any spread, 0/0 is no evidence and anything else is certain.
            p_value: enough.then(|| two_sided_p(mean / error, freedom)),
        }
    }
}

/// Degrees of freedom of a sum of squared errors, each with its own, after Welch and Satterthwaite.
pub(super) fn welch(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|(square, _)| square).sum();
    let freedom = sum * sum / parts.iter().map(|(square, freedom)| square * square / freedom).sum::<f64>();
    // No spread anywhere: any number will do.
    if freedom.is_finite() { freedom } else { parts.iter().map(|(_, freedom)| freedom).sum() }
}

/// The interval on a logarithmic scale.
pub(super) fn around(mean: f64, half: f64) -> Interval {
    Interval { low: (mean - half).exp(), high: (mean + half).exp() }
}

fn positive(factor: f64) -> bool {
    factor.is_finite() && factor > 0.0
}

/// Mean and variance of logarithms.
struct Logs {
    mean: f64,
    variance: f64,
    count: usize,
}

impl Logs {
    fn of(factors: &[f64]) -> Option<Self> {
        if factors.is_empty() || !factors.iter().all(|factor| positive(*factor)) {
            return None;
        }
        let count = factors.len() as f64;
        let mean = factors.iter().map(|factor| factor.ln()).sum::<f64>() / count;
        let squares: f64 = factors.iter().map(|factor| (factor.ln() - mean).powi(2)).sum();
        Some(Logs { mean, variance: squares / (count - 1.0).max(1.0), count: factors.len() })
    }

    fn error(&self) -> f64 {
        (self.variance / self.count as f64).sqrt()
    }

    fn freedom(&self) -> f64 {
        (self.count as f64 - 1.0).max(1.0)
    }
}

/// A 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies outside.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// The 95% interval of `whole`, given what the same computation makes of all repetitions but one, for each one. Nothing
/// for fewer than three, or when one of them is no positive number.
pub fn left_out(whole: f64, without: &[f64]) -> Option<Interval> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    if without.len() < FEWEST_PLACEMENTS || !usable(&whole) || !without.iter().all(usable) {
        return None;
    }
    let count = without.len() as f64;
    let mean = without.iter().map(|value| value.ln()).sum::<f64>() / count;
    let squares: f64 = without.iter().map(|value| (value.ln() - mean).powi(2)).sum();
    // Each repetition moves the whole by (count - 1) times what leaving it out does.
    let error = ((count - 1.0) / count * squares).sqrt();
    Some(around(whole.ln(), t95(count - 1.0) * error))
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance around the mean; nothing is known of a single value.
pub fn variance(values: &[f64]) -> Option<f64> {
    let (count, middle) = (values.len() as f64, mean(values));
    (values.len() > 1).then(|| values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (count - 1.0))
}

/// The middle of the values, of an even number the mean of the middle two; none when there are none.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().saturating_sub(1) / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6 * right.abs().max(1.0)
    }

    #[test]
    fn a_spread_has_the_figures_of_the_textbook() {
        // Logarithms 1, 2, 3, 4: mean 2.5, variance 5/3, t(3) = 3.182446.
        let factors = [1.0f64, 2.0, 3.0, 4.0].map(f64::exp);
        let spread = Spread::of(&factors).unwrap();
        let sd = (5.0f64 / 3.0).sqrt();
        assert!(close(spread.factor, 2.5f64.exp()) && close(spread.sd_ln, sd));
        assert_eq!((spread.lowest, spread.highest, spread.placements), (factors[0], factors[3], 4));
        let (interval, prediction) = (spread.interval.unwrap(), spread.prediction.unwrap());
        assert!(close(interval.high.ln(), 2.5 + 3.182_446_3 * sd / 2.0), "{interval:?}");
        assert!(close(prediction.low.ln(), 2.5 - 3.182_446_3 * sd * 1.25f64.sqrt()), "{prediction:?}");
    }

    #[test]
    fn an_interval_has_its_ends() {
        let interval = Interval { low: 1.0, high: 2.0 };
        assert_eq!([0.9, 1.0, 1.5, 2.0, 2.1].map(|value| interval.excludes(value)), [true, false, false, false, true]);
    }

    #[test]
    fn one_or_two_placements_have_a_factor_and_no_interval() {
        let one = Spread::of(&[4.0]).unwrap();
        assert_eq!((one.factor, one.interval, one.prediction, one.sd_ln), (4.0, None, None, 0.0));
        let two = Spread::of(&[2.0, 8.0]).unwrap();
        assert!(close(two.factor, 4.0) && two.interval.is_none() && two.prediction.is_none());
        assert!(paired(&[1.0, 1.0], &[2.0, 2.0]).unwrap().p_value.is_none());
        assert!(unpaired(&[1.0, 1.0], &[2.0, 2.0, 2.0]).unwrap().interval.is_none());
    }

    #[test]
    fn what_is_no_factor_is_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Spread::of(&[1.0, bad, 2.0]), None);
            assert_eq!(paired(&[1.0, 1.0, 1.0], &[1.0, bad, 2.0]), None);
            assert_eq!(unpaired(&[1.0, bad, 1.0], &[1.0, 1.0, 2.0]), None);
        }
        assert_eq!((Spread::of(&[]), paired(&[1.0], &[1.0, 2.0]), unpaired(&[], &[1.0])), (None, None, None));
    }

    #[test]
    fn pairs_cancel_what_placements_have_in_common() {
        let before = [2.0, 10.0, 50.0, 5.0];
        let after = [3.0, 15.6, 74.0, 7.4];
        let (pairs, groups) = (paired(&before, &after).unwrap(), unpaired(&before, &after).unwrap());
        assert!(close(pairs.ratio, groups.ratio) && (pairs.ratio - 1.5).abs() < 0.02, "{pairs:?}");
        assert!(pairs.interval.unwrap().low > 1.0 && pairs.p_value.unwrap() < 0.001, "{pairs:?}");
        assert!(groups.interval.unwrap().low < 1.0 && groups.p_value.unwrap() > 0.5, "{groups:?}");
    }

    #[test]
    fn welch_is_as_in_the_textbook() {
        // Logarithms 1..=4 and 2, 4, 6: variances 5/3 and 4, squared errors 5/12 and 4/3.
        let (a, b) = ([1.0f64, 2.0, 3.0, 4.0].map(f64::exp), [2.0f64, 4.0, 6.0].map(f64::exp));
        let found = unpaired(&a, &b).unwrap();
        let error = (5.0f64 / 12.0 + 4.0 / 3.0).sqrt();
        let freedom = error.powi(4) / ((5.0f64 / 12.0).powi(2) / 3.0 + (4.0f64 / 3.0).powi(2) / 2.0);
        assert!(close(found.ratio, 1.5f64.exp()) && close(found.p_value.unwrap(), two_sided_p(1.5 / error, freedom)));
        assert!(close(found.interval.unwrap().low.ln(), 1.5 - t95(freedom) * error));
    }

    #[test]
    fn equal_sets_without_spread_are_no_evidence() {
        let same = paired(&[2.0; 4], &[2.0; 4]).unwrap();
        assert_eq!((same.p_value, same.interval), (Some(1.0), Some(Interval { low: 1.0, high: 1.0 })));
        assert_eq!(unpaired(&[2.0; 4], &[2.0; 5]).unwrap().p_value, Some(1.0));
        assert_eq!(paired(&[2.0; 4], &[4.0; 4]).unwrap().p_value, Some(0.0));
    }

    #[test]
    fn a_geometric_mean_has_students_interval() {
        let all = [1.0, 1.4, 0.9, 1.1, 1.3];
        for values in [&all[..FEWEST_PLACEMENTS], &all] {
            let mean = |skipped: Option<usize>| {
                let kept = values.iter().enumerate().filter(|(at, _)| Some(*at) != skipped).map(|(_, value)| *value);
                Spread::of(&kept.collect::<Vec<f64>>()).unwrap().factor
            };
            let without: Vec<f64> = (0..values.len()).map(|at| mean(Some(at))).collect();
            let (found, expected) = (left_out(mean(None), &without).unwrap(), Spread::of(values).unwrap());
            let expected = expected.interval.unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-12 * b;
            assert!(near(found.low, expected.low) && near(found.high, expected.high), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn too_few_or_senseless_repetitions_have_none() {
        assert_eq!(left_out(1.0, &[1.0, 1.1]), None);
        assert_eq!(left_out(1.0, &[1.0, 1.1, 0.0]), None);
        assert_eq!(left_out(f64::NAN, &[1.0, 1.1, 1.2]), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }
}
