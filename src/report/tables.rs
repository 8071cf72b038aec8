//! Every number of a report, as tables.

use tailback_transport::Bytes;

use super::html::HtmlTable;
use super::published;
use crate::compare::{self, Comparison, Side, State};
use crate::engine::Phase;
use crate::kernel::Canary;
use crate::lab::LabSpec;
use crate::output::placement_lines;
use crate::result::{CongestorLoad, Test, TransportFacts, Verdict};
use crate::stats::{Statistic, Summary};
use crate::text::{factor, figure, with_interval};

/// Impacts of every run: the answer, before any detail.
pub(super) fn key_results(sides: &[Side<'_>], kernels: &[Canary]) -> HtmlTable {
    let mut header = vec!["run".to_owned()];
    let names = compare::SHOWN.map(Statistic::key);
    header.extend(kernels.iter().flat_map(|kernel| names.map(|of| format!("{} {of}", kernel.info().key))));
    let mut table = HtmlTable::new("Congestion impact: times worse under load, with 95% interval", header);
    for side in sides {
        let factors = kernels.iter().flat_map(|&kernel| {
            compare::SHOWN.map(|of| side.run.impact(kernel, of).map_or_else(|| "–".into(), with_interval))
        });
        let cells: Vec<String> = factors.collect();
        if cells.iter().any(|cell| cell != "–") {
            table.row([side.label.clone()].into_iter().chain(cells));
        }
    }
    table
}

/// What was run: the facts every reader wants, then everything else that was kept.
pub(super) fn facts(side: &Side<'_>) -> [HtmlTable; 2] {
    let (file, transport) = (side.file, &side.run.transport);
    let mut main = HtmlTable::new(&side.label, ["what", "value"]);
    let mut last = String::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            // Several of a kind are named once.
            let shown = if name == last { String::new() } else { name.to_owned() };
            name.clone_into(&mut last);
            main.row([shown, value]);
        }
    };
    fact("imported from", file.imported.clone().unwrap_or_default());
    let network = |of: &TransportFacts| {
        let library = if of.library.is_empty() { String::new() } else { format!(" ({})", of.library) };
        format!("{}{library}", of.label())
    };
    fact("transport", network(transport));
    fact("congestors over", side.run.congestors_over.as_ref().map(network).unwrap_or_default());
    fact(
        "ranks",
        format!("{} on {} nodes, started by {}", file.system.ranks, file.system.nodes.len(), file.system.launcher),
    );
    if let (Some(ports), Some(ranks)) = (file.system.ports, file.ranks_per_port()) {
        let (of_node, how) = (ports.per_node, ports.known_by.phrase());
        fact("ranks per port", format!("{}, with {of_node} a node, {how}", short(ranks)));
    }
    let roles = placement_lines(&file.system.nodes, file.command);
    let counts =
        roles.iter().filter_map(|line| Some(line.split_once(" nodes:")?.0.split_whitespace().collect::<Vec<_>>()));
    fact("nodes by role", counts.map(|words| words.join(" ")).collect::<Vec<_>>().join(", "));
    if file.imported.is_some() {
        file.notes.iter().for_each(|note| fact("note", note.clone()));
        return [main, more_facts(side)];
    }
    if let Some(machine) = &file.machine {
        fact("simulated", format!("machine {}: {}; times are virtual", machine.name, machine.about));
    }
    if let Some(lab) = &file.lab {
        fact(
            "emulated cluster",
            format!("{} hosts on one machine, {}, {}", lab.hosts.len(), links(&lab.spec), lab.mode),
        );
        let own = |verdict: &&Verdict| verdict.run.as_ref().is_none_or(|run| *run == side.run.label());
        if let Some(control) = &lab.control {
            for verdict in control.verdicts.iter().filter(own) {
                let (title, kind) = (&verdict.title, control.kind.word());
                let (shaped, again) = (factor(verdict.shaped), factor(verdict.control));
                fact("cause", format!("{title}: {} (impact {shaped}, in the {kind} control {again})", verdict.cause));
            }
        }
    }
    if let Some(why) = file.why() {
        why.seen.into_iter().for_each(|line| fact("why", line));
        why.to_try.into_iter().for_each(|line| fact("what may show more", line));
    }
    match file.study_over(side.run) {
        Some(_) => fact("study", format!("{}, seed {}", file.command.word(), file.seed)),
        None => fact("plan", format!("{}, {} s per test, seed {}", file.plan.preset, file.plan.budget_s, file.seed)),
    }
    let of_runs = if file.runs.len() > 1 { format!(" for {} runs", file.runs.len()) } else { String::new() };
    fact("when", format!("{}, took {:.1} s{of_runs}", file.started, file.duration_s));
    let host = &file.system.host;
    let cpu = host.cpu.as_ref().map(|cpu| format!(", {cpu}")).unwrap_or_default();
    fact("host of rank 0", format!("{}, {}, {} cores{cpu}", host.name, host.kernel, host.cores));
    let git = file.build.git.as_ref().map(|git| format!(", commit {git}")).unwrap_or_default();
    fact("program", format!("Tailback {}{git}, {} build", file.build.version, file.build.profile));
    fact("interrupted", if file.interrupted { "yes: the plan was not completed".into() } else { String::new() });
    [main, more_facts(side)]
}

/// A number without the zeros behind its point.
pub(super) fn short(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the network of a lab was.
fn links(spec: &LabSpec) -> String {
    let leaves = spec.leaves;
    if !spec.shaped {
        return format!("{leaves} leaf switches, links unshaped");
    }
    let (link, spine, queue) = (spec.link_rate, spec.spine_rate(), Bytes(spec.queue_bytes));
    let (control, rto) = (&spec.congestion_control, spec.rto_min_ms);
    let bands = match spec.bands.len() {
        0 => String::new(),
        bands => format!(" in {} bands", bands + 1),
    };
    let marks = spec.mark_above().map(|above| format!(" that mark above {}", Bytes(above))).unwrap_or_default();
    format!(
        "{leaves} leaf switches, links {link}, spine {spine}, queues {queue}{bands}{marks}, {control}, {rto} ms to resend at least"
    )
}

fn more_facts(side: &Side<'_>) -> HtmlTable {
    let mut table = HtmlTable::new(&format!("{}: transport, notes and environment", side.label), ["what", "value"]);
    let details = side.run.transport.details.iter().map(|(name, value)| (name.replace('_', " "), value.clone()));
    let under = side.run.congestors_over.iter().flat_map(|of| &of.details);
    let under = under.map(|(name, value)| (format!("congestors' {}", name.replace('_', " ")), value.clone()));
    let notes = side.file.notes.iter().map(|note| ("note".to_owned(), note.clone()));
    let environment = side.file.system.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    details.chain(under).chain(notes).chain(environment).for_each(|(name, value)| table.row([name, value]));
    table
}

const FIGURES: [&str; 16] = [
    "test",
    "state",
    "unit",
    "time-p50",
    "time-p75",
    "time-p90",
    "avg",
    "GPCNeT's avg",
    "best",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "worst",
    "samples",
    "passes",
];

fn figures(test: &Test) -> Vec<String> {
    let known = |value: Option<f64>| value.map_or_else(|| "–".into(), figure);
    let of = |statistic| known(test.figure(statistic));
    let summary = test.summary.as_ref();
    let mut cells: Vec<String> = Statistic::TIMES.map(of).into();
    cells.extend([of(Statistic::Avg), known(summary.map(|summary| summary.avg)), known(summary.map(|s| s.best))]);
    cells.extend([Statistic::P50, Statistic::P90, Statistic::P99, Statistic::P999].map(of));
    cells.push(known(summary.map(|summary| summary.worst)));
    let count = |of: fn(&Summary) -> u64| summary.map_or_else(|| "–".into(), |summary| of(summary).to_string());
    cells.extend([count(|summary| summary.samples), count(|summary| summary.passes)]);
    cells
}

/// Every figure of every test of a run.
pub(super) fn tests(side: &Side<'_>) -> HtmlTable {
    let mut table = HtmlTable::new(&format!("{}: tests", side.label), FIGURES);
    for test in &side.run.tests {
        let start = [test.title.clone(), test.phase.word().to_owned(), test.unit.clone()];
        table.row(start.into_iter().chain(figures(test)));
    }
    table
}

/// Every impact factor of a run.
pub(super) fn impacts(side: &Side<'_>) -> HtmlTable {
    let mut table = HtmlTable::new(
        &format!("{}: congestion impact, times worse under load, with 95% interval", side.label),
        ["test"].into_iter().chain(Statistic::ALL.map(Statistic::key)).chain(["p99 over isolated avg"]),
    );
    for kernel in side.kernels() {
        let of = Statistic::ALL.map(|of| side.run.impact(kernel, of).map_or_else(|| "–".into(), with_interval));
        let title = side.run.test(kernel, Phase::Loaded).map(|test| test.title.clone());
        if let Some(title) = title.filter(|_| of.iter().any(|cell| cell != "–")) {
            let over_average = side.run.p99_over_average(kernel).map_or_else(|| "–".into(), factor);
            table.row([title].into_iter().chain(of).chain([over_average]));
        }
    }
    table
}

/// What the congestors of a run did.
pub(super) fn loads(side: &Side<'_>) -> HtmlTable {
    let header =
        ["congestor", "while", "ranks", "delivered MiB", "seconds", "MiB/s in all", "MiB/s/iteration p50", "p99"];
    let mut table = HtmlTable::new(&format!("{}: load delivered", side.label), header);
    let alone = side.run.congestors.iter().map(|load| ("alone", load));
    let loaded = side.run.tests.iter().flat_map(|test| test.load.iter().map(|load| (test.kernel.info().key, load)));
    for (canary, load) in alone.chain(loaded) {
        let CongestorLoad { title, ranks, delivered_bytes, seconds, delivered_mib_per_s, summary, .. } = load;
        let of =
            |value: fn(&Summary) -> f64| summary.as_ref().map_or_else(|| "–".into(), |summary| figure(value(summary)));
        table.row([
            title.clone(),
            canary.to_owned(),
            ranks.to_string(),
            figure(*delivered_bytes as f64 / 1_048_576.0),
            figure(*seconds),
            figure(*delivered_mib_per_s),
            of(|summary| summary.p50),
            of(|summary| summary.p99),
        ]);
    }
    table
}

/// What each load does to each victim.
pub(super) fn aggressors(of: &compare::Aggressors) -> HtmlTable {
    let header = ["victim".to_owned()].into_iter().chain(of.loads.iter().cloned());
    let mut table = HtmlTable::new(compare::AGGRESSORS_TITLE, header);
    for victim in &of.victims {
        let cells = victim.impacts.iter().map(|of| of.map_or_else(|| "–".to_owned(), with_interval));
        table.row([victim.title.clone()].into_iter().chain(cells));
    }
    table
}

/// A comparison of all runs with the first.
pub(super) fn comparison(sides: &[Side<'_>]) -> (Comparison, Vec<HtmlTable>) {
    let comparison = compare::compare(sides, &compare::SHOWN);
    let table = |state: State| {
        let mut header = vec!["test".to_owned(), "figure".into(), "unit".into(), comparison.sides[0].clone()];
        for side in &comparison.sides[1..] {
            header.extend([side.clone(), "times worse".into(), "verdict".into()]);
        }
        let mut table = HtmlTable::new(compare::title(state), header);
        for row in comparison.rows.iter().filter(|row| row.state == state) {
            let mut cells = vec![row.title.clone(), row.statistic.key().into(), row.unit.clone()];
            cells.extend(row.cells.iter().enumerate().flat_map(|(at, cell)| columns(at, cell)));
            table.row(cells);
        }
        table
    };
    let mut tables: Vec<HtmlTable> = State::ALL.map(table).into_iter().collect();
    if !comparison.conditions.is_empty() {
        let title = "Quiet, in the wild and loaded: figures of whole jobs";
        let mut table = HtmlTable::new(title, compare::CONDITION_COLUMNS);
        comparison.conditions.iter().for_each(|row| table.row(row.cells("–")));
        tables.push(table);
    }
    tables.extend(comparison.figures.chunk_by(|a, b| a.group == b.group).map(|group| figure_table(&comparison, group)));
    let mut counted = HtmlTable::new(compare::COUNTERS_TITLE, compare::counter_columns(&comparison.sides));
    comparison.counters.iter().for_each(|row| counted.row(row.cells("–")));
    tables.push(counted);
    (comparison, tables)
}

/// Figures of a study on every side.
fn figure_table(comparison: &Comparison, rows: &[compare::FigureRow]) -> HtmlTable {
    let mut header = vec!["figure".to_owned(), "unit".into(), comparison.sides[0].clone()];
    for side in &comparison.sides[1..] {
        header.extend([side.clone(), "times worse".into(), "verdict".into()]);
    }
    let mut table = HtmlTable::new(&rows[0].group, header);
    for row in rows {
        let start = [row.name.clone(), row.unit.clone()];
        table.row(start.into_iter().chain(row.cells.iter().enumerate().flat_map(|(at, cell)| columns(at, cell))));
    }
    table
}

fn columns(at: usize, cell: &compare::Cell) -> Vec<String> {
    let value = cell.value.map_or_else(|| "–".into(), figure);
    if at == 0 {
        return vec![value];
    }
    let ratio = cell.ratio.map_or_else(|| "–".into(), with_interval);
    vec![value, ratio, cell.verdict.map_or("–", compare::Verdict::word).into()]
}

/// MPI's impact taken apart, and how near the raw runs are to it.
pub(super) fn attribution(of: &compare::Attribution) -> [HtmlTable; 2] {
    let header = ["test", "MPI impact"].into_iter().chain(compare::SHARE_COLUMNS).chain(["finding"]);
    let mut shares = HtmlTable::new(&format!("Attribution of the impact of {}", of.mpi), header);
    for share in &of.shares {
        let start = [share.title.clone(), factor(share.mpi)];
        shares.row(start.into_iter().chain(share.columns()).chain([share.sentence()]));
    }
    let mut distances =
        HtmlTable::new("Distance of raw runs from MPI, in decades of slowdown", ["raw run", "distance"]);
    of.distances.iter().for_each(|of| distances.row([of.side.clone(), format!("{:.3}", of.distance)]));
    [shares, distances]
}

/// What congestion did to an application on published systems.
pub(super) fn published_applications() -> HtmlTable {
    let header = ["system", "isolated ms", "loaded ms", "impact"];
    let mut table =
        HtmlTable::new("Published application impact (table 3 of the GPCNeT paper: Lulesh, an iteration)", header);
    for of in published::applications() {
        table.row([of.system.clone(), figure(of.isolated_ms), figure(of.loaded_ms), factor(of.impact())]);
    }
    table
}

/// The published table, as impacts.
pub(super) fn published() -> HtmlTable {
    let header = [
        "system",
        "nodes",
        "ranks per port",
        "lat avg",
        "lat p99",
        "lat p99 over isolated avg",
        "bw-sync avg",
        "bw-sync p99",
        "bw-sync p99 over isolated avg",
        "allreduce avg",
        "allreduce p99",
        "allreduce p99 over isolated avg",
    ];
    let mut table = HtmlTable::new("Published congestion impact (table 2 of the GPCNeT paper, SC 2019)", header);
    for system in published::table() {
        let mut cells = vec![system.name.clone(), system.nodes.to_string(), system.ranks_per_port.to_string()];
        for kernel in [Canary::Lat, Canary::BwSync, Canary::Allreduce] {
            let of = |statistic| system.impact(kernel, statistic).map_or_else(|| "–".into(), factor);
            let over_average = system.p99_over_average(kernel).map_or_else(|| "–".into(), factor);
            cells.extend([of(Statistic::Avg), of(Statistic::P99), over_average]);
        }
        table.row(cells);
    }
    table
}
