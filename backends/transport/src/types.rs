//! The newtypes that keep ranks, byte counts and times apart.

use std::fmt;

/// A member's index: in the whole job for [`crate::Bootstrap`] and [`crate::Transport`], in the group for [`crate::Group`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for Rank {
    /// # Panics
    /// If `index` does not fit 32 bits: no job has that many ranks.
    fn from(index: usize) -> Self {
        Rank(u32::try_from(index).expect("rank fits 32 bits"))
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Distinguishes messages between the same two members; messages with the same tag arrive in the order sent. Users of a
/// [`crate::Group`] stay below 32,768, the least that an MPI has; raw backends take all 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A number of bytes. Displays with a binary unit when it is a whole multiple of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        for (shift, unit) in UNITS {
            if self.0 >= 1 << shift && self.0.trailing_zeros() >= shift {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A duration, or a point on a clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Time from `earlier` to `self`; zero when the clock's resolution makes them trade places.
    #[must_use]
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The same time in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A range of a group's memory segment. Memory is named, never lent, while a peer may write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte, counted from the start of the segment.
    pub offset: usize,
    /// Length in bytes; may be zero.
    pub len: usize,
}

impl Span {
    /// The range of `len` bytes from `offset`.
    #[must_use]
    pub fn new(offset: usize, len: usize) -> Self {
        Span { offset, len }
    }

    /// One past the last byte.
    #[must_use]
    pub fn end(self) -> usize {
        self.offset + self.len
    }

    /// Sums of this and of as many bytes at `right` go `into` a place that overlaps neither.
    ///
    /// # Panics
    /// If they would not: who adds says so before it touches memory.
    #[track_caller]
    pub fn assert_sums_apart(self, right: usize, into: usize) {
        let is_apart = |summand: usize| into.abs_diff(summand) >= self.len;
        assert!(is_apart(self.offset) && is_apart(right), "sums overlap a summand");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_display_uses_the_largest_exact_unit() {
        let shown: Vec<String> = [0, 8, 1024, 4096, 131_072, 6_553_600, 3 << 30].map(|b| Bytes(b).to_string()).into();
        assert_eq!(shown, ["0 B", "8 B", "1 KiB", "4 KiB", "128 KiB", "6400 KiB", "3 GiB"]);
    }

    #[test]
    fn sums_may_touch_a_summand_and_not_overlap_it() {
        let adds = |left: Span, right, into| std::panic::catch_unwind(|| left.assert_sums_apart(right, into)).is_ok();
        let left = Span::new(16, 8);
        assert!(adds(left, 16, 24) && adds(left, 32, 8) && adds(left, 0, 40) && adds(Span::new(4, 0), 4, 4));
        assert!(
            !adds(left, 40, 16) && !adds(left, 40, 9) && !adds(left, 0, 23) && !adds(left, 40, 33) && !adds(left, 0, 7)
        );
    }
}
