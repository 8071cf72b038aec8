//! When a rate has come to rest, so that no figure is that of a start.
//!
//! What is repeated is timed in batches. The first ones are short: they warm up, and find out how many iterations fill a
//! batch's time. From then on batches count, and when the last of them agree they are the figure. Nothing here takes time or
//! knows a network: members of a group that are told the same times decide the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::Nanos;

/// So many batches in a row must agree: few would pass for steady while a rate is still getting better slowly.
const AGREE: usize = 5;
/// A batch has at most so many times the iterations of the one before.
const GROWTH: u64 = 8;
/// A batch of so many counts however little time it took: the clock may be coarse.
const MOST: u64 = 1 << 30;

/// What a rate must do to be steady, and how long that is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// A batch that counts takes about this long, or one iteration where that takes longer.
    pub batch: Nanos,
    /// The slowest of the batches that agree takes at most so many times the quickest.
    pub within: f64,
    /// So many iterations at least make a figure.
    pub least: u64,
    /// After this, what has been counted is the figure, steady or not.
    pub longest: Nanos,
    /// Whether the first batch may count: someone else has warmed up.
    pub warm: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Rule { batch: Nanos(1_000_000), within: 1.05, least: 1, longest: Nanos(50_000_000), warm: false }
    }
}

impl Rule {
    /// Where nothing but the network takes any time, and the same as much every time.
    pub fn on_virtual_time() -> Self {
        Rule { batch: Nanos(20_000), longest: Nanos(1_000_000), ..Rule::default() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    iterations: u64,
    ns: u64,
}

impl Batch {
    fn each(self) -> f64 {
        self.ns as f64 / self.iterations as f64
    }
}

/// Batches on their way to a figure.
#[derive(Clone, Debug)]
pub struct Steady {
    rule: Rule,
    /// Iterations of the batch that is next.
    next: u64,
    /// Batches that count, without one in between that does not.
    counted: Vec<Batch>,
    iterations: u64,
    spent_ns: u64,
}

/// A figure, and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rested {
    /// Time of an iteration in the middle one of the batches that count, in ns: one hiccup does not move it.
    pub median_ns: f64,
    /// That in the quickest of them.
    pub quickest_ns: f64,
    /// How many batches these are: the last ones.
    pub batches: usize,
    /// All iterations, those of the warm-up included.
    pub iterations: u64,
    /// How long all of them took.
    pub spent: Nanos,
    /// Whether the batches agreed.
    pub steady: bool,
}

impl Steady {
    /// Begins with a batch of one iteration.
    pub fn new(rule: Rule) -> Self {
        Steady { rule, next: 1, counted: Vec::new(), iterations: 0, spent_ns: 0 }
    }

    /// How many iterations the next batch has.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The next batch took this long. The figure, once there is one.
    pub fn add(&mut self, took: Nanos) -> Option<Rested> {
        let batch = Batch { iterations: self.next, ns: took.0.max(1) };
        let first = self.iterations == 0;
        self.iterations += batch.iterations;
        self.spent_ns += batch.ns;
        // As many as its share of what a figure needs; and half of the time will do, or batches would always be resized.
        let share = self.rule.least.div_ceil(AGREE as u64).max(1);
        let long = 2 * batch.ns >= self.rule.batch.0 || batch.iterations >= MOST;
        let whole = batch.iterations >= share && long;
        if whole && (self.rule.warm || !first) {
            self.counted.push(batch);
        } else {
            self.counted.clear();
        }
        if !whole {
            let fitting = u128::from(batch.iterations) * u128::from(self.rule.batch.0) / u128::from(batch.ns);
            let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
            self.next = fitting.min(batch.iterations.saturating_mul(GROWTH)).min(MOST).max(share);
        }
        let last = &self.counted[self.counted.len().saturating_sub(AGREE)..];
        let iterations: u64 = last.iter().map(|batch| batch.iterations).sum();
        let mut each: Vec<f64> = last.iter().map(|batch| batch.each()).collect();
        each.sort_by(f64::total_cmp);
        let steady = each.len() == AGREE && each[AGREE - 1] <= self.rule.within * each[0];
        // One hiccup may take all the time: fewer batches will do only where each of them is a good part of it.
        let quickest = last.iter().map(|batch| batch.ns).min().unwrap_or(0);
        let enough = each.len() == AGREE || quickest >= self.rule.longest.0 / AGREE as u64;
        let over = self.spent_ns >= self.rule.longest.0 && iterations >= self.rule.least.max(1) && enough;
        (steady || over).then(|| Rested {
            median_ns: (each[(each.len() - 1) / 2] + each[each.len() / 2]) / 2.0,
            quickest_ns: each[0],
            batches: each.len(),
            iterations: self.iterations,
            spent: Nanos(self.spent_ns),
            steady,
        })
    }
}

/// How many iterations figures took until their rates were steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Took {
    /// Measurements, each repeated until its rate was steady or its time was over.
    pub measurements: u64,
    /// Those whose time was over first.
    pub unsteady: u64,
    /// The fewest iterations that one took, its warm-up included.
    pub fewest: u64,
    /// The most.
    pub most: u64,
}

impl Took {
    /// One more measurement.
    pub fn add(&mut self, rested: &Rested) {
        let iterations = rested.iterations;
        self.fewest = if self.measurements == 0 { iterations } else { self.fewest.min(iterations) };
        self.most = self.most.max(iterations);
        self.measurements += 1;
        self.unsteady += u64::from(!rested.steady);
    }

    /// In words, for a table's foot; `iterations` is what they are called.
    pub fn describe(&self, iterations: &str) -> String {
        let Took { measurements, unsteady, fewest, most } = self;
        let range = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        let steady = match unsteady {
            0 => "all steady".into(),
            some => format!("{some} of {measurements} not steady when their time was over"),
        };
        format!("{range} {iterations} a measurement, warm-up included; {steady}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches whose iterations take what `each_ns` says of the iteration they begin with, until there is a figure.
    fn rest(rule: Rule, mut each_ns: impl FnMut(u64) -> f64) -> Rested {
        let mut steady = Steady::new(rule);
        let mut done = 0;
        for _ in 0..100_000 {
            let iterations = steady.next();
            let took = Nanos((iterations as f64 * each_ns(done)) as u64);
            done += iterations;
            if let Some(rested) = steady.add(took) {
                return rested;
            }
        }
        panic!("no figure after {done} iterations");
    }

    #[test]
    fn a_steady_rate_needs_five_batches_of_a_millisecond() {
        let rested = rest(Rule::default(), |_| 400.0);
        assert!(rested.steady && rested.batches == 5);
        assert!((rested.median_ns / 400.0 - 1.0).abs() < 0.01 && rested.spent.0 < 7_000_000, "{rested:?}");
    }

    #[test]
    fn a_slow_start_is_no_part_of_the_figure() {
        // As a library behaves that sets itself up while it is used: 2 us at first, and less and less.
        for pace in [100.0, 1000.0, 4000.0] {
            let rested = rest(Rule::default(), |done| 400.0 + 1600.0 * (-(done as f64) / pace).exp());
            assert!(rested.steady && (rested.median_ns / 400.0 - 1.0).abs() < 0.05, "{pace}: {rested:?}");
        }
    }

    #[test]
    fn a_rate_that_never_rests_ends_when_its_time_is_over() {
        for (rule, longest_us) in [(Rule::default(), 50_000), (Rule::on_virtual_time(), 1000)] {
            let mut turn = 0;
            let rested = rest(rule, |_| {
                turn += 1;
                if turn % 2 == 0 { 1000.0 } else { 1500.0 }
            });
            assert!(!rested.steady && rested.batches == 5 && rested.quickest_ns <= rested.median_ns, "{rested:?}");
            assert!((longest_us..longest_us * 6 / 5).contains(&(rested.spent.0 / 1000)), "{rested:?}");
        }
    }

    #[test]
    fn long_iterations_are_not_repeated_more_than_asked_for() {
        let slow = |rule: Rule| rest(rule, |_| 200e6).iterations;
        assert_eq!(slow(Rule::default()), 2, "one to warm up, one that counts");
        assert_eq!(slow(Rule { warm: true, ..Rule::default() }), 1);
        assert_eq!(slow(Rule { least: 4, ..Rule::default() }), 5);
    }

    /// Batches of 1, 8 and 64 iterations of 10 us, of which the last is more than half of 1 ms and is made five times; and of 1 that
    /// is half of 20 us.
    #[test]
    fn batches_grow_until_they_take_half_of_their_time() {
        let spent_us = |rule: Rule| rest(rule, |_| 10_000.0).spent.0 / 1000;
        assert_eq!(spent_us(Rule::default()), 10 + 80 + 5 * 640);
        assert_eq!(spent_us(Rule::on_virtual_time()), 10 + 5 * 10);
    }

    #[test]
    fn of_two_batches_the_figure_lies_between() {
        let rested = rest(Rule { warm: true, ..Rule::default() }, |done| if done == 0 { 30e6 } else { 40e6 });
        assert_eq!((rested.batches, rested.median_ns, rested.quickest_ns), (2, 35e6, 30e6));
    }

    #[test]
    fn what_is_asked_for_at_least_is_counted() {
        for least in [1, 2, 50, 100_000] {
            let rested = rest(Rule { least, ..Rule::default() }, |_| 10_000.0);
            assert!(rested.steady && rested.iterations > least, "{least}: {rested:?}");
        }
    }

    #[test]
    fn a_hiccup_does_not_move_the_figure() {
        let mut batch = 0u32;
        let rested = rest(Rule::default(), |_| {
            batch += 1;
            // While batches still grow, and again when they count: longer than the longest.
            if batch == 3 || batch == 7 { 50_000.0 } else { 500.0 + f64::from(batch % 2) }
        });
        assert!(rested.batches == 5 && (rested.median_ns / 500.0 - 1.0).abs() < 0.01, "{rested:?}");
    }

    #[test]
    fn a_clock_that_stands_still_is_survived() {
        let mut steady = Steady::new(Rule::default());
        assert!((0..50).any(|_| steady.add(Nanos(0)).is_some()));
    }

    #[test]
    fn what_it_took_is_summed_up() {
        let mut took = Took::default();
        for (iterations, steady) in [(40, true), (10, false), (70, true)] {
            let (median_ns, quickest_ns, batches, spent) = (1.0, 1.0, 5, Nanos(1));
            took.add(&Rested { median_ns, quickest_ns, batches, iterations, spent, steady });
        }
        assert_eq!(took, Took { measurements: 3, unsteady: 1, fewest: 10, most: 70 });
        let said = took.describe("round trips");
        assert_eq!(
            said,
            "10 to 70 round trips a measurement, warm-up included; 1 of 3 not steady when their time was over"
        );
    }
}
