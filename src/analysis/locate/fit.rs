//! The additive models of a map's figures, and what each shows of nodes and groups; of rates also each node's quickest pair.
//!
//! Load and shared links make pairs slower, so that rates of healthy nodes are of several kinds and a model's effects are uncertain by
//! the distance of these. A bad node is slow with everyone, also in its quickest pair, which is about as quick of all healthy nodes.
//! A node is tested by both, and each has half of the false alarms.

use std::collections::BTreeMap;

use super::suspect::{Figure, Place, Seen, Way};
use crate::result::{MapFigure, MapHost, MapPair, MapResult};
use crate::stats::{
    Additive, Cell, Effect, FEWEST_PEERS, Interval, Term, holm, median, robust_freedom, robust_spread, two_sided_t,
    upper_p,
};

/// Quickest pairs of healthy nodes differ by as much, whatever rates without noise say.
const QUICKEST_FLOOR: f64 = 0.01;

/// The models of a map's figures.
pub(super) struct Models {
    pub(super) fitted: Vec<(Figure, Fitted)>,
}

pub(super) enum Fitted {
    /// Of rates with the quickest pairs of nodes.
    Pairs(Additive, Option<Quickest>),
    /// Of nodes alone: place, effect, interval, p-value.
    Nodes(Vec<Seen>),
}

impl Models {
    pub(super) fn of_map(map: &MapResult) -> Self {
        let groups: Option<Vec<usize>> = map.groups.as_ref().map(|of| of.iter().map(|&group| group as usize).collect());
        Models::of(map, groups.as_deref())
    }

    fn of(map: &MapResult, groups: Option<&[usize]>) -> Self {
        let nodes = map.nodes.len();
        let fit = |cells: Vec<Cell>, groups| Some(Fitted::Pairs(Additive::fit(&cells, nodes, groups)?, None));
        let one_way = |pair: &MapPair| pair.one_way_bytes_per_s;
        let both_ways = |pair: &MapPair| pair.both_ways_bytes_per_s;
        // One way tells a sender from a receiver best: nothing else is in the way.
        let rates: &dyn Fn(&MapPair) -> Option<MapFigure> =
            if map.pairs.iter().any(|pair| pair.one_way_bytes_per_s.is_some()) { &one_way } else { &both_ways };
        let of_pairs = |figure: Figure| cells(map, |pair| took(pair, rates(pair), figure));
        // A latency is of both directions: each node is at both ends of its pairs.
        let latency = of_pairs(Figure::Latency);
        let turned: Vec<Cell> = latency.iter().map(|cell| Cell { from: cell.to, to: cell.from, ..*cell }).collect();
        let latency = [latency, turned].concat();
        let figures = [
            (Figure::Rate, rates_of(&of_pairs(Figure::Rate), nodes, groups)),
            (Figure::Latency, fit(latency, groups)),
            (Figure::Copy, copies(&map.hosts).map(Fitted::Nodes)),
            (Figure::Retransmissions, fit(of_pairs(Figure::Retransmissions), None)),
            (Figure::WorstSlice, fit(of_pairs(Figure::WorstSlice), None)),
        ];
        Models { fitted: figures.into_iter().filter_map(|(figure, fitted)| Some((figure, fitted?))).collect() }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (figure, fitted) in &self.fitted {
            match fitted {
                Fitted::Nodes(nodes) => seen.extend(nodes),
                Fitted::Pairs(model, quickest) => {
                    let effects = model.effects.iter().filter_map(|effect| of_effect(*figure, effect));
                    match quickest {
                        Some(quickest) => seen.extend(effects.map(|of| quickest.or(of))),
                        None => seen.extend(effects),
                    }
                }
            }
        }
        seen
    }

    /// How slow a typical node had to be to be seen.
    pub(super) fn visible(&self, level: f64) -> Option<f64> {
        let (_, Fitted::Pairs(model, quickest)) = self.fitted.iter().find(|(figure, _)| *figure == Figure::Rate)?
        else {
            return None;
        };
        let level = if quickest.is_some() { level / 2.0 } else { level };
        let of_nodes = model.effects.iter().filter(|of| matches!(of.term, Term::Sender(_) | Term::Receiver(_)));
        let mut errors: Vec<f64> = of_nodes.map(|of| of.error).collect();
        let nodes = errors.len() / 2;
        let ln = two_sided_t(2.0 * level / model.effects.len() as f64, robust_freedom(nodes)) * median(&mut errors)?;
        let quickest = quickest.as_ref().and_then(|of| of.visible(level));
        Some(Figure::Rate.part(quickest.map_or(ln, |quickest| quickest.min(ln))))
    }
}

fn rates_of(cells: &[Cell], nodes: usize, groups: Option<&[usize]>) -> Option<Fitted> {
    Some(Fitted::Pairs(Additive::fit(cells, nodes, groups)?, Quickest::of(cells, groups)))
}

/// The quickest pair of each node, as a sender and as a receiver.
pub(super) struct Quickest {
    seen: Vec<Seen>,
    /// What all pairs took beside their class, the quickest first.
    all: Vec<f64>,
    /// Pairs of a node.
    pairs: usize,
    /// The middle of nodes' quickest pairs.
    middle: f64,
}

impl Quickest {
    /// Classes are pairs inside a group and between groups; a node without a pair inside its group is not judged, as what it has in
    /// common with its group may be the group's. Nothing of few nodes.
    fn of(cells: &[Cell], groups: Option<&[usize]>) -> Option<Self> {
        let is_inside = |cell: &Cell| groups.is_none_or(|of| of.get(cell.from) == of.get(cell.to));
        let level = |inside: bool| {
            let mut class: Vec<f64> = cells.iter().filter(|of| is_inside(of) == inside).map(|of| of.ln).collect();
            class.sort_by(f64::total_cmp);
            class.get(class.len() / 4).copied().unwrap_or(0.0)
        };
        let levels = [level(false), level(true)];
        let beside = |cell: &Cell| cell.ln - levels[usize::from(is_inside(cell))];
        let mut all: Vec<f64> = cells.iter().map(beside).collect();
        all.sort_by(f64::total_cmp);
        let (mut seen, mut pairs, mut middle) = (Vec::new(), Vec::new(), f64::NEG_INFINITY);
        for way in [Way::Out, Way::In] {
            let mut own: BTreeMap<usize, (bool, Vec<f64>)> = BTreeMap::new();
            for cell in cells {
                let of = own.entry(if way == Way::Out { cell.from } else { cell.to }).or_default();
                of.0 |= is_inside(cell);
                of.1.push(beside(cell));
            }
            own.retain(|_, (inside, _)| *inside);
            let quickest = |(node, (_, of)): (&usize, &(bool, Vec<f64>))| {
                (*node as u32, of.iter().copied().fold(f64::INFINITY, f64::min))
            };
            let quickest: Vec<(u32, f64)> = own.iter().map(quickest).collect();
            let judged = beside_others(&quickest, (Figure::Rate, way), QUICKEST_FLOOR)?;
            middle = middle.max(quickest.first()?.1 - judged.first()?.ln);
            for ((of, (_, quickest)), (_, own)) in judged.into_iter().zip(&quickest).zip(own.values()) {
                // As rare as all of so many pairs are among the slow ones.
                let quicker = all.partition_point(|other| other < quickest) as f64;
                let slow = 1.0 - quicker / (all.len() - own.len() + 1) as f64;
                seen.push(Seen { p_value: of.p_value.max(slow.powi(own.len() as i32)), ..of });
                pairs.push(own.len() as f64);
            }
        }
        let pairs = median(&mut pairs)? as usize;
        let corrected = holm(&seen.iter().map(|of| of.p_value).collect::<Vec<f64>>());
        seen.iter_mut().zip(corrected).for_each(|(of, p_value)| of.p_value = p_value);
        Some(Quickest { seen, all, pairs, middle })
    }

    /// The more certain of this and what the model shows of the same.
    fn or(&self, of: Seen) -> Seen {
        let same = self.seen.iter().find(|quickest| quickest.place == of.place && quickest.way == of.way);
        let of = same.filter(|quickest| quickest.p_value < of.p_value).copied().unwrap_or(of);
        Seen { p_value: (2.0 * of.p_value).min(1.0), ..of }
    }

    /// How much slower a node must be for its quickest pair to show it.
    fn visible(&self, level: f64) -> Option<f64> {
        let level = level / self.seen.len() as f64;
        let errors = |of: &Seen| two_sided_t(2.0 * level, robust_freedom(self.seen.len() / 2)) * of.error;
        let error = median(&mut self.seen.iter().map(errors).collect::<Vec<f64>>())?;
        let slow = (1.0 - level.powf(1.0 / self.pairs as f64)) * self.all.len() as f64;
        Some(error.max(self.all.get(slow as usize)? - self.middle))
    }
}

/// A latency has no direction; its effects are the same for both ends, and one of them is enough.
fn of_effect(figure: Figure, effect: &Effect) -> Option<Seen> {
    let (place, way) = match effect.term {
        Term::Sender(node) => (Place::Node(node as u32), Way::Out),
        Term::Receiver(node) => (Place::Node(node as u32), Way::In),
        Term::OutOf(group) => (Place::Group(group as u32), Way::Out),
        Term::Into(group) => (Place::Group(group as u32), Way::In),
        Term::Between(from, to) => (Place::Between(from as u32, to as u32), Way::Out),
    };
    let Effect { ln, error, interval, p_value, .. } = *effect;
    match (figure, place, way) {
        (Figure::Latency, _, Way::In) => None,
        (Figure::Latency, Place::Between(from, to), _) if from > to => None,
        (Figure::Latency, ..) => Some(Seen { place, way: Way::Both, figure, ln, error, interval, p_value }),
        _ => Some(Seen { place, way, figure, ln, error, interval, p_value }),
    }
}

fn cells(map: &MapResult, ln: impl Fn(&MapPair) -> Option<f64>) -> Vec<Cell> {
    let cell = |pair: &MapPair| Some(Cell { from: pair.from as usize, to: pair.to as usize, ln: ln(pair)? });
    map.pairs.iter().filter_map(cell).collect()
}

/// What one direction of a pair took, on logarithms: more is slower. A host's copies are of no pair.
pub(super) fn took(pair: &MapPair, rate: Option<MapFigure>, figure: Figure) -> Option<f64> {
    let ln = match figure {
        Figure::Rate => rate.map(|of| -of.median.ln()),
        Figure::Latency => pair.latency_s.map(|of| of.median.ln()),
        Figure::WorstSlice => rate.filter(|of| of.count > 1).map(|of| (of.median / of.worst).ln()),
        Figure::Retransmissions => pair.retransmitted.map(|count| (count as f64).ln_1p()),
        Figure::Copy => None,
    };
    ln.filter(|ln| ln.is_finite())
}

/// Copies inside nodes: each beside all others.
pub(super) fn copies(hosts: &[MapHost]) -> Option<Vec<Seen>> {
    let of = |host: &MapHost| (host.node, -host.copy_bytes_per_s.ln());
    let copies: Vec<(u32, f64)> = hosts.iter().map(of).filter(|(_, ln)| ln.is_finite()).collect();
    // No copy is timed better than this.
    let mut seen = beside_others(&copies, (Figure::Copy, Way::Both), 1e-3)?;
    let corrected = holm(&seen.iter().map(|of| of.p_value).collect::<Vec<f64>>());
    seen.iter_mut().zip(corrected).for_each(|(of, p_value)| of.p_value = p_value);
    Some(seen)
}

/// What nodes took, each beside the middle and the spread of all; p-values are of each by itself. Nothing of few nodes.
fn beside_others(nodes: &[(u32, f64)], (figure, way): (Figure, Way), floor: f64) -> Option<Vec<Seen>> {
    if nodes.len() < FEWEST_PEERS {
        return None;
    }
    let mut values: Vec<f64> = nodes.iter().map(|(_, ln)| *ln).collect();
    let middle = median(&mut values)?;
    let (error, freedom) = (robust_spread(&values).max(floor), robust_freedom(nodes.len()));
    let half = two_sided_t(0.05, freedom) * error;
    let seen = |&(node, ln): &(u32, f64)| {
        let ln = ln - middle;
        let interval = Interval { low: ln - half, high: ln + half };
        Seen { place: Place::Node(node), way, figure, ln, error, interval, p_value: upper_p(ln / error, freedom) }
    };
    Some(nodes.iter().map(seen).collect())
}
