//! All runs held against the recorded one, in units of what cannot be told apart.
//!
//! A distance of 1 is that of two runs under the same load. Every canary and every counter counts the same, however many
//! quantiles it has: a difference counts by its standard error over placements, and by no less than what two runs of a steady
//! network differ by. A counter that differs no more between mixes than between runs of one tells nothing and is left out.
//!
//! A counter of ports is two: how much it is on all of them, and how that lies on them, port by port in their order. The first
//! stands still once a link that all share is full, and is less whenever processors are slow; the second is the same then, and goes
//! on with every node that loads: it rests, answers, sends to all or is sent to by all. What comes in bursts is known no better than
//! a count of bursts is: one port that dropped five packets and another that dropped none are the same.

use super::observed::{Observed, Ports};
use crate::stats::{mean, variance};

/// Canaries of a steady network differ by so much from run to run, on a logarithmic scale.
const LEAST_CANARY: f64 = 0.1;
/// Counters likewise, as a part of the most that was seen: those whose noise is known, and others.
const LEAST_MEASURED: f64 = 0.02;
const LEAST_COUNTER: f64 = 0.04;
/// A port with this part of the usual port's rate is at rest.
const RESTING: f64 = 0.01;
/// Runs before which no counter is called useless.
const FEWEST_RUNS: usize = 3;

/// Runs as points of equal length.
#[derive(Clone, Debug, Default)]
pub struct Distances {
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

impl Distances {
    /// Canaries that all have, and counters that any has: what was not counted did not happen. Where nothing tells mixes apart,
    /// all that there is.
    pub fn of(target: &Observed, runs: &[&Observed]) -> Self {
        let telling = Distances::with(target, runs, true);
        if telling.names.is_empty() { Distances::with(target, runs, false) } else { telling }
    }

    fn with(target: &Observed, runs: &[&Observed], only_telling: bool) -> Self {
        let mut distances = Distances { runs: vec![Vec::new(); runs.len()], ..Distances::default() };
        for (name, wanted) in &target.canaries {
            let Some(found) = runs.iter().map(|run| run.canaries.get(name)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            distances.observables += 1;
            for (level, &(log, error)) in wanted.iter().enumerate() {
                let values = found.iter().map(|of| of[level].0);
                // Both runs have the error.
                let variance = LEAST_CANARY.powi(2) + 2.0 * error.powi(2);
                distances.add(name, log, values, variance, 1.0 / wanted.len() as f64);
            }
        }
        let everyone = || std::iter::once(target).chain(runs.iter().copied());
        let mut counters: Vec<&String> = everyone().flat_map(|of| of.counters.keys()).collect();
        counters.sort();
        counters.dedup();
        for name in counters {
            // By placement, where all are recent enough to have that.
            if let Some(ports) = everyone().map(|of| of.ports.get(name)).collect::<Option<Vec<_>>>() {
                distances.add_ports(name, &ports, target.is_dealt, only_telling);
                continue;
            }
            let rate = |of: &Observed| of.counters.get(name).copied().unwrap_or(0.0);
            let most = runs.iter().map(|run| rate(run)).fold(rate(target), f64::max);
            if most > 0.0 {
                distances.observables += 1;
                let wanted = rate(target) / most;
                let values = runs.iter().map(|run| rate(run) / most);
                distances.add(name, wanted, values, LEAST_COUNTER.powi(2), 1.0);
            }
        }
        let total: f64 = distances.weight.iter().sum();
        distances.weight.iter_mut().for_each(|weight| *weight /= total.max(f64::MIN_POSITIVE));
        distances
    }

    /// A counter of ports; of the recorded run first.
    fn add_ports(&mut self, name: &str, ports: &[&Vec<Ports>], is_dealt: bool, only_telling: bool) {
        let everywhere = || ports.iter().flat_map(|of| of.iter());
        let busiest = everywhere().flat_map(|of| &of.per_s).copied().fold(0.0, f64::max);
        let width = everywhere().map(|of| of.per_s.len()).min().unwrap_or(0);
        if busiest <= 0.0 || width == 0 {
            return;
        }
        let amount = |of: &Ports| vec![amount(of, busiest)];
        self.add_view(name, &views(ports, amount), is_dealt, only_telling);
        let shape = |of: &Ports| levels(of, busiest);
        self.add_view(&format!("{name}: by port"), &views(ports, shape), is_dealt, only_telling);
    }

    /// Values of every run on every placement; of the recorded run first.
    fn add_view(&mut self, name: &str, runs: &[Vec<Vec<Value>>], is_dealt: bool, only_telling: bool) {
        let width = runs.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let placements = mean(&runs.iter().map(|of| of.len() as f64).collect::<Vec<_>>());
        // Our mean over placements has an error; the recorded load has the same one, or is a single draw.
        let draws = if is_dealt { 2.0 / placements } else { 1.0 + 1.0 / placements };
        let mut values = Vec::new();
        for at in 0..width {
            let column = |run: &Vec<Vec<Value>>, of: fn(&Value) -> f64| -> Vec<f64> {
                run.iter().map(|values| of(&values[at])).collect()
            };
            let means: Vec<f64> = runs.iter().map(|run| mean(&column(run, |value| value.is))).collect();
            let known: Vec<f64> = runs.iter().filter_map(|run| variance(&column(run, |value| value.is))).collect();
            let chance: Vec<f64> = runs.iter().map(|run| mean(&column(run, |value| value.chance))).collect();
            let least = if known.is_empty() { LEAST_COUNTER } else { LEAST_MEASURED };
            // Placements that are alike by chance do not make it less.
            let noise = mean(&known).max(mean(&chance));
            values.push((means, noise * draws + least.powi(2)));
        }
        let signal = |(means, noise): &(Vec<f64>, f64)| Some(variance(&means[1..])? / noise);
        let signals: Option<Vec<f64>> = values.iter().map(signal).collect();
        let signals = signals.filter(|_| only_telling && runs.len() > FEWEST_RUNS);
        if signals.is_some_and(|signals| signals.iter().all(|&signal| signal <= 1.0)) {
            return;
        }
        self.observables += 1;
        for (means, noise) in values {
            self.add(name, means[0], means[1..].iter().copied(), noise, 1.0 / width as f64);
        }
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

/// What a placement shows, and the variance of that by chance alone.
struct Value {
    is: f64,
    chance: f64,
}

/// What every run shows on every placement, in some way of looking at it.
fn views(ports: &[&Vec<Ports>], view: impl Fn(&Ports) -> Vec<Value>) -> Vec<Vec<Vec<Value>>> {
    ports.iter().map(|of| of.iter().map(&view).collect()).collect()
}

/// How much all ports do, as a part of what the busiest of all runs did. A rate of bursts varies by its root.
fn amount(ports: &Ports, busiest: f64) -> Value {
    let usual = mean(&ports.per_s);
    let chance = ports.burst * usual / ports.per_s.len() as f64 / busiest.powi(2);
    Value { is: usual / busiest, chance }
}

/// How much each port does beside the others, on a logarithmic scale: 0 at rest, 1 as much as the mean. Where all ports together
/// do next to nothing, or a port less than comes at once, it does nothing.
fn levels(ports: &Ports, busiest: f64) -> Vec<Value> {
    let usual = mean(&ports.per_s).max(RESTING * busiest);
    let resting = (RESTING * usual).max(ports.burst);
    let level = |rate: f64| (1.0 + rate / resting).ln() / (1.0 + 1.0 / RESTING).ln();
    let value = |&rate: &f64| {
        let is = level(rate);
        Value { is, chance: (level(rate + (ports.burst * rate).sqrt()) - is).powi(2) }
    };
    ports.per_s.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(median: f64, error: f64, bytes: f64) -> Observed {
        let canaries = [("lat".to_owned(), vec![(median, error), (median + 1.0, error)])].into();
        let counters = [("bytes".to_owned(), bytes), ("unmoved".to_owned(), 0.0)].into();
        Observed { canaries, counters, ..Observed::default() }
    }

    #[test]
    fn one_is_what_cannot_be_told_apart() {
        let target = observed(2.0, 0.0, 500.0);
        let near = observed(2.0 + LEAST_CANARY, 0.0, 500.0 + LEAST_COUNTER * 1000.0);
        let far = observed(4.0, 0.0, 1000.0);
        let distances = Distances::of(&target, &[&near, &far, &target]);
        assert_eq!((distances.observables, distances.names.len()), (2, 3), "{distances:?}");
        let [close, wide, same] = [0, 1, 2].map(|run| distances.distance(&distances.runs[run]));
        assert!((close - 1.0).abs() < 1e-9 && same == 0.0, "{close} {same}");
        // Twenty errors of the canary and half of the most of the counter, evenly.
        assert!((wide - ((400.0 + (0.5 / LEAST_COUNTER).powi(2)) / 2.0f64).sqrt()).abs() < 1e-9, "{wide}");
    }

    /// Sixteen ports on each placement, of which some carry a load.
    fn on_ports(placements: &[(usize, f64)]) -> Observed {
        in_bursts(placements, 0.0)
    }

    fn in_bursts(placements: &[(usize, f64)], burst: f64) -> Observed {
        let rates = |&(busy, rate): &(usize, f64)| {
            let per_s = (0..16).map(|port| if port < 16 - busy { 0.0 } else { rate }).collect();
            Ports { per_s, burst }
        };
        let ports: Vec<Ports> = placements.iter().map(rates).collect();
        let total = ports.iter().flat_map(|of| &of.per_s).sum();
        let (counters, ports) = ([("bytes".to_owned(), total)].into(), [("bytes".to_owned(), ports)].into());
        Observed { counters, ports, is_dealt: true, ..Observed::default() }
    }

    #[test]
    fn few_full_ports_are_not_many_that_carry_as_much_together() {
        let [few, many] = [on_ports(&[(2, 600.0); 3]), on_ports(&[(12, 100.0); 3])];
        let distances = Distances::of(&few, &[&many, &few]);
        assert_eq!(
            (&distances.names[0][..], &distances.names[1][..], distances.names.len()),
            ("bytes", "bytes: by port", 17)
        );
        let gap = |at: usize| (distances.runs[0][at] - distances.target[at]).abs();
        assert!(gap(0) < 1e-9 && gap(8) > 0.5, "{distances:?}");
        assert_eq!(distances.observables, 2);
        // On a machine whose processors were slow it is the same load.
        let slow = on_ports(&[(2, 300.0); 3]);
        let distances = Distances::of(&few, &[&slow]);
        assert!((1..17).all(|at| (distances.runs[0][at] - distances.target[at]).abs() < 1e-9), "{distances:?}");
        // An older file has only sums, and by these they are the same.
        let older = Observed { ports: Default::default(), ..few };
        let distances = Distances::of(&older, &[&many]);
        assert_eq!((&distances.names[..], distances.distance(&distances.runs[0])), (&["bytes".to_owned()][..], 0.0));
    }

    #[test]
    fn fewer_than_come_at_once_tell_nothing() {
        // Five packets dropped by one port on each placement, or none: once it was further off than any other load.
        let [few, none, many] = [(1, 5.0), (1, 0.0), (12, 2000.0)].map(|placement| in_bursts(&[placement; 2], 30.0));
        let to_runs = |runs: &[&Observed]| {
            let distances = Distances::of(&none, runs);
            distances.runs.iter().map(|run| distances.distance(run)).collect::<Vec<_>>()
        };
        assert!(to_runs(&[&few, &none])[0] < 1.0, "{:?}", to_runs(&[&few, &none]));
        let beside = to_runs(&[&few, &many, &none]);
        assert!(beside[0] < 1.0 && beside[1] > 5.0, "{beside:?}");
        // Of what flows, five a second are five a second.
        let [few, none] = [(1, 5.0), (1, 0.0)].map(|placement| on_ports(&[placement; 2]));
        let distances = Distances::of(&none, &[&few]);
        assert!(distances.distance(&distances.runs[0]) > 5.0);
    }

    #[test]
    fn a_counter_counts_by_its_noise_and_not_at_all_below_it() {
        let near = |low: f64, high: f64| on_ports(&[(8, low), (8, high)]);
        let [steady, other] = [near(100.0, 100.0), near(150.0, 150.0)];
        let sure = Distances::of(&steady, &[&other, &steady]);
        let [unsure, less] = [near(80.0, 120.0), near(120.0, 180.0)];
        let doubtful = Distances::of(&unsure, &[&less, &unsure]);
        let [sure, doubtful] = [sure, doubtful].map(|distances| distances.distance(&distances.runs[0]));
        assert!(sure > 2.0 * doubtful && doubtful > 0.5, "{sure} and {doubtful}");
        // Placements differ by more than any two of these mixes.
        let wild = [near(10.0, 190.0), near(20.0, 170.0), near(5.0, 200.0), near(15.0, 180.0)];
        let distances = Distances::of(&wild[0], &[&wild[1], &wild[2], &wild[3]]);
        assert_eq!(distances.observables, 2, "where nothing tells, all that there is");
        let beside = |of: &Observed| Observed { canaries: observed(2.0, 0.1, 0.0).canaries, ..of.clone() };
        let distances = Distances::of(&beside(&wild[0]), &[&beside(&wild[1]), &beside(&wild[2]), &beside(&wild[3])]);
        assert_eq!(distances.names, ["lat", "lat"]);
        // A load that lies where it lies is one draw.
        let fixed = Observed { is_dealt: false, ..unsure.clone() };
        let variance = |target: &Observed| Distances::of(target, &[&less, &unsure]).variance[0];
        assert!(variance(&fixed) > 1.2 * variance(&unsure));
    }

    #[test]
    fn what_differs_between_placements_counts_less() {
        let noisy = Distances::of(&observed(2.0, 1.0, 0.0), &[&observed(3.0, 0.0, 0.0)]);
        let sure = Distances::of(&observed(2.0, 0.0, 0.0), &[&observed(3.0, 0.0, 0.0)]);
        assert!(noisy.distance(&noisy.runs[0]) < 1.0 && sure.distance(&sure.runs[0]) > 9.0);
    }
}
