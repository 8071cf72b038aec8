//! The figures of one test, in the unit its users read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::quantile_ns;
use super::{Batch, Percentiles, Samples, Statistic, TimeView, Times, Weight};

/// Whether a figure is a time (less is better) or a rate (more is better).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// A latency in microseconds; samples are ns.
    Latency,
    /// A bandwidth in MiB/s per rank; samples are ns/MiB.
    Bandwidth,
}

impl Direction {
    /// The unit of every figure.
    pub fn unit(self) -> &'static str {
        match self {
            Direction::Latency => "us",
            Direction::Bandwidth => "MiB/s/rank",
        }
    }

    /// A sample as a figure.
    pub fn figure(self, sample_ns: f64) -> f64 {
        match self {
            Direction::Latency => sample_ns / 1e3,
            Direction::Bandwidth => 1e9 / sample_ns,
        }
    }

    /// A figure as the sample it was made of, in ns (ns per MiB for a bandwidth).
    pub fn sample_ns(self, figure: f64) -> f64 {
        match self {
            Direction::Latency => figure * 1e3,
            Direction::Bandwidth => 1e9 / figure,
        }
    }

    /// The unit of added time: rates are compared by what they add to the time of a MiB.
    pub fn added_unit(self) -> &'static str {
        match self {
            Direction::Latency => "us",
            Direction::Bandwidth => "us/MiB",
        }
    }

    /// How many times worse `loaded` is than `isolated`.
    pub fn factor(self, isolated: f64, loaded: f64) -> f64 {
        match self {
            Direction::Latency => loaded / isolated,
            Direction::Bandwidth => isolated / loaded,
        }
    }

    /// The better and the worse of the smallest and the largest figure.
    pub fn best_and_worst<T>(self, smallest: T, largest: T) -> (T, T) {
        match self {
            Direction::Latency => (smallest, largest),
            Direction::Bandwidth => (largest, smallest),
        }
    }
}

/// What a test measured. Percentiles count from the good end: p99 is the figure that 99% of samples are at least as
/// good as, for latencies and bandwidths alike. `best` and `worst` are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Summary {
    /// Samples taken, over all ranks.
    pub samples: u64,
    /// Timed iterations of each rank: what is independent of how many ranks took part. Absent in results before this was
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Passes (visits of a ring) every rank made.
    pub passes: u64,
    /// Mean over passes and ranks of each pass's own mean: GPCNeT's Avg.
    pub avg: f64,
    /// Mean of the figure over all samples (for a bandwidth: bytes over time).
    pub mean: f64,
    pub best: f64,
    #[serde(flatten)]
    pub percentiles: Percentiles,
    pub worst: f64,
    /// The worst batch's Avg: how uneven the test was over time.
    pub worst_batch_avg: f64,
    /// The same samples by time. Absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
}

impl Summary {
    /// The summary of merged samples; nothing when there is no sample.
    pub fn of(samples: &Samples, direction: Direction) -> Option<Self> {
        let batches: Vec<&Batch> = samples.batches().collect();
        Self::of_batches(&batches, samples.passes(), direction, Weight::Length)
    }

    /// The summary of samples in parts, in which every rank made `passes` passes.
    pub fn of_batches(batches: &[&Batch], passes: u64, direction: Direction, weight: Weight) -> Option<Self> {
        let total = Batch::joined(batches.iter().copied());
        let (fastest, slowest) = total.extremes_ns()?;
        // A histogram's buckets are wider than the exact extremes: no percentile is past them.
        let within = |ns: f64| ns.clamp(fastest as f64, slowest as f64);
        let histogram = &*total.histogram();
        let at = |quantile: f64| direction.figure(within(quantile_ns(histogram, quantile)));
        let batch_avgs = batches.iter().filter_map(|batch| batch.pass_mean());
        let worst_batch_avg = match direction {
            Direction::Latency => batch_avgs.fold(f64::NEG_INFINITY, f64::max),
            Direction::Bandwidth => batch_avgs.fold(f64::INFINITY, f64::min),
        };
        let mean = direction.figure(total.mean_ns());
        let samples = total.len();
        let times = TimeView::of(histogram, weight).map(|view| {
            Times::of(direction.figure(view.mean_ns()), |quantile| direction.figure(view.quantile_ns(quantile)))
        });
        Some(Summary {
            samples,
            // Every rank closed the same passes, so their sum tells how many ranks took samples.
            iterations: Some(samples * passes / total.closed().max(passes).max(1)),
            passes,
            avg: total.pass_mean().unwrap_or(mean),
            mean,
            best: direction.figure(fastest as f64),
            percentiles: Percentiles::of(at),
            worst: direction.figure(slowest as f64),
            worst_batch_avg: if worst_batch_avg.is_finite() { worst_batch_avg } else { mean },
            times,
        })
    }

    /// The summary of single figures, one a repetition; nothing when there is none. The mean of rates is work over time,
    /// as a bandwidth's is.
    pub fn of_figures(figures: &[f64], direction: Direction) -> Option<Self> {
        let mut sorted = figures.to_vec();
        // The good end first.
        sorted.sort_by(|a, b| match direction {
            Direction::Latency => a.total_cmp(b),
            Direction::Bandwidth => b.total_cmp(a),
        });
        let count = sorted.len();
        let (best, worst) = (*sorted.first()?, *sorted.last()?);
        let at = |quantile: f64| sorted[((quantile * count as f64).ceil() as usize).clamp(1, count) - 1];
        let middle = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        let mean = match direction {
            Direction::Latency => sorted.iter().sum::<f64>() / count as f64,
            Direction::Bandwidth => count as f64 / sorted.iter().map(|figure| 1.0 / figure).sum::<f64>(),
        };
        Some(Summary {
            samples: count as u64,
            iterations: Some(count as u64),
            passes: count as u64,
            avg: mean,
            mean,
            best,
            percentiles: Percentiles { p50: middle, ..Percentiles::of(at) },
            worst,
            worst_batch_avg: worst,
            times: None,
        })
    }

    /// One of the figures; nothing where there are too few iterations to carry it.
    pub fn get(&self, statistic: Statistic) -> Option<f64> {
        let quantile = statistic.quantile().filter(|quantile| *quantile > 0.5 && !statistic.is_by_time());
        let iterations = self.iterations.unwrap_or(self.samples);
        self.raw(statistic).filter(|_| quantile.is_none_or(|quantile| iterations >= super::fewest_to_carry(quantile)))
    }

    /// The same, however few iterations carry it. An average is over all samples: for a bandwidth, bytes over time.
    pub fn raw(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Avg => Some(self.mean),
            of => self.percentiles.get(of).or_else(|| self.times?.get(of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-3
    }

    #[test]
    fn latency_percentiles_count_from_the_fast_end() {
        let mut samples = Samples::new();
        (1..=1000u64).for_each(|i| samples.record(i * 1000));
        samples.close_pass(Some(500.5));
        let summary = Summary::of(&samples, Direction::Latency).unwrap();
        assert!(
            close(summary.percentiles.p99, 990.0)
                && close(summary.percentiles.p50, 500.0)
                && close(summary.percentiles.p999, 999.0),
            "{summary:?}"
        );
        assert_eq!((summary.best, summary.worst, summary.avg), (1.0, 1000.0, 500.5));
        assert!(close(summary.mean, 500.5));
        // A thousand carry a p99 and no p999; what is not beyond the middle, or by time, they always carry.
        let shown = [Statistic::Avg, Statistic::P50, Statistic::P99, Statistic::P999, Statistic::TimeP90];
        let raw = shown.map(|of| summary.raw(of));
        assert_eq!(shown.map(|of| summary.get(of)), [raw[0], raw[1], raw[2], None, raw[4]]);
    }

    #[test]
    fn bandwidth_p99_is_what_99_percent_reach() {
        let mut samples = Samples::new();
        // 990 samples at 1000 MiB/s (1 ms a MiB), 10 at 100 MiB/s.
        (0..990).for_each(|_| samples.record(1_000_000));
        (0..10).for_each(|_| samples.record(10_000_000));
        let summary = Summary::of(&samples, Direction::Bandwidth).unwrap();
        assert!(close(summary.percentiles.p99, 1000.0) && close(summary.percentiles.p999, 100.0), "{summary:?}");
        assert!(close(summary.best, 1000.0) && close(summary.worst, 100.0));
        assert!(close(summary.mean, 1e9 / (0.99 * 1e6 + 0.01 * 1e7)));
    }

    #[test]
    fn one_outlier_does_not_blur_the_rest() {
        let mut samples = Samples::new();
        (0..9999).for_each(|_| samples.record(1500));
        samples.record(1_000_000_000);
        let summary = Summary::of(&samples, Direction::Latency).unwrap();
        assert!(close(summary.percentiles.p99, 1.5) && summary.worst == 1e6, "{summary:?}");
    }

    #[test]
    fn figures_of_repetitions_are_exact() {
        let times = Summary::of_figures(&[3.0, 1.0, 2.0, 10.0], Direction::Latency).unwrap();
        assert_eq!(
            (times.best, times.percentiles.p50, times.worst, times.mean, times.samples),
            (1.0, 2.5, 10.0, 4.0, 4)
        );
        let rates = Summary::of_figures(&[4.0, 1.0, 4.0], Direction::Bandwidth).unwrap();
        assert_eq!((rates.best, rates.percentiles.p50, rates.worst, rates.mean), (4.0, 4.0, 1.0, 2.0));
        assert_eq!(rates.get(Statistic::P99), None, "three repetitions carry no p99");
        assert_eq!(Summary::of_figures(&[], Direction::Latency), None);
    }

    #[test]
    fn figures_and_samples_are_made_of_each_other() {
        let of = |direction: Direction, sample_ns: f64| {
            let figure = direction.figure(sample_ns);
            (figure, direction.sample_ns(figure))
        };
        assert_eq!(of(Direction::Latency, 2500.0), (2.5, 2500.0));
        assert_eq!(of(Direction::Bandwidth, 4e6), (250.0, 4e6));
    }

    #[test]
    fn factors_are_above_one_where_it_is_worse() {
        assert_eq!((Direction::Latency.factor(2.0, 6.0), Direction::Bandwidth.factor(6.0, 2.0)), (3.0, 3.0));
    }

    #[test]
    fn iterations_are_those_of_a_rank_and_every_statistic_has_its_figure() {
        let mut samples = Samples::new();
        // Two ranks of two passes, each of three samples.
        for ns in [1000, 2000] {
            (0..6).for_each(|_| samples.record(ns));
            samples.close_pass(Some(1.5));
        }
        let mut other = samples.clone();
        other.merge(&samples).unwrap();
        let summary = Summary::of(&other, Direction::Latency).unwrap();
        assert_eq!((summary.samples, summary.passes, summary.iterations), (24, 2, Some(12)));
        let kept = serde_json::to_value(&summary).unwrap();
        for of in Statistic::ALL {
            let kept = match of.key().strip_prefix("time-") {
                Some(key) => &kept["times"][key],
                None if of == Statistic::Avg => &kept["mean"],
                None => &kept[of.key()],
            };
            assert!(summary.raw(of).is_some() && summary.raw(of) == kept.as_f64(), "{of:?}: {kept}");
        }
    }

    #[test]
    fn no_samples_no_summary() {
        assert_eq!(Summary::of(&Samples::new(), Direction::Latency), None);
    }
}
