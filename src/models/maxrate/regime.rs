//! Protocol regimes: message sizes between which the time jumps or its slope changes.
//!
//! Within a regime all three models make the time a straight line of the size, for each number of pairs. So thresholds
//! are where lines break: the division of the sizes into at most three stretches, each with lines of its own, that has
//! the best Bayesian information criterion. Nothing is assumed of the models or of where thresholds lie.

use std::ops::Range;

use super::Observation;
use super::linear::solve;

/// Short, eager, rendezvous: no library is known to have more.
const MOST: usize = 3;
/// Two sizes are always on a line; four can show that they are not.
const FEWEST_SIZES: usize = 4;

/// The sizes of each regime, ascending. One regime when the data show no threshold, or are too few to.
pub fn regimes(observations: &[Observation]) -> Vec<Vec<usize>> {
    let mut sizes: Vec<usize> = observations.iter().map(|seen| seen.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut pairs: Vec<usize> = observations.iter().map(|seen| seen.pairs).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let cost = |stretch: Range<usize>| misfit(observations, &pairs, &sizes[stretch]);
    let count = observations.len() as f64;
    let criterion = |misfit: f64, regimes: usize| {
        // Two parameters of each line, and the place of each threshold.
        let parameters = regimes * 2 * pairs.len() + regimes - 1;
        count * (misfit / count).max(f64::MIN_POSITIVE).ln() + parameters as f64 * count.ln()
    };
    let divisions = (1..=MOST).filter_map(|regimes| {
        let (misfit, stretches) = divide(sizes.len(), regimes, &cost)?;
        Some((criterion(misfit, regimes), stretches))
    });
    let best = divisions.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(
        || vec![sizes.clone()],
        |(_, stretches)| stretches.into_iter().map(|stretch| sizes[stretch].to_vec()).collect(),
    )
}

/// The division of `0..sizes` into `regimes` stretches with the least cost. Sizes are few: all divisions are tried.
fn divide(sizes: usize, regimes: usize, cost: &impl Fn(Range<usize>) -> f64) -> Option<(f64, Vec<Range<usize>>)> {
    if regimes == 1 {
        return (sizes >= 2).then(|| (cost(0..sizes), std::iter::once(0..sizes).collect()));
    }
    let starts = (FEWEST_SIZES..sizes).filter(|&start| sizes - start >= FEWEST_SIZES);
    let divisions = starts.filter_map(|start| {
        let (before, mut stretches) = divide(start, regimes - 1, cost)?;
        stretches.push(start..sizes);
        Some((before + cost(start..sizes), stretches))
    });
    divisions.min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// The sum of squared relative residuals of a line for each number of pairs.
fn misfit(observations: &[Observation], pairs: &[usize], sizes: &[usize]) -> f64 {
    let line = |pairs: usize| {
        let seen = || {
            let within = |seen: &&Observation| seen.pairs == pairs && sizes.binary_search(&seen.bytes).is_ok();
            observations.iter().filter(within)
        };
        let (mut matrix, mut right) = ([[0.0; 2]; 2], [0.0; 2]);
        for one in seen() {
            let (weight, n) = (one.seconds.powi(-2), one.bytes as f64);
            matrix[0][0] += weight;
            matrix[0][1] += weight * n;
            matrix[1][1] += weight * n * n;
            right[0] += weight * one.seconds;
            right[1] += weight * n * one.seconds;
        }
        matrix[1][0] = matrix[0][1];
        let Some([latency, slope]) = solve(matrix, right) else { return 0.0 };
        seen().map(|one| ((latency + slope * one.bytes as f64) / one.seconds - 1.0).powi(2)).sum::<f64>()
    };
    pairs.iter().map(|&pairs| line(pairs)).sum()
}
