//! GPCNeT 1.3's printed tables, column for column, so that scripts that scrape them read ours.
//!
//! Two things follow from that: impact factors here have one decimal and no interval, and Avg is GPCNeT's Avg. The
//! values are exact where GPCNeT divides rounded ones.

use std::fmt::Write as _;

use crate::engine::Phase;
use crate::result::{Command, CongestorLoad, NodeRole, Printed, ResultFile, Run, Test};
use crate::stats::Summary;

pub(super) fn render(result: &ResultFile, verbose: bool) -> String {
    let mut out = String::new();
    for (at, run) in result.runs.iter().enumerate() {
        if result.runs.len() > 1 {
            // GPCNeT has no such line; it has one transport.
            let _ = writeln!(out, "{}Over {}", if at > 0 { "\n" } else { "" }, run.label());
        }
        header(&mut out, result);
        let mut tables = vec![isolated(run, verbose)];
        if verbose {
            tables.push(congestors(run));
            tables.extend(run.tests.iter().filter(|test| test.phase == Phase::Loaded).map(loaded_verbose));
        } else {
            tables.push(loaded(run));
        }
        tables.push(key_results(run));
        let shown: Vec<String> = tables.into_iter().flatten().collect();
        out += &shown.join("\n");
    }
    out
}

fn header(out: &mut String, result: &ResultFile) {
    if let Some(machine) = &result.machine {
        // Nor this one: its networks are real.
        let _ = writeln!(out, "Simulated: machine {}, {}", machine.name, machine.about);
    }
    let load_test = result.command != Command::Network;
    let nodes = &result.system.nodes;
    out.push_str(if load_test { "NetworkLoad Tests v1.3\n" } else { "Network Tests v1.3\n" });
    let _ = writeln!(out, "  Test with {} MPI ranks ({} nodes)", result.system.ranks, nodes.len());
    // An imported log does not say which node did what.
    if load_test && nodes.iter().any(|node| !node.roles.is_empty()) {
        let congests = |role: &NodeRole| matches!(role, NodeRole::Congestor(_));
        let canaries = nodes.iter().filter(|node| node.roles.contains(&NodeRole::Canary)).count();
        let congestors = nodes.iter().filter(|node| node.roles.iter().any(congests)).count();
        let of_kind = |kernel| nodes.iter().filter(|n| n.roles.contains(&NodeRole::Congestor(kernel))).count();
        let fewest = result.plan.congestors.iter().map(|test| of_kind(test.kernel)).filter(|&n| n > 0).min();
        let _ = writeln!(out, "  {canaries} nodes running Network Tests");
        let _ = writeln!(
            out,
            "  {congestors} nodes running Congestion Tests (min {} nodes per congestor)",
            fewest.unwrap_or(0)
        );
    }
    out.push_str("\n  Legend\n   RR = random ring communication pattern\n");
    if !load_test {
        out.push_str("   Nat = natural ring communication pattern\n");
    }
    out.push_str("   Lat = latency\n   BW = bandwidth\n   BW+Sync = bandwidth with barrier\n");
}

/// A table under construction: rows of a 31-column name and equal columns.
struct Grid {
    text: String,
    columns: usize,
}

impl Grid {
    fn new(title: &str, columns: &[&str]) -> Self {
        let width = 33 + 15 * columns.len();
        let left = (width - title.len()) / 2;
        let mut grid = Grid { text: String::new(), columns: columns.len() };
        let _ = writeln!(grid.text, "+{}+", "-".repeat(width));
        let _ = writeln!(grid.text, "|{}{title}{}|", " ".repeat(left), " ".repeat(width - title.len() - left));
        grid.rule();
        grid.cells("Name", columns.iter().map(|&name| name.to_owned()));
        grid
    }

    fn rule(&mut self) {
        let cells = "+--------------".repeat(self.columns);
        let _ = writeln!(self.text, "+---------------------------------{cells}+");
    }

    fn cells(&mut self, name: &str, cells: impl Iterator<Item = String>) {
        let _ = write!(self.text, "| {name:>31.31} ");
        for cell in cells {
            let _ = write!(self.text, "| {cell:>12.12} ");
        }
        self.text.push_str("|\n");
        self.rule();
    }
}

const SHORT: [&str; 3] = ["Avg", "99%", "Units"];
const LONG: [&str; 7] = ["Min", "Max", "Avg", "Avg(Worst)", "99%", "99.9%", "Units"];

fn figures(summary: &Summary, unit: &str, long: bool) -> Vec<String> {
    // GPCNeT's Min and Max are the extremes of the figure itself, whatever is better.
    let (min, max) = (summary.best.min(summary.worst), summary.best.max(summary.worst));
    let values: Vec<f64> = if long {
        vec![min, max, summary.avg, summary.worst_batch_avg, summary.p99, summary.p999]
    } else {
        vec![summary.avg, summary.p99]
    };
    values.iter().map(|value| format!("{value:.1}")).chain([unit.to_owned()]).collect()
}

/// Figures that GPCNeT itself printed, which an imported result has; a dash for those it did not.
fn printed(of: &Printed, unit: &str, long: bool) -> Vec<String> {
    let values: Vec<Option<f64>> = if long {
        vec![of.min, of.max, Some(of.avg), None, Some(of.p99), of.p999]
    } else {
        vec![Some(of.avg), Some(of.p99)]
    };
    let known = |value: &Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
    values.iter().map(known).chain([unit.to_owned()]).collect()
}

/// A row's name and cells.
type GridRow<'a> = (&'a str, Vec<String>);

fn table<'a>(title: &str, long: bool, rows: impl Iterator<Item = GridRow<'a>>) -> Option<String> {
    let mut grid = Grid::new(title, if long { &LONG } else { &SHORT });
    let mut any = false;
    for (name, cells) in rows {
        grid.cells(name, cells.into_iter());
        any = true;
    }
    any.then_some(grid.text)
}

fn test_row(test: &Test, long: bool) -> Option<GridRow<'_>> {
    // GPCNeT's word for microseconds.
    let unit = if test.unit == "us" { "usec" } else { &test.unit };
    let measured = test.summary.as_ref().map(|summary| figures(summary, unit, long));
    Some((&test.title, measured.or_else(|| Some(printed(test.printed.as_ref()?, unit, long)))?))
}

fn load_row(load: &CongestorLoad) -> Option<GridRow<'_>> {
    Some((&load.title, figures(load.summary.as_ref()?, "MiB/s/rank", true)))
}

fn isolated(run: &Run, long: bool) -> Option<String> {
    let rows = run.tests.iter().filter(|test| test.phase == Phase::Isolated);
    table("Isolated Network Tests", long, rows.filter_map(|test| test_row(test, long)))
}

fn congestors(run: &Run) -> Option<String> {
    table("Isolated Congestion Tests", true, run.congestors.iter().filter_map(load_row))
}

fn loaded(run: &Run) -> Option<String> {
    let rows = run.tests.iter().filter(|test| test.phase == Phase::Loaded);
    table("Network Tests running with Congestion Tests", false, rows.filter_map(|test| test_row(test, false)))
}

fn loaded_verbose(test: &Test) -> Option<String> {
    let title =
        format!("Network Tests running with Congestion Tests ({:>20.20} Network Test)", test.kernel.info().title);
    table(&title, true, test_row(test, true).into_iter().chain(test.load.iter().filter_map(load_row)))
}

fn key_results(run: &Run) -> Option<String> {
    const RULE: &str = "+---------------------------------+----------------------+---------------------+\n";
    let impacts: Vec<(&str, f64, f64)> = run
        .tests
        .iter()
        .filter(|test| test.phase == Phase::Loaded)
        .filter_map(|test| {
            let calm = run.test(test.kernel, Phase::Isolated)?;
            let factor = |of: fn(&Summary) -> f64, printed: fn(&Printed) -> f64| {
                let value = |test: &Test| test.summary.as_ref().map(of).or_else(|| test.printed.as_ref().map(printed));
                Some(test.direction.factor(value(calm)?, value(test)?)).filter(|factor| factor.is_finite())
            };
            // GPCNeT's own figures: means of passes, and percentiles of messages however few.
            Some((test.title.as_str(), factor(|of| of.avg, |of| of.avg)?, factor(|of| of.p99, |of| of.p99)?))
        })
        .collect();
    if impacts.is_empty() {
        return None;
    }
    let mut text = format!("+{}+\n", "-".repeat(78));
    let _ = writeln!(text, "|{:^78}|", "Network Tests running with Congestion Tests - Key Results");
    let _ = writeln!(text, "+{}+{}+", "-".repeat(33), "-".repeat(44));
    let _ = writeln!(text, "| {:>31} | {:>42} |", "Name", "Congestion Impact Factor");
    text.push_str(RULE);
    let _ = writeln!(text, "| {:>31} | {:>20} | {:>19} |", "", "Avg", "99%");
    text.push_str(RULE);
    for (title, avg, p99) in impacts {
        let _ = writeln!(text, "| {title:>31.31} | {avg:>19.1}X | {p99:>18.1}X |");
        text.push_str(RULE);
    }
    Some(text)
}
