//! The answer of a load test in one word: how severe congestion is and what decides that, or why nobody can say.

use serde::Serialize;

use crate::result::{Answer, ResultFile, Run};
use crate::stats::{Factor, NotReportable, TestState};
use crate::text::with_ends;

/// An impact that may be as large is not called none.
const WIDE: f64 = 2.0;

/// How much worse the worst canary is under load, by its headline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Less than 1.1 times, or no difference shown.
    None,
    /// Less than twice.
    Mild,
    /// Less than ten times.
    Strong,
    /// Ten times or more.
    Severe,
}

impl Severity {
    /// Of an impact, which counts only when all of its interval is above 1 and bounds it.
    pub fn of(impact: Factor) -> Self {
        let is_shown = impact.is_bounded() && impact.interval.is_none_or(|of| of.low > 1.0);
        let reached = |of: &Severity| is_shown && impact.factor >= of.from_factor();
        [Severity::Severe, Severity::Strong, Severity::Mild].into_iter().find(reached).unwrap_or(Severity::None)
    }

    /// The impact it begins with.
    pub const fn from_factor(self) -> f64 {
        match self {
            Severity::None => 0.0,
            Severity::Mild => 1.1,
            Severity::Strong => 2.0,
            Severity::Severe => 10.0,
        }
    }

    /// As a heading.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::None => "NO CONGESTION",
            Severity::Mild => "MILD CONGESTION",
            Severity::Strong => "STRONG CONGESTION",
            Severity::Severe => "SEVERE CONGESTION",
        }
    }
}

/// What a load test says on the whole.
#[derive(Clone, Debug)]
pub enum Conclusion<'a> {
    /// So much, by the worst of the answers that may be reported.
    Shown {
        /// How much.
        severity: Severity,
        /// The run that the answer is of.
        run: &'a Run,
        /// The answer that decides, and its impact.
        worst: Box<Answer<'a>>,
        /// The same.
        impact: Factor,
        /// So many tests can be reported, of so many.
        reportable: (usize, usize),
    },
    /// No answer may be reported.
    CannotSay {
        /// What it comes down to.
        cause: &'static str,
        /// All that is against the first of them.
        why: String,
    },
}

impl ResultFile {
    /// What it says on the whole; nothing unless something was measured idle and under load.
    pub fn conclusion(&self) -> Option<Conclusion<'_>> {
        // Of several networks those count that load themselves: mixed runs are there to tell canaries from load.
        let is_mixed = |run: &&Run| run.congestors_over.is_some();
        let only_mixed = self.runs.iter().all(|run| is_mixed(&run));
        let runs = self.runs.iter().filter(|run| only_mixed || !is_mixed(run));
        let all: Vec<(&Run, Answer<'_>)> =
            runs.flat_map(|run| run.answers().map(move |answer| (run, answer))).collect();
        let reportable = all.iter().filter(|(_, answer)| answer.judgement.is_reportable());
        let shown = reportable.filter_map(|(run, answer)| Some((*run, answer, answer.impact?)));
        // One that is shown to be worse comes before one that only may be.
        let rank = |impact: &Factor| (Severity::of(*impact), impact.factor);
        let order = |a: &Factor, b: &Factor| {
            let ((a, x), (b, y)) = (rank(a), rank(b));
            a.cmp(&b).then(x.total_cmp(&y))
        };
        let shown: Vec<_> = shown.collect();
        let worst = shown.iter().max_by(|(.., a), (.., b)| order(a, b));
        if let Some(&(run, answer, impact)) = worst {
            let severity = Severity::of(impact);
            // That nothing was shown is not that there is nothing.
            let open = shown.iter().find(|(.., of)| of.interval.is_some_and(|of| of.high >= WIDE));
            if let Some((_, answer, impact)) = open.filter(|_| severity == Severity::None) {
                let (name, impact) = (&answer.test.title, with_ends(*impact));
                let why = format!("{name} is {impact} under load: more --placements or a longer --budget would tell");
                return Some(Conclusion::CannotSay { cause: "the interval is too wide", why });
            }
            // Nor is it while other canaries may have met some.
            if severity > Severity::None || shown.len() == all.len() {
                let (worst, reportable) = (Box::new(answer.clone()), (shown.len(), all.len()));
                return Some(Conclusion::Shown { severity, run, worst, impact, reportable });
            }
        }
        not_reportable(&all)
    }
}

/// The first answer that may not be reported, and why.
fn not_reportable<'a>(all: &[(&Run, Answer<'_>)]) -> Option<Conclusion<'a>> {
    let (answer, reason) = all.iter().find_map(|(_, answer)| Some((answer, answer.judgement.reasons.first()?)))?;
    let why = format!("{}: {}", answer.test.title.clone(), answer.judgement.why_not()?);
    Some(Conclusion::CannotSay { cause: cause(reason), why })
}

/// What a reason comes down to.
fn cause(reason: &NotReportable) -> &'static str {
    match reason {
        NotReportable::TooFewIterations { .. } => "too few iterations",
        NotReportable::TooLittleCovered { state: TestState::Idle, .. } => {
            "iterations cover too little of the idle time"
        }
        NotReportable::TooLittleCovered { state: TestState::Loaded, .. } => {
            "iterations cover too little of the loaded time"
        }
        NotReportable::BaselineMoved { .. } | NotReportable::CongestedWhileIdle { .. } => "baseline disturbed",
        NotReportable::ProcessorStolen { .. } => "machine disturbed",
        NotReportable::LoadNotDelivered { .. } => "load too weak",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::engine::LoadState;
    use crate::kernel::Canary;
    use crate::stats::{Impact, Interval};

    #[test]
    fn an_impact_counts_when_all_of_its_interval_is_above_1() {
        let of = |factor: f64, low: f64| {
            Severity::of(Factor { factor, interval: Some(Interval { low, high: 2.0 * factor }) })
        };
        assert_eq!([of(1.05, 1.01), of(30.0, 0.9)], [Severity::None; 2]);
        assert_eq!([of(1.3, 1.1), of(3.0, 1.1), of(10.0, 1.1)], [Severity::Mild, Severity::Strong, Severity::Severe]);
        assert_eq!(Severity::of(Factor { factor: 3.0, interval: None }), Severity::Strong);
    }

    #[test]
    fn an_interval_that_bounds_nothing_decides_nothing() {
        let mut file = synthetic::file("tcp", None, 15.4);
        let set = |file: &mut ResultFile, kernel: Canary, low: f64, high: f64| {
            let of = Factor { factor: 15.4, interval: Some(Interval { low, high }) };
            let impacts = file.runs[0].impacts.iter_mut().filter(|impact| impact.kernel == kernel);
            impacts.for_each(|impact| impact.impact = Impact::of(|_| Some(of)));
        };
        let all: Vec<Canary> = file.runs[0].answers().map(|of| of.test.kernel).collect();
        all.iter().for_each(|kernel| set(&mut file, *kernel, 1.19, 199.0));
        let Some(Conclusion::CannotSay { cause, why }) = file.conclusion() else { panic!("{:?}", file.conclusion()) };
        assert_eq!(cause, "the interval is too wide");
        assert!(why.contains(" is 15.4x [1.19, 199] under load: more --placements "), "{why}");
        // Another test that is bounded does, whatever the one that is not may be.
        set(&mut file, all[1], 8.0, 30.0);
        let Some(Conclusion::Shown { severity, worst, .. }) = file.conclusion() else { panic!() };
        assert_eq!((severity, worst.test.kernel), (Severity::Severe, all[1]));
    }

    #[test]
    fn what_little_of_the_time_is_covered_is_not_called_few_iterations() {
        let mut file = synthetic::file("tcp", None, 3.0);
        for test in file.runs[0].tests.iter_mut().filter(|test| test.phase == LoadState::Loaded) {
            test.covered = Some(0.2);
        }
        let Some(Conclusion::CannotSay { cause, why }) = file.conclusion() else { panic!("{:?}", file.conclusion()) };
        assert_eq!(cause, "iterations cover too little of the loaded time");
        assert!(why.contains("loaded, samples cover 20% of the time"), "{why}");
    }

    #[test]
    fn the_worst_answer_decides_and_one_that_may_not_be_reported_does_not() {
        let mut file = synthetic::file("tcp", None, 3.0);
        let Some(Conclusion::Shown { severity, impact, .. }) = file.conclusion() else {
            panic!("{:?}", file.conclusion())
        };
        assert_eq!(severity, Severity::Strong, "{impact:?}");
        for test in file.runs.iter_mut().flat_map(|run| &mut run.tests) {
            test.load.iter_mut().for_each(|load| load.delivered_bytes = 0);
        }
        let Some(Conclusion::CannotSay { cause, why }) = file.conclusion() else { panic!("{:?}", file.conclusion()) };
        assert_eq!(cause, "load too weak", "{why}");
        assert!(why.starts_with("lat 8 B: "), "{why}");
        file.runs[0].tests.clear();
        assert!(file.conclusion().is_none());
    }

    #[test]
    fn what_can_be_reported_is_counted_and_mixed_runs_decide_nothing() {
        let mut file = synthetic::file("tcp", None, 3.0);
        let mut mixed = synthetic::file("tcp", None, 40.0).runs.remove(0);
        mixed.congestors_over = Some(synthetic::file("mpi", None, 1.0).runs[0].transport.clone());
        file.runs.push(mixed);
        for test in file.runs[0].tests.iter_mut().filter(|test| test.kernel != Canary::Lat) {
            test.load.iter_mut().for_each(|load| load.delivered_bytes = 0);
        }
        let Some(Conclusion::Shown { severity, reportable, .. }) = file.conclusion() else {
            panic!("{:?}", file.conclusion())
        };
        assert_eq!((severity, reportable), (Severity::Strong, (1, 3)));
        file.runs.remove(0);
        assert!(matches!(file.conclusion(), Some(Conclusion::Shown { severity: Severity::Severe, .. })));
    }
}
