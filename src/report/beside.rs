//! Studies beside what the papers print of their systems.

use tailback_transport::Bytes;

use super::html::HtmlTable;
use super::published;
use crate::models::maxrate::{Model, Values};
use crate::result::{ContentionResult, MaxRateResult};
use crate::text::{figure, percent};

/// The extended max-rate model of every regime, and of the paper's system (its tables 1 and 2).
pub(super) fn fits(name: &str, result: &MaxRateResult) -> HtmlTable {
    let caption = format!("{name}: extended max-rate model, beside Gropp, Olson and Samfass 2016, tables 1 and 2");
    let header =
        ["system", "messages", "latency us", "R_Cb MB/s", "R_Ci MB/s", "R_N MB/s", "k that fills", "error sum"];
    let mut table = HtmlTable::new(&caption, header);
    let mut row = |system: &str, messages: String, values: &Values, error_sum: f64| {
        table.row([
            system.to_owned(),
            messages,
            figure(values.latency * 1e6),
            figure(values.first * 1e-6),
            figure(values.further * 1e-6),
            values.node.map_or_else(|| "infinite".into(), |node| figure(node * 1e-6)),
            values.saturating_pairs().map_or_else(|| "–".into(), figure),
            figure(error_sum),
        ]);
    };
    for regime in &result.regimes {
        let Some(fit) = regime.fit(Model::Extended) else { continue };
        let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
        row(name, format!("{smallest} to {largest}"), &fit.values(), fit.error_sum);
    }
    for of in published::fits() {
        let most = of.largest_bytes.map_or_else(String::new, |bytes| format!(", up to {}", Bytes(bytes)));
        row(&format!("{} (published)", of.system), format!("{}{most}", of.phase), &of.values, of.error_sum);
    }
    table
}

/// Errors of predicted times of the paper's graphs, here and there (its figure 4); nothing when none of them was measured.
pub(super) fn times(name: &str, result: &ContentionResult) -> Option<HtmlTable> {
    let caption = format!("{name}: errors of predicted times in %, beside Martinasso and Méhaut 2011, figure 4");
    let mut table = HtmlTable::new(&caption, ["graph and message", "error here", "error published"]);
    let mut any = false;
    for of in published::times() {
        let graphs = result.graphs.iter().filter(|graph| graph.name == of.graph);
        let mut errors = graphs.flat_map(|graph| {
            let edges = graph.edges.iter().filter(|edge| format!("{}>{}", edge.source, edge.destination) == of.message);
            edges.filter_map(|edge| edge.error(graph.reference_s))
        });
        if let Some(error) = errors.next() {
            let published = percent(of.predicted_s / of.measured_s - 1.0);
            table.row([format!("{}, {}", of.graph, of.message), percent(error), published]);
            any = true;
        }
    }
    any.then_some(table)
}
