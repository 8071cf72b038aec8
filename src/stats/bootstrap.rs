//! Confidence intervals by the bootstrap: batches of passes are drawn with replacement, on both sides independently,
//! and the figure is computed anew from each draw. Batches rather than single samples are drawn, because samples that
//! follow each other under congestion are far from independent.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, Samples, Statistic};

const DRAWS: usize = 1000;
/// Fewer batches say nothing about their spread.
const FEWEST_BATCHES: usize = 4;

/// A 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// Batches in a form that is quick to resample: every distinct value once, with its count per batch.
pub(super) struct Batched {
    values: Vec<f64>,
    /// `counts[batch][i]` samples of `values[i]`.
    counts: Vec<Vec<u64>>,
    pass_means: Vec<f64>,
}

impl Batched {
    pub(super) fn of(samples: &Samples) -> Self {
        let total = samples.total();
        let buckets: Vec<u64> = total.histogram().iter_recorded().map(|bucket| bucket.value_iterated_to()).collect();
        let counts = samples
            .batches()
            .map(|batch| buckets.iter().map(|&value| batch.histogram().count_at(value)).collect())
            .collect();
        let pass_means = samples.batches().map(|batch| batch.pass_mean().unwrap_or(f64::NAN)).collect();
        Batched { values: buckets.iter().map(|&value| value as f64).collect(), counts, pass_means }
    }

    fn figure(&self, drawn: &[usize], direction: Direction, statistic: Statistic) -> f64 {
        let Some(quantile) = statistic.quantile() else {
            return drawn.iter().map(|&batch| self.pass_means[batch]).sum::<f64>() / drawn.len() as f64;
        };
        let total: u64 = drawn.iter().map(|&batch| self.counts[batch].iter().sum::<u64>()).sum();
        let wanted = (quantile * total as f64).ceil() as u64;
        let mut below = 0;
        for (at, &value) in self.values.iter().enumerate() {
            below += drawn.iter().map(|&batch| self.counts[batch][at]).sum::<u64>();
            if below >= wanted {
                return direction.figure(value);
            }
        }
        f64::NAN
    }
}

/// The interval of the impact factor between two sets of batches.
pub(super) fn interval(
    calm: &Batched,
    busy: &Batched,
    direction: Direction,
    statistic: Statistic,
    seed: u64,
) -> Option<Interval> {
    if calm.counts.len() < FEWEST_BATCHES || busy.counts.len() < FEWEST_BATCHES {
        return None;
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut draw = |side: &Batched| -> Vec<usize> {
        let batches = side.counts.len();
        (0..batches).map(|_| rng.random_range(0..batches)).collect()
    };
    let mut factors: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (before, after) = (draw(calm), draw(busy));
            direction.factor(calm.figure(&before, direction, statistic), busy.figure(&after, direction, statistic))
        })
        .collect();
    if factors.iter().any(|factor| !factor.is_finite()) {
        return None;
    }
    factors.sort_by(f64::total_cmp);
    let at = |quantile: f64| factors[(quantile * (DRAWS - 1) as f64).round() as usize];
    Some(Interval { low: at(0.025), high: at(0.975) })
}
