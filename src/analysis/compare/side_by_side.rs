//! Every side beside the first: rows of figures, what they say about network, library and protocol, and all of it as tables.

use std::fmt::Write as _;

use serde::Serialize;

use super::aggressors::{AGGRESSORS_TITLE, Aggressors};
use super::attribution::{Attribution, attribute};
use super::compatible::{Difference, differences};
use super::conditions::{CONDITIONS_TITLE, ConditionRow, conditions, conditions_table};
use super::counters::{CounterComparison, counters};
use super::figures::{FIGURES_TEST, FigureRow};
use super::protocols::ProtocolFinding;
use super::sides::Side;
use super::verdict::{Cell, Measured, Row, State, Verdict};
use super::{figures, protocols};
use crate::result::ResultFile;
use crate::stats::{Statistic, holm};
use crate::text::{Rows, Table, section};

/// Said wherever verdicts are shown.
pub const TEST: &str = "Student's t on the logarithms of placements' figures, placement by placement where both sides have \
                        the same ones, else Welch's; corrected by Holm";

/// What is shown unless everything is asked for: the headline, and what GPCNeT shows.
pub const SHOWN: [Statistic; 3] = [Statistic::HEADLINE, Statistic::Avg, Statistic::P99];

/// Several sides, compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The sides' names, the first being what the others are compared with.
    pub sides: Vec<String>,
    /// What was simulated rather than measured, a line for each such side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<String>,
    /// What makes the sides less than comparable.
    pub differences: Vec<Difference>,
    /// The test behind the verdicts.
    pub test: &'static str,
    /// The figures of canaries.
    pub rows: Vec<Row>,
    /// Those of studies and congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureRow>,
    /// What each load does to each victim, where there are several loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggressors: Option<Aggressors>,
    /// Quiet, wild and loaded jobs, where some had no congestors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRow>,
    /// What the nodes' devices and the network's ports counted on every side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterComparison>,
    /// What MPI's impact is made of, when MPI and raw runs of like jobs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What each raw backend's impact is made of, when it ran with several protocols in like jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolFinding>,
}

/// Compares every side with the first, for the kernels that the first and at least one other measured.
///
/// One figure of each canary decides and is named beforehand: the impact by the headline. All of these together mark
/// something in one of twenty comparisons of equals; all others together likewise.
pub fn compare(sides: &[Side<'_>], statistics: &[Statistic]) -> Comparison {
    let mut rows = Vec::new();
    let (first, rest) = sides.split_first().expect("the command line asks for two sides");
    for kernel in first.kernels().into_iter().filter(|kernel| rest.iter().any(|side| side.kernels().contains(kernel))) {
        let measured: Vec<Measured<'_>> = sides.iter().map(|side| Measured::of(side, kernel)).collect();
        let Some(test) = first.run.tests.iter().find(|test| test.kernel == kernel) else { continue };
        for state in State::ALL {
            for &statistic in statistics {
                let cell = |(at, side): (usize, &Measured<'_>)| {
                    let value = side.value(state, statistic);
                    match at {
                        0 => Cell::base(value),
                        _ => Cell::beside(value, side.ratio(&measured[0], state, statistic)),
                    }
                };
                let cells: Vec<Cell> = measured.iter().enumerate().map(cell).collect();
                if cells.iter().any(|cell| cell.value.is_some()) {
                    let unit = if state == State::Impact { "x".into() } else { test.unit.clone() };
                    let primary = state == State::Impact && statistic == kernel.headline();
                    rows.push(Row { kernel, title: test.title.clone(), state, statistic, primary, unit, cells });
                }
            }
        }
    }
    correct(&mut rows, true);
    correct(&mut rows, false);
    let differences: Vec<Difference> = rest.iter().flat_map(|side| differences(first, side)).collect();
    // Blame needs like jobs: where plans or ranks differ, a remainder would be anybody's.
    let machine = |side: &Side<'_>| side.file.machine.as_ref().map(|machine| machine.file.clone());
    let one_load = sides.iter().all(|side| side.run.beside == first.run.beside);
    let alike =
        one_load && differences.iter().all(|of| !of.fatal) && rest.iter().all(|side| machine(side) == machine(first));
    let attribution = alike.then(|| attribute(sides)).flatten();
    let protocols = if alike { protocols::findings(sides) } else { Vec::new() };
    let names = sides.iter().map(|side| side.label.clone()).collect();
    let figures: Vec<_> = sides.iter().map(figures::of_study).collect();
    Comparison {
        sides: names,
        simulated: sides.iter().filter_map(|side| simulated(&side.label, side.file)).collect(),
        differences,
        test: TEST,
        rows,
        figures: figures::rows(&figures),
        aggressors: Aggressors::of(sides),
        conditions: conditions(sides),
        counters: counters(sides),
        attribution,
        protocols,
    }
}

/// What is said of a side whose network is a model.
fn simulated(label: &str, file: &ResultFile) -> Option<String> {
    let machine = file.machine.as_ref()?;
    Some(format!("{label}: {} ({})", machine.title(), machine.about))
}

/// Adjusts the p-values of a family and judges by them.
fn correct(rows: &mut [Row], primary: bool) {
    let family = |rows: &mut [Row], each: &mut dyn FnMut(&mut Cell)| {
        let of = rows.iter_mut().filter(|row| row.primary == primary).flat_map(|row| &mut row.cells);
        of.filter(|cell| cell.p_value.is_some()).for_each(each);
    };
    let mut p_values = Vec::new();
    family(rows, &mut |cell| p_values.extend(cell.p_value));
    let mut adjusted = holm(&p_values).into_iter();
    family(rows, &mut |cell| {
        cell.p_value = adjusted.next();
        cell.verdict = cell.ratio.map(|of| Verdict::of(of.factor, cell.p_value));
    });
}

/// Compares the congestors of one file with each other; nothing when it has fewer than two.
pub fn compare_congestors(file: &ResultFile) -> Option<Comparison> {
    let kinds = figures::kinds(file);
    let figures: Vec<_> = kinds.iter().map(|&kernel| figures::of_congestor(file, kernel)).collect();
    (kinds.len() > 1).then(|| Comparison {
        sides: kinds.iter().map(|kernel| kernel.info().key.to_owned()).collect(),
        simulated: simulated("all of them", file).into_iter().collect(),
        differences: Vec::new(),
        test: FIGURES_TEST,
        rows: Vec::new(),
        figures: figures::rows(&figures),
        aggressors: None,
        conditions: Vec::new(),
        counters: Vec::new(),
        attribution: None,
        protocols: Vec::new(),
    })
}

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
    out += &protocols::render(&comparison.protocols);
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
