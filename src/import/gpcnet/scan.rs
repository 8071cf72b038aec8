//! What the lines of a log say: where an output begins, how large its job was, and the rows of its tables.
//!
//! Whatever else is in the log is passed over: scripts that were echoed, lines of other programs, and what launchers write
//! before each line. A cell counts when the bar behind it was printed, so that no figure is read that was cut short.

use crate::engine::LoadState;
use crate::kernel::{Canary, Congestor};
use crate::result::{LARGEST_FIGURE, Printed};
use crate::stats::Direction;

/// No machine has more; a damaged number must not take the memory.
const MOST_RANKS: usize = 100_000_000;
const MOST_NODES: usize = 200_000;

/// The unit of a canary's figures.
pub(super) fn unit(direction: Direction) -> &'static str {
    match direction {
        Direction::Latency => "usec",
        Direction::Bandwidth => "MiB/s/rank",
    }
}

/// Reads tables, line by line.
#[derive(Debug, Default)]
pub(super) struct Tables<'t> {
    table: Table,
    columns: Vec<&'t str>,
    /// How long the line above is, if it is one that stands over titles.
    rule: Option<usize>,
}

/// What the rows under a title are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Table {
    Of(LoadState),
    /// Congestors alone, or key results.
    Ignored,
    /// None yet, or one that GPCNeT 1.3 does not print.
    #[default]
    Unknown,
}

/// The figures of a canary in one state.
pub(super) struct Row {
    pub(super) kernel: Canary,
    pub(super) bytes: usize,
    pub(super) printed: Printed,
}

/// What is seen in a line of a table.
pub(super) enum Seen<'t> {
    /// A row, or why its figures cannot be read.
    Row { name: &'t str, state: LoadState, row: Result<Row, (Canary, String)> },
    /// A row without a title of its table above.
    Untitled { name: &'t str },
    /// A row of no test of GPCNeT's.
    Other { name: &'t str },
}

impl<'t> Tables<'t> {
    /// The rows of a line: one, unless an end of line was lost.
    pub(super) fn take(&mut self, text: &'t str) -> Vec<Seen<'t>> {
        let above = std::mem::replace(&mut self.rule, outer_rule(text));
        let mut cells: Vec<&str> = text.split('|').map(str::trim).collect();
        // What has no bar behind it is no cell, or half of one.
        let rest = cells.pop();
        if let Some(table) = cells.iter().find_map(|cell| titled(cell)) {
            (self.table, self.columns) = (table, Vec::new());
        } else if cells.len() == 2 && rest == Some("") && above == Some(text.trim_end().len()) {
            (self.table, self.columns) = (Table::Unknown, Vec::new());
        } else if let Some(name) = cells.iter().position(|cell| *cell == "Name")
            && ["Avg", "99%"].iter().all(|column| cells.contains(column))
        {
            self.columns = cells.split_off(name);
        } else if self.table != Table::Ignored {
            return self.rows(&cells);
        }
        Vec::new()
    }

    fn rows(&self, cells: &[&'t str]) -> Vec<Seen<'t>> {
        let starts: Vec<usize> = (0..cells.len()).filter(|at| canary(cells[*at]).is_some()).collect();
        let ends = starts.iter().copied().skip(1).chain([cells.len()]);
        let mut seen: Vec<Seen<'t>> =
            starts.iter().zip(ends).filter_map(|(start, end)| self.row(&cells[*start..end])).collect();
        let name = cells.len().checked_sub(self.columns.len()).and_then(|at| cells.get(at));
        let units = [Direction::Latency, Direction::Bandwidth].map(unit);
        if let (Some(name), [.., unit]) = (name, cells)
            && units.contains(unit)
            && starts.is_empty()
            && !Congestor::ALL.iter().any(|of| name.starts_with(of.info().title))
        {
            seen.push(Seen::Other { name });
        }
        seen
    }

    fn row(&self, cells: &[&'t str]) -> Option<Seen<'t>> {
        let name = cells[0];
        let (kernel, bytes) = canary(name)?;
        let Table::Of(state) = self.table else { return Some(Seen::Untitled { name }) };
        let row = match figures(&self.columns, cells, kernel.info().direction) {
            Ok(printed) => Ok(Row { kernel, bytes, printed }),
            Err(detail) => Err((kernel, detail)),
        };
        Some(Seen::Row { name, state, row })
    }
}

/// What begins an output: whether of the load test, and the version.
pub(super) fn header(line: &str) -> Option<(bool, &str)> {
    [("NetworkLoad Tests v", true), ("Network Tests v", false)].into_iter().find_map(|(title, load_test)| {
        let version = line[line.find(title)? + title.len()..].trim();
        // Not a script that looks for one.
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_version.then_some((load_test, version))
    })
}

pub(super) fn size(line: &str) -> Option<(usize, usize)> {
    let (_, rest) = line.split_once("Test with ")?;
    let (ranks, rest) = rest.split_once(" MPI ranks (")?;
    let (nodes, _) = rest.split_once(" nodes)")?;
    let (ranks, nodes) = (ranks.trim().parse().ok()?, nodes.trim().parse().ok()?);
    (ranks <= MOST_RANKS && nodes <= MOST_NODES).then_some((ranks, nodes))
}

/// The length of a line that stands over titles: it has no inner corners.
fn outer_rule(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let (_, dashes) = line.strip_suffix('+')?.rsplit_once('+')?;
    (dashes.len() >= 60 && dashes.bytes().all(|byte| byte == b'-')).then_some(line.len())
}

/// The table that a cell is the title of.
fn titled(cell: &str) -> Option<Table> {
    const LOADED: &str = "Network Tests running with Congestion Tests";
    match cell {
        "Isolated Network Tests" | "Network Tests" => Some(Table::Of(LoadState::Isolated)),
        "Isolated Congestion Tests" => Some(Table::Ignored),
        _ => match cell.strip_prefix(LOADED)?.trim() {
            "" => Some(Table::Of(LoadState::Loaded)),
            of if of.ends_with("Network Test)") => Some(Table::Of(LoadState::Loaded)),
            "- Key Results" => Some(Table::Ignored),
            _ => None,
        },
    }
}

/// A row's canary and message size; nothing for the congestors that share the tables of `--verbose`.
pub(super) fn canary(name: &str) -> Option<(Canary, usize)> {
    let (title, size) = name.split_once(" (")?;
    let bytes = size.trim_end_matches(')').trim_end_matches('B').trim().parse().ok()?;
    let kernel = Canary::kernels().find(|kernel| kernel.info().title == title)?;
    (bytes > 0).then_some((kernel, bytes))
}

fn figures(columns: &[&str], cells: &[&str], direction: Direction) -> Result<Printed, String> {
    let cell = |name: &str| match columns.iter().position(|column| *column == name) {
        None => Ok(None),
        Some(at) => cells.get(at).map(Some).ok_or_else(|| format!("cut short: expected a figure under {name}")),
    };
    let of = |name: &str| -> Result<Option<f64>, String> {
        let Some(cell) = cell(name)? else { return Ok(None) };
        match cell.parse::<f64>() {
            // What no result may hold.
            Ok(value) if (0.0..LARGEST_FIGURE).contains(&value) => Ok(Some(value)),
            _ => Err(format!("invalid figure '{}' under {name}: expected a number like 12.3", quoted(cell))),
        }
    };
    let need = |name: &str| of(name)?.ok_or_else(|| format!("expected a line with Name and {name} above it"));
    let printed =
        Printed { avg: need("Avg")?, p99: need("99%")?, p999: of("99.9%")?, min: of("Min")?, max: of("Max")? };
    let unit = unit(direction);
    match cell("Units") {
        Ok(Some(found)) if *found != unit => Err(format!("invalid unit '{}': expected {unit}", quoted(found))),
        // Its figures are there.
        _ => Ok(printed),
    }
}

/// So much of a text that it can be shown.
pub(super) fn quoted(text: &str) -> String {
    text.chars().take(40).map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_figure_is_refused() {
        for cell in ["x.1", "-1.0", "inf", "NaN", "2.4e32", ""] {
            let detail = figures(&["Name", "Avg", "99%"], &["", cell, "1.0"], Direction::Latency).unwrap_err();
            assert_eq!(detail, format!("invalid figure '{cell}' under Avg: expected a number like 12.3"));
        }
    }
}
