//! Whether the answer of a test may be reported, or why not. One judgement for every view and check.
//!
//! What disturbs the baseline is held against the time that load adds: a baseline that wanders by 20 us says nothing
//! about 5 ms, and everything about 10 us. Movement counts without its sign: up on one placement and down on the next is
//! no still baseline. What was not recorded is not judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Statistic, mean};

/// Samples that cover less of the time of a test say too little about it.
pub const FEWEST_COVERED: f64 = 0.5;
/// A baseline that moved by a smaller part of itself is called still, whatever load adds: "no impact" must be sayable.
const STILL: f64 = 0.05;
/// A baseline that moved by more than this part of the added time leaves nothing to report.
const MOST_OF_ADDED: f64 = 0.5;
/// Congested for a larger share of the idle time, a canary's 75th percentile by time is that of the disturbance.
const MOST_CONGESTED: f64 = 0.25;
/// Where other guests of a host take more of its processor time, what is measured is them. Of 48 jobs of one plan those that
/// were off by more than a sixth had 0.21 to 0.31, and all others at most 0.12.
const MOST_STOLEN: f64 = 0.1;
/// So many effective iterations have to lie beyond the percentile that is reported.
const FEWEST_BEYOND: f64 = 2.0;

/// How many effective iterations a figure has to rest on.
pub fn fewest_iterations(statistic: Statistic) -> f64 {
    (FEWEST_BEYOND / (1.0 - statistic.quantile().unwrap_or(0.0))).round()
}

/// Why an answer is not reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum NotReportable {
    /// A percentile by time rests on the iterations that took most of the time.
    #[error("{state}, it rests on {effective:.1} effective iterations, {needed:.0} are needed")]
    TooFewIterations { state: TestState, effective: f64, needed: f64 },
    #[error("{state}, samples cover {:.0}% of the time, {:.0}% are needed", 100.0 * .covered, 100.0 * FEWEST_COVERED)]
    TooLittleCovered { state: TestState, covered: f64 },
    /// Idle blocks of a placement differ, on average over placements.
    #[error("between idle blocks it moved by {} its mean, load added {}", part(*.moved), part(*.added).trim_end_matches(" of"))]
    BaselineMoved { moved: f64, added: f64 },
    #[error("{congestor} delivered nothing")]
    LoadNotDelivered { congestor: String },
    #[error("{state}, other guests of the host took {:.0}% of the processor time", 100.0 * .share)]
    ProcessorStolen { state: TestState, share: f64 },
    #[error("it was congested for {:.0}% of the idle time", 100.0 * .share)]
    CongestedWhileIdle { share: f64 },
}

impl NotReportable {
    /// As machines read it.
    pub fn key(&self) -> &'static str {
        match self {
            NotReportable::TooFewIterations { .. } => "too-few-iterations",
            NotReportable::TooLittleCovered { .. } => "too-little-covered",
            NotReportable::BaselineMoved { .. } => "baseline-moved",
            NotReportable::LoadNotDelivered { .. } => "load-not-delivered",
            NotReportable::ProcessorStolen { .. } => "processor-stolen",
            NotReportable::CongestedWhileIdle { .. } => "congested-while-idle",
        }
    }
}

/// A part of a figure; many times the figure as such.
fn part(of: f64) -> String {
    if of.abs() < 10.0 { format!("{:.0}% of", 100.0 * of) } else { format!("{of:.0} times") }
}

/// In which of its two states a test was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum TestState {
    Idle,
    Loaded,
}

impl std::fmt::Display for TestState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TestState::Idle => "idle",
            TestState::Loaded => "loaded",
        })
    }
}

/// What a judgement is made of; times in ns (ns per MiB for a bandwidth).
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Effective iterations, idle and loaded.
    pub effective: [Option<f64>; 2],
    /// The share of the time that samples cover, idle and loaded.
    pub covered: [Option<f64>; 2],
    /// The share of a host's processor time that a hypervisor gave to others, idle and loaded.
    pub stolen: [Option<f64>; 2],
    /// The time of every idle block, by placement.
    pub idle_blocks_ns: Vec<Vec<f64>>,
    /// The idle figure, and what load adds to it, on average over placements.
    pub idle_ns: Option<f64>,
    #[allow(missing_docs)]
    pub added_ns: Option<f64>,
    /// Congestors that delivered nothing, by name.
    pub silent: Vec<String>,
    /// The share of the idle time in which the canary was congested.
    pub congested_idle: Option<f64>,
}

/// Whether an answer is reportable: there is nothing against it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// All that is against it.
    pub reasons: Vec<NotReportable>,
}

impl Judgement {
    /// The judgement of an answer by `statistic`.
    pub fn of(evidence: &Evidence, statistic: Statistic) -> Self {
        let states = || [TestState::Idle, TestState::Loaded].into_iter();
        let needed = fewest_iterations(statistic);
        let few = states().zip(evidence.effective).filter_map(|(state, effective)| {
            let effective = effective.filter(|effective| *effective < needed)?;
            Some(NotReportable::TooFewIterations { state, effective, needed })
        });
        let uncovered = states().zip(evidence.covered).filter_map(|(state, covered)| {
            let covered = covered.filter(|covered| *covered < FEWEST_COVERED)?;
            Some(NotReportable::TooLittleCovered { state, covered })
        });
        let stolen = states().zip(evidence.stolen).filter_map(|(state, share)| {
            let share = share.filter(|share| *share > MOST_STOLEN)?;
            Some(NotReportable::ProcessorStolen { state, share })
        });
        let silent = evidence.silent.iter().cloned().map(|congestor| NotReportable::LoadNotDelivered { congestor });
        let reasons =
            few.chain(uncovered).chain(stolen).chain(moved(evidence)).chain(congested(evidence)).chain(silent);
        Judgement { reasons: reasons.collect() }
    }

    /// Whether nothing is against it.
    pub fn is_reportable(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What of it is against the figure of one state, whatever becomes of the difference to the other.
    #[must_use]
    pub fn of_state(mut self, wanted: TestState) -> Self {
        self.reasons.retain(|reason| match reason {
            NotReportable::TooFewIterations { state, .. }
            | NotReportable::TooLittleCovered { state, .. }
            | NotReportable::ProcessorStolen { state, .. } => *state == wanted,
            NotReportable::LoadNotDelivered { .. } => wanted == TestState::Loaded,
            NotReportable::BaselineMoved { .. } | NotReportable::CongestedWhileIdle { .. } => false,
        });
        self
    }

    /// What is against it, as one text; nothing where it is reportable.
    pub fn why_not(&self) -> Option<String> {
        let all: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// How far the idle blocks of a placement lie apart, on average over placements, if that is too much.
fn moved(evidence: &Evidence) -> Option<NotReportable> {
    let several = || evidence.idle_blocks_ns.iter().filter(|blocks| blocks.len() > 1);
    let apart = |blocks: &Vec<f64>| {
        let (low, high) = blocks.iter().fold((f64::INFINITY, 0.0f64), |(low, high), of| (low.min(*of), high.max(*of)));
        high - low
    };
    let moved = mean(&several().map(apart).collect::<Vec<f64>>());
    let (idle, added) = (evidence.idle_ns?, evidence.added_ns?);
    (moved > (STILL * idle).max(MOST_OF_ADDED * added.abs()))
        .then(|| NotReportable::BaselineMoved { moved: moved / idle, added: added / idle })
}

/// A canary that met congestion while it should have had the network to itself, if its own time matters beside what load
/// adds.
fn congested(evidence: &Evidence) -> Option<NotReportable> {
    let share = evidence.congested_idle.filter(|share| *share > MOST_CONGESTED)?;
    (evidence.idle_ns? > MOST_OF_ADDED * evidence.added_ns?.abs())
        .then_some(NotReportable::CongestedWhileIdle { share })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Evidence {
        Evidence {
            effective: [Some(500.0), Some(8.0)],
            covered: [Some(1.0), Some(0.5)],
            stolen: [Some(0.02), None],
            idle_blocks_ns: vec![vec![10e3, 10.2e3], vec![10.1e3, 9.9e3]],
            idle_ns: Some(10e3),
            added_ns: Some(5e6),
            silent: Vec::new(),
            congested_idle: Some(0.25),
        }
    }

    fn judged(change: impl FnOnce(&mut Evidence)) -> Judgement {
        let mut evidence = sound();
        change(&mut evidence);
        Judgement::of(&evidence, Statistic::TimeP75)
    }

    #[test]
    fn what_is_sound_or_unknown_is_reportable() {
        assert_eq!(judged(|_| {}), Judgement::default());
        assert_eq!(Judgement::of(&Evidence::default(), Statistic::TimeP75).why_not(), None);
        assert!(
            judged(|of| (of.effective, of.covered, of.congested_idle) = ([None; 2], [None; 2], None)).is_reportable()
        );
    }

    #[test]
    fn movements_of_the_baseline_do_not_cancel_over_placements() {
        // Ten times up on one placement and down on the other, beside a claim of 65x: the mean of signed logarithms is 0.
        let swung = judged(|of| {
            (of.idle_blocks_ns, of.added_ns) = (vec![vec![10e3, 600e3], vec![600e3, 10e3]], Some(640e3));
        });
        assert_eq!(swung.reasons[0].key(), "baseline-moved");
        let said = swung.why_not().unwrap();
        assert!(said.contains("moved by 59 times its mean, load added 64 times"), "{said}");
        // The blocks in between count too.
        assert!(
            !judged(|of| (of.idle_blocks_ns, of.added_ns) = (vec![vec![10e3, 20e3, 10e3]], Some(15e3))).is_reportable()
        );
    }

    #[test]
    fn a_movement_counts_against_what_load_adds_and_five_percent_of_itself() {
        let with = |blocks: [f64; 2], added: f64| {
            judged(|of| (of.idle_blocks_ns, of.added_ns) = (vec![blocks.to_vec()], Some(added))).is_reportable()
        };
        assert!(with([10e3, 30e3], 5e6), "20 us beside 5 ms");
        assert!(with([10e3, 30e3], 40e3) && !with([10e3, 30e3], 39e3) && !with([30e3, 10e3], 39e3));
        assert!(with([30e3, 10e3], -40e3) && !with([30e3, 10e3], -39e3), "load that makes things quicker is an answer");
        assert!(with([10e3, 10.4e3], 0.0) && !with([10e3, 10.6e3], 0.0), "no impact can be said of a still baseline");
    }

    #[test]
    fn few_iterations_little_coverage_and_silent_congestors_are_said() {
        let found = judged(|of| {
            of.effective = [Some(7.9), Some(2.0)];
            of.covered = [None, Some(0.06)];
            of.silent = vec!["Incast".into()];
        });
        assert_eq!(
            found.why_not().unwrap(),
            "idle, it rests on 7.9 effective iterations, 8 are needed; loaded, it rests on 2.0 effective iterations, 8 \
             are needed; loaded, samples cover 6% of the time, 50% are needed; Incast delivered nothing"
        );
        let keys: Vec<&str> = found.reasons.iter().map(NotReportable::key).collect();
        assert_eq!(keys, ["too-few-iterations", "too-few-iterations", "too-little-covered", "load-not-delivered"]);
        let stolen = judged(|of| of.stolen = [Some(0.1), Some(0.28)]);
        assert_eq!(stolen.reasons[0].key(), "processor-stolen");
        assert_eq!(stolen.why_not().unwrap(), "loaded, other guests of the host took 28% of the processor time");
        assert!(stolen.of_state(TestState::Idle).is_reportable());
        let of_state = |state| found.clone().of_state(state).reasons.len();
        assert_eq!((of_state(TestState::Idle), of_state(TestState::Loaded)), (1, 3));
        let average = |effective| {
            let evidence = Evidence { effective: [Some(effective); 2], ..sound() };
            Judgement::of(&evidence, Statistic::Avg).is_reportable()
        };
        assert!(average(2.0) && !average(1.0), "of an average two repetitions are enough");
    }

    #[test]
    fn congestion_while_idle_counts_where_the_idle_time_does() {
        let with = |share: f64, added: f64| {
            judged(|of| (of.congested_idle, of.added_ns) = (Some(share), Some(added))).is_reportable()
        };
        assert!(!with(0.3, 15e3) && with(0.25, 15e3) && with(0.3, 5e6));
    }
}
