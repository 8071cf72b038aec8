//! Every number of a report, as tables; those of studies also beside what the papers print of their systems.

use std::cmp::Reverse;

use hdrhistogram::Histogram;
use tailback_transport::Bytes;

use super::published;
use crate::analysis::compare::{self, Comparison, Side};
use crate::counters::is_telling;
use crate::kernel::Canary;
use crate::lab::LabSpec;
use crate::models::maxrate::{Model, Values};
use crate::output::counted::{self, Port};
use crate::output::load_test::{self, Detail, placement_lines};
use crate::output::summary;
use crate::result::{
    Answer, ContentionResult, CountersRecord, LabRecord, MachineRecord, MaxRateResult, ResultFile, TransportFacts,
    Verdict, distinct, held_up, steers_transports,
};
use crate::stats::{Direction, Statistic, quantile_ns};
use crate::text::{Cell, Table, duration, factor, figure, percent};

/// A row for every test of every run: idle, loaded, added, impact.
pub(super) fn answers(sides: &[Side<'_>]) -> String {
    let rows: Vec<(&Side<'_>, Answer<'_>)> =
        sides.iter().flat_map(|side| side.run.answers().map(move |answer| (side, answer))).collect();
    let several = sides.len() > 1;
    let statistics = distinct(rows.iter().map(|(_, answer)| answer.statistic));
    let by = statistics.iter().map(|of| {
        let tests = rows.iter().filter(|(_, answer)| answer.statistic == *of);
        let keys = distinct(tests.map(|(_, answer)| answer.test.kernel.info().key));
        let title = of.title().replace("time-", "time-weighted ");
        if statistics.len() > 1 { format!("{title} of {}", keys.join(", ")) } else { title }
    });
    let by = by.collect::<Vec<_>>().join("; ");
    let table =
        Table::of(rows)
            .column("test", |(_, answer)| &answer.test.title)
            .column_if(several, "run", |(side, _)| &side.label);
    let caption = format!("Every test: idle, loaded, time added, and impact with 95% interval ({by})");
    summary::columns(table, |(_, answer)| answer).done().html(&caption).replace("+-", "±")
}

/// How the impact of a run differs from placement to placement, and how much of the time was congested.
pub(super) fn spread(side: &Side<'_>) -> String {
    let rows: Vec<_> =
        side.run.answers().filter_map(|answer| Some((side.run.headline(answer.test.kernel)?, answer))).collect();
    load_test::spreads(&rows)
        .html(&format!("{}: spread of the impact, and share of time congested, idle and loaded", side.label))
}

/// Named values, several of a kind named once.
fn named_values(caption: &str, facts: impl IntoIterator<Item = (String, String)>) -> String {
    let mut last = String::new();
    let once = facts.into_iter().map(|(name, value)| {
        let shown = if name == last { String::new() } else { name.clone() };
        last = name;
        (shown, value)
    });
    Table::of(once)
        .column("what", |(name, _)| name.clone())
        .column("value", |(_, value)| value.clone())
        .done()
        .html(caption)
}

/// What was run: the facts every reader wants.
pub(super) fn run_facts(side: &Side<'_>) -> String {
    named_values(&side.label, main_facts(side))
}

fn main_facts(side: &Side<'_>) -> Vec<(String, String)> {
    let (file, transport) = (side.file, &side.run.transport);
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push((name.to_owned(), value));
        }
    };
    fact("imported from", file.imported.clone().unwrap_or_default());
    let network = |of: &TransportFacts| {
        let library = if of.library.is_empty() { String::new() } else { format!(" ({})", of.library) };
        format!("{}{library}", of.label())
    };
    fact("transport", network(transport));
    fact("congestors over", side.run.congestors_over.as_ref().map(network).unwrap_or_default());
    let by = if file.machine.is_some() { "" } else { "started by " };
    fact("ranks", format!("{} on {} nodes, {by}{}", file.system.ranks, file.system.nodes.len(), file.system.launcher));
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
        return facts;
    }
    if let Some(machine) = &file.machine {
        fact("simulated", format!("machine {}: {}; times are virtual", machine.name, machine.about));
    }
    if let Some(lab) = &file.lab {
        fact(
            "emulated cluster",
            format!("{} hosts on one machine, {}, {}", lab.hosts.len(), links(&lab.spec), lab.mode),
        );
    }
    match file.study_over(side.run) {
        Some(_) => fact("study", format!("{}, seed {}", file.command.word(), file.seed)),
        None => {
            let budget = duration(1e9 * file.plan.budget_s);
            fact("plan", format!("{}, {budget} per test, seed {}", file.plan.preset, file.seed));
        }
    }
    let of_runs = if file.runs.len() > 1 { format!(" for {} runs", file.runs.len()) } else { String::new() };
    fact("when", format!("{}, took {}{of_runs}", file.started, duration(1e9 * file.duration_s)));
    let failed = file.failed.as_ref().map(|why| format!("the plan was not completed: {why}"));
    fact("failed", failed.unwrap_or_default());
    fact("interrupted", if file.interrupted { "yes: the plan was not completed".into() } else { String::new() });
    facts
}

/// Where and by what it was run.
fn program_facts(file: &ResultFile) -> Vec<(String, String)> {
    let host = &file.system.host;
    let cpu = host.cpu.as_ref().map(|cpu| format!(", {cpu}")).unwrap_or_default();
    let git = file.build.git.as_ref().map(|git| format!(", commit {git}")).unwrap_or_default();
    let build = &file.build;
    vec![
        ("host of rank 0".into(), format!("{}, {}, {} cores{cpu}", host.name, host.kernel, host.cores)),
        ("program".into(), format!("Tailback {}{git}, {} build", build.version, build.profile)),
    ]
}

/// What the control of a lab says of every impact.
pub(super) fn causes(file: &ResultFile) -> Vec<String> {
    let Some(control) = file.lab.as_ref().and_then(|lab| lab.control.as_ref()) else { return Vec::new() };
    let of = |verdict: &Verdict| {
        let run = verdict.run.as_ref().map(|run| format!("{run}, ")).unwrap_or_default();
        let kind = control.kind.word();
        let title = &verdict.title;
        let (shaped, again) = (factor(verdict.shaped), factor(verdict.control));
        format!("Cause for {run}{title}: {} (impact {shaped}, in the {kind} control {again}).", verdict.cause)
    };
    control.verdicts.iter().map(of).collect()
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
    let degraded = match spec.degradations() {
        none if none.is_empty() => none,
        degraded => format!(", degraded on purpose: {degraded}"),
    };
    format!(
        "{leaves} leaf switches, links {link}, spine {spine}, queues {queue}{bands}{marks}, {control}, retransmission timeout at \
         least {rto} ms{degraded}"
    )
}

/// A detail of a transport as people write it: the unit that its name ends with stands behind the value.
fn detail(name: &str, value: &str) -> (String, String) {
    let number = value.parse::<f64>().ok();
    let (name, value) = match (name.strip_suffix("_mbit_per_s"), name.strip_suffix("_bytes"), number) {
        (Some(name), _, Some(mbit)) if mbit >= 1000.0 => (name, format!("{} Gbit/s", short(mbit / 1000.0))),
        (Some(name), _, Some(mbit)) => (name, format!("{} Mbit/s", short(mbit))),
        (_, Some(name), Some(bytes)) => (name, Bytes(bytes as u64).to_string()),
        _ => (name, value.to_owned()),
    };
    (name.replace('_', " "), value)
}

/// Everything else that was kept of how it was run.
pub(super) fn more_facts(side: &Side<'_>) -> String {
    let own = |(name, value): (&String, &String)| detail(name, value);
    // What routes of the lab say is in force there, and stands with its links.
    let in_lab = side.file.lab.is_some();
    let holds = |(name, _): &(&String, &String)| !(in_lab && *name == "default_congestion_control");
    let details = side.run.transport.details.iter().filter(holds).map(own);
    let under = side.run.congestors_over.iter().flat_map(|of| &of.details).filter(holds);
    let under = under.map(own).map(|(name, value)| (format!("congestors' {name}"), value));
    let notes = side.file.notes.iter().map(|note| ("note".to_owned(), note.clone()));
    let environment = side.file.system.environment.iter().filter(|(name, _)| steers_transports(name));
    let environment = environment.map(|(name, value)| (format!("variable {name}"), value.clone()));
    let program = if side.file.imported.is_some() { Vec::new() } else { program_facts(side.file) };
    let all = program.into_iter().chain(details).chain(under).chain(notes).chain(environment);
    named_values(&format!("{}: program, transport, notes and environment", side.label), all)
}

/// Every figure of every test of a run.
pub(super) fn tests(side: &Side<'_>) -> String {
    load_test::tests(side.run.tests.iter(), Detail::Report).html(&format!("{}: tests", side.label))
}

/// The samples on each ring, where they were kept: mean and 99th percentile, idle and under load.
pub(super) fn rings(side: &Side<'_>) -> String {
    let mut rows = Vec::new();
    for (placement, of) in side.run.placements.iter().enumerate() {
        for test in of.tests.iter().filter(|test| !test.rings.is_empty()) {
            let rings = test.rings.iter().enumerate();
            let decoded = rings.filter_map(|(ring, samples)| Some((ring, samples.decode().ok()?)));
            rows.extend(decoded.map(|(ring, samples)| (placement + 1, test, ring + 1, samples)));
        }
    }
    let mean = |direction: Direction, samples: &Histogram<u64>| direction.figure(samples.mean());
    let p99 = |direction: Direction, samples: &Histogram<u64>| direction.figure(quantile_ns(samples, 0.99));
    Table::of(rows.into_iter().filter(|(.., samples)| !samples.is_empty()))
        .column("test", |(_, test, ..)| test.kernel.info().key)
        .column("state", |(_, test, ..)| test.phase.word())
        .column("placement", |(placement, ..)| *placement)
        .column("ring", |(_, _, ring, _)| *ring)
        .column("samples", |(.., samples)| samples.len())
        .column("mean", move |(_, test, _, samples)| mean(test.kernel.info().direction, samples))
        .column("p99", move |(_, test, _, samples)| p99(test.kernel.info().direction, samples))
        .column("unit", |(_, test, ..)| test.kernel.info().direction.unit())
        .done()
        .html(&format!("{}: samples on each ring", side.label))
}

/// Every impact factor of a run.
pub(super) fn impacts(side: &Side<'_>) -> String {
    load_test::impacts(side.run, &Statistic::ALL, |_| true)
        .column("p99 over idle avg", |test| side.run.p99_over_average(test.kernel).map(factor))
        .done()
        .html(&format!("{}: impact by other statistics (time-weighted, per message), with 95% interval", side.label))
}

/// What the congestors of a run did.
pub(super) fn loads(side: &Side<'_>) -> String {
    let alone = side.run.congestors.iter().map(|load| ("alone", load));
    let all = alone.chain(load_test::beside_canaries(side.run));
    load_test::loads(all, true).html(&format!("{}: load delivered", side.label))
}

/// A comparison of all runs with the first.
pub(super) fn comparison(sides: &[Side<'_>]) -> (Comparison, String) {
    let comparison = compare::compare(sides, &compare::SHOWN);
    let mut tables = comparison.tables();
    tables.push((compare::CONDITIONS_TITLE, compare::conditions_table(&comparison.conditions)));
    tables.push((compare::VARIATION_TITLE, compare::variation_table(&comparison.variation)));
    let counters = compare::counters_table(&comparison.sides, &comparison.counters);
    tables.push((compare::COUNTERS_TITLE, counters));
    let shown = tables.iter().map(|(title, table)| table.html(title)).collect();
    (comparison, shown)
}

/// What congestion did to an application on published systems.
pub(super) fn published_applications() -> String {
    Table::of(published::applications())
        .column("system", |of| of.system.clone())
        .column("idle ms", |of| of.isolated_ms)
        .column("loaded ms", |of| of.loaded_ms)
        .column("impact", |of| factor(of.impact()))
        .done()
        .html("Published application impact (table 3 of the GPCNeT paper: Lulesh, an iteration)")
}

/// The systems that were measured.
pub(super) fn published_systems() -> String {
    Table::of(published::systems())
        .column("system", |of| of.name.clone())
        .column("site", |of| of.site.clone())
        .column("architecture", |of| of.architecture.clone())
        .column("processor", |of| of.processor.clone())
        .column("MPI library", |of| of.mpi_library.clone())
        .column("interconnect", |of| of.interconnect.clone())
        .column("topology", |of| of.topology.clone())
        .column("global to injection %", |of| of.global_percent.to_string())
        .column("nodes", |of| of.nodes.to_string())
        .column("ports per node", |of| of.ports_per_node.to_string())
        .done()
        .html("Published systems (table 1 of the GPCNeT paper)")
}

/// The published table, as impacts.
pub(super) fn published() -> String {
    Table::of(published::table())
        .column("system", |system| system.name.clone())
        .column("nodes", |system| system.nodes.to_string())
        .column("ranks per port", |system| system.ranks_per_port.to_string())
        .columns([Canary::Lat, Canary::BwSync, Canary::Allreduce], |table, kernel| {
            let key = kernel.info().key;
            table
                .column(format!("{key} avg"), |system| system.impact(kernel, Statistic::Avg).map(factor))
                .column(format!("{key} p99"), |system| system.impact(kernel, Statistic::P99).map(factor))
                .column(format!("{key} p99 over idle avg"), |system| system.p99_over_average(kernel).map(factor))
        })
        .done()
        .html("Published congestion impact (table 2 of the GPCNeT paper, SC 2019)")
}

/// What newer systems show, with and without load.
pub(super) fn newer() -> String {
    // As they were printed.
    let printed = |figure: f64| Cell::number(figure, |figure| format!("{figure:.1}"));
    Table::of(published::newer())
        .column("system", |of| of.system.clone())
        .column("nodes", |of| of.nodes.to_string())
        .column("ranks", |of| of.ranks.to_string())
        .column("test", |of| of.test.clone())
        .column("canary", |of| of.kernel.info().key)
        .column("idle avg", move |of| printed(of.isolated.0))
        .column("idle p99", move |of| printed(of.isolated.1))
        .column("idle p99.9", move |of| of.isolated_p999.map(printed))
        .column("loaded avg", move |of| Some(printed(of.loaded?.0)))
        .column("loaded p99", move |of| Some(printed(of.loaded?.1)))
        .column("unit", |of| of.kernel.info().direction.unit())
        .column("impact avg", |of| Some(factor(of.impacts()?.0)))
        .column("impact p99", |of| Some(factor(of.impacts()?.1)))
        .column("source", |of| of.source.clone())
        .done()
        .html("Published figures of newer systems (GPCNeT 1.3; each with its source)")
}

/// The extended max-rate model of every regime, and of the paper's system (its tables 1 and 2).
pub(super) fn published_fits(name: &str, result: &MaxRateResult) -> String {
    let caption = format!("{name}: extended max-rate model, beside Gropp, Olson and Samfass 2016, tables 1 and 2");
    let own = result.regimes.iter().filter_map(|regime| {
        let fit = regime.fit(Model::Extended)?;
        let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
        Some((name.to_owned(), format!("{smallest} to {largest}"), fit.values(), fit.error_sum))
    });
    let printed = published::fits().into_iter().map(|of| {
        let most = of.largest_bytes.map_or_else(String::new, |bytes| format!(", up to {}", Bytes(bytes)));
        (format!("{} (published)", of.system), format!("{}{most}", of.phase), of.values, of.error_sum)
    });
    let node = |values: &Values| values.node.map_or_else(|| "infinite".into(), |node| figure(node * 1e-6));
    Table::of(own.chain(printed))
        .column("system", |(system, ..)| system.clone())
        .column("messages", |(_, messages, ..)| messages.clone())
        .column("latency us", |(_, _, values, _)| values.latency * 1e6)
        .column("R_Cb MB/s", |(_, _, values, _)| values.first * 1e-6)
        .column("R_Ci MB/s", |(_, _, values, _)| values.further * 1e-6)
        .column("R_N MB/s", |(_, _, values, _)| node(values))
        .column("k that fills", |(_, _, values, _)| values.saturating_pairs())
        .column("error sum", |(.., error_sum)| *error_sum)
        .done()
        .html(&caption)
}

/// Errors of predicted times of the paper's graphs, here and there (its figure 4); nothing when none of them was measured.
pub(super) fn published_times(name: &str, result: &ContentionResult) -> String {
    let caption = format!("{name}: errors of predicted times in %, beside Martinasso and Méhaut 2011, figure 4");
    let rows = published::times().into_iter().filter_map(|of| {
        let graphs = result.graphs.iter().filter(|graph| graph.name == of.graph);
        let mut errors = graphs.flat_map(|graph| {
            let edges = graph.edges.iter().filter(|edge| format!("{}>{}", edge.source, edge.destination) == of.message);
            edges.filter_map(|edge| edge.error(graph.reference_s))
        });
        errors.next().map(|error| (of, error))
    });
    Table::of(rows)
        .column("graph and message", |(of, _)| format!("{}, {}", of.graph, of.message))
        .column("error here", |(_, error)| percent(*error))
        .column("error published", |(of, _)| percent(of.predicted_s / of.measured_s - 1.0))
        .done()
        .html(&caption)
}

/// The `most` rows in their order, and what the caption then says of the others.
fn limited<R>(rows: &mut Vec<R>, most: usize, which: &str) -> String {
    let all = rows.len();
    rows.truncate(most);
    if all > most { format!(", the {most} of {all} that {which} (the result file has more)") } else { String::new() }
}

fn most_held_up(ports: &mut Vec<Port<'_>>, most: usize) -> String {
    if ports.len() > most {
        ports.sort_by_key(|(_, port)| Reverse(held_up(port)));
    }
    limited(ports, most, "waited or dropped most")
}

/// The ports of a lab.
pub(super) fn emulated(name: &str, lab: &LabRecord, most: usize) -> String {
    let mut ports = counted::ports(&lab.phases);
    let limit = most_held_up(&mut ports, most);
    counted::emulated(ports, true, true).html(&format!("{name}: ports of the emulated network{limit}"))
}

/// The ports of a simulated machine.
pub(super) fn simulated(name: &str, machine: &MachineRecord, most: usize) -> String {
    let mut ports = counted::ports(&machine.phases);
    let limit = most_held_up(&mut ports, most);
    counted::simulated(ports, true).html(&format!("{name}: ports of the simulated machine {}{limit}", machine.name))
}

/// Every counter that moved, those that tell of congestion first, with its ratio to the idle phase.
pub(super) fn ratios(name: &str, counters: &CountersRecord, most: usize) -> String {
    let mut rows = counters.rows();
    rows.sort_by(|a, b| b.is_telling().cmp(&a.is_telling()).then(b.rise().total_cmp(&a.rise())));
    let limit = limited(&mut rows, most, "rose most");
    counted::rates(&rows).html(&format!("{name}: counters of the nodes, per second over all nodes{limit}"))
}

/// Counters that tell of congestion, phase by phase over the devices that have them: what the violins show.
pub(super) fn spreads(name: &str, counters: &CountersRecord, most: usize) -> String {
    let all = counters.telling().into_iter().flat_map(|(source, counter)| {
        let spreads = counters.spreads(&source, &counter).into_iter();
        spreads.map(move |of| (format!("{source} {counter}"), of))
    });
    Table::of(all.take(most).filter(|(_, of)| !of.devices.is_empty()))
        .column("counter", |(counter, _)| counter.clone())
        .column("phase", |(_, of)| of.phase.to_string())
        .column("devices", |(_, of)| of.devices.len())
        .column("median /s", |(_, of)| of.median)
        .column("mean /s", |(_, of)| of.mean)
        .column("over idle", |(_, of)| of.times_isolated.map(factor))
        .column("p95 /s", |(_, of)| of.p95)
        .column("min /s", |(_, of)| of.least().map(|device| device.1))
        .column("max /s", |(_, of)| of.most().map(|device| device.1))
        .column("max on", |(_, of)| of.most().map(|device| device.0.clone()))
        .done()
        .html(&format!("{name}: counters that indicate congestion, over the devices of all nodes"))
}

/// Counters that tell of congestion, node by node and phase by phase.
pub(super) fn by_node(name: &str, counters: &CountersRecord, most: usize) -> String {
    let devices = counters.phases.iter().flat_map(|phase| phase.devices.iter().map(move |of| (&phase.phase, of)));
    let mut rows: Vec<_> = devices
        .flat_map(|(phase, of)| of.counters.iter().map(move |(counter, value)| (phase, of, counter, *value)))
        .filter(|(_, _, counter, value)| *value > 0.0 && is_telling(counter))
        .collect();
    let left_out = rows.len().saturating_sub(most);
    let more = if left_out > 0 { format!(", {left_out} more in the result file") } else { String::new() };
    rows.truncate(most);
    Table::of(rows)
        .column("node", |(_, of, _, _)| of.name())
        .column("phase", |(phase, ..)| phase.to_string())
        .column("counter", |(_, of, counter, _)| format!("{} {counter}", of.source))
        .column("counted", |(.., value)| *value)
        .column("per second", |(_, of, _, value)| value / of.seconds)
        .done()
        .html(&format!("{name}: counters that indicate congestion, node by node{more}"))
}
