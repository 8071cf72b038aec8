//! The first screen of a comparison: whether load adds more or less time than on the first side, in at most a dozen lines of 80
//! characters. All else is in the tables (`-v`).

use super::summary::{added_time, unindented};
use crate::analysis::compare::{self, Attribution, Cell, Change, Comparison, Row, Verdict};
use crate::kernel::Canary;
use crate::result::distinct;
use crate::text::{Table, factor, figure, in_percent, wrap};

/// Text for a terminal of so many columns; all tables where nothing is compared that load adds.
pub fn compared(of: &Comparison) -> String {
    let columns = super::columns();
    let rows: Vec<&Row> = of.rows.iter().filter(|row| row.primary).collect();
    if rows.is_empty() {
        return compare::render(of);
    }
    let simulated = match of.simulated.len() {
        0 => None,
        count if count == of.sides.len() => Some("SIMULATED: no such network was measured.".to_owned()),
        _ => Some(format!("SIMULATED: {}", of.simulated.join("; "))),
    };
    // Wild jobs have no load of ours whose time could be compared: what they met stands between quiet and loaded.
    let mut out = match of.conditions.is_empty() {
        true => wrap(&verdict(of, &rows), columns),
        false => wrap(compare::CONDITIONS_TITLE, columns),
    };
    simulated.iter().for_each(|line| out += &wrap(line, columns));
    out += &unindented(&match of.sides.len() {
        _ if !of.conditions.is_empty() => conditions(of),
        2 => pair(of, &rows),
        _ => several(of, &rows),
    });
    notes(of).iter().for_each(|line| out += &wrap(line, columns));
    out
}

/// Quiet, wild and loaded jobs: a row for each test and condition.
fn conditions(of: &Comparison) -> Table {
    Table::of(&of.conditions)
        .column("test", |row| row.kernel.to_string())
        .column("condition", |row| &row.condition)
        .column("by", |row| row.statistic.key())
        .column("jobs", |row| row.jobs)
        .column("median", |row| format!("{} {}", figure(row.median), row.unit))
        .column("times worse", |row| row.times_worse.map(factor))
        .done()
}

/// How much repeated jobs differ, in a line for each canary.
fn variation(of: &Comparison) -> Vec<String> {
    let kinds = distinct(of.variation.iter().map(|row| (&row.jobs_of, row.kernel)));
    let line = |(jobs_of, kernel): (&String, Canary)| {
        let those = of.variation.iter().filter(|row| (&row.jobs_of, row.kernel) == (jobs_of, kernel));
        let told = those.map(|row| format!("{} {}%", row.state.key(), in_percent(row.coefficient_of_variation)));
        format!("Variation of {kernel} in {jobs_of}: {}", told.collect::<Vec<_>>().join(", "))
    };
    kinds.into_iter().map(line).collect()
}

/// The first line: what decides is the time that load adds.
fn verdict(of: &Comparison, rows: &[&Row]) -> String {
    let first = &of.sides[0];
    // Of several networks the answer is about those that load themselves: mixed runs tell canaries from load.
    let only_mixed = of.mixed.iter().skip(1).all(|mixed| *mixed);
    let counts = |at: usize| only_mixed || !of.mixed[at];
    let cells = || {
        let all = rows.iter().flat_map(|row| row.cells.iter().enumerate().map(move |(at, cell)| (*row, at, cell)));
        all.filter(|(_, at, _)| counts(*at))
    };
    let all = |wanted: Verdict| cells().filter(move |(_, _, cell)| cell.verdict == Some(wanted));
    let largest = |wanted: Verdict| {
        let part = |cell: &Cell| cell.change.map_or(0.0, |of| of.part.abs());
        all(wanted).max_by(|(_, _, a), (_, _, b)| part(a).total_cmp(&part(b)))
    };
    let told = |wanted: Verdict| {
        let (row, at, cell) = largest(wanted)?;
        Some(format!("{} in {} by {}", row.kernel, of.sides[at], change(cell.change?)))
    };
    let of_loaded = format!("of the loaded time of {first}");
    match (told(Verdict::Worse), told(Verdict::Better)) {
        (Some(worse), Some(better)) => {
            return format!("MIXED: load adds more to {worse} {of_loaded}, less to {better} (significant at 5%)");
        }
        (Some(worse), None) => return format!("WORSE: load adds more to {worse} {of_loaded} (significant at 5%)"),
        (None, Some(better)) => return format!("BETTER: load adds less to {better} {of_loaded} (significant at 5%)"),
        (None, None) => {}
    }
    let tested = all(Verdict::NotSignificant).next().is_some();
    if let Some((row, _, _)) = largest(Verdict::NotReportable).filter(|_| !tested) {
        let title = format!("{}: ", row.title);
        let why = of.not_reportable.iter().find_map(|why| why.strip_prefix(&title)).unwrap_or_default();
        let (first, rest) = why.split_once("; ").map_or((why, ""), |(first, _)| (first, " (and more: -v)"));
        return format!("CANNOT SAY: {} is not reportable: {first}{rest}", row.kernel);
    }
    if all(Verdict::OneJob).next().is_some() {
        return "CANNOT SAY: one job per side does not show how much jobs differ; repeat them and compare with --with, or \
                give earlier ones by --history"
            .into();
    }
    if let Some(margin) = of.margin {
        let percent = 100.0 * margin;
        return match all(Verdict::CannotTell).count() {
            0 => format!("SAME: all added times are the same within {percent}% {of_loaded}"),
            count => format!("CANNOT SAY: {count} added times may differ by more than {percent}% {of_loaded}"),
        };
    }
    let detectable = largest(Verdict::NotSignificant).and_then(|(_, _, cell)| cell.change?.detectable);
    match (told(Verdict::NotSignificant), detectable) {
        (Some(told), Some(least)) => format!(
            "NO DIFFERENCE SHOWN: the largest, {told} {of_loaded}, is not significant; {:.0}% would have been found",
            100.0 * least
        ),
        _ => "CANNOT SAY: too few placements or figures of another program: there is no test".into(),
    }
}

/// A difference of added times, in the unit that suits it.
fn difference(row: &Row, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", added_time(row.kernel, value.abs()))
}

/// `+12% [+3, +21]`
fn change(of: Change) -> String {
    let percent = |part: f64| format!("{:+.0}", 100.0 * part);
    let interval = of.interval.map(|of| format!(" [{}, {}]", percent(of.low), percent(of.high))).unwrap_or_default();
    format!("{}%{interval}", percent(of.part))
}

/// Two sides: a row for each test. What is not reportable differs by nothing that means anything.
fn pair(of: &Comparison, rows: &[&Row]) -> Table {
    let change_of = |row: &Row| row.cells[1].change.filter(|_| row.cells[1].verdict != Some(Verdict::NotReportable));
    Table::of(rows)
        .column("added", |row| row.kernel.to_string())
        .columns(of.sides.iter().enumerate(), |table, (at, side)| {
            table.column(side.clone(), |row| row.cells[at].value.map(|value| added_time(row.kernel, value)))
        })
        .column("difference", |row| change_of(row).map(|of| difference(row, of.difference)))
        .column("of loaded [95%]", |row| change_of(row).map(change))
        .column("", |row| row.cells[1].verdict.map(Verdict::word))
        .done()
}

/// More sides: a row for each, with what differs from the first.
fn several(of: &Comparison, rows: &[&Row]) -> Table {
    let differs = |cell: &Cell| match cell.verdict {
        Some(Verdict::Worse | Verdict::Better | Verdict::Same) => cell.verdict.map(|of| format!(" {}", of.word())),
        _ => None,
    };
    Table::of(of.sides.iter().enumerate())
        .column("added", |(_, side)| (*side).clone())
        .columns(rows, |table, row| {
            table.column(row.kernel.to_string(), |(at, _)| {
                let cell = &row.cells[*at];
                if !cell.is_reportable {
                    return Some("not reportable".into());
                }
                Some(added_time(row.kernel, cell.value?) + &differs(cell).unwrap_or_default())
            })
        })
        .done()
}

/// What else is to be known: how far the sides are alike, whose doing it is, and where the rest is.
fn notes(of: &Comparison) -> Vec<String> {
    let mut notes: Vec<String> = of.attribution.iter().map(Attribution::line).collect();
    notes.extend(of.protocols.iter().map(|of| format!("{} over {}: {}", of.kernel, of.backend, of.sentence())));
    if let [first, rest @ ..] = &of.differences[..] {
        let word = if of.differences.iter().any(|of| of.fatal) { "NOT COMPARABLE" } else { "Note" };
        let more = if rest.is_empty() { String::new() } else { format!(" (and {} more: -v)", rest.len()) };
        notes.push(format!("{word}: {}: {}{more}", first.side, first.what));
    }
    notes.extend(of.left_out.first().map(|first| match of.left_out.len() {
        1 => first.clone(),
        count => format!("{first} (and {} more: -v)", count - 1),
    }));
    notes.extend(variation(of));
    notes.extend(of.carried.clone());
    let jobs: Vec<String> = of.jobs.iter().map(ToString::to_string).collect();
    let several = of.jobs.iter().any(|jobs| *jobs > 1);
    let jobs = if several { format!("Jobs per side: {}. ", jobs.join(", ")) } else { String::new() };
    notes.push(format!("{jobs}Tables, other statistics and the tests behind them: -v. JSON: --json"));
    notes
}
