//! Whether the baseline held still. Blocks of isolated (A) and loaded (B) alternate, so a steady drift cancels to first
//! order; but a baseline that moved by more than the factor itself leaves nothing to report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A baseline that moved by less is called still, whatever the claim: "no impact" must be sayable.
const STILL: f64 = 1.05;

/// Why an impact is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NotReportable {
    /// The last isolated block differs from the first by more than the load is said to have changed.
    #[error("the baseline itself moved {moved:.2}x, more than the {factor:.2}x claimed")]
    BaselineMoved {
        /// Last isolated block over first.
        moved: f64,
        /// The factor that would have been claimed.
        factor: f64,
    },
    /// A figure that is zero, or no number.
    #[error("a figure that is no positive number")]
    NotPositive,
}

/// How many times as large the last isolated block's figure is as the first's.
pub fn moved(first: f64, last: f64) -> f64 {
    last / first
}

/// Whether a factor may be reported, given the figure of the first and of the last isolated block. Up and down count
/// alike, on a logarithmic scale; less than 5% is no movement.
pub fn reportable(first: f64, last: f64, factor: f64) -> Result<(), NotReportable> {
    let moved = moved(first, last);
    if ![moved, factor].iter().all(|of| of.is_finite() && *of > 0.0) {
        return Err(NotReportable::NotPositive);
    }
    if moved.ln().abs() > factor.ln().abs().max(STILL.ln()) {
        return Err(NotReportable::BaselineMoved { moved, factor });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_that_moved_by_more_than_the_claim_leaves_nothing() {
        assert_eq!(reportable(10.0, 11.0, 3.0), Ok(()));
        let found = reportable(10.0, 20.0, 1.5).unwrap_err();
        assert_eq!(found, NotReportable::BaselineMoved { moved: 2.0, factor: 1.5 });
        assert!(found.to_string().contains("2.00x, more than the 1.50x"));
        // Downwards as well, and against a claim of less than one.
        assert!(reportable(20.0, 10.0, 1.5).is_err() && reportable(20.0, 10.0, 0.4).is_ok());
    }

    #[test]
    fn no_impact_can_be_said_of_a_still_baseline() {
        assert!(reportable(10.0, 10.4, 1.0).is_ok() && reportable(10.0, 9.6, 1.01).is_ok());
        assert!(reportable(10.0, 10.6, 1.0).is_err());
    }

    #[test]
    fn figures_that_are_none_are_said() {
        for (first, last, factor) in [(0.0, 1.0, 2.0), (1.0, 0.0, 2.0), (1.0, f64::NAN, 2.0), (1.0, 1.0, f64::INFINITY)]
        {
            assert_eq!(reportable(first, last, factor), Err(NotReportable::NotPositive));
        }
    }
}
