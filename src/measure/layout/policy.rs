//! Which nodes measure in which placement: policies, and the series of placements that one seed gives.
//!
//! Every policy gives an order of the nodes; the last of it measure, the others load, kind by kind. A placement of
//! canaries behind one switch and one of canaries across two are different questions, so the default deals roles evenly
//! over the groups that are known, and over a series of placements every node measures about equally often. Where roles
//! are drawn, two or more canary nodes are never all in one of several groups. The first node of a kind is the root of
//! an incast, so which group comes first in the order is drawn too, and each group has its turn.

use serde::{Deserialize, Serialize};

use super::Nodes;
use super::shuffle::{Stream, order, shuffle, stream};

/// How roles are placed on nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Drawn, with every role spread evenly over the groups that are known (leaf switches of the lab, --groups)
    #[default]
    Balanced,
    /// Drawn from all nodes, as GPCNeT does; never all canaries in one group where several are known
    Random,
    /// A block of neighbouring nodes measures
    Linear,
    /// Nodes at equal distances measure
    Interleaved,
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Policy::Balanced => "balanced",
            Policy::Random => "random",
            Policy::Linear => "linear",
            Policy::Interleaved => "interleaved",
        })
    }
}

/// One of the placements that a seed gives.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The seed of the whole series.
    pub seed: u64,
    /// Which of them, from 0.
    pub index: u32,
    /// How it is made.
    pub policy: Policy,
}

impl Placement {
    /// A single random placement, as GPCNeT makes it.
    pub fn random(seed: u64) -> Self {
        Placement { seed, index: 0, policy: Policy::Random }
    }

    /// The seed of what is drawn for this placement alone. The first has the seed of the series.
    pub fn own_seed(&self) -> u64 {
        match self.index {
            0 => self.seed,
            index => mix(self.seed ^ mix(u64::from(index))),
        }
    }

    /// The nodes that have roles, in the order in which these are dealt: congestors, then `canaries` canaries.
    pub(super) fn order(&self, nodes: &Nodes, canaries: usize) -> Vec<u32> {
        let count = nodes.used();
        match self.policy {
            Policy::Random => {
                let mut order: Vec<u32> = (0..count as u32).collect();
                shuffle(&mut order, &mut stream(self.own_seed(), Stream::Roles));
                apart(nodes, &mut order, canaries);
                order
            }
            Policy::Balanced => self.balanced(nodes, canaries),
            Policy::Linear => {
                let mut order = natural(nodes);
                order.rotate_left(self.offset(count));
                order
            }
            Policy::Interleaved => {
                let mut order = natural(nodes);
                order.rotate_left(self.offset(count));
                // The i-th of so many at equal distances; the rest keep their order.
                let chosen: Vec<u32> = (0..canaries).map(|at| order[at * count / canaries.max(1)]).collect();
                order.retain(|node| !chosen.contains(node));
                order.into_iter().chain(chosen).collect()
            }
        }
    }

    /// Where a series of regular placements stands: a start drawn once, then steps of the golden section, which spread
    /// over the nodes however many there are.
    fn offset(&self, count: usize) -> usize {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let start = mix(self.seed) as f64 / u64::MAX as f64;
        ((start + GOLDEN * f64::from(self.index)).fract() * count as f64) as usize % count
    }

    fn balanced(&self, nodes: &Nodes, canaries: usize) -> Vec<u32> {
        let mut rng = stream(self.seed, Stream::Roles);
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); nodes.group_count()];
        (0..nodes.used()).for_each(|node| groups[nodes.group_of(node)].push(node as u32));
        groups.iter_mut().for_each(|group| shuffle(group, &mut rng));
        shuffle(&mut groups, &mut rng);
        // As many as there were in the placements before: everyone's turn comes.
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        for index in 0..self.index {
            let quotas = quotas(&sizes, canaries, index as usize);
            groups.iter_mut().zip(quotas).for_each(|(group, quota)| group.rotate_left(quota));
        }
        let mut own = stream(self.own_seed(), Stream::Roles);
        let (mut measure, mut load) = (Vec::new(), Vec::new());
        let (turns, quotas) = (self.turns(groups.len()), quotas(&sizes, canaries, self.index as usize));
        for ((mut group, quota), turn) in groups.into_iter().zip(quotas).zip(turns) {
            let mut rest = group.split_off(quota);
            shuffle(&mut rest, &mut own);
            measure.extend(group);
            let (lag, share) = (turn as f64 / sizes.len() as f64, rest.len() as f64);
            load.extend(rest.into_iter().enumerate().map(|(at, node)| ((at as f64 + lag) / share, turn, node)));
        }
        // By their part of the group, so that every stretch of the order, and so every kind, has nodes of all groups.
        load.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // As a job's ranks are numbered: a collective then crosses between groups the same way in every placement.
        by_name(nodes, &mut measure);
        load.into_iter().map(|(_, _, node)| node).chain(measure).collect()
    }

    /// The place of each group in the order of this placement. Drawn for every `count` placements and rotated within them,
    /// so that each group comes first in one of them.
    fn turns(&self, count: usize) -> Vec<usize> {
        let (round, step) = (self.index as usize / count, self.index as usize % count);
        let mut turns = order(self.seed, round as u64, count);
        turns.iter_mut().for_each(|turn| *turn = (*turn + step) % count);
        turns
    }
}

/// Sees to it that the last `canaries` of an order are not all of one group, where they need not be: the last node before
/// them that is of another group takes the place of one of them.
fn apart(nodes: &Nodes, order: &mut [u32], canaries: usize) {
    let (load, measure) = order.split_at_mut(order.len() - canaries);
    let group = |node: u32| nodes.group_of(node as usize);
    let Some((&mut first, others @ [_, ..])) = measure.split_first_mut() else { return };
    if others.iter().all(|&node| group(node) == group(first))
        && let Some(other) = load.iter_mut().rfind(|node| group(**node) != group(first))
    {
        std::mem::swap(other, &mut others[0]);
    }
}

/// How many of `wanted` each group gives: in proportion to its size, the remainder to one group after the other. Two or
/// more are never all of one group.
fn quotas(sizes: &[usize], wanted: usize, turn: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let mut quotas: Vec<usize> = sizes.iter().map(|size| wanted * size / total.max(1)).collect();
    let mut at = turn;
    while quotas.iter().sum::<usize>() < wanted {
        let group = at % sizes.len();
        if quotas[group] < sizes[group] {
            quotas[group] += 1;
        }
        at += 1;
    }
    let mut groups = (0..sizes.len()).map(|after| (turn + after) % sizes.len());
    if wanted > 1
        && let Some(only) = quotas.iter().position(|&quota| quota == wanted)
        && let Some(other) = groups.find(|&group| group != only && sizes[group] > 0)
    {
        quotas[only] -= 1;
        quotas[other] += 1;
    }
    quotas
}

/// Nodes that have roles by group and name; digits count as numbers, so n2 comes before n10.
pub(super) fn natural(nodes: &Nodes) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes.used() as u32).collect();
    by_name(nodes, &mut order);
    order
}

fn by_name(nodes: &Nodes, order: &mut [u32]) {
    order.sort_by_cached_key(|&node| (nodes.group_of(node as usize), key(nodes.name(node as usize))));
}

/// Runs of digits as numbers (by length first), the rest as it is.
fn key(name: &str) -> Vec<(bool, usize, String)> {
    let mut parts: Vec<(bool, usize, String)> = Vec::new();
    for character in name.chars() {
        let digit = character.is_ascii_digit();
        match parts.last_mut() {
            Some((same, length, text)) if *same == digit => {
                text.push(character);
                *length += usize::from(digit);
            }
            _ => parts.push((digit, usize::from(digit), character.to_string())),
        }
    }
    parts
}

/// A 64-bit finaliser (of the splitmix family): neighbouring seeds give unlike streams.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes(count: usize, groups: usize) -> Nodes {
        let names: Vec<String> = (0..count).map(|node| format!("n{node}")).collect();
        let of: Vec<String> = (0..count).map(|node| format!("leaf{}", node * groups / count)).collect();
        Nodes::from_hosts(&names).with_groups(&of)
    }

    fn canaries(nodes: &Nodes, placement: Placement, wanted: usize) -> Vec<usize> {
        let order = placement.order(nodes, wanted);
        order[order.len() - wanted..].iter().map(|&node| node as usize).collect()
    }

    #[test]
    fn balanced_placements_spread_over_groups_and_take_turns() {
        let nodes = nodes(16, 2);
        let mut times = [0; 16];
        for index in 0..8 {
            let chosen = canaries(&nodes, Placement { seed: 3, index, policy: Policy::Balanced }, 4);
            let left = chosen.iter().filter(|&&node| nodes.group_of(node) == 0).count();
            assert_eq!(left, 2, "placement {index}: {chosen:?}");
            chosen.iter().for_each(|&node| times[node] += 1);
        }
        assert_eq!(times, [2; 16], "every node measures equally often");
    }

    #[test]
    fn kinds_of_congestors_have_nodes_of_every_group() {
        let nodes = nodes(16, 2);
        for index in 0..4 {
            let order = Placement { seed: 9, index, policy: Policy::Balanced }.order(&nodes, 4);
            for half in [&order[..6], &order[6..12]] {
                let left = half.iter().filter(|&&node| nodes.group_of(node as usize) == 0).count();
                assert_eq!(left, 3, "{order:?}");
            }
        }
    }

    #[test]
    fn every_group_comes_first_equally_often() {
        for (count, groups) in [(16, 2), (15, 3), (13, 2)] {
            let nodes = nodes(count, groups);
            let mut firsts = Vec::new();
            for seed in 0..20 {
                let first = |index| {
                    let order = Placement { seed, index, policy: Policy::Balanced }.order(&nodes, 3);
                    nodes.group_of(order[0] as usize)
                };
                let series: Vec<usize> = (0..4 * groups as u32).map(first).collect();
                let times = |group| series.iter().filter(|first| **first == group).count();
                assert!((0..groups).all(|group| times(group) == 4), "seed {seed}: {series:?}");
                firsts.push(series);
            }
            firsts.dedup();
            assert!(firsts.len() > 10, "drawn, not the same for every seed: {firsts:?}");
        }
    }

    #[test]
    fn a_seed_keeps_its_placements() {
        let order = |index| Placement { seed: 42, index, policy: Policy::Balanced }.order(&nodes(8, 2), 2);
        assert_eq!(
            [order(0), order(1)],
            [[7, 0, 6, 2, 4, 3, 1, 5], [2, 6, 1, 5, 0, 7, 3, 4]],
            "changing this breaks the seeds in users' result files"
        );
    }

    #[test]
    fn regular_policies_are_regular() {
        let nodes = nodes(12, 1);
        for index in 0..5 {
            let mut block = canaries(&nodes, Placement { seed: 1, index, policy: Policy::Linear }, 3);
            block.sort_unstable();
            assert!(block[2] - block[0] == 2 || block.contains(&0) && block.contains(&11), "{block:?}");
            let mut comb = canaries(&nodes, Placement { seed: 1, index, policy: Policy::Interleaved }, 3);
            comb.sort_unstable();
            assert_eq!((comb[1] - comb[0], comb[2] - comb[1]), (4, 4), "{comb:?}");
        }
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        assert!(key("n2") < key("n10") && key("a10b") < key("b1") && key("n2a") < key("n2b"));
    }

    proptest! {
        #[test]
        fn every_policy_orders_every_node_once(
            count in 2usize..60, groups in 1usize..7, seed: u64, index in 0u32..20, wanted in 1usize..20,
        ) {
            let (nodes, wanted) = (nodes(count, groups.min(count)), wanted.min(count));
            for policy in [Policy::Balanced, Policy::Random, Policy::Linear, Policy::Interleaved] {
                let mut order = Placement { seed, index, policy }.order(&nodes, wanted);
                order.sort_unstable();
                prop_assert_eq!(order, (0..count as u32).collect::<Vec<_>>());
            }
        }

        #[test]
        fn drawn_canaries_are_never_all_in_one_of_several_groups(
            sizes in proptest::collection::vec(1usize..12, 2..6), seed: u64, index in 0u32..40, wanted in 2usize..12,
        ) {
            let of: Vec<String> =
                sizes.iter().enumerate().flat_map(|(at, &size)| std::iter::repeat_n(format!("leaf{at}"), size)).collect();
            let names: Vec<String> = (0..of.len()).map(|node| format!("n{node}")).collect();
            let (nodes, wanted) = (Nodes::from_hosts(&names).with_groups(&of), wanted.min(of.len()));
            for policy in [Policy::Balanced, Policy::Random] {
                let chosen = canaries(&nodes, Placement { seed, index, policy }, wanted);
                let first = nodes.group_of(chosen[0]);
                prop_assert!(chosen.iter().any(|&node| nodes.group_of(node) != first), "{policy}: {chosen:?}");
            }
        }

        #[test]
        fn stretches_of_congestors_are_balanced(
            sizes in proptest::collection::vec(1usize..12, 2..5), seed: u64, index in 0u32..40,
        ) {
            let of: Vec<String> =
                sizes.iter().enumerate().flat_map(|(at, &size)| std::iter::repeat_n(format!("leaf{at}"), size)).collect();
            let names: Vec<String> = (0..of.len()).map(|node| format!("n{node}")).collect();
            let nodes = Nodes::from_hosts(&names).with_groups(&of);
            let order = Placement { seed, index, policy: Policy::Balanced }.order(&nodes, 2);
            let load = &order[..order.len() - 2];
            let count = |part: &[u32], group| part.iter().filter(|&&node| nodes.group_of(node as usize) == group).count();
            for length in 1..=load.len() {
                for group in 0..sizes.len() {
                    let fair = count(load, group) as f64 * length as f64 / load.len() as f64;
                    let off = (count(&load[..length], group) as f64 - fair).abs();
                    prop_assert!(off < 2.0, "{off} of group {group} in the first {length} of {load:?}");
                }
            }
        }
    }
}
