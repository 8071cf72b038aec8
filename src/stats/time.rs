//! Samples as time sees them: what a message that comes at a random moment meets.
//!
//! A canary that sends one message after the other takes many samples while the network is quick and few while it is
//! slow, so plain percentiles are of messages, not of time. Weighting each sample by its own length undoes that: a
//! queue that is full 90% of the time then has 90% of the weight. Samples of a schedule (`--pace`) stand for equal
//! times already and weigh the same.
//!
//! Sums are of floating-point numbers: counts times lengths overflow 64 bits within minutes of many ranks. A value is
//! the middle of its bucket, as in the summary.

use hdrhistogram::Histogram;

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Its own length: samples that followed each other without a gap.
    Length,
    /// The same for each: samples taken at times that did not depend on them.
    Even,
}

/// A histogram by time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeView {
    /// Values in ns, ascending, each with the weight of all up to it.
    values: Vec<(f64, f64)>,
    /// Sum of value times weight.
    moment: f64,
}

impl TimeView {
    /// The view of a histogram of ns; nothing when it is empty.
    pub fn of(histogram: &Histogram<u64>, weight: Weight) -> Option<Self> {
        let (mut total, mut moment) = (0.0, 0.0);
        let mut values = Vec::new();
        for bucket in histogram.iter_recorded() {
            let value = middle_ns(histogram, bucket.value_iterated_to());
            let count = bucket.count_at_value() as f64;
            let own = match weight {
                Weight::Length => count * value,
                Weight::Even => count,
            };
            total += own;
            moment += own * value;
            values.push((value, total));
        }
        (total > 0.0).then_some(TimeView { values, moment })
    }

    fn total(&self) -> f64 {
        self.values.last().map_or(0.0, |last| last.1)
    }

    /// The least value such that samples up to it hold the part `quantile` of the time.
    pub fn quantile_ns(&self, quantile: f64) -> f64 {
        // At most the total, which the last value has.
        let wanted = quantile.clamp(0.0, 1.0) * self.total();
        let at = self.values.partition_point(|&(_, running)| running < wanted);
        self.values[at].0
    }

    /// The mean wait of a message that comes at a random moment.
    pub fn mean_ns(&self) -> f64 {
        self.moment / self.total()
    }

    /// How many equal samples would say as much, if these are `weight`ed so (Kish): a few long ones among many short ones
    /// hold most of the time, and quantiles of time rest on them.
    pub fn effective(&self, weight: Weight) -> f64 {
        match weight {
            Weight::Length => self.total() / self.mean_ns(),
            Weight::Even => self.total(),
        }
    }

    /// The part of the time, from 0 to 1, spent in samples longer than `ns`.
    pub fn share_above(&self, ns: f64) -> f64 {
        let within = self.values.partition_point(|&(value, _)| value <= ns);
        let below = within.checked_sub(1).map_or(0.0, |last| self.values[last].1);
        1.0 - below / self.total()
    }
}

/// The middle of the bucket that holds `value`, so that the histogram's rounding has no bias.
fn middle_ns(histogram: &Histogram<u64>, value: u64) -> f64 {
    f64::midpoint(histogram.lowest_equivalent(value) as f64, histogram.highest_equivalent(value) as f64)
}

/// The middle of the bucket that holds the quantile, so that the histogram's rounding has no bias.
pub fn quantile_ns(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    middle_ns(histogram, histogram.value_at_quantile(quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(samples: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, u64::MAX / 2, 3).unwrap();
        samples.iter().for_each(|&(value, count)| histogram.record_n(value, count).unwrap());
        histogram
    }

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-3
    }

    #[test]
    fn a_queue_full_nine_tenths_of_the_time_has_nine_tenths_of_the_weight() {
        // 10 s in all: 1 s of 100 us messages, 9 s of 5 ms ones.
        let histogram = histogram(&[(100_000, 10_000), (5_000_000, 1_800)]);
        let time = TimeView::of(&histogram, Weight::Length).unwrap();
        assert!(close(time.share_above(1e6), 0.9), "{}", time.share_above(1e6));
        assert!(close(time.quantile_ns(0.05), 1e5) && close(time.quantile_ns(0.15), 5e6));
        assert!(close(time.quantile_ns(0.5), 5e6) && close(time.mean_ns(), 0.1 * 1e5 + 0.9 * 5e6));
        // By message it looks idle.
        let even = TimeView::of(&histogram, Weight::Even).unwrap();
        assert!(close(even.quantile_ns(0.5), 1e5) && close(even.share_above(1e6), 1_800.0 / 11_800.0));
        assert!(close(even.mean_ns(), 1e10 / 11_800.0));
    }

    #[test]
    fn ends_are_the_ends() {
        let time = TimeView::of(&histogram(&[(1000, 5), (2000, 5)]), Weight::Length).unwrap();
        assert!(close(time.quantile_ns(0.0), 1000.0) && close(time.quantile_ns(1.0), 2000.0));
        assert!(close(time.quantile_ns(-1.0), 1000.0) && close(time.quantile_ns(7.0), 2000.0));
        assert_eq!((time.share_above(1.0), time.share_above(1e9)), (1.0, 0.0));
    }

    #[test]
    fn two_long_samples_among_thousands_of_short_ones_are_what_the_time_rests_on() {
        let histogram = histogram(&[(1000, 10_000), (1_000_000_000, 2)]);
        let effective = |weight| TimeView::of(&histogram, weight).unwrap().effective(weight);
        assert!((effective(Weight::Length) - 2.02).abs() < 1e-3, "{}", effective(Weight::Length));
        assert_eq!(effective(Weight::Even), 10_002.0);
        let equal = TimeView::of(&self::histogram(&[(5000, 70)]), Weight::Length).unwrap();
        assert!(close(equal.effective(Weight::Length), 70.0));
    }

    #[test]
    fn an_empty_histogram_has_no_view() {
        assert_eq!(TimeView::of(&histogram(&[]), Weight::Length), None);
        assert_eq!(TimeView::of(&histogram(&[]), Weight::Even), None);
    }

    #[test]
    fn sums_beyond_64_bits_are_no_trouble() {
        let (hour, many) = (3_600_000_000_000, 1 << 40);
        let time = TimeView::of(&histogram(&[(hour / 2, many), (hour, many)]), Weight::Length).unwrap();
        assert!(close(time.mean_ns(), hour as f64 * (0.5 + 2.0) / 3.0) && close(time.quantile_ns(0.5), hour as f64));
        let time = TimeView::of(&histogram(&[(u64::MAX / 2, 1)]), Weight::Length).unwrap();
        assert!(close(time.quantile_ns(0.5), (u64::MAX / 2) as f64));
    }
}
