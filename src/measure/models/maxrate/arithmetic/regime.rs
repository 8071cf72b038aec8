//! Protocol regimes: message sizes between which the time jumps or its slope changes.
//!
//! Within a regime the models make the time a straight line of the size, for each number of pairs, or (formula 5) the larger
//! of such a line and one through the origin, from where the node is full. So thresholds are where lines break: the division
//! of the sizes into at most three stretches, each with lines or knees of its own, that has the best Bayesian information
//! criterion. Nothing is assumed of the parameters or of where thresholds lie.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Observation;
use super::linear::solve;

/// Short, eager, rendezvous: no library is known to have more.
const MOST: usize = 3;
/// Two sizes are always on a line; four can show that they are not.
const FEWEST_SIZES: usize = 4;

/// What the time of one number of pairs is within a regime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Line,
    /// A line until the node is full, then one through the origin.
    Knee,
}

impl Form {
    fn parameters(self) -> usize {
        match self {
            Form::Line => 2,
            Form::Knee => 3,
        }
    }
}

/// The sizes of each regime, ascending. One regime when the data show no threshold, or are too few to.
pub fn regimes(observations: &[Observation]) -> Vec<Vec<usize>> {
    let sizes = distinct(observations.iter().map(|seen| seen.bytes));
    let pairs = distinct(observations.iter().map(|seen| seen.pairs));
    let count = observations.len() as f64;
    let divisions = [Form::Line, Form::Knee].into_iter().flat_map(|form| {
        let cost = memory(sizes.len(), |stretch| misfit(form, observations, &pairs, &sizes[stretch]));
        let found = (1..=MOST).filter_map(|regimes| {
            let (misfit, stretches) =
                divide(sizes.len(), regimes, &|stretch: Range<usize>| cost[stretch.start][stretch.end])?;
            // The parameters of each line, and the place of each threshold.
            let parameters = regimes * form.parameters() * pairs.len() + regimes - 1;
            let misfit = count * (misfit / count).max(f64::MIN_POSITIVE).ln();
            Some((misfit + parameters as f64 * count.ln(), stretches))
        });
        found.collect::<Vec<_>>()
    });
    let best = divisions.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(
        || vec![sizes.clone()],
        |(_, stretches)| stretches.into_iter().map(|stretch| sizes[stretch].to_vec()).collect(),
    )
}

/// The sizes of each regime when its largest size is given, of all but the last.
pub fn given_regimes(observations: &[Observation], thresholds: &[usize]) -> Vec<Vec<usize>> {
    let regime = |bytes: usize| thresholds.iter().filter(|largest| bytes > **largest).count();
    let sizes = distinct(observations.iter().map(|seen| seen.bytes));
    let regimes = sizes.chunk_by(|a, b| regime(*a) == regime(*b));
    regimes.map(<[usize]>::to_vec).collect()
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let all: BTreeSet<usize> = values.collect();
    all.into_iter().collect()
}

/// The cost of every stretch by its start and end: divisions ask for each many times.
fn memory(sizes: usize, cost: impl Fn(Range<usize>) -> f64) -> Vec<Vec<f64>> {
    let row = |start: usize| (0..=sizes).map(|end| if start < end { cost(start..end) } else { 0.0 }).collect();
    (0..sizes).map(row).collect()
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

/// The sum of squared relative residuals of a line or knee for each number of pairs.
fn misfit(form: Form, observations: &[Observation], pairs: &[usize], sizes: &[usize]) -> f64 {
    let of = |pairs: usize| {
        let within = |seen: &&Observation| seen.pairs == pairs && sizes.binary_search(&seen.bytes).is_ok();
        let mut seen: Vec<&Observation> = observations.iter().filter(within).collect();
        seen.sort_by_key(|one| one.bytes);
        match form {
            Form::Line => line(&seen, &[]),
            Form::Knee => (2..=seen.len()).map(|at| line(&seen[..at], &seen[at..])).fold(f64::INFINITY, f64::min),
        }
    };
    pairs.iter().map(|&pairs| of(pairs)).map(|misfit| if misfit.is_finite() { misfit } else { 0.0 }).sum()
}

/// Times of one number of pairs as a straight line of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Line {
    pub latency: f64,
    /// Seconds a byte.
    pub slope: f64,
}

impl Line {
    /// The line that leaves the least relative errors; none where any line would do.
    pub fn through<'a>(seen: impl IntoIterator<Item = &'a Observation>) -> Option<Line> {
        let (mut matrix, mut right) = ([[0.0; 2]; 2], [0.0; 2]);
        for one in seen {
            let (weight, n) = (one.seconds.powi(-2), one.bytes as f64);
            matrix[0][0] += weight;
            matrix[0][1] += weight * n;
            matrix[1][1] += weight * n * n;
            right[0] += weight * one.seconds;
            right[1] += weight * n * one.seconds;
        }
        matrix[1][0] = matrix[0][1];
        let [latency, slope] = solve(matrix, right)?;
        Some(Line { latency, slope })
    }

    /// The time of a message.
    pub fn seconds(&self, bytes: usize) -> f64 {
        self.latency + self.slope * bytes as f64
    }
}

/// What the larger of a line through `free` and one through the origin and `full` leaves of both; nothing when `free` is
/// on any line.
fn line(free: &[&Observation], full: &[&Observation]) -> f64 {
    let Some(through) = Line::through(free.iter().copied()) else { return f64::INFINITY };
    let part = |one: &&Observation| one.bytes as f64 / one.seconds;
    let (parts, squares) =
        full.iter().fold((0.0, 0.0), |(sum, squares), one| (sum + part(one), squares + part(one).powi(2)));
    let origin = if full.is_empty() { 0.0 } else { parts / squares };
    let modelled = |bytes: usize| through.seconds(bytes).max(origin * bytes as f64);
    free.iter().chain(full).map(|one| (modelled(one.bytes) / one.seconds - 1.0).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_thresholds_are_the_largest_sizes_of_their_regimes() {
        let seen = |power: usize| Observation { pairs: 1, bytes: 1 << power, seconds: 1e-6 };
        let seen: Vec<Observation> = (0..12).map(seen).collect();
        let of = |thresholds: &[usize]| given_regimes(&seen, thresholds).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(of(&[32, 1024]), [6, 5, 1]);
        assert_eq!(of(&[33, 1000]), [6, 4, 2], "between two sizes");
        assert_eq!(of(&[4096]), [12], "above all of them");
    }
}
