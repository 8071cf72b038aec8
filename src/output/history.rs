//! Nights of a machine in text: on the first screen whether something changed, since when and by how much, and the figures that
//! matter most; by `-v` all figures with their level and noise, all changes, and each figure drawn.

use std::collections::BTreeSet;

use super::summary::{MOST_LINES, as_wide};
use crate::analysis::history::{Change, History, LastNight, Series};
use crate::stats::Interval;
use crate::text::{Cell, Table, figure, in_percent, percent, plural, section, within, wrap};

/// Levels of a drawing, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How many nights a drawing has side by side; on the first screen beside the figures.
const WIDEST: usize = 60;
const WIDEST_OF_SCREEN: usize = 45;

/// What the table of levels is called.
pub const LEVELS_TITLE: &str =
    "Figures: median since the last change, last night beside it, variation from night to night";
/// What the table of changes is called.
pub const CHANGES_TITLE: &str = "Changes of level, the last first";

/// Text for a terminal; with all nights of every figure where `verbose`.
pub fn history(of: &History, verbose: bool) -> String {
    shown(of, super::columns(), verbose)
}

fn shown(of: &History, columns: usize, verbose: bool) -> String {
    let mut out = wrap(&verdict(of), columns);
    out += &wrap(&format!("{}: {}", of.title, span(of)), columns);
    let left_out: usize = of.series.iter().map(|series| series.left_out.len()).sum();
    let left_out = match left_out {
        0 => String::new(),
        _ => wrap(
            &format!("{left_out} figures that may not be reported are left out (`tailback show` says why)"),
            columns,
        ),
    };
    if verbose {
        out + &in_full(of) + &left_out + &section("\nEvery night", &every_night(of))
    } else {
        short(of, columns, out, &left_out)
    }
}

/// The figures that matter most, as many as there is room for, and the first of them drawn.
fn short(of: &History, columns: usize, mut out: String, left_out: &str) -> String {
    const FEWEST_ROWS: usize = 3;
    /// The heads, the drawing under its name, the last line.
    const OTHERS: usize = 4;
    let all = first(of);
    let used = out.lines().count() + left_out.lines().count() + OTHERS;
    let rows = &all[..all.len().min(MOST_LINES.saturating_sub(used).max(FEWEST_ROWS))];
    out += &as_wide(columns, |with_width| figures(rows, with_width));
    if let Some(series) = rows.first() {
        out += &format!(
            "{}, every night (| where the level changed)\n  {}\n",
            series.name.key,
            drawn(series, WIDEST_OF_SCREEN)
        );
    }
    let rest =
        if all.len() > rows.len() { format!("{} more figures. ", all.len() - rows.len()) } else { String::new() };
    format!("{out}{left_out}{rest}Levels, variation, all changes, every night: -v\n")
}

/// Those that changed, the last change first, those whose last night is apart, those that were asked for, and the others.
fn first(of: &History) -> Vec<&Series> {
    let (changes, apart) = (of.changes(), of.last_night_apart());
    let marked = changes.iter().map(|(series, _)| *series).chain(apart.iter().map(|(series, _)| *series));
    let asked = of.series.iter().filter(|series| !series.name.primary);
    let mut seen = BTreeSet::new();
    marked.chain(asked).chain(&of.series).filter(|series| seen.insert(&series.name.key)).collect()
}

/// Each with its last change, or with its level where nothing changed, and with its last night.
fn figures(rows: &[&Series], with_width: bool) -> Table {
    let changed = rows.iter().any(|series| !series.changes.is_empty());
    let in_whole = move |part: f64, interval: Option<Interval>| {
        let digits = usize::from(part.abs() < 0.1);
        let ends = |of: Interval| format!(" [{:+.digits$}, {:+.digits$}]", 100.0 * of.low, 100.0 * of.high);
        format!("{:+.digits$}%{}", 100.0 * part, interval.filter(|_| with_width).map(ends).unwrap_or_default())
    };
    let change = |of: &Change| format!("{} {}", in_whole(of.part, of.interval), word(of).to_lowercase());
    Table::of(rows.iter())
        .column("figure", |series| Cell::Name(series.name.key.clone()))
        .column_if(changed, "since", |series| Some(series.changes.last()?.since.clone()))
        .column_if(changed, "change", |series| series.changes.last().map(change))
        .column_if(!changed, "median", |series| series.level())
        .column_if(!changed, "unit", |series| Cell::Name(series.name.unit.clone()))
        .column("last night, worse by", |series| series.departure().map(|of| in_whole(of.worse, Some(of.interval))))
        .done()
}

/// All figures, all changes, and every night of each.
fn in_full(of: &History) -> String {
    let mut out = section(&format!("\n{LEVELS_TITLE}"), &levels(of));
    out += &section(CHANGES_TITLE, &changes(of));
    out += "Every night, from the lowest to the highest (| where the level changed)\n";
    for series in &of.series {
        out += &format!("  {}\n    {}\n", series.name.key, drawn(series, WIDEST));
    }
    out
}

/// How many nights, and from when to when.
pub fn span(of: &History) -> String {
    let name = |night: Option<&String>| night.map_or("-", String::as_str).to_owned();
    match of.nights.len() {
        1 => format!("1 night, {}", name(of.nights.first())),
        nights => format!("{nights} nights, {} to {}", name(of.nights.first()), name(of.nights.last())),
    }
}

/// The first line: what changed last, or that nothing was shown, or that nothing can be; and the last night where it is apart.
pub fn verdict(of: &History) -> String {
    let (changes, apart) = (of.changes(), of.last_night_apart());
    let said = match changes.first() {
        Some((series, change)) => {
            let size = part(change.part, change.interval);
            format!("{} since {}: {} by {size}{}", word(change), change.since, series.name.key, more(changes.len()))
        }
        None if of.has_too_few_nights() => too_few(of),
        None => "NO CHANGE SHOWN".into(),
    };
    let Some((series, LastNight { worse, interval, .. })) = apart.first() else { return said };
    let word = if *worse > 0.0 { "worse" } else { "better" };
    let size = part(*worse, Some(*interval));
    format!("{said}; the last night is {word} than those before: {} by {size}{}", series.name.key, more(apart.len()))
}

fn more(count: usize) -> String {
    if count > 1 { format!(", and {} more", count - 1) } else { String::new() }
}

fn too_few(of: &History) -> String {
    let (nights, figures) = (of.series.iter().map(|series| series.values.len()).max().unwrap_or(0), of.series.len());
    let figures = plural(figures, "figure");
    let nights = if nights == 1 { "1 night is".into() } else { format!("{nights} nights are") };
    match of.fewest_nights {
        Some(fewest) => {
            format!("CANNOT SAY: {nights} too few to tell: {fewest} are needed to show a change in one of {figures}")
        }
        None => format!("CANNOT SAY: of {figures} no change is rare enough to be shown"),
    }
}

fn word(change: &Change) -> &'static str {
    if change.is_worse { "WORSE" } else { "BETTER" }
}

/// `+10.2% [+8.0, +12.4]`
fn part(part: f64, interval: Option<Interval>) -> String {
    let interval = interval.map(|of| format!(" [{}, {}]", percent(of.low), percent(of.high))).unwrap_or_default();
    format!("{}%{interval}", percent(part))
}

/// Each figure with its level, its last night and its noise.
pub fn levels(of: &History) -> Table {
    let varies = |series: &&Series| {
        let shown = within(series.coefficient_of_variation?, series.variation_interval, in_percent);
        Some(Cell::Number { shown, value: series.coefficient_of_variation? })
    };
    Table::of(&of.series)
        .column("figure", |series| Cell::Name(series.name.key.clone()))
        .column("unit", |series| Cell::Name(series.name.unit.clone()))
        .column("nights", |series| series.of_level())
        .column("median", |series| series.level())
        .column("last", |series| series.last())
        .column("worse by, % [95%]", |series| series.departure().map(|of| within(of.worse, Some(of.interval), percent)))
        .column("variation, % [95%]", varies)
        .done()
}

/// Every change, the last first.
pub fn changes(of: &History) -> Table {
    Table::of(of.changes())
        .column("since", |(_, change)| Cell::Name(change.since.clone()))
        .column("figure", |(series, _)| Cell::Name(series.name.key.clone()))
        .column("before", |(_, change)| change.before)
        .column("after", |(_, change)| change.after)
        .column("unit", |(series, _)| Cell::Name(series.name.unit.clone()))
        .column("change [95%]", |(_, change)| part(change.part, change.interval))
        .column("", |(_, change)| word(change).to_lowercase())
        .column("p", |(_, change)| Cell::number(change.p_value, |of| format!("{of:.4}")))
        .done()
}

/// A character for each night, or for the mean of several where there are many.
fn drawn(series: &Series, widest: usize) -> String {
    if series.values.is_empty() {
        return "no night that may be reported".into();
    }
    let each = series.values.len().div_ceil(widest).max(1);
    let bins: Vec<(usize, f64)> = series
        .values
        .chunks(each)
        .map(|chunk| (chunk[0].0, chunk.iter().map(|(_, value)| value).sum::<f64>() / chunk.len() as f64))
        .collect();
    let of = |pick: fn(f64, f64) -> f64| bins.iter().map(|(_, value)| *value).reduce(pick).unwrap_or(0.0);
    let (low, high) = (of(f64::min), of(f64::max));
    let mut out = String::new();
    let mut changes = series.changes.iter().map(|change| change.night).peekable();
    for (at, (night, value)) in bins.iter().enumerate() {
        let next = bins.get(at + 1).map_or(usize::MAX, |(next, _)| *next);
        while changes.next_if(|change| *change <= *night || *change < next).is_some() {
            out.push('|');
        }
        // Means of equal figures may differ in their last digits.
        let share = if high - low > 1e-9 * high.abs() { (value - low) / (high - low) } else { 0.0 };
        out.push(BARS[((share * BARS.len() as f64) as usize).min(BARS.len() - 1)]);
    }
    format!("{out}  {} to {} {}", figure(low), figure(high), series.name.unit)
}

/// Every figure of every night.
pub fn every_night(of: &History) -> Table {
    Table::of(of.nights.iter().enumerate())
        .column("night", |(_, name)| Cell::Name((*name).clone()))
        .columns(&of.series, |table, series| {
            let head = format!("{}, {}", series.name.key, series.name.unit);
            table.column(head, |(night, _)| {
                let place = series.values.binary_search_by_key(night, |(of, _)| *of).ok()?;
                Some(series.values[place].1)
            })
        })
        .column("", |(night, _)| {
            let here: Vec<&str> = of
                .series
                .iter()
                .filter(|series| series.changes.iter().any(|change| change.night == *night))
                .map(|series| series.name.key.as_str())
                .collect();
            Cell::Name(if here.is_empty() { String::new() } else { format!("changed: {}", here.join(", ")) })
        })
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::history::{Name, Night, Value};

    fn history_of(nights: usize, step_at: usize) -> History {
        let night = |at: usize| {
            let name = Name { key: "lat.avg.loaded".into(), unit: "us".into(), more_is_worse: true, primary: true };
            let value = if at < step_at { 10.0 } else { 12.0 } + 0.1 * (at % 4) as f64;
            let figures = vec![(name, Value { value, whole: None, is_sound: true })];
            Night { file: format!("n{at}.json"), started: format!("2026-01-{:02}T02:00:00Z", at + 1), figures }
        };
        History::of("run over tcp".into(), &(0..nights).map(night).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn the_first_line_says_what_changed() {
        let text = shown(&history_of(24, 12), 120, true);
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("WORSE since 2026-01-13: lat.avg.loaded by +19.") && first.ends_with(']'), "{text}");
        assert!(text.contains("run over tcp: 24 nights, 2026-01-01 to 2026-01-24\n"), "{text}");
        assert!(text.contains("    ▁▁▁▂▁▁▁▂▁▁▁▂|▇███▇███▇███  10.00 to 12.30 us\n"), "{text}");
        assert!(text.contains("changed: lat.avg.loaded") && text.contains("2026-01-13  lat.avg.loaded"), "{text}");
        let text = shown(&history_of(24, 99), 80, false);
        assert!(text.starts_with("NO CHANGE SHOWN\n") && !text.contains("Changes of level"), "{text}");
        let text = shown(&history_of(5, 99), 80, false);
        let expected =
            "CANNOT SAY: 5 nights are too few to tell: 8 are needed to show a change in one\n  of 1 figure\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_last_night_that_is_apart_is_in_the_first_line() {
        let night = |at: usize| {
            let name = Name { key: "lat.avg.loaded".into(), unit: "us".into(), more_is_worse: true, primary: true };
            let value = if at == 12 { 18.0 } else { 10.0 + 0.1 * (at % 4) as f64 };
            let figures = vec![(name, Value { value, whole: None, is_sound: true })];
            Night { file: format!("n{at}.json"), started: format!("2026-01-01T{at:02}:00:00Z"), figures }
        };
        let nights: Vec<Night> = (0..13).map(night).collect();
        let text = shown(&History::of("run".into(), &nights, &[]), 200, false);
        let expected = "NO CHANGE SHOWN; the last night is worse than those before: lat.avg.loaded by +77.";
        assert!(text.starts_with(expected) && text.contains("2026-01-01 00:00 to 2026-01-01 12:00"), "{text}");
        let text = shown(&History::of("run".into(), &[&nights[..4], &nights[12..]].concat(), &[]), 200, false);
        assert!(
            text.starts_with("CANNOT SAY: 5 nights are too few to tell") && text.contains("; the last night is worse")
        );
        assert!(shown(&History::of("run".into(), &nights[..12], &[]), 80, false).starts_with("NO CHANGE SHOWN\n"));
        // A last night that may not be reported is not the one before it.
        let unsound = |night: &Night| {
            let figures =
                night.figures.iter().map(|(name, of)| (name.clone(), Value { is_sound: false, ..*of })).collect();
            Night { figures, ..night.clone() }
        };
        let mut nights = nights;
        nights.push(unsound(&nights[12]));
        let of = History::of("run".into(), &nights, &[]);
        assert_eq!((of.series[0].last(), of.series[0].departure()), (None, None));
        assert!(shown(&of, 200, false).starts_with("NO CHANGE SHOWN\n"));
        let none = shown(&History::of("run".into(), &[unsound(&nights[0])], &[]), 80, false);
        assert!(none.contains("\n  no night that may be reported\n"), "{none}");
    }

    #[test]
    fn the_first_screen_is_short_and_narrow() {
        let night = |at: usize, changed: bool| {
            let figure = |number: usize| {
                let name = Name {
                    key: format!("allreduce-{number}.time-p90.loaded"),
                    unit: "MiB/s/rank".into(),
                    more_is_worse: number != 7,
                    primary: true,
                };
                let level = if changed && number >= 7 && at >= 30 { 1234.5 } else { 1000.0 };
                (name, Value { value: level + (at * 7 % 5) as f64, whole: None, is_sound: at != 3 })
            };
            let started = format!("2026-{:02}-{:02}T02:00:00Z", at / 28 + 1, at % 28 + 1);
            Night { file: String::new(), started, figures: (0..9).map(figure).collect() }
        };
        let title = "run over tcp, eager, 64 ranks on 16 nodes, of the label nightly".to_owned();
        for changed in [false, true] {
            let nights: Vec<Night> = (0..60).map(|at| night(at, changed)).collect();
            let of = History::of(title.clone(), &nights, &[]);
            let text = shown(&of, 80, false);
            assert!(text.lines().count() <= MOST_LINES, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains(" more figures. Levels, ") && text.contains("9 figures that may not"), "{text}");
            assert_eq!(text.contains("since"), changed, "{text}");
            assert!(
                !changed || text.contains("+23% ") && text.contains(" worse ") && text.contains(" better "),
                "{text}"
            );
            let rows = |text: &str| text.lines().filter(|line| line.starts_with("allreduce-")).count();
            assert!(rows(&text) > 3 && shown(&of, 80, true).contains("Every night"), "{text}");
        }
    }

    #[test]
    fn many_nights_are_drawn_together() {
        let text = drawn(&history_of(200, 100).series[0], WIDEST);
        let bars = text.split("  ").next().unwrap();
        assert_eq!((bars.chars().filter(|c| BARS.contains(c)).count(), bars.matches('|').count()), (50, 1), "{text}");
    }
}
