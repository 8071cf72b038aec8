//! What a result keeps of a sweep: a curve for each canary, with where it begins to rise, where it bends, and where it crosses
//! what the user asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Canary;
use crate::plan::SweptValue;
use crate::stats::{Added, Factor};

/// The curves of a sweep; the keys and all of their values are the plan's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRecord {
    /// One for each network, value of a second key, and canary.
    pub curves: Vec<SweepCurve>,
}

/// One canary over the values of the first key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCurve {
    /// The network, as runs name theirs, without what is swept of it.
    pub network: String,
    /// The value of the second key, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<SweptValue>,
    /// The kernel.
    pub kernel: Canary,
    /// The points in the order of their numbers, or as they were given.
    pub points: Vec<CurvePoint>,
    /// The point at which the impact begins, or why there is none.
    pub onset: Landmark,
    /// The point at which the curve bends most, or why there is none.
    pub knee: Landmark,
    /// Where each condition begins to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crossings: Vec<Crossing>,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Its value of the first key.
    pub value: SweptValue,
    /// What all congestors together delivered while the canary measured.
    pub load_mib_per_s: f64,
    /// Figures of the headline idle and under load, in the unit of the test.
    pub idle: f64,
    /// See `idle`.
    pub loaded: f64,
    /// The time that load adds, in us, or us per MiB for a bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_us: Option<Added>,
    /// The impact with its own 95% interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact: Option<Factor>,
    /// How likely such an impact is where it is at most 1.1, adjusted for all points of all curves; absent where it is not
    /// reportable or has too few placements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether it is shown that the load has an impact.
    pub shows_impact: bool,
}

/// A point that stands for something, by its number from 0, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Landmark {
    /// This point.
    Point(usize),
    /// None, for this reason.
    None(String),
}

impl Landmark {
    /// The point, where there is one.
    pub fn point(&self) -> Option<usize> {
        match self {
            Landmark::Point(at) => Some(*at),
            Landmark::None(_) => None,
        }
    }
}

/// Where a condition begins to hold along a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// The condition, as it was given.
    pub condition: String,
    /// The points between which it does, by their numbers from 0: the last before and the first after. Absent where it holds
    /// at all points or at none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[usize; 2]>,
    /// The value of the key at which the line between the two meets the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// Whether it holds at the last point.
    pub holds_at_last: bool,
}
