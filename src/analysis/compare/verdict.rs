//! One figure of one test on every side, how many times worse it is than the first side's, and what that says.
//!
//! Placements are what is independent in a run. Sides that measured the same placements are held against each other
//! placement by placement, which cancels what placements have in common; others as two unrelated sets.

use serde::Serialize;

use super::sides::Side;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::stats::{Direction, FAMILY_ERROR, Factor, Ratio, Statistic, paired, unpaired};

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

/// Whether a difference was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The figure is worse, with all tests of its family taken together.
    Worse,
    /// The figure is better, likewise.
    Better,
    /// No difference was shown.
    NotSignificant,
    /// There is no test: too few placements, or figures of another program.
    Unknown,
}

impl Verdict {
    /// The verdict of a ratio of "times worse" whose p-value has been adjusted for its family.
    pub fn of(ratio: f64, p_value: Option<f64>) -> Self {
        match p_value {
            None => Verdict::Unknown,
            Some(p_value) if p_value >= FAMILY_ERROR => Verdict::NotSignificant,
            Some(_) if ratio > 1.0 => Verdict::Worse,
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
    /// How likely a ratio as far from 1 is when nothing differs, adjusted for all tests of its family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether that is significant; absent on the first side.
    pub verdict: Option<Verdict>,
}

impl Cell {
    /// Of the first side.
    pub(super) fn base(value: Option<f64>) -> Self {
        Cell { value, ratio: None, p_value: None, verdict: None }
    }

    /// Of another side; the verdict comes once the p-values of its family are known.
    pub(super) fn beside(value: Option<f64>, ratio: Option<Ratio>) -> Self {
        let factor = ratio.map(|of| Factor { factor: of.ratio, interval: of.interval });
        let p_value = ratio.and_then(|of| of.p_value);
        Cell { value, ratio: factor, p_value, verdict: ratio.map(|of| Verdict::of(of.ratio, p_value)) }
    }
}

/// One figure of one test on every side.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub kernel: Canary,
    pub title: String,
    pub state: State,
    pub statistic: Statistic,
    /// Whether it was named beforehand as what decides: its family is those of all canaries and sides, no more.
    pub primary: bool,
    /// Of the figures; `x` for impacts.
    pub unit: String,
    pub cells: Vec<Cell>,
}

/// A kernel on one side.
pub(super) struct Measured<'a> {
    side: &'a Side<'a>,
    kernel: Canary,
}

impl<'a> Measured<'a> {
    pub(super) fn of(side: &'a Side<'a>, kernel: Canary) -> Self {
        Measured { side, kernel }
    }

    /// The figure over all placements.
    pub(super) fn value(&self, state: State, statistic: Statistic) -> Option<f64> {
        let test = |phase| self.side.run.test(self.kernel, phase)?.figure(statistic);
        match state {
            State::Isolated => test(LoadState::Isolated),
            State::Loaded => test(LoadState::Loaded),
            State::Impact => self.side.run.impact(self.kernel, statistic).map(|of| of.factor),
        }
    }

    /// Each placement's figure.
    pub(super) fn each(&self, state: State, statistic: Statistic) -> Option<Vec<f64>> {
        match state {
            State::Isolated => self.side.run.figures(self.kernel, LoadState::Isolated, statistic),
            State::Loaded => self.side.run.figures(self.kernel, LoadState::Loaded, statistic),
            State::Impact => self.side.run.factors(self.kernel, statistic),
        }
    }

    /// How many times worse `self` is than `base`.
    pub(super) fn ratio(&self, base: &Self, state: State, statistic: Statistic) -> Option<Ratio> {
        let direction: Direction = self.kernel.info().direction;
        // An impact is a number of times already: more is worse for every kernel.
        let falls = state != State::Impact && direction == Direction::Bandwidth;
        let over_placements = || {
            let (before, after) = (base.each(state, statistic)?, self.each(state, statistic)?);
            let (before, after) = if falls { (after, before) } else { (before, after) };
            if same_placements(base.side, self.side) { paired(&before, &after) } else { unpaired(&before, &after) }
        };
        let plain = || {
            let (before, after) = (base.value(state, statistic)?, self.value(state, statistic)?);
            let ratio = if falls { before / after } else { after / before };
            (ratio.is_finite() && ratio > 0.0).then_some(Ratio { ratio, interval: None, p_value: None })
        };
        over_placements().or_else(plain)
    }
}

/// Whether both measured the same placements of the same nodes.
pub(super) fn same_placements(one: &Side<'_>, other: &Side<'_>) -> bool {
    let seeds = |side: &Side<'_>| -> Vec<u64> { side.run.placements.iter().map(|of| of.seed).collect() };
    let roles =
        |side: &Side<'_>| -> Vec<String> { side.run.placements.iter().map(|of| format!("{:?}", of.roles)).collect() };
    let names =
        |side: &Side<'_>| -> Vec<String> { side.file.system.nodes.iter().map(|node| node.name.clone()).collect() };
    !one.run.placements.is_empty()
        && seeds(one) == seeds(other)
        && names(one) == names(other)
        && roles(one) == roles(other)
}
