//! One figure of one test on every side, how it differs from the first side's, and what that says.
//!
//! Every difference is a [`Difference`]: of added times as it is, of other figures on a logarithmic scale, where it is the
//! logarithm of "times worse". More is worse in both.

use serde::Serialize;

use super::sides::Side;
use crate::kernel::Canary;
use crate::result::Run;
use crate::stats::{Difference, FAMILY_ERROR, Factor, Interval, Statistic, TestState};

/// What of a test is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum State {
    Isolated,
    Loaded,
    /// Loaded minus isolated, as a time.
    Added,
    Impact,
}

impl State {
    /// All of them, in the order of the tables.
    pub const ALL: [State; 4] = [State::Isolated, State::Loaded, State::Added, State::Impact];

    /// Why such a figure of a canary's may not be reported; nothing where it may.
    pub fn why_not(self, run: &Run, kernel: Canary, statistic: Statistic) -> Option<String> {
        let judgement = run.judgement_by(kernel, statistic);
        let judgement = match self {
            State::Isolated => judgement.of_state(TestState::Idle),
            State::Loaded => judgement.of_state(TestState::Loaded),
            State::Added | State::Impact => judgement,
        };
        judgement.why_not()
    }

    /// As the user types it.
    pub fn key(self) -> &'static str {
        match self {
            State::Isolated => "idle",
            State::Loaded => "loaded",
            State::Added => "added",
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
    /// Both are the same within the margin that was given, likewise.
    Same,
    /// No difference was shown.
    NotSignificant,
    /// Neither a difference nor sameness within the margin was shown.
    CannotTell,
    /// There is no test: something is against the figure of a side ([`crate::stats::Judgement`]).
    NotReportable,
    /// There is no test: each side is one job, and how much jobs differ is not known.
    OneJob,
    /// There is no test: too few placements, or figures of another program.
    Unknown,
}

impl Verdict {
    /// Of a difference whose p-value has been adjusted for its family.
    pub fn of(is_worse: bool, p_value: f64) -> Self {
        match p_value {
            _ if p_value >= FAMILY_ERROR => Verdict::NotSignificant,
            _ if is_worse => Verdict::Worse,
            _ => Verdict::Better,
        }
    }

    /// As tables show it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Worse => "worse *",
            Verdict::Better => "better *",
            Verdict::Same => "same",
            Verdict::NotSignificant => "not sig.",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotReportable => "not reportable",
            Verdict::OneJob => "one job",
            Verdict::Unknown => "no test",
        }
    }
}

/// How an added time differs from the first side's. Parts are of the first side's loaded time, which is idle plus added:
/// that makes sense with and without congestion.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Change {
    /// In the unit of the row.
    pub difference: f64,
    /// As a part of the first side's loaded time.
    pub part: f64,
    /// The interval of that part which the verdict is based on; absent without a test.
    pub interval: Option<Interval>,
    /// The confidence of the interval: 0.95, or more where several tests are corrected for.
    pub confidence: Option<f64>,
    /// The least part that would have been found in four of five such comparisons; absent without a test.
    pub detectable: Option<f64>,
    /// The first side's loaded time.
    #[serde(skip)]
    pub(crate) loaded: f64,
}

/// One side's figure beside the first's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// The figure; absent when this side did not measure it.
    pub value: Option<f64>,
    /// Of an added time: its 95% interval over jobs, or over the placements of a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// How many times worse than the first side; absent on the first side, and of added times.
    pub ratio: Option<Factor>,
    /// Of an added time: how it differs from the first side's; absent on the first side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// How likely a difference as far from none is when nothing differs, adjusted for all tests of its family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether that is significant; absent on the first side.
    pub verdict: Option<Verdict>,
    /// Whether this side's test may be reported.
    #[serde(skip)]
    pub is_reportable: bool,
    /// What the verdict is made of.
    #[serde(skip)]
    pub(super) difference: Option<Difference>,
}

impl Cell {
    /// Of the first side.
    pub(super) fn base(value: Option<f64>) -> Self {
        Cell {
            value,
            interval: None,
            ratio: None,
            change: None,
            p_value: None,
            verdict: None,
            is_reportable: true,
            difference: None,
        }
    }

    /// Of another side, by its number of times worse; the verdict comes once the p-values of its family are known, and is
    /// `untested` where there is none.
    pub(super) fn times_worse(value: Option<f64>, difference: Option<Difference>, untested: Verdict) -> Self {
        let ratio = difference.map(|of| Factor { factor: of.value.exp(), interval: None });
        Cell { ratio, ..Cell::beside(value, difference, untested) }
    }

    /// The same of an added time.
    pub(super) fn added(value: Option<f64>, difference: Option<Difference>, untested: Verdict, loaded: f64) -> Self {
        let change = difference.map(|of| Change {
            difference: of.value,
            part: of.value / loaded,
            interval: None,
            confidence: None,
            detectable: None,
            loaded,
        });
        Cell { change, ..Cell::beside(value, difference, untested) }
    }

    fn beside(value: Option<f64>, difference: Option<Difference>, untested: Verdict) -> Self {
        let p_value = difference.and_then(|of| of.p_value());
        Cell { p_value, verdict: difference.map(|_| untested), difference, ..Cell::base(value) }
    }

    /// Judges by the p-value that is adjusted for the family, and shows the interval of the level it was tested at.
    pub(super) fn judge(&mut self, adjusted: f64, level: f64) {
        let Some(difference) = self.difference else { return };
        self.p_value = Some(adjusted);
        self.verdict = Some(Verdict::of(difference.value > 0.0, adjusted));
        self.show(level);
        let detectable = difference.detectable(level);
        self.change.iter_mut().for_each(|of| of.detectable = detectable.map(|least| least / of.loaded));
    }

    /// The interval that misses with probability `alpha`.
    pub(super) fn show(&mut self, alpha: f64) {
        let interval = self.difference.and_then(|of| of.interval(alpha));
        let map = |form: &dyn Fn(f64) -> f64| interval.map(|of| Interval { low: form(of.low), high: form(of.high) });
        self.ratio.iter_mut().for_each(|of| of.interval = map(&f64::exp));
        if let Some(change) = &mut self.change {
            change.interval = map(&|end| end / change.loaded);
            change.confidence = Some(1.0 - alpha);
        }
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
