//! CSV: one line per test and state, one per congestor, for spreadsheets and plots.

use std::fmt::Write as _;

use crate::engine::Phase;
use crate::models::hpcc::name;
use crate::result::{CongestorLoad, MaxRateResult, ModelResults, Printed, ResultFile, Run, Test, TransportFacts};
use crate::stats::{Interval, Statistic, Summary};

const HEADER: &str = "transport,protocol,phase,role,kernel,while,bytes,unit,samples,passes,wall_s,avg,mean,best,p50,p90,p99,p999,worst,\
impact_avg,impact_p50,impact_p90,impact_p99,impact_p999,delivered_bytes,delivered_mib_per_s,time_p50,time_p75,time_p90,\
impact_time_p50,impact_time_p75,impact_time_p75_low,impact_time_p75_high,impact_time_p90,placements,\
congestor_transport,congestor_protocol,beside";

pub(super) fn render(result: &ResultFile) -> String {
    match &result.studies()[..] {
        [] => {}
        [(_, models)] => return study(models),
        several => return networks(several),
    }
    let mut out = format!("{HEADER}\n");
    for run in &result.runs {
        let protocol = |of: &TransportFacts| field(of.protocol.as_deref().unwrap_or(""));
        let network = |of: &TransportFacts| format!("{},{}", field(of.network()), protocol(of));
        let start = network(&run.transport);
        let over = run.congestors_over.as_ref().map_or_else(|| ",".into(), network);
        let end = format!("{over},{}", field(run.beside.as_deref().unwrap_or_default()));
        let mut congestor = |phase: &str, canary: &str, load: &CongestorLoad| {
            let figures = load.summary.as_ref().map_or_else(|| ",,,,,,,,,,".into(), |summary| figures(summary, None));
            let _ = writeln!(
                out,
                "{start},{phase},congestor,{},{canary},,MiB/s/rank,{figures},,,,,,{},{},,,,,,,,,,{end}",
                load.kernel, load.delivered_bytes, load.delivered_mib_per_s
            );
        };
        for load in &run.congestors {
            congestor("alone", "", load);
        }
        for test in &run.tests {
            for load in &test.load {
                congestor("loaded", test.kernel.info().key, load);
            }
        }
        for test in &run.tests {
            let figures = match &test.summary {
                Some(summary) => figures(summary, Some(test.wall_s)),
                None => match printed(test) {
                    Some(figures) => figures,
                    None => continue,
                },
            };
            let factor = |&statistic: &Statistic| {
                let loaded = test.phase == Phase::Loaded;
                loaded.then(|| run.impact(test.kernel, statistic)).flatten().map(|of| of.factor.to_string())
            };
            let factors: Vec<String> = Statistic::MESSAGES.iter().map(|of| factor(of).unwrap_or_default()).collect();
            let _ = writeln!(
                out,
                "{start},{},canary,{},,{},{},{},{},,,{},{end}",
                test.phase.word(),
                test.kernel,
                test.bytes,
                field(&test.unit),
                figures,
                factors.join(","),
                by_time(run, test)
            );
        }
    }
    out
}

/// Figures by time, their impacts, and over how many placements.
fn by_time(run: &Run, test: &Test) -> String {
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let figures = Statistic::TIMES.map(|statistic| text(test.figure(statistic)));
    let loaded = test.phase == Phase::Loaded;
    let factor = |statistic| loaded.then(|| run.impact(test.kernel, statistic)).flatten();
    let headline = factor(Statistic::HEADLINE);
    let interval = headline.and_then(|of| of.interval);
    let impacts = [
        text(factor(Statistic::TimeP50).map(|of| of.factor)),
        text(headline.map(|of| of.factor)),
        text(interval.map(|of| of.low)),
        text(interval.map(|of| of.high)),
        text(factor(Statistic::TimeP90).map(|of| of.factor)),
    ];
    let placements = if run.placements.is_empty() { String::new() } else { run.placements.len().to_string() };
    figures.into_iter().chain(impacts).chain([placements]).collect::<Vec<_>>().join(",")
}

/// Another program's figures: what it printed, and nothing for what it did not.
fn printed(test: &Test) -> Option<String> {
    let Printed { avg, p99, p999, min, max } = test.printed?;
    let known = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let (best, worst) = test.direction.best_and_worst(min, max);
    Some(format!(",,,{avg},,{},,,{p99},{},{}", known(best), known(p999), known(worst)))
}

fn figures(summary: &Summary, wall_s: Option<f64>) -> String {
    let Summary { samples, passes, avg, mean, best, p50, p90, p99, p999, worst, .. } = summary;
    let wall = wall_s.map(|seconds| seconds.to_string()).unwrap_or_default();
    format!("{samples},{passes},{wall},{avg},{mean},{best},{p50},{p90},{p99},{p999},{worst}")
}

/// A study over several networks: the lines of each, with its network before them, under one header.
fn networks(studies: &[(&Run, &ModelResults)]) -> String {
    let mut out = String::new();
    for (at, (run, models)) in studies.iter().enumerate() {
        for (line, text) in study(models).lines().enumerate().skip(usize::from(at > 0)) {
            let start = if line == 0 { "network".to_owned() } else { quoted(&run.label()) };
            let _ = writeln!(out, "{start},{text}");
        }
    }
    out
}

/// A study: every measurement of its own kind, a line each.
/// Every measurement; with its nodes and its way where there were several.
fn maxrate_rows(result: &MaxRateResult) -> String {
    let mut out = String::new();
    if result.between.is_empty() {
        out += "pairs,bytes,seconds\n";
        for seen in &result.observations {
            let _ = writeln!(out, "{},{},{}", seen.pairs, seen.bytes, seen.seconds);
        }
        return out;
    }
    out += "between,first_node,second_node,pairs,bytes,seconds\n";
    for of in &result.between {
        let [first, second] = &of.nodes;
        let nodes = [&of.name(), first, second].map(|name| quoted(name)).join(",");
        for seen in &of.observations {
            let _ = writeln!(out, "{nodes},{},{},{}", seen.pairs, seen.bytes, seen.seconds);
        }
    }
    out
}

fn study(models: &ModelResults) -> String {
    let mut out = String::new();
    if let Some(maxrate) = &models.maxrate {
        out += &maxrate_rows(maxrate);
    }
    if let Some(contention) = &models.contention {
        out += "graph,source,destination,reference_s,predicted_s,measured_s,predicted_penalty,measured_penalty,\
                measured_penalty_low,measured_penalty_high\n";
        let known = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for graph in &contention.graphs {
            for edge in &graph.edges {
                let (name, source, destination) = (&graph.name, &edge.source, &edge.destination);
                let (low, high) = bounds(edge.penalty_interval);
                let _ = writeln!(
                    out,
                    "{},{},{},{},{},{},{},{},{low},{high}",
                    quoted(name),
                    quoted(source),
                    quoted(destination),
                    graph.reference_s,
                    edge.predicted * graph.reference_s,
                    known(edge.measured_s),
                    known(edge.penalties.first().copied()),
                    known(edge.measured_penalty)
                );
            }
        }
    }
    if let Some(beff) = &models.beff {
        out += "figure,hpcc,value,low,high\n";
        for figure in beff.figures() {
            let (low, high) = bounds(figure.interval);
            let _ = writeln!(out, "{},{},{},{low},{high}", quoted(figure.ours), figure.theirs, figure.value);
        }
    }
    if let Some(hpcc) = &models.hpcc {
        out += "figure,hpcc,unit,value\n";
        for (theirs, value) in &hpcc.figures {
            let (ours, unit) = name(theirs).map_or(("", ""), |name| (name.ours, name.unit));
            let _ = writeln!(out, "{},{},{unit},{value}", quoted(ours), field(theirs));
        }
    }
    out
}

fn bounds(interval: Option<Interval>) -> (String, String) {
    interval.map_or_else(Default::default, |of| (of.low.to_string(), of.high.to_string()))
}

/// A field that may hold commas and quotes, or what a spreadsheet would take for a formula.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
}

/// The same, plain where it is plain.
fn field(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._:;/()%".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_field_and_no_formula() {
        assert_eq!((field("tcp"), field("MiB/s/rank"), field("")), ("tcp".into(), "MiB/s/rank".into(), String::new()));
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\"\nplease"), "\"say \"\"x\"\"\nplease\"");
        assert_eq!((field("=1+1"), field("-x")), ("\"'=1+1\"".into(), "\"'-x\"".into()));
    }
}
