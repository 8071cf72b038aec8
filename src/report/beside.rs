//! Studies beside what the papers print of their systems.

use tailback_transport::Bytes;

use super::published;
use crate::models::maxrate::{Model, Values};
use crate::result::{ContentionResult, MaxRateResult};
use crate::text::{Table, figure, percent};

/// The extended max-rate model of every regime, and of the paper's system (its tables 1 and 2).
pub(super) fn fits(name: &str, result: &MaxRateResult) -> String {
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
pub(super) fn times(name: &str, result: &ContentionResult) -> String {
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
