//! What a map of pairs of nodes shows: groups that like figures tell, and pairs that are slower than others of their kind.

use std::collections::HashMap;

use crate::result::{GroupsKnownBy, MapFigure, MapPair, MapResult};
use crate::stats::median;

/// A pair is told as slow when it takes so many times as long as the middle of its kind.
pub const SLOW: f64 = 1.5;
/// Times of two kinds are at least so far apart.
const APART: f64 = 1.15;
/// So much of what groups say of pairs must be so.
const AGREES: f64 = 0.9;

/// What is measured of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MapKind {
    Latency,
    OneWay,
    BothWays,
}

impl MapKind {
    /// All of them.
    pub const ALL: [MapKind; 3] = [MapKind::Latency, MapKind::OneWay, MapKind::BothWays];

    /// In a table.
    pub fn word(self) -> &'static str {
        match self {
            MapKind::Latency => "latency",
            MapKind::OneWay => "one way",
            MapKind::BothWays => "both ways",
        }
    }

    /// The figure of a pair.
    pub fn of(self, pair: &MapPair) -> Option<MapFigure> {
        match self {
            MapKind::Latency => pair.latency_s,
            MapKind::OneWay => pair.one_way_bytes_per_s,
            MapKind::BothWays => pair.both_ways_bytes_per_s,
        }
    }

    /// How many times as long something takes as another.
    pub fn times(self, value: f64, than: f64) -> f64 {
        if self == MapKind::Latency { value / than } else { than / value }
    }
}

/// One direction of a pair, beside others of its kind: within a group, or between groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapRow {
    /// The pair.
    pub pair: MapPair,
    /// The latency of both directions.
    pub latency_s: Option<MapFigure>,
    /// What is worst of it, and how many times as long it takes as the middle of its kind.
    pub worst: (MapKind, f64),
}

/// A map as it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct MapView {
    /// Every direction of every pair, the slowest first.
    pub rows: Vec<MapRow>,
    /// Of each kind that was measured: the best, the middle, the worst.
    pub extent: Vec<(MapKind, [f64; 3])>,
    /// How many pairs are slow in one direction or both.
    pub slow: usize,
    /// The node that is in most of these, in how many of them and of how many in all.
    pub most: Option<(u32, usize, usize)>,
}

impl MapView {
    /// What a map shows.
    pub fn of(map: &MapResult) -> Self {
        let is_within =
            |pair: &MapPair| map.groups.as_ref().is_none_or(|of| group(of, pair.from) == group(of, pair.to));
        let mut middles: HashMap<(MapKind, bool), Vec<f64>> = HashMap::new();
        let mut all: HashMap<MapKind, Vec<f64>> = HashMap::new();
        for pair in &map.pairs {
            for kind in MapKind::ALL {
                if let Some(figure) = kind.of(pair) {
                    middles.entry((kind, is_within(pair))).or_default().push(figure.median);
                    all.entry(kind).or_default().push(figure.median);
                }
            }
        }
        let middles: HashMap<(MapKind, bool), f64> =
            middles.into_iter().filter_map(|(of, mut values)| Some((of, median(&mut values)?))).collect();
        let latencies: HashMap<(u32, u32), MapFigure> =
            map.pairs.iter().filter_map(|pair| Some(((pair.from, pair.to), pair.latency_s?))).collect();
        let row = |pair: &MapPair| {
            let ends = (pair.from.min(pair.to), pair.from.max(pair.to));
            let latency_s = latencies.get(&ends).copied();
            let whole = MapPair { latency_s, ..*pair };
            let of = |kind: MapKind| {
                let times = kind.times(kind.of(&whole)?.median, *middles.get(&(kind, is_within(pair)))?);
                Some((kind, times))
            };
            // Of equals the first.
            let worst = MapKind::ALL.into_iter().rev().filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(MapRow { pair: *pair, latency_s, worst })
        };
        let mut rows: Vec<MapRow> = map.pairs.iter().filter_map(row).collect();
        rows.sort_by(|a, b| b.worst.1.total_cmp(&a.worst.1));
        let extent = |kind: MapKind| {
            let mut values = all.remove(&kind)?;
            let middle = median(&mut values)?;
            let (low, high) = (*values.first()?, *values.last()?);
            Some((kind, if kind == MapKind::Latency { [low, middle, high] } else { [high, middle, low] }))
        };
        let extent = MapKind::ALL.into_iter().filter_map(extent).collect();
        let (slow, most) = slow(&rows);
        MapView { rows, extent, slow, most }
    }
}

/// How many pairs are slow, and the node that is in most of them.
fn slow(rows: &[MapRow]) -> (usize, Option<(u32, usize, usize)>) {
    let ends = |row: &MapRow| (row.pair.from.min(row.pair.to), row.pair.from.max(row.pair.to));
    let count = |rows: &[MapRow]| {
        let mut pairs: Vec<(u32, u32)> = rows.iter().map(ends).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut nodes: HashMap<u32, usize> = HashMap::new();
        pairs.iter().flat_map(|(a, b)| [*a, *b]).for_each(|node| *nodes.entry(node).or_default() += 1);
        (pairs.len(), nodes)
    };
    let (slow, in_slow) = count(&rows[..rows.partition_point(|row| row.worst.1 > SLOW)]);
    let (_, in_all) = count(rows);
    let most = in_slow.into_iter().max_by_key(|(node, count)| (*count, std::cmp::Reverse(*node)));
    (slow, most.map(|(node, count)| (node, count, in_all.get(&node).copied().unwrap_or(count))))
}

fn group(groups: &[u32], node: u32) -> Option<u32> {
    groups.get(node as usize).copied()
}

/// Gives a map the groups that its latencies show, where nobody said and all pairs are known.
pub fn infer(map: &mut MapResult) {
    if map.groups.is_some() || !map.all_pairs || map.complete_rounds < map.rounds {
        return;
    }
    if let Some(groups) = inferred(map.nodes.len(), &map.pairs) {
        map.groups = Some(groups);
        map.groups_known_by = Some(GroupsKnownBy::Inferred);
    }
}

/// Groups of nodes that are near to each other, by latencies that are of two kinds; none where they are not, and where some pairs
/// say otherwise.
fn inferred(nodes: usize, pairs: &[MapPair]) -> Option<Vec<u32>> {
    let known: Vec<(u32, u32, f64)> =
        pairs.iter().filter_map(|pair| Some((pair.from, pair.to, pair.latency_s?.median.ln()))).collect();
    let limit = limit(known.iter().map(|of| of.2).collect())?;
    // Nodes that are near to each other belong together, but for single pairs that are so by chance: most of a group's nodes
    // are near to a node that joins it.
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for (a, b, _) in known.iter().filter(|of| of.2 < limit) {
        near[*a as usize].push(*b);
        near[*b as usize].push(*a);
    }
    let mut groups: Vec<Option<u32>> = vec![None; nodes];
    let mut count = 0;
    for node in 0..nodes {
        if groups[node].is_none() {
            groups[node] = Some(count);
            let own: Vec<u32> = near[node].clone();
            for other in own {
                let shared = near[other as usize].iter().filter(|of| near[node].contains(of)).count();
                if groups[other as usize].is_none() && 2 * (shared + 1) >= near[node].len() {
                    groups[other as usize] = Some(count);
                }
            }
            count += 1;
        }
    }
    let groups: Vec<u32> = groups.into_iter().flatten().collect();
    let (mut within, mut between) = ([0usize; 2], [0usize; 2]);
    for (a, b, value) in &known {
        let of = if groups[*a as usize] == groups[*b as usize] { &mut within } else { &mut between };
        of[usize::from(*value < limit)] += 1;
    }
    let part = |of: usize, all: [usize; 2]| of as f64 / (all[0] + all[1]).max(1) as f64;
    let agrees = part(within[1], within) >= AGREES && part(between[0], between) >= AGREES;
    // One node apart from all others is slow rather than a group; of pairs of nodes noise makes as many as there are nodes for.
    let is_group = |number: u32| groups.iter().filter(|of| **of == number).count() > 2;
    (agrees && count > 1 && (0..count).all(is_group)).then_some(groups)
}

/// The value between two kinds of values, if there are two: where the variance within both is least, and their middles are apart.
fn limit(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let total: f64 = values.iter().sum();
    let count = values.len() as f64;
    let mut below = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for (at, value) in values.iter().enumerate().take(values.len().saturating_sub(1)) {
        below += value;
        let part = (at + 1) as f64 / count;
        let between =
            part * (1.0 - part) * (below / (at + 1) as f64 - (total - below) / (count - (at + 1) as f64)).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, at));
        }
    }
    let (between, at) = best?;
    let mean = total / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let (low, high) = (median(&mut values[..=at].to_vec())?, median(&mut values[at + 1..].to_vec())?);
    // Two halves of one normal distribution explain 64% of its variance.
    (high - low > APART.ln() && between > 0.8 * variance).then(|| f64::midpoint(values[at], values[at + 1]))
}

/// Nodes in the order of their groups.
pub fn by_group(map: &MapResult) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..map.nodes.len() as u32).collect();
    if let Some(groups) = &map.groups {
        nodes.sort_by_key(|node| (group(groups, *node), *node));
    }
    nodes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn figure(median: f64) -> Option<MapFigure> {
        Some(MapFigure { median, worst: median, count: 3 })
    }

    /// A map of all pairs with these latencies in us and rates in GB/s.
    pub(crate) fn map(nodes: u32, latency: impl Fn(u32, u32) -> f64, rate: impl Fn(u32, u32) -> f64) -> MapResult {
        let pair = |(from, to): (u32, u32)| MapPair {
            from,
            to,
            latency_s: figure(latency(from, to) * 1e-6).filter(|_| from < to),
            one_way_bytes_per_s: figure(rate(from, to) * 1e9),
            both_ways_bytes_per_s: figure(rate(from, to).min(rate(to, from)) * 1e9),
            retransmitted: None,
        };
        let pairs =
            (0..nodes).flat_map(|a| (0..nodes).filter(move |b| *b != a).map(move |b| (a, b))).map(pair).collect();
        let names = (0..nodes).map(|node| format!("n{node}")).collect();
        let rounds = nodes.next_multiple_of(2) - 1;
        MapResult {
            nodes: names,
            bytes: 1 << 18,
            all_pairs: true,
            rounds,
            complete_rounds: rounds,
            pairs,
            ..MapResult::default()
        }
    }

    #[test]
    fn groups_are_inferred_where_latencies_are_of_two_kinds() {
        let jitter = |a: u32, b: u32| 1.0 + f64::from((a * 7 + b * 13) % 10) * 0.004;
        let latency = |a: u32, b: u32| if a % 3 == b % 3 { 1.0 * jitter(a, b) } else { 1.6 * jitter(a, b) };
        let mut of = map(12, latency, |_, _| 10.0);
        infer(&mut of);
        assert_eq!(of.groups, Some((0..12).map(|node| node % 3).collect()));
        assert_eq!(of.groups_known_by, Some(GroupsKnownBy::Inferred));
        assert_eq!(by_group(&of)[..5], [0, 3, 6, 9, 1]);
        // One kind, a slow node, and what is not complete have none.
        for mut of in [
            map(12, jitter, |_, _| 10.0),
            map(12, |a, b| if a == 5 || b == 5 { 3.0 } else { jitter(a, b) }, |_, _| 10.0),
            MapResult { complete_rounds: 3, ..map(12, latency, |_, _| 10.0) },
            map(2, jitter, |_, _| 1.0),
            // Two and two, as a fifth of all noise has it.
            map(4, |a, b| if a / 2 == b / 2 { 1.0 } else { 1.6 }, |_, _| 10.0),
        ] {
            infer(&mut of);
            assert_eq!(of.groups, None);
        }
    }

    #[test]
    fn slow_pairs_are_those_of_their_kind() {
        let mut of =
            map(8, |a, b| if a / 4 == b / 4 { 1.0 } else { 4.0 }, |a, b| if (a, b) == (2, 6) { 2.0 } else { 10.0 });
        of.groups = Some((0..8).map(|node| node / 4).collect());
        let view = MapView::of(&of);
        assert_eq!(view.slow, 1, "one pair, whose both ways are slow too");
        assert_eq!((view.rows[0].pair.from, view.rows[0].pair.to, view.rows[0].worst), (2, 6, (MapKind::OneWay, 5.0)));
        assert_eq!((view.rows[1].pair.from, view.rows[1].pair.to, view.rows[1].worst.0), (6, 2, MapKind::BothWays));
        assert_eq!(view.rows.len(), 56);
        assert_eq!(view.extent[0], (MapKind::Latency, [1e-6, 4e-6, 4e-6]));
        assert_eq!(view.extent[1].1, [1e10, 1e10, 2e9]);
        assert_eq!(MapView::of(&MapResult::default()).rows, []);
    }

    #[test]
    fn a_node_that_is_in_most_slow_pairs_is_named() {
        let of = map(6, |_, _| 1.0, |a, b| if a == 3 || b == 3 { 2.0 } else { 10.0 });
        let view = MapView::of(&of);
        assert_eq!((view.slow, view.most), (5, Some((3, 5, 5))));
    }
}
