//! Tables of the studies, and drawings of contention graphs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tailback_transport::Bytes;

use super::hpcc::hpcc;
use super::load_test::banner;
use super::map::map;
use super::maxrate::maxrate;
use crate::analysis::compare;
use crate::models::beff::Beff;
use crate::models::contention::{self, Graph, Prediction};
use crate::result::{self, ContentionResult, EdgeResult, GraphResult, ResultFile};
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
        out += &models.map.as_ref().map(map).unwrap_or_default();
        if studies.len() > 1 {
            out.push('\n');
        }
    }
    if studies.len() > 1 {
        let comparison = compare::compare(&compare::sides::of_file(file), &compare::SHOWN);
        let _ = writeln!(out, "Networks side by side\n\n{}", compare::render(&comparison));
    }
    if let Some(of) = file.cut_short() {
        let _ = writeln!(out, "\n{}: what was not complete is left out.", of.sentence());
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
        out += &edges(result, graph, false).text();
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

/// The edges of a graph, with what was measured where anything was.
pub(crate) fn edges(result: &ContentionResult, graph: &GraphResult, report: bool) -> Table {
    let measured = graph.edges.iter().any(|edge| edge.measured_s.is_some());
    let own = graph.edges.iter().any(|edge| edge.message.is_some());
    let three = |value: f64| format!("{value:.3}");
    let six = |value: f64| format!("{value:.6}");
    let steps = |edge: &EdgeResult| edge.penalties.iter().map(|of| three(*of)).collect::<Vec<_>>().join(" ");
    let bytes = |edge: &EdgeResult| Some(Bytes(edge.message.as_ref()?.bytes.unwrap_or(result.bytes)));
    let label = |edge: &EdgeResult| format!("{}>{}", edge.source, edge.destination);
    let start = |edge: &EdgeResult| {
        let message = edge.message.as_ref()?;
        let after: Vec<String> = message.after.iter().filter_map(|at| Some(label(graph.edges.get(*at)?))).collect();
        let delay = six(message.start_ns as f64 * 1e-9);
        Some(match (after.is_empty(), message.start_ns) {
            (true, _) => delay,
            (_, 0) => format!("after {}", after.join(", ")),
            _ => format!("{delay} after {}", after.join(", ")),
        })
    };
    let multiple = |edge: &EdgeResult| {
        let interval = edge.multiple_interval.filter(|_| report);
        Some(within(edge.measured_s? / graph.reference_s, interval, three))
    };
    let error = |edge: &EdgeResult| Some(within(edge.error(graph.reference_s)?, edge.error_interval(), percent));
    Table::of(&graph.edges)
        .column("edge", |edge| label(edge))
        .column_if(own, "bytes", |edge| bytes(edge))
        .column_if(own, "start s", |edge| start(edge))
        .column("penalty by step", |edge| steps(edge))
        .column("predicted s", |edge| six(edge.predicted * graph.reference_s))
        .column("in T_ref", |edge| three(edge.predicted))
        .column_if(measured, "measured s", |edge| edge.measured_s.map(six))
        .column_if(measured, "in T_ref", |edge| multiple(edge))
        .column_if(measured, "measured penalty", |edge| {
            Some(within(edge.measured_penalty?, edge.penalty_interval, three))
        })
        .column_if(measured, "error %", |edge| error(edge))
        .done()
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
    let mean = |errors: &Vec<f64>| errors.iter().sum::<f64>() / errors.len() as f64;
    let largest = |errors: &mut dyn Iterator<Item = f64>| format!("{:.1}", 100.0 * errors.fold(0.0, f64::max));
    let table = Table::of(groups)
        .column("edges", |(edges, _)| *edges)
        .column("graphs", |(_, graphs)| graphs.len())
        .column("largest mean |error| of a graph %", |(_, graphs)| largest(&mut graphs.iter().map(mean)))
        .column("largest |error| %", |(_, graphs)| largest(&mut graphs.iter().flatten().copied()))
        .done();
    format!("Error by number of edges\n{}", table.text())
}

/// Draws a graph with its measured penalties, or the predicted ones where there are none.
pub fn draw(path: &Path, graph: &GraphResult) -> Result<(), String> {
    let pairs: Vec<(&str, &str)> = graph.edges.iter().map(|edge| (&*edge.source, &*edge.destination)).collect();
    let drawn = Graph::new(&pairs).map_err(|error| error.to_string())?;
    let penalty = |edge: &EdgeResult| edge.measured_penalty.or(edge.penalties.first().copied()).unwrap_or(1.0);
    let penalties: Vec<f64> = graph.edges.iter().map(penalty).collect();
    let dot = path.extension().is_some_and(|extension| extension == "dot" || extension == "gv");
    let text = if dot { contention::dot(&drawn, &penalties) } else { contention::svg(&drawn, &penalties) };
    result::write_text(path, &text).map_err(|error| error.to_string())
}

/// The figures of HPC Challenge's latency and bandwidth, and the ratios of its bandwidths.
pub(crate) fn beff_tables(result: &Beff) -> [Table; 2] {
    let figures = Table::of(result.figures())
        .column("figure", |of| of.ours)
        .column("value", |of| within(of.value, of.interval, figure))
        .column("HPCC's name", |of| of.theirs);
    let ratios =
        Table::of(result.ratios()).column("bandwidth ratio", |(name, _)| *name).column("value", |(_, value)| *value);
    [figures.done(), ratios.done()]
}

fn beff(result: &Beff) -> String {
    let [figures, ratios] = beff_tables(result);
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
        figures.text(),
        ratios.text()
    )
}

/// More columns than these nobody reads.
const MOST_SHOWN: usize = 12;

/// What is left of every message at the end of each step, with its penalty in it. `bytes` take `reference_s` alone.
pub fn steps(
    name: &str,
    graph: &Graph,
    prediction: &Prediction,
    (bytes, reference_s): (u64, f64),
) -> Result<String, String> {
    let count = graph.edges().len();
    if count > MOST_SHOWN {
        return Err(format!("--steps shows graphs of up to {MOST_SHOWN} messages, and {name} has {count}"));
    }
    let mut out = format!("Steps of {name}: bytes left at the end of each, and the penalty in it\n");
    let size = |at: usize| graph.messages()[at].bytes.unwrap_or(bytes) as f64;
    let mut left: Vec<f64> = (0..count).map(size).collect();
    let mut begun: Vec<f64> = prediction.starts.iter().map(|start| start * reference_s).collect();
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for step in &prediction.steps {
        let end_s = step.end * reference_s;
        let states = (0..count).map(|at| match step.penalties[at] {
            Some(penalty) => {
                left[at] -= (end_s - begun[at]) / reference_s / penalty * bytes as f64;
                begun[at] = end_s;
                format!("{} ({penalty:.3})", left[at].max(0.0).round())
            }
            None if left[at] > 0.5 => "-".to_owned(),
            None => "arrived".to_owned(),
        });
        rows.push((end_s, states.collect()));
    }
    let edges = graph.edges().iter().enumerate();
    out += &Table::of(rows.iter().enumerate())
        .column("step", |(number, _)| number + 1)
        .column("until s", |(_, (end_s, _))| format!("{end_s:.6}"))
        .columns(edges, |table, (at, edge)| table.column(graph.label(*edge), |(_, (_, states))| &states[at]))
        .done()
        .text();
    let arrival = |at: usize| (prediction.times[at] + prediction.starts[at]) * reference_s;
    for (at, edge) in graph.edges().iter().enumerate().filter(|_| !graph.is_uniform()) {
        let (start_s, size) = (prediction.starts[at] * reference_s, Bytes(size(at) as u64));
        let _ = writeln!(out, "  {}: {size} from {start_s:.6} s, arrives at {:.6} s", graph.label(*edge), arrival(at));
    }
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::contention::{Alone, Model, Shape, penalties, predict_messages};

    fn shown(graph: &Graph) -> String {
        let prediction =
            predict_messages(graph, |live| penalties(live, Model::Figure3), Alone { bytes: 1000, seconds: 1.0 });
        steps("x", graph, &prediction, (1000, 1.0)).unwrap()
    }

    #[test]
    fn the_papers_figure_3_is_shown_as_it_is() {
        let text = shown(&"fig3".parse::<Shape>().unwrap().graph());
        let rows: Vec<&str> = text.lines().skip(2).collect();
        // The last message of the figure arrives first, at 1.5; 57% of the first is left then.
        assert!(
            rows[0].contains("1.500000") && rows[0].contains("571 (3.500)") && rows[0].contains("0 (1.500)"),
            "{text}"
        );
        assert!(rows[1].contains("arrived"), "{text}");
    }

    #[test]
    fn messages_of_their_own_say_when_they_arrive() {
        let text = shown(&"a b\na c 500 2s".parse::<Graph>().unwrap());
        assert!(text.contains("a>b: 1000 B from 0.000000 s, arrives at 1.000000 s"), "{text}");
        assert!(text.contains("a>c: 500 B from 2.000000 s, arrives at 2.500000 s"), "{text}");
        assert!(text.lines().any(|line| line.trim_start().starts_with('1') && line.ends_with('-')), "{text}");
        let text = shown(&"a b\na c 500 a>b+1s".parse::<Graph>().unwrap());
        assert!(text.contains("a>c: 500 B from 2.000000 s, arrives at 2.500000 s"), "{text}");
    }

    #[test]
    fn more_than_anyone_reads_is_refused() {
        let graph = "in-20".parse::<Shape>().unwrap().graph();
        let prediction =
            predict_messages(&graph, |live| penalties(live, Model::Text), Alone { bytes: 1, seconds: 1.0 });
        assert!(steps("in-20", &graph, &prediction, (1, 1.0)).unwrap_err().contains("up to 12 messages"));
    }
}
