//! How long a run would take, as it is told.

use super::Test;

/// What a run would take.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Every test, in the order they run; fewer when the user interrupts.
    pub phases: Vec<Phase>,
    /// How long finding out took.
    pub tried_s: f64,
    /// What of the sizes is too small for HPCC's rules.
    pub too_small: Vec<String>,
}

/// A test of a run.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Phase {
    pub test: Test,
    /// How large it is.
    pub size: String,
    pub seconds: f64,
}
