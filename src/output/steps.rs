//! A prediction step by step, as the paper's figure 3 prints one: who has how much left, and why it took so long.

use std::fmt::Write as _;

use tailback_transport::Bytes;

use crate::models::contention::{Graph, Prediction};
use crate::text::Table;

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
    let mut begun: Vec<f64> = graph.messages().iter().map(|message| message.start_ns as f64 * 1e-9).collect();
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
    let arrival = |at: usize| prediction.times[at] * reference_s + graph.messages()[at].start_ns as f64 * 1e-9;
    for (at, edge) in graph.edges().iter().enumerate().filter(|_| !graph.is_uniform()) {
        let message = graph.messages()[at];
        let (start_s, size) = (message.start_ns as f64 * 1e-9, Bytes(message.bytes.unwrap_or(bytes)));
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
    }

    #[test]
    fn more_than_anyone_reads_is_refused() {
        let graph = "in-20".parse::<Shape>().unwrap().graph();
        let prediction =
            predict_messages(&graph, |live| penalties(live, Model::Text), Alone { bytes: 1, seconds: 1.0 });
        assert!(steps("in-20", &graph, &prediction, (1, 1.0)).unwrap_err().contains("up to 12 messages"));
    }
}
