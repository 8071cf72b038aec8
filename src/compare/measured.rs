//! One side's figures of a kernel, and how many times worse they are than another's.
//!
//! Placements are what is independent in a run. Sides that measured the same placements are held against each other
//! placement by placement, which cancels what placements have in common; others as two unrelated sets.

use super::sides::Side;
use super::verdict::State;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::stats::{Direction, Ratio, Statistic, paired, unpaired};

/// A kernel on one side.
pub(super) struct Measured<'a> {
    side: &'a Side<'a>,
    kernel: Canary,
}

impl<'a> Measured<'a> {
    pub(super) fn of(side: &'a Side<'a>, kernel: Canary) -> Self {
        Measured { side, kernel }
    }

    /// The figure over all placements.
    pub(super) fn value(&self, state: State, statistic: Statistic) -> Option<f64> {
        let test = |phase| self.side.run.test(self.kernel, phase)?.figure(statistic);
        match state {
            State::Isolated => test(Phase::Isolated),
            State::Loaded => test(Phase::Loaded),
            State::Impact => self.side.run.impact(self.kernel, statistic).map(|of| of.factor),
        }
    }

    /// Each placement's figure.
    pub(super) fn each(&self, state: State, statistic: Statistic) -> Option<Vec<f64>> {
        match state {
            State::Isolated => self.side.run.figures(self.kernel, Phase::Isolated, statistic),
            State::Loaded => self.side.run.figures(self.kernel, Phase::Loaded, statistic),
            State::Impact => self.side.run.factors(self.kernel, statistic),
        }
    }

    /// How many times worse `self` is than `base`.
    pub(super) fn ratio(&self, base: &Self, state: State, statistic: Statistic) -> Option<Ratio> {
        let direction: Direction = self.kernel.info().direction;
        // An impact is a number of times already: more is worse for every kernel.
        let falls = state != State::Impact && direction == Direction::Bandwidth;
        let over_placements = || {
            let (before, after) = (base.each(state, statistic)?, self.each(state, statistic)?);
            let (before, after) = if falls { (after, before) } else { (before, after) };
            if same_placements(base.side, self.side) { paired(&before, &after) } else { unpaired(&before, &after) }
        };
        let plain = || {
            let (before, after) = (base.value(state, statistic)?, self.value(state, statistic)?);
            let ratio = if falls { before / after } else { after / before };
            (ratio.is_finite() && ratio > 0.0).then_some(Ratio { ratio, interval: None, p_value: None })
        };
        over_placements().or_else(plain)
    }
}

/// Whether both measured the same placements of the same nodes.
pub(super) fn same_placements(one: &Side<'_>, other: &Side<'_>) -> bool {
    let seeds = |side: &Side<'_>| -> Vec<u64> { side.run.placements.iter().map(|of| of.seed).collect() };
    let roles =
        |side: &Side<'_>| -> Vec<String> { side.run.placements.iter().map(|of| format!("{:?}", of.roles)).collect() };
    let names =
        |side: &Side<'_>| -> Vec<String> { side.file.system.nodes.iter().map(|node| node.name.clone()).collect() };
    !one.run.placements.is_empty()
        && seeds(one) == seeds(other)
        && names(one) == names(other)
        && roles(one) == roles(other)
}
