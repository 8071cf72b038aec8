//! Results side by side: figures of every side, and how many times worse each is than the first, with a confidence
//! interval and a verdict.
//!
//! The test behind a verdict: the 95% percentile bootstrap interval of the ratio, over the stored batches of passes,
//! excludes 1. Out of scope: differences between repeated jobs, which no single result can show.

mod attribution;
mod compatible;
mod congestors;
mod figures;
mod protocols;
mod render;
pub mod sides;

use serde::Serialize;

use crate::engine::Phase;
use crate::kernel::Canary;
use crate::result::ResultFile;
use crate::stats::{Batched, Direction, Factor, Statistic, bootstrap};

pub use attribution::{Attribution, attribute};
pub use compatible::{Difference, differences};
pub use figures::{FIGURES_TEST, FigureRow};
pub use protocols::ProtocolFinding;
pub use render::{render, title};
pub use sides::{By, Side, sides};

/// Said wherever verdicts are shown.
pub const TEST: &str = "95% bootstrap interval of the ratio over batches of passes excludes 1";

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

/// Several sides, compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The sides' names, the first being what the others are compared with.
    pub sides: Vec<String>,
    /// What makes the sides less than comparable.
    pub differences: Vec<Difference>,
    /// The test behind the verdicts.
    pub test: &'static str,
    /// The figures of canaries.
    pub rows: Vec<Row>,
    /// Those of studies and congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRow>,
    /// What MPI's impact is made of, when MPI and raw runs of like jobs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What each raw backend's impact is made of, when it ran with several protocols in like jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolFinding>,
}

/// A kernel's tests on one side, decoded once.
struct Measured {
    values: Vec<(State, Statistic, f64)>,
    isolated: Option<Batched>,
    loaded: Option<Batched>,
}

impl Measured {
    fn of(side: &Side<'_>, kernel: Canary) -> Self {
        let tests = [Phase::Isolated, Phase::Loaded].map(|phase| side.run.test(kernel, phase));
        let value = |state: State, statistic| {
            let value = match state {
                State::Isolated => tests[0]?.figure(statistic)?,
                State::Loaded => tests[1]?.figure(statistic)?,
                State::Impact => side.run.impact(kernel, statistic)?.factor,
            };
            Some((state, statistic, value))
        };
        let all = State::ALL.into_iter().flat_map(|state| Statistic::ALL.map(|statistic| (state, statistic)));
        let [isolated, loaded] = tests.map(|test| test.map(crate::result::Test::batched));
        Measured { values: all.filter_map(|(state, statistic)| value(state, statistic)).collect(), isolated, loaded }
    }

    fn value(&self, state: State, statistic: Statistic) -> Option<f64> {
        let at = |of: &&(State, Statistic, f64)| of.0 == state && of.1 == statistic;
        self.values.iter().find(at).map(|of| of.2)
    }

    /// How many times worse `self` is than `base`.
    fn ratio(
        &self,
        base: &Self,
        direction: Direction,
        state: State,
        statistic: Statistic,
        seed: u64,
    ) -> Option<Factor> {
        let (before, after) = (base.value(state, statistic)?, self.value(state, statistic)?);
        let worse = |before, after| match state {
            // An impact is a number of times already: more is worse for every kernel.
            State::Impact => after / before,
            _ => direction.factor(before, after),
        };
        let batches: Option<Vec<&Batched>> = match state {
            State::Isolated => [&base.isolated, &self.isolated].map(Option::as_ref).into_iter().collect(),
            State::Loaded => [&base.loaded, &self.loaded].map(Option::as_ref).into_iter().collect(),
            State::Impact => {
                let of = [&base.isolated, &base.loaded, &self.isolated, &self.loaded];
                of.map(Option::as_ref).into_iter().collect()
            }
        };
        let interval = batches.and_then(|batches| {
            bootstrap(&batches, direction, statistic, seed, |of| match state {
                State::Impact => direction.factor(of[2], of[3]) / direction.factor(of[0], of[1]),
                _ => direction.factor(of[0], of[1]),
            })
        });
        let factor = worse(before, after);
        factor.is_finite().then_some(Factor { factor, interval })
    }
}

/// Compares every side with the first, for the kernels that the first and at least one other measured.
pub fn compare(sides: &[Side<'_>], statistics: &[Statistic]) -> Comparison {
    let mut rows = Vec::new();
    let (first, rest) = sides.split_first().expect("the command line asks for two sides");
    for kernel in first.kernels().into_iter().filter(|kernel| rest.iter().any(|side| side.kernels().contains(kernel))) {
        let measured: Vec<Measured> = sides.iter().map(|side| Measured::of(side, kernel)).collect();
        let Some(test) = first.run.tests.iter().find(|test| test.kernel == kernel) else { continue };
        for state in State::ALL {
            for &statistic in statistics {
                let cells: Vec<Cell> = measured
                    .iter()
                    .enumerate()
                    .map(|(at, side)| {
                        let ratio = (at > 0)
                            .then(|| side.ratio(&measured[0], test.direction, state, statistic, first.file.seed))
                            .flatten();
                        let verdict = ratio.as_ref().map(Verdict::of);
                        Cell { value: side.value(state, statistic), ratio, verdict }
                    })
                    .collect();
                if cells.iter().any(|cell| cell.value.is_some()) {
                    let unit = if state == State::Impact { "x".into() } else { test.unit.clone() };
                    rows.push(Row { kernel, title: test.title.clone(), state, statistic, unit, cells });
                }
            }
        }
    }
    let differences: Vec<Difference> = rest.iter().flat_map(|side| differences(first, side)).collect();
    // Blame needs like jobs: where plans or ranks differ, a remainder would be anybody's.
    let alike = differences.iter().all(|of| !of.fatal);
    let attribution = alike.then(|| attribute(sides)).flatten();
    let protocols = if alike { protocols::findings(sides) } else { Vec::new() };
    let names = sides.iter().map(|side| side.label.clone()).collect();
    let figures: Vec<_> = sides.iter().map(|side| figures::of_study(side.file)).collect();
    Comparison { sides: names, differences, test: TEST, rows, figures: figures::rows(&figures), attribution, protocols }
}

/// Compares the congestors of one file with each other; nothing when it has fewer than two.
pub fn compare_congestors(file: &ResultFile) -> Option<Comparison> {
    let kinds = congestors::kinds(file);
    let figures: Vec<_> = kinds.iter().map(|&kernel| congestors::figures(file, kernel)).collect();
    (kinds.len() > 1).then(|| Comparison {
        sides: kinds.iter().map(|kernel| kernel.info().key.to_owned()).collect(),
        differences: Vec::new(),
        test: FIGURES_TEST,
        rows: Vec::new(),
        figures: figures::rows(&figures),
        attribution: None,
        protocols: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
