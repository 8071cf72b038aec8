//! Thresholds by interval: a limit inside it is neither met nor missed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, t95};

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
    /// All of them, longer signs first, so that `>=` is not read as `>`.
    pub const ALL: [FailsIf; 4] = [FailsIf::AtLeast, FailsIf::AtMost, FailsIf::Above, FailsIf::Below];

    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            FailsIf::Above => ">",
            FailsIf::AtLeast => ">=",
            FailsIf::Below => "<",
            FailsIf::AtMost => "<=",
        }
    }

    /// What holds of a figure that does not fail.
    pub fn opposite(self) -> Self {
        match self {
            FailsIf::Above => FailsIf::AtMost,
            FailsIf::AtLeast => FailsIf::Below,
            FailsIf::Below => FailsIf::AtLeast,
            FailsIf::AtMost => FailsIf::Above,
        }
    }

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
    /// Its interval holds the limit.
    Inconclusive,
    /// There is no figure to hold against the limit.
    NotMeasured,
}

/// No more observations than this are asked for.
const MOST_NEEDED: usize = 1000;

/// How many observations a side decide, when `count` of them on each of `sides` sides give an interval of this half width
/// around a figure at this distance from the limit, and their spread stays what it is. None up to a thousand: nothing.
pub fn needed(count: usize, sides: usize, half: f64, distance: f64) -> Option<usize> {
    let width = |count: usize| t95((sides * (count - 1)) as f64) / (count as f64).sqrt();
    if count < 2 || !half.is_finite() {
        return None;
    }
    let decides = |number: usize| half * width(number) / width(count) < distance;
    let (mut low, mut high) = (count, MOST_NEEDED.max(count));
    if !decides(high) {
        return None;
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        if decides(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
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
    fn signs_are_read_longer_ones_first_and_one_of_two_opposites_holds() {
        assert_eq!(FailsIf::ALL.map(FailsIf::sign), [">=", "<=", ">", "<"]);
        for fails in FailsIf::ALL {
            assert!([9.0, 10.0, 11.0].iter().all(|of| fails.holds(*of, 10.0) != fails.opposite().holds(*of, 10.0)));
        }
    }

    #[test]
    fn what_would_decide_follows_from_the_spread() {
        // A standard deviation of 1: t(4) / sqrt(5) = 1.242 now; t / sqrt(n) is below 0.5 from 18 on, at 0.497.
        let half = 2.776_445 / 5f64.sqrt();
        assert_eq!(needed(5, 1, half, 0.5), Some(18));
        assert_eq!(needed(5, 1, half, 2.0), Some(5), "it decides already");
        // Two have a t of 12.7062; t / sqrt(n) is 1.049 for six and 0.925 for seven.
        assert_eq!(needed(2, 1, 12.706_205 / 2f64.sqrt(), 1.0), Some(7));
        // Two sides have twice the degrees of freedom.
        assert!(needed(3, 2, 1.0, 0.5) < needed(3, 1, 1.0, 0.15));
        assert_eq!((needed(5, 1, half, 0.0), needed(1, 1, 1.0, 1.0), needed(5, 1, f64::NAN, 1.0)), (None, None, None));
    }

    #[test]
    fn without_an_interval_nothing_is_decided() {
        assert_eq!(FailsIf::Above.judge(None, 10.0), Outcome::Inconclusive);
        for (low, high) in [(f64::NAN, f64::NAN), (1.0, f64::NAN), (f64::NAN, 1.0)] {
            assert_eq!(FailsIf::Above.judge(Some(Interval { low, high }), 10.0), Outcome::Inconclusive);
        }
    }
}
