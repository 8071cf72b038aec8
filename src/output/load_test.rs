//! Tailback's own tables: what was run, idle, under load, what load adds and the impact with their intervals, the load
//! delivered.

use std::fmt::Write as _;

use super::counted::{amount, busiest, held_up_most, risen};
use super::{activity, burst, by_size, calibration, sweep, tuning};
use crate::analysis::compare;
use crate::engine::LoadState;
use crate::result::{
    Answer, Command, CongestorLoad, ControlRecord, CutShort, Headline, Node, NodeRole, ResultFile, Run, Test,
    TransportFacts, Verdict, at_point,
};
use crate::stats::{Direction, Statistic};
use crate::text::{Rows, Table, factor, figure, plural, section, whole_percent, with_interval, within, wrap};

pub(super) fn render(result: &ResultFile, verbose: bool) -> String {
    let mut out = banner(result);
    if result.is_by_size() {
        return out + &by_size(result) + &cut_short(result);
    }
    out += &result.calibration.as_ref().map(calibration::render).unwrap_or_default();
    if let Some(record) = &result.tuning {
        out += &section(tuning::PAIRS_TITLE, &tuning::pairs(record));
    }
    if let Some(record) = &result.sweep {
        out += &section(sweep::CURVES_TITLE, &sweep::curves(record));
    }
    let bursts = burst::all(result);
    out += &section(burst::EFFECTS_TITLE, &burst::effects(&bursts));
    out += &section("Load in bursts", &burst::loads(&bursts));
    for of in &bursts {
        out += &section(&format!("Latency since the onset of a burst: {}", burst::named(of)), &burst::curve(of.record));
    }
    let detail = if verbose { Detail::Verbose } else { Detail::Short };
    for run in &result.runs {
        heading(&mut out, result, run);
        out += &states(run, detail);
        if let Some(moments) = result.plan.open_loop() {
            out += &section(
                &format!("Open loop: iterations {moments}, timed from when they were due"),
                &schedules(result, run),
            );
        }
        impacts_of(&mut out, result, run);
        let alone = if result.command == Command::Congest { "Congestors" } else { "Congestors alone" };
        out += &section(alone, &loads(run.congestors.iter().map(|load| ("-", load)), false));
        out += &section("Load delivered while the canary measured", &loads(beside_canaries(run), false));
        explain_iterations(&mut out, run);
    }
    if let Some(lab) = &result.lab {
        out += &section("Drops and full queues of the emulated network", &busiest(lab));
        if let Some(control) = &lab.control {
            out += &section(control.kind.title(), &verdicts(control));
        }
    }
    if let Some(machine) = &result.machine {
        out += &section("Ports of the simulated network that were held up most, under load", &held_up_most(machine));
    }
    if let Some(counters) = &result.counters {
        out += &section("Counters of the nodes that tell of congestion, those that rose most first", &risen(counters));
    }
    if verbose {
        out += &section("What the machine did, over all ranks", &activity::table(&result.system.activity));
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
        Some(aggressors) => out += &section(compare::AGGRESSORS_TITLE, &aggressors.table()),
        None if result.runs.len() > 1 => side_by_side(&mut out, result, verbose),
        None => {}
    }
    out + &cut_short(result)
}

/// What stands over every table of a simulated network; nothing over those of others.
pub(super) fn banner(file: &ResultFile) -> String {
    let Some(machine) = &file.machine else { return String::new() };
    let virtual_s = machine.virtual_s.map(|s| format!(", {} ms of virtual time", figure(1e3 * s))).unwrap_or_default();
    format!(
        "SIMULATED on the machine {} ({}){virtual_s}: figures of a model, on virtual time. No such network was measured.\n\n",
        machine.name, machine.about
    )
}

/// The figures of every canary, size by size, under what is to be said of their networks.
fn by_size(result: &ResultFile) -> String {
    let mut out = String::new();
    let mut told = Vec::new();
    for run in &result.runs {
        let network = run.transport.label();
        if !told.contains(&network) {
            heading(&mut out, result, run);
            told.push(network);
        }
    }
    out + &by_size::of(result).iter().map(|of| section(&of.title(), &of.table())).collect::<String>()
}

fn heading(out: &mut String, result: &ResultFile, run: &Run) {
    let system = &result.system;
    if let Some(program) = &result.imported {
        let (ranks, nodes) = (system.ranks, system.nodes.len());
        let _ = writeln!(out, "Imported from {program}: {ranks} ranks on {nodes} nodes");
        // What was lost of it, too.
        result.notes.iter().for_each(|note| *out += &wrap(&format!("Note: {note}"), 80));
        out.push('\n');
        return;
    }
    let network = |of: &TransportFacts| {
        let library = if of.library.is_empty() { String::new() } else { format!(" ({})", of.library) };
        let protocol = of.protocol.as_ref().map(|name| format!(", {name} protocol")).unwrap_or_default();
        format!("{}{library}{protocol}", of.network())
    };
    let under = run.congestors_over.as_ref().map(|of| format!(", congestors over {}", network(of))).unwrap_or_default();
    let beside = run.beside.as_ref().map(|load| format!(", beside {load}")).unwrap_or_default();
    let setting = run.setting.as_ref().map(|setting| format!(", set to {setting}")).unwrap_or_default();
    let point = at_point(&run.point);
    let _ = writeln!(
        out,
        "Tailback {} over {}{under}{beside}{setting}{point}: {} ranks on {} nodes, seed {}",
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

/// What is to be said of a job that did not come to its end.
fn cut_short(result: &ResultFile) -> String {
    let said = |of: CutShort<'_>| format!("{}: phases that were not complete are left out.\n", of.sentence());
    result.cut_short().map(said).unwrap_or_default()
}

/// The figures of a run's tests, by state.
fn states(run: &Run, detail: Detail) -> String {
    let of = |(title, phase)| section(title, &tests(run.tests.iter().filter(|test| test.phase == phase), detail));
    [
        ("Idle, samples of all placements pooled", LoadState::Isolated),
        ("Under load, samples of all placements pooled", LoadState::Loaded),
    ]
    .map(of)
    .concat()
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
        (what, format!("{:>3} nodes: {list}{rest}", names.len()))
    };
    let lines: Vec<(String, String)> = roles.iter().map(line).collect();
    let width = lines.iter().map(|(what, _)| what.len()).max().unwrap_or(0).max(10);
    lines.into_iter().map(|(what, told)| format!("{what:<width$} {told}")).collect()
}

/// How much is told of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    Short,
    Verbose,
    /// All of it, states in one table.
    Report,
}

/// The figures of tests.
pub(crate) fn tests<'a>(tests: impl Iterator<Item = &'a Test>, detail: Detail) -> Table {
    let tests: Vec<&Test> = tests.collect();
    let collectives = tests.iter().any(|test| test.collective.is_some());
    let (verbose, report) = (detail >= Detail::Verbose, detail == Detail::Report);
    let none = |test: &Test| test.summary.is_none() && test.printed.is_none();
    let title = |test: &Test| {
        let name = test.title.clone();
        if none(test) { format!("{name}: no samples within the budget") } else { name }
    };
    Table::of(tests)
        .column("test", |test| title(test))
        .column_if(report, "state", |test| test.phase.word())
        .column_if(verbose, "best", |test| test.extremes().0)
        .columns(Statistic::columns(), |table, of| table.column(of.title(), |test| test.figure(of)))
        .column("worst", |test| test.extremes().1)
        .column("unit", |test| &test.unit)
        .column_if(collectives, "algbw", |test| Some(test.collective?.algorithm_mib_per_s))
        .column_if(collectives, "busbw", |test| Some(test.collective?.bus_mib_per_s))
        .column("iterations", |test| test.summary.as_ref()?.iterations)
        .column_if(report, "GPCNeT's avg", |test| Some(test.summary.as_ref()?.avg))
        .column_if(verbose, "worst batch", |test| Some(test.summary.as_ref()?.worst_batch_avg))
        .column_if(verbose, "samples", |test| Some(test.summary.as_ref()?.samples))
        .column_if(verbose, "passes", |test| Some(test.summary.as_ref()?.passes))
        .column_if(verbose, "wall s", |test| test.summary.as_ref().map(|_| format!("{:.2}", test.wall_s)))
        .done()
}

/// How open loops kept their schedule; one that the network did not carry measured itself.
fn schedules(file: &ResultFile, run: &Run) -> Table {
    let pace = file.longer_pace();
    Table::of(run.tests.iter().filter_map(|test| Some((test, test.schedule?))))
        .column("open loop", |(test, _)| &test.title)
        .column("state", |(test, _)| test.phase.word())
        .column("iterations", |(_, kept)| kept.iterations)
        .column("late", |(_, kept)| format!("{:.1}%", 100.0 * kept.late_share()))
        .column("by up to ms", |(_, kept)| 1e3 * kept.worst_s)
        .column("lost", |(_, kept)| kept.lost)
        .column("", |(_, kept)| {
            pace.as_ref()
                .filter(|_| kept.is_overloaded())
                .map_or_else(String::new, |pace| format!("overloaded: needs {pace}"))
        })
        .done()
}

/// What the congestors did while canaries measured, by canary.
pub(crate) fn beside_canaries(run: &Run) -> impl Iterator<Item = (&'static str, &CongestorLoad)> {
    run.tests.iter().flat_map(|test| test.load.iter().map(|load| (test.kernel.info().key, load)))
}

/// What congestors delivered, and meanwhile what was measured.
pub(crate) fn loads<'a>(rows: impl Iterator<Item = (&'static str, &'a CongestorLoad)>, report: bool) -> Table {
    Table::of(rows)
        .column("congestor", |(_, load)| &load.title)
        .column("during", |(canary, _)| *canary)
        .column("ranks", |(_, load)| load.ranks)
        .column("delivered", |(_, load)| amount(load.delivered_bytes))
        .column_if(report, "seconds", |(_, load)| load.seconds)
        .column("total MiB/s", |(_, load)| load.delivered_mib_per_s)
        .column("minimum", |(_, load)| load.least_mib_per_s)
        .column("MiB/s/iteration p50", |(_, load)| Some(load.summary.as_ref()?.percentiles.p50))
        .column_if(report, "p99", |(_, load)| Some(load.summary.as_ref()?.percentiles.p99))
        .done()
}

/// A rank's iteration faster than all ranks together looks like a mistake to whoever does not know why it is none.
fn explain_iterations(out: &mut String, run: &Run) {
    let mut loads = run.congestors.iter().chain(run.tests.iter().flat_map(|test| &test.load));
    if loads.any(|load| load.summary.as_ref().is_some_and(|summary| summary.percentiles.p50 > load.delivered_mib_per_s))
    {
        *out += "MiB/s/iteration p50: of one rank, in its typical iteration. It can be more than all ranks delivered:\n\
                 most iterations end in buffers at once, and the few that wait for the network take most of the time.\n\n";
    }
}

fn verdicts(control: &ControlRecord) -> Table {
    let time = |verdict: &Verdict, ns: Option<f64>| {
        let (unit, per_unit) = match verdict.kernel.info().direction {
            _ if verdict.kernel.is_application() => ("s", 1e9),
            Direction::Latency => ("us", 1e3),
            Direction::Bandwidth => ("us/MiB", 1e3),
        };
        ns.map(|ns| format!("{} {unit}", figure(ns / per_unit)))
    };
    let share = |verdict: &Verdict| {
        let within = verdict
            .control_share_interval
            .map(|of| format!(" [{}, {}]", whole_percent(of.low), whole_percent(of.high)));
        verdict.control_share.map(|share| whole_percent(share) + &within.unwrap_or_default())
    };
    let several = control.verdicts.iter().any(|verdict| verdict.run.is_some());
    let kind = control.kind.word();
    Table::of(&control.verdicts)
        .column_if(several, "run", |verdict| verdict.run.clone().unwrap_or_default())
        .column("test", |verdict| &verdict.title)
        .column("impact", |verdict| factor(verdict.shaped))
        .column(kind, |verdict| factor(verdict.control))
        .column("time added", |verdict| time(verdict, verdict.added_ns))
        .column(kind, |verdict| time(verdict, verdict.control_added_ns))
        .column("share", |verdict| share(verdict))
        .column("comes from", |verdict| verdict.cause.to_string())
        .done()
}

/// How many times worse tests are under load, by each of these figures; those that have any.
pub(crate) fn impacts<'a>(run: &'a Run, statistics: &[Statistic], wanted: impl Fn(&Test) -> bool) -> Rows<&'a Test> {
    let known = |test: &&Test| statistics.iter().any(|&of| run.impact(test.kernel, of).is_some());
    Table::of(run.tests.iter().filter(|test| test.phase == LoadState::Loaded && wanted(test)).filter(known))
        .column("test", |test| &test.title)
        .columns(statistics, |table, &of| table.column(of.title(), |test| run.impact(test.kernel, of)))
}

/// What load does in a run: the answer of every test, how far to trust it, and the impact by other statistics.
fn impacts_of(out: &mut String, result: &ResultFile, run: &Run) {
    let answers = run.answers().filter_map(|answer| Some((run.headline(answer.test.kernel)?, answer)));
    let (applications, kernels): (Vec<_>, Vec<_>) = answers.partition(|(_, of)| of.test.kernel.is_application());
    headline(out, result, &applications, "mean of an application's repetitions");
    headline(out, result, &kernels, "time-weighted p90 of latencies, bytes over time of bandwidths");
    // An application has one figure, which stands above.
    let others: Vec<Statistic> = Statistic::columns().collect();
    let table = impacts(run, &others, |test| !test.kernel.is_application()).done();
    *out += &section("Impact by other statistics: time-weighted, then per message (-: too few iterations)", &table);
    if run.tests.iter().any(|test| test.printed.is_some()) {
        *out += "No intervals: these figures are another program's, rounded as it printed them.\n\n";
    }
}

/// Idle, loaded, added and impact: what every view shows of a test, in this order.
pub(crate) fn answer_columns<R>(table: Rows<R>, answer: impl Fn(&R) -> &Answer<'_> + Copy) -> Rows<R> {
    table
        .column("idle", move |row| answer(row).idle)
        .column("loaded", move |row| answer(row).loaded)
        .column("unit", move |row| answer(row).test.unit.clone())
        .column("added", move |row| added(answer(row)))
        .column("impact", move |row| {
            let answer = answer(row);
            if answer.judgement.is_reportable() {
                answer.impact.map(with_interval)
            } else {
                Some("not reportable".into())
            }
        })
}

/// The time that load adds, with its interval; nothing where it is not to be reported.
fn added(answer: &Answer<'_>) -> Option<String> {
    let added = answer.added.filter(|_| answer.judgement.is_reportable())?;
    Some(format!("{} {}", within(added.value, added.interval, figure), answer.added_unit()))
}

/// The answers of tests, and all that tells how far to trust them.
fn headline(out: &mut String, result: &ResultFile, of: &[(&Headline, Answer<'_>)], by: &str) {
    let over = match of.iter().map(|(headline, _)| headline.spread.placements).max() {
        None => return,
        Some(1) => "this placement only: another may lie far outside".to_owned(),
        Some(2) => "2 placements, too few for an interval".to_owned(),
        Some(count) => format!("[95% interval over {count} placements]"),
    };
    let table = Table::of(of).column("test", |(_, answer)| &answer.test.title);
    let table = answer_columns(table, |(_, answer)| answer).done();
    let _ = writeln!(
        out,
        "Congestion impact: what load adds, and times worse ({by})\n{over}; {} placement, seed {}\n{}",
        result.plan.placement,
        result.seed,
        table.text()
    );
    let mut warnings: Vec<String> = of.iter().flat_map(|(headline, answer)| warnings(answer, headline)).collect();
    for (_, answer) in of {
        warnings.extend(answer.test.load.iter().filter_map(|load| weak(answer.test, load)));
    }
    for warning in &warnings {
        let _ = writeln!(out, "  {warning}");
    }
    if !warnings.is_empty() {
        out.push('\n');
    }
    *out += &section("Spread of the impact, and share of time congested (above twice the idle median)", &spreads(of));
}

/// How the impact differs from placement to placement, and how much of the time it was felt.
pub(crate) fn spreads(of: &[(&Headline, Answer<'_>)]) -> Table {
    let bounds = |low: f64, high: f64| format!("{} - {}", factor(low), factor(high));
    let range = |of: &Headline| match of.spread.placements {
        0 | 1 => "this one only".to_owned(),
        _ => bounds(of.spread.lowest, of.spread.highest),
    };
    Table::of(of)
        .column("test", |(_, answer)| &answer.test.title)
        .column("placements", |(headline, _)| range(headline))
        .column("next placement (95%)", |(headline, _)| headline.spread.prediction.map(|of| bounds(of.low, of.high)))
        .column("idle", |(headline, _)| headline.congested.map(|of| whole_percent(of.isolated)))
        .column("loaded", |(headline, _)| headline.congested.map(|of| whole_percent(of.loaded)))
        .done()
}

/// What is to be said of one answer.
fn warnings(answer: &Answer<'_>, headline: &Headline) -> Vec<String> {
    let title = answer.test.title.clone();
    let why = answer.judgement.why_not().map(|why| format!("{title}: not reportable: {why}."));
    let kinds = headline.kinds.iter().map(|kind| {
        let (name, of) = (&kind.kind, kind.spread);
        let times = plural(of.placements, "placement");
        format!("{title}, {name} ({times}): {}.", with_interval(of.into()))
    });
    why.into_iter().chain(kinds).collect()
}

/// What is to be said of a load that was not there all along.
fn weak(test: &Test, load: &CongestorLoad) -> Option<String> {
    let (title, key) = (&load.title, test.kernel.info().key);
    if load.least_mib_per_s.is_some_and(|least| least < 0.01 * load.delivered_mib_per_s) {
        let ms = 1e3 * load.slice_s.unwrap_or_default();
        return Some(format!(
            "{title} stopped for {ms:.0} ms or more while {key} measured: its load was not there all along."
        ));
    }
    (load.steady == Some(false)).then(|| format!("{title} had not come up yet when {key} began to measure."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

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

    #[test]
    fn an_imported_average_stands_under_avg() {
        let log = crate::output::Format::Gpcnet.render(&synthetic::file("mpi", None, 5.0), false);
        let shown = render(&crate::import::gpcnet(&log).unwrap()[0].file().unwrap(), false);
        let impacts: Vec<&str> =
            shown.lines().skip_while(|line| !line.starts_with("Impact by other")).skip(1).collect();
        let end = |line: &str, cell: &str| line.find(cell).map(|at| at + cell.len());
        for line in &impacts[1..=3] {
            let factors: Vec<&str> = line.split_whitespace().filter(|cell| cell.ends_with('x')).collect();
            let ends = factors.iter().zip([line.find(factors[0]), line.rfind(factors[1])]);
            let ends: Vec<Option<usize>> = ends.map(|(cell, at)| at.map(|at| at + cell.len())).collect();
            assert_eq!(ends, [end(impacts[0], "avg"), end(impacts[0], "p99")], "{shown}");
        }
    }
}
