//! Which node, cable or link is to blame for slow pairs of a map.
//!
//! Every figure of a map has an additive model of its own ([`Additive`]): rates, latencies, retransmissions, and how far the worst slice
//! of a pair is from its median. What these models suspect is put together for each node and group: who is slow to itself too is a
//! slow host, who is slow both ways has a bad cable, and so on. All models share one rate of false alarms.
//!
//! A map is of one time. What was busy meanwhile looks the same as what is broken; a map of another time tells them apart: a fault is
//! slow in both, by the same figure and in the same direction.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::result::{MapFigure, MapPair, MapResult};
use crate::stats::{Additive, Cell, Effect, FEWEST_PEERS, Interval, Term, holm, median, two_sided_p, two_sided_t};

/// How often a system without faults may have a suspect, if the user does not say.
pub const FALSE_ALARMS: f64 = 0.01;
/// What is slower by less is nobody's business, if the user does not say.
pub const LEAST: f64 = 0.05;
/// A worst slice is this many times farther from the median than it is elsewhere.
const INTERMITTENT_LN: f64 = 0.2;
/// Segments sent again by a pair, beyond what others send again.
const LOSS_LN: f64 = 0.4;
/// A second direction is taken for slow, beside one that is, by this evidence alone.
const SECOND_LEVEL: f64 = 0.05;
/// From median absolute deviation to standard deviation, and the degrees of freedom it keeps.
const MAD: f64 = 1.4826;
const MAD_EFFICIENCY: f64 = 0.37;

/// What a suspect is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A node that sends slowly, or its cable that way.
    SlowToSend,
    /// A node that receives slowly, or its cable that way.
    SlowToReceive,
    /// A node's cable: slow both ways, or late.
    Cable,
    /// A node's cable that loses packets.
    Loss,
    /// A node that is slow to itself.
    Host,
    /// A node that is slow at times.
    Intermittent,
    /// Links of a group to all others.
    Uplink,
    /// Links of one group to another.
    GroupPair,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::SlowToSend,
        Fault::SlowToReceive,
        Fault::Cable,
        Fault::Loss,
        Fault::Host,
        Fault::Intermittent,
        Fault::Uplink,
        Fault::GroupPair,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::SlowToSend => "slow to send",
            Fault::SlowToReceive => "slow to receive",
            Fault::Cable => "bad cable",
            Fault::Loss => "loses packets",
            Fault::Host => "slow host",
            Fault::Intermittent => "slow at times",
            Fault::Uplink => "slow uplink",
            Fault::GroupPair => "slow between groups",
        })
    }
}

/// What a suspect was seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Bandwidth, one way or both ways.
    Rate,
    /// Half a round trip.
    Latency,
    /// Copies inside the node.
    Copy,
    /// Segments sent again.
    Retransmissions,
    /// The worst slice beside the median.
    WorstSlice,
}

impl Figure {
    /// What an effect on logarithms comes to: the part of a rate that is lacking, the part of a time that is added, or segments.
    fn part(self, ln: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy | Figure::WorstSlice => -(-ln).exp_m1(),
            Figure::Latency | Figure::Retransmissions => ln.exp_m1(),
        }
    }

    /// The inverse of [`Figure::part`].
    fn ln(self, part: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy | Figure::WorstSlice => -(-part).ln_1p(),
            Figure::Latency | Figure::Retransmissions => part.ln_1p(),
        }
    }

    fn least(self, least: f64) -> f64 {
        match self {
            Figure::Rate | Figure::Copy => -(-least).ln_1p(),
            Figure::Latency => least.ln_1p(),
            Figure::Retransmissions => LOSS_LN,
            Figure::WorstSlice => INTERMITTENT_LN,
        }
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Way {
    Out,
    In,
    Both,
}

/// What a suspect is: numbers of nodes and groups, as the map has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Place {
    Node(u32),
    Group(u32),
    Between(u32, u32),
}

/// One figure by which a suspect is slower than its peers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which figure.
    pub figure: Figure,
    /// Of what it sends, of what it receives, or of both.
    pub way: Way,
    /// The part of a rate that is lacking, or of a latency that is added; of retransmissions segments for each pair.
    pub slower: f64,
    /// Its 95% interval.
    pub interval: Interval,
    /// Corrected for all effects of this figure that were looked at.
    pub p_value: f64,
}

/// Something that is slower than its peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// What it is.
    pub place: Place,
    /// What it is called.
    pub name: String,
    /// What it is taken for.
    pub fault: Fault,
    /// Which way.
    pub way: Way,
    /// What shows it, the most telling first.
    pub evidence: Vec<Evidence>,
}

impl Suspect {
    /// The figure that shows it best.
    pub fn first(&self) -> &Evidence {
        &self.evidence[0]
    }
}

/// How sure a verdict has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demands {
    /// How often a system without faults may have any suspect.
    pub false_alarms: f64,
    /// The least part by which a suspect is slower.
    pub least: f64,
}

impl Default for Demands {
    fn default() -> Self {
        Demands { false_alarms: FALSE_ALARMS, least: LEAST }
    }
}

/// What a map shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Located {
    /// Nodes of the map.
    pub nodes: usize,
    /// Groups, where they are known.
    pub groups: usize,
    /// Pairs that were measured, each direction of its own.
    pub pairs: usize,
    /// How often a system without faults has any suspect.
    pub false_alarms: f64,
    /// Effects that were looked at, over all figures.
    pub looked_at: usize,
    /// The figures that the map has.
    pub figures: Vec<Figure>,
    /// A node whose rate lacks this part would have been a suspect; absent without rates.
    pub visible: Option<f64>,
    /// Maps of the same nodes at different times.
    pub maps: usize,
    /// The worst first; of several maps what all of them show.
    pub suspects: Vec<Suspect>,
    /// What one of several maps suspects, and another does not show: neighbours' load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Suspect>,
}

/// What one figure shows of one thing.
#[derive(Clone, Copy)]
struct Seen {
    place: Place,
    way: Way,
    figure: Figure,
    ln: f64,
    interval: Interval,
    p_value: f64,
}

impl Located {
    /// What this map shows.
    ///
    /// # Errors
    /// Says why it can show nothing.
    pub fn of(map: &MapResult, demands: Demands) -> Result<Self, String> {
        let models = Models::of_map(map);
        if models.fitted.is_empty() {
            let (nodes, pairs) = (map.nodes.len(), map.pairs.len());
            return Err(format!(
                "{nodes} nodes and {pairs} measured pairs do not show who is slow: expected at least {FEWEST_PEERS} nodes that \
                 each send to others and receive"
            ));
        }
        // Each figure has its part of the false alarms.
        let level = demands.false_alarms / models.fitted.len() as f64;
        let seen: Vec<Seen> = models.seen();
        let names = Names(map);
        let mut suspects: Vec<Suspect> =
            places(&seen).into_iter().filter_map(|place| suspect(place, &seen, level, demands.least, &names)).collect();
        pair_up(&mut suspects);
        suspects.sort_by(|a, b| {
            let strength = |of: &Suspect| (of.first().figure.least(0.0) > 0.0, of.first().slower);
            strength(b).partial_cmp(&strength(a)).unwrap_or(std::cmp::Ordering::Equal)
        });
        Ok(Located {
            nodes: map.nodes.len(),
            groups: map.groups.as_ref().map_or(0, |of| of.iter().collect::<std::collections::BTreeSet<_>>().len()),
            pairs: map.pairs.len(),
            false_alarms: demands.false_alarms,
            looked_at: seen.len(),
            figures: models.fitted.iter().map(|(figure, _)| *figure).collect(),
            visible: models.visible(level),
            maps: 1,
            suspects,
            busy: Vec::new(),
        })
    }

    /// What several maps of the same nodes show, measured one after the other.
    ///
    /// # Errors
    /// As [`Located::of`], or where they are of other nodes.
    pub fn of_all(maps: &[&MapResult], demands: Demands) -> Result<Self, String> {
        let [first, others @ ..] = maps else { return Err("there is no map".into()) };
        if let Some(at) = others.iter().position(|other| other.nodes != first.nodes) {
            return Err(format!(
                "map {} is of other nodes than the first one: expected the same, in the same order",
                at + 2
            ));
        }
        let found: Result<Vec<Located>, String> = maps.iter().map(|map| Located::of(map, demands)).collect();
        let mut found = found?;
        let seen: Vec<Vec<Seen>> = maps.iter().map(|map| Models::of_map(map).seen()).collect();
        let (mut held, mut busy): (Vec<Suspect>, Vec<Suspect>) = (Vec::new(), Vec::new());
        for (at, suspects) in found.iter_mut().map(|of| std::mem::take(&mut of.suspects)).enumerate() {
            for suspect in suspects {
                let elsewhere = || seen.iter().enumerate().filter(|(other, _)| *other != at);
                let holds = elsewhere().all(|(_, seen)| is_seen_again(&suspect, seen, demands.least));
                let list = if holds { &mut held } else { &mut busy };
                if list.iter().all(|of| of.place != suspect.place) {
                    list.push(suspect);
                }
            }
        }
        busy.retain(|of| held.iter().all(|held| held.place != of.place));
        let first = found.swap_remove(0);
        Ok(Located { maps: maps.len(), suspects: held, busy, ..first })
    }

    /// The nodes that are suspects themselves, in the order of the map: what a scheduler may drain.
    pub fn nodes_to_drain<'a>(&self, map: &'a MapResult) -> Vec<&'a str> {
        let mut nodes: Vec<u32> = self
            .suspects
            .iter()
            .filter_map(|of| if let Place::Node(at) = of.place { Some(at) } else { None })
            .collect();
        nodes.sort_unstable();
        nodes.iter().filter_map(|&at| map.nodes.get(at as usize)).map(String::as_str).collect()
    }
}

/// The models of a map's figures.
struct Models {
    fitted: Vec<(Figure, Fitted)>,
}

enum Fitted {
    Pairs(Additive),
    /// Of nodes alone: place, effect, interval, p-value.
    Nodes(Vec<Seen>),
}

impl Models {
    fn of_map(map: &MapResult) -> Self {
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
        let rate = cells(map, |pair| rates(pair).map(|of| -of.median.ln()));
        let worst = cells(map, |pair| rates(pair).filter(|of| of.count > 1).map(|of| (of.median / of.worst).ln()));
        let again = cells(map, |pair| pair.retransmitted.map(|count| (count as f64).ln_1p()));
        // A latency is of both directions: each node is at both ends of its pairs.
        let latency = cells(map, |pair| pair.latency_s.map(|of| of.median.ln()));
        let turned: Vec<Cell> = latency.iter().map(|cell| Cell { from: cell.to, to: cell.from, ..*cell }).collect();
        let latency = [latency, turned].concat();
        let figures = [
            (Figure::Rate, fit(rate, groups)),
            (Figure::Latency, fit(latency, groups)),
            (Figure::Copy, copies(map).map(Fitted::Nodes)),
            (Figure::Retransmissions, fit(again, None)),
            (Figure::WorstSlice, fit(worst, None)),
        ];
        Models { fitted: figures.into_iter().filter_map(|(figure, fitted)| Some((figure, fitted?))).collect() }
    }

    fn seen(&self) -> Vec<Seen> {
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
    fn visible(&self, level: f64) -> Option<f64> {
        let (_, Fitted::Pairs(model)) = self.fitted.iter().find(|(figure, _)| *figure == Figure::Rate)? else {
            return None;
        };
        let of_nodes = model.effects.iter().filter(|of| matches!(of.term, Term::Sender(_) | Term::Receiver(_)));
        let mut errors: Vec<f64> = of_nodes.map(|of| of.error).collect();
        let nodes = errors.len() as f64 / 2.0;
        let freedom = (MAD_EFFICIENCY * (nodes - 1.0)).max(3.0);
        let ln = two_sided_t(2.0 * level / model.effects.len() as f64, freedom) * median(&mut errors)?;
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
    let Effect { ln, interval, p_value, .. } = *effect;
    match (figure, place, way) {
        (Figure::Latency, _, Way::In) => None,
        (Figure::Latency, Place::Between(from, to), _) if from > to => None,
        (Figure::Latency, ..) => Some(Seen { place, way: Way::Both, figure, ln, interval, p_value }),
        _ => Some(Seen { place, way, figure, ln, interval, p_value }),
    }
}

fn cells(map: &MapResult, ln: impl Fn(&MapPair) -> Option<f64>) -> Vec<Cell> {
    let cell = |pair: &MapPair| Some(Cell { from: pair.from as usize, to: pair.to as usize, ln: ln(pair)? });
    map.pairs.iter().filter_map(cell).filter(|cell| cell.ln.is_finite()).collect()
}

/// Copies inside nodes: each beside all others.
fn copies(map: &MapResult) -> Option<Vec<Seen>> {
    let of = |host: &crate::result::MapHost| (host.node, -host.copy_bytes_per_s.ln());
    let copies: Vec<(u32, f64)> = map.hosts.iter().map(of).filter(|(_, ln)| ln.is_finite()).collect();
    if copies.len() < FEWEST_PEERS {
        return None;
    }
    let middle = median(&mut copies.iter().map(|(_, ln)| *ln).collect::<Vec<f64>>())?;
    let spread = MAD * median(&mut copies.iter().map(|(_, ln)| (ln - middle).abs()).collect::<Vec<f64>>())?;
    // No copy is timed better than this.
    let (spread, freedom) = (spread.max(1e-3), (MAD_EFFICIENCY * (copies.len() as f64 - 1.0)).max(3.0));
    let tail = |ln: f64| {
        let both = two_sided_p((ln - middle) / spread, freedom) / 2.0;
        if ln > middle { both } else { 1.0 - both }
    };
    let corrected = holm(&copies.iter().map(|(_, ln)| tail(*ln)).collect::<Vec<f64>>());
    let half = two_sided_t(0.05, freedom) * spread;
    let seen = |(&(node, ln), p_value): (&(u32, f64), f64)| {
        let ln = ln - middle;
        let interval = Interval { low: ln - half, high: ln + half };
        Seen { place: Place::Node(node), way: Way::Both, figure: Figure::Copy, ln, interval, p_value }
    };
    Some(copies.iter().zip(corrected).map(seen).collect())
}

fn places(seen: &[Seen]) -> Vec<Place> {
    let mut places: Vec<Place> = seen.iter().map(|of| of.place).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What is said of one node, group or pair of groups; nothing if it is like its peers.
fn suspect(place: Place, seen: &[Seen], level: f64, least: f64, names: &Names<'_>) -> Option<Suspect> {
    let mine: Vec<&Seen> = seen.iter().filter(|of| of.place == place && of.ln >= of.figure.least(least)).collect();
    let shown: Vec<&Seen> = mine.iter().filter(|of| of.p_value < level).copied().collect();
    if shown.is_empty() {
        return None;
    }
    let has = |figure: Figure| shown.iter().any(|of| of.figure == figure);
    let strongest = shown.iter().filter(|of| of.figure == Figure::Rate).map(|of| of.ln).fold(0.0, f64::max);
    // Where one direction is slow for certain, the other one needs less to be told slow as well.
    let slow = |way: Way| {
        mine.iter().any(|of| {
            let beside = of.p_value < SECOND_LEVEL && of.ln > strongest / 2.0;
            of.figure == Figure::Rate && of.way == way && (of.p_value < level || (strongest > 0.0 && beside))
        })
    };
    let way = match (slow(Way::Out), slow(Way::In)) {
        (true, false) => Way::Out,
        (false, true) => Way::In,
        _ => Way::Both,
    };
    let fault = match place {
        Place::Group(_) => Fault::Uplink,
        Place::Between(..) => Fault::GroupPair,
        Place::Node(_) if has(Figure::Copy) => Fault::Host,
        Place::Node(_) if has(Figure::Retransmissions) => Fault::Loss,
        Place::Node(_) if has(Figure::Rate) => match way {
            Way::Out => Fault::SlowToSend,
            Way::In => Fault::SlowToReceive,
            Way::Both => Fault::Cable,
        },
        Place::Node(_) if has(Figure::Latency) => Fault::Cable,
        Place::Node(_) => Fault::Intermittent,
    };
    let mut evidence: Vec<Evidence> = shown.iter().map(|of| evidence(of)).collect();
    // Rates first, then the rest in the order of the figures; of a figure the stronger direction first.
    evidence.sort_by(|a, b| a.figure.cmp(&b.figure).then(b.slower.total_cmp(&a.slower)));
    Some(Suspect { place, name: names.of(place), fault, way, evidence })
}

/// Whether another map has what first shows a suspect, at least half as strong and outside of chance by its own interval.
fn is_seen_again(suspect: &Suspect, seen: &[Seen], least: f64) -> bool {
    let first = suspect.first();
    let strength = first.figure.ln(first.slower);
    seen.iter().any(|of| {
        let same = of.place == suspect.place && of.figure == first.figure && of.way == first.way;
        same && of.interval.low > 0.0 && of.ln >= (strength / 2.0).max(first.figure.least(least))
    })
}

fn evidence(seen: &Seen) -> Evidence {
    let Seen { figure, way, ln, interval, p_value, .. } = *seen;
    let interval = Interval { low: figure.part(interval.low), high: figure.part(interval.high) };
    Evidence { figure, way, slower: figure.part(ln), interval, p_value }
}

/// Two directions between the same groups are one link's.
fn pair_up(suspects: &mut Vec<Suspect>) {
    let back = |of: &Suspect| match of.place {
        Place::Between(from, to) => Some(Place::Between(to, from)),
        _ => None,
    };
    let mut at = 0;
    while at < suspects.len() {
        let other = back(&suspects[at]).and_then(|place| suspects.iter().position(|of| of.place == place));
        if let Some(other) = other.filter(|other| *other > at) {
            let other = suspects.remove(other);
            suspects[at].way = Way::Both;
            suspects[at].evidence.extend(other.evidence.into_iter().map(|of| Evidence { way: Way::In, ..of }));
        }
        at += 1;
    }
}

struct Names<'a>(&'a MapResult);

impl Names<'_> {
    fn of(&self, place: Place) -> String {
        let group = |at: u32| self.0.group_names.get(at as usize).cloned().unwrap_or_else(|| format!("group {at}"));
        match place {
            Place::Node(at) => self.0.nodes.get(at as usize).cloned().unwrap_or_else(|| format!("node {at}")),
            Place::Group(at) => group(at),
            Place::Between(from, to) => format!("{} to {}", group(from), group(to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::result::MapHost;

    const GBIT: f64 = 125e6;

    /// A map of 32 nodes in four groups: rates about 100 Gbit/s, latencies about 2 us, each with some noise.
    struct Planted {
        random: SmallRng,
        map: MapResult,
    }

    impl Planted {
        fn new(seed: u64) -> Self {
            let mut planted = Planted { random: SmallRng::seed_from_u64(seed), map: MapResult::default() };
            let nodes = 32;
            planted.map.nodes = (0..nodes).map(|node| format!("h{node}")).collect();
            planted.map.groups = Some((0..nodes).map(|node| node / 8).collect());
            planted.map.group_names = (0..4).map(|group| format!("leaf{group}")).collect();
            for from in 0..nodes {
                planted.map.hosts.push(MapHost { node: from, ..MapHost::default() });
                planted.map.hosts[from as usize].copy_bytes_per_s = 80.0 * GBIT * planted.noise();
                for to in (0..nodes).filter(|to| *to != from) {
                    let median = 100.0 * GBIT * planted.noise();
                    let rate = MapFigure { median, worst: median * 0.9 * planted.noise(), count: 4 };
                    let median = 2e-6 * planted.noise();
                    let latency = MapFigure { median, worst: 1.1 * median, count: 4 };
                    planted.map.pairs.push(MapPair {
                        from,
                        to,
                        latency_s: (from < to).then_some(latency),
                        one_way_bytes_per_s: Some(rate),
                        both_ways_bytes_per_s: None,
                        retransmitted: Some(0),
                    });
                }
            }
            planted
        }

        /// About one, with a deviation of 3%.
        fn noise(&mut self) -> f64 {
            let sum: f64 = (0..12).map(|_| self.random.random::<f64>()).sum();
            1.0 + 0.03 * (sum - 6.0)
        }

        fn each(mut self, wanted: impl Fn(&MapPair) -> bool, change: impl Fn(&mut MapPair)) -> Self {
            self.map.pairs.iter_mut().filter(|pair| wanted(pair)).for_each(change);
            self
        }

        fn slower(self, rate: f64, wanted: impl Fn(&MapPair) -> bool) -> Self {
            self.each(wanted, |pair| {
                let of = pair.one_way_bytes_per_s.as_mut().unwrap();
                (of.median, of.worst) = (of.median * rate, of.worst * rate);
            })
        }

        fn located(&self) -> Located {
            Located::of(&self.map, Demands::default()).unwrap()
        }

        fn verdicts(&self) -> Vec<(String, Fault, Way)> {
            let mut all: Vec<_> =
                self.located().suspects.iter().map(|of| (of.name.clone(), of.fault, of.way)).collect();
            all.sort();
            all
        }
    }

    fn one(name: &str, fault: Fault, way: Way) -> Vec<(String, Fault, Way)> {
        vec![(name.to_owned(), fault, way)]
    }

    #[test]
    fn nothing_is_said_of_a_healthy_system() {
        let alarms = (0..40).filter(|seed| !Planted::new(*seed).located().suspects.is_empty()).count();
        assert!(alarms <= 2, "{alarms} of 40");
        let located = Planted::new(0).located();
        assert_eq!((located.nodes, located.groups, located.pairs), (32, 4, 992));
        assert_eq!(located.figures.len(), 5);
        assert!(located.visible.unwrap() < 0.1, "{located:?}");
    }

    #[test]
    fn each_fault_has_its_verdict() {
        let slow = |rate, wanted: &dyn Fn(&MapPair) -> bool| Planted::new(1).slower(rate, wanted).verdicts();
        assert_eq!(slow(0.7, &|pair| pair.from == 7), one("h7", Fault::SlowToSend, Way::Out));
        assert_eq!(slow(0.7, &|pair| pair.to == 7), one("h7", Fault::SlowToReceive, Way::In));
        assert_eq!(slow(0.7, &|pair| pair.from == 7 || pair.to == 7), one("h7", Fault::Cable, Way::Both));
        let crosses = |pair: &MapPair, from: bool, to: bool| {
            (from && pair.from / 8 == 2 && pair.to / 8 != 2) || (to && pair.to / 8 == 2 && pair.from / 8 != 2)
        };
        assert_eq!(slow(0.5, &|pair| crosses(pair, true, false)), one("leaf2", Fault::Uplink, Way::Out));
        assert_eq!(slow(0.5, &|pair| crosses(pair, true, true)), one("leaf2", Fault::Uplink, Way::Both));
        assert_eq!(
            slow(0.5, &|pair| pair.from / 8 == 0 && pair.to / 8 == 3),
            one("leaf0 to leaf3", Fault::GroupPair, Way::Out)
        );
        let between = |pair: &MapPair| [pair.from / 8, pair.to / 8] == [0, 3] || [pair.from / 8, pair.to / 8] == [3, 0];
        assert_eq!(slow(0.5, &between), one("leaf0 to leaf3", Fault::GroupPair, Way::Both));
    }

    #[test]
    fn what_else_is_measured_tells_faults_apart() {
        let touches = |pair: &MapPair| pair.from == 9 || pair.to == 9;
        let mut host = Planted::new(2).slower(0.6, touches);
        host.map.hosts[9].copy_bytes_per_s *= 0.6;
        assert_eq!(host.verdicts(), one("h9", Fault::Host, Way::Both));
        let lossy = Planted::new(2)
            .slower(0.7, |pair| pair.from == 9)
            .each(|pair| pair.from == 9, |pair| pair.retransmitted = Some(40));
        assert_eq!(lossy.verdicts(), one("h9", Fault::Loss, Way::Out));
        let late = Planted::new(2).each(touches, |pair| {
            if let Some(of) = pair.latency_s.as_mut() {
                of.median *= 2.0;
            }
        });
        assert_eq!(late.verdicts(), one("h9", Fault::Cable, Way::Both));
        let at_times = Planted::new(2).each(touches, |pair| pair.one_way_bytes_per_s.as_mut().unwrap().worst *= 0.3);
        assert_eq!(at_times.verdicts(), one("h9", Fault::Intermittent, Way::Both));
    }

    #[test]
    fn several_faults_are_told_at_once_the_worst_first() {
        let planted = Planted::new(3).slower(0.5, |pair| pair.from == 20).slower(0.7, |pair| pair.to == 3);
        let located = planted.located();
        let names: Vec<&str> = located.suspects.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["h20", "h3"]);
        assert_eq!(located.nodes_to_drain(&planted.map), ["h3", "h20"]);
        let first = located.suspects[0].first();
        assert!((first.slower - 0.5).abs() < 0.03 && first.p_value < 0.001, "{first:?}");
        assert!(first.interval.low < 0.5 && first.interval.high > 0.5 && first.interval.low > 0.4, "{first:?}");
    }

    /// A node that is slow each time, one that was slow in the first map, and one in the second.
    #[test]
    fn what_another_map_does_not_show_was_busy() {
        let first = Planted::new(6).slower(0.6, |pair| pair.from == 4).slower(0.6, |pair| pair.to == 10);
        let second = Planted::new(7).slower(0.6, |pair| pair.from == 4).slower(0.5, |pair| pair.from == 20);
        let both = Located::of_all(&[&first.map, &second.map], Demands::default()).unwrap();
        let names = |of: &[Suspect]| of.iter().map(|of| of.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&both.suspects), names(&both.busy)), (vec!["h4".into()], vec!["h10".into(), "h20".into()]));
        assert_eq!((both.maps, both.nodes_to_drain(&first.map)), (2, vec!["h4"]));
        let alone = Located::of_all(&[&first.map], Demands::default()).unwrap();
        assert_eq!(alone, first.located());
        let mut other = Planted::new(6);
        other.map.nodes[3] = "x".into();
        let error = Located::of_all(&[&first.map, &other.map], Demands::default()).unwrap_err();
        assert!(error.contains("map 2 is of other nodes"), "{error}");
    }

    #[test]
    fn what_is_slower_by_less_than_asked_is_no_suspect() {
        let planted = Planted::new(4).slower(0.7, |pair| pair.from == 7);
        let of = |least| Located::of(&planted.map, Demands { least, ..Demands::default() }).unwrap().suspects.len();
        assert_eq!([of(0.05), of(0.25), of(0.35)], [1, 1, 0]);
    }

    #[test]
    fn a_map_that_shows_nothing_says_so() {
        let mut planted = Planted::new(5);
        planted.map.pairs.retain(|pair| pair.from.max(pair.to) < 3);
        planted.map.hosts.clear();
        let error = Located::of(&planted.map, Demands::default()).unwrap_err();
        assert!(error.contains("32 nodes and 6 measured pairs") && error.contains("at least 4"), "{error}");
        // Damaged figures are left out.
        let damaged =
            Planted::new(5).each(|pair| pair.from == 1, |pair| pair.one_way_bytes_per_s.as_mut().unwrap().median = 0.0);
        assert_eq!(damaged.verdicts(), []);
    }
}
