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
    /// How many samples of each value the batches have, value by value.
    counts: Vec<u64>,
    /// Samples in each batch.
    totals: Vec<u64>,
    pass_means: Vec<f64>,
}

/// One figure for each of [`Statistic::ALL`].
type Figures = [f64; Statistic::ALL.len()];

impl Batched {
    pub(super) fn of(samples: &Samples) -> Self {
        let total = samples.total();
        let buckets: Vec<u64> = total.histogram().iter_recorded().map(|bucket| bucket.value_iterated_to()).collect();
        let count = |value: u64| samples.batches().map(move |batch| batch.histogram().count_at(value));
        Batched {
            values: buckets.iter().map(|&value| value as f64).collect(),
            counts: buckets.iter().flat_map(|&value| count(value)).collect(),
            totals: samples.batches().map(|batch| batch.histogram().len()).collect(),
            pass_means: samples.batches().map(|batch| batch.pass_mean().unwrap_or(f64::NAN)).collect(),
        }
    }

    /// All figures from one walk over the values, with every batch counted `times` it was drawn.
    fn figures(&self, times: &[u64], direction: Direction) -> Figures {
        let weighted = |counts: &[u64]| counts.iter().zip(times).map(|(count, times)| count * times).sum::<u64>();
        let drawn: u64 = times.iter().sum();
        let mean = self.pass_means.iter().zip(times).filter(|(_, times)| **times > 0);
        let mean = mean.map(|(mean, times)| mean * *times as f64).sum::<f64>() / drawn as f64;
        let total = weighted(&self.totals) as f64;
        let wanted = Statistic::ALL.map(|statistic| statistic.quantile().map(|q| (q * total).ceil() as u64));
        let mut figures = wanted.map(|wanted| if wanted.is_none() { mean } else { f64::NAN });
        let (mut below, mut next) = (0, 0);
        for (counts, &value) in self.counts.chunks_exact(self.totals.len()).zip(&self.values) {
            below += weighted(counts);
            // Quantiles stand in ascending order, so one walk meets them all.
            while next < wanted.len() && wanted[next].is_none_or(|wanted| below >= wanted) {
                if wanted[next].is_some() {
                    figures[next] = direction.figure(value);
                }
                next += 1;
            }
            if next == wanted.len() {
                break;
            }
        }
        figures
    }
}

/// The intervals of the impact factors between two sets of batches, one for each of [`Statistic::ALL`].
pub(super) fn intervals(
    calm: &Batched,
    busy: &Batched,
    direction: Direction,
    seed: u64,
) -> [Option<Interval>; Statistic::ALL.len()] {
    if calm.totals.len() < FEWEST_BATCHES || busy.totals.len() < FEWEST_BATCHES {
        return [None; Statistic::ALL.len()];
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut draw = |side: &Batched| -> Vec<u64> {
        let mut times = vec![0; side.totals.len()];
        (0..times.len()).for_each(|_| times[rng.random_range(0..side.totals.len())] += 1);
        times
    };
    let draws: Vec<(Figures, Figures)> = (0..DRAWS)
        .map(|_| {
            let (before, after) = (draw(calm), draw(busy));
            (calm.figures(&before, direction), busy.figures(&after, direction))
        })
        .collect();
    std::array::from_fn(|at| {
        let mut factors: Vec<f64> =
            draws.iter().map(|(before, after)| direction.factor(before[at], after[at])).collect();
        if factors.iter().any(|factor| !factor.is_finite()) {
            return None;
        }
        factors.sort_by(f64::total_cmp);
        let bound = |quantile: f64| factors[(quantile * (DRAWS - 1) as f64).round() as usize];
        Some(Interval { low: bound(0.025), high: bound(0.975) })
    })
}
