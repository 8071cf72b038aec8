//! Tables of a max-rate study: parameters, errors by number of pairs and size, and the answer to its question.

use std::fmt::Write as _;

use tailback_transport::Bytes;

use crate::models::maxrate::{Model, medians};
use crate::result::{Estimate, FitResult, MaxRateResult};
use crate::text::{Table, figure, percent};

/// A terminal is not wider than so many numbers of pairs.
const MOST_COLUMNS: usize = 12;

pub(super) fn maxrate(result: &MaxRateResult) -> String {
    let mut out = String::new();
    for regime in &result.regimes {
        let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
        let _ = writeln!(out, "Messages from {smallest} to {largest} (95% intervals)");
        let mut table = Table::new([
            "model",
            "latency us",
            "R_C or R_Cb MB/s",
            "R_Ci MB/s",
            "R_N MB/s",
            "error sum",
            "k that fills",
        ]);
        for model in Model::ALL {
            match regime.fits.iter().find(|fit| fit.model == model) {
                Some(fit) => table.row(row(fit)),
                None => table.row([model.name(), "not identifiable from these data"]),
            }
        }
        out += &table.render();
        out.push('\n');
    }
    if let Some(took) = &result.took {
        let _ = writeln!(out, "{}\n", took.describe("round trips"));
    }
    out + &errors(result) + &answer(result)
}

/// The error of the modelled time at every size and number of pairs, by the model that is nearest in each regime.
fn errors(result: &MaxRateResult) -> String {
    let all = result.pairs();
    let shown: Vec<usize> = all.iter().copied().step_by(all.len().div_ceil(MOST_COLUMNS).max(1)).collect();
    let header = ["message".to_owned(), "model".to_owned()].into_iter().chain(shown.iter().map(|k| format!("k = {k}")));
    let mut table = Table::new(header);
    let medians = medians(&result.observations);
    for bytes in result.sizes() {
        let Some(fit) = result.regime(bytes).and_then(MaxRateResult::best_fit) else { continue };
        let error = |pairs: &usize| {
            let seen = medians.iter().find(|seen| (seen.pairs, seen.bytes) == (*pairs, bytes));
            seen.map_or_else(|| "-".into(), |seen| percent(fit.error(seen)))
        };
        let start = [Bytes(bytes as u64).to_string(), fit.model.name().to_owned()];
        table.row(start.into_iter().chain(shown.iter().map(error)));
    }
    if table.is_empty() {
        return String::new();
    }
    let some = if shown.len() < all.len() { "; the report has every k" } else { "" };
    format!("Error of the modelled time in %, by message size and number of pairs k{some}\n{}\n", table.render())
}

fn row(fit: &FitResult) -> Vec<String> {
    let node = match (fit.model, &fit.node_bytes_per_s) {
        (Model::Postal, _) => "-".into(),
        (_, Some(node)) => estimate(node, 1e-6),
        (_, None) => "infinite".into(),
    };
    vec![
        fit.model.name().into(),
        estimate(&fit.latency_s, 1e6),
        estimate(&fit.pair_bytes_per_s, 1e-6),
        fit.further_pair_bytes_per_s.map_or_else(|| "-".into(), |rate| estimate(&rate, 1e-6)),
        node,
        figure(fit.error_sum),
        fit.saturating_pairs.map_or_else(|| "-".into(), figure),
    ]
}

/// A parameter with its interval, or with why it has none.
pub(crate) fn estimate(estimate: &Estimate, scale: f64) -> String {
    let value = figure(estimate.value * scale);
    match (estimate.low, estimate.high) {
        // A rate or a time that may as well be negative is not known.
        (Some(low), Some(_)) if low <= 0.0 => format!("{value} [undetermined]"),
        (Some(low), Some(high)) => format!("{value} [{}, {}]", figure(low * scale), figure(high * scale)),
        (Some(low), None) => format!("at least {}", figure(low * scale)),
        // Held at zero, or never seen.
        _ => "not identifiable".into(),
    }
}

/// How many ranks per node should talk at once.
pub(crate) fn answer(result: &MaxRateResult) -> String {
    let most = result.observations.iter().map(|seen| seen.pairs).max().unwrap_or(0);
    let fit = result.regimes.last().and_then(|regime| regime.fits.iter().find(|fit| fit.model == Model::MaxRate));
    match fit {
        None => "How many ranks per node should talk at once: the data do not determine the model.\n".into(),
        Some(FitResult { saturating_pairs: Some(pairs), .. }) if *pairs <= 1.0 => {
            "How many ranks per node should talk at once, for large messages: 1; a single pair fills the node.\n".into()
        }
        Some(FitResult { saturating_pairs: Some(pairs), .. }) => format!(
            "How many ranks per node should talk at once, for large messages: {:.0} (R_N / R_C = {pairs:.2}); more share the same rate.\n",
            // 4.05 is 4 with some noise, not 5.
            (pairs - 0.1).ceil().max(1.0)
        ),
        Some(_) => format!(
            "How many ranks per node should talk at once, for large messages: all {most} measured; they did not fill the node.\n"
        ),
    }
}
