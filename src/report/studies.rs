//! What studies found: their plots and tables.

use std::cell::OnceCell;

use tailback_transport::Bytes;

use super::plot::{self, Plot};
use super::tables;
use crate::analysis::locate::{Demands, Located};
use crate::analysis::map::MapView;
use crate::models::beff::Beff;
use crate::models::hpcc::{Hpcc, NAMES};
use crate::models::maxrate::{Model, Observation, medians};
use crate::output::{hpcc, locate, map, maxrate, models};
use crate::result::{BetweenResult, ContentionResult, MapResult, MaxRateResult, ModelResults, ResultFile, Run};
use crate::text::{Table, escape, figure, percent, within};

/// What a study found over one of its networks.
pub(super) struct Study<'a> {
    /// Of its file, and of its network where they are several.
    pub(super) name: String,
    run: &'a Run,
    pub(super) models: &'a ModelResults,
    pub(super) ranks: usize,
    /// Verdict, suspects and numbers of a page are of one search.
    located: OnceCell<Result<Located, String>>,
}

impl<'a> Study<'a> {
    /// A file's, one for each of its networks.
    pub(super) fn all(name: &str, file: &'a ResultFile) -> Vec<Self> {
        let studies = file.studies();
        let several = studies.len() > 1;
        let label = |run: &Run| if several { format!("{name} ({})", run.label()) } else { name.to_owned() };
        let of =
            |(run, models)| Study { name: label(run), run, models, ranks: file.system.ranks, located: OnceCell::new() };
        studies.into_iter().map(of).collect()
    }

    /// Its map, and whom that suspects.
    fn located(&self) -> Option<(&'a MapResult, &Result<Located, String>)> {
        let map = self.models.map.as_ref()?;
        Some((map, self.located.get_or_init(|| Located::of(map, Demands::default()))))
    }
}

/// Every plot of a study.
pub(super) fn plots(study: &Study<'_>) -> Vec<Plot> {
    let name = &study.name;
    let ModelResults { maxrate, contention, beff, map, .. } = study.models;
    let maxrate = maxrate.iter().flat_map(|found| plot::maxrate(name, found));
    let contention = contention.iter().flat_map(|found| plot::contention(name, found));
    let map = map.iter().flat_map(|found| plot::map(name, found));
    maxrate.chain(contention).chain(beff.iter().flat_map(|found| plot::beff(name, found))).chain(map).collect()
}

/// The finding of a file's studies, a sentence each, where they have one.
pub(super) fn finding(studies: &[Study<'_>]) -> Option<String> {
    let told = |study: &Study<'_>| {
        let finding = finding_of(study)?;
        Some(if studies.len() > 1 { format!("{}: {finding}", study.run.label()) } else { finding })
    };
    let findings: Vec<String> = studies.iter().filter_map(told).collect();
    (!findings.is_empty()).then(|| findings.join(" "))
}

fn finding_of(study: &Study<'_>) -> Option<String> {
    let models = study.models;
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
    let answers = models.maxrate.as_ref().map(|of| maxrate::answer(of).trim().to_owned());
    let answers = answers.or_else(|| graphs(models.contention.as_ref()?)).or_else(|| models.beff.as_ref().map(worst));
    let answers = answers.or_else(|| study.located().map(of_map));
    answers.or_else(|| models.hpcc.as_ref().map(|found| balanced(found, study.ranks)))
}

/// Who is to blame for slow pairs, and how slow they are.
fn of_map((found, located): (&MapResult, &Result<Located, String>)) -> String {
    let blame = located.as_ref().map(|located| format!("{}. ", locate::verdict(located)));
    blame.unwrap_or_default() + &map::verdict(found, &MapView::of(found))
}

/// Suspects of every map of a file: what stands beside the heat map.
pub(super) fn suspects(studies: &[Study<'_>]) -> String {
    /// As many as fit beside the plot; all are among the numbers.
    const MOST: usize = 8;
    let of = |study: &Study<'_>| {
        let told = match study.located()?.1 {
            Ok(located) => {
                let rows = match located.suspects.len() {
                    0 => String::new(),
                    _ => locate::suspects(located, MOST).html(&format!("{}: suspects", study.name)),
                };
                let none = located.suspects.is_empty().then(|| locate::verdict(located));
                let more = located.suspects.len().checked_sub(MOST).filter(|more| *more > 0);
                let more = more.map(|more| format!("And {more} more, among all numbers"));
                let notes = none.into_iter().chain(more).chain(locate::notes(located));
                let notes: String = notes.map(|note| format!("<li>{}</li>", escape(&note))).collect();
                format!("{rows}<ul>{notes}</ul>")
            }
            Err(why) => format!("<p>No suspects can be told: {}</p>", escape(why)),
        };
        Some(told)
    };
    studies.iter().filter_map(of).collect()
}

/// What HPC Challenge says in a sentence; first of all whether it is to be believed.
fn balanced(found: &Hpcc, ranks: usize) -> String {
    let failed: Vec<&str> = found.failed().map(|check| check.test.as_str()).collect();
    if !failed.is_empty() {
        return format!("The check of {} FAILED: these figures are not to be trusted.", failed.join(", "));
    }
    if let Some(reason) = found.too_small().first() {
        return format!("Too small to report: {reason}.");
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

/// Every number of studies.
pub(super) fn numbers(studies: &[Study<'_>], published: bool) -> Vec<String> {
    let mut all = Vec::new();
    for study in studies {
        let (name, models) = (&study.name, study.models);
        all.extend(numbers_of(study));
        if published {
            all.extend(models.maxrate.as_ref().map(|found| tables::published_fits(name, found)));
            all.extend(models.contention.as_ref().map(|found| tables::published_times(name, found)));
        }
    }
    all
}

fn numbers_of(study: &Study<'_>) -> Vec<String> {
    let Study { name, models, ranks, .. } = study;
    let mut all = Vec::new();
    let mut add = |table: Table, caption: String| all.push(table.html(&format!("{name}: {caption}")));
    if let Some(found) = &models.maxrate {
        let (most, pairs) = (found.pairs().last().copied().unwrap_or(0), found.common_pairs());
        for regime in &found.regimes {
            let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
            let caption = format!("messages from {smallest} to {largest}, with 95% intervals");
            add(maxrate::fits(regime, most, true), caption);
        }
        add(maxrate::spans(&found.spans(), true), "over all pairs of nodes".to_owned());
        add(maxrate::exchanges(found), "halo exchanges, medians".to_owned());
        let each: Vec<&BetweenResult> = found.between.iter().collect();
        let caption = "each two nodes (<>: both ways at once, the rate of one)".to_owned();
        add(maxrate::node_pairs(&each, pairs), caption);
        add(cells(found), "medians measured, and errors of the modelled time in %".to_owned());
    }
    for (found, graph) in models.contention.iter().flat_map(|found| found.graphs.iter().map(move |of| (found, of))) {
        let (bytes, interval) = (Bytes(found.bytes), graph.reference_interval);
        let reference = within(graph.reference_s, interval, |seconds| format!("{seconds:.6}"));
        let intervals = if interval.is_some() { ", with 95% intervals" } else { "" };
        let caption = format!("{}, {bytes} a message, contention-free time T_ref {reference} s{intervals}", graph.name);
        add(models::edges(found, graph, true), caption);
    }
    if let Some(found) = &models.beff {
        let [figures, ratios] = models::beff_tables(found);
        let intervals = if found.intervals.is_empty() { "" } else { ", with 95% intervals" };
        add(figures, format!("figures{intervals}"));
        add(ratios, "bandwidth ratios".to_owned());
    }
    if let Some(found) = &models.hpcc {
        let run = found.run.map(|run| format!(", {} run", run.word())).unwrap_or_default();
        add(hpcc::figures(found, NAMES), format!("figures{run}"));
        add(hpcc::checks(&found.checks, |value| format!("{value:.2e}")), "checks".to_owned());
        add(hpcc::balance(found, *ranks), "balance".to_owned());
    }
    if let Some((found, located)) = study.located() {
        /// A page of all pairs of a large job would be hundreds of megabytes.
        const MOST: usize = 100;
        if let Ok(located) = located
            && !located.suspects.is_empty()
        {
            add(locate::all_evidence(located), "suspects and every figure that shows them".to_owned());
        }
        let view = MapView::of(found);
        add(map::extent(&view), "over all pairs".to_owned());
        let most = view.rows.len().min(MOST);
        add(map::slowest(found, &view, MOST), format!("the slowest {most} of {} directions of pairs", view.rows.len()));
    }
    all
}

/// Medians of every size and number of pairs, with every model's error.
fn cells(result: &MaxRateResult) -> Table {
    let error = |model: Model, seen: &Observation| {
        let fit = result.regime(seen.bytes).and_then(|regime| regime.fit(model));
        fit.map(|fit| percent(fit.error(seen)))
    };
    Table::of(medians(&result.observations))
        .column("size and pairs", |seen| format!("{}, k = {}", Bytes(seen.bytes as u64), seen.pairs))
        .column("time us", |seen| seen.seconds * 1e6)
        .column("aggregate MB/s", |seen| seen.rate() * 1e-6)
        .columns(Model::ALL, |table, model| table.column(model.name(), |seen| error(model, seen)))
        .done()
}
