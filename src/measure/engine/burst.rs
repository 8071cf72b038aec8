//! Bursts of load by the clock that all ranks share, and what canaries meet in them.

use tailback_transport::Nanos;

use crate::kernel::SharedClock;
use crate::plan::Burst;
use crate::stats::Folded;

/// Bursts of a block in so many stretches, over which figures have their intervals.
const STRETCHES: u64 = 8;

/// When load is on, on one rank.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    clock: SharedClock,
    /// The first onset, by the shared clock.
    first: u64,
    on: u64,
    period: u64,
}

impl Bursts {
    /// Bursts whose first onset is at this time of the shared clock.
    pub(super) fn new(clock: SharedClock, first: u64, burst: Burst) -> Self {
        Bursts { clock, first, on: burst.on().0, period: burst.period().0 }
    }

    /// The clock that they go by.
    pub(super) fn clock(&self) -> SharedClock {
        self.clock
    }

    /// The same on a rank whose congestors have another clock.
    pub(super) fn on_clock(self, own: Nanos, other: Nanos) -> Self {
        Bursts { clock: self.clock.on(own, other), ..self }
    }

    /// When the next burst begins, by this rank's clock; nothing while one is on.
    pub(super) fn next(&self, own: Nanos) -> Option<Nanos> {
        match self.place(own) {
            None => Some(self.clock.own(self.first)),
            Some((_, since)) if since < self.on => None,
            Some((burst, _)) => Some(self.clock.own(self.first + (burst + 1) * self.period)),
        }
    }

    /// Which burst began last, from 0, and how long before; nothing before the first.
    fn place(&self, own: Nanos) -> Option<(u64, u64)> {
        let since = self.clock.shared(own).checked_sub(self.first)?;
        Some((since / self.period, since % self.period))
    }
}

/// What a canary meets in bursts.
pub(super) struct Folding {
    bursts: Bursts,
    /// Bursts that are expected in the time of its block.
    expected: u64,
    /// The first burst in which there was a sample.
    first: Option<u64>,
    pub folded: Folded,
}

impl Folding {
    /// In a block of this time.
    pub(super) fn new(bursts: Bursts, budget: Nanos) -> Self {
        Folding { bursts, expected: (budget.0 / bursts.period).max(1), first: None, folded: Folded::new() }
    }

    /// Keeps a sample that was due at this moment of this rank's clock.
    pub(super) fn record(&mut self, due: Nanos, length: Nanos) {
        let Some((burst, since)) = self.bursts.place(due) else { return };
        let seen = burst - *self.first.get_or_insert(burst);
        let stretch = (seen * STRETCHES / self.expected).min(STRETCHES - 1);
        self.folded.record(stretch as u16, since, self.bursts.period, length.0);
        self.folded.saw(seen + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts() -> Bursts {
        Bursts { clock: SharedClock::default(), first: 1_000, on: 200, period: 1_000 }
    }

    #[test]
    fn load_is_on_when_the_clock_says_so() {
        let next = |now: u64| bursts().next(Nanos(now)).map(|at| at.0);
        assert_eq!(
            [0, 999, 1_000, 1_199, 1_200, 1_999].map(next),
            [Some(1_000), Some(1_000), None, None, Some(2_000), Some(2_000)]
        );
        // By a clock that shows 5000 less.
        let other = bursts().on_clock(Nanos(6_000), Nanos(1_000));
        assert_eq!((other.place(Nanos(0)), other.clock.own(6_000).0), (Some((4, 0)), 1_000));
    }

    #[test]
    fn samples_are_kept_by_their_burst() {
        let mut folding = Folding::new(bursts(), Nanos(16_000));
        folding.record(Nanos(999), Nanos(5));
        assert_eq!(folding.folded.samples(), 0, "before the first burst");
        for burst in 0..20 {
            folding.record(Nanos(3_000 + 1_000 * burst), Nanos(50));
        }
        assert_eq!((folding.folded.samples(), folding.folded.bursts()), (20, 20));
    }
}
