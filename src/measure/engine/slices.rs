//! What a congestor delivered, slice of time by slice of time: whether the load was there all along, or came and went.

use tailback_transport::Nanos;

/// A slice is at most this wide.
const WIDEST: Nanos = Nanos(100_000_000);
/// More slices than this are joined in pairs, so memory does not grow with the run.
const MOST: usize = 256;

/// Payload bytes in consecutive slices of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Slices {
    width: Nanos,
    bytes: Vec<f64>,
    /// Where the last whole record ended.
    until: Nanos,
}

impl Slices {
    /// None yet, in a phase of `budget`: short phases have shorter ones, down to the `grain`.
    pub(super) fn of_phase(budget: Nanos, grain: Nanos) -> Self {
        Slices::new(Nanos((budget.0 / 4).clamp(grain.0, WIDEST.0)))
    }

    /// None yet, of this width.
    pub fn new(width: Nanos) -> Self {
        Slices { width: Nanos(width.0.max(1)), bytes: Vec::new(), until: Nanos(0) }
    }

    /// Adds `bytes` that were moved up to `until` since the last record, spread evenly over that time: one iteration of a
    /// slow network takes longer than a slice.
    pub fn add(&mut self, until: Nanos, bytes: f64) {
        let (from, span) = (self.until.0, until.0.saturating_sub(self.until.0));
        if span == 0 {
            return;
        }
        while until.0.div_ceil(self.width.0) as usize > MOST {
            self.widen();
        }
        self.bytes.resize(self.bytes.len().max(until.0.div_ceil(self.width.0) as usize), 0.0);
        let mut at = from;
        while at < until.0 {
            let slice = at / self.width.0;
            let end = ((slice + 1) * self.width.0).min(until.0);
            self.bytes[slice as usize] += bytes * (end - at) as f64 / span as f64;
            at = end;
        }
        self.until = until;
    }

    fn widen(&mut self) {
        self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.width = Nanos(2 * self.width.0);
    }

    /// Adds another rank's slices of the same phase.
    pub fn merge(&mut self, other: &Slices) {
        let mut other = other.clone();
        while self.width.0 < other.width.0 {
            self.widen();
        }
        while other.width.0 < self.width.0 {
            other.widen();
        }
        self.bytes.resize(self.bytes.len().max(other.bytes.len()), 0.0);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(mine, theirs)| *mine += theirs);
        // The shorter one ends where it ends: beyond it a slice is not whole.
        self.until = if self.until.0 == 0 { other.until } else { Nanos(self.until.0.min(other.until.0)) };
    }

    /// Adds the slices of a later phase after the whole ones of this.
    pub fn follow(&mut self, later: &Slices) {
        let mut later = later.clone();
        while self.width.0 < later.width.0 {
            self.widen();
        }
        while later.width.0 < self.width.0 {
            later.widen();
        }
        let whole: Vec<f64> = self.whole().iter().chain(later.whole()).copied().collect();
        self.until = Nanos(whole.len() as u64 * self.width.0);
        self.bytes = whole;
        while self.bytes.len() > MOST {
            self.widen();
        }
    }

    /// How long a slice is.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// The slices that were over before the phase was.
    pub fn whole(&self) -> &[f64] {
        &self.bytes[..self.bytes.len().min((self.until.0 / self.width.0) as usize)]
    }

    /// Whether the last two whole slices hold about the same.
    pub fn steady(&self) -> bool {
        const WITHIN: f64 = 0.1;
        match self.whole() {
            [.., before, last] => (last - before).abs() <= WITHIN * before.max(*last),
            _ => false,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.width.0.to_le_bytes());
        out.extend(self.until.0.to_le_bytes());
        out.extend((self.bytes.len() as u64).to_le_bytes());
        self.bytes.iter().for_each(|bytes| out.extend(bytes.to_le_bytes()));
    }

    pub(super) fn decode(mut word: impl FnMut() -> Option<u64>) -> Option<Self> {
        let (width, until, count) = (word()?, word()?, word()?);
        if width == 0 || count as usize > MOST {
            return None;
        }
        let bytes = (0..count).map(|_| word().map(f64::from_bits)).collect::<Option<Vec<f64>>>()?;
        Some(Slices { width: Nanos(width), bytes, until: Nanos(until) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(records: &[(u64, f64)]) -> Slices {
        let mut slices = Slices::new(Nanos(100));
        records.iter().for_each(|&(until, bytes)| slices.add(Nanos(until), bytes));
        slices
    }

    #[test]
    fn what_a_long_iteration_moved_is_spread_over_its_slices() {
        assert_eq!(slices(&[(250, 250.0)]).whole(), [100.0, 100.0]);
        assert_eq!(slices(&[(50, 10.0), (150, 100.0), (200, 0.0)]).whole(), [60.0, 50.0]);
    }

    #[test]
    fn a_load_that_stopped_shows() {
        let stopped = slices(&[(100, 5.0), (200, 5.0), (300, 0.0), (400, 0.0)]);
        assert_eq!(stopped.whole(), [5.0, 5.0, 0.0, 0.0]);
        assert!(slices(&[(100, 50.0), (200, 52.0)]).steady());
        assert!(!slices(&[(100, 50.0), (200, 60.0)]).steady());
        assert!(!slices(&[(150, 50.0)]).steady(), "one slice is not steady");
        assert!(slices(&[(200, 0.0)]).steady(), "a rank that only receives is");
    }

    #[test]
    fn phases_follow_each_other_without_their_ends() {
        let mut sum = slices(&[(250, 250.0)]);
        sum.follow(&slices(&[(100, 7.0), (199, 7.0)]));
        assert_eq!(sum.whole(), [100.0, 100.0, 7.0]);
    }

    #[test]
    fn ranks_add_up_slice_by_slice() {
        let mut sum = slices(&[(200, 20.0)]);
        sum.merge(&slices(&[(310, 31.0)]));
        assert_eq!(sum.whole(), [20.0, 20.0]);
    }

    #[test]
    fn long_runs_keep_their_sum_in_bounded_memory() {
        let mut long = Slices::new(Nanos(1));
        (1..=10_000).for_each(|at| long.add(Nanos(at), 1.0));
        assert!(long.bytes.len() <= MOST);
        assert!((long.bytes.iter().sum::<f64>() - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn they_travel() {
        let there = slices(&[(250, 250.0)]);
        let mut bytes = Vec::new();
        there.encode(&mut bytes);
        let mut words = bytes.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()));
        assert_eq!(Slices::decode(|| words.next()), Some(there));
        assert_eq!(Slices::decode(|| Some(0)), None);
    }
}
