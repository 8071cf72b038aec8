//! One side's figures of a kernel, and how many times worse they are than another's.

use super::sides::Side;
use super::verdict::State;
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::stats::{Batched, Direction, Factor, Statistic, bootstrap};

/// A kernel's tests on one side, decoded once.
pub(super) struct Measured {
    values: Vec<(State, Statistic, f64)>,
    isolated: Option<Batched>,
    loaded: Option<Batched>,
}

impl Measured {
    pub(super) fn of(side: &Side<'_>, kernel: Canary) -> Self {
        let tests = [Phase::Isolated, Phase::Loaded].map(|phase| side.run.test(kernel, phase));
        let value = |state: State, statistic| {
            let value = match state {
                State::Isolated => tests[0]?.figure(statistic)?,
                State::Loaded => tests[1]?.figure(statistic)?,
                State::Impact => side.run.impact(kernel, statistic)?.factor,
            };
            Some((state, statistic, value))
        };
        let all = State::ALL.into_iter().flat_map(|state| Statistic::ALL.map(|statistic| (state, statistic)));
        let [isolated, loaded] = tests.map(|test| test.map(crate::result::Test::batched));
        Measured { values: all.filter_map(|(state, statistic)| value(state, statistic)).collect(), isolated, loaded }
    }

    pub(super) fn value(&self, state: State, statistic: Statistic) -> Option<f64> {
        let at = |of: &&(State, Statistic, f64)| of.0 == state && of.1 == statistic;
        self.values.iter().find(at).map(|of| of.2)
    }

    /// How many times worse `self` is than `base`.
    pub(super) fn ratio(
        &self,
        base: &Self,
        direction: Direction,
        state: State,
        statistic: Statistic,
        seed: u64,
    ) -> Option<Factor> {
        let (before, after) = (base.value(state, statistic)?, self.value(state, statistic)?);
        let worse = |before, after| match state {
            // An impact is a number of times already: more is worse for every kernel.
            State::Impact => after / before,
            _ => direction.factor(before, after),
        };
        let batches: Option<Vec<&Batched>> = match state {
            State::Isolated => [&base.isolated, &self.isolated].map(Option::as_ref).into_iter().collect(),
            State::Loaded => [&base.loaded, &self.loaded].map(Option::as_ref).into_iter().collect(),
            State::Impact => {
                let of = [&base.isolated, &base.loaded, &self.isolated, &self.loaded];
                of.map(Option::as_ref).into_iter().collect()
            }
        };
        let interval = batches.and_then(|batches| {
            bootstrap(&batches, direction, statistic, seed, |of| match state {
                State::Impact => direction.factor(of[2], of[3]) / direction.factor(of[0], of[1]),
                _ => direction.factor(of[0], of[1]),
            })
        });
        let factor = worse(before, after);
        factor.is_finite().then_some(Factor { factor, interval })
    }
}
