//! How far pairs of nodes are from each other in a max-rate study.

use std::fmt::Write as _;

use crate::result::{BetweenResult, Kind, MaxRateResult, Span};
use crate::text::{Table, figure};

/// A terminal shows no more of them; the report has all.
const MOST_ROWS: usize = 12;

/// Each figure over all pairs of nodes, then each pair of nodes; nothing where there was one.
pub(super) fn between(result: &MaxRateResult) -> String {
    let mut out = String::new();
    let spans = result.spans();
    for both in [false, true] {
        let some: Vec<&Span> = spans.iter().filter(|span| span.both == both).collect();
        let count = result.between.iter().filter(|of| of.is_both() == both).count();
        if count > 1 {
            let _ = writeln!(out, "Over {}, one after the other{}", counted(count, result), at_once(both));
            let mut table = Table::new(["figure", "least", "median", "most", "most / least"]);
            some.into_iter().for_each(|span| table.row(span_cells(span)));
            out += &table.render();
            out.push('\n');
        }
    }
    let mut shown: Vec<&BetweenResult> = result.between.iter().collect();
    let pairs = result.common_pairs();
    let all = shown.len();
    let mut head = "Each by itself".to_owned();
    if all > MOST_ROWS {
        shown.sort_by(|a, b| rate(a, pairs).total_cmp(&rate(b, pairs)));
        shown.truncate(MOST_ROWS);
        head = format!("The {MOST_ROWS} of {all} with the least rate; the report has all");
    }
    if let Some(table) = table(&shown, pairs) {
        let _ = writeln!(out, "{head}{}\n{}", at_once(shown.iter().any(|of| of.is_both())), table.render());
    }
    out
}

fn counted(count: usize, result: &MaxRateResult) -> String {
    if result.settings.both_directions {
        format!("{count} ways between nodes")
    } else {
        format!("{count} pairs of nodes")
    }
}

fn at_once(both: bool) -> &'static str {
    if both { " (both ways at once, <>: rates are those of one way)" } else { "" }
}

/// The rate of the most pairs that all were measured with.
fn rate(of: &BetweenResult, pairs: usize) -> f64 {
    let figures = of.figures(pairs);
    let mut rates = figures.iter().filter(|of| of.kind == Kind::Rate).filter_map(|of| of.value);
    rates.next_back().unwrap_or(f64::INFINITY)
}

fn table(shown: &[&BetweenResult], pairs: usize) -> Option<Table> {
    let names = shown.first()?.figures(pairs).into_iter().map(|of| format!("{}, {}", of.name, of.unit));
    let mut table = Table::new(std::iter::once("nodes".to_owned()).chain(names));
    shown.iter().for_each(|of| table.row(between_cells(of, pairs)));
    Some(table)
}

/// The row of two nodes: their names and their figures.
pub(crate) fn between_cells(of: &BetweenResult, pairs: usize) -> Vec<String> {
    let value = |value: Option<f64>| value.map_or_else(|| "-".into(), known);
    std::iter::once(of.name()).chain(of.figures(pairs).into_iter().map(|of| value(of.value))).collect()
}

/// The row of a figure: its least, median and most, and how far these are apart.
pub(crate) fn span_cells(span: &Span) -> Vec<String> {
    let end = |(value, nodes): &(f64, String)| format!("{} ({nodes})", known(*value));
    let ratio = span.most.0 / span.least.0;
    let ratio = if ratio.is_finite() { figure(ratio) } else { "-".into() };
    vec![format!("{}, {}", span.figure, span.unit), end(&span.least), known(span.median), end(&span.most), ratio]
}

fn known(value: f64) -> String {
    if value.is_finite() { figure(value) } else { "infinite".into() }
}
