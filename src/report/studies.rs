//! What studies found: their plots and tables.

use tailback_transport::Bytes;

use super::beside;
use super::html::HtmlTable;
use super::plot::{self, Plot};
use crate::models::beff::Beff;
use crate::models::hpcc::{Good, Hpcc, NAMES, ratios};
use crate::models::maxrate::{Model, medians};
use crate::output::{answer, between_cells, estimate, number, span_cells};
use crate::result::{ContentionResult, EdgeResult, MaxRateResult, ModelResults, RegimeResult, ResultFile, Run};
use crate::text::{figure, percent, within};

/// Graphs that are drawn; a sweep over hundreds of random ones is for the tables.
const MOST_GRAPHS: usize = 12;
/// What a study found over each of its networks, which are named where they are several.
pub(super) fn named<'a>(name: &str, file: &'a ResultFile) -> Vec<(String, &'a ModelResults)> {
    let studies = file.studies();
    let several = studies.len() > 1;
    let label = |run: &Run| if several { format!("{name} ({})", run.label()) } else { name.to_owned() };
    studies.into_iter().map(|(run, models)| (label(run), models)).collect()
}

/// Every plot of a study.
pub(super) fn plots(name: &str, file: &ResultFile) -> Vec<Plot> {
    named(name, file).iter().flat_map(|(name, models)| plots_of(name, models)).collect()
}

fn plots_of(name: &str, models: &ModelResults) -> Vec<Plot> {
    let mut all = Vec::new();
    if let Some(maxrate) = &models.maxrate {
        all.extend(plot::sizes(name, maxrate));
        all.extend(plot::maxrate::rates(name, maxrate));
        all.extend(plot::spread(name, maxrate));
        all.extend(plot::maxrate::errors(name, maxrate));
    }
    if let Some(contention) = &models.contention {
        for (at, graph) in contention.graphs.iter().enumerate().take(MOST_GRAPHS) {
            all.extend(plot::contention::graph(name, at + 1, graph));
            all.extend(plot::contention::times(name, at + 1, graph));
        }
        all.extend(plot::scatter(name, contention));
        all.extend(plot::contention::errors(name, contention));
    }
    if let Some(beff) = &models.beff {
        all.extend(plot::beff(name, beff));
    }
    all
}

/// The finding of a study in a sentence, where it has one.
pub(super) fn finding(file: &ResultFile) -> Option<String> {
    let studies = file.studies();
    let told = |(run, models): &(&Run, &ModelResults)| {
        let finding = finding_of(models, file.system.ranks)?;
        Some(if studies.len() > 1 { format!("{}: {finding}", run.label()) } else { finding })
    };
    let findings: Vec<String> = studies.iter().filter_map(told).collect();
    (!findings.is_empty()).then(|| findings.join(" "))
}

fn finding_of(models: &ModelResults, ranks: usize) -> Option<String> {
    let graphs = |result: &ContentionResult| {
        let errors =
            result.graphs.iter().flat_map(|graph| graph.edges.iter().map(|edge| edge.error(graph.reference_s)));
        let errors: Vec<f64> = errors.flatten().map(f64::abs).collect();
        let mean = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
        let count = result.graphs.len();
        let of = if count == 1 { "the graph".to_owned() } else { format!("{count} graphs") };
        mean.is_finite().then(|| format!("The model errs by {mean:.1}% on average over the messages of {of}."))
    };
    let worst = |beff: &Beff| {
        let (latency, bandwidth) = (beff.ping_pong_latency_us.max, beff.ping_pong_bandwidth_gb_per_s.min);
        let random = beff.random_ring_bandwidth_gb_per_s;
        format!(
            "The worst pair has {} us and {} GB/s; in random rings each process has {} GB/s.",
            figure(latency),
            figure(bandwidth),
            figure(random)
        )
    };
    let answers = models.maxrate.as_ref().map(|of| answer(of).trim().to_owned());
    let answers = answers.or_else(|| graphs(models.contention.as_ref()?)).or_else(|| models.beff.as_ref().map(worst));
    answers.or_else(|| models.hpcc.as_ref().map(|found| balanced(found, ranks)))
}

/// What HPC Challenge says in a sentence; first of all whether it is to be believed.
fn balanced(found: &Hpcc, ranks: usize) -> String {
    let failed: Vec<&str> = found.failed().map(|check| check.test.as_str()).collect();
    if !failed.is_empty() {
        return format!("The check of {} FAILED: these figures are not to be trusted.", failed.join(", "));
    }
    let balance = found.balance(ranks);
    let bytes = balance.and_then(|of| of.communication_byte_per_kflop);
    match (balance, bytes) {
        (Some(of), Some(bytes)) => format!(
            "HPL runs at {} Gflop/s a rank; for 1000 operations there are {} bytes in random rings.",
            figure(of.hpl_gflops_per_rank),
            figure(bytes)
        ),
        _ => format!("{} figures of HPC Challenge.", found.figures.len()),
    }
}

/// Figures, checks and balance of HPC Challenge.
fn hpcc(name: &str, found: &Hpcc, ranks: usize) -> Vec<HtmlTable> {
    let mut figures = HtmlTable::new(&format!("{name}: figures"), ["figure", "value", "unit", "HPCC's name"]);
    for of in NAMES {
        if let Some(value) = found.figure(of.theirs) {
            let shown = if of.good == Good::Neither { figure(value) } else { number(value) };
            figures.row([of.ours, &shown, of.unit, of.theirs]);
        }
    }
    let mut checks = HtmlTable::new(&format!("{name}: checks"), ["test", "what", "value", "limit", "result"]);
    for check in &found.checks {
        let value = check.value.map_or_else(|| "not a number".into(), |value| format!("{value:.2e}"));
        let passed = if check.passed() { "passed" } else { "FAILED" };
        checks.row([check.test.as_str(), check.quantity.as_str(), &value, &format!("{:.0e}", check.limit), passed]);
    }
    let mut balance = HtmlTable::new(&format!("{name}: balance"), ["ratio", "value", "unit"]);
    for ratio in ratios(found, ranks) {
        balance.row([ratio.name, &figure(ratio.value), ratio.unit]);
    }
    vec![figures, checks, balance]
}

/// Every number of a study.
pub(super) fn tables(name: &str, file: &ResultFile, published: bool) -> Vec<HtmlTable> {
    let mut all = Vec::new();
    for (name, models) in named(name, file) {
        all.extend(tables_of(&name, models, file.system.ranks));
        if published {
            all.extend(models.maxrate.as_ref().map(|found| beside::fits(&name, found)));
            all.extend(models.contention.as_ref().and_then(|found| beside::times(&name, found)));
        }
    }
    all
}

fn tables_of(name: &str, models: &ModelResults, ranks: usize) -> Vec<HtmlTable> {
    let mut all = Vec::new();
    if let Some(maxrate) = &models.maxrate {
        let most = maxrate.pairs().last().copied().unwrap_or(0);
        all.extend(maxrate.regimes.iter().map(|regime| fits(name, regime, most)));
        all.extend(between(name, maxrate));
        all.push(cells(name, maxrate));
    }
    all.extend(models.contention.iter().flat_map(|of| edges(name, of)));
    if let Some(beff) = &models.beff {
        let intervals = if beff.intervals.is_empty() { "" } else { ", with 95% intervals" };
        let mut table = HtmlTable::new(&format!("{name}: figures{intervals}"), ["figure", "value", "HPCC's name"]);
        for of in beff.figures() {
            table.row([of.ours, &within(of.value, of.interval, figure), of.theirs]);
        }
        let mut shares = HtmlTable::new(&format!("{name}: bandwidth ratios"), ["ratio", "value"]);
        beff.ratios().iter().for_each(|(of, value)| shares.row([*of, &figure(*value)]));
        all.extend([table, shares]);
    }
    all.extend(models.hpcc.iter().flat_map(|found| hpcc(name, found, ranks)));
    all
}

fn fits(name: &str, regime: &RegimeResult, most: usize) -> HtmlTable {
    let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
    let header =
        ["model", "latency us", "R_C or R_Cb MB/s", "R_Ci MB/s", "R_N MB/s", "error sum", "BIC", "k that fills"];
    let mut table =
        HtmlTable::new(&format!("{name}: messages from {smallest} to {largest}, with 95% intervals"), header);
    for (of, fit) in regime.shown(most) {
        let Some(fit) = fit else {
            table.row([of.as_str(), "not identifiable from these data", "–", "–", "–", "–", "–", "–"]);
            continue;
        };
        let node = match (fit.model, &fit.node_bytes_per_s) {
            (Model::Postal, _) => "–".into(),
            (_, Some(node)) => estimate(node, 1e-6),
            (_, None) => "infinite".into(),
        };
        table.row([
            of,
            estimate(&fit.latency_s, 1e6),
            estimate(&fit.pair_bytes_per_s, 1e-6),
            fit.further_pair_bytes_per_s.map_or_else(|| "–".into(), |rate| estimate(&rate, 1e-6)),
            node,
            figure(fit.error_sum),
            fit.criterion.map_or_else(|| "–".into(), figure),
            fit.saturating_pairs.map_or_else(|| "–".into(), figure),
        ]);
    }
    table
}

/// How far pairs of nodes are from each other, and every one of them.
fn between(name: &str, result: &MaxRateResult) -> Vec<HtmlTable> {
    let pairs = result.common_pairs();
    let Some(first) = result.between.first() else { return Vec::new() };
    let header = ["figure", "least", "median", "most", "most / least"];
    let mut spans = HtmlTable::new(&format!("{name}: over all pairs of nodes"), header);
    for span in result.spans() {
        let mut cells = span_cells(&span);
        if span.both {
            cells[0] += ", both ways at once";
        }
        spans.row(cells);
    }
    let figures = first.figures(pairs).into_iter().map(|of| format!("{}, {}", of.name, of.unit));
    let mut each = HtmlTable::new(
        &format!("{name}: each two nodes (<>: both ways at once, the rate of one)"),
        std::iter::once("nodes".to_owned()).chain(figures),
    );
    result.between.iter().for_each(|of| each.row(between_cells(of, pairs)));
    vec![spans, each]
}

/// Medians of every size and number of pairs, with every model's error.
fn cells(name: &str, result: &MaxRateResult) -> HtmlTable {
    let header = ["size and pairs", "time us", "aggregate MB/s"].into_iter().chain(Model::ALL.map(Model::name));
    let mut table = HtmlTable::new(&format!("{name}: medians measured, and errors of the modelled time in %"), header);
    for seen in medians(&result.observations) {
        let regime = result.regime(seen.bytes);
        let error = |model: Model| {
            let fit = regime.and_then(|regime| regime.fit(model));
            fit.map_or_else(|| "–".into(), |fit| percent(fit.error(&seen)))
        };
        let rate = seen.rate() * 1e-6;
        let start = [format!("{}, k = {}", Bytes(seen.bytes as u64), seen.pairs), figure(seen.seconds * 1e6)];
        table.row(start.into_iter().chain([figure(rate)]).chain(Model::ALL.map(error)));
    }
    table
}

fn edges(name: &str, result: &ContentionResult) -> Vec<HtmlTable> {
    let header =
        ["edge", "penalty by step", "predicted s", "in T_ref", "measured s", "in T_ref", "measured penalty", "error %"];
    let table = |graph: &crate::result::GraphResult| {
        let caption = format!(
            "{name}: {}, {} a message, contention-free time T_ref {} s{}",
            graph.name,
            Bytes(result.bytes),
            within(graph.reference_s, graph.reference_interval, |seconds| format!("{seconds:.6}")),
            if graph.reference_interval.is_some() { ", with 95% intervals" } else { "" }
        );
        let mut table = HtmlTable::new(&caption, header);
        for edge in &graph.edges {
            let EdgeResult { source, destination, penalties, predicted, measured_s, measured_penalty, .. } = edge;
            let multiple = measured_s.map(|seconds| seconds / graph.reference_s);
            let three = |value: f64| format!("{value:.3}");
            let with =
                |value: Option<f64>, interval| value.map_or_else(|| "–".into(), |value| within(value, interval, three));
            let steps: Vec<String> = penalties.iter().map(|penalty| format!("{penalty:.3}")).collect();
            let of_its_own = |message: crate::models::contention::Message| {
                let (bytes, start_s) = (Bytes(message.bytes.unwrap_or(result.bytes)), message.start_ns as f64 * 1e-9);
                format!(", {bytes} from {start_s:.6} s")
            };
            table.row([
                format!("{source}>{destination}{}", edge.message.map(of_its_own).unwrap_or_default()),
                steps.join(" "),
                format!("{:.6}", predicted * graph.reference_s),
                format!("{predicted:.3}"),
                measured_s.map_or_else(|| "–".into(), |seconds| format!("{seconds:.6}")),
                with(multiple, edge.multiple_interval),
                with(*measured_penalty, edge.penalty_interval),
                edge.error(graph.reference_s)
                    .map_or_else(|| "–".into(), |error| within(error, edge.error_interval(), percent)),
            ]);
        }
        table
    };
    result.graphs.iter().map(table).collect()
}
