//! One figure of one test on every side, and what its ratio says.

use serde::Serialize;

use crate::kernel::Canary;
use crate::stats::{Factor, Statistic};

/// What of a test is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum State {
    Isolated,
    Loaded,
    Impact,
}

impl State {
    /// All of them, in the order of the tables.
    pub const ALL: [State; 3] = [State::Isolated, State::Loaded, State::Impact];

    /// As the user types it.
    pub fn key(self) -> &'static str {
        match self {
            State::Isolated => "isolated",
            State::Loaded => "loaded",
            State::Impact => "impact",
        }
    }
}

/// What the ratio's interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies above 1.
    Worse,
    /// The interval lies below 1.
    Better,
    /// The interval holds 1: no difference was shown.
    NotSignificant,
    /// There is no interval: too few batches, or samples were not kept.
    Unknown,
}

impl Verdict {
    /// The verdict of a ratio of "times worse".
    pub fn of(ratio: &Factor) -> Self {
        match ratio.interval {
            None => Verdict::Unknown,
            Some(interval) if !interval.excludes(1.0) => Verdict::NotSignificant,
            Some(interval) if interval.low > 1.0 => Verdict::Worse,
            Some(_) => Verdict::Better,
        }
    }

    /// As tables show it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Worse => "worse *",
            Verdict::Better => "better *",
            Verdict::NotSignificant => "not sig.",
            Verdict::Unknown => "no test",
        }
    }
}

/// One side's figure beside the first's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// The figure; absent when this side did not measure it.
    pub value: Option<f64>,
    /// How many times worse than the first side; absent on the first side.
    pub ratio: Option<Factor>,
    /// Whether that is significant; absent on the first side.
    pub verdict: Option<Verdict>,
}

/// One figure of one test on every side.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub kernel: Canary,
    pub title: String,
    pub state: State,
    pub statistic: Statistic,
    /// Of the figures; `x` for impacts.
    pub unit: String,
    pub cells: Vec<Cell>,
}
