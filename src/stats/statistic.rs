//! Figures that factors are made of, all in ns (or ns/MiB), where more is worse for latencies and bandwidths alike.
//!
//! A factor is loaded over isolated. For a bandwidth's average that is bytes over time: samples are the time of a MiB,
//! so their mean is all time over all bytes, and its inverse the rate that was had. A mean of rates would let the quick
//! moments hide the slow ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::quantile_ns;
use super::{Batch, Samples, TimeView, Weight};

macro_rules! statistics {
    (
        messages { $($(#[$of:meta])* $message:ident $kept:ident: $type:ty = $quantile:literal,)+ }
        times { $($(#[$of_time:meta])* $time:ident $kept_time:ident: $type_time:ty = $quantile_time:literal,)+ }
    ) => {
        /// What is read off the samples of one placement in one state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub enum Statistic {
            /// Mean over messages; for a bandwidth, time over bytes.
            Avg,
            $($message,)+
            /// By time: the mean wait of a message that comes at a random moment.
            TimeAvg,
            /// By time: the quantiles of that wait.
            $($time,)+
        }

        impl Statistic {
            /// Those of messages, in the order of their columns.
            pub const MESSAGES: [Statistic; 1 + [$($quantile),+].len()] = [Statistic::Avg, $(Statistic::$message),+];

            /// Those of time, in the order of their columns.
            pub const TIMES: [Statistic; [$($quantile_time),+].len()] = [$(Statistic::$time),+];

            /// All of them, those of messages first.
            pub const ALL: [Statistic; 2 + [$($quantile,)+ $($quantile_time),+].len()] =
                [Statistic::Avg, $(Statistic::$message,)+ Statistic::TimeAvg, $(Statistic::$time),+];

            /// As the user types it.
            pub fn key(self) -> &'static str {
                match self {
                    Statistic::Avg => "avg",
                    $(Statistic::$message => stringify!($kept),)+
                    Statistic::TimeAvg => "time-avg",
                    $(Statistic::$time => concat!("time-", stringify!($kept_time)),)+
                }
            }

            /// The part of messages, or of the time, at least as good; nothing for averages.
            pub fn quantile(self) -> Option<f64> {
                match self {
                    Statistic::Avg | Statistic::TimeAvg => None,
                    $(Statistic::$message => Some($quantile),)+
                    $(Statistic::$time => Some($quantile_time),)+
                }
            }
        }

        /// Percentiles of messages, as results have them.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[allow(missing_docs)]
        pub struct Percentiles { $($(#[$of])* pub $kept: $type,)+ }

        impl Percentiles {
            /// Each by its quantile.
            pub(super) fn of(at: impl Fn(f64) -> f64) -> Self {
                Percentiles { $($kept: at($quantile).into(),)+ }
            }

            /// One of them.
            pub(super) fn get(&self, statistic: Statistic) -> Option<f64> {
                match statistic {
                    $(Statistic::$message => self.$kept.into(),)+
                    _ => None,
                }
            }
        }

        /// What a message that comes at a random moment meets: samples weighted by how long they lasted.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[allow(missing_docs)]
        pub struct Times { pub avg: f64, $($(#[$of_time])* pub $kept_time: $type_time,)+ }

        impl Times {
            /// Each by its quantile.
            pub(super) fn of(avg: f64, at: impl Fn(f64) -> f64) -> Self {
                Times { avg, $($kept_time: at($quantile_time).into(),)+ }
            }

            /// One of them.
            pub(super) fn get(&self, statistic: Statistic) -> Option<f64> {
                match statistic {
                    Statistic::TimeAvg => Some(self.avg),
                    $(Statistic::$time => self.$kept_time.into(),)+
                    _ => None,
                }
            }
        }
    };
}

// A line is a column of every table, a key of `--fail-if`, and a field of result files; one that older files lack is an
// `Option` with `#[serde(default, skip_serializing_if = "Option::is_none")]`.
statistics! {
    messages {
        P50 p50: f64 = 0.5,
        P90 p90: f64 = 0.9,
        P99 p99: f64 = 0.99,
        P999 p999: f64 = 0.999,
    }
    times {
        TimeP50 p50: f64 = 0.5,
        TimeP75 p75: f64 = 0.75,
        TimeP90 p90: f64 = 0.9,
    }
}

impl Statistic {
    /// What is claimed first of a latency: nearly the same from job to job where the others are not (docs/methodology.md).
    pub const HEADLINE: Statistic = Statistic::TimeP90;

    /// The columns of tables: those of time, then those of messages.
    pub fn columns() -> impl Iterator<Item = Statistic> {
        Statistic::TIMES.into_iter().chain(Statistic::MESSAGES)
    }

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        if self == Statistic::P999 { "p99.9" } else { self.key() }
    }

    pub(super) fn is_by_time(self) -> bool {
        self == Statistic::TimeAvg || Statistic::TIMES.contains(&self)
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
