//! All runs held against the recorded one, in units of what cannot be told apart.
//!
//! A distance of 1 is that of two runs under the same load. Every canary and every counter counts the same, however many
//! quantiles it has: a difference counts by its standard error over placements, and by no less than what two runs of a steady
//! network differ by.

use super::Observed;

/// Canaries of a steady network differ by so much from run to run, on a logarithmic scale.
const LEAST_CANARY: f64 = 0.1;
/// Counters likewise, as a part of the most that was seen.
const LEAST_COUNTER: f64 = 0.04;

/// Runs as points of equal length.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// What of each canary and counter stands where.
    pub names: Vec<String>,
    /// The recorded run.
    pub target: Vec<f64>,
    /// The others, in their order.
    pub runs: Vec<Vec<f64>>,
    /// What two runs under the same load differ by, squared.
    pub variance: Vec<f64>,
    /// What each counts; in all 1.
    pub weight: Vec<f64>,
    /// How many canaries and counters there are.
    pub observables: usize,
}

impl Sight {
    /// Canaries that all have, and counters that any has: what was not counted did not happen.
    pub fn of(target: &Observed, runs: &[&Observed]) -> Self {
        let mut sight = Sight { runs: vec![Vec::new(); runs.len()], ..Sight::default() };
        for (name, wanted) in &target.canaries {
            let Some(found) = runs.iter().map(|run| run.canaries.get(name)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            sight.observables += 1;
            for (level, &(log, error)) in wanted.iter().enumerate() {
                let values = found.iter().map(|of| of[level].0);
                // Both runs have the error.
                let variance = LEAST_CANARY.powi(2) + 2.0 * error.powi(2);
                sight.add(name, log, values, variance, 1.0 / wanted.len() as f64);
            }
        }
        let mut counters: Vec<&String> =
            std::iter::once(target).chain(runs.iter().copied()).flat_map(|of| of.counters.keys()).collect();
        counters.sort();
        counters.dedup();
        for name in counters {
            let rate = |of: &Observed| of.counters.get(name).copied().unwrap_or(0.0);
            let most = runs.iter().map(|run| rate(run)).fold(rate(target), f64::max);
            if most > 0.0 {
                sight.observables += 1;
                let wanted = rate(target) / most;
                let values = runs.iter().map(|run| rate(run) / most);
                sight.add(name, wanted, values, LEAST_COUNTER.powi(2), 1.0);
            }
        }
        let total: f64 = sight.weight.iter().sum();
        sight.weight.iter_mut().for_each(|weight| *weight /= total.max(f64::MIN_POSITIVE));
        sight
    }

    fn add(&mut self, name: &str, target: f64, values: impl Iterator<Item = f64>, variance: f64, weight: f64) {
        self.names.push(name.to_owned());
        self.target.push(target);
        self.runs.iter_mut().zip(values).for_each(|(run, value)| run.push(value));
        self.variance.push(variance);
        self.weight.push(weight);
    }

    /// How far a point is from the recorded run.
    pub fn distance(&self, point: &[f64]) -> f64 {
        self.between(point, &self.target)
    }

    /// How far two points are from each other.
    pub fn between(&self, one: &[f64], other: &[f64]) -> f64 {
        let terms = one.iter().zip(other).zip(self.variance.iter().zip(&self.weight));
        terms.map(|((one, other), (variance, weight))| weight * (one - other).powi(2) / variance).sum::<f64>().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(median: f64, error: f64, bytes: f64) -> Observed {
        let canaries = [("lat".to_owned(), vec![(median, error), (median + 1.0, error)])].into();
        Observed { canaries, counters: [("bytes".to_owned(), bytes), ("unmoved".to_owned(), 0.0)].into() }
    }

    #[test]
    fn one_is_what_cannot_be_told_apart() {
        let target = observed(2.0, 0.0, 500.0);
        let near = observed(2.0 + LEAST_CANARY, 0.0, 500.0 + LEAST_COUNTER * 1000.0);
        let far = observed(4.0, 0.0, 1000.0);
        let sight = Sight::of(&target, &[&near, &far, &target]);
        assert_eq!((sight.observables, sight.names.len()), (2, 3), "{sight:?}");
        let [close, wide, same] = [0, 1, 2].map(|run| sight.distance(&sight.runs[run]));
        assert!((close - 1.0).abs() < 1e-9 && same == 0.0, "{close} {same}");
        // Twenty errors of the canary and half of the most of the counter, evenly.
        assert!((wide - ((400.0 + (0.5 / LEAST_COUNTER).powi(2)) / 2.0f64).sqrt()).abs() < 1e-9, "{wide}");
    }

    #[test]
    fn what_differs_between_placements_counts_less() {
        let noisy = Sight::of(&observed(2.0, 1.0, 0.0), &[&observed(3.0, 0.0, 0.0)]);
        let sure = Sight::of(&observed(2.0, 0.0, 0.0), &[&observed(3.0, 0.0, 0.0)]);
        assert!(noisy.distance(&noisy.runs[0]) < 1.0 && sure.distance(&sure.runs[0]) > 9.0);
    }
}
