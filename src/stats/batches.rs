//! One placement only: an interval for its averages from batches of consecutive passes.
//!
//! Each batch is left out in turn and the logarithm of the factor computed anew (the jackknife); Student's t turns
//! their spread into an interval. It is of this placement: another one may lie far outside.
//!
//! That is right only when batches are about independent. With correlated ones it is too narrow, so it is withheld
//! when the lag-1 autocorrelation of the batch means is above 0.3 on either side. Percentiles have no interval here:
//! in batches as short as these they are biased, and no resampling repairs that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spread::{around, welch};
use super::student::t95;
use super::{Interval, Samples, Statistic};

/// Fewer batches on either side say too little about their spread.
pub const FEWEST_BATCHES: usize = 8;
/// Batch means that follow each other more than this are no independent observations.
pub const MOST_LAG1: f64 = 0.3;

/// The mean of one batch and its weight: the sum over its samples and their number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Sum {
    pub sum: f64,
    pub count: f64,
}

/// Why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Withheld {
    /// Too few batches on one side.
    #[error("{batches} batches, {FEWEST_BATCHES} are needed")]
    TooFewBatches {
        /// On the side that has fewer.
        batches: usize,
    },
    /// Batches depend on those before them.
    #[error("batches follow each other (lag-1 autocorrelation {lag1:.2})")]
    Autocorrelated {
        /// The larger one of both sides.
        lag1: f64,
    },
    /// Percentiles have none from a single placement.
    #[error("percentiles need several placements")]
    Percentile,
    /// A mean is zero, or no number.
    #[error("a mean that is no positive number")]
    NotPositive,
}

/// The factor of averages on one placement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnePlacement {
    /// Loaded over isolated.
    pub factor: f64,
    /// Its 95% interval, of this placement only.
    pub interval: Interval,
    /// Lag-1 autocorrelation of the batch means, the larger one of both sides.
    pub lag1: f64,
}

/// The batches of samples, in the order they were taken.
pub fn sums(samples: &Samples) -> Vec<Sum> {
    let sum = |batch: &super::Batch| {
        let count = batch.len() as f64;
        Sum { sum: batch.mean_ns() * count, count }
    };
    samples.batches().map(sum).collect()
}

/// The interval of `figure` on one placement, where it can have one.
pub fn one_placement(figure: Statistic, isolated: &Samples, loaded: &Samples) -> Result<OnePlacement, Withheld> {
    if figure != Statistic::Avg {
        return Err(Withheld::Percentile);
    }
    jackknife(&sums(isolated), &sums(loaded))
}

/// Loaded over isolated average, with the interval that leaving out one batch at a time gives.
pub fn jackknife(isolated: &[Sum], loaded: &[Sum]) -> Result<OnePlacement, Withheld> {
    let batches = isolated.len().min(loaded.len());
    if batches < FEWEST_BATCHES {
        return Err(Withheld::TooFewBatches { batches });
    }
    let (isolated, loaded) = (Side::of(isolated)?, Side::of(loaded)?);
    let lag1 = isolated.lag1.max(loaded.lag1);
    if lag1 > MOST_LAG1 {
        return Err(Withheld::Autocorrelated { lag1 });
    }
    let ln_factor = loaded.ln_mean - isolated.ln_mean;
    let variance = isolated.variance + loaded.variance;
    let freedom = welch(&[(isolated.variance, isolated.freedom), (loaded.variance, loaded.freedom)]);
    let interval = around(ln_factor, t95(freedom) * variance.sqrt());
    Ok(OnePlacement { factor: ln_factor.exp(), interval, lag1 })
}

/// What the factor needs of one state. Both add up, as the factor is a difference of logarithms.
struct Side {
    ln_mean: f64,
    /// The jackknife's variance of `ln_mean`.
    variance: f64,
    freedom: f64,
    lag1: f64,
}

impl Side {
    fn of(batches: &[Sum]) -> Result<Self, Withheld> {
        let sound = |of: &Sum| of.sum.is_finite() && of.count > 0.0;
        let total = |of: fn(&Sum) -> f64| batches.iter().map(of).sum::<f64>();
        let (sum, count) = (total(|of| of.sum), total(|of| of.count));
        let without: Vec<f64> = batches.iter().map(|of| ((sum - of.sum) / (count - of.count)).ln()).collect();
        if !batches.iter().all(sound) || !without.iter().all(|log| log.is_finite()) {
            return Err(Withheld::NotPositive);
        }
        let number = batches.len() as f64;
        let middle = without.iter().sum::<f64>() / number;
        let squares: f64 = without.iter().map(|log| (log - middle).powi(2)).sum();
        let means: Vec<f64> = batches.iter().map(|of| of.sum / of.count).collect();
        Ok(Side {
            ln_mean: (sum / count).ln(),
            variance: (number - 1.0) / number * squares,
            freedom: number - 1.0,
            lag1: lag1(&means),
        })
    }
}

/// How much each value follows the one before it: -1 to 1, 0 for independent or constant ones.
pub fn lag1(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(means: &[f64]) -> Vec<Sum> {
        means.iter().map(|mean| Sum { sum: mean * 10.0, count: 10.0 }).collect()
    }

    const UNEVEN: [f64; 8] = [9.0, 11.0, 10.5, 9.5, 10.0, 9.0, 11.0, 10.0];

    #[test]
    fn equal_batches_give_the_t_interval_of_their_means() {
        let loaded = UNEVEN.map(|mean| 5.0 * mean);
        let found = jackknife(&even(&[10.0; 8]), &even(&loaded)).unwrap();
        assert!((found.factor - 5.0).abs() < 1e-9);
        // For small spreads the jackknife of ln(mean) is the standard error over the mean.
        let variance = UNEVEN.iter().map(|mean| (mean / 10.0 - 1.0).powi(2)).sum::<f64>() / 7.0 / 8.0;
        let wanted = t95(7.0) * variance.sqrt();
        assert!(((found.interval.high / 5.0).ln() / wanted - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.lag1 < MOST_LAG1 && found.interval.low < 5.0);
    }

    #[test]
    fn a_batch_counts_by_its_samples() {
        let mut loaded = even(&UNEVEN);
        // A last batch of a single slow sample hardly counts.
        loaded.push(Sum { sum: 100.0, count: 1.0 });
        let found = jackknife(&even(&[10.0; 8]), &loaded).unwrap();
        assert!((found.factor - 900.0 / 81.0 / 10.0).abs() < 1e-9, "{found:?}");
        // Where all samples are equal it does not matter which batch is left out, however long it is.
        let equal: Vec<Sum> =
            (1..=8).map(|count| Sum { sum: 10.0 * f64::from(count), count: f64::from(count) }).collect();
        let interval = jackknife(&equal, &equal).unwrap().interval;
        assert!((interval.low - 1.0).abs() < 1e-9 && (interval.high - 1.0).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn what_cannot_have_an_interval_says_why() {
        let fine = even(&UNEVEN);
        assert_eq!(jackknife(&fine[..7], &fine), Err(Withheld::TooFewBatches { batches: 7 }));
        let rising: Vec<Sum> = even(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!(matches!(jackknife(&fine, &rising), Err(Withheld::Autocorrelated { lag1 }) if lag1 > 0.5));
        assert_eq!(jackknife(&even(&[0.0; 8]), &fine), Err(Withheld::NotPositive));
        let (none, some) = (Samples::new(), Samples::new());
        assert_eq!(one_placement(Statistic::P99, &none, &some), Err(Withheld::Percentile));
        assert_eq!(one_placement(Statistic::Avg, &none, &some), Err(Withheld::TooFewBatches { batches: 0 }));
        assert!(Withheld::Autocorrelated { lag1: 0.456 }.to_string().contains("0.46"));
    }

    #[test]
    fn samples_become_batches() {
        let mut samples = Samples::new();
        for pass in 0..9u64 {
            (0..5).for_each(|_| samples.record(1000 + 100 * (pass % 2)));
            samples.close_pass(None);
        }
        assert_eq!(sums(&samples)[1], Sum { sum: 5500.0, count: 5.0 });
        let found = one_placement(Statistic::Avg, &samples, &samples).unwrap();
        assert!((found.factor - 1.0).abs() < 1e-9 && found.lag1 < 0.0);
    }

    #[test]
    fn lag1_is_that_of_the_means_whatever_their_weights() {
        assert_eq!(lag1(&[3.0; 9]), 0.0);
        // Deviations -1.5, -0.5, 0.5, 1.5: products 0.75 - 0.25 + 0.75 over squares 5.
        assert!((lag1(&[1.0, 2.0, 3.0, 4.0]) - 0.25).abs() < 1e-12);
        // Deviations of 1 either way in turns: 7 products of -1 over 8 squares.
        let batches = (1..=8).map(f64::from).map(|count| Sum { sum: count * (10.0 + (count % 2.0) * 2.0), count });
        let batches: Vec<Sum> = batches.collect();
        assert!((jackknife(&batches, &batches).unwrap().lag1 + 7.0 / 8.0).abs() < 1e-12);
    }
}
