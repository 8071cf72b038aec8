//! What probes show of suspects that were measured alone.
//!
//! Parts of a kind are compared with each other, controls among them: of a part, what its pairs took beside the middle of all pairs of
//! their class (inside a group, or between groups); beside the spread of these, and its own standard error. Of a node it is the median,
//! which single slow partners do not move. Pairs that share links of groups have rates of a few kinds, between which a median jumps: of
//! links it is a trimmed mean, with a standard error that knows of all kinds. All
//! that was probed is one family of each figure. What the map alone shows for certain is another, smaller one: it needs less to be
//! confirmed. Both have half of the false alarms.

use std::collections::BTreeMap;

use super::fit::{copies, took};
use super::suspect::{Figure, Place, Seen, Way};
use crate::result::{MapProbe, MapResult};
use crate::stats::{FEWEST_PEERS, Interval, MAD, holm, median, robust_freedom, robust_spread, two_sided_t, upper_p};

/// Of a median, beside a mean.
const OF_MEDIAN: f64 = 1.2533;
/// Parts differ by as much, whatever figures without noise say.
const FLOOR: f64 = 0.01;
/// A node has met so many partners, or it is not judged.
const FEWEST_PAIRS: usize = 4;
/// What a group's links explain is not its nodes' or its pairs': from this evidence on.
const EXPLAINS: f64 = 1e-3;
const OF_PAIRS: [Figure; 4] = [Figure::Rate, Figure::Latency, Figure::WorstSlice, Figure::Retransmissions];

/// See the module.
pub(super) struct Alone {
    /// Of what was probed, and of copies inside all nodes.
    pub(super) seen: Vec<Seen>,
    /// A node whose rate lacks this part is seen alone.
    pub(super) visible: Option<f64>,
}

/// What the pairs of one part took, by one figure in one direction.
struct Unit {
    place: Place,
    way: Way,
    figure: Figure,
    cells: Vec<Took>,
}

/// What a pair took: on logarithms, beside the groups it was between.
#[derive(Clone, Copy)]
struct Took {
    ln: f64,
    groups: Option<(u32, u32)>,
}

impl Took {
    fn crosses(self) -> bool {
        self.groups.is_some_and(|(from, to)| from != to)
    }
}

impl Alone {
    /// `known` is what the map shows; of it, what is below `level` and slower by `least` is suspected. Nothing without probes.
    pub(super) fn of(map: &MapResult, known: &[Seen], level: f64, least: f64) -> Option<Self> {
        let probes = map.probes.as_ref()?;
        let mut units: Vec<Unit> = probes.probes.iter().flat_map(|probe| units(probe, map)).collect();
        let (mut of_nodes, mut of_groups, mut between) = (Vec::new(), Vec::new(), Vec::new());
        for unit in units.drain(..) {
            match unit.place {
                Place::Node(_) => of_nodes.push(unit),
                Place::Group(_) => of_groups.push(unit),
                Place::Between(..) => between.push(unit),
            }
        }
        // How much healthy groups differ is known from nodes, of which there are more.
        let nodes = probes.probes.iter().filter(|of| matches!(of.place, Place::Node(_))).count();
        let mut judged = beside_peers(of_groups, nodes);
        let links = judged.clone();
        for of in [&mut between, &mut of_nodes] {
            explain(of, &links);
        }
        judged.extend(beside_peers(between, nodes));
        judged.extend(beside_peers(of_nodes, nodes));
        let node_rates = |of: &&Seen| of.figure == Figure::Rate && matches!(of.place, Place::Node(_));
        let mut errors: Vec<f64> = judged.iter().filter(node_rates).map(|of| of.error).collect();
        let family = judged.iter().filter(|of| of.figure == Figure::Rate).count().max(1);
        let half = two_sided_t(level / family as f64, robust_freedom(nodes));
        let visible = median(&mut errors).map(|error| Figure::Rate.part(half * error));
        let suspected: Vec<&Seen> =
            known.iter().filter(|of| of.p_value < level && of.ln >= of.figure.least(least)).collect();
        let mut seen = corrected(&judged, &suspected);
        seen.extend(both_copies(map));
        Some(Alone { seen, visible })
    }

    /// Whether a part was measured again.
    pub(super) fn has(&self, place: Place) -> bool {
        self.seen.iter().any(|of| of.place == place && of.figure != Figure::Copy)
    }
}

/// The figures of a part that was probed often enough.
fn units(probe: &MapProbe, map: &MapResult) -> Vec<Unit> {
    let group = |node: u32| map.groups.as_ref().and_then(|of| of.get(node as usize).copied());
    let mut found: BTreeMap<(Place, Way, Figure), Vec<Took>> = BTreeMap::new();
    for pair in &probe.pairs {
        let groups = group(pair.from).zip(group(pair.to));
        let (place, way) = match (probe.place, groups) {
            (Place::Node(node), _) => (probe.place, if pair.from == node { Way::Out } else { Way::In }),
            (Place::Group(own), Some((from, _))) => (probe.place, if from == own { Way::Out } else { Way::In }),
            (Place::Between(..), Some((from, to))) => (Place::Between(from, to), Way::Out),
            (_, None) => continue,
        };
        // A latency is of both directions, and of the groups in the order that the map's model has.
        let latency_of = match place {
            Place::Between(from, to) => Place::Between(from.min(to), from.max(to)),
            place => place,
        };
        let is_node = matches!(probe.place, Place::Node(_));
        for figure in OF_PAIRS.into_iter().filter(|figure| is_node || figure.is_of_links()) {
            let Some(ln) = took(pair, pair.one_way_bytes_per_s, figure) else { continue };
            let (place, way) = if figure == Figure::Latency { (latency_of, Way::Both) } else { (place, way) };
            found.entry((place, way, figure)).or_default().push(Took { ln, groups });
        }
    }
    let unit = |((place, way, figure), cells)| Unit { place, way, figure, cells };
    found.into_iter().map(unit).filter(|unit| unit.cells.len() >= FEWEST_PAIRS).collect()
}

/// Takes what the links of groups explain out of what crosses them.
fn explain(units: &mut [Unit], links: &[Seen]) {
    for unit in units {
        let of_link = |group: u32, way: Way| {
            let is_it = |of: &&Seen| {
                of.place == Place::Group(group) && of.figure == unit.figure && [way, Way::Both].contains(&of.way)
            };
            links.iter().find(is_it).filter(|of| of.p_value < EXPLAINS).map_or(0.0, |of| of.ln.max(0.0))
        };
        for cell in unit.cells.iter_mut().filter(|cell| cell.crosses()) {
            let Some((from, to)) = cell.groups else { continue };
            // One of them is the narrower.
            cell.ln -= of_link(from, Way::Out).max(of_link(to, Way::In));
        }
    }
}

/// Parts of a kind beside each other; their p-values are of each by itself. Nothing of too few.
fn beside_peers(units: Vec<Unit>, nodes: usize) -> Vec<Seen> {
    let mut kinds: BTreeMap<(Figure, Way), Vec<Unit>> = BTreeMap::new();
    units.into_iter().for_each(|unit| kinds.entry((unit.figure, unit.way)).or_default().push(unit));
    kinds.into_values().filter(|of| of.len() >= FEWEST_PEERS).flat_map(|of| judged(&of, nodes)).collect()
}

fn judged(units: &[Unit], nodes: usize) -> Vec<Seen> {
    let level = |crosses: bool| {
        let cells = units.iter().flat_map(|unit| &unit.cells).filter(|cell| cell.crosses() == crosses);
        median(&mut cells.map(|cell| cell.ln).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let levels = [level(false), level(true)];
    let left = |cell: &Took| cell.ln - levels[usize::from(cell.crosses())];
    let is_node = matches!(units[0].place, Place::Node(_));
    let effect = |unit: &Unit| {
        let mut values: Vec<f64> = unit.cells.iter().map(left).collect();
        if is_node { median(&mut values).unwrap_or(0.0) } else { trimmed_mean(&mut values) }
    };
    let effects: Vec<f64> = units.iter().map(effect).collect();
    let middle = median(&mut effects.clone()).unwrap_or(0.0);
    let residuals =
        units.iter().zip(&effects).flat_map(|(unit, ln)| unit.cells.iter().map(move |cell| left(cell) - ln));
    let mut residuals: Vec<f64> = residuals.map(f64::abs).collect();
    let scale = match is_node {
        true => OF_MEDIAN * MAD * median(&mut residuals).unwrap_or(0.0),
        false => (residuals.iter().map(|left| left * left).sum::<f64>() / residuals.len() as f64).sqrt(),
    };
    let among = robust_spread(&effects);
    let freedom = robust_freedom(nodes.max(units.len()));
    let seen = |(unit, ln): (&Unit, &f64)| {
        let ln = ln - middle;
        let error = among.max(FLOOR).hypot(scale / (unit.cells.len() as f64).sqrt());
        let half = two_sided_t(0.05, freedom) * error;
        Seen {
            place: unit.place,
            way: unit.way,
            figure: unit.figure,
            ln,
            error,
            interval: Interval { low: ln - half, high: ln + half },
            p_value: upper_p(ln / error, freedom),
        }
    };
    units.iter().zip(&effects).map(seen).collect()
}

/// Without the lowest and the highest eighth.
fn trimmed_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let kept = &values[values.len() / 8..values.len() - values.len() / 8];
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// Corrects p-values of single parts for all that was probed, or for all that the map suspects where they are of that.
fn corrected(judged: &[Seen], suspected: &[&Seen]) -> Vec<Seen> {
    let mut figures: Vec<Figure> = judged.iter().map(|of| of.figure).collect();
    figures.sort_unstable();
    figures.dedup();
    let mut all = Vec::new();
    for figure in figures {
        let family: Vec<Seen> = judged.iter().filter(|of| of.figure == figure).copied().collect();
        let corrected = holm(&family.iter().map(|of| of.p_value).collect::<Vec<f64>>());
        let known: Vec<&&Seen> = suspected.iter().filter(|of| of.figure == figure).collect();
        for (seen, corrected) in family.into_iter().zip(corrected) {
            let is_known = known.iter().any(|of| of.place == seen.place && of.way == seen.way);
            let p_value = if is_known { corrected.min(seen.p_value * known.len() as f64) } else { corrected };
            all.push(Seen { p_value: (2.0 * p_value).min(1.0), ..seen });
        }
    }
    all
}

/// Copies inside nodes, which nothing else of the job disturbs either time: slow both times.
fn both_copies(map: &MapResult) -> Vec<Seen> {
    let first = copies(&map.hosts).unwrap_or_default();
    let again = map.probes.as_ref().and_then(|of| copies(&of.hosts)).unwrap_or_default();
    let both = |seen: Seen| match again.iter().find(|of| of.place == seen.place) {
        Some(of) if of.p_value > seen.p_value => *of,
        _ => seen,
    };
    first.into_iter().map(both).collect()
}
