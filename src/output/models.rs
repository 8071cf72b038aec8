//! Tables of the studies, and drawings of contention graphs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tailback_transport::Bytes;

use super::hpcc::hpcc;
use super::maxrate::maxrate;
use super::simulated::banner;
use crate::compare;
use crate::models::beff::Beff;
use crate::models::contention;
use crate::result::{self, ContentionResult, GraphResult, ResultFile};
use crate::stats::Took;
use crate::text::{Table, figure, percent, within};

/// The tables of a study: over every network, and the networks side by side.
pub fn study(file: &ResultFile) -> String {
    let mut out = String::new();
    let (system, studies) = (&file.system, file.studies());
    let labels: Vec<String> = studies.iter().map(|(run, _)| run.label()).collect();
    let over = match &studies[..] {
        [(run, _)] => run.transport.network().to_owned(),
        [] => "-".to_owned(),
        _ => labels.join(" and "),
    };
    let _ = writeln!(
        out,
        "Tailback {} {} over {over}: {} ranks on {} nodes, seed {}\n",
        file.build.version,
        file.command.word(),
        system.ranks,
        system.nodes.len(),
        file.seed
    );
    for line in studies.iter().filter_map(|(run, _)| run.transport.rails_text()) {
        let _ = writeln!(out, "{line}\n");
    }
    out += &banner(file);
    for ((_, models), label) in studies.iter().zip(&labels) {
        if studies.len() > 1 {
            let _ = writeln!(out, "Over {label}\n");
        }
        out += &models.maxrate.as_ref().map(maxrate).unwrap_or_default();
        out += &models.contention.as_ref().map(contention).unwrap_or_default();
        out += &models.beff.as_ref().map(beff).unwrap_or_default();
        out += &models.hpcc.as_ref().map(|found| hpcc(found, system.ranks)).unwrap_or_default();
        if studies.len() > 1 {
            out.push('\n');
        }
    }
    if studies.len() > 1 {
        let comparison = compare::compare(&compare::sides::of_file(file), &compare::SHOWN);
        let _ = writeln!(out, "Networks side by side\n\n{}", compare::render(&comparison));
    }
    if file.interrupted {
        out += "\nInterrupted: what was not complete is left out.\n";
    }
    out
}

/// Contention graphs: predicted, and measured where it was.
pub fn contention(result: &ContentionResult) -> String {
    let mut out = String::new();
    for graph in &result.graphs {
        let _ = writeln!(
            out,
            "Contention graph {}: {} edges, {} a message, T_ref {} s{}",
            graph.name,
            graph.edges.len(),
            Bytes(result.bytes),
            within(graph.reference_s, graph.reference_interval, |seconds| format!("{seconds:.6}")),
            if graph.reference_interval.is_some() { " (95% intervals)" } else { "" }
        );
        let measured = graph.edges.iter().any(|edge| edge.measured_s.is_some());
        let own = graph.edges.iter().any(|edge| edge.message.is_some());
        let mut header = vec!["edge", "penalty by step", "predicted s", "in T_ref"];
        if own {
            header.splice(1..1, ["bytes", "start s"]);
        }
        if measured {
            header.extend(["measured s", "in T_ref", "measured penalty", "error %"]);
        }
        let mut table = Table::new(header);
        for edge in &graph.edges {
            let steps: Vec<String> = edge.penalties.iter().map(|penalty| format!("{penalty:.3}")).collect();
            let mut cells = vec![
                format!("{}>{}", edge.source, edge.destination),
                steps.join(" "),
                format!("{:.6}", edge.predicted * graph.reference_s),
                format!("{:.3}", edge.predicted),
            ];
            if let Some(message) = edge.message {
                let bytes = Bytes(message.bytes.unwrap_or(result.bytes)).to_string();
                cells.splice(1..1, [bytes, format!("{:.6}", message.start_ns as f64 * 1e-9)]);
            }
            if let (Some(seconds), Some(error)) = (edge.measured_s, edge.error(graph.reference_s)) {
                let penalty = |value| within(value, edge.penalty_interval, |value| format!("{value:.3}"));
                let multiple = format!("{:.3}", seconds / graph.reference_s);
                let penalty = edge.measured_penalty.map_or_else(|| "-".into(), penalty);
                let error = within(error, edge.error_interval(), percent);
                cells.extend([format!("{seconds:.6}"), multiple, penalty, error]);
            }
            table.row(cells);
        }
        out += &table.render();
        if let Some(took) = &graph.took {
            let _ = writeln!(out, "  {}", took.describe("messages of an edge"));
        }
        if let (Some(part), Some(from)) = (graph.looked_up, &result.learned_from) {
            let part = format!("{:.0}%", 100.0 * part);
            let _ =
                writeln!(out, "  {part} of its steps' penalties are measured ones from {from}, the rest is by rules.");
        }
        overfull(&mut out, graph);
        out.push('\n');
    }
    out + &by_edges(result)
}

/// The rules of the paper may give a port more than it carries: said, not hidden.
fn overfull(out: &mut String, graph: &GraphResult) {
    // First steps of messages that start apart are not the same step.
    if graph.edges.iter().any(|edge| edge.message.is_some()) {
        return;
    }
    let mut received: BTreeMap<&str, f64> = BTreeMap::new();
    for edge in &graph.edges {
        *received.entry(&edge.destination).or_default() += edge.penalties.first().map_or(0.0, |penalty| 1.0 / penalty);
    }
    for (node, share) in received.into_iter().filter(|(_, share)| *share > 1.0005) {
        let _ = writeln!(
            out,
            "  Note: in the first step node {node} receives {share:.3} times its port's rate by this model; \
             --model port-limited does not allow that."
        );
    }
}

fn by_edges(result: &ContentionResult) -> String {
    let mut groups: BTreeMap<usize, Vec<Vec<f64>>> = BTreeMap::new();
    for graph in &result.graphs {
        let errors: Vec<f64> =
            graph.edges.iter().filter_map(|edge| edge.error(graph.reference_s)).map(f64::abs).collect();
        if !errors.is_empty() {
            groups.entry(errors.len()).or_default().push(errors);
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["edges", "graphs", "largest mean |error| of a graph %", "largest |error| %"]);
    for (edges, graphs) in groups {
        let mean = |errors: &Vec<f64>| errors.iter().sum::<f64>() / errors.len() as f64;
        let largest_mean = graphs.iter().map(mean).fold(0.0, f64::max);
        let largest = graphs.iter().flatten().copied().fold(0.0, f64::max);
        let percent = |part: f64| format!("{:.1}", 100.0 * part);
        table.row([edges.to_string(), graphs.len().to_string(), percent(largest_mean), percent(largest)]);
    }
    format!("Error by number of edges\n{}", table.render())
}

/// Draws a graph with its measured penalties, or the predicted ones where there are none.
pub fn draw(path: &Path, graph: &GraphResult) -> Result<(), String> {
    let pairs: Vec<(&str, &str)> = graph.edges.iter().map(|edge| (&*edge.source, &*edge.destination)).collect();
    let drawn = contention::Graph::new(&pairs).map_err(|error| error.to_string())?;
    let penalty = |edge: &result::EdgeResult| edge.measured_penalty.or(edge.penalties.first().copied()).unwrap_or(1.0);
    let penalties: Vec<f64> = graph.edges.iter().map(penalty).collect();
    let dot = path.extension().is_some_and(|extension| extension == "dot" || extension == "gv");
    let text = if dot { contention::dot(&drawn, &penalties) } else { contention::svg(&drawn, &penalties) };
    result::write_text(path, &text).map_err(|error| error.to_string())
}

fn beff(result: &Beff) -> String {
    let mut table = Table::new(["figure", "value", "HPCC's name"]);
    for of in result.figures() {
        table.row([of.ours.to_owned(), within(of.value, of.interval, figure), of.theirs.to_owned()]);
    }
    let mut ratios = Table::new(["bandwidth ratio", "value"]);
    for (name, value) in result.ratios() {
        ratios.row([name.to_owned(), figure(value)]);
    }
    let repetitions = result.complete_repetitions.unwrap_or(1);
    let times = if repetitions == 1 { "once".into() } else { format!("{repetitions} times") };
    let intervals = if result.intervals.is_empty() { "" } else { ", with 95% intervals" };
    let took = |name: &str, took: Option<Took>| {
        let said = took.map(|took| format!("{name}: {}\n", took.describe("round trips or exchanges")));
        said.unwrap_or_default()
    };
    let took = took("latencies", result.latency_took) + &took("bandwidths", result.bandwidth_took);
    format!(
        "HPC Challenge latency ({}) and bandwidth ({}), {} pairs {times}, {} random rings{intervals}; received data was \
         checked\n{}{took}\n{}",
        Bytes(result.settings.latency_bytes as u64),
        Bytes(result.settings.bandwidth_bytes as u64),
        result.pairs,
        result.random_rings.unwrap_or(result.settings.rings),
        table.render(),
        ratios.render()
    )
}
