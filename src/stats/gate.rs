//! Thresholds by interval: a limit inside it is neither met nor missed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Interval;

/// On which side of the limit a figure fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FailsIf {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl FailsIf {
    /// Whether `figure` fails.
    pub fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            FailsIf::Above => figure > limit,
            FailsIf::AtLeast => figure >= limit,
            FailsIf::Below => figure < limit,
            FailsIf::AtMost => figure <= limit,
        }
    }

    /// What an interval says of a limit: fails when all of it does, passes when none of it does. Without an interval
    /// nothing can be told.
    pub fn judge(self, interval: Option<Interval>, limit: f64) -> Outcome {
        let Some(Interval { low, high }) = interval.filter(|of| !of.low.is_nan() && !of.high.is_nan()) else {
            return Outcome::Inconclusive;
        };
        match (self.holds(low, limit), self.holds(high, limit)) {
            (true, true) => Outcome::Fail,
            (false, false) => Outcome::Pass,
            _ => Outcome::Inconclusive,
        }
    }
}

/// What became of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Outcome {
    Pass,
    Fail,
    Inconclusive,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_inside_the_interval_decide_nothing() {
        let judge = |fails: FailsIf, low, high| fails.judge(Some(Interval { low, high }), 10.0);
        assert_eq!(judge(FailsIf::Above, 11.0, 15.0), Outcome::Fail);
        assert_eq!(judge(FailsIf::Above, 8.0, 9.0), Outcome::Pass);
        assert_eq!(judge(FailsIf::Above, 9.0, 11.0), Outcome::Inconclusive);
        assert_eq!(judge(FailsIf::Below, 11.0, 15.0), Outcome::Pass);
        assert_eq!(judge(FailsIf::Below, 8.0, 9.0), Outcome::Fail);
        assert_eq!(judge(FailsIf::Below, 9.0, 11.0), Outcome::Inconclusive);
    }

    #[test]
    fn the_limit_itself_counts_as_the_sign_says() {
        let judge = |fails: FailsIf, low, high| fails.judge(Some(Interval { low, high }), 10.0);
        assert_eq!(judge(FailsIf::Above, 9.0, 10.0), Outcome::Pass);
        assert_eq!(judge(FailsIf::AtLeast, 10.0, 11.0), Outcome::Fail);
        assert_eq!(judge(FailsIf::AtMost, 9.0, 10.0), Outcome::Fail);
        assert_eq!(judge(FailsIf::Below, 10.0, 11.0), Outcome::Pass);
    }

    #[test]
    fn without_an_interval_nothing_is_decided() {
        assert_eq!(FailsIf::Above.judge(None, 10.0), Outcome::Inconclusive);
        let none = Interval { low: f64::NAN, high: f64::NAN };
        assert_eq!(FailsIf::Above.judge(Some(none), 10.0), Outcome::Inconclusive);
    }
}
