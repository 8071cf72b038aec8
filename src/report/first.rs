//! The first screen: the verdict, the plot that shows it, what is to be known beside it, and a row for each test.

use super::figures::gallery;
use super::plot::Plot;
use super::studies::Study;
use super::{Report, studies, tables};
use crate::analysis::{Conclusion, Severity};
use crate::output::{burst, summary, sweep};
use crate::result::{Command, ResultFile};
use crate::text::escape;

/// So many verdicts are open to the eye; of more, the worst is, and the others are folded.
const MOST_VERDICTS: usize = 4;

/// What is said of one file.
struct Verdict {
    class: &'static str,
    /// How bad it is, for the order of several.
    rank: Option<(Severity, f64)>,
    html: String,
}

/// The verdict of every load test and the finding of every study.
pub(super) fn verdicts(report: &Report<'_>) -> String {
    let several = report.files.len() > 1;
    let mut all: Vec<Verdict> = Vec::new();
    for ((name, file), studies) in report.named().zip(&report.found) {
        let name = if several { format!("{}: ", escape(&name)) } else { String::new() };
        if let Some(found) = studies::finding(studies) {
            all.push(Verdict { class: "study", rank: None, html: format!("{name}{}", escape(&found)) });
        } else if file.sweep.is_some() || file.command == Command::Burst {
            let said = file.sweep.as_ref().map_or_else(|| burst::verdict(file), |record| sweep::verdict(file, record));
            let (word, rest) = said.split_once(": ").unwrap_or((&said, ""));
            let html = format!("<strong>{}</strong> {name}{}", escape(word), escape(rest));
            all.push(Verdict { class: "study", rank: None, html });
        } else if let Some(conclusion) = file.conclusion() {
            let (class, rank) = match &conclusion {
                Conclusion::Shown { severity, impact, .. } => (class(*severity), Some((*severity, impact.factor))),
                Conclusion::CannotSay { .. } => ("unsaid", None),
            };
            let said = summary::verdict(file, &conclusion).replace("+-", "±");
            let (word, rest) = said.split_once(": ").unwrap_or((&said, ""));
            let html = format!("<strong>{}</strong> {name}{}", escape(word), escape(rest));
            all.push(Verdict { class, rank, html });
        }
    }
    let paragraph = |of: &Verdict| format!("<p class=\"verdict {}\">{}</p>\n", of.class, of.html);
    if all.len() <= MOST_VERDICTS {
        return all.iter().map(paragraph).collect();
    }
    let by_rank = |a: &&Verdict, b: &&Verdict| a.rank.partial_cmp(&b.rank).unwrap_or(std::cmp::Ordering::Equal);
    // The first of those that are equally bad.
    let worst = all.iter().rev().max_by(by_rank).map(paragraph).unwrap_or_default();
    let others: String = all.iter().map(paragraph).collect();
    format!("{worst}<details><summary>This is the worst of {}: all of them</summary>{others}</details>\n", all.len())
}

fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::None => "none",
        Severity::Mild => "mild",
        Severity::Strong => "strong",
        Severity::Severe => "severe",
    }
}

/// The plot that shows the verdict: the impact on every test, or the first plot of a study.
pub(super) fn plot(report: &Report<'_>) -> Option<Plot> {
    let told = report.sweeps().into_iter().chain(report.bursts()).next();
    told.or_else(|| report.overview()).or_else(|| report.studies().into_iter().next())
}

/// What stands below the verdicts.
pub(super) fn screen(report: &Report<'_>) -> String {
    let debug = report.files.iter().any(|(_, file)| file.build.profile == "debug" && file.imported.is_none());
    let warning = if debug {
        "<p class=\"warn\">Some of these results come from a debug build: its figures are not worth comparing.</p>\n"
    } else {
        ""
    };
    let plot = plot(report).map(|plot| gallery(&[plot])).unwrap_or_default();
    let tests = if is_short(report) { tests(report) } else { String::new() };
    format!("{warning}<div class=\"first\">{plot}{}</div>\n{tests}", facts(report))
}

/// The tests where they are too many for the first screen.
pub(super) fn further(report: &Report<'_>) -> String {
    if is_short(report) { String::new() } else { tests(report) }
}

fn is_short(report: &Report<'_>) -> bool {
    const MOST_TESTS: usize = 12;
    report.sides.iter().map(|side| side.run.answers().count()).sum::<usize>() <= MOST_TESTS
}

fn tests(report: &Report<'_>) -> String {
    tables::answers(&report.sides) + &not_reportable(report)
}

/// Load, hot spot, cause and what was run, of a file or two; of more it is said further below.
fn facts(report: &Report<'_>) -> String {
    const MOST_FILES: usize = 2;
    if report.files.len() > MOST_FILES {
        return String::new();
    }
    let several = report.files.len() > 1;
    let of = |((name, file), studies): ((String, &ResultFile), &Vec<Study<'_>>)| {
        let heading = if several { format!("<h3>{}</h3>", escape(&name)) } else { String::new() };
        let suspects = studies::suspects(studies);
        if !suspects.is_empty() {
            return Some(format!("{heading}{suspects}"));
        }
        let facts: String = summary::facts(file, &file.conclusion()?)
            .iter()
            .map(|fact| match fact.split_once(": ") {
                Some((what, said)) => format!("<li><strong>{}</strong> {}</li>", escape(what), escape(said)),
                None => format!("<li>{}</li>", escape(fact)),
            })
            .collect();
        Some(format!("{heading}<ul>{facts}</ul>"))
    };
    let all: String = report.named().zip(&report.found).filter_map(of).collect();
    if all.is_empty() { all } else { format!("<div class=\"said\">{all}</div>") }
}

/// Why some answers may not be reported.
fn not_reportable(report: &Report<'_>) -> String {
    let several = report.sides.len() > 1;
    let all = report.sides.iter().flat_map(|side| side.run.answers().map(move |answer| (side, answer)));
    let why = all.filter_map(|(side, answer)| {
        let run = if several { format!("{}, ", side.label) } else { String::new() };
        let (test, why) = (answer.test.title.clone(), answer.judgement.why_not()?);
        Some(format!("<li>{}</li>", escape(&format!("{run}{test}: {why}"))))
    });
    let why: String = why.collect();
    if why.is_empty() {
        why
    } else {
        format!("<details open><summary>Not reportable</summary><ul>{why}</ul></details>\n")
    }
}
