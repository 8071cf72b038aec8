//! Figures that factors are made of, all in ns (or ns/MiB), where more is worse for latencies and bandwidths alike.
//!
//! A factor is loaded over isolated. For a bandwidth's average that is bytes over time: samples are the time of a MiB,
//! so their mean is all time over all bytes, and its inverse the rate that was had. A mean of rates would let the quick
//! moments hide the slow ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::quantile_ns;
use super::{Batch, Samples, TimeView, Weight};

/// What is read off the samples of one placement in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Statistic {
    /// Mean over messages; for a bandwidth, time over bytes.
    Avg,
    P50,
    P90,
    P99,
    P999,
    /// By time: the mean wait of a message that comes at a random moment.
    TimeAvg,
    /// By time: the quantiles of that wait.
    TimeP50,
    TimeP75,
    TimeP90,
}

impl Statistic {
    /// What is claimed first of a latency: nearly the same from job to job where the others are not (docs/methodology.md).
    pub const HEADLINE: Statistic = Statistic::TimeP90;

    /// Those of messages, in the order of their columns.
    pub const MESSAGES: [Statistic; 5] =
        [Statistic::Avg, Statistic::P50, Statistic::P90, Statistic::P99, Statistic::P999];

    /// Those of time, in the order of their columns.
    pub const TIMES: [Statistic; 3] = [Statistic::TimeP50, Statistic::TimeP75, Statistic::TimeP90];

    /// The columns of tables: those of time, then those of messages.
    pub fn columns() -> impl Iterator<Item = Statistic> {
        Statistic::TIMES.into_iter().chain(Statistic::MESSAGES)
    }

    /// All of them, those of messages first.
    pub const ALL: [Statistic; 9] = [
        Statistic::Avg,
        Statistic::P50,
        Statistic::P90,
        Statistic::P99,
        Statistic::P999,
        Statistic::TimeAvg,
        Statistic::TimeP50,
        Statistic::TimeP75,
        Statistic::TimeP90,
    ];

    /// As the user types it.
    pub fn key(self) -> &'static str {
        match self {
            Statistic::Avg => "avg",
            Statistic::P50 => "p50",
            Statistic::P90 => "p90",
            Statistic::P99 => "p99",
            Statistic::P999 => "p999",
            Statistic::TimeAvg => "time-avg",
            Statistic::TimeP50 => "time-p50",
            Statistic::TimeP75 => "time-p75",
            Statistic::TimeP90 => "time-p90",
        }
    }

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        if self == Statistic::P999 { "p99.9" } else { self.key() }
    }

    /// The part of messages, or of the time, at least as good; nothing for averages.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Statistic::Avg | Statistic::TimeAvg => None,
            Statistic::P50 | Statistic::TimeP50 => Some(0.5),
            Statistic::TimeP75 => Some(0.75),
            Statistic::P90 | Statistic::TimeP90 => Some(0.9),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
        }
    }

    pub(super) fn is_by_time(self) -> bool {
        matches!(self, Statistic::TimeAvg | Statistic::TimeP50 | Statistic::TimeP75 | Statistic::TimeP90)
    }

    /// The figure of samples that followed each other ([`Weight::Length`]) or a schedule ([`Weight::Even`]); nothing
    /// without samples.
    pub fn ns(self, samples: &Batch, weight: Weight) -> Option<f64> {
        if samples.is_empty() {
            return None;
        }
        let histogram = &*samples.histogram();
        Some(match (self.is_by_time(), self.quantile()) {
            (false, None) => samples.mean_ns(),
            (false, Some(quantile)) => quantile_ns(histogram, quantile),
            (true, None) => TimeView::of(histogram, weight)?.mean_ns(),
            (true, Some(quantile)) => TimeView::of(histogram, weight)?.quantile_ns(quantile),
        })
    }

    /// How many times worse `loaded` is than `isolated`, on one placement; nothing without samples in both.
    pub fn factor(self, isolated: &Batch, loaded: &Batch, weight: Weight) -> Option<f64> {
        let factor = self.ns(loaded, weight)? / self.ns(isolated, weight)?;
        (factor.is_finite() && factor > 0.0).then_some(factor)
    }

    /// The time that load adds on one placement, `loaded` minus `isolated`, in ns (ns per MiB for a bandwidth). Less
    /// than 0 where the load made things quicker; nothing without samples in both.
    pub fn added(self, isolated: &Batch, loaded: &Batch, weight: Weight) -> Option<f64> {
        Some(self.ns(loaded, weight)? - self.ns(isolated, weight)?)
    }
}

/// The samples of several blocks of one state and placement, as one. Percentiles of all blocks together are less
/// biased than the mean of each block's.
pub fn pooled<'a>(blocks: impl IntoIterator<Item = &'a Samples>) -> Batch {
    Batch::joined(blocks.into_iter().flat_map(Samples::batches))
}

/// Fewer than this many samples beyond a percentile do not say where it is.
const FEWEST_BEYOND: f64 = 10.0;

/// How many iterations carry a percentile: at least ten of them lie beyond it. Iterations are what is independent: ranks
/// that wait for each other in one iteration count once.
pub fn fewest_to_carry(quantile: f64) -> u64 {
    (FEWEST_BEYOND / (1.0 - quantile)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(samples: &[(u64, u64)]) -> Samples {
        let mut block = Samples::new();
        for &(ns, count) in samples {
            (0..count).for_each(|_| block.record(ns));
            block.close_pass(None);
        }
        block
    }

    fn close(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left / right - 1.0).abs() < 1e-3)
    }

    #[test]
    fn only_one_has_another_title_than_key() {
        assert_eq!((Statistic::P999.title(), Statistic::P99.title()), ("p99.9", "p99"));
    }

    #[test]
    fn figures_of_messages_and_of_time() {
        // Half of the messages at 1 ms, half at 9 ms: nine tenths of the time are slow.
        let pooled = pooled(&[block(&[(1_000_000, 500)]), block(&[(9_000_000, 500)])]);
        let ns = |figure: Statistic| figure.ns(&pooled, Weight::Length);
        assert!(close(ns(Statistic::Avg), 5e6) && close(ns(Statistic::P50), 1e6) && close(ns(Statistic::P90), 9e6));
        assert!(close(ns(Statistic::TimeP50), 9e6) && close(ns(Statistic::TimeAvg), 8.2e6));
        assert!(close(Statistic::TimeP50.ns(&pooled, Weight::Even), 1e6));
        assert!(Statistic::ALL.iter().all(|figure| ns(*figure).is_some()));
    }

    #[test]
    fn a_bandwidth_average_is_bytes_over_time() {
        // A MiB took 40 ms (25 MiB/s), then half of them 400 ms: 220 ms on average is 5.5 times worse.
        let isolated = pooled(&[block(&[(40_000_000, 100)])]);
        let loaded = pooled(&[block(&[(40_000_000, 50), (400_000_000, 50)])]);
        assert!(close(Statistic::Avg.factor(&isolated, &loaded, Weight::Length), 5.5));
    }

    #[test]
    fn added_time_is_what_a_queue_adds_whatever_the_idle_time() {
        // A queue that adds 5 ms to each message, on a quick and on a slow processor: the factors are 251 and 126.
        for idle in [20_000, 40_000] {
            let isolated = pooled(&[block(&[(idle, 100)])]);
            let loaded = pooled(&[block(&[(idle + 5_000_000, 100)])]);
            for figure in Statistic::ALL {
                assert!(close(figure.added(&isolated, &loaded, Weight::Length), 5e6), "{figure:?}");
                assert!(close(figure.added(&loaded, &isolated, Weight::Even), -5e6), "{figure:?}");
            }
        }
    }

    #[test]
    fn no_samples_no_figure() {
        let (empty, some) = (pooled(&[]), pooled(&[block(&[(5, 1)])]));
        for figure in Statistic::ALL {
            assert_eq!(figure.ns(&empty, Weight::Length), None);
            assert_eq!(figure.factor(&empty, &some, Weight::Length), None);
            assert_eq!(figure.added(&empty, &some, Weight::Length), None);
            assert_eq!(figure.added(&some, &empty, Weight::Length), None);
            assert_eq!(figure.factor(&some, &empty, Weight::Even), None);
        }
        // Of no time at all nothing is a multiple, and it is none of anything.
        let nothing = pooled(&[block(&[(0, 3)])]);
        assert_eq!(Statistic::Avg.factor(&nothing, &some, Weight::Length), None);
        assert_eq!(Statistic::Avg.factor(&some, &nothing, Weight::Length), None);
    }

    #[test]
    fn a_percentile_needs_ten_iterations_beyond_it() {
        assert_eq!([0.0, 0.5, 0.9, 0.99, 0.999].map(fewest_to_carry), [10, 20, 100, 1000, 10_000]);
    }
}
