//! What figures say of one node, group or pair of groups, put together: which fault it is taken for.

use super::suspect::{Evidence, Fault, Figure, Place, Seen, Suspect, Way};
use crate::result::{MapPair, MapResult};
use crate::stats::Interval;

/// A second direction is taken for slow, beside one that is, by this evidence alone.
const SECOND_LEVEL: f64 = 0.05;
/// A slice of round trips in which a message had to be sent again takes as many times the middle one: who waits for a processor is
/// late by less, and a timeout is hundreds of round trips.
const SENT_AGAIN: f64 = 20.0;

/// Everything that some figure shows to be slower than its peers, once each.
pub(super) fn places(seen: &[Seen], level: f64, least: f64) -> Vec<Place> {
    let is_shown = |of: &&Seen| of.p_value < level && of.ln >= of.figure.least(least);
    let mut places: Vec<Place> = seen.iter().filter(is_shown).map(|of| of.place).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What is said of one of these nodes, groups or pairs of groups.
pub(super) fn suspect(place: Place, seen: &[Seen], level: f64, least: f64, names: &Names<'_>) -> Suspect {
    let mine: Vec<&Seen> = seen.iter().filter(|of| of.place == place && of.ln >= of.figure.least(least)).collect();
    let shown: Vec<&Seen> = mine.iter().filter(|of| of.p_value < level).copied().collect();
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
        // What is late each way sends less as well, as acknowledgements are.
        _ if matches!(place, Place::Node(_)) && has(Figure::Latency) => Way::Both,
        (true, false) => Way::Out,
        (false, true) => Way::In,
        _ => Way::Both,
    };
    let fault = match place {
        Place::Group(_) => Fault::Uplink,
        Place::Between(..) => Fault::GroupPair,
        Place::Node(_) if has(Figure::Copy) => Fault::Host,
        // In front of a slow port a queue is full, and packets are lost of what fills it.
        Place::Node(node) if has(Figure::Retransmissions) && (!has(Figure::Rate) || names.loses_any(node)) => {
            Fault::Loss
        }
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
    Suspect { place, name: names.of(place), fault, way, evidence }
}

/// Whether another map has what first shows a suspect, at least half as strong and outside of chance by its own interval.
pub(super) fn is_seen_again(suspect: &Suspect, seen: &[Seen], least: f64) -> bool {
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

/// The other direction between two groups; nodes and groups are the same either way.
pub(super) fn turned(place: Place) -> Place {
    match place {
        Place::Between(from, to) => Place::Between(to, from),
        place => place,
    }
}

/// Two directions between the same groups are one link's.
pub(super) fn pair_up(suspects: &mut Vec<Suspect>) {
    let mut at = 0;
    while at < suspects.len() {
        let back = turned(suspects[at].place);
        let other = suspects.iter().position(|of| of.place == back);
        if let Some(other) = other.filter(|other| *other > at) {
            let other = suspects.remove(other);
            suspects[at].way = Way::Both;
            suspects[at].evidence.extend(other.evidence.into_iter().map(|of| Evidence { way: Way::In, ..of }));
        }
        at += 1;
    }
}

pub(super) struct Names<'a>(pub(super) &'a MapResult);

impl Names<'_> {
    fn of(&self, place: Place) -> String {
        let group = |at: u32| self.0.group_names.get(at as usize).cloned().unwrap_or_else(|| format!("group {at}"));
        match place {
            Place::Node(at) => self.0.nodes.get(at as usize).cloned().unwrap_or_else(|| format!("node {at}")),
            Place::Group(at) => group(at),
            Place::Between(from, to) => format!("{} to {}", group(from), group(to)),
        }
    }

    /// Whether messages to and from a node are lost that are alone in the network: in several of its pairs, and more often than
    /// elsewhere.
    fn loses_any(&self, node: u32) -> bool {
        let is_mine = |pair: &&MapPair| pair.from == node || pair.to == node;
        let (mine, others): (Vec<&MapPair>, Vec<&MapPair>) =
            self.0.pairs.iter().filter(|pair| pair.latency_s.is_some()).partition(is_mine);
        let lost = |of: &[&MapPair]| {
            of.iter().filter_map(|pair| pair.latency_s).filter(|of| of.worst > SENT_AGAIN * of.median).count()
        };
        let (mine, others) = ((lost(&mine), mine.len()), (lost(&others), others.len()));
        mine.0 >= 2 && mine.0 * others.1 > 2 * others.0 * mine.1
    }
}
