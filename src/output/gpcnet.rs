//! GPCNeT 1.3's printed tables, column for column, so that scripts that scrape them read ours.
//!
//! Two things follow from that: impact factors here have one decimal and no interval, and Avg is GPCNeT's Avg. The
//! values are exact where GPCNeT divides rounded ones.

use std::fmt::Write as _;

use crate::engine::LoadState;
use crate::result::{Command, CongestorLoad, NodeRole, Printed, ResultFile, Run, Test};
use crate::stats::Summary;
use crate::text::{Cell, Table};
use crate::units;

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
            tables.extend(run.tests.iter().filter(|test| test.phase == LoadState::Loaded).map(loaded_verbose));
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

/// A row: its name, its unit, and what was measured or printed.
type Row<'a> = (String, &'a str, Option<&'a Summary>, Option<&'a Printed>);

/// Columns of one width under a title; a dash for what GPCNeT did not print of an imported result.
fn table<'a>(title: &str, long: bool, rows: impl Iterator<Item = Row<'a>>) -> Option<String> {
    let figure = |(_, _, measured, printed): &Row<'_>, of: fn(&Summary) -> f64, theirs: fn(&Printed) -> Option<f64>| {
        let value = measured.map(of).or_else(|| printed.and_then(theirs));
        value.map(|value| Cell::number(value, |value| format!("{value:.1}")))
    };
    // GPCNeT's Min and Max are the extremes of the figure itself, whatever is better.
    let table = Table::of(rows)
        .column("Name", |row| row.0.clone())
        .column_if(long, "Min", |row| figure(row, |of| of.best.min(of.worst), |of| of.min))
        .column_if(long, "Max", |row| figure(row, |of| of.best.max(of.worst), |of| of.max))
        .column("Avg", |row| figure(row, |of| of.avg, |of| Some(of.avg)))
        .column_if(long, "Avg(Worst)", |row| figure(row, |of| of.worst_batch_avg, |_| None))
        .column("99%", |row| figure(row, |of| of.percentiles.p99, |of| Some(of.p99)))
        .column_if(long, "99.9%", |row| figure(row, |of| of.percentiles.p999, |of| of.p999))
        .column("Units", |row| row.1)
        .done();
    (!table.is_empty()).then(|| grid(title, &table.cells("-")))
}

fn grid(title: &str, lines: &[Vec<String>]) -> String {
    let columns = lines[0].len() - 1;
    let width = 33 + 15 * columns;
    let left = (width - title.len()) / 2;
    let mut text = format!("+{}+\n", "-".repeat(width));
    let _ = writeln!(text, "|{}{title}{}|", " ".repeat(left), " ".repeat(width - title.len() - left));
    let rule = format!("+{}{}+\n", "-".repeat(33), format!("+{}", "-".repeat(14)).repeat(columns));
    text += &rule;
    for cells in lines {
        let _ = write!(text, "| {:>31.31} ", cells[0]);
        cells[1..].iter().for_each(|cell| text += &format!("| {cell:>12.12} "));
        text += "|\n";
        text += &rule;
    }
    text
}

/// As GPCNeT calls it; of an application its title.
fn name(test: &Test) -> String {
    if test.kernel.is_application() { test.title.clone() } else { test.kernel.info().row(test.bytes) }
}

fn test_row(test: &Test) -> Option<Row<'_>> {
    // GPCNeT's word for microseconds.
    let unit = if test.unit == "us" { "usec" } else { &test.unit };
    let row = (name(test), unit, test.summary.as_ref(), test.printed.as_ref());
    (test.summary.is_some() || test.printed.is_some()).then_some(row)
}

fn load_row(load: &CongestorLoad) -> Option<Row<'_>> {
    let info = load.kernel.info();
    let bytes = load.title.strip_prefix(info.key).and_then(|size| units::bytes(size).ok());
    let name = bytes.map_or_else(|| load.title.clone(), |bytes| info.row(bytes));
    Some((name, "MiB/s/rank", Some(load.summary.as_ref()?), None))
}

fn isolated(run: &Run, long: bool) -> Option<String> {
    let rows = run.tests.iter().filter(|test| test.phase == LoadState::Isolated);
    table("Isolated Network Tests", long, rows.filter_map(test_row))
}

fn congestors(run: &Run) -> Option<String> {
    table("Isolated Congestion Tests", true, run.congestors.iter().filter_map(load_row))
}

fn loaded(run: &Run) -> Option<String> {
    let rows = run.tests.iter().filter(|test| test.phase == LoadState::Loaded);
    table("Network Tests running with Congestion Tests", false, rows.filter_map(test_row))
}

fn loaded_verbose(test: &Test) -> Option<String> {
    let title =
        format!("Network Tests running with Congestion Tests ({:>20.20} Network Test)", test.kernel.info().title);
    table(&title, true, test_row(test).into_iter().chain(test.load.iter().filter_map(load_row)))
}

fn key_results(run: &Run) -> Option<String> {
    const RULE: &str = "+---------------------------------+----------------------+---------------------+\n";
    let impacts: Vec<(String, f64, f64)> = run
        .tests
        .iter()
        .filter(|test| test.phase == LoadState::Loaded)
        .filter_map(|test| {
            let calm = run.test(test.kernel, LoadState::Isolated)?;
            let factor = |of: fn(&Summary) -> f64, printed: fn(&Printed) -> f64| {
                let value = |test: &Test| test.summary.as_ref().map(of).or_else(|| test.printed.as_ref().map(printed));
                Some(test.direction.factor(value(calm)?, value(test)?)).filter(|factor| factor.is_finite())
            };
            // GPCNeT's own figures: means of passes, and percentiles of messages however few.
            Some((name(test), factor(|of| of.avg, |of| of.avg)?, factor(|of| of.percentiles.p99, |of| of.p99)?))
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
