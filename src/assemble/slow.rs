//! Nodes that are slower than their peers whether there is load or not.
//!
//! Queues come and go: the quickest of many messages met the fewest of them, and what it still took is the nodes' and the path's. It is
//! taken for each pair of canary nodes, half of both directions together, in which what their clocks are apart cancels; an additive model
//! of these ([`Additive`]) says which node is an outlier. It is told when one state shows it by itself, and the other one confirms it.

use std::collections::BTreeMap;

use tailback_transport::Rank;

use crate::engine::Quickest;
use crate::kernel::Canary;
use crate::layout::{Layout, Nodes, random_rings};
use crate::result::{SlowNode, Slower};
use crate::stats::{Additive, Cell, Effect, FALSE_ALARMS, Interval, LEAST, Term};

/// Either state may show it first, and a test has two.
const STATES: f64 = 2.0;

/// The nodes of a job, and their groups where there are several.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    names: Vec<String>,
    groups: Option<Vec<usize>>,
}

impl Peers {
    pub(super) fn of(nodes: &Nodes) -> Self {
        let all = 0..nodes.len();
        let groups = (nodes.group_count() > 1).then(|| all.clone().map(|node| nodes.group_of(node)).collect());
        Peers { names: all.map(|node| nodes.name(node).to_owned()).collect(), groups }
    }
}

/// The quickest message from one node to another, in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct QuickestPairs(BTreeMap<(usize, usize), u32>);

impl QuickestPairs {
    /// Adds what the ranks of a placement received, whose rings were drawn with this seed.
    pub(super) fn add(&mut self, layout: &Layout, seed: u64, found: &[Quickest]) {
        let nodes = layout.nodes();
        for of in found {
            let me = Rank(of.rank);
            let team = layout.team(me);
            let Some(place) = team.iter().position(|member| *member == me) else { continue };
            let rings = random_rings(seed, nodes.slice_of(me), team.len(), Rank::from(place), of.ns.len() / 2);
            for (ring, ns) in rings.iter().zip(of.ns.chunks_exact(2)) {
                let received = [(ring.left, ns[0]), (ring.right, ns[1])];
                for (from, ns) in received.into_iter().filter(|(_, ns)| *ns < u32::MAX) {
                    let pair = (nodes.node_of(team[from.index()]), nodes.node_of(me));
                    let least = self.0.entry(pair).or_insert(u32::MAX);
                    *least = ns.min(*least);
                }
            }
        }
    }

    /// What is known of each node that was seen with enough others.
    fn effects(&self, peers: &Peers) -> Vec<Effect> {
        let cell = |(&(from, to), ns): (&(usize, usize), &u32)| {
            let both = f64::from(*ns) + f64::from(*self.0.get(&(to, from))?);
            Some(Cell { from, to, ln: (both / 2.0).ln() })
        };
        let cells: Vec<Cell> = self.0.iter().filter_map(cell).collect();
        let model = Additive::fit(&cells, peers.names.len(), peers.groups.as_deref());
        // A time of both directions has the same effect at both ends.
        let is_of_node = |of: &Effect| matches!(of.term, Term::Sender(_));
        model.map_or_else(Vec::new, |model| model.effects.into_iter().filter(is_of_node).collect())
    }
}

/// Nodes that some test shows to be slow in both of its states, the slowest first; each once.
pub(super) fn slow_nodes<'a>(
    tests: impl Iterator<Item = (Canary, &'a QuickestPairs, &'a QuickestPairs)>,
    peers: &Peers,
) -> Vec<SlowNode> {
    let mut slow: Vec<SlowNode> = Vec::new();
    for (kernel, idle, loaded) in tests {
        let [idle, loaded] = [idle, loaded].map(|of| of.effects(peers));
        for first in &idle {
            let Some(second) = loaded.iter().find(|of| of.term == first.term) else { continue };
            let Term::Sender(node) = first.term else { continue };
            let name = &peers.names[node];
            if (is_confirmed(first, second) || is_confirmed(second, first)) && slow.iter().all(|of| of.name != *name) {
                slow.push(SlowNode { name: name.clone(), kernel, idle: slower(first), loaded: slower(second) });
            }
        }
    }
    slow.sort_by(|a, b| b.idle.part.total_cmp(&a.idle.part));
    slow
}

/// Whether the first is certain by itself and the second at least half as strong, and outside of chance by its own interval.
fn is_confirmed(first: &Effect, second: &Effect) -> bool {
    let least = LEAST.ln_1p();
    let is_certain = first.p_value < FALSE_ALARMS / STATES && first.ln >= least;
    is_certain && second.interval.low > 0.0 && second.ln >= (first.ln / 2.0).max(least)
}

fn slower(effect: &Effect) -> Slower {
    let Interval { low, high } = effect.interval;
    let interval = Interval { low: low.exp_m1(), high: high.exp_m1() };
    Slower { part: effect.ln.exp_m1(), interval, p_value: effect.p_value }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const NODES: usize = 12;

    fn peers() -> Peers {
        Peers { names: (0..NODES).map(|node| format!("h{node}")).collect(), groups: None }
    }

    /// About half of all pairs, with noise; `times` is what a message between two nodes takes beside 2 us.
    fn pairs(seed: u64, times: impl Fn(usize, usize) -> f64) -> QuickestPairs {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut pairs = QuickestPairs::default();
        for (a, b) in
            (0..NODES).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| (a + b) % 2 == 1 || a % 5 == *b)
        {
            for (from, to) in [(a, b), (b, a)] {
                let noise = 1.0 + 0.06 * random.random::<f64>();
                pairs.0.insert((from, to), (2000.0 * noise * times(from, to)) as u32);
            }
        }
        pairs
    }

    fn found(idle: &QuickestPairs, loaded: &QuickestPairs) -> Vec<SlowNode> {
        slow_nodes([(Canary::Lat, idle, loaded)].into_iter(), &peers())
    }

    #[test]
    fn a_node_that_is_slow_in_both_states_is_named_with_how_much() {
        let slow = |from, to| if from == 7 || to == 7 { 1.3 } else { 1.0 };
        let found = found(&pairs(1, slow), &pairs(2, |from, to| 1.5 * slow(from, to)));
        assert_eq!(found.iter().map(|of| &*of.name).collect::<Vec<_>>(), ["h7"], "{found:?}");
        for of in [found[0].idle, found[0].loaded] {
            assert!(of.interval.low < 0.3 && 0.3 < of.interval.high && of.interval.low > 0.2, "{found:?}");
        }
    }

    #[test]
    fn what_only_one_state_shows_is_not_told() {
        let slow = |from, to| if from == 7 || to == 7 { 1.3 } else { 1.0 };
        assert_eq!(found(&pairs(1, slow), &pairs(2, |_, _| 1.0)), []);
        assert_eq!(found(&pairs(1, |_, _| 1.0), &pairs(2, slow)), []);
    }

    #[test]
    fn clocks_that_are_apart_are_no_slow_node() {
        let apart = |from, to| 1.0 + if from == 3 { 0.5 } else { 0.0 } - if to == 3 { 0.5 } else { 0.0 };
        assert_eq!(found(&pairs(1, apart), &pairs(2, apart)), []);
    }

    #[test]
    fn healthy_nodes_are_not_named_and_few_say_nothing() {
        let alarms =
            (0..100).filter(|seed| !found(&pairs(2 * seed, |_, _| 1.0), &pairs(2 * seed + 1, |_, _| 1.0)).is_empty());
        assert_eq!(alarms.count(), 0);
        assert_eq!(found(&QuickestPairs::default(), &QuickestPairs::default()), []);
    }
}
