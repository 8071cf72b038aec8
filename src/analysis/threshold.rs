//! Thresholds for CI: `lat.time-p75.impact > 10` fails a command, with exit code 1 and a JUnit file that says which.
//!
//! Grammar: `KERNEL.STAT.STATE [.ratio] [.low|.high] OP NUMBER`, where STAT is a statistic's key, STATE is isolated,
//! loaded or impact, OP is one of > >= < <=. With `.ratio` the figure is how many times worse a side is than the first
//! one of a comparison; `.low` and `.high` are the ends of its 95% interval.
//!
//! An impact or a ratio fails when all of its interval does, passes when none of it does, and is inconclusive otherwise.
//! A figure without an interval is judged by itself where none was to be had (a state's figure), and is inconclusive
//! where one was. A figure that was not measured fails: a check that checked nothing must not pass.

use std::fmt;
use std::str::FromStr;

use crate::analysis::compare::{Comparison, State};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::Run;
use crate::stats::{Factor, FailsIf, Outcome, Statistic};
use crate::text::{escape, figure, with_interval};

/// Signs, longer ones first, so that `>=` is not read as `>`.
const SIGNS: [(&str, FailsIf); 4] =
    [(">=", FailsIf::AtLeast), ("<=", FailsIf::AtMost), (">", FailsIf::Above), ("<", FailsIf::Below)];

/// Which part of a figure is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The figure with its interval.
    Whole,
    Low,
    High,
}

/// A condition that fails a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The canary it looks at.
    pub kernel: Canary,
    statistic: Statistic,
    state: State,
    /// Whether the figure is the ratio to the first side.
    pub ratio: bool,
    part: Part,
    operator: FailsIf,
    number: f64,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "a threshold is KERNEL.STAT.STATE OP NUMBER, e.g. 'lat.time-p75.impact > 10'";
        let (sign, operator) = SIGNS
            .into_iter()
            .find(|(sign, _)| text.contains(sign))
            .ok_or_else(|| format!("no >, >=, < or <=: {FORM}"))?;
        let (figure, number) = text.split_once(sign).expect("it contains the sign");
        let (figure, number) = (figure.trim(), number.trim());
        let number: f64 = number.parse().map_err(|_| format!("'{number}' is no number: {FORM}"))?;
        if !number.is_finite() {
            return Err(format!("'{number}' is no finite number: {FORM}"));
        }
        let mut parts: Vec<&str> = figure.split('.').collect();
        let part = match parts.last() {
            Some(&"low") => Part::Low,
            Some(&"high") => Part::High,
            _ => Part::Whole,
        };
        parts.truncate(if part == Part::Whole { parts.len() } else { parts.len() - 1 });
        let ratio = parts.len() == 4 && parts[3] == "ratio";
        parts.truncate(if ratio { 3 } else { parts.len() });
        let [kernel, statistic, state] = parts[..] else {
            return Err(format!("'{figure}' has not three parts: {FORM}"));
        };
        let statistic = Statistic::ALL.into_iter().find(|known| known.key() == statistic).ok_or_else(|| {
            let known = Statistic::ALL.map(Statistic::key).join(", ");
            format!("unknown statistic '{statistic}': choose from {known}")
        })?;
        let state = State::ALL
            .into_iter()
            .find(|known| known.key() == state)
            .ok_or_else(|| format!("unknown state '{state}': choose from isolated, loaded, impact"))?;
        if part != Part::Whole && state != State::Impact && !ratio {
            return Err("only impacts and ratios have intervals: .low and .high are for them".into());
        }
        Ok(Threshold { kernel: kernel.parse()?, statistic, state, ratio, part, operator, number })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Threshold { kernel, statistic, state, operator, number, .. } = self;
        let sign = SIGNS.iter().find(|(_, known)| known == operator).expect("all are listed").0;
        let ratio = if self.ratio { ".ratio" } else { "" };
        let part = match self.part {
            Part::Whole => "",
            Part::Low => ".low",
            Part::High => ".high",
        };
        write!(f, "{kernel}.{}.{}{ratio}{part} {sign} {number}", statistic.key(), state.key())
    }
}

/// What came of one threshold on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The run, as tables name it.
    pub run: String,
    /// The threshold, as the user wrote it.
    pub threshold: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What the figure was, in words.
    pub found: String,
}

/// A figure, and whether an interval was to be had.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    /// Of one state: it has none.
    Plain(f64),
    WithInterval(Factor),
}

impl Threshold {
    /// Whether its figure is one under load, or has one in it.
    pub fn needs_load(&self) -> bool {
        self.state != State::Isolated
    }

    /// Holds the threshold against a run called `name`. Ratios need a comparison: see [`Threshold::check_ratios`].
    pub fn check(&self, name: &str, run: &Run) -> Check {
        let figure = |phase| run.test(self.kernel, phase).and_then(|test| test.figure(self.statistic));
        let found = match self.state {
            State::Isolated => figure(LoadState::Isolated).map(Found::Plain),
            State::Loaded => figure(LoadState::Loaded).map(Found::Plain),
            State::Impact => run.impact(self.kernel, self.statistic).map(Found::WithInterval),
        };
        self.judge(name, found.unwrap_or(Found::Nothing))
    }

    /// Holds a ratio threshold against every side but the first.
    pub fn check_ratios(&self, comparison: &Comparison) -> Vec<Check> {
        let row = comparison
            .rows
            .iter()
            .find(|row| row.kernel == self.kernel && row.state == self.state && row.statistic == self.statistic);
        let ratio = |side: usize| row.and_then(|row| row.cells[side].ratio).map_or(Found::Nothing, Found::WithInterval);
        let names = comparison.sides.iter().enumerate().skip(1);
        names.map(|(side, name)| self.judge(name, ratio(side))).collect()
    }

    fn judge(&self, run: &str, found: Found) -> Check {
        let alone = |value: f64| if self.operator.holds(value, self.number) { Outcome::Fail } else { Outcome::Pass };
        let (outcome, found) = match found {
            Found::Nothing => (Outcome::Fail, "was not measured".to_owned()),
            Found::Plain(value) => (alone(value), format!("is {}", figure(value))),
            Found::WithInterval(of) => {
                let end = |pick: fn(&crate::stats::Interval) -> f64| {
                    of.interval.as_ref().map_or(Outcome::Inconclusive, |interval| alone(pick(interval)))
                };
                let outcome = match self.part {
                    Part::Whole => self.operator.judge(of.interval, self.number),
                    Part::Low => end(|interval| interval.low),
                    Part::High => end(|interval| interval.high),
                };
                let none = if of.interval.is_none() { ", without an interval" } else { "" };
                (outcome, format!("is {}{none}", with_interval(of)))
            }
        };
        Check { run: run.to_owned(), threshold: self.to_string(), outcome, found }
    }
}

/// The checks as a JUnit file: what is inconclusive counts as skipped, or as failed when `strict`.
pub fn junit(checks: &[Check], strict: bool) -> String {
    use std::fmt::Write as _;
    let fails = |check: &&Check| check.outcome == Outcome::Fail || (strict && check.outcome == Outcome::Inconclusive);
    let failures = checks.iter().filter(fails).count();
    let skipped = checks.iter().filter(|check| check.outcome == Outcome::Inconclusive && !strict).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\"", checks.len());
    let mut out = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    let _ = writeln!(out, "  <testsuite name=\"tailback\" {counts}>");
    for check in checks {
        let (run, name, found) = (escape(&check.run), escape(&check.threshold), escape(&check.found));
        let _ = write!(out, "    <testcase classname=\"{run}\" name=\"{name}\"");
        let _ = match check.outcome {
            Outcome::Pass => writeln!(out, "/>"),
            _ if fails(&check) => writeln!(out, "><failure message=\"{name}: {found}\"/></testcase>"),
            _ => writeln!(out, "><skipped message=\"inconclusive: {name}: {found}\"/></testcase>"),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assemble::synthetic;

    #[test]
    fn thresholds_read_back_as_written() {
        for text in [
            "lat.p99.impact > 10",
            "bw-sync.avg.isolated < 500.5",
            "allreduce.p999.loaded.ratio >= 1.2",
            "lat.time-p75.impact.high > 3",
            "lat.p99.loaded.ratio.low > 1.1",
        ] {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        assert_eq!("lat.p99.impact>=1e1".parse::<Threshold>().unwrap().to_string(), "lat.p99.impact >= 10");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, expected) in [
            ("lat.p99.impact = 10", "no >, >=, < or <="),
            ("lat.p99 > 10", "has not three parts"),
            ("latency.p99.impact > 10", "unknown canary 'latency': choose from lat,"),
            ("lat.p95.impact > 10", "unknown statistic 'p95': choose from avg,"),
            ("lat.p99.factor > 10", "unknown state 'factor': choose from isolated,"),
            ("lat.p99.impact > ten", "'ten' is no number"),
            ("lat.p99.impact > inf", "no finite number"),
            ("lat.p99.loaded.low > 1", "only impacts and ratios have intervals"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn known_impacts_pass_fail_or_stay_open() {
        let file = synthetic::file("tcp", None, 5.0);
        let check = |text: &str| text.parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        assert_eq!(check("lat.time-p75.impact > 10").outcome, Outcome::Pass);
        assert_eq!(check("bw-sync.p99.impact > 10").outcome, Outcome::Pass);
        let failed = check("lat.p99.impact > 4");
        assert!(failed.outcome == Outcome::Fail && failed.found.starts_with("is 5.0"), "{failed:?}");
        assert_eq!(check("lat.time-p75.impact > 5").outcome, Outcome::Inconclusive);
        assert_eq!(check("lat.time-p75.impact.high > 5").outcome, Outcome::Fail);
        assert_eq!(check("lat.time-p75.impact.low > 5").outcome, Outcome::Pass);
        assert_eq!(check("lat.p50.isolated > 1").outcome, Outcome::Fail);
        let missing = check("a2a.p99.impact > 4");
        assert_eq!((missing.outcome, missing.found.as_str()), (Outcome::Fail, "was not measured"));
    }

    #[test]
    fn an_impact_without_an_interval_is_inconclusive() {
        let mut file = synthetic::file("tcp", None, 5.0);
        file.runs[0].impacts.clear();
        let check = "lat.p99.impact > 4".parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        assert_eq!(check.outcome, Outcome::Inconclusive);
        assert!(check.found.ends_with("without an interval"), "{check:?}");
    }

    #[test]
    fn junit_tells_all_three_and_escapes() {
        let (run, threshold) = ("a<b".to_owned(), "lat.p99.impact > 10".to_owned());
        let pass = Check { run, threshold, outcome: Outcome::Pass, found: "is 2".into() };
        let fail = Check { outcome: Outcome::Fail, found: "is 12".into(), ..pass.clone() };
        let open = Check { outcome: Outcome::Inconclusive, found: "is 10".into(), ..pass.clone() };
        let all = [pass, fail, open];
        let text = junit(&all, false);
        assert!(text.contains("<testsuites tests=\"3\" failures=\"1\" skipped=\"1\">"), "{text}");
        assert!(text.contains("classname=\"a&lt;b\" name=\"lat.p99.impact &gt; 10\"/>"), "{text}");
        assert!(text.contains("<failure message=\"lat.p99.impact &gt; 10: is 12\"/>"), "{text}");
        assert!(text.contains("<skipped message=\"inconclusive: lat.p99.impact &gt; 10: is 10\"/>"), "{text}");
        assert!(junit(&all, true).contains("failures=\"2\" skipped=\"0\""), "strict");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            if let Ok(threshold) = text.parse::<Threshold>() {
                prop_assert_eq!(threshold.to_string().parse::<Threshold>().unwrap(), threshold);
            }
        }
    }
}
