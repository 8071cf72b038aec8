//! Mixes: how many of the nodes that do not measure load the network, with which congestor, in messages of which size.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use rand::RngExt as _;

use crate::kernel::Congestor;
use crate::plan::Plan;

/// Up to so many mixes are all looked at; of more, so many that are drawn, and those near to the best.
const MOST: usize = 3000;

/// One mix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mix {
    /// Nodes of each kind: none, or at least two.
    pub nodes: Vec<usize>,
    /// Which of the sizes.
    pub size: usize,
}

impl Mix {
    /// How many nodes load.
    pub fn loading(&self) -> usize {
        self.nodes.iter().sum()
    }
}

/// All mixes that there are.
#[derive(Clone, Debug)]
pub struct Space {
    /// The kinds of congestors.
    pub kinds: Vec<Congestor>,
    /// Nodes that do not measure.
    pub nodes: usize,
    /// Sizes of messages, ascending; none: each kind has its own.
    pub sizes: Vec<usize>,
}

impl Space {
    /// Every mix, or as many as are looked at, for the kinds that are `wanted`; the same for the same seed.
    pub fn mixes(&self, wanted: &[bool], near: &[Mix], seed: u64) -> Vec<Mix> {
        let mut mixes = Vec::new();
        if self.count(wanted) <= MOST {
            let mut nodes = vec![0; self.kinds.len()];
            self.enumerate(wanted, 0, self.nodes, &mut nodes, &mut mixes);
        } else {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            mixes.extend((0..MOST).map(|_| self.draw(wanted, &mut random)));
            near.iter().for_each(|mix| self.neighbours(wanted, mix, &mut mixes));
        }
        mixes.retain(|mix| mix.loading() > 0);
        mixes.sort();
        mixes.dedup();
        mixes
    }

    /// How many sizes there are to choose from.
    pub fn size_count(&self) -> usize {
        self.sizes.len().max(1)
    }

    /// Where a mix lies: the shares of its kinds, and its size on a logarithmic scale from 0 to 1.
    pub fn place(&self, mix: &Mix) -> Vec<f64> {
        let mut place: Vec<f64> = mix.nodes.iter().map(|&nodes| self.share(nodes)).collect();
        if let (Some(&least), Some(&most)) = (self.sizes.first(), self.sizes.last())
            && most > least
        {
            let log = |bytes: usize| (bytes as f64).ln();
            place.push((log(self.sizes[mix.size]) - log(least)) / (log(most) - log(least)));
        }
        place
    }

    /// So many nodes as a part of those that do not measure.
    pub fn share(&self, nodes: usize) -> f64 {
        nodes as f64 / self.nodes as f64
    }

    /// The plan with the congestors of a mix.
    pub fn plan(&self, of: &Plan, mix: &Mix) -> Plan {
        let mut plan = of.clone();
        plan.congestors.retain(|test| {
            let kind = self.kinds.iter().position(|kind| *kind == test.kernel);
            kind.is_some_and(|kind| mix.nodes[kind] > 0)
        });
        for test in &mut plan.congestors {
            let kind = self.kinds.iter().position(|kind| *kind == test.kernel);
            test.weight = kind.map_or(1.0, |kind| mix.nodes[kind] as f64);
            test.counts.bytes = self.sizes.get(mix.size).copied().unwrap_or(test.counts.bytes);
        }
        plan.load_fraction = if plan.congestors.is_empty() { 1.0 } else { self.share(mix.loading()) };
        plan
    }

    /// As many nodes as there are, dealt by weights as a layout would.
    pub fn dealt(&self, weights: &[f64]) -> Vec<usize> {
        let total: f64 = weights.iter().sum();
        let wanted = |kind: usize| weights[kind] / total * self.nodes as f64;
        let mut nodes: Vec<usize> = (0..weights.len()).map(|kind| if weights[kind] > 0.0 { 2 } else { 0 }).collect();
        while nodes.iter().sum::<usize>() < self.nodes {
            let short = |kind: usize| wanted(kind) - nodes[kind] as f64;
            let used = (0..nodes.len()).filter(|&kind| nodes[kind] > 0);
            let Some(neediest) = used.reduce(|best, kind| if short(kind) > short(best) + 1e-9 { kind } else { best })
            else {
                break;
            };
            nodes[neediest] += 1;
        }
        nodes
    }

    /// An upper bound that does not overflow: nodes over kinds and rest, times sizes.
    fn count(&self, wanted: &[bool]) -> usize {
        let kinds = wanted.iter().filter(|of| **of).count();
        (1..=kinds).fold(self.size_count(), |count, kind| count.saturating_mul(self.nodes + kind) / kind)
    }

    fn enumerate(&self, wanted: &[bool], kind: usize, left: usize, nodes: &mut Vec<usize>, mixes: &mut Vec<Mix>) {
        if kind == self.kinds.len() {
            mixes.extend((0..self.size_count()).map(|size| Mix { nodes: nodes.clone(), size }));
            return;
        }
        for count in (0..=left).filter(|&count| count == 0 || (count > 1 && wanted[kind])) {
            nodes[kind] = count;
            self.enumerate(wanted, kind + 1, left - count, nodes, mixes);
        }
        nodes[kind] = 0;
    }

    /// A mix from all over the place: nodes are cut at random points, and what falls below two goes.
    fn draw(&self, wanted: &[bool], random: &mut ChaCha8Rng) -> Mix {
        let used: Vec<usize> = (0..self.kinds.len()).filter(|&kind| wanted[kind]).collect();
        let mut cuts: Vec<usize> = used.iter().map(|_| random.random_range(0..=self.nodes)).collect();
        cuts.sort_unstable();
        let mut nodes = vec![0; self.kinds.len()];
        let mut before = 0;
        for (&kind, &cut) in used.iter().zip(&cuts) {
            nodes[kind] = if cut - before < 2 { 0 } else { cut - before };
            before = cut;
        }
        Mix { nodes, size: random.random_range(0..self.size_count()) }
    }

    /// Mixes in which a few nodes do something else, or the size is the next.
    fn neighbours(&self, wanted: &[bool], mix: &Mix, mixes: &mut Vec<Mix>) {
        let fits = |nodes: &Vec<usize>| nodes.iter().sum::<usize>() <= self.nodes && nodes.iter().all(|&of| of != 1);
        let steps: Vec<usize> =
            [1, 2, 3, self.nodes / 16, self.nodes / 8].into_iter().filter(|&step| step > 0).collect();
        let used: Vec<usize> = (0..self.kinds.len()).filter(|&kind| wanted[kind]).collect();
        let sizes = mix.size.saturating_sub(1)..=(mix.size + 1).min(self.size_count() - 1);
        let mut around = vec![mix.nodes.clone()];
        for &step in &steps {
            for &kind in &used {
                let mut more = mix.nodes.clone();
                more[kind] += step;
                around.push(more);
                let Some(fewer) = mix.nodes[kind].checked_sub(step) else { continue };
                let mut less = mix.nodes.clone();
                less[kind] = fewer;
                for &other in used.iter().filter(|&&other| other != kind) {
                    let mut moved = less.clone();
                    moved[other] += step;
                    around.push(moved);
                }
                around.push(less);
            }
        }
        around.retain(fits);
        mixes.extend(
            around.into_iter().flat_map(|nodes| sizes.clone().map(move |size| Mix { nodes: nodes.clone(), size })),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Preset;

    fn space(nodes: usize, kinds: usize, sizes: &[usize]) -> Space {
        let kinds = Congestor::ALL[..kinds].to_vec();
        Space { kinds, nodes, sizes: sizes.to_vec() }
    }

    #[test]
    fn small_spaces_are_looked_at_whole() {
        let mixes = space(4, 2, &[]).mixes(&[true, true], &[], 1);
        let nodes: Vec<&[usize]> = mixes.iter().map(|mix| &mix.nodes[..]).collect();
        assert_eq!(nodes, [[0, 2], [0, 3], [0, 4], [2, 0], [2, 2], [3, 0], [4, 0]]);
        assert_eq!(space(4, 2, &[]).mixes(&[true, false], &[], 1).len(), 3);
        assert_eq!(space(4, 2, &[8, 64]).mixes(&[true, true], &[], 1).len(), 14);
    }

    #[test]
    fn of_large_spaces_the_same_seed_draws_the_same() {
        let space = space(200, 4, &[]);
        let near = [Mix { nodes: vec![50, 0, 30, 0], size: 0 }];
        let mixes = space.mixes(&[true; 4], &near, 7);
        assert!(mixes.len() > 2000 && mixes == space.mixes(&[true; 4], &near, 7));
        assert_ne!(mixes, space.mixes(&[true; 4], &near, 8));
        assert!(mixes.iter().all(|mix| mix.loading() <= 200 && mix.nodes.iter().all(|&nodes| nodes != 1)));
        assert!(mixes.contains(&Mix { nodes: vec![49, 0, 31, 0], size: 0 }));
        // All over the place: some rest nearly all, some load nearly all.
        assert!(mixes.iter().any(|mix| mix.loading() < 40) && mixes.iter().any(|mix| mix.loading() > 180));
    }

    #[test]
    fn a_mix_is_a_plan_that_deals_its_nodes() {
        let space = Space { kinds: vec![Congestor::AllToAll, Congestor::Incast], nodes: 12, sizes: vec![4096, 65536] };
        let plan = space.plan(&Preset::Lab.plan(), &Mix { nodes: vec![6, 3], size: 1 });
        assert_eq!((plan.weights(), plan.load_fraction), (vec![("a2a", 6.0), ("incast", 3.0)], 0.75));
        assert!(plan.congestors.iter().all(|test| test.counts.bytes == 65536));
        let quiet = space.plan(&Preset::Lab.plan(), &Mix { nodes: vec![0, 0], size: 0 });
        assert!(quiet.congestors.is_empty());
        assert_eq!((space.dealt(&[2.0, 1.0]), space.dealt(&[1.0, 0.0])), (vec![8, 4], vec![12, 0]));
        assert_eq!(space.place(&Mix { nodes: vec![6, 3], size: 1 }), [0.5, 0.25, 1.0]);
    }
}
