//! What a batch counted: a histogram, or, while they are few, the samples themselves. A histogram of samples up to some
//! milliseconds takes a hundred kilobytes, and a simulated job has tens of thousands of ranks with a handful each.

use std::borrow::Cow;

use hdrhistogram::Histogram;

/// Longer samples are counted as this long; sums and maxima are kept elsewhere.
pub(super) const LONGEST_NS: u64 = 60_000_000_000;
pub(super) const DIGITS: u8 = 3;
/// More samples than this are a histogram.
const FEW: usize = 512;

#[derive(Clone, Debug)]
pub(super) enum Counts {
    /// In any order.
    Few(Vec<u64>),
    Many(Histogram<u64>),
}

impl Counts {
    /// Room for everything that may come.
    pub(super) fn fixed() -> Self {
        Counts::Many(Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("constant bounds are valid"))
    }

    /// As small as what is in it allows.
    pub(super) fn growing() -> Self {
        Counts::Few(Vec::new())
    }

    /// What came from a peer: few again where it was growing there.
    pub(super) fn of(histogram: Histogram<u64>) -> Self {
        if histogram.high() >= LONGEST_NS || histogram.len() > FEW as u64 {
            return Counts::Many(histogram);
        }
        let mut counts = Counts::growing();
        counts.absorb(&Counts::Many(histogram));
        counts
    }

    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let counted = ns.clamp(1, LONGEST_NS);
        match self {
            Counts::Many(histogram) => {
                if histogram.record(counted).is_err() {
                    histogram.saturating_record(counted);
                }
            }
            Counts::Few(few) => {
                few.push(counted);
                if few.len() > FEW {
                    *self = Counts::Many(histogram_of(few));
                }
            }
        }
    }

    pub(super) fn absorb(&mut self, other: &Counts) {
        if let Counts::Few(few) = self
            && (few.len() as u64).saturating_add(other.len()) > FEW as u64
        {
            *self = Counts::Many(histogram_of(few));
        }
        match (self, other) {
            (Counts::Few(few), Counts::Few(others)) => few.extend(others),
            (Counts::Few(few), Counts::Many(histogram)) => {
                for bucket in histogram.iter_recorded() {
                    let times = bucket.count_at_value() as usize;
                    few.extend(std::iter::repeat_n(bucket.value_iterated_to(), times));
                }
            }
            (Counts::Many(histogram), other) => {
                // Ours may have grown less than the other.
                histogram.auto(true);
                histogram.add(&*other.histogram()).expect("a histogram that may grow holds what another does");
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Counts::Few(few) => few.len() as u64,
            Counts::Many(histogram) => histogram.len(),
        }
    }

    /// Forgets everything, keeps the memory.
    pub(super) fn reset(&mut self) {
        match self {
            Counts::Few(few) => few.clear(),
            Counts::Many(histogram) => histogram.reset(),
        }
    }

    pub(super) fn histogram(&self) -> Cow<'_, Histogram<u64>> {
        match self {
            Counts::Few(few) => Cow::Owned(histogram_of(few)),
            Counts::Many(histogram) => Cow::Borrowed(histogram),
        }
    }
}

/// A histogram as large as these need.
fn histogram_of(few: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).expect("a constant number of digits is valid");
    few.iter().for_each(|&ns| histogram.record(ns).expect("a histogram that may grow holds any sample"));
    histogram
}
