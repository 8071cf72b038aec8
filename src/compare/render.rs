//! A comparison as tables.

use std::fmt::Write as _;

use super::conditions::{CONDITIONS_TITLE, conditions_table};
use super::{AGGRESSORS_TITLE, Cell, Comparison, FIGURES_TEST, FigureRow, State, Verdict};
use crate::text::{Rows, Table, section};

/// The tables: one per state, a row per test and statistic.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let first = comparison.sides.first().expect("a comparison has sides");
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
    comparison.tables().iter().for_each(|(title, table)| out += &section(title, table));
    if let Some(aggressors) = &comparison.aggressors {
        out += &section(AGGRESSORS_TITLE, &aggressors.table());
    }
    out += &section(CONDITIONS_TITLE, &conditions_table(&comparison.conditions));
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

impl Comparison {
    /// Every figure on all sides, under titles: of canaries state by state, then of studies and congestors.
    pub fn tables(&self) -> Vec<(&str, Table)> {
        let of_state = |state: State| {
            let mark = |primary: bool| if primary { " (primary)" } else { "" };
            let rows = Table::of(self.rows.iter().filter(|row| row.state == state))
                .column("test", |row| &row.title)
                .column("figure", |row| format!("{}{}", row.statistic.key(), mark(row.primary)));
            (title(state), self.beside(rows, |row| &row.cells).column("unit", |row| &row.unit).done())
        };
        let of_group = |group: &'_ [FigureRow]| {
            let rows = Table::of(group).column("figure", |row| &row.name);
            self.beside(rows, |row| &row.cells).column("unit", |row| &row.unit).done()
        };
        let groups = self.figures.chunk_by(|a, b| a.group == b.group);
        let groups = groups.map(|group| (group[0].group.as_str(), of_group(group)));
        State::ALL.map(of_state).into_iter().chain(groups).collect()
    }

    /// The cells of every side, each beside the first's.
    fn beside<'r, R>(&self, rows: Rows<&'r R>, cells: impl Fn(&'r R) -> &'r [Cell]) -> Rows<&'r R> {
        rows.columns(self.sides.iter().enumerate(), |table, (at, side)| {
            let of = |row: &&'r R| cells(row)[at];
            let table = table.column(side, |row| of(row).value);
            table
                .column_if(at > 0, "ratio", |row| of(row).ratio)
                .column_if(at > 0, "verdict", |row| of(row).verdict.map(Verdict::word))
        })
    }
}

/// The heading of a state's table.
fn title(state: State) -> &'static str {
    match state {
        State::Isolated => "Isolated",
        State::Loaded => "Under load",
        State::Impact => "Congestion impact (times worse under load)",
    }
}
