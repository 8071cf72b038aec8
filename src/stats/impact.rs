//! The Congestion Impact Factor: how many times worse a figure is under load, with its uncertainty.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, Spread, Statistic};

/// One figure's impact factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Loaded over isolated for latencies, isolated over loaded for bandwidths: 1 = no impact, more = worse. Over several
    /// placements, their geometric mean.
    pub factor: f64,
    /// The 95% confidence interval; absent where there is too little to tell.
    pub interval: Option<Interval>,
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
