//! Confidence intervals by the bootstrap: batches of passes are drawn with replacement, on every side independently,
//! and the figure is computed anew from each draw. Batches rather than single samples are drawn, because samples that
//! follow each other under congestion are far from independent.

use hdrhistogram::Histogram;
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

impl Interval {
    /// Whether `value` lies outside.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// Batches in a form that is quick to resample: every distinct value once, with running counts per batch.
pub struct Batched {
    values: Vec<f64>,
    /// `running[batch][i]` samples of at most `values[i]`.
    running: Vec<Vec<u64>>,
    pass_means: Vec<f64>,
}

impl Batched {
    pub(super) fn of(samples: &Samples) -> Self {
        Self::of_histograms(samples.batches().map(|batch| (batch.histogram(), batch.pass_mean())))
    }

    /// Of each batch's histogram and its mean over passes. Batches without samples are left out.
    pub fn of_histograms<'a>(batches: impl Iterator<Item = (&'a Histogram<u64>, Option<f64>)>) -> Self {
        let batches: Vec<_> = batches.filter(|(histogram, _)| !histogram.is_empty()).collect();
        let recorded =
            |histogram: &Histogram<u64>| histogram.iter_recorded().map(|b| b.value_iterated_to()).collect::<Vec<_>>();
        let mut values: Vec<u64> = batches.iter().flat_map(|(histogram, _)| recorded(histogram)).collect();
        values.sort_unstable();
        values.dedup();
        let run_up = |histogram: &Histogram<u64>| {
            let mut below = 0u64;
            let mut buckets = histogram.iter_recorded().map(|b| (b.value_iterated_to(), b.count_at_value())).peekable();
            let mut upto = |value: u64| {
                while let Some((_, count)) = buckets.next_if(|&(at, _)| at <= value) {
                    below = below.saturating_add(count);
                }
                below
            };
            values.iter().map(|&value| upto(value)).collect()
        };
        Batched {
            running: batches.iter().map(|(histogram, _)| run_up(histogram)).collect(),
            pass_means: batches.iter().map(|(_, mean)| mean.unwrap_or(f64::NAN)).collect(),
            values: values.iter().map(|&value| value as f64).collect(),
        }
    }

    fn figure(&self, drawn: &[usize], direction: Direction, statistic: Statistic) -> f64 {
        let Some(quantile) = statistic.quantile() else {
            return drawn.iter().map(|&batch| self.pass_means[batch]).sum::<f64>() / drawn.len() as f64;
        };
        let upto = |at: usize| drawn.iter().fold(0u64, |sum, &batch| sum.saturating_add(self.running[batch][at]));
        let total = upto(self.values.len() - 1);
        let wanted = (quantile * total as f64).ceil() as u64;
        // The first value that has enough samples at or below it.
        let (mut low, mut high) = (0, self.values.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if upto(middle) >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        direction.figure(self.values[low])
    }
}

/// The interval of what `combine` makes of one figure of every side; nothing with too few batches on any of them.
pub fn bootstrap(
    sides: &[&Batched],
    direction: Direction,
    statistic: Statistic,
    seed: u64,
    combine: impl Fn(&[f64]) -> f64,
) -> Option<Interval> {
    if sides.iter().any(|side| side.running.len() < FEWEST_BATCHES) {
        return None;
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut draw = |side: &Batched| {
        let batches = side.running.len();
        let drawn: Vec<usize> = (0..batches).map(|_| rng.random_range(0..batches)).collect();
        side.figure(&drawn, direction, statistic)
    };
    let mut factors: Vec<f64> =
        (0..DRAWS).map(|_| combine(&sides.iter().map(|side| draw(side)).collect::<Vec<_>>())).collect();
    if factors.iter().any(|factor| !factor.is_finite()) {
        return None;
    }
    factors.sort_by(f64::total_cmp);
    let at = |quantile: f64| factors[(quantile * (DRAWS - 1) as f64).round() as usize];
    Some(Interval { low: at(0.025), high: at(0.975) })
}
