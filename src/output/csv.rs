//! CSV: one line per test and state, one per congestor, for spreadsheets and plots.

use super::map;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::models::hpcc::name;
use crate::plan::point_name;
use crate::result::{
    Answer, BurstPoint, CongestorLoad, MaxRateResult, ModelResults, ResultFile, Run, Test, TransportFacts,
};
use crate::stats::{Factor, Interval, NotReportable, Statistic, Summary};
use crate::text::{Cell, Rows, Table};

pub(super) fn render(result: &ResultFile) -> String {
    let studies = result.studies();
    match &studies[..] {
        [] => lines(result).csv(),
        [(_, models)] => study(models, None).iter().map(Table::csv).collect(),
        // The lines of each network under one header.
        several => {
            let rows =
                |(run, models): &(&Run, &ModelResults)| study(models, Some(run)).iter().map(Table::csv).collect();
            let all: Vec<String> = several.iter().map(rows).collect();
            let without_header = |text: &String| text.split_inclusive('\n').skip(1).collect::<String>();
            all.iter().take(1).cloned().chain(all.iter().skip(1).map(without_header)).collect()
        }
    }
}

/// A canary in one state, or a congestor with the canary that it ran beside.
#[derive(Clone, Copy)]
struct Line<'a> {
    run: &'a Run,
    phase: LoadState,
    test: Option<&'a Test>,
    load: Option<&'a CongestorLoad>,
    /// A part of the time between two bursts of load.
    part: Option<&'a BurstPoint>,
}

impl Line<'_> {
    /// The test, if the line is of a canary.
    fn canary(&self) -> Option<&Test> {
        self.test.filter(|_| self.load.is_none() && self.part.is_none())
    }

    fn summary(&self) -> Option<&Summary> {
        if self.part.is_some() {
            return None;
        }
        self.load.map_or_else(|| self.test?.summary.as_ref(), |load| load.summary.as_ref())
    }

    /// A percentile, however few samples carry it; of another program, what it printed.
    fn figure(&self, statistic: Statistic) -> Option<f64> {
        if let Some(part) = self.part {
            return match statistic {
                Statistic::P50 => part.p50_us,
                Statistic::P99 => part.p99_us,
                _ => None,
            };
        }
        self.summary().map_or_else(|| self.canary()?.figure(statistic), |summary| summary.raw(statistic))
    }

    /// The answer of the test, on its line under load.
    fn answer(&self) -> Option<Answer<'_>> {
        self.run.answer(self.canary().filter(|test| test.phase == LoadState::Loaded)?.kernel)
    }

    fn impact(&self, statistic: Statistic) -> Option<Factor> {
        let loaded = self.canary().filter(|test| test.phase == LoadState::Loaded)?;
        self.run.impact(loaded.kernel, statistic)
    }
}

/// Congestors alone, beside canaries, canaries; of load in bursts the canary by the time since the onset.
fn lines_of(run: &Run) -> Vec<Line<'_>> {
    let alone = run.congestors.iter().map(|load| Line {
        run,
        phase: LoadState::Alone,
        test: None,
        load: Some(load),
        part: None,
    });
    let beside = run.tests.iter().flat_map(|test| {
        let line = move |load| Line { run, phase: LoadState::Loaded, test: Some(test), load: Some(load), part: None };
        test.load.iter().map(line)
    });
    let known = run.tests.iter().filter(|test| test.summary.is_some() || test.printed.is_some());
    let canaries = known.map(|test| Line { run, phase: test.phase, test: Some(test), load: None, part: None });
    let folded = run.tests.iter().flat_map(|test| {
        let line = move |part| Line { run, phase: test.phase, test: Some(test), load: None, part: Some(part) };
        test.burst.iter().flat_map(|of| &of.curve).map(line)
    });
    alone.chain(beside).chain(canaries).chain(folded).collect()
}

/// The impact by a figure; those that are claimed first have their intervals too.
fn impact<'a>(table: Rows<Line<'a>>, of: Statistic) -> Rows<Line<'a>> {
    let key = format!("impact_{}", key(of));
    let bound = |line: &Line<'_>, end: fn(Interval) -> f64| line.impact(of)?.interval.map(end);
    let claimed = Canary::ALL.iter().any(|kernel| kernel.headline() == of);
    table
        .column(&key, |line| line.impact(of).map(|of| of.factor))
        .column_if(claimed, format!("{key}_low"), |line| bound(line, |interval| interval.low))
        .column_if(claimed, format!("{key}_high"), |line| bound(line, |interval| interval.high))
}

/// Every line of a load test, run by run.
fn lines(result: &ResultFile) -> Table {
    let protocol = |of: &TransportFacts| of.protocol.clone().unwrap_or_default();
    let percentiles = Statistic::MESSAGES.into_iter().filter(|of| *of != Statistic::Avg);
    let is_folded = result.runs.iter().flat_map(|run| &run.tests).any(|test| test.burst.is_some());
    let table = Table::of(result.runs.iter().flat_map(lines_of))
        .column("transport", |line| line.run.transport.network().to_owned())
        .column("protocol", |line| protocol(&line.run.transport))
        .column("phase", |line| line.phase.key())
        .column("role", |line| match (line.load, line.part) {
            (Some(_), _) => "congestor",
            (None, Some(_)) => "folded",
            (None, None) => "canary",
        })
        .column("kernel", |line| {
            line.load.map(|load| load.kernel.info().key).or_else(|| Some(line.test?.kernel.info().key))
        })
        .column("while", |line| line.load.and(line.test).map(|test| test.kernel.info().key))
        .column("bytes", |line| line.canary().map(|test| test.bytes))
        .column("unit", |line| {
            let of = line.test.filter(|_| line.load.is_none());
            of.map_or_else(|| "MiB/s/rank".to_owned(), |test| test.unit.clone())
        })
        .column("samples", |line| line.part.map(|of| of.samples).or_else(|| Some(line.summary()?.samples)))
        .column("passes", |line| line.summary().map(|of| of.passes))
        .column("wall_s", |line| line.canary().filter(|test| test.summary.is_some()).map(|test| test.wall_s))
        .column("avg", |line| line.summary().map(|of| of.avg).or_else(|| Some(line.canary()?.printed?.avg)))
        .column("mean", |line| line.summary().map(|of| of.mean))
        .column("best", |line| line.summary().map(|of| of.best).or_else(|| line.canary()?.extremes().0))
        .columns(percentiles, |table, of| table.column(key(of), |line| line.figure(of)))
        .column("worst", |line| line.summary().map(|of| of.worst).or_else(|| line.canary()?.extremes().1))
        .columns(Statistic::MESSAGES, impact)
        .column("delivered_bytes", |line| line.load.map(|load| load.delivered_bytes))
        .column("delivered_mib_per_s", |line| line.load.map(|load| load.delivered_mib_per_s))
        .columns(Statistic::TIMES, |table, of| table.column(key(of), |line| line.canary()?.figure(of)))
        .columns(Statistic::TIMES, impact)
        .column("placements", |line| line.canary().and(Some(line.run.placements.len()).filter(|count| *count > 0)))
        .column("congestor_transport", |line| line.run.congestors_over.as_ref().map(|of| of.network().to_owned()))
        .column("congestor_protocol", |line| line.run.congestors_over.as_ref().map(protocol))
        .column("beside", |line| line.run.beside.clone())
        .column("covered", |line| line.canary()?.covered);
    answer(table)
        .column("setting", |line| line.run.setting.clone())
        .column("algorithm_mib_per_s", |line| Some(line.canary()?.collective?.algorithm_mib_per_s))
        .column("bus_mib_per_s", |line| Some(line.canary()?.collective?.bus_mib_per_s))
        .column_if(is_folded, "since_us", |line| line.part.map(|of| of.since_us))
        .column("point", |line| (!line.run.point.is_empty()).then(|| point_name(&line.run.point)))
        .done()
}

/// The answer in its order: idle, loaded, added, impact; then why it is not to be reported, if it is not.
fn answer(table: Rows<Line<'_>>) -> Rows<Line<'_>> {
    let added = |line: &Line<'_>| line.answer()?.added;
    let impact = |line: &Line<'_>| line.answer()?.impact;
    table
        .column("statistic", |line| line.answer().map(|of| of.statistic.key()))
        .column("idle", |line| line.answer().map(|of| of.idle))
        .column("loaded", |line| line.answer().map(|of| of.loaded))
        .column("added_unit", |line| line.answer().map(|of| of.added_unit().to_owned()))
        .column("added", |line| added(line).map(|of| of.value))
        .column("added_low", |line| added(line)?.interval.map(|of| of.low))
        .column("added_high", |line| added(line)?.interval.map(|of| of.high))
        .column("impact", |line| impact(line).map(|of| of.factor))
        .column("impact_low", |line| impact(line)?.interval.map(|of| of.low))
        .column("impact_high", |line| impact(line)?.interval.map(|of| of.high))
        .column("not_reportable", |line| line.answer().map(|of| against(&of)))
}

/// The keys of all that is against an answer.
fn against(answer: &Answer<'_>) -> String {
    answer.judgement.reasons.iter().map(NotReportable::key).collect::<Vec<_>>().join(" ")
}

fn key(of: Statistic) -> String {
    of.key().replace('-', "_")
}

/// Every measurement of a study, with its network before it where there are several.
fn study(models: &ModelResults, over: Option<&Run>) -> Vec<Table> {
    let mut all = Vec::new();
    if let Some(maxrate) = &models.maxrate {
        all.push(maxrate_lines(maxrate, over));
    }
    if let Some(contention) = &models.contention {
        let edges = contention.graphs.iter().flat_map(|graph| graph.edges.iter().map(move |edge| (graph, edge)));
        let lines = networked(edges, over)
            .column("graph", |(graph, _)| Cell::Name(graph.name.clone()))
            .column("source", |(_, edge)| Cell::Name(edge.source.clone()))
            .column("destination", |(_, edge)| Cell::Name(edge.destination.clone()))
            .column("reference_s", |(graph, _)| graph.reference_s)
            .column("predicted_s", |(graph, edge)| edge.predicted * graph.reference_s)
            .column("measured_s", |(_, edge)| edge.measured_s)
            .column("predicted_penalty", |(_, edge)| edge.penalties.first().copied())
            .column("measured_penalty", |(_, edge)| edge.measured_penalty)
            .column("measured_penalty_low", |(_, edge)| edge.penalty_interval.map(|of| of.low))
            .column("measured_penalty_high", |(_, edge)| edge.penalty_interval.map(|of| of.high));
        all.push(lines.done());
    }
    if let Some(beff) = &models.beff {
        let lines = networked(beff.figures(), over)
            .column("figure", |of| Cell::Name(of.ours.to_owned()))
            .column("hpcc", |of| of.theirs)
            .column("value", |of| of.value)
            .column("low", |of| of.interval.map(|of| of.low))
            .column("high", |of| of.interval.map(|of| of.high));
        all.push(lines.done());
    }
    if let Some(hpcc) = &models.hpcc {
        let lines = networked(&hpcc.figures, over)
            .column("figure", |(theirs, _)| Cell::Name(name(theirs).map_or("", |name| name.ours).to_owned()))
            .column("hpcc", |(theirs, _)| *theirs)
            .column("unit", |(theirs, _)| name(theirs).map_or("", |name| name.unit))
            .column("value", |(_, value)| **value);
        all.push(lines.done());
    }
    if let Some(map) = &models.map {
        all.push(map::lines(|pairs| networked(pairs, over), map));
    }
    all
}

fn networked<R>(rows: impl IntoIterator<Item = R>, over: Option<&Run>) -> Rows<R> {
    Table::of(rows).columns(over, |table, run| table.column("network", |_| Cell::Name(run.label())))
}

/// Every measurement; with its nodes and its way where there were several.
fn maxrate_lines(result: &MaxRateResult, over: Option<&Run>) -> Table {
    let one = result.observations.iter().map(|seen| (None, seen)).filter(|_| result.between.is_empty());
    let each = result.between.iter().flat_map(|of| of.observations.iter().map(move |seen| (Some(of), seen)));
    let several = !result.between.is_empty();
    networked(one.chain(each), over)
        .column_if(several, "between", |(of, _)| of.map(|of| Cell::Name(of.name())))
        .column_if(several, "first_node", |(of, _)| of.map(|of| Cell::Name(of.nodes[0].clone())))
        .column_if(several, "second_node", |(of, _)| of.map(|of| Cell::Name(of.nodes[1].clone())))
        .column("pairs", |(_, seen)| seen.pairs)
        .column("bytes", |(_, seen)| seen.bytes)
        .column("seconds", |(_, seen)| seen.seconds)
        .done()
}
