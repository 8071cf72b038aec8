//! What load does to a figure, with its uncertainty: the time it adds, and how many times worse the figure is (the
//! Congestion Impact Factor).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FEWEST_PLACEMENTS, Interval, Spread, Statistic, mean, t95, variance};

/// The time that load adds, over placements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    /// Mean over the placements. Less than 0 where load made things quicker.
    pub value: f64,
    /// The 95% confidence interval of that mean (Student's t); absent with fewer than three placements.
    pub interval: Option<Interval>,
}

impl Added {
    /// Of what load adds on each placement; nothing when there is none, or one that is no number. Times add up, so there
    /// are no logarithms in this.
    pub fn of(added: &[f64]) -> Option<Self> {
        if added.is_empty() || !added.iter().all(|of| of.is_finite()) {
            return None;
        }
        let (value, count) = (mean(added), added.len() as f64);
        let interval = variance(added).filter(|_| added.len() >= FEWEST_PLACEMENTS).map(|variance| {
            let half = t95(count - 1.0) * (variance / count).sqrt();
            Interval { low: value - half, high: value + half }
        });
        Some(Added { value, interval })
    }

    /// The same in a unit that is `times` as large.
    pub fn scaled(self, times: f64) -> Self {
        let interval = self.interval.map(|of| Interval { low: of.low * times, high: of.high * times });
        Added { value: self.value * times, interval }
    }
}

/// One figure's impact factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Loaded over isolated for latencies, isolated over loaded for bandwidths: 1 = no impact, more = worse. Over several
    /// placements, their geometric mean.
    pub factor: f64,
    /// The 95% confidence interval; absent where there is too little to tell.
    pub interval: Option<Interval>,
}

impl Factor {
    /// Ends that are more than this many times apart bound no factor.
    const WIDEST: f64 = 100.0;

    /// Whether its interval, where it has one, bounds it.
    pub fn is_bounded(&self) -> bool {
        self.interval.is_none_or(|of| of.high <= Factor::WIDEST * of.low)
    }
}

impl From<Spread> for Factor {
    fn from(spread: Spread) -> Self {
        Factor { factor: spread.factor, interval: spread.interval }
    }
}

/// The impact factors of one canary test, by statistic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Impact(BTreeMap<Statistic, Factor>);

impl Impact {
    /// What `factor` gives for each statistic, where it gives one.
    pub fn of(factor: impl Fn(Statistic) -> Option<Factor>) -> Self {
        Impact(Statistic::ALL.into_iter().filter_map(|statistic| Some((statistic, factor(statistic)?))).collect())
    }

    /// One of the factors.
    pub fn get(&self, statistic: Statistic) -> Option<Factor> {
        self.0.get(&statistic).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_time_has_the_interval_of_the_textbook() {
        // Mean 2.5, variance 5/3, t(3) = 3.182446.
        let found = Added::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        let half = 3.182_446_3 * (5.0f64 / 12.0).sqrt();
        let interval = found.interval.unwrap();
        assert_eq!(found.value, 2.5);
        assert!((interval.low - (2.5 - half)).abs() < 1e-6 && (interval.high - (2.5 + half)).abs() < 1e-6, "{found:?}");
        let scaled = found.scaled(-2.0);
        let twice = Interval { low: -2.0 * interval.low, high: -2.0 * interval.high };
        assert_eq!(scaled, Added { value: -5.0, interval: Some(twice) });
    }

    #[test]
    fn an_impact_has_the_factors_that_could_be_had() {
        let factor = Factor { factor: 3.0, interval: None };
        let impact = Impact::of(|statistic| (statistic == Statistic::Avg).then_some(factor));
        assert_eq!((impact.get(Statistic::Avg), impact.get(Statistic::P50)), (Some(factor), None));
    }

    #[test]
    fn ends_a_hundred_times_apart_bound_a_factor_and_wider_ones_do_not() {
        let bounded = |interval| Factor { factor: 1.0, interval }.is_bounded();
        let within = |low, high| bounded(Some(Interval { low, high }));
        assert!(bounded(None) && within(1.0, 100.0) && within(2.0, 150.0));
        assert!(!within(1.0, 101.0) && !within(0.5, 60.0));
    }

    #[test]
    fn few_placements_have_no_interval_and_none_no_time() {
        assert_eq!(Added::of(&[-3.0, 5.0]), Some(Added { value: 1.0, interval: None }));
        assert_eq!((Added::of(&[]), Added::of(&[1.0, f64::NAN, 2.0])), (None, None));
    }
}
