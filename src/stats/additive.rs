//! An additive model of measured pairs: which sender, receiver, group or pair of groups is slower than its peers.
//!
//! The logarithm of what a pair took is the sum of a level, its sender's effect, its receiver's, its groups' (out of the sender's
//! group, into the receiver's, and between the two) and a residual. All are fitted at once by Huber M-estimates in turn, which a few
//! faulty nodes do not move. Any set of pairs will do: all of them, or a sample in which every node is seen.
//!
//! An effect is judged against the effects of its peers, whose spread (from the median absolute deviation) is added to its own
//! standard error: a node is suspected when it is an outlier among nodes, not when it differs from zero. The effects that are
//! judged are one family: of a system without faults anything is suspected at most as often as the level says.
//!
//! Out of scope: what a residual of a single pair means. Collisions of routes leave such residuals on healthy systems.

use std::collections::BTreeMap;

use super::{Interval, holm, median, two_sided_t, upper_p};

/// How often a system without faults may have a suspect, if the user does not say.
pub const FALSE_ALARMS: f64 = 0.01;
/// What is slower by less is nobody's business, if the user does not say.
pub const LEAST: f64 = 0.05;
/// Fewer nodes have no peers to be compared with.
pub const FEWEST_PEERS: usize = 4;
/// From here on a pair of groups, or the members of a group, have a value of their own that one faulty node does not move.
const FEWEST_OF_GROUP: usize = 5;
/// Huber's constant: 95% as efficient as the mean where there are no outliers.
const HUBER: f64 = 1.345;
/// From median absolute deviation to standard deviation.
pub const MAD: f64 = 1.4826;
/// No figure is known better than this (0.1%), whatever figures without noise say.
const RESOLUTION: f64 = 1e-3;
/// The part of the degrees of freedom that a median absolute deviation keeps.
const MAD_EFFICIENCY: f64 = 0.37;
const SWEEPS: usize = 30;

/// What one pair took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The sending node.
    pub from: usize,
    /// The receiving node.
    pub to: usize,
    /// Natural logarithm of a time, or of a time per byte: larger is slower.
    pub ln: f64,
}

impl Cell {
    /// Whether it is a number, and of two of so many nodes.
    fn is_sound(&self, nodes: usize) -> bool {
        self.ln.is_finite() && self.from != self.to && self.from.max(self.to) < nodes
    }
}

/// What an effect is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// A node, as a sender.
    Sender(usize),
    /// A node, as a receiver.
    Receiver(usize),
    /// All that leaves a group.
    OutOf(usize),
    /// All that enters a group.
    Into(usize),
    /// What goes from one group to another.
    Between(usize, usize),
}

/// How much slower than its peers something is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Of what.
    pub term: Term,
    /// On logarithms: ln 2 is twice as slow.
    pub ln: f64,
    /// Its standard error, with the spread of its peers.
    pub error: f64,
    /// Pairs that it is seen in.
    pub cells: usize,
    /// One-sided, corrected for all effects that were looked at (Holm).
    pub p_value: f64,
    /// 95%, on logarithms.
    pub interval: Interval,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Additive {
    /// The logarithm of a typical pair inside a group, or of any where there are no groups.
    pub level: f64,
    /// All effects, in the order of [`Term`].
    pub effects: Vec<Effect>,
    /// What is left of every cell, in the order given.
    pub residuals: Vec<f64>,
    /// The spread of residuals.
    pub spread: f64,
}

impl Additive {
    /// The model of `cells` between `nodes` nodes; `groups` gives the group of each. Cells that are no number, or of a node with
    /// itself, are left out. Nothing when fewer than [`FEWEST_PEERS`] nodes were seen.
    pub fn fit(cells: &[Cell], nodes: usize, groups: Option<&[usize]>) -> Option<Self> {
        let sound: Vec<Cell> = cells.iter().filter(|cell| cell.is_sound(nodes)).copied().collect();
        let groups = groups.filter(|of| of.len() == nodes);
        let mut fit = Fit::new(&sound, nodes, groups);
        if [&fit.senders, &fit.receivers].iter().any(|of| of.seen() < FEWEST_PEERS) {
            return None;
        }
        fit.polish();
        fit.take_groups_out(groups);
        Some(fit.judged(cells, nodes))
    }

    /// The effects that are slower than their peers by more than chance makes any of them, worst first.
    pub fn suspects(&self, level: f64) -> Vec<Effect> {
        let mut suspects: Vec<Effect> = self.effects.iter().filter(|of| of.p_value < level).copied().collect();
        suspects.sort_by(|a, b| b.ln.total_cmp(&a.ln));
        suspects
    }

    /// The effect of a term, if it was seen.
    pub fn effect(&self, term: Term) -> Option<&Effect> {
        self.effects.binary_search_by(|of| of.term.cmp(&term)).ok().map(|at| &self.effects[at])
    }
}

/// Effects of one kind, and the cells of each.
#[derive(Debug)]
struct Kind {
    ln: Vec<f64>,
    cells: Vec<Vec<u32>>,
}

impl Kind {
    fn new(count: usize, of: impl Iterator<Item = Option<usize>>) -> Self {
        let mut cells = vec![Vec::new(); count];
        of.enumerate().for_each(|(at, owner)| {
            if let Some(owner) = owner {
                cells[owner].push(at as u32);
            }
        });
        Kind { ln: vec![0.0; count], cells }
    }

    fn seen(&self) -> usize {
        self.cells.iter().filter(|of| !of.is_empty()).count()
    }

    /// Moves what is common to the residuals of every owner into its effect; how far the farthest moved.
    fn absorb(&mut self, residuals: &mut [f64], scale: f64) -> f64 {
        let mut farthest = 0.0f64;
        let mut values = Vec::new();
        for (ln, cells) in self.ln.iter_mut().zip(&self.cells) {
            values.clear();
            values.extend(cells.iter().map(|&at| residuals[at as usize]));
            let Some(moved) = location(&mut values, scale) else { continue };
            *ln += moved;
            cells.iter().for_each(|&at| residuals[at as usize] -= moved);
            farthest = farthest.max(moved.abs());
        }
        farthest
    }

    /// Takes the middle of the effects of owners that were seen out of all of them.
    fn centre(&mut self) -> f64 {
        let seen = self.ln.iter().zip(&self.cells).filter(|(_, cells)| !cells.is_empty());
        let middle = median(&mut seen.map(|(ln, _)| *ln).collect::<Vec<f64>>()).unwrap_or(0.0);
        self.ln.iter_mut().for_each(|ln| *ln -= middle);
        middle
    }
}

#[derive(Debug)]
struct Fit {
    level: f64,
    senders: Kind,
    receivers: Kind,
    out_of: Kind,
    into: Kind,
    blocks: Kind,
    /// The groups of every block.
    between: Vec<(usize, usize)>,
    residuals: Vec<f64>,
}

impl Fit {
    fn new(cells: &[Cell], nodes: usize, groups: Option<&[usize]>) -> Self {
        let pair = |cell: &Cell| groups.map(|of| (of[cell.from], of[cell.to]));
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        cells.iter().filter_map(pair).for_each(|pair| *counts.entry(pair).or_default() += 1);
        let large: Vec<(usize, usize)> =
            counts.iter().filter(|(_, count)| **count >= FEWEST_OF_GROUP).map(|(pair, _)| *pair).collect();
        let block = |cell: &Cell| pair(cell).and_then(|pair| large.binary_search(&pair).ok());
        let crossing = |cell: &Cell| pair(cell).filter(|(from, to)| from != to);
        let every_group = groups.map_or(0, |of| of.iter().max().map_or(0, |most| most + 1));
        let mut residuals: Vec<f64> = cells.iter().map(|cell| cell.ln).collect();
        let level = median(&mut residuals.clone()).unwrap_or(0.0);
        residuals.iter_mut().for_each(|left| *left -= level);
        Fit {
            level,
            senders: Kind::new(nodes, cells.iter().map(|cell| Some(cell.from))),
            receivers: Kind::new(nodes, cells.iter().map(|cell| Some(cell.to))),
            out_of: Kind::new(every_group, cells.iter().map(|cell| crossing(cell).map(|(from, _)| from))),
            into: Kind::new(every_group, cells.iter().map(|cell| crossing(cell).map(|(_, to)| to))),
            blocks: Kind::new(large.len(), cells.iter().map(block)),
            between: large,
            residuals,
        }
    }

    /// Groups come before nodes: where all of a group is slow, it is the group and not each of its nodes.
    fn polish(&mut self) {
        for sweep in 0..SWEEPS {
            // The first sweep is by medians, which know no scale.
            let scale = if sweep == 0 { 0.0 } else { robust_spread(&self.residuals).max(RESOLUTION) };
            let mut farthest = self.blocks.absorb(&mut self.residuals, scale);
            farthest = farthest.max(self.senders.absorb(&mut self.residuals, scale));
            farthest = farthest.max(self.receivers.absorb(&mut self.residuals, scale));
            self.level += self.blocks.centre() + self.senders.centre() + self.receivers.centre();
            if farthest < 1e-6 {
                break;
            }
        }
    }

    /// What all of a group's nodes, or all pairs of groups with it, have in common is the group's. Pairs inside a group do not
    /// pass its links, so they are no part of it.
    fn take_groups_out(&mut self, groups: Option<&[usize]>) {
        let Some(groups) = groups else { return };
        for group in 0..self.out_of.ln.len() {
            let members: Vec<usize> = (0..groups.len()).filter(|&node| groups[node] == group).collect();
            if members.len() >= FEWEST_OF_GROUP {
                self.out_of.ln[group] += common(&mut self.senders, &members);
                self.into.ln[group] += common(&mut self.receivers, &members);
            }
        }
        // Each side in turn, as one may be behind the other; the second time is by what the first left.
        for _ in 0..2 {
            for group in 0..self.out_of.ln.len() {
                let of = |of: &(usize, usize)| of.0 == group && of.1 != group;
                self.out_of.ln[group] += common(&mut self.blocks, &places(&self.between, of));
                let of = |of: &(usize, usize)| of.1 == group && of.0 != group;
                self.into.ln[group] += common(&mut self.blocks, &places(&self.between, of));
            }
        }
        let crossing = |of: &(usize, usize)| of.0 != of.1;
        let crossing = places(&self.between, crossing);
        common(&mut self.blocks, &crossing);
        self.out_of.centre();
        self.into.centre();
    }

    /// What the pairs of these terms took beside all other terms.
    fn sorted(&self, kind: &Kind, seen: &[usize]) -> Vec<f64> {
        let of = |&at: &usize| kind.cells[at].iter().map(move |&cell| self.residuals[cell as usize] + kind.ln[at]);
        let mut all: Vec<f64> = seen.iter().flat_map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// How likely a link has as many slow pairs as this one, where its pairs are slow as often as those of the others.
    fn by_chance(&self, kind: &Kind, at: usize, all: &[f64]) -> f64 {
        let (own, limit) = (&kind.cells[at], kind.ln[at] / 2.0);
        let slow = own.iter().filter(|&&cell| self.residuals[cell as usize] + kind.ln[at] > limit).count();
        let others = all.len() - all.partition_point(|of| *of <= limit) - slow;
        at_least(slow, own.len(), (others + 1) as f64 / (all.len() - own.len() + 2) as f64)
    }

    fn judged(self, cells: &[Cell], nodes: usize) -> Additive {
        let scale = robust_spread(&self.residuals).max(RESOLUTION);
        let mut effects = Vec::new();
        let mut raw = Vec::new();
        let mut add =
            |kind: &Kind, term: &dyn Fn(usize) -> Option<Term>, floor: f64, wider: f64, peers: Option<usize>| {
                let judged = |at: &usize| !kind.cells[*at].is_empty() && term(*at).is_some();
                let seen: Vec<usize> = (0..kind.ln.len()).filter(judged).collect();
                let among = robust_spread(&seen.iter().map(|&at| kind.ln[at]).collect::<Vec<f64>>());
                let freedom = robust_freedom(peers.unwrap_or(seen.len()));
                let t = two_sided_t(0.05, freedom);
                let is_node = |at: &usize| matches!(term(*at), Some(Term::Sender(_) | Term::Receiver(_)));
                let links = if seen.iter().any(is_node) { Vec::new() } else { self.sorted(kind, &seen) };
                for at in seen {
                    let own = standard_error(kind.cells[at].iter().map(|&cell| self.residuals[cell as usize]), scale);
                    let error = (wider * among.max(floor).hypot(own)).max(RESOLUTION);
                    let (ln, half) = (kind.ln[at], t * error);
                    let chance = if links.is_empty() { 0.0 } else { self.by_chance(kind, at, &links) };
                    raw.push(upper_p(ln / error, freedom).max(chance));
                    effects.push(Effect {
                        term: term(at).expect("it was asked before"),
                        ln,
                        error,
                        cells: kind.cells[at].len(),
                        p_value: 1.0,
                        interval: Interval { low: ln - half, high: ln + half },
                    });
                }
                among
            };
        let sending = add(&self.senders, &|at| Some(Term::Sender(at)), 0.0, 1.0, None);
        let receiving = add(&self.receivers, &|at| Some(Term::Receiver(at)), 0.0, 1.0, None);
        // A few groups say little about how much groups differ; nodes, of which there are more, say how much they must.
        let members = (nodes as f64 / self.out_of.seen().max(1) as f64).max(1.0).sqrt();
        add(&self.out_of, &|at| Some(Term::OutOf(at)), sending / members, 1.0, Some(nodes));
        add(&self.into, &|at| Some(Term::Into(at)), receiving / members, 1.0, Some(nodes));
        let between = |at: usize| {
            let (from, to) = self.between[at];
            (from != to).then_some(Term::Between(from, to))
        };
        // Of every pair of groups the medians of its row and of its column were taken out, which are not certain either.
        let wider = (1.0 + std::f64::consts::PI / (self.out_of.seen().max(2) - 1) as f64).sqrt();
        add(&self.blocks, &between, 0.0, wider, None);
        effects.iter_mut().zip(holm(&raw)).for_each(|(effect, p_value)| effect.p_value = p_value);
        effects.sort_by_key(|effect| effect.term);
        let mut left = self.residuals.iter();
        let residual = |cell: &Cell| if cell.is_sound(nodes) { left.next().copied().unwrap_or(0.0) } else { 0.0 };
        let residuals = cells.iter().map(residual).collect();
        Additive { level: self.level, effects, residuals, spread: scale }
    }
}

fn places<T>(of: &[T], wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..of.len()).filter(|&at| wanted(&of[at])).collect()
}

/// Takes the median of some effects out of them.
fn common(kind: &mut Kind, some: &[usize]) -> f64 {
    let seen = some.iter().filter(|&&at| !kind.cells[at].is_empty());
    let middle = median(&mut seen.map(|&at| kind.ln[at]).collect::<Vec<f64>>()).unwrap_or(0.0);
    some.iter().for_each(|&at| kind.ln[at] -= middle);
    middle
}

/// Huber's M-estimate of location; the median where there is no scale.
fn location(values: &mut [f64], scale: f64) -> Option<f64> {
    let mut centre = median(values)?;
    if scale <= 0.0 {
        return Some(centre);
    }
    for _ in 0..20 {
        let (mut weights, mut sum) = (0.0, 0.0);
        for value in values.iter() {
            let far = (value - centre).abs();
            let weight = if far > HUBER * scale { HUBER * scale / far } else { 1.0 };
            weights += weight;
            sum += weight * value;
        }
        let moved = sum / weights - centre;
        centre += moved;
        if moved.abs() < 1e-9 {
            break;
        }
    }
    Some(centre)
}

/// The chance of at least so many of all, each with this chance of its own.
fn at_least(some: usize, all: usize, chance: f64) -> f64 {
    let mut ln = all as f64 * (-chance).ln_1p();
    let mut sum = 0.0;
    for count in 0..=all {
        sum += if count >= some { ln.exp() } else { 0.0 };
        ln += ((all - count) as f64 / (count + 1) as f64).ln() + (chance / (1.0 - chance)).ln();
    }
    sum.min(1.0)
}

/// Of a Huber location of these residuals; that of residuals as all cells have them where these few look better than that.
fn standard_error(residuals: impl Iterator<Item = f64>, scale: f64) -> f64 {
    let (mut count, mut squares, mut inside) = (0.0, 0.0, 0.0);
    for left in residuals {
        let cut = left.clamp(-HUBER * scale, HUBER * scale);
        count += 1.0;
        squares += cut * cut;
        inside += f64::from(cut == left);
    }
    let usual: f64 = scale / f64::sqrt(count);
    // Infinite where all are cut.
    let own = f64::sqrt(squares) / inside;
    usual.max(own.min(10.0 * usual))
}

/// The degrees of freedom that a median absolute deviation of so many keeps.
pub fn robust_freedom(peers: usize) -> f64 {
    (MAD_EFFICIENCY * (peers as f64 - 1.0)).max(3.0)
}

/// A standard deviation that outliers do not move.
pub fn robust_spread(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let middle = median(&mut values).unwrap_or(0.0);
    values.iter_mut().for_each(|value| *value = (*value - middle).abs());
    MAD * median(&mut values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const LEVEL: f64 = 0.01;

    /// Nodes in groups of eight, with natural differences and noise.
    struct System {
        nodes: usize,
        node_sd: f64,
        noise_sd: f64,
        /// Rounds: each node sends to so many others, or to all.
        sampled: Option<usize>,
        faults: Vec<(Term, f64)>,
    }

    impl System {
        fn healthy() -> Self {
            System { nodes: 32, node_sd: 0.02, noise_sd: 0.10, sampled: None, faults: Vec::new() }
        }

        fn groups(&self) -> Vec<usize> {
            (0..self.nodes).map(|node| node / 8).collect()
        }

        fn fit(&self, seed: u64) -> Additive {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut normal = move || {
                let (u, v): (f64, f64) = (random.random(), random.random());
                (-2.0 * (1.0 - u).ln()).sqrt() * (v * std::f64::consts::TAU).cos()
            };
            let own: Vec<[f64; 2]> = (0..self.nodes).map(|_| [normal(), normal()].map(|z| z * self.node_sd)).collect();
            let groups = self.groups();
            let mut cells = Vec::new();
            for shift in 1..=self.sampled.unwrap_or(self.nodes - 1) {
                // Odd multiples of the shift, so that a sample is not of neighbours alone.
                let shift = if self.sampled.is_some() { 1 + shift * 7 % (self.nodes - 1) } else { shift };
                for from in 0..self.nodes {
                    let to = (from + shift) % self.nodes;
                    let (a, b) = (groups[from], groups[to]);
                    let slower = self.faults.iter().map(|(term, ln)| match *term {
                        Term::Sender(node) if node == from => *ln,
                        Term::Receiver(node) if node == to => *ln,
                        Term::OutOf(group) if group == a && a != b => *ln,
                        Term::Into(group) if group == b && a != b => *ln,
                        Term::Between(x, y) if (x, y) == (a, b) => *ln,
                        _ => 0.0,
                    });
                    let ln = -20.0 + own[from][0] + own[to][1] + slower.sum::<f64>() + self.noise_sd * normal();
                    cells.push(Cell { from, to, ln });
                }
            }
            Additive::fit(&cells, self.nodes, Some(&groups)).unwrap()
        }
    }

    fn terms(fit: &Additive) -> Vec<Term> {
        let mut terms: Vec<Term> = fit.suspects(LEVEL).iter().map(|of| of.term).collect();
        terms.sort();
        terms
    }

    #[test]
    fn without_noise_effects_are_what_was_planted() {
        let faults = vec![
            (Term::Sender(3), 0.7),
            (Term::Receiver(3), 0.2),
            (Term::Receiver(20), 0.4),
            (Term::Between(1, 2), 0.5),
        ];
        let fit = System { node_sd: 0.0, noise_sd: 0.0, faults: faults.clone(), ..System::healthy() }.fit(1);
        assert!((fit.level + 20.0).abs() < 1e-6, "{}", fit.level);
        for (term, ln) in faults {
            let effect = fit.effect(term).unwrap();
            assert!((effect.ln - ln).abs() < 1e-4 && effect.p_value < 1e-3, "{effect:?}");
        }
        assert_eq!(fit.suspects(LEVEL).len(), 4, "{:?}", fit.suspects(LEVEL));
        assert_eq!(fit.effect(Term::Sender(0)).unwrap().cells, 31);
    }

    /// Whose middle is no part of them, but of the level.
    #[test]
    fn sums_of_a_level_and_effects_are_taken_apart() {
        let (senders, receivers) = ([0.0, 0.1, 0.2, 0.5, 0.9], [0.8, 0.4, 0.3, 0.0, 0.7]);
        let pairs = (0..25).map(|at| (at / 5, at % 5));
        let cells = pairs.map(|(from, to)| Cell { from, to, ln: 1.0 + senders[from] + receivers[to] });
        let fit = Additive::fit(&cells.collect::<Vec<_>>(), 5, None).unwrap();
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-3, "{found} is not {wanted}: {fit:?}");
        near(fit.level, 1.0 + 0.2 + 0.4);
        for node in 0..5 {
            near(fit.effect(Term::Sender(node)).unwrap().ln, senders[node] - 0.2);
            near(fit.effect(Term::Receiver(node)).unwrap().ln, receivers[node] - 0.4);
        }
    }

    /// All that leaves a group is slow: it is the group's link, and none of its nodes.
    #[test]
    fn a_groups_link_is_not_its_nodes() {
        for (term, at) in [(Term::OutOf(2), 2), (Term::Into(1), 1)] {
            let fit = System { faults: vec![(term, 0.6)], ..System::healthy() }.fit(at);
            assert_eq!(terms(&fit), [term]);
            assert!((fit.effect(term).unwrap().ln - 0.6).abs() < 0.1, "{:?}", fit.effect(term));
        }
    }

    /// Groups of eight whose nodes differ alike: their medians are equal, and as uncertain as the spread of nodes over sqrt 8.
    #[test]
    fn groups_that_agree_are_as_uncertain_as_their_nodes_make_them() {
        let own = |node: usize| [-0.4, -0.3, -0.2, -0.1, 0.1, 0.2, 0.3, 0.4][node % 8];
        let pairs = (0..32 * 32).map(|at| (at / 32, at % 32));
        let cells = pairs.map(|(from, to)| Cell { from, to, ln: 0.5 * own(from) + own(to) });
        let groups: Vec<usize> = (0..32).map(|node| node / 8).collect();
        let fit = Additive::fit(&cells.collect::<Vec<_>>(), 32, Some(&groups)).unwrap();
        let wanted = MAD * 0.25 / f64::sqrt(8.0);
        for (term, wanted) in (0..4).flat_map(|of| [(Term::OutOf(of), wanted / 2.0), (Term::Into(of), wanted)]) {
            let effect = fit.effect(term).unwrap();
            assert!(effect.ln.abs() < 1e-3 && (effect.error / wanted - 1.0).abs() < 0.01, "{effect:?}, not {wanted}");
        }
    }

    #[test]
    fn several_faults_at_once_and_a_sampled_design() {
        let faults = vec![(Term::Sender(9), 0.4), (Term::Sender(10), 0.7), (Term::Receiver(9), 0.4)];
        let expected: Vec<Term> = vec![Term::Sender(9), Term::Sender(10), Term::Receiver(9)];
        for sampled in [None, Some(12)] {
            let found = (0..20).filter(|seed| {
                let system = System { faults: faults.clone(), sampled, nodes: 64, ..System::healthy() };
                terms(&system.fit(*seed)) == expected
            });
            let found = found.count();
            assert!(found >= 19, "{sampled:?}: {found} of 20");
        }
    }

    #[test]
    fn intervals_hold_what_was_planted() {
        for (sampled, ln) in [(None, 0.1), (None, 0.7), (Some(10), 0.4)] {
            let planted = [(Term::Sender(5), ln), (Term::Receiver(17), ln), (Term::Between(0, 3), ln)];
            let (mut held, mut all, mut off, mut said) = ([0; 3], [0; 3], [0.0; 3], [0.0; 3]);
            for seed in 0..100 {
                let fit = System { faults: planted.to_vec(), sampled, ..System::healthy() }.fit(seed);
                // A sample may have no value of its own for a pair of groups.
                let effects = planted.iter().enumerate().filter_map(|(at, (term, _))| Some((at, fit.effect(*term)?)));
                for (at, effect) in effects {
                    all[at] += 1;
                    off[at] += (effect.ln - ln).powi(2);
                    said[at] += effect.error.powi(2);
                    held[at] += usize::from((effect.interval.low..=effect.interval.high).contains(&ln));
                }
            }
            let covered = held.iter().zip(all).all(|(held, all)| held * 10 >= all * 9);
            assert!(all[0] == 100 && all[1] == 100 && covered, "{sampled:?}, {ln}: {held:?} of {all:?}");
            // Intervals that are far too wide would hold it, too.
            let as_said = off.iter().zip(said).all(|(off, said)| (0.6..1.4).contains(&f64::sqrt(said / off)));
            assert!(as_said, "{sampled:?}, {ln}: squared errors {off:?} where {said:?} are expected");
        }
    }

    /// At a level of 5%, so that few systems say something about it: 5% of 300 are 15, and 27 more than three deviations.
    #[test]
    fn healthy_systems_are_suspected_as_seldom_as_the_level_says() {
        for sampled in [None, Some(8)] {
            let alarms = (0..300).filter(|seed| {
                let fit = System { sampled, ..System::healthy() }.fit(1000 + seed);
                !fit.suspects(0.05).is_empty()
            });
            let alarms = alarms.count();
            assert!(alarms <= 27, "{sampled:?}: {alarms} of 300");
        }
    }

    /// A fifth of all pairs share links with others, which makes the middle of a link's pairs one or the other by chance.
    #[test]
    fn links_whose_pairs_are_of_two_kinds_are_suspected_as_seldom() {
        let is_link = |of: &Effect| !matches!(of.term, Term::Sender(_) | Term::Receiver(_));
        let fit = |seed: u64, fault: Option<(usize, usize)>| {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut cells = Vec::new();
            for (from, to) in (0..96).flat_map(|from| (1..=12).map(move |at| (from, (from + 8 * (at % 12) + at) % 96)))
            {
                let shares = random.random::<f64>() < 0.2;
                let is_bad = fault == Some((from / 8, to / 8));
                let ln =
                    0.02 * random.random::<f64>() + if shares { 0.5 } else { 0.0 } + if is_bad { 0.9 } else { 0.0 };
                cells.push(Cell { from, to, ln });
            }
            let groups: Vec<usize> = (0..96).map(|node| node / 8).collect();
            Additive::fit(&cells, 96, Some(&groups)).unwrap()
        };
        let alarms = (0..60).filter(|seed| fit(*seed, None).suspects(0.01).iter().any(is_link)).count();
        assert!(alarms <= 3, "{alarms} of 60");
        assert!(fit(1, Some((2, 3))).suspects(0.01).iter().any(|of| of.term == Term::Between(2, 3)));
    }

    /// The asymptotic variance of an M-estimate: the sum of squared influences over the squared count of those that are not cut. With
    /// a scale of 1 everything beyond 1.345 is cut to it.
    #[test]
    fn the_standard_error_of_a_location_is_that_of_its_cut_residuals() {
        let of = |residuals: &[f64], scale| standard_error(residuals.iter().copied(), scale);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        // Nothing is cut: sqrt(4 * 1.2^2) / 4 = 0.6, more than 1 / sqrt(4).
        close(of(&[1.2, -1.2, 1.2, -1.2], 1.0), 0.6);
        // Two of three are cut: sqrt(0.5^2 + 2 * 1.345^2) / 1.
        close(of(&[0.5, 3.0, -3.0], 1.0), f64::sqrt(0.25 + 2.0 * 1.345 * 1.345));
        // Twice the scale: 2.69 is just not cut, so that sqrt(4 * 2.69^2) / 4.
        close(of(&[2.69, -2.69, 2.69, -2.69], 2.0), 1.345);
        // Less than usual, where these happen to agree: 2 / sqrt(4).
        close(of(&[0.1, -0.1, 0.1, -0.1], 2.0), 1.0);
        // All are cut, or nearly all: ten times the usual is the most. sqrt(0.1^2 + 199 * 1.345^2) / 1 is 18.97; 10 / sqrt(200).
        close(of(&[5.0, -5.0, 5.0, -5.0], 1.0), 5.0);
        let nearly: Vec<f64> = std::iter::once(0.1).chain([9.0; 199]).collect();
        close(of(&nearly, 1.0), 10.0 / f64::sqrt(200.0));
    }

    /// The influences of all figures around a location add up to 0, and those of what is farther than 1.345 scales are 1.345.
    #[test]
    fn a_location_is_where_cut_influences_cancel() {
        let close = |values: &mut [f64], scale, wanted: f64| {
            let found = location(values, scale).unwrap();
            assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
        };
        // Nothing is cut: the mean.
        close(&mut [0.0, 0.2, 0.4, 1.0], 1.0, 0.4);
        // The last is cut: (0.0 - c) + (0.2 - c) + (0.4 - c) + 1.345 = 0, whatever its value; and at twice the scale.
        close(&mut [0.0, 0.2, 0.4, 2.5], 1.0, 1.945 / 3.0);
        close(&mut [0.0, 0.2, 0.4, 99.0], 1.0, 1.945 / 3.0);
        close(&mut [0.0, -0.4, -0.8, -5.0], 2.0, -3.89 / 3.0);
        close(&mut [0.0, 0.2, 0.4, 2.5], 0.0, 0.3);
        assert_eq!(location(&mut [], 1.0), None);
    }

    #[test]
    fn chances_are_those_of_a_binomial() {
        for (some, all, chance, expected) in
            [(2, 2, 0.5, 0.25), (1, 3, 0.2, 0.488), (0, 4, 0.3, 1.0), (3, 4, 0.5, 0.3125)]
        {
            assert!((at_least(some, all, chance) - expected).abs() < 1e-12, "{some} of {all}");
        }
        assert!(at_least(300, 1000, 0.3) > 0.4 && at_least(1000, 1000, 0.3) < 1e-300);
    }

    #[test]
    fn what_cannot_be_fitted_is_nothing() {
        let cell = |from, to| Cell { from, to, ln: 1.0 };
        assert_eq!(Additive::fit(&[], 8, None), None);
        assert_eq!(Additive::fit(&[cell(0, 1), cell(1, 0), cell(2, 1), cell(1, 2)], 3, None), None);
        let of_all_pairs = |nodes: usize| {
            let pairs: Vec<Cell> = (0..nodes * nodes).map(|at| cell(at / nodes, at % nodes)).collect();
            Additive::fit(&pairs, nodes, None)
        };
        assert!(of_all_pairs(FEWEST_PEERS - 1).is_none() && of_all_pairs(FEWEST_PEERS).is_some());
        // Figures that are no number, of a node with itself, or of nobody: left out, and their residuals are nothing.
        let mut cells: Vec<Cell> = (0..20).map(|at| cell(at / 4, (at / 4 + 1 + at % 4) % 5)).collect();
        cells.extend([
            cell(1, 1),
            cell(0, 5),
            Cell { ln: f64::NAN, ..cell(0, 1) },
            Cell { ln: f64::INFINITY, ..cell(0, 1) },
        ]);
        let fit = Additive::fit(&cells, 5, None).unwrap();
        assert_eq!((fit.residuals.len(), fit.suspects(0.5)), (24, vec![]));
        // What is left out is so where it stands: the odd pair keeps its place.
        let mut odd = [&[cell(1, 1)], &cells[..]].concat();
        odd[8].ln = 2.0;
        let left = Additive::fit(&odd, 5, None).unwrap().residuals;
        assert!(left[0] == 0.0 && left[8] > 0.5 && left.iter().filter(|of| of.abs() > 0.5).count() == 1, "{left:?}");
        // A node that nobody measured has no effect.
        let fit = Additive::fit(&cells, 6, None).unwrap();
        assert_eq!(fit.effect(Term::Sender(5)), None);
        assert_eq!(fit.effect(Term::Sender(4)).unwrap().ln, 0.0);
    }
}
