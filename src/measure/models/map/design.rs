//! Which nodes meet in which round.
//!
//! All pairs are a one-factorisation: the rounds of a tournament, on seats that the seed deals out. A sample of a large job keeps
//! groups in balance: in a cycle of as many rounds as there are groups every node meets one of each group, its own among them. A round
//! of a cycle is inside groups; in the others a group's nodes meet as many different groups as they can, so that no round goes over
//! the links of a few pairs of groups. Members are paired by a tournament of their places, another round of it in each cycle: member a
//! of group g meets member b of group g + s, with an s of that pair's own in each round. Who is left over (of a smaller group, and whoever
//! would meet itself) is paired with others left over.

use std::collections::HashSet;

use super::Settings;
use crate::layout::order;

/// Numbers of draws: orders of measurements have others.
const SEATS: u64 = 1 << 40;
const ROUND_ORDER: u64 = SEATS + 1;
const GROUPS: u64 = SEATS + 2;

/// Rounds of disjoint pairs of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Design {
    /// For each round the node that each node meets; none for a node that rests.
    partners: Vec<Vec<Option<u32>>>,
    /// Pairs whose node with the larger number comes first, by round and that node.
    turned: HashSet<(u32, u32)>,
    all_pairs: bool,
}

impl Design {
    /// The design for nodes of these groups: all pairs, or a sample. The same on every rank.
    pub fn new(groups: &[u32], settings: &Settings, seed: u64) -> Self {
        let nodes = groups.len();
        let members = members(groups, seed);
        let all = tournament(nodes, seed);
        match settings.sampled_rounds(nodes, members.len()) {
            None => Design { partners: all.collect(), all_pairs: true, ..Design::default() },
            // Few rounds of few nodes leave nobody to fill up with.
            Some(rounds) if members.len() < 2 || 4 * rounds > nodes => {
                Design { partners: all.take(rounds).collect(), ..Design::default() }
            }
            Some(rounds) => Design { partners: balanced(&members, groups, rounds, seed), ..Design::default() },
        }
    }

    /// Rounds of given pairs of so many nodes, of each the first one first.
    ///
    /// # Panics
    /// If a node is twice in a round.
    pub fn of_rounds(nodes: usize, rounds: &[Vec<(u32, u32)>]) -> Self {
        let partners = |round: &Vec<(u32, u32)>| {
            let mut partners = vec![None; nodes];
            for &(a, b) in round {
                assert!(a != b && partners[a as usize].is_none() && partners[b as usize].is_none(), "disjoint pairs");
                (partners[a as usize], partners[b as usize]) = (Some(b), Some(a));
            }
            partners
        };
        let numbered =
            rounds.iter().enumerate().flat_map(|(at, round)| round.iter().map(move |pair| (at as u32, pair)));
        let turned = numbered.filter(|(_, (a, b))| a > b).map(|(at, (a, _))| (at, *a)).collect();
        Design { partners: rounds.iter().map(partners).collect(), turned, all_pairs: false }
    }

    /// Whether a node comes first in its pair: first messages go from it. Of most designs it is the one with the smaller number.
    pub fn is_first(&self, round: usize, node: usize) -> bool {
        let is_turned = |node: u32| self.turned.contains(&(round as u32, node));
        match self.partner(round, node) {
            Some(other) => is_turned(node as u32) || ((node as u32) < other && !is_turned(other)),
            None => false,
        }
    }

    /// Whether every two nodes meet.
    pub fn is_all_pairs(&self) -> bool {
        self.all_pairs
    }

    /// How many rounds there are.
    pub fn rounds(&self) -> usize {
        self.partners.len()
    }

    /// Whom a node meets in a round.
    pub fn partner(&self, round: usize, node: usize) -> Option<u32> {
        self.partners[round][node]
    }

    /// How many pairs there are in all rounds.
    pub fn pairs(&self) -> usize {
        self.partners.iter().flatten().flatten().count() / 2
    }
}

/// The rounds of a tournament in which everyone meets everyone, in an order of the seed.
fn tournament(nodes: usize, seed: u64) -> impl Iterator<Item = Vec<Option<u32>>> {
    let seats = nodes.next_multiple_of(2);
    let turning = seats.saturating_sub(1);
    // The seat that nobody has is the one that stays, with an odd number of nodes.
    let node_at = order(seed, SEATS, nodes);
    order(seed, ROUND_ORDER, if nodes < 2 { 0 } else { turning }).into_iter().map(move |round| {
        let mut partners = vec![None; nodes];
        for seat in 0..nodes {
            let other = match seat {
                seat if seat == turning => round,
                seat if seat == round => turning,
                seat => (2 * round + turning - seat) % turning,
            };
            partners[node_at[seat]] = node_at.get(other).map(|node| *node as u32);
        }
        partners
    })
}

/// The nodes of each group that has any, in an order of the seed: where routes go by the destination's place, those of one place in
/// every group would share a link with the same others in each round, and all be slow beside a job that is on it.
fn members(groups: &[u32], seed: u64) -> Vec<Vec<u32>> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); groups.iter().max().map_or(0, |last| *last as usize + 1)];
    for node in order(seed, SEATS, groups.len()) {
        members[groups[node] as usize].push(node as u32);
    }
    members.retain(|of| !of.is_empty());
    members
}

/// Places that meet, by cycles: in each every place once, beside itself where it has no other.
fn places(count: usize, seed: u64) -> Vec<Vec<(usize, usize)>> {
    if count < 2 {
        return vec![vec![(0, 0)]];
    }
    let pair = |(at, other): (usize, Option<u32>)| (at, other.map_or(at, |other| other as usize));
    let pairs = |round: Vec<Option<u32>>| round.into_iter().enumerate().map(pair).filter(|(a, b)| a <= b).collect();
    tournament(count, seed).map(pairs).collect()
}

/// So many rounds in which groups meet in turn.
fn balanced(members: &[Vec<u32>], groups: &[u32], rounds: usize, seed: u64) -> Vec<Vec<Option<u32>>> {
    let (count, largest) = (members.len(), members.iter().map(Vec::len).max().unwrap_or(0));
    let (distances, cycles) = (order(seed, GROUPS, count - 1), places(largest, seed));
    let mut met: HashSet<(u32, u32)> = HashSet::new();
    let mut between: Vec<u32> = vec![0; count * count];
    let mut rested: Vec<u32> = vec![0; groups.len()];
    // Groups that have nodes are numbered anew.
    let mut number = vec![0; groups.len()];
    members.iter().enumerate().for_each(|(at, of)| of.iter().for_each(|node| number[*node as usize] = at));
    let mut all = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let (turn, places) = (round % count, &cycles[(round / count) % cycles.len()]);
        let mut partners: Vec<Option<u32>> = vec![None; groups.len()];
        let pair = |a: u32, b: u32, partners: &mut Vec<Option<u32>>, met: &mut HashSet<_>, between: &mut Vec<u32>| {
            if a != b && partners[b as usize].is_none() && met.insert((a.min(b), a.max(b))) {
                (partners[a as usize], partners[b as usize]) = (Some(b), Some(a));
                let (from, to) = (number[a as usize], number[b as usize]);
                between[from * count + to] += 1;
                between[to * count + from] += u32::from(from != to);
            }
        };
        for (at, &(place, other)) in places.iter().enumerate() {
            for group in 0..count {
                let meets = match turn {
                    // Who has no other place to meet meets its own in other groups.
                    _ if place == other => (turn + count - group) % count,
                    0 => group,
                    _ => (group + 1 + distances[(turn - 1 + at * (count - 1) / places.len()) % (count - 1)]) % count,
                };
                if let (Some(&a), Some(&b)) = (members[group].get(place), members[meets].get(other))
                    && partners[a as usize].is_none()
                {
                    pair(a, b, &mut partners, &mut met, &mut between);
                }
            }
        }
        let mut left: Vec<u32> = (0..groups.len() as u32).filter(|node| partners[*node as usize].is_none()).collect();
        // Who has rested before goes first.
        left.sort_by_key(|node| std::cmp::Reverse(rested[*node as usize]));
        for at in 0..left.len() {
            let node = left[at];
            if partners[node as usize].is_some() {
                continue;
            }
            let from = number[node as usize];
            let size = |group: usize| members[group].len() as f64;
            let seen = |other: &u32| {
                let to = number[*other as usize];
                f64::from(between[from * count + to]) / (size(from) * size(to))
            };
            let is_free = |other: &u32| {
                partners[*other as usize].is_none() && !met.contains(&(node.min(*other), node.max(*other)))
            };
            let other = left[at + 1..].iter().copied().filter(is_free).min_by(|a, b| seen(a).total_cmp(&seen(b)));
            match other {
                Some(other) => pair(node, other, &mut partners, &mut met, &mut between),
                None => rested[node as usize] += 1,
            }
        }
        all.push(partners);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    pub(super) fn settings(rounds: Option<usize>, all_pairs: bool) -> Settings {
        Settings { bytes: None, messages: 2, round_trips: 2, slices: 3, step: 20, rounds, all_pairs }
    }

    /// Every meeting, the lower node first. Each is of two nodes that agree on it.
    fn meetings(design: &Design, nodes: usize) -> Vec<(u32, u32)> {
        (0..design.rounds()).flat_map(|round| meetings_of(design, round, nodes)).collect()
    }

    fn meetings_of(design: &Design, round: usize, nodes: usize) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for node in 0..nodes as u32 {
            let Some(other) = design.partner(round, node as usize) else { continue };
            assert_ne!(other, node);
            assert_eq!(design.partner(round, other as usize), Some(node), "round {round}");
            all.extend((node < other).then_some((node, other)));
        }
        all
    }

    fn rests(design: &Design, nodes: usize) -> Vec<usize> {
        let count = |node: usize| (0..design.rounds()).filter(|round| design.partner(*round, node).is_none()).count();
        (0..nodes).map(count).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn all_pairs_are_a_one_factorisation(nodes in 2usize..70, seed in any::<u64>()) {
            let design = Design::new(&vec![0; nodes], &settings(None, true), seed);
            prop_assert!(design.is_all_pairs());
            prop_assert_eq!(design.rounds(), nodes.next_multiple_of(2) - 1);
            let mut all = meetings(&design, nodes);
            all.sort_unstable();
            let every: Vec<(u32, u32)> =
                (0..nodes as u32).flat_map(|a| (a + 1..nodes as u32).map(move |b| (a, b))).collect();
            prop_assert_eq!(all, every, "each pair once");
            prop_assert_eq!(design.pairs(), nodes * (nodes - 1) / 2);
            // With an odd number each rests once, else nobody does.
            prop_assert_eq!(rests(&design, nodes), vec![nodes % 2; nodes]);
        }

        #[test]
        fn samples_are_of_different_pairs_and_nobody_rests_much(
            sizes in proptest::collection::vec(1usize..24, 1..12),
            part in 1usize..5,
            seed in any::<u64>(),
        ) {
            let groups: Vec<u32> =
                sizes.iter().enumerate().flat_map(|(group, size)| vec![group as u32; *size]).collect();
            let nodes = groups.len();
            let rounds = (nodes * part / 16).max(1);
            let design = Design::new(&groups, &settings(Some(rounds), false), seed);
            let mut all = meetings(&design, nodes);
            let (count, is_whole) = (all.len(), design.rounds() + 1 >= nodes);
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count, "no pair is measured twice");
            let most_rounds = if nodes < 2 { 0 } else { nodes.next_multiple_of(2) - 1 };
            prop_assert_eq!(design.rounds(), rounds.min(most_rounds));
            let rests = rests(&design, nodes);
            let (least, most) = (rests.iter().min().unwrap(), rests.iter().max().unwrap());
            prop_assert!(is_whole || most - least <= 2 + rounds / 8, "{rests:?} in {rounds} rounds of {sizes:?}");
        }

        #[test]
        fn groups_of_one_size_meet_equally_often(
            count in 2usize..12,
            half in 4usize..9,
            cycles in 1usize..3,
            seed in any::<u64>(),
        ) {
            let size = 2 * half;
            let groups: Vec<u32> = (0..count * size).map(|node| (node % count) as u32).collect();
            let rounds = count * cycles;
            prop_assume!(4 * rounds <= groups.len());
            let design = Design::new(&groups, &settings(Some(rounds), false), seed);
            let mut seen: HashMap<(u32, u32), usize> = HashMap::new();
            for round in 0..design.rounds() {
                let mut at_once: HashMap<(u32, u32), usize> = HashMap::new();
                for (a, b) in meetings_of(&design, round, groups.len()) {
                    let (a, b) = (groups[a as usize], groups[b as usize]);
                    *at_once.entry((a.min(b), a.max(b))).or_default() += 1;
                }
                // Inside groups or between them; between any two as few as there can be, but for what does not divide.
                let most = if round % count == 0 { half } else { 2 * half.div_ceil(count - 1) };
                prop_assert!(at_once.iter().all(|((a, b), met)| (a == b) == (round % count == 0) && *met <= most));
                at_once.into_iter().for_each(|(of, met)| *seen.entry(of).or_default() += met);
            }
            for a in 0..count as u32 {
                for b in a..count as u32 {
                    let own = if a == b { half } else { size };
                    prop_assert_eq!(seen.get(&(a, b)).copied(), Some(cycles * own), "{} and {}", a, b);
                }
            }
            prop_assert_eq!(rests(&design, groups.len()), vec![0; groups.len()]);
        }
    }

    #[test]
    fn large_jobs_are_sampled_and_small_ones_are_not() {
        let of = |nodes: usize, count: usize, settings: &Settings| {
            let groups: Vec<u32> = (0..nodes).map(|node| (node % count) as u32).collect();
            let design = Design::new(&groups, settings, 1);
            (design.rounds(), design.is_all_pairs())
        };
        let usual = settings(None, false);
        assert_eq!(of(256, 1, &usual), (255, true));
        assert_eq!(of(1024, 1, &usual), (64, false));
        assert_eq!(of(1024, 48, &usual), (96, false), "whole cycles of groups");
        assert_eq!(of(1024, 512, &usual), (64, false));
        assert_eq!(of(300, 3, &settings(None, true)), (299, true));
        assert_eq!(of(8, 2, &settings(Some(3), false)), (3, false));
        assert_eq!(of(8, 2, &settings(Some(30), false)), (7, true));
        assert_eq!(of(1, 1, &usual), (0, true));
        assert_eq!(of(2, 1, &usual), (1, true));
    }

    #[test]
    fn the_seed_decides_who_meets_when() {
        let groups = vec![0; 16];
        let of = |seed| Design::new(&groups, &settings(None, false), seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let given = Design::of_rounds(4, &[vec![(0, 3)], vec![(1, 0), (2, 3)]]);
        assert_eq!(
            (given.partner(0, 3), given.partner(0, 1), given.partner(1, 0), given.pairs()),
            (Some(0), None, Some(1), 3)
        );
        // The first of each pair, whatever its number.
        let first = |round| [0, 1, 2, 3].map(|node| given.is_first(round, node));
        assert_eq!((first(0), first(1)), ([true, false, false, false], [false, true, true, false]));
    }
}
