//! Tailback's own tables: what was run, isolated, under load, the impact with its interval, the load delivered.

use std::fmt::Write as _;

use super::calibration;
use super::counters::risen;
use super::impacts::{COLUMNS, impacts, section};
use super::ports::{amount, busiest, held_up_most};
use super::simulated::banner;
use crate::compare;
use crate::engine::Phase;
use crate::result::{Command, CongestorLoad, ControlRecord, Node, NodeRole, ResultFile, Run, Test, TransportFacts};
use crate::stats::{Direction, Statistic};
use crate::text::{Table, factor, figure};

pub(super) fn render(result: &ResultFile, verbose: bool) -> String {
    let mut out = banner(result);
    out += &result.calibration.as_ref().map(calibration::render).unwrap_or_default();
    for run in &result.runs {
        heading(&mut out, result, run);
        section(&mut out, "Isolated", &tests(run, Phase::Isolated, verbose));
        section(&mut out, "Under load", &tests(run, Phase::Loaded, verbose));
        schedules(&mut out, result, run);
        impacts(&mut out, result, run);
        let alone = if result.command == Command::Congest { "Congestors" } else { "Congestors alone" };
        section(&mut out, alone, &loads(run.congestors.iter().map(|load| ("-", load))));
        let under = run.tests.iter().flat_map(|test| test.load.iter().map(|load| (test.kernel.info().key, load)));
        section(&mut out, "Load delivered while the canary measured", &loads(under));
        explain_iterations(&mut out, run);
    }
    if let Some(lab) = &result.lab {
        section(&mut out, "Drops and full queues of the emulated network", &busiest(lab));
        if let Some(control) = &lab.control {
            section(&mut out, control.kind.title(), &verdicts(control));
        }
    }
    if let Some(machine) = &result.machine {
        section(&mut out, "Ports of the simulated network that were held up most, under load", &held_up_most(machine));
    }
    if let Some(counters) = &result.counters {
        section(
            &mut out,
            "Counters of the nodes that tell of congestion, those that rose most first",
            &risen(counters),
        );
    }
    if let Some(why) = result.why() {
        out += "Why\n";
        why.seen.iter().for_each(|line| out += &format!("  {line}\n"));
        if !why.to_try.is_empty() {
            out += "  What may show more:\n";
            why.to_try.iter().for_each(|line| out += &format!("  - {line}\n"));
        }
        out.push('\n');
    }
    match compare::Aggressors::of(&compare::sides::of_file(result)) {
        Some(aggressors) => out += &aggressors.render(),
        None if result.runs.len() > 1 => side_by_side(&mut out, result, verbose),
        None => {}
    }
    if result.interrupted {
        out += "Interrupted: phases that were not complete are left out.\n";
    }
    out
}

fn heading(out: &mut String, result: &ResultFile, run: &Run) {
    let system = &result.system;
    if let Some(program) = &result.imported {
        let (ranks, nodes) = (system.ranks, system.nodes.len());
        let _ = writeln!(out, "Imported from {program}: {ranks} ranks on {nodes} nodes\n");
        return;
    }
    let network = |of: &TransportFacts| {
        let library = if of.library.is_empty() { String::new() } else { format!(" ({})", of.library) };
        let protocol = of.protocol.as_ref().map(|name| format!(", {name} protocol")).unwrap_or_default();
        format!("{}{library}{protocol}", of.network())
    };
    let under = run.congestors_over.as_ref().map(|of| format!(", congestors over {}", network(of))).unwrap_or_default();
    let beside = run.beside.as_ref().map(|load| format!(", beside {load}")).unwrap_or_default();
    let _ = writeln!(
        out,
        "Tailback {} over {}{under}{beside}: {} ranks on {} nodes, seed {}",
        result.build.version,
        network(&run.transport),
        system.ranks,
        system.nodes.len(),
        result.seed
    );
    let over = std::iter::once(&run.transport).chain(&run.congestors_over);
    let rails = over.filter_map(TransportFacts::rails_text);
    for line in rails.chain(placement_lines(&placed(result, run), result.command)) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
}

/// The nodes with what they did in a run on its first placement: runs of one job may have different loads.
fn placed(result: &ResultFile, run: &Run) -> Vec<Node> {
    let mut nodes = result.system.nodes.clone();
    if let Some(first) = run.placements.first().filter(|first| first.roles.len() == nodes.len()) {
        nodes.iter_mut().zip(&first.roles).for_each(|(node, roles)| node.roles.clone_from(roles));
    }
    nodes
}

/// The runs of one job beside each other, and what that says about network, library and protocol.
fn side_by_side(out: &mut String, result: &ResultFile, verbose: bool) {
    let sides = compare::sides::of_file(result);
    let statistics: &[Statistic] = if verbose { &Statistic::ALL } else { &compare::SHOWN };
    let comparison = compare::compare(&sides, statistics);
    if !comparison.rows.is_empty() {
        let _ = writeln!(out, "Runs side by side\n\n{}", compare::render(&comparison));
    }
}

/// Who does what, a line per role.
pub fn placement_lines(nodes: &[Node], command: Command) -> Vec<String> {
    let mut roles: Vec<(NodeRole, Vec<&str>)> = Vec::new();
    for node in nodes {
        for &role in &node.roles {
            match roles.iter_mut().find(|(known, _)| *known == role) {
                Some((_, names)) => names.push(&node.name),
                None => roles.push((role, vec![&node.name])),
            }
        }
    }
    if command == Command::Network {
        return Vec::new();
    }
    let order = |role: &NodeRole| match role {
        NodeRole::Canary => (0, ""),
        NodeRole::Congestor(kernel) => (1, kernel.info().key),
        NodeRole::Idle => (2, ""),
    };
    roles.sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
    let line = |(role, names): &(NodeRole, Vec<&str>)| {
        let what = match role {
            NodeRole::Canary => "canary".to_owned(),
            NodeRole::Congestor(kernel) => kernel.info().key.to_owned(),
            NodeRole::Idle => "idle".to_owned(),
        };
        const SHOWN: usize = 6;
        let more = names.len().saturating_sub(SHOWN);
        let list = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(" ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{what:<10} {:>3} nodes: {list}{rest}", names.len())
    };
    roles.iter().map(line).collect()
}

fn tests(run: &Run, phase: Phase, verbose: bool) -> Table {
    let mut header = vec![
        "test",
        "time-p50",
        "time-p75",
        "time-p90",
        "avg",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "worst",
        "unit",
        "iterations",
    ];
    if verbose {
        header.splice(1..1, ["best"]);
        header.extend(["worst batch", "samples", "passes", "wall s"]);
    }
    let mut table = Table::new(header);
    for test in run.tests.iter().filter(|test| test.phase == phase) {
        table.row(row(test, verbose));
    }
    table
}

fn row(test: &Test, verbose: bool) -> Vec<String> {
    let Some(summary) = &test.summary else {
        return printed(test, verbose)
            .unwrap_or_else(|| vec![test.title.clone(), "no samples within the budget".into()]);
    };
    let mut cells = vec![test.title.clone()];
    if verbose {
        cells.push(figure(summary.best));
    }
    let carried = |statistic| summary.get(statistic).map_or_else(|| "-".into(), figure);
    cells.extend(COLUMNS.map(carried));
    cells.push(figure(summary.worst));
    cells.push(test.unit.clone());
    cells.push(summary.iterations.map_or_else(|| "-".into(), |count| count.to_string()));
    if verbose {
        cells.push(figure(summary.worst_batch_avg));
        cells.extend([summary.samples.to_string(), summary.passes.to_string(), format!("{:.2}", test.wall_s)]);
    }
    cells
}

/// The row of a test of which only another program's figures are known.
fn printed(test: &Test, verbose: bool) -> Option<Vec<String>> {
    let of = test.printed?;
    let known = |value: Option<f64>| value.map_or_else(|| "-".into(), figure);
    let (best, worst) = test.direction.best_and_worst(of.min, of.max);
    let mut cells = vec![test.title.clone()];
    if verbose {
        cells.push(known(best));
    }
    cells.extend(COLUMNS.map(|statistic| known(test.figure(statistic))));
    cells.extend([known(worst), test.unit.clone()]);
    Some(cells)
}

/// How paced canaries kept their schedule; one that the network did not carry measured itself.
fn schedules(out: &mut String, result: &ResultFile, run: &Run) {
    let Some(pace_s) = result.plan.pace_s else { return };
    let mut table = Table::new(["paced canary", "state", "iterations", "late", "by up to ms", ""]);
    for test in &run.tests {
        let Some(kept) = test.schedule else { continue };
        table.row([
            test.title.clone(),
            test.phase.word().to_owned(),
            kept.iterations.to_string(),
            format!("{:.1}%", 100.0 * kept.late_share()),
            figure(1e3 * kept.worst_s),
            if kept.is_overloaded() { "overloaded: a longer pace is needed".into() } else { String::new() },
        ]);
    }
    section(
        out,
        &format!("Schedule: an iteration every {} ms, timed from when it was due", figure(1e3 * pace_s)),
        &table,
    );
}

fn loads<'a>(rows: impl Iterator<Item = (&'a str, &'a CongestorLoad)>) -> Table {
    let mut table =
        Table::new(["congestor", "while", "ranks", "delivered", "MiB/s in all", "least", "MiB/s/iteration p50"]);
    for (canary, load) in rows {
        table.row([
            load.title.clone(),
            canary.to_owned(),
            load.ranks.to_string(),
            amount(load.delivered_bytes),
            figure(load.delivered_mib_per_s),
            load.least_mib_per_s.map_or_else(|| "-".into(), figure),
            load.summary.as_ref().map_or_else(|| "-".into(), |summary| figure(summary.p50)),
        ]);
    }
    table
}

/// A rank's iteration faster than all ranks together looks like a mistake to whoever does not know why it is none.
fn explain_iterations(out: &mut String, run: &Run) {
    let mut loads = run.congestors.iter().chain(run.tests.iter().flat_map(|test| &test.load));
    if loads.any(|load| load.summary.as_ref().is_some_and(|summary| summary.p50 > load.delivered_mib_per_s)) {
        *out += "MiB/s/iteration p50: of one rank, in its typical iteration. It can be more than all ranks delivered:\n\
                 most iterations end in buffers at once, and the few that wait for the network take most of the time.\n\n";
    }
}

fn verdicts(control: &ControlRecord) -> Table {
    let several = control.verdicts.iter().any(|verdict| verdict.run.is_some());
    let kind = control.kind.word();
    let columns = ["test", "impact", kind, "time added", kind, "share", "comes from"];
    let mut table = Table::new(several.then_some("run").into_iter().chain(columns));
    for verdict in &control.verdicts {
        let time = |ns: Option<f64>| {
            let (unit, per_unit) = match verdict.kernel.info().direction {
                _ if verdict.kernel.is_application() => ("s", 1e9),
                Direction::Latency => ("us", 1e3),
                Direction::Bandwidth => ("us/MiB", 1e3),
            };
            ns.map_or_else(|| "-".into(), |ns| format!("{} {unit}", figure(ns / per_unit)))
        };
        let percent = |part: f64| format!("{:.0}%", 100.0 * part);
        let share = match (verdict.control_share, verdict.control_share_interval) {
            (Some(share), Some(of)) => format!("{} [{}, {}]", percent(share), percent(of.low), percent(of.high)),
            (Some(share), None) => percent(share),
            _ => "-".into(),
        };
        let cells = [
            verdict.title.clone(),
            factor(verdict.shaped),
            factor(verdict.control),
            time(verdict.added_ns),
            time(verdict.control_added_ns),
            share,
            verdict.cause.to_string(),
        ];
        let run = several.then(|| verdict.run.clone().unwrap_or_default());
        table.row(run.into_iter().chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::synthetic;

    #[test]
    fn iterations_that_beat_the_total_are_explained_and_others_are_not() {
        let mut file = synthetic::file("tcp", None, 3.0);
        let loads = |file: &mut ResultFile, rate: f64| {
            let run = &mut file.runs[0];
            let loads = run.congestors.iter_mut().chain(run.tests.iter_mut().flat_map(|test| &mut test.load));
            loads.for_each(|load| load.delivered_mib_per_s = rate);
        };
        loads(&mut file, 1e9);
        assert!(!render(&file, false).contains("MiB/s/iteration p50:"));
        loads(&mut file, 0.1);
        assert!(render(&file, false).contains("MiB/s/iteration p50:"));
    }
}
