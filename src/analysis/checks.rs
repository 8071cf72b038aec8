//! What came of thresholds: an exit code, and a JUnit file for those who show such.

use crate::result::{CutShort, ResultFile};
use crate::stats::Outcome;
use crate::text::escape;

/// What came of one threshold on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The run, as tables name it.
    pub run: String,
    /// The threshold, as the user wrote it.
    pub threshold: String,
    /// The same as what is required: what a run that passes has.
    pub required: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What the figure was, in words.
    pub found: String,
}

impl Check {
    /// That a run did not end by itself: what it measured may pass, the run as a whole does not.
    pub fn incomplete(file: &ResultFile) -> Option<Self> {
        let (run, threshold) = (file.command.word().into(), "the run is complete".to_owned());
        let found = match file.cut_short()? {
            CutShort::Failed(why) => format!("failed: {why}"),
            CutShort::Interrupted => "was interrupted".into(),
        };
        Some(Check { run, required: threshold.clone(), threshold, outcome: Outcome::NotMeasured, found })
    }

    /// The exit code of this answer alone. What is inconclusive fails when `strict`.
    pub fn code(&self, strict: bool) -> u8 {
        match self.outcome {
            Outcome::Pass => 0,
            Outcome::Fail => 1,
            Outcome::Inconclusive if strict => 1,
            Outcome::NotMeasured => 2,
            Outcome::Inconclusive => 3,
        }
    }
}

/// The exit code of these answers: 1 when one failed, 2 when one was not measured, 3 when one is inconclusive.
pub fn exit_code(checks: &[Check], strict: bool) -> u8 {
    checks.iter().map(|check| check.code(strict)).filter(|&code| code > 0).min().unwrap_or(0)
}

/// The checks as a JUnit file: what is inconclusive counts as skipped, or as failed when `strict`; what was not measured is
/// an error.
pub fn junit(checks: &[Check], strict: bool) -> String {
    use std::fmt::Write as _;
    let fails = |check: &&Check| check.code(strict) == 1;
    let failures = checks.iter().filter(fails).count();
    let skipped = checks.iter().filter(|check| check.outcome == Outcome::Inconclusive && !strict).count();
    let errors = checks.iter().filter(|check| check.outcome == Outcome::NotMeasured).count();
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"", checks.len());
    let mut out = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    let _ = writeln!(out, "  <testsuite name=\"tailback\" {counts}>");
    for check in checks {
        let (run, name, found) = (escape(&check.run), escape(&check.threshold), escape(&check.found));
        let _ = write!(out, "    <testcase classname=\"{run}\" name=\"{name}\"");
        let _ = match check.outcome {
            Outcome::Pass => writeln!(out, "/>"),
            Outcome::NotMeasured => writeln!(out, "><error message=\"{name}: {found}\"/></testcase>"),
            _ if fails(&check) => writeln!(out, "><failure message=\"{name}: {found}\"/></testcase>"),
            _ => writeln!(out, "><skipped message=\"inconclusive: {name}: {found}\"/></testcase>"),
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_exit_code() {
        let check = |outcome| Check {
            run: String::new(),
            threshold: String::new(),
            required: String::new(),
            outcome,
            found: String::new(),
        };
        let code =
            |outcomes: &[Outcome], strict| exit_code(&outcomes.iter().map(|&of| check(of)).collect::<Vec<_>>(), strict);
        use Outcome::{Fail, Inconclusive, NotMeasured, Pass};
        assert_eq!(code(&[], false), 0);
        assert_eq!(code(&[Pass, Inconclusive], false), 3);
        assert_eq!(code(&[Pass, Inconclusive], true), 1);
        assert_eq!(code(&[NotMeasured, Inconclusive, Pass], false), 2);
        assert_eq!(code(&[NotMeasured, Inconclusive, Fail], false), 1);
    }

    #[test]
    fn junit_tells_all_four_and_escapes() {
        let (run, threshold) = ("a<b".to_owned(), "lat.p99.impact > 10".to_owned());
        let pass = Check { run, required: String::new(), threshold, outcome: Outcome::Pass, found: "is 2".into() };
        let fail = Check { outcome: Outcome::Fail, found: "is 12".into(), ..pass.clone() };
        let open = Check { outcome: Outcome::Inconclusive, found: "is 10".into(), ..pass.clone() };
        let none = Check { outcome: Outcome::NotMeasured, found: "was not measured".into(), ..pass.clone() };
        let all = [pass, fail, open, none];
        let text = junit(&all, false);
        assert!(text.contains("<testsuites tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">"), "{text}");
        assert!(text.contains("classname=\"a&lt;b\" name=\"lat.p99.impact &gt; 10\"/>"), "{text}");
        assert!(text.contains("<failure message=\"lat.p99.impact &gt; 10: is 12\"/>"), "{text}");
        assert!(text.contains("<skipped message=\"inconclusive: lat.p99.impact &gt; 10: is 10\"/>"), "{text}");
        assert!(junit(&all, true).contains("failures=\"2\" errors=\"1\" skipped=\"0\""), "strict");
    }
}
