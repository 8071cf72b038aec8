//! The best parameters of formula (5), T = max(a + n / R_C, k n / R_N).
//!
//! It is the larger of two linear parts, so once it is known which observations the full node decides, each part is an exact
//! linear solution. A full node has the node's rate, and no observation has more: in the order of their rates, the full ones
//! are the last. Every such division is a start, from which division and solution follow each other until they agree.

use super::linear::solve;
use super::{Model, Observation, Values};

/// Divisions settle after a few turns, or go in circles.
const MOST_TURNS: usize = 20;

/// The values with the least cost among those that settle; none when no observations are decided by the node.
pub(super) fn search(observations: &[Observation], weights: &[f64], signed: bool) -> Option<Values> {
    let mut by_rate: Vec<usize> = (0..observations.len()).collect();
    by_rate.sort_by(|&a, &b| observations[a].rate().total_cmp(&observations[b].rate()));
    let settled = (0..by_rate.len()).filter_map(|free| {
        let mut full = vec![false; observations.len()];
        by_rate[free..].iter().for_each(|&at| full[at] = true);
        settle(observations, weights, full, signed)
    });
    let cost = |values: &Values| cost(Model::HiddenLatency, values, observations, weights);
    settled.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn settle(observations: &[Observation], weights: &[f64], mut full: Vec<bool>, signed: bool) -> Option<Values> {
    let mut values = parts(observations, weights, &full, signed)?;
    for _ in 0..MOST_TURNS {
        let decided = |seen: &Observation| values.is_full(Model::HiddenLatency, seen.pairs, seen.bytes);
        let next: Vec<bool> = observations.iter().map(decided).collect();
        if next == full {
            break;
        }
        full = next;
        values = parts(observations, weights, &full, signed)?;
    }
    Some(values)
}

/// Both parts' least squares for a division.
fn parts(observations: &[Observation], weights: &[f64], full: &[bool], signed: bool) -> Option<Values> {
    let (mut matrix, mut right) = ([[0.0; 2]; 2], [0.0; 2]);
    let (mut squares, mut products) = (0.0, 0.0);
    for ((seen, full), weight) in observations.iter().zip(full).zip(weights) {
        let (n, y) = (seen.bytes as f64, seen.seconds);
        if *full {
            let all = seen.pairs as f64 * n;
            squares += weight * all * all;
            products += weight * all * y;
        } else {
            matrix[0][0] += weight;
            matrix[0][1] += weight * n;
            matrix[1][1] += weight * n * n;
            right[0] += weight * y;
            right[1] += weight * n * y;
        }
    }
    matrix[1][0] = matrix[0][1];
    let node = Some(squares / products).filter(|node| node.is_finite() && *node > 0.0)?;
    if !full.contains(&false) {
        // A pair that the node never let be seen is at least as fast as the node.
        return Some(Values { latency: 0.0, first: node, further: node, node: Some(node) });
    }
    let [mut latency, mut slope] = solve(matrix, right)?;
    if latency < 0.0 && !signed {
        (latency, slope) = (0.0, right[1] / matrix[1][1]);
    }
    (slope > 0.0).then(|| Values { latency, first: 1.0 / slope, further: 1.0 / slope, node: Some(node) })
}

/// The weighted sum of squares that `values` leave of a model.
pub(super) fn cost(model: Model, values: &Values, observations: &[Observation], weights: &[f64]) -> f64 {
    let left = |seen: &Observation| (seen.seconds - values.seconds(model, seen.pairs, seen.bytes)).powi(2);
    observations.iter().zip(weights).map(|(seen, weight)| weight * left(seen)).sum()
}
