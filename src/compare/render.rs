//! A comparison as tables for a terminal.

use std::fmt::Write as _;

use super::{Aggressors, Cell, Comparison, FIGURES_TEST, FigureRow, State, Verdict};
use crate::text::{Table, figure, with_interval};

/// The tables: one per state, a row per test and statistic.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let (first, rest) = comparison.sides.split_first().expect("a comparison has sides");
    let _ = writeln!(out, "Compared with {first} (ratios: times worse than it; less than 1 is better)\n");
    for side in &comparison.simulated {
        let _ = writeln!(out, "SIMULATED: {side}");
    }
    if !comparison.simulated.is_empty() {
        out.push('\n');
    }
    for difference in &comparison.differences {
        let word = if difference.fatal { "NOT COMPARABLE" } else { "note" };
        let _ = writeln!(out, "{word}: {}: {}", difference.side, difference.what);
    }
    if !comparison.differences.is_empty() {
        out.push('\n');
    }
    for state in State::ALL {
        let mut header = vec!["test".to_owned(), String::new(), first.clone()];
        for side in rest {
            header.extend([side.clone(), "ratio".into(), String::new()]);
        }
        header.push("unit".into());
        let mut table = Table::new(header);
        for row in comparison.rows.iter().filter(|row| row.state == state) {
            let star = if row.primary { " (primary)" } else { "" };
            let mut cells = vec![row.title.clone(), format!("{}{star}", row.statistic.key())];
            cells.extend(row.cells.iter().enumerate().flat_map(|(at, cell)| columns(at, cell)));
            cells.push(row.unit.clone());
            table.row(cells);
        }
        if !table.is_empty() {
            let _ = writeln!(out, "{}\n{}", title(state), table.render());
        }
    }
    for group in comparison.figures.chunk_by(|a, b| a.group == b.group) {
        let _ = writeln!(out, "{}\n{}", group[0].group, figures(comparison, group).render());
    }
    out += &comparison.aggressors.as_ref().map(Aggressors::render).unwrap_or_default();
    out += &super::conditions::render(&comparison.conditions);
    out += &super::counters::render(&comparison.sides, &comparison.counters);
    if let Some(attribution) = &comparison.attribution {
        out += &attribution.render();
    }
    out += &super::protocols::render(&comparison.protocols);
    if !comparison.rows.is_empty() {
        let _ = writeln!(out, "* significant at 5%: {}.", comparison.test);
        out += "When nothing differs, one comparison in twenty marks a primary figure, and one in twenty any of the others.\n\
                Placements of one job do not show how jobs differ from each other.\n";
        if comparison.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.verdict == Some(Verdict::Unknown)) {
            out += "no test: fewer than three placements on a side.\n";
        }
    }
    if !comparison.figures.is_empty() {
        let _ = writeln!(out, "* significant at 5%: {FIGURES_TEST}; without intervals there is no test.");
    }
    out
}

fn figures(comparison: &Comparison, rows: &[FigureRow]) -> Table {
    let (first, rest) = comparison.sides.split_first().expect("a comparison has sides");
    let mut header = vec!["figure".to_owned(), first.clone()];
    for side in rest {
        header.extend([side.clone(), "ratio".into(), String::new()]);
    }
    header.push("unit".into());
    let mut table = Table::new(header);
    for row in rows {
        let cells = row.cells.iter().enumerate().flat_map(|(at, cell)| columns(at, cell));
        table.row([row.name.clone()].into_iter().chain(cells).chain([row.unit.clone()]));
    }
    table
}

/// The heading of a state's table.
pub fn title(state: State) -> &'static str {
    match state {
        State::Isolated => "Isolated",
        State::Loaded => "Under load",
        State::Impact => "Congestion impact (times worse under load)",
    }
}

fn columns(at: usize, cell: &Cell) -> Vec<String> {
    let value = cell.value.map_or_else(|| "-".into(), figure);
    if at == 0 {
        return vec![value];
    }
    let ratio = cell.ratio.map_or_else(|| "-".into(), with_interval);
    vec![value, ratio, cell.verdict.map_or("", Verdict::word).to_owned()]
}
