//! A confidence interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies outside.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}
