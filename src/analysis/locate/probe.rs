//! Which parts of a system are measured again, alone.
//!
//! Candidates are what a map shows to be slower than its peers with little certainty, the most certain first and no more than a bound.
//! Beside them stand controls, of which nothing is suspected, drawn by lot. A node meets several partners, one at a time and nothing
//! else on the network; most are of its own group, so that its group's links do not decide. Links of groups are only full when several
//! pairs use them, so all pairs that two groups have are measured at once. Rounds of a part are spread over the whole time: what other
//! jobs load for a while is seen in few of them.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::fit::Models;
use super::suspect::{Place, Seen};
use crate::layout::order;
use crate::result::MapResult;

/// A candidate is slower than its peers by so many standard errors, and by so much.
const LOW: f64 = 1.0;
const LOW_LN: f64 = 0.02;
/// Partners of a node, one after the other, and which of them are of other groups.
const PARTNERS: usize = 7;
const OUTSIDE: [usize; 2] = [1, 4];
/// Rounds of a group, or of two groups, between those of nodes; and pairs that are measured at once.
const GROUP_PASSES: [usize; 3] = [1, 3, 5];
const AT_ONCE: usize = 32;
/// Numbers of draws, beside those of designs.
const DRAWS: u64 = 1 << 41;
const CONTROLS: u64 = DRAWS;
const PASSES: u64 = DRAWS + 8;
const NODES: u64 = DRAWS + (1 << 20);
const GROUPS: u64 = DRAWS + (1 << 32);

/// How many of a kind are probed.
struct Bound {
    candidates: usize,
    /// Controls, at least; more where candidates are few.
    controls: usize,
    together: usize,
}

const OF_NODES: Bound = Bound { candidates: 32, controls: 8, together: 16 };
const OF_GROUPS: Bound = Bound { candidates: 8, controls: 4, together: 10 };
/// No plan has more rounds.
pub const MOST_ROUNDS: usize = (OF_NODES.candidates + OF_NODES.controls) * PARTNERS
    + 2 * (OF_GROUPS.candidates + OF_GROUPS.controls) * GROUP_PASSES.len();

/// What is measured after a map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Each part, and whether it is a control.
    pub probes: Vec<(Place, bool)>,
    /// Pairs that are measured at the same time, and which of the parts they are of.
    pub rounds: Vec<(usize, Vec<(u32, u32)>)>,
}

impl ProbePlan {
    /// What a complete map asks for; nothing where it shows nothing. The same map and seed give the same plan.
    pub fn of(map: &MapResult, seed: u64) -> Self {
        let seen = Models::of_map(map).seen();
        if seen.is_empty() {
            return ProbePlan::default();
        }
        let groups = Groups::of(map);
        let nodes: Vec<Place> = (0..map.nodes.len() as u32).map(Place::Node).collect();
        let numbers: Vec<u32> = groups.members.keys().copied().collect();
        let each = numbers.iter().map(|group| Place::Group(*group)).filter(|_| numbers.len() > 1).collect();
        let two = |(at, from): (usize, &u32)| {
            let from = *from;
            numbers[at + 1..].iter().map(move |to| Place::Between(from, *to)).collect::<Vec<Place>>()
        };
        let pairs: Vec<Place> = numbers.iter().enumerate().flat_map(two).collect();
        let mut plan = ProbePlan::default();
        for (number, (all, bound)) in [(nodes, OF_NODES), (each, OF_GROUPS), (pairs, OF_GROUPS)].iter().enumerate() {
            plan.probes.extend(chosen(&seen, all, bound, order(seed, CONTROLS + number as u64, all.len())));
        }
        let suspected: HashSet<u32> = plan.probes.iter().filter(|of| !of.1).filter_map(|of| node(of.0)).collect();
        let partners: Vec<Vec<u32>> = plan
            .probes
            .iter()
            .map(|of| node(of.0).map_or(vec![], |at| groups.partners(at, &suspected, seed)))
            .collect();
        for pass in 0..PARTNERS {
            for at in order(seed, PASSES + pass as u64, plan.probes.len()) {
                let pairs = match plan.probes[at].0 {
                    Place::Node(node) => partners[at].get(pass).map(|other| vec![(node, *other)]).unwrap_or_default(),
                    _ if !GROUP_PASSES.contains(&pass) => Vec::new(),
                    Place::Group(group) => groups.of_one(group, seed, pass),
                    Place::Between(from, to) => groups.of_two(from, to, seed, pass),
                };
                if !pairs.is_empty() {
                    plan.rounds.push((at, pairs));
                }
            }
        }
        plan
    }
}

fn node(place: Place) -> Option<u32> {
    if let Place::Node(at) = place { Some(at) } else { None }
}

/// Candidates of a kind, the most certain first, and controls in the order drawn.
fn chosen(seen: &[Seen], all: &[Place], bound: &Bound, drawn: Vec<usize>) -> Vec<(Place, bool)> {
    let mut strongest: BTreeMap<Place, f64> = BTreeMap::new();
    for of in seen.iter().filter(|of| of.ln > LOW_LN && of.ln > LOW * of.error) {
        let place = match of.place {
            Place::Between(from, to) => Place::Between(from.min(to), from.max(to)),
            place => place,
        };
        let errors = strongest.entry(place).or_default();
        *errors = errors.max(of.ln / of.error);
    }
    let mut candidates: Vec<Place> = all.iter().copied().filter(|place| strongest.contains_key(place)).collect();
    candidates.sort_by(|a, b| strongest[b].total_cmp(&strongest[a]));
    candidates.truncate(bound.candidates);
    let controls = bound.controls.max(bound.together.saturating_sub(candidates.len()));
    let mut drawn: Vec<Place> = drawn.into_iter().map(|at| all[at]).filter(|of| !candidates.contains(of)).collect();
    // What was left out for the bound is no control, as long as there are others.
    drawn.sort_by_key(|place| strongest.contains_key(place));
    drawn.truncate(controls);
    candidates.into_iter().map(|of| (of, false)).chain(drawn.into_iter().map(|of| (of, true))).collect()
}

/// Who is in which group.
struct Groups {
    of: Vec<u32>,
    members: BTreeMap<u32, Vec<u32>>,
}

impl Groups {
    /// Without groups all nodes are one.
    fn of(map: &MapResult) -> Self {
        let of = map.groups.clone().unwrap_or_else(|| vec![0; map.nodes.len()]);
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        of.iter().zip(0..).for_each(|(group, node)| members.entry(*group).or_default().push(node));
        Groups { of, members }
    }

    /// Whom a node meets, in this order: nodes that nobody suspects, as far as there are any.
    fn partners(&self, node: u32, suspected: &HashSet<u32>, seed: u64) -> Vec<u32> {
        let others = order(seed, NODES + u64::from(node), self.of.len()).into_iter().map(|at| at as u32);
        let mut others: Vec<u32> = others.filter(|other| *other != node).collect();
        others.sort_by_key(|other| suspected.contains(other));
        let is_own = |other: &u32| self.of[*other as usize] == self.of[node as usize];
        let mut partners = Vec::new();
        for at in 0..PARTNERS.min(others.len()) {
            let is_outside = OUTSIDE.contains(&at);
            let wanted = |other: &u32| is_own(other) != is_outside && !suspected.contains(other);
            let next = others.iter().position(wanted).unwrap_or(0);
            partners.push(others.remove(next));
        }
        partners
    }

    fn drawn(&self, group: u32, seed: u64, pass: usize) -> Vec<u32> {
        let members = &self.members[&group];
        let number = GROUPS + u64::from(group) * PARTNERS as u64 + pass as u64;
        order(seed, number, members.len()).into_iter().map(|at| members[at]).collect()
    }

    /// Nodes of a group, each with one of the others' in turn.
    fn of_one(&self, group: u32, seed: u64, pass: usize) -> Vec<(u32, u32)> {
        let numbers = self.members.keys().copied().filter(|other| *other != group);
        let mut others: Vec<Vec<u32>> = numbers.map(|other| self.drawn(other, seed, pass)).collect();
        let first = pass % others.len().max(1);
        others.rotate_left(first);
        let deepest = others.iter().map(Vec::len).max().unwrap_or(0);
        let others = &others;
        let in_turn = (0..deepest).flat_map(|at| others.iter().filter_map(move |of| of.get(at).copied()));
        self.drawn(group, seed, pass).into_iter().zip(in_turn).take(AT_ONCE).collect()
    }

    fn of_two(&self, from: u32, to: u32, seed: u64, pass: usize) -> Vec<(u32, u32)> {
        self.drawn(from, seed, pass).into_iter().zip(self.drawn(to, seed, pass)).take(AT_ONCE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{MapFigure, MapPair};

    /// All pairs of so many nodes in groups of eight, with differences that are no noise; what `slow` says is half as fast.
    fn map(nodes: u32, slow: impl Fn(u32, u32) -> bool) -> MapResult {
        let noise = |from: u32, to: u32| 1.0 + 0.1 * f64::from((from * 7 + to * 11 + from * to) % 13) / 13.0;
        let pair = |from: u32, to: u32| {
            let median = 1e9 * noise(from, to) * if slow(from, to) { 0.5 } else { 1.0 };
            let rate = Some(MapFigure { median, worst: median, count: 3 });
            MapPair { from, to, one_way_bytes_per_s: rate, ..MapPair::default() }
        };
        let pairs = (0..nodes).flat_map(|a| (0..nodes).filter(move |b| *b != a).map(move |b| (a, b)));
        MapResult {
            nodes: (0..nodes).map(|node| format!("n{node}")).collect(),
            groups: Some((0..nodes).map(|node| node / 8).collect()),
            pairs: pairs.map(|(a, b)| pair(a, b)).collect(),
            ..MapResult::default()
        }
    }

    #[test]
    fn a_slow_node_meets_seven_others_alone_most_of_its_group() {
        let map = map(64, |from, _| from == 11);
        let plan = ProbePlan::of(&map, 1);
        assert_eq!(plan, ProbePlan::of(&map, 1), "the same seed, the same plan");
        assert_ne!(plan.rounds, ProbePlan::of(&map, 2).rounds);
        let at = plan.probes.iter().position(|of| *of == (Place::Node(11), false)).expect("a candidate");
        let own: Vec<&Vec<(u32, u32)>> = plan.rounds.iter().filter(|of| of.0 == at).map(|of| &of.1).collect();
        let mut partners: Vec<u32> = own.iter().map(|pairs| pairs[0].1).collect();
        assert!(own.len() == 7 && own.iter().all(|pairs| pairs.len() == 1 && pairs[0].0 == 11), "{own:?}");
        let suspected = |node: &u32| plan.probes.contains(&(Place::Node(*node), false));
        assert_eq!(partners.iter().filter(|node| suspected(node)).count(), 0, "{partners:?}");
        partners.sort_unstable();
        partners.dedup();
        assert_eq!(partners.len(), 7);
        assert!(partners.iter().filter(|node| **node / 8 == 1).count() <= 5, "{partners:?}");
    }

    #[test]
    fn plans_are_bounded_and_no_node_is_twice_in_a_round() {
        for (nodes, slow) in [(200, 100), (64, 0), (9, 3), (4, 0)] {
            let plan = ProbePlan::of(&map(nodes, |from, to| from < slow || to % 16 < 3), 3);
            assert!(!plan.rounds.is_empty() && plan.rounds.len() <= MOST_ROUNDS, "{}", plan.rounds.len());
            for (at, pairs) in &plan.rounds {
                let mut ends: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
                let count = ends.len();
                ends.sort_unstable();
                ends.dedup();
                assert!(ends.len() == count && *at < plan.probes.len() && count <= 2 * AT_ONCE, "{pairs:?}");
            }
            let controls = plan.probes.iter().filter(|of| of.1 && node(of.0).is_some()).count();
            assert!(controls >= 8.min(nodes as usize / 4), "{controls} controls of {nodes} nodes");
        }
        assert_eq!(ProbePlan::of(&map(3, |_, _| false), 1), ProbePlan::default(), "too few to compare");
    }

    /// All that goes from one group to another is measured at once, in one direction.
    #[test]
    fn links_of_groups_are_filled() {
        let map = map(64, |from, to| from / 8 == 2 && to / 8 != 2);
        let plan = ProbePlan::of(&map, 1);
        let at = plan.probes.iter().position(|of| *of == (Place::Group(2), false)).expect("a candidate");
        let own: Vec<&(usize, Vec<(u32, u32)>)> = plan.rounds.iter().filter(|of| of.0 == at).collect();
        assert_eq!(own.len(), 3);
        for (_, pairs) in own {
            assert!(pairs.len() == 8 && pairs.iter().all(|(from, to)| from / 8 == 2 && to / 8 != 2), "{pairs:?}");
            let mut others: Vec<u32> = pairs.iter().map(|(_, to)| to / 8).collect();
            others.sort_unstable();
            others.dedup();
            assert_eq!(others.len(), 7, "all other groups");
        }
    }
}
