//! The additive models of a map's figures, and what each shows of nodes and groups.

use super::suspect::{Figure, Place, Seen, Way};
use crate::result::{MapFigure, MapHost, MapPair, MapResult};
use crate::stats::{
    Additive, Cell, Effect, FEWEST_PEERS, Interval, Term, holm, median, robust_freedom, robust_spread, two_sided_t,
    upper_p,
};

/// The models of a map's figures.
pub(super) struct Models {
    pub(super) fitted: Vec<(Figure, Fitted)>,
}

pub(super) enum Fitted {
    Pairs(Additive),
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
        let fit = |cells: Vec<Cell>, groups| Additive::fit(&cells, nodes, groups).map(Fitted::Pairs);
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
            (Figure::Rate, fit(of_pairs(Figure::Rate), groups)),
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
                Fitted::Pairs(model) => {
                    seen.extend(model.effects.iter().filter_map(|effect| of_effect(*figure, effect)));
                }
            }
        }
        seen
    }

    /// How slow a typical node had to be to be seen.
    pub(super) fn visible(&self, level: f64) -> Option<f64> {
        let (_, Fitted::Pairs(model)) = self.fitted.iter().find(|(figure, _)| *figure == Figure::Rate)? else {
            return None;
        };
        let of_nodes = model.effects.iter().filter(|of| matches!(of.term, Term::Sender(_) | Term::Receiver(_)));
        let mut errors: Vec<f64> = of_nodes.map(|of| of.error).collect();
        let nodes = errors.len() / 2;
        let ln = two_sided_t(2.0 * level / model.effects.len() as f64, robust_freedom(nodes)) * median(&mut errors)?;
        Some(Figure::Rate.part(ln))
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
    if copies.len() < FEWEST_PEERS {
        return None;
    }
    let mut values: Vec<f64> = copies.iter().map(|(_, ln)| *ln).collect();
    let middle = median(&mut values)?;
    // No copy is timed better than this.
    let (spread, freedom) = (robust_spread(&values).max(1e-3), robust_freedom(copies.len()));
    let corrected = holm(&copies.iter().map(|(_, ln)| upper_p((ln - middle) / spread, freedom)).collect::<Vec<f64>>());
    let half = two_sided_t(0.05, freedom) * spread;
    let seen = |(&(node, ln), p_value): (&(u32, f64), f64)| {
        let ln = ln - middle;
        let interval = Interval { low: ln - half, high: ln + half };
        Seen { place: Place::Node(node), way: Way::Both, figure: Figure::Copy, ln, error: spread, interval, p_value }
    };
    Some(copies.iter().zip(corrected).map(seen).collect())
}
