//! The max-rate paper's own figures (1, 3 and 4): aggregate rate over message size, a line for each number of pairs.

use tailback_transport::Bytes;

use super::axis::LogAxis;
use super::{Plot, WIDTH, dot, extent, grid_up, line, stacked, text};
use crate::models::maxrate::{Observation, medians};
use crate::result::{MaxRateResult, RegimeResult};
use crate::text::figure;

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 62.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 236.0;
/// Lines that can be told apart.
const MOST_LINES: usize = 5;

/// Aggregate rate over message size; dots are measured, lines modelled, one for each of some numbers of pairs.
pub fn sizes(name: &str, result: &MaxRateResult) -> Option<Plot> {
    let seen: Vec<Observation> =
        medians(&result.observations).into_iter().filter(|of| of.rate().is_finite() && of.rate() > 0.0).collect();
    let bytes = result.sizes();
    let (smallest, largest) = (*bytes.first()? as f64, *bytes.last()? as f64);
    let rate = |of: &Observation| of.rate() * 1e-6;
    let (low, high) = extent(seen.iter().map(rate));
    if high <= 0.0 || smallest <= 0.0 {
        return None;
    }
    let (across, up) = (LogAxis::new(smallest, largest, LEFT, RIGHT), LogAxis::new(low / 1.3, high * 1.3, BOTTOM, TOP));
    let mut body = frame(&across, &up, &bytes);
    let (mut told, mut labels) = (Vec::new(), Vec::new());
    for (at, pairs) in chosen(&result.pairs()).into_iter().enumerate() {
        let of_pairs: Vec<&Observation> = seen.iter().filter(|of| of.pairs == pairs).collect();
        for regime in &result.regimes {
            body += &curve(regime, &bytes, pairs, (&across, &up), at);
        }
        for of in &of_pairs {
            let title = format!("{}, {pairs} pairs: {} MB/s", Bytes(of.bytes as u64), figure(rate(of)));
            body += &dot((across.at(of.bytes as f64), up.at(rate(of))), 3, &format!("role{at}"), &title);
        }
        if let Some(last) = of_pairs.last() {
            labels.push((up.at(rate(last)), format!("value text{at}"), format!("k = {pairs}")));
            told.push(format!("k = {pairs}: {} MB/s at {}", figure(rate(last)), Bytes(last.bytes as u64)));
        }
    }
    body += &stacked(labels, RIGHT + 8.0, TOP);
    body += &text((LEFT + RIGHT) / 2.0, BOTTOM + 31.0, "middle", "axis-title", "message size");
    let title = format!("Aggregate rate in MB/s over message size, measured (dots) and modelled (lines), {name}");
    Some(Plot::new(&["maxrate", "sizes", name], title, told.join("; "), BOTTOM + 38.0, body))
}

/// The first, the last, and some between at equal distances.
fn chosen(pairs: &[usize]) -> Vec<usize> {
    let last = pairs.len().saturating_sub(1);
    let count = pairs.len().min(MOST_LINES);
    (0..count).map(|at| pairs[at * last / (count - 1).max(1)]).collect()
}

fn frame(across: &LogAxis, up: &LogAxis, sizes: &[usize]) -> String {
    let mut out = grid_up(up, LEFT, RIGHT);
    for &bytes in sizes.iter().step_by(sizes.len().div_ceil(6).max(1)) {
        out += &text(across.at(bytes as f64), BOTTOM + 14.0, "middle", "tick", &Bytes(bytes as u64).to_string());
    }
    out + &line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
}

/// What the model of a regime says of its sizes: lines end where the protocol changes.
fn curve(
    regime: &RegimeResult,
    sizes: &[usize],
    pairs: usize,
    (across, up): (&LogAxis, &LogAxis),
    at: usize,
) -> String {
    let Some(fit) = regime.best_fit() else { return String::new() };
    let within = sizes.iter().filter(|bytes| (regime.smallest_bytes..=regime.largest_bytes).contains(bytes));
    let point = |&bytes: &usize| {
        let rate = pairs as f64 * bytes as f64 / fit.values().seconds(fit.model, pairs, bytes) * 1e-6;
        (rate.is_finite() && rate > 0.0).then(|| format!("{:.1},{:.1}", across.at(bytes as f64), up.at(rate)))
    };
    let points: Vec<String> = within.filter_map(point).collect();
    format!("<polyline points=\"{}\" class=\"curve line{at}\"/>", points.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_have_both_ends() {
        assert_eq!(chosen(&[]), Vec::<usize>::new());
        assert_eq!(chosen(&[1]), [1]);
        assert_eq!(chosen(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(chosen(&(1..=16).collect::<Vec<_>>()), [1, 4, 8, 12, 16]);
    }
}
