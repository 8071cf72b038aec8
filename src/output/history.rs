//! Nights of a machine in text: whether something changed, figures with their level and noise, changes, and each figure drawn.

use crate::analysis::history::{Change, History, Series};
use crate::stats::Interval;
use crate::text::{Cell, Table, figure, in_percent, percent, section, within, wrap};

/// Levels of a drawing, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How wide a drawing is at most.
const WIDEST: usize = 60;

/// Text for a terminal; with all nights of every figure where `verbose`.
pub fn history(of: &History, verbose: bool) -> String {
    shown(of, super::columns(), verbose)
}

fn shown(of: &History, columns: usize, verbose: bool) -> String {
    let (first, last) = (of.nights.first().map_or("-", String::as_str), of.nights.last().map_or("-", String::as_str));
    let mut out = wrap(&verdict(of), columns);
    out += &wrap(&format!("{}: {} nights, {first} to {last}", of.title, of.nights.len()), columns);
    out += &section(
        "\nFigures: median since the last change, last night beside it, variation from night to night",
        &levels(of),
    );
    out += &section("Changes of level, the last first", &changes(of));
    out += "Every night, from the lowest to the highest (| where the level changed)\n";
    for series in &of.series {
        out += &format!("  {}\n    {}\n", series.name.key, drawn(series));
    }
    let left_out: usize = of.series.iter().map(|series| series.left_out.len()).sum();
    if left_out > 0 {
        out += &wrap(
            &format!("{left_out} figures of nights that may not be reported are left out (`tailback show` says why)"),
            columns,
        );
    }
    if verbose {
        out += &section("\nEvery night", &every_night(of));
    }
    out
}

/// The first line: what changed last, or that nothing was shown.
fn verdict(of: &History) -> String {
    let changes = of.changes();
    let Some((series, change)) = changes.first() else {
        return match of.series.iter().map(|series| series.values.len()).max().unwrap_or(0) {
            fewer if fewer < crate::stats::FEWEST_TO_SPLIT => {
                format!(
                    "CANNOT SAY: {fewer} nights are too few to show a change: at least {} are needed",
                    crate::stats::FEWEST_TO_SPLIT
                )
            }
            _ => "NO CHANGE SHOWN".into(),
        };
    };
    let more = if changes.len() > 1 { format!(", and {} more", changes.len() - 1) } else { String::new() };
    format!(
        "{} since {}: {} by {}{more}",
        word(change),
        change.since,
        series.name.key,
        part(change.part, change.interval)
    )
}

fn word(change: &Change) -> &'static str {
    if change.is_worse { "WORSE" } else { "BETTER" }
}

/// `+10.2% [+8.0, +12.4]`
fn part(part: f64, interval: Option<Interval>) -> String {
    let interval = interval.map(|of| format!(" [{}, {}]", percent(of.low), percent(of.high))).unwrap_or_default();
    format!("{}%{interval}", percent(part))
}

fn levels(of: &History) -> Table {
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
        .column("worse by, % [95%]", |series| series.departure().map(|(worse, of)| within(worse, Some(of), percent)))
        .column("variation, % [95%]", varies)
        .done()
}

fn changes(of: &History) -> Table {
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
fn drawn(series: &Series) -> String {
    let each = series.values.len().div_ceil(WIDEST).max(1);
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

fn every_night(of: &History) -> Table {
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
        assert!(shown(&history_of(5, 99), 80, false).starts_with("CANNOT SAY: 5 nights are too few"));
    }

    #[test]
    fn many_nights_are_drawn_together() {
        let text = drawn(&history_of(200, 100).series[0]);
        let bars = text.split("  ").next().unwrap();
        assert_eq!((bars.chars().filter(|c| BARS.contains(c)).count(), bars.matches('|').count()), (50, 1), "{text}");
    }
}
