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
    let (first, then) = match &asked(of) {
        _ if !of.conditions.is_empty() => (compare::CONDITIONS_TITLE.to_owned(), None),
        Some(attribution) => (attribution.verdict(), Some(verdict(of, &rows))),
        None => (verdict(of, &rows), None),
    };
    let mut out = wrap(&first, columns);
    simulated.iter().for_each(|line| out += &wrap(line, columns));
    out += &match of.sides.len() {
        _ if !of.conditions.is_empty() => unindented(&conditions(of)),
        2 => fitting(of, columns, |names| pair(names, &rows)),
        _ => fitting(of, columns, |names| several(names, &rows)),
    };
    then.iter().chain(&notes(of)).for_each(|line| out += &wrap(line, columns));
    out
}

/// Whose doing the added time is, where that is what a comparison asks: of the networks of one job.
fn asked(of: &Comparison) -> Option<&Attribution> {
    of.attribution.as_ref().filter(|_| of.is_one_job)
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
        Some(format!("{} in {}: {}", row.kernel, of.sides[at], change(cell.change?)))
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
            "NO DIFFERENCE SHOWN: the largest, {told} {of_loaded}, is not significant; {} would have been found",
            smallest(least)
        ),
        _ => "CANNOT SAY: too few placements or figures of another program: there is no test".into(),
    }
}

/// A difference of added times, in the unit that suits it.
fn difference(row: &Row, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", added_time(row.kernel, value.abs()))
}

/// A smallest part that is found: never none.
fn smallest(part: f64) -> String {
    match 100.0 * part {
        percent if percent >= 9.95 => format!("{percent:.0}%"),
        percent if percent >= 0.05 => format!("{percent:.1}%"),
        _ => "less than 0.1%".into(),
    }
}

/// `+12% [+3, +21]`; of small ones with a decimal.
fn change(of: Change) -> String {
    let ends = of.interval.map_or([of.part; 2], |of| [of.low, of.high]);
    let digits = usize::from(ends.iter().chain([&of.part]).all(|part| part.abs() < 0.01));
    let percent = |part: f64| {
        let shown = format!("{:+.digits$}", 100.0 * part);
        // Nothing is not less than nothing.
        if shown.trim_start_matches(['-', '0', '.']).is_empty() { shown.replace('-', "+") } else { shown }
    };
    let interval = of.interval.map(|of| format!(" [{}, {}]", percent(of.low), percent(of.high))).unwrap_or_default();
    format!("{}%{interval}", percent(of.part))
}

/// A table of sides that is no wider than the screen: under their names, else under what tells those apart, else under letters that
/// lines below it explain.
fn fitting(of: &Comparison, columns: usize, table: impl Fn(&[String]) -> Table) -> String {
    const SIMULATED: &str = " (simulated)";
    let mut names = of.sides.clone();
    // The line above says so of all of them.
    if names.iter().all(|name| name.ends_with(SIMULATED)) {
        names.iter_mut().for_each(|name| name.truncate(name.len() - SIMULATED.len()));
    }
    let text = |names: &[String]| unindented(&table(names));
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= columns);
    let found = [text(&names), text(&told_apart(&names))].into_iter().find(fits);
    found.unwrap_or_else(|| {
        let letter = |at: usize| char::from_u32('A' as u32 + at as u32).filter(char::is_ascii_uppercase);
        let letters: Vec<String> =
            (0..names.len()).map(|at| letter(at).map_or_else(|| (at + 1).to_string(), String::from)).collect();
        let legend = letters.iter().zip(&names).map(|(letter, name)| wrap(&format!("{letter}: {name}"), columns));
        text(&letters) + &legend.collect::<String>()
    })
}

/// Names without the words that all of them begin or end with, where something is left of each.
fn told_apart(names: &[String]) -> Vec<String> {
    let shared = |of: &dyn Fn(&str) -> Vec<char>| {
        let first = of(&names[0]);
        let same = |name: &String| first.iter().zip(of(name)).take_while(|(a, b)| **a == *b).count();
        let length = names.iter().map(same).min().unwrap_or(0);
        // Up to the end of a word.
        first[..length].iter().rposition(|letter| !letter.is_alphanumeric()).map_or(0, |at| at + 1)
    };
    let before = shared(&|name| name.chars().collect());
    let behind = shared(&|name| name.chars().rev().collect());
    let rest = |name: &String| -> String {
        let length = name.chars().count().saturating_sub(before + behind);
        name.chars().skip(before).take(length).collect()
    };
    let rests: Vec<String> = names.iter().map(rest).collect();
    if rests.iter().any(String::is_empty) { names.to_vec() } else { rests }
}

/// Two sides: a row for each test. What is not reportable differs by nothing that means anything.
fn pair(names: &[String], rows: &[&Row]) -> Table {
    let change_of = |row: &Row| row.cells[1].change.filter(|_| row.cells[1].verdict != Some(Verdict::NotReportable));
    Table::of(rows)
        .column("added", |row| row.kernel.to_string())
        .columns(names.iter().enumerate(), |table, (at, side)| {
            table.column(side.clone(), |row| row.cells[at].value.map(|value| added_time(row.kernel, value)))
        })
        .column("difference", |row| change_of(row).map(|of| difference(row, of.difference)))
        .column("of loaded [95%]", |row| change_of(row).map(change))
        .column("", |row| row.cells[1].verdict.map(Verdict::word))
        .done()
}

/// More sides: a row for each, with what differs from the first.
fn several(names: &[String], rows: &[&Row]) -> Table {
    let differs = |cell: &Cell| match cell.verdict {
        Some(Verdict::Worse | Verdict::Better | Verdict::Same) => cell.verdict.map(|of| format!(" {}", of.word())),
        _ => None,
    };
    Table::of(names.iter().enumerate())
        .column("added", |(_, side)| *side)
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
    let told = asked(of).is_some();
    let mut notes: Vec<String> = of.attribution.iter().filter(|_| !told).map(Attribution::line).collect();
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::analysis::compare::sides;
    use crate::assemble::synthetic;
    use crate::stats::Interval;

    fn shown(names: &[&str]) -> String {
        let of = |(at, name): (usize, &&str)| (PathBuf::from(name), synthetic::file("tcp", None, 3.0 + at as f64));
        let files: Vec<_> = names.iter().enumerate().map(of).collect();
        compared(&compare::compare(&sides(&files), &compare::SHOWN))
    }

    #[test]
    fn a_table_of_sides_fits_the_screen_whatever_they_are_called() {
        let long = "nightly-of-the-large-machine-with-the-new-switches-2026-11-19";
        let pairs =
            [("a.json".to_owned(), "b.json".to_owned()), (format!("{long}-old.json"), format!("{long}-new.json"))];
        let [short, apart] = pairs.map(|(a, b)| shown(&[&a, &b]));
        let head = |text: &str| text.lines().find(|line| line.starts_with("added")).unwrap_or_default().to_owned();
        assert!(head(&short).split_whitespace().take(3).eq(["added", "a", "b"]), "{short}");
        assert!(head(&apart).split_whitespace().take(3).eq(["added", "old", "new"]), "{apart}");
        let lettered = shown(&[&format!("before-{long}.json"), &format!("{long}-after.json")]);
        assert!(head(&lettered).split_whitespace().take(3).eq(["added", "A", "B"]), "{lettered}");
        assert!(lettered.contains(&format!("A: before-{long}\nB: {long}-after\n")), "{lettered}");
        let three = shown(&[&format!("{long}-a.json"), &format!("{long}-b.json"), &format!("{long}-c.json")]);
        for text in [short, apart, lettered, three] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }

    #[test]
    fn of_the_networks_of_one_job_the_first_line_says_whose_doing_it_is() {
        let mut file = synthetic::file("mpi", None, 30.0);
        file.runs.extend(synthetic::file("tcp", None, 10.0).runs);
        let of = |files: &[(PathBuf, crate::result::ResultFile)]| {
            compared(&compare::compare(&sides(files), &compare::SHOWN))
        };
        let one = of(&[("a.json".into(), file.clone())]);
        assert!(one.starts_with("LIBRARY. Where the time added over MPI comes from: lat: library"), "{one}");
        assert_eq!(one.matches("comes from").count(), 1, "{one}");
        assert!(one.contains("\nBETTER: load adds less to "), "{one}");
        // What two jobs are compared for is whether they differ.
        let two = of(&[("a.json".into(), file.clone()), ("b.json".into(), file)]);
        assert!(!two.starts_with("LIBRARY"), "{two}");
    }

    #[test]
    fn names_keep_what_tells_them_apart() {
        let apart = |names: &[&str]| told_apart(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(apart(&["run-10 (x)", "run-12 (x)"]), ["10", "12"]);
        assert_eq!(apart(&["run-a", "run-a-b"]), ["a", "a-b"]);
        assert_eq!(apart(&["run", "run"]), ["run", "run"]);
        assert_eq!(apart(&["run-", "run-x"]), ["run-", "run-x"]);
        assert_eq!(apart(&["-x-", "-x-x-"]), ["-x-", "-x-x-"]);
    }

    #[test]
    fn small_differences_are_not_said_to_be_none() {
        assert_eq!(
            [0.123, 0.098, 0.0123, 0.0006, 0.0001, 0.0].map(smallest),
            ["12%", "9.8%", "1.2%", "0.1%", "less than 0.1%", "less than 0.1%"]
        );
        let told = |part, low, high| {
            let interval = Some(Interval { low, high });
            change(Change { difference: part, part, interval, confidence: None, detectable: None, loaded: 1.0 })
        };
        assert_eq!(told(0.12, 0.03, 0.214), "+12% [+3, +21]");
        assert_eq!(told(0.001, -0.002, 0.004), "+0.1% [-0.2, +0.4]");
        assert_eq!(told(-0.0001, -0.002, 0.4), "+0% [+0, +40]");
    }
}
