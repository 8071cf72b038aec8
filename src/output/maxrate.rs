//! Tables of a max-rate study: parameters, errors by number of pairs and size, and the answer to its question.

use std::fmt::Write as _;

use tailback_transport::Bytes;

use super::between::between;
use super::how_many::{answer, ratio};
use crate::models::maxrate::{ALIKE, Model, medians};
use crate::result::{Estimate, FitResult, MaxRateResult, RegimeResult};
use crate::text::{Table, figure, percent};

/// A terminal is not wider than so many numbers of pairs.
const MOST_COLUMNS: usize = 12;

pub(super) fn maxrate(result: &MaxRateResult) -> String {
    let mut out = String::new();
    let most = result.pairs().last().copied().unwrap_or(0);
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
        for (name, fit) in regime.shown(most) {
            match fit {
                Some(fit) => table.row(row(name, fit)),
                None => table.row([name.as_str(), "not identifiable from these data"]),
            }
        }
        out += &table.render();
        out += &chosen(regime);
        out.push('\n');
    }
    if let Some(took) = &result.took {
        let _ = writeln!(out, "{}\n", took.describe("round trips"));
    }
    out + &errors(result) + &between(result) + &answer(result) + &ratio(result, most)
}

/// Which model the data speak for, and how clearly.
pub(crate) fn chosen(regime: &RegimeResult) -> String {
    let Some((best, own)) = regime.best_fit().and_then(|fit| Some((fit.model, fit.criterion?))) else {
        return String::new();
    };
    let others = regime.fits.iter().filter(|fit| fit.model != best);
    let next = others.filter_map(|fit| Some((fit.model, fit.criterion?))).min_by(|(_, a), (_, b)| a.total_cmp(b));
    let name = best.name();
    match next {
        None => String::new(),
        Some((next, criterion)) if criterion <= own + ALIKE => {
            let why = if next == Model::HiddenLatency { "which the paper advises" } else { "which is simpler" };
            format!("  The data do not tell {} from {name}, {why}.\n", next.name())
        }
        Some((next, criterion)) => {
            let ahead = figure(criterion - own);
            format!(
                "  The data speak for {name}: its information criterion is {ahead} below that of {}.\n",
                next.name()
            )
        }
    }
}

/// The error of the modelled time at every size and number of pairs, by the model that the data speak for in each regime.
fn errors(result: &MaxRateResult) -> String {
    let all = result.pairs();
    let shown: Vec<usize> = all.iter().copied().step_by(all.len().div_ceil(MOST_COLUMNS).max(1)).collect();
    let header = ["message".to_owned(), "model".to_owned()].into_iter().chain(shown.iter().map(|k| format!("k = {k}")));
    let mut table = Table::new(header);
    let medians = medians(&result.observations);
    for bytes in result.sizes() {
        let Some(fit) = result.regime(bytes).and_then(RegimeResult::best_fit) else { continue };
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

fn row(name: String, fit: &FitResult) -> Vec<String> {
    let node = match (fit.model, &fit.node_bytes_per_s) {
        (Model::Postal, _) => "-".into(),
        (_, Some(node)) => estimate(node, 1e-6),
        (_, None) => "infinite".into(),
    };
    vec![
        name,
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
        // Below zero, as it was asked for.
        (Some(low), Some(high)) if estimate.value < 0.0 => {
            format!("{value} [{}, {}]", figure(low * scale), figure(high * scale))
        }
        // A rate or a time that may as well be negative is not known.
        (Some(low), Some(_)) if low <= 0.0 => format!("{value} [undetermined]"),
        (Some(low), Some(high)) => format!("{value} [{}, {}]", figure(low * scale), figure(high * scale)),
        (Some(low), None) => format!("at least {}", figure(low * scale)),
        // Held at zero, or never seen.
        _ => "not identifiable".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_below_zero_is_told_and_one_that_may_be_is_not_known() {
        let of = |value, low, high| estimate(&Estimate { value, low: Some(low), high: Some(high) }, 1e-6);
        assert_eq!(of(-1.8e7, -2.0e7, -1.6e7), "-18.00 [-20.00, -16.00]");
        assert_eq!(of(1.8e7, -2.0e7, 3.8e7), "18.00 [undetermined]");
        assert_eq!(estimate(&Estimate { value: 0.0, low: None, high: None }, 1.0), "not identifiable");
    }
}
