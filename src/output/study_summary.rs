//! The first screen of a study, of a test of the idle network and of a load without canaries: what was found, in at most a
//! dozen lines of 80 characters. All else is in the tables (`-v`, `show`) and in the report.

use tailback_transport::Bytes;

use super::summary::{simulated, unindented};
use super::{by_size, map, maxrate};
use crate::analysis::Kind;
use crate::analysis::map::MapView;
use crate::models::beff::Beff;
use crate::models::hpcc::Hpcc;
use crate::result::{
    CongestorLoad, ContentionResult, EdgeResult, Estimate, GraphResult, MapResult, MaxRateResult, ModelResults,
    ResultFile, Run, Test, distinct,
};
use crate::stats::{Direction, Interval, Statistic};
use crate::text::{Table, duration, factor, figure, plural, rate, whole_percent, wrap};

/// Rows beyond these are in the tables.
const MOST_ROWS: usize = 7;

/// Text for a terminal of so many columns.
pub(super) fn render(file: &ResultFile, columns: usize) -> String {
    let mut out = String::new();
    let studies = file.studies();
    let several = studies.len().max(file.runs.len()) > 1;
    let mut part = |run: &Run, (verdict, table): (String, Table)| {
        let over = if several { format!("Over {}: ", run.label()) } else { String::new() };
        out += &wrap(&format!("{over}{verdict}"), columns);
        // Networks side by side: one line each.
        if !several {
            out += unindented(&table).trim_start_matches('\n');
        }
    };
    for (run, models) in &studies {
        of_study(models).into_iter().for_each(|told| part(run, told));
    }
    if file.is_by_size() {
        for of in by_size::of(file) {
            out += &wrap(&of.title(), columns);
            out += &unindented(&of.table());
        }
    } else if studies.is_empty() {
        file.runs.iter().for_each(|run| part(run, of_figures(file, run)));
    }
    let cut_short = file.cut_short().map(|of| format!("{}: what was not complete is left out", of.sentence()));
    let last = [simulated(file), cut_short, Some(format!("{}. Tables: -v", extent(file)))];
    last.into_iter().flatten().for_each(|line| out += &wrap(&line, columns));
    out
}

fn of_study(models: &ModelResults) -> Vec<(String, Table)> {
    let told = [
        models.maxrate.as_ref().map(of_maxrate),
        models.contention.as_ref().map(of_contention),
        models.beff.as_ref().map(of_beff),
        models.hpcc.as_ref().map(of_hpcc),
        models.map.as_ref().map(of_map),
    ];
    told.into_iter().flatten().collect()
}

/// A map: what is slow, and where.
fn of_map(found: &MapResult) -> (String, Table) {
    /// With what is said above and below, a dozen lines in all.
    const MOST: usize = 5;
    let view = MapView::of(found);
    (map::verdict(found, &view), map::slowest(found, &view, MOST))
}

/// What was run.
fn extent(file: &ResultFile) -> String {
    let label = |run: &Run| if run.size_bytes.is_some() { run.transport.label() } else { run.label() };
    let over = distinct(file.runs.iter().map(|run| label(run).trim_end_matches(", eager").to_owned()));
    let (nodes, ranks) = (plural(file.system.nodes.len(), "node"), plural(file.system.ranks, "rank"));
    match &file.imported {
        Some(program) => format!("Imported from {program}: {nodes}, {ranks}"),
        None => {
            format!(
                "{nodes}, {ranks} over {}; {}, seed {}",
                over.join(" and "),
                duration(1e9 * file.duration_s),
                file.seed
            )
        }
    }
}

/// Max-rate: how many ranks fill a node, and the model of each range of sizes.
fn of_maxrate(found: &MaxRateResult) -> (String, Table) {
    let per_s = |value: f64| rate(value / 1_048_576.0);
    let table = Table::of(&found.regimes)
        .column("messages", |of| format!("{} to {}", Bytes(of.smallest_bytes as u64), Bytes(of.largest_bytes as u64)))
        .column("model", |of| Some(of.best_fit()?.model.name()))
        .column("latency", |of| Some(estimate(of.best_fit()?.latency_s, |value| duration(1e9 * value))))
        .column("rate of a pair", |of| Some(estimate(of.best_fit()?.pair_bytes_per_s, per_s)))
        .column("of a node", |of| Some(estimate(of.best_fit()?.node_bytes_per_s?, per_s)));
    let between = found.spans().into_iter().rfind(|span| span.kind == Kind::Rate).map(|span| {
        let ((least, slowest), (most, fastest)) = (&span.least, &span.most);
        let (least, most, unit) = (figure(*least), figure(*most), span.unit);
        format!(" Between nodes, {}: {least} ({slowest}) to {most} {unit} ({fastest}).", span.figure)
    });
    (maxrate::answer(found).trim_end().to_owned() + &between.unwrap_or_default(), table.done())
}

/// A parameter with half of its interval's width, or without a value where the data do not determine one.
fn estimate(of: Estimate, shown: impl Fn(f64) -> String) -> String {
    match (of.low, of.high) {
        (Some(low), Some(high)) if low > 0.0 => within_percent(of.value, Some(Interval { low, high }), shown),
        (Some(low), None) if low > 0.0 => format!(">{}", shown(low)),
        _ => "undetermined".into(),
    }
}

fn within_percent(value: f64, interval: Option<Interval>, shown: impl Fn(f64) -> String) -> String {
    let around = interval.map(|of| format!(" +-{:.0}%", 50.0 * (of.high - of.low) / value)).unwrap_or_default();
    shown(value) + &around
}

/// Contention: how far the model is from what was measured; the predictions where nothing was.
fn of_contention(found: &ContentionResult) -> (String, Table) {
    let error = |graph: &GraphResult, edge: &EdgeResult| edge.error(graph.reference_s).map(f64::abs);
    let errors =
        |graph: &GraphResult| -> Vec<f64> { graph.edges.iter().filter_map(|edge| error(graph, edge)).collect() };
    let slowest = |graph: &GraphResult| graph.edges.iter().max_by(|a, b| a.predicted.total_cmp(&b.predicted)).cloned();
    let name = |edge: &EdgeResult| format!("{}>{}", edge.source, edge.destination);
    let largest = |errors: &[f64]| errors.iter().copied().reduce(f64::max);
    let mean = |errors: &[f64]| (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64);
    let all: Vec<f64> = found.graphs.iter().flat_map(errors).collect();
    let rows = Table::of(found.graphs.iter().take(MOST_ROWS))
        .column("graph", |graph| &graph.name)
        .column("messages", |graph| graph.edges.len())
        .column("alone", |graph| duration(1e9 * graph.reference_s))
        .column("slowest", |graph| slowest(graph).map(|edge| name(&edge)))
        .column("predicted", |graph| slowest(graph).map(|edge| factor(edge.predicted)))
        .column_if(!all.is_empty(), "measured", |graph| Some(factor(slowest(graph)?.measured_s? / graph.reference_s)))
        .column_if(!all.is_empty(), "mean |error|", |graph| mean(&errors(graph)).map(whole_percent))
        .column_if(!all.is_empty(), "largest", |graph| largest(&errors(graph)).map(whole_percent));
    let more = found.graphs.len().saturating_sub(MOST_ROWS);
    let more = if more > 0 { format!(" ({more} more graphs: -v)") } else { String::new() };
    let verdict = match (mean(&all), largest(&all)) {
        (Some(mean), Some(largest)) => format!(
            "The model's times are off by {} on average, {} at most, over {} messages{more}",
            whole_percent(mean),
            whole_percent(largest),
            all.len()
        ),
        _ => format!("Predicted, not measured: the slowest message of each graph, as a multiple of one alone{more}"),
    };
    (verdict, rows.done())
}

/// Effective bandwidth: what is left of a ping-pong when all send at once.
fn of_beff(found: &Beff) -> (String, Table) {
    let (latency, bandwidth) = (found.ping_pong_latency_us, found.ping_pong_bandwidth_gb_per_s);
    let verdict = format!(
        "With all ranks sending at once (random rings), latency is {} and bandwidth {} of the mean ping-pong's",
        factor(found.random_ring_latency_us / latency.avg),
        factor(found.random_ring_bandwidth_gb_per_s / bandwidth.avg)
    );
    let interval = |name: &str| found.intervals.get(name).copied();
    let us = |value: f64, name: &str| within_percent(value, interval(name), |value| duration(1e3 * value));
    let gb = |value: f64, name: &str| within_percent(value, interval(name), |value| rate(1e9 * value / 1_048_576.0));
    let rows = [
        (
            "ping-pong, best pair",
            us(latency.min, "MinPingPongLatency_usec"),
            gb(bandwidth.max, "MaxPingPongBandwidth_GBytes"),
        ),
        (
            "ping-pong, mean",
            us(latency.avg, "AvgPingPongLatency_usec"),
            gb(bandwidth.avg, "AvgPingPongBandwidth_GBytes"),
        ),
        (
            "ping-pong, worst pair",
            us(latency.max, "MaxPingPongLatency_usec"),
            gb(bandwidth.min, "MinPingPongBandwidth_GBytes"),
        ),
        (
            "natural ring",
            us(found.natural_ring_latency_us, "NaturallyOrderedRingLatency_usec"),
            gb(found.natural_ring_bandwidth_gb_per_s, "NaturallyOrderedRingBandwidth_GBytes"),
        ),
        (
            "random rings",
            us(found.random_ring_latency_us, "RandomlyOrderedRingLatency_usec"),
            gb(found.random_ring_bandwidth_gb_per_s, "RandomlyOrderedRingBandwidth_GBytes"),
        ),
    ];
    let table = Table::of(rows)
        .column("", |(name, _, _)| *name)
        .column("latency", |(_, latency, _)| latency.clone())
        .column("bandwidth per rank", |(_, _, bandwidth)| bandwidth.clone());
    (verdict, table.done())
}

/// HPC Challenge: whether the results are right, and the figures of merit.
fn of_hpcc(found: &Hpcc) -> (String, Table) {
    let failed: Vec<&str> = found.checks.iter().filter(|of| !of.passed()).map(|of| &*of.test).collect();
    let run = found.run.map(|run| format!(", {} run", run.word())).unwrap_or_default();
    let checked = match (failed.is_empty(), found.checks.len()) {
        (_, 0) => "results were not checked".to_owned(),
        (true, checks) => format!("all {checks} checks of the results passed"),
        (false, checks) => format!("{} OF {checks} CHECKS FAILED: {}", failed.len(), failed.join(", ")),
    };
    let small = match found.too_small().len() {
        0 => "",
        _ => "; TOO SMALL TO REPORT (-v says what)",
    };
    let verdict = format!("HPC Challenge{run}: {checked}{small}");
    let number = |name: &str, unit: &str| found.figure(name).map(|value| format!("{} {unit}", in_digits(value)));
    let rows = [
        ("HPL", ["HPL_Tflops", "", ""], "Tflop/s"),
        ("DGEMM", ["", "StarDGEMM_Gflops", "SingleDGEMM_Gflops"], "Gflop/s"),
        ("STREAM triad", ["", "StarSTREAM_Triad", "SingleSTREAM_Triad"], "GB/s"),
        ("PTRANS", ["PTRANS_GBs", "", ""], "GB/s"),
        ("RandomAccess", ["MPIRandomAccess_GUPs", "StarRandomAccess_GUPs", "SingleRandomAccess_GUPs"], "GUP/s"),
        ("FFT", ["MPIFFT_Gflops", "StarFFT_Gflops", "SingleFFT_Gflops"], "Gflop/s"),
        ("random rings", ["", "RandomlyOrderedRingBandwidth_GBytes", ""], "GB/s"),
        ("", ["", "RandomlyOrderedRingLatency_usec", ""], "us"),
    ];
    let measured = rows.into_iter().filter(|(_, names, _)| names.iter().any(|name| found.figure(name).is_some()));
    let table = Table::of(measured)
        .column("", |(test, _, _)| *test)
        .column("all ranks together", |(_, names, unit)| number(names[0], unit))
        .column("each, all at once", |(_, names, unit)| number(names[1], unit))
        .column("one rank alone", |(_, names, unit)| number(names[2], unit));
    (verdict, table.done())
}

/// Small rates keep their digits.
fn in_digits(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { format!("{value:.3e}") } else { figure(value) }
}

/// The idle network's figures, or what congestors deliver where nothing else was measured.
fn of_figures(file: &ResultFile, run: &Run) -> (String, Table) {
    let link = file.node_link_mib_per_s(run);
    if run.tests.is_empty() {
        return of_loads(&run.congestors, link);
    }
    let value = |test: &Test, of: f64| match test.direction {
        Direction::Latency => duration(1e3 * of),
        Direction::Bandwidth => rate(of),
    };
    // Ranks of a node share its link.
    let ranks = file.system.ranks as f64 / file.system.nodes.len().max(1) as f64;
    let share = |test: &Test| {
        let rate = test.figure(Statistic::Avg).filter(|_| test.direction == Direction::Bandwidth)?;
        Some(whole_percent(rate * ranks / link?))
    };
    let shown = [Statistic::Avg, Statistic::P99];
    let collectives = run.tests.iter().any(|test| test.collective.is_some());
    let table = Table::of(&run.tests)
        .column("", |test| &test.title)
        .columns(shown, |table, of| table.column(of.title(), |test| Some(value(test, test.figure(of)?))))
        .column("worst", |test| Some(value(test, test.extremes().1?)))
        .column_if(collectives, "busbw", |test| test.collective.map(|of| rate(of.bus_mib_per_s)))
        .column_if(link.is_some(), "of the link", |test| share(test));
    let beside = run.beside.as_ref().map(|load| format!(" beside {load}")).unwrap_or_default();
    (format!("Measured without load{beside}; bandwidths are those of a rank"), table.done())
}

fn of_loads(loads: &[CongestorLoad], link: Option<f64>) -> (String, Table) {
    // A job that failed before anything was measured.
    if loads.is_empty() {
        return ("Nothing was measured".into(), Table::default());
    }
    let total: f64 = loads.iter().map(|load| load.delivered_mib_per_s).sum();
    let table = Table::of(loads)
        .column("congestor", |load| &load.title)
        .column("ranks", |load| load.ranks)
        .column("delivered", |load| rate(load.delivered_mib_per_s))
        .column("minimum", |load| load.least_mib_per_s.map(rate))
        .column("per rank", |load| rate(load.delivered_mib_per_s / load.ranks.max(1) as f64));
    let link = link.map(|link| format!("; the link of a node carries {}", rate(link))).unwrap_or_default();
    (format!("The congestors delivered {} together{link}", rate(total)), table.done())
}
