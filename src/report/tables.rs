//! Every number of a report, as tables.

use tailback_transport::Bytes;

use super::published;
use crate::compare::{self, Comparison, Side};
use crate::kernel::Canary;
use crate::lab::LabSpec;
use crate::output::load_test::{self, Detail, placement_lines};
use crate::result::{TransportFacts, Verdict};
use crate::stats::Statistic;
use crate::text::{Table, factor};

/// Impacts of every run: the answer, before any detail.
pub(super) fn key_results(sides: &[Side<'_>], kernels: &[Canary]) -> String {
    let all = || kernels.iter().flat_map(|&kernel| compare::SHOWN.map(|of| (kernel, of)));
    let known = |side: &&Side<'_>| all().any(|(kernel, of)| side.run.impact(kernel, of).is_some());
    Table::of(sides.iter().filter(known))
        .column("run", |side| &side.label)
        .columns(all(), |table, (kernel, of)| {
            table.column(format!("{} {}", kernel.info().key, of.key()), |side| side.run.impact(kernel, of))
        })
        .done()
        .html("Congestion impact: times worse under load, with 95% interval")
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

/// What was run: the facts every reader wants, then everything else that was kept.
pub(super) fn facts(side: &Side<'_>) -> [String; 2] {
    [named_values(&side.label, main_facts(side)), more_facts(side)]
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
    facts
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

fn more_facts(side: &Side<'_>) -> String {
    let own = |(name, value): (&String, &String)| (name.replace('_', " "), value.clone());
    let details = side.run.transport.details.iter().map(own);
    let under = side.run.congestors_over.iter().flat_map(|of| &of.details);
    let under = under.map(own).map(|(name, value)| (format!("congestors' {name}"), value));
    let notes = side.file.notes.iter().map(|note| ("note".to_owned(), note.clone()));
    let environment = side.file.system.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let all = details.chain(under).chain(notes).chain(environment);
    named_values(&format!("{}: transport, notes and environment", side.label), all)
}

/// Every figure of every test of a run.
pub(super) fn tests(side: &Side<'_>) -> String {
    load_test::tests(side.run.tests.iter(), Detail::Report).html(&format!("{}: tests", side.label))
}

/// Every impact factor of a run.
pub(super) fn impacts(side: &Side<'_>) -> String {
    load_test::impacts(side.run, &Statistic::ALL, |_| true)
        .column("p99 over isolated avg", |test| side.run.p99_over_average(test.kernel).map(factor))
        .done()
        .html(&format!("{}: congestion impact, times worse under load, with 95% interval", side.label))
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
    let counters = compare::counters_table(&comparison.sides, &comparison.counters);
    tables.push((compare::COUNTERS_TITLE, counters));
    let shown = tables.iter().map(|(title, table)| table.html(title)).collect();
    (comparison, shown)
}

/// What congestion did to an application on published systems.
pub(super) fn published_applications() -> String {
    Table::of(published::applications())
        .column("system", |of| of.system.clone())
        .column("isolated ms", |of| of.isolated_ms)
        .column("loaded ms", |of| of.loaded_ms)
        .column("impact", |of| factor(of.impact()))
        .done()
        .html("Published application impact (table 3 of the GPCNeT paper: Lulesh, an iteration)")
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
                .column(format!("{key} p99 over isolated avg"), |system| system.p99_over_average(kernel).map(factor))
        })
        .done()
        .html("Published congestion impact (table 2 of the GPCNeT paper, SC 2019)")
}
