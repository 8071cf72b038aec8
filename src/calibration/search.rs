//! Which mix to run next, and what was found.
//!
//! First what the plan has, nothing, and every kind on all nodes: what these show bounds what their mixes can. Kinds that
//! show the same are searched as one. From then on a model of all runs chooses, in turns: the mix that could be nearest for all that
//! is known, and the one that is expected to be. Once one is as near as can be, runs go to what is least known of those that are not
//! ruled out yet.

use std::collections::BTreeSet;

use super::distance::Distances;
use super::mix::{Mix, Space};
use super::observed::Observed;
use super::surrogate::{Prediction, Surrogate};

/// A search has no more runs.
pub const MOST_RUNS: usize = 20;
/// Nearer than this to the recorded run no mix is nearer.
const NEAR_ENOUGH: f64 = 0.1;
/// Shares that are known to so much are known.
const NARROW: f64 = 0.1;
/// Kinds that are no farther from each other than two runs of the same load are alike.
const ALIKE: f64 = 1.0;
/// A mix is ruled out when it is less likely than what was found by two standard errors.
const RULED_OUT: f64 = 4.0;

/// A search.
pub struct Search {
    space: Space,
    target: Observed,
    /// The plan's own mix.
    start: Mix,
    seed: u64,
    most: usize,
    runs: Vec<(Mix, Observed)>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Which of the runs, in their order.
    pub run: usize,
    /// The distance of each run.
    pub distances: Vec<f64>,
    /// For each kind, the shares that the runs do not rule out.
    pub ranges: Vec<Range>,
    /// The same for nodes that rest.
    pub resting: Range,
    /// Sizes that the runs do not rule out, by index.
    pub sizes: Vec<usize>,
    /// Kinds that could not be told apart, by index: the first of each stands for the others.
    pub alike: Vec<Vec<usize>>,
}

/// Shares of the nodes that do not measure.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Search {
    /// A search for what shows `target`, from the mix that deals all nodes by `weights`.
    pub fn new(space: Space, target: Observed, weights: &[f64], seed: u64, most: usize) -> Result<Self, String> {
        let kinds = space.kinds.len();
        if space.nodes < 2 * kinds || kinds == 0 {
            return Err(format!(
                "a kind of congestor takes 2 nodes or more, and {} nodes do not measure: {kinds} kinds are too many",
                space.nodes
            ));
        }
        let start = Mix { nodes: space.dealt(weights), size: (space.size_count() - 1) / 2 };
        let search = Search { space, target, start, seed, most, runs: Vec::new() };
        let least = search.design().len() + 1;
        if most < least {
            return Err(format!(
                "{most} runs are too few: with {kinds} kinds of congestors a search has {least} at least"
            ));
        }
        Ok(search)
    }

    /// What mixes there are.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The runs so far.
    pub fn runs(&self) -> impl Iterator<Item = &Mix> {
        self.runs.iter().map(|(mix, _)| mix)
    }

    /// The mix to run next; nothing when the runs are used up, or nothing is gained by more.
    pub fn next(&self) -> Option<Mix> {
        let done = self.runs.len();
        if let Some(mix) = self.design().into_iter().nth(done) {
            return Some(mix);
        }
        let distances = self.distances();
        let nearest = distances.runs.iter().map(|run| distances.distance(run)).fold(f64::INFINITY, f64::min);
        if done >= self.most {
            return None;
        }
        let model = self.model(&distances);
        let (near, hopeful) = (nearest < NEAR_ENOUGH, done.is_multiple_of(2));
        let score = |mix: &Mix| {
            let prediction = model.at(&self.space.place(mix));
            match (near, hopeful) {
                (true, _) => (-unknown(&distances, &prediction), 0.0),
                (_, true) => (at_best(&distances, &prediction), expected(&distances, &prediction)),
                _ => (expected(&distances, &prediction), 0.0),
            }
        };
        let run: BTreeSet<&Mix> = self.runs().collect();
        let candidates = if near { self.possible(&distances, &model) } else { self.candidates(&distances) };
        if near && self.ranges(&candidates).iter().all(|range| range.high - range.low <= NARROW) {
            return None;
        }
        let scored = candidates.iter().filter(|mix| !run.contains(mix)).map(|mix| (score(mix), mix));
        let best = scored.reduce(|best, other| if other.0 < best.0 { other } else { best });
        best.map(|(_, mix)| mix.clone())
    }

    /// Takes what a mix showed.
    pub fn add(&mut self, mix: Mix, shown: Observed) {
        self.runs.push((mix, shown));
    }

    /// What was found so far; nothing before the first run.
    pub fn found(&self) -> Option<Found> {
        let distances = self.distances();
        let to_runs = distances.runs.iter().map(|run| distances.distance(run)).collect();
        let model = (!self.runs.is_empty()).then(|| self.model(&distances))?;
        let run = self.nearest(&distances, &model);
        let left = self.possible(&distances, &model);
        let mut ranges = self.ranges(&left);
        let resting = ranges.pop()?;
        let mut sizes: Vec<usize> = left.iter().map(|mix| mix.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let alike: Vec<Vec<usize>> = self.alike(&distances).into_iter().filter(|kinds| kinds.len() > 1).collect();
        for kinds in &alike {
            // What is known of them is their sum.
            let high = ranges[kinds[0]].high;
            kinds.iter().for_each(|&kind| ranges[kind] = Range { low: 0.0, high });
        }
        Some(Found { run, distances: to_runs, ranges, resting, sizes, alike })
    }

    /// All runs, against the recorded one.
    pub fn distances(&self) -> Distances {
        Distances::of(&self.target, &self.runs.iter().map(|(_, shown)| shown).collect::<Vec<_>>())
    }

    /// The nearest run, by what it showed and by what the model of all of them makes of its mix: either may err.
    fn nearest(&self, distances: &Distances, model: &Surrogate) -> usize {
        let smooth = |run: usize| distances.distance(&model.at(&self.space.place(&self.runs[run].0)).mean);
        let by_both = |run: usize| distances.distance(&distances.runs[run]).powi(2) + smooth(run).powi(2);
        (0..self.runs.len()).min_by(|&a, &b| by_both(a).total_cmp(&by_both(b))).unwrap_or(0)
    }

    /// Mixes that are not ruled out, with the one that was found.
    fn possible(&self, distances: &Distances, model: &Surrogate) -> Vec<Mix> {
        let found = &self.runs[self.nearest(distances, model)].0;
        let unlikely = |mix: &Mix| likelihood(distances, &model.at(&self.space.place(mix)));
        let limit = unlikely(found) + RULED_OUT / distances.observables.max(1) as f64;
        let mut left: Vec<Mix> = self.candidates(distances).into_iter().filter(|mix| unlikely(mix) <= limit).collect();
        if !left.contains(found) {
            left.push(found.clone());
        }
        left
    }

    /// The least and the most share of each kind in some mixes, and of nodes that rest.
    fn ranges(&self, mixes: &[Mix]) -> Vec<Range> {
        let range = |nodes: &dyn Fn(&Mix) -> usize| {
            let shares: Vec<f64> = mixes.iter().map(|mix| self.space.share(nodes(mix))).collect();
            let (low, high) = (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
            Range { low, high }
        };
        let mut ranges: Vec<Range> = (0..self.space.kinds.len()).map(|kind| range(&|mix| mix.nodes[kind])).collect();
        ranges.push(range(&|mix| self.space.nodes - mix.loading()));
        ranges
    }

    /// The runs that are made whatever they show.
    fn design(&self) -> Vec<Mix> {
        let (kinds, all) = (self.space.kinds.len(), self.space.nodes);
        let alone =
            |kind: usize, nodes: usize| (0..kinds).map(|of| if of == kind { nodes } else { 0 }).collect::<Vec<_>>();
        let mut mixes = vec![self.start.clone(), Mix { nodes: vec![0; kinds], size: self.start.size }];
        mixes.extend((0..kinds).map(|kind| Mix { nodes: alone(kind, all), size: self.start.size }));
        if self.space.size_count() > 1 {
            let last = self.space.size_count() - 1;
            mixes.extend([0, last].map(|size| Mix { size, ..self.start.clone() }));
        }
        let mut seen = BTreeSet::new();
        mixes.retain(|mix| seen.insert(mix.clone()));
        mixes
    }

    fn model(&self, distances: &Distances) -> Surrogate {
        let places: Vec<Vec<f64>> = self.runs().map(|mix| self.space.place(mix)).collect();
        Surrogate::fit(&places, &distances.runs)
    }

    fn candidates(&self, distances: &Distances) -> Vec<Mix> {
        let alike = self.alike(distances);
        let wanted: Vec<bool> = (0..self.space.kinds.len()).map(|kind| alike.iter().any(|of| of[0] == kind)).collect();
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        order.sort_by(|&a, &b| {
            distances.distance(&distances.runs[a]).total_cmp(&distances.distance(&distances.runs[b]))
        });
        let near: Vec<Mix> = order.iter().take(3).map(|&run| self.runs[run].0.clone()).collect();
        self.space.mixes(&wanted, &near, self.seed)
    }

    /// Kinds in groups that show the same where they are alone on all nodes.
    fn alike(&self, distances: &Distances) -> Vec<Vec<usize>> {
        let all = self.space.nodes;
        let alone = |kind: usize| {
            let run = self.runs().position(|mix| mix.nodes[kind] == all && mix.size == self.start.size);
            run.map(|run| &distances.runs[run])
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for kind in 0..self.space.kinds.len() {
            let same = |group: &&mut Vec<usize>| match (alone(group[0]), alone(kind)) {
                (Some(one), Some(other)) => distances.between(one, other) <= ALIKE,
                _ => false,
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(kind),
                None => groups.push(vec![kind]),
            }
        }
        groups
    }
}

/// How little is known of a mix.
fn unknown(distances: &Distances, prediction: &Prediction) -> f64 {
    terms(distances, prediction).map(|(_, unknown, variance, weight)| weight * unknown / variance).sum()
}

/// How far a mix is expected to be, squared.
fn expected(distances: &Distances, prediction: &Prediction) -> f64 {
    terms(distances, prediction).map(|(off, unknown, variance, weight)| weight * (off * off + unknown) / variance).sum()
}

/// How far it would be if the model errs by a standard error in its favour, squared.
fn at_best(distances: &Distances, prediction: &Prediction) -> f64 {
    let off = |off: f64, unknown: f64| (off.abs() - unknown.sqrt()).max(0.0);
    terms(distances, prediction)
        .map(|(by, unknown, variance, weight)| weight * off(by, unknown).powi(2) / variance)
        .sum()
}

/// How unlikely it is that this mix showed what was recorded: what the model does not know speaks against nothing.
fn likelihood(distances: &Distances, prediction: &Prediction) -> f64 {
    terms(distances, prediction).map(|(off, unknown, variance, weight)| weight * off * off / (variance + unknown)).sum()
}

fn terms<'a>(distances: &'a Distances, prediction: &'a Prediction) -> impl Iterator<Item = (f64, f64, f64, f64)> + 'a {
    (0..distances.target.len()).map(|at| {
        let off = prediction.mean[at] - distances.target[at];
        (off, prediction.variance[at], distances.variance[at], distances.weight[at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Congestor;

    /// A network of our own: queues that fill with incast, a fabric that all-to-all uses, and some noise.
    fn shows(mix: &Mix, nodes: usize, noise: impl Fn(usize) -> f64) -> Observed {
        let share = |kind: usize| mix.nodes.get(kind).map_or(0.0, |&of| of as f64 / nodes as f64);
        let (all, incast, put) = (share(0), share(1), share(2));
        let into = 1.0 - (-3.0 * (incast + put)).exp();
        let lat = 1.0 + 4.0 * into + 0.5 * all * into;
        let bw = 2.0 + 1.5 * all + 2.0 * into * into;
        let canaries = [("lat", lat, 0), ("bw", bw, 1)]
            .map(|(name, log, at)| (name.to_owned(), vec![(log + noise(at), 0.05), (1.2 * log + noise(at + 2), 0.05)]));
        let counters = [("bytes", 100.0 * all + 8.0 * into, 4), ("drops", 20.0 * into * (1.0 - 0.3 * all), 5)];
        let counters = counters.map(|(name, rate, at)| (name.to_owned(), (rate * (1.0 + noise(at))).max(0.0)));
        Observed { canaries: canaries.into(), counters: counters.into(), ..Observed::default() }
    }

    fn space(nodes: usize, kinds: &[Congestor]) -> Space {
        Space { kinds: kinds.to_vec(), nodes, sizes: Vec::new() }
    }

    const TWO: [Congestor; 2] = [Congestor::AllToAll, Congestor::Incast];

    /// Searches for `secret`, with noise of this size from run to run.
    fn search(space: Space, secret: &Mix, noise: f64) -> (Search, Found) {
        let nodes = space.nodes;
        let draw = |run: usize| move |at: usize| noise * ((17.0 * run as f64 + 3.7 * at as f64).sin());
        let weights = vec![1.0; space.kinds.len()];
        let mut search = Search::new(space, shows(secret, nodes, draw(99)), &weights, 1, MOST_RUNS).unwrap();
        while let Some(mix) = search.next() {
            let shown = shows(&mix, nodes, draw(search.runs.len()));
            search.add(mix, shown);
            assert!(search.runs.len() <= MOST_RUNS);
        }
        let found = search.found().unwrap();
        (search, found)
    }

    fn assert_near(search: &Search, found: &Found, secret: &Mix, within: f64) {
        let mix = search.runs().nth(found.run).unwrap();
        for (kind, (&is, &was)) in mix.nodes.iter().zip(&secret.nodes).enumerate() {
            let (is, was) = (search.space.share(is), search.space.share(was));
            assert!((is - was).abs() <= within, "{mix:?} for {secret:?}");
            let Range { low, high } = found.ranges[kind];
            assert!(low <= was + 1e-9 && was <= high + 1e-9, "kind {kind}: {was} is not in {low} to {high}");
        }
    }

    #[test]
    fn secret_mixes_are_found() {
        for nodes in [vec![6, 3], vec![0, 4], vec![9, 2], vec![3, 9], vec![2, 2]] {
            let secret = Mix { nodes, size: 0 };
            let (found_by, found) = search(space(12, &TWO), &secret, 0.0);
            assert_near(&found_by, &found, &secret, 0.01);
            let (noisy, found) = search(space(12, &TWO), &secret, 0.03);
            assert_near(&noisy, &found, &secret, 0.1);
        }
    }

    #[test]
    fn large_jobs_are_searched_as_well() {
        let secret = Mix { nodes: vec![90, 40], size: 0 };
        let (found_by, found) = search(space(200, &TWO), &secret, 0.01);
        assert_near(&found_by, &found, &secret, 0.05);
    }

    #[test]
    fn kinds_that_do_the_same_are_told_together() {
        let secret = Mix { nodes: vec![4, 2, 2], size: 0 };
        let three = [Congestor::AllToAll, Congestor::Incast, Congestor::PutIncast];
        let (found_by, found) = search(space(12, &three), &secret, 0.0);
        assert_eq!(found.alike, [[1, 2]]);
        let mix = found_by.runs().nth(found.run).unwrap();
        assert_eq!((mix.nodes[0], mix.nodes[1] + mix.nodes[2]), (4, 4));
    }

    #[test]
    fn what_cannot_be_told_is_not_claimed() {
        // Nothing that is seen depends on all-to-all.
        let blind = |mix: &Mix| {
            let mut shown = shows(&Mix { nodes: vec![0, mix.nodes[1]], size: 0 }, 12, |_| 0.0);
            shown.canaries.remove("bw");
            shown
        };
        let secret = Mix { nodes: vec![5, 4], size: 0 };
        let mut search = Search::new(space(12, &TWO), blind(&secret), &[1.0, 1.0], 1, 12).unwrap();
        while let Some(mix) = search.next() {
            let shown = blind(&mix);
            search.add(mix, shown);
        }
        let found = search.found().unwrap();
        let Range { low, high } = found.ranges[0];
        assert!(low == 0.0 && high > 0.5, "a2a is anything: {low} to {high}");
        assert!(found.ranges[1].high - found.ranges[1].low < 0.2, "{:?}", found.ranges);
    }

    #[test]
    fn a_search_is_the_same_again_and_has_a_limit() {
        let run = |most| {
            let secret = shows(&Mix { nodes: vec![50, 31], size: 0 }, 100, |_| 0.0);
            let mut search = Search::new(space(100, &TWO), secret, &[3.0, 1.0], 5, most).unwrap();
            while let Some(mix) = search.next() {
                let shown = shows(&mix, 100, |_| 0.3);
                search.add(mix, shown);
            }
            search.runs().cloned().collect::<Vec<_>>()
        };
        let mixes = run(8);
        assert_eq!(mixes, run(8));
        assert_eq!(mixes.len(), 8);
        assert_eq!(mixes[0].nodes, [75, 25], "the plan's own first");
        let refused = |nodes, kinds: &[Congestor], most| {
            Search::new(space(nodes, kinds), Observed::default(), &vec![1.0; kinds.len()], 1, most).err().unwrap()
        };
        assert!(refused(12, &TWO, 3).contains("has 5 at least"));
        assert!(refused(3, &TWO, 20).contains("2 kinds are too many"));
    }
}
