//! Thresholds for CI: `lat.p99.impact > 10` fails a command, with exit code 1 and a JUnit file that says which.
//!
//! Grammar: `KERNEL.STAT.STATE [.ratio] OP NUMBER`, where STAT is avg, p50, p90, p99 or p999, STATE is isolated, loaded
//! or impact, OP is one of > >= < <=. With `.ratio` the figure is how many times worse a side is than the first one of a
//! comparison. A figure that was not measured fails its threshold: a check that checked nothing must not pass.

use std::fmt;
use std::str::FromStr;

use crate::compare::{Comparison, State};
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::result::Run;
use crate::stats::Statistic;
use crate::text::escape;

/// How a figure is held against a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Operator {
    /// Longer signs first, so that `>=` is not read as `>`.
    const ALL: [(&'static str, Operator); 4] =
        [(">=", Operator::AtLeast), ("<=", Operator::AtMost), (">", Operator::Above), ("<", Operator::Below)];

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Above => left > right,
            Operator::AtLeast => left >= right,
            Operator::Below => left < right,
            Operator::AtMost => left <= right,
        }
    }
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
    operator: Operator,
    number: f64,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "a threshold is KERNEL.STAT.STATE OP NUMBER, e.g. 'lat.p99.impact > 10'";
        let (sign, operator) = Operator::ALL
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
        let ratio = parts.len() == 4 && parts[3] == "ratio";
        parts.truncate(if ratio { 3 } else { parts.len() });
        let [kernel, statistic, state] = parts[..] else {
            return Err(format!("'{figure}' has not three parts: {FORM}"));
        };
        let statistic = Statistic::ALL
            .into_iter()
            .find(|known| known.key() == statistic)
            .ok_or_else(|| format!("unknown statistic '{statistic}': choose from avg, p50, p90, p99, p999"))?;
        let state = State::ALL
            .into_iter()
            .find(|known| known.key() == state)
            .ok_or_else(|| format!("unknown state '{state}': choose from isolated, loaded, impact"))?;
        Ok(Threshold { kernel: kernel.parse()?, statistic, state, ratio, operator, number })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Threshold { kernel, statistic, state, operator, number, .. } = self;
        let sign = Operator::ALL.iter().find(|(_, known)| known == operator).expect("all are listed").0;
        let ratio = if self.ratio { ".ratio" } else { "" };
        write!(f, "{kernel}.{}.{}{ratio} {sign} {number}", statistic.key(), state.key())
    }
}

/// What came of one threshold on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The run, as tables name it.
    pub run: String,
    /// The threshold, as the user wrote it.
    pub threshold: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Threshold {
    /// Holds the threshold against a run called `name`. Ratios need a comparison: see [`Threshold::check_ratios`].
    pub fn check(&self, name: &str, run: &Run) -> Check {
        let value = match self.state {
            State::Isolated => run.test(self.kernel, Phase::Isolated).and_then(|test| test.figure(self.statistic)),
            State::Loaded => run.test(self.kernel, Phase::Loaded).and_then(|test| test.figure(self.statistic)),
            State::Impact => run.impact(self.kernel, self.statistic).map(|factor| factor.factor),
        };
        self.judge(name, value)
    }

    /// Holds a ratio threshold against every side but the first.
    pub fn check_ratios(&self, comparison: &Comparison) -> Vec<Check> {
        let row = comparison
            .rows
            .iter()
            .find(|row| row.kernel == self.kernel && row.state == self.state && row.statistic == self.statistic);
        let ratio = |side: usize| row.and_then(|row| row.cells[side].ratio).map(|ratio| ratio.factor);
        let names = comparison.sides.iter().enumerate().skip(1);
        names.map(|(side, name)| self.judge(name, ratio(side))).collect()
    }

    fn judge(&self, run: &str, value: Option<f64>) -> Check {
        let failure = match value {
            None => Some("was not measured".to_owned()),
            Some(value) if self.operator.holds(value, self.number) => {
                Some(format!("is {}", crate::text::figure(value)))
            }
            Some(_) => None,
        };
        Check { run: run.to_owned(), threshold: self.to_string(), failure }
    }
}

/// The checks as a JUnit file.
pub fn junit(checks: &[Check]) -> String {
    use std::fmt::Write as _;
    let failures = checks.iter().filter(|check| check.failure.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\"", checks.len());
    let mut out = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    let _ = writeln!(out, "  <testsuite name=\"tailback\" {counts}>");
    for check in checks {
        let (run, name) = (escape(&check.run), escape(&check.threshold));
        let _ = write!(out, "    <testcase classname=\"{run}\" name=\"{name}\"");
        match &check.failure {
            None => out.push_str("/>\n"),
            Some(why) => {
                let _ = writeln!(out, "><failure message=\"{name}: {}\"/></testcase>", escape(why));
            }
        }
    }
    out + "  </testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::result::synthetic;

    #[test]
    fn thresholds_read_back_as_written() {
        for text in ["lat.p99.impact > 10", "bw-sync.avg.isolated < 500.5", "allreduce.p999.loaded.ratio >= 1.2"] {
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
        ] {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn known_impacts_pass_and_fail() {
        let file = synthetic::file("tcp", None, 5.0);
        let check = |text: &str| text.parse::<Threshold>().unwrap().check("a", &file.runs[0]).failure;
        assert_eq!(check("lat.p99.impact > 10"), None);
        assert_eq!(check("bw-sync.p99.impact > 10"), None);
        assert!(check("lat.p99.impact > 4").unwrap().starts_with("is 5.0"));
        assert_eq!(check("a2a.p99.impact > 4").unwrap(), "was not measured");
    }

    #[test]
    fn junit_tells_failures_and_escapes() {
        let pass = Check { run: "a<b".into(), threshold: "lat.p99.impact > 10".into(), failure: None };
        let fail = Check { failure: Some("is 12".into()), ..pass.clone() };
        let text = junit(&[pass, fail]);
        assert!(text.contains("<testsuites tests=\"2\" failures=\"1\">"), "{text}");
        assert!(text.contains("classname=\"a&lt;b\" name=\"lat.p99.impact &gt; 10\"/>"), "{text}");
        assert!(text.contains("<failure message=\"lat.p99.impact &gt; 10: is 12\"/>"), "{text}");
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
