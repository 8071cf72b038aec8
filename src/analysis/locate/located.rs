//! What maps show: suspects and what was busy.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::alone::Alone;
use super::fit::Models;
use super::name::{Names, is_seen_again, pair_up, places, suspect, turned};
use super::suspect::{Demands, Figure, Place, Seen, Suspect};
use crate::result::{MapPair, MapResult};
use crate::stats::FEWEST_PEERS;

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
    /// What was measured again alone, where something was: suspects are then slow alone too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
    /// The worst first; of several maps what all of them show.
    pub suspects: Vec<Suspect>,
    /// What a map suspects, and probes or another map do not show: neighbours' load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Suspect>,
}

/// What was measured again, each part while nothing else of the job loads the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Nodes that looked slow, however little.
    pub nodes: usize,
    /// Groups and pairs of groups that did.
    pub links: usize,
    /// Nodes, groups and pairs of groups beside them, of which nothing was suspected.
    pub controls: usize,
    /// Rounds of them that were complete.
    pub rounds: usize,
    /// A node whose rate lacks this part alone would have been a suspect; absent without rates.
    pub visible: Option<f64>,
}

impl Probed {
    fn of(map: &MapResult, alone: &Alone) -> Option<Self> {
        let probes = map.probes.as_ref()?;
        let of_nodes = |of: &&crate::result::MapProbe| matches!(of.place, Place::Node(_));
        let suspected = || probes.probes.iter().filter(|of| !of.is_control);
        let nodes = suspected().filter(of_nodes).count();
        Some(Probed {
            nodes,
            links: suspected().count() - nodes,
            controls: probes.probes.iter().filter(|of| of.is_control).count(),
            rounds: probes.complete_rounds as usize,
            visible: alone.visible,
        })
    }
}

/// Everything that some figures suspect, the worst first.
fn all_suspects(seen: &[Seen], (level, least): (f64, f64), names: &Names<'_>) -> Vec<Suspect> {
    let mut suspects: Vec<Suspect> =
        places(seen, level, least).into_iter().map(|place| suspect(place, seen, level, least, names)).collect();
    pair_up(&mut suspects);
    suspects.sort_by(|a, b| {
        let strength = |of: &Suspect| (of.first().figure.least(0.0) > 0.0, of.first().slower);
        strength(b).partial_cmp(&strength(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    suspects
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
        let judge = (level, demands.least);
        let mut suspects = all_suspects(&seen, judge, &names);
        let mut busy = Vec::new();
        let alone = Alone::of(map, &seen, level, demands.least);
        if let Some(alone) = &alone {
            // What was not probed has the map's word, but for copies.
            let of_map = |of: &&Seen| of.figure != Figure::Copy && !alone.has(of.place);
            let both: Vec<Seen> = alone.seen.iter().chain(seen.iter().filter(of_map)).copied().collect();
            let held = all_suspects(&both, judge, &names);
            let is_held =
                |of: &Suspect| held.iter().any(|held| held.place == of.place || held.place == turned(of.place));
            busy = suspects.into_iter().filter(|of| !is_held(of)).collect();
            suspects = held;
        }
        Ok(Located {
            nodes: map.nodes.len(),
            groups: map.groups.as_ref().map_or(0, |of| of.iter().collect::<BTreeSet<_>>().len()),
            pairs: map.pairs.len(),
            false_alarms: demands.false_alarms,
            looked_at: seen.len(),
            figures: models.fitted.iter().map(|(figure, _)| *figure).collect(),
            visible: models.visible(level),
            maps: 1,
            probed: alone.as_ref().and_then(|alone| Probed::of(map, alone)),
            suspects,
            busy,
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
        let mut held: Vec<Suspect> = Vec::new();
        let mut busy: Vec<Suspect> = found.iter_mut().flat_map(|of| std::mem::take(&mut of.busy)).collect();
        for (at, suspects) in found.iter_mut().map(|of| std::mem::take(&mut of.suspects)).enumerate() {
            for suspect in suspects {
                let mut elsewhere = seen.iter().enumerate().filter(|(other, _)| *other != at);
                let holds = elsewhere.all(|(_, seen)| is_seen_again(&suspect, seen, demands.least));
                let list = if holds { &mut held } else { &mut busy };
                if list.iter().all(|of| of.place != suspect.place) {
                    list.push(suspect);
                }
            }
        }
        // What no map is certain of by itself, but all of their pairs together, if each hints at it.
        if !others.is_empty() {
            let pooled = pooled(maps);
            let models = Models::of_map(&pooled);
            let judge = (demands.false_alarms / models.fitted.len().max(1) as f64, demands.least);
            for suspect in all_suspects(&models.seen(), judge, &Names(first)) {
                let is_told = held.iter().chain(&busy).any(|of| of.place == suspect.place);
                if !is_told && seen.iter().all(|seen| is_seen_again(&suspect, seen, demands.least)) {
                    held.push(suspect);
                }
            }
        }
        // What a group's links do to all others they do to each.
        let slow: BTreeSet<Place> = held.iter().map(|of| of.place).collect();
        let is_of = |group: u32| slow.contains(&Place::Group(group));
        held.retain(|of| !matches!(of.place, Place::Between(from, to) if is_of(from) || is_of(to)));
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

/// The pairs of all maps. One that several have counts once: what is in its way may be the same each time.
fn pooled(maps: &[&MapResult]) -> MapResult {
    let mut known = BTreeSet::new();
    let mut pairs: Vec<MapPair> = maps.iter().flat_map(|map| map.pairs.iter().cloned()).collect();
    pairs.retain(|pair| known.insert((pair.from, pair.to)));
    let (nodes, groups) = maps.first().map_or_else(Default::default, |map| (map.nodes.clone(), map.groups.clone()));
    MapResult { nodes, groups, pairs, ..MapResult::default() }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::analysis::locate::{Fault, ProbePlan, Way};
    use crate::result::{MapFigure, MapHost, MapProbe, MapProbes};

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

        /// Pairs that share links with others, nearly half of them, by lot.
        fn shared(mut self) -> Self {
            for pair in &mut self.map.pairs {
                let rate = if self.random.random::<f64>() < 0.45 { 0.55 } else { 1.0 };
                let of = pair.one_way_bytes_per_s.as_mut().unwrap();
                (of.median, of.worst) = (of.median * rate, of.worst * rate);
            }
            self
        }

        /// Measures again what the map may suspect; alone, a pair has this part of its rate.
        fn probed(mut self, rate: impl Fn(u32, u32) -> f64) -> Self {
            let plan = ProbePlan::of(&self.map, 5);
            let probe = |(place, is_control): &(Place, bool)| MapProbe {
                place: *place,
                is_control: *is_control,
                pairs: Vec::new(),
            };
            let mut probes: Vec<MapProbe> = plan.probes.iter().map(probe).collect();
            for (at, pairs) in &plan.rounds {
                for (from, to) in pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
                    let median = 110.0 * GBIT * self.noise() * rate(from, to);
                    let figure = Some(MapFigure { median, worst: median * 0.9 * self.noise(), count: 4 });
                    probes[*at].pairs.push(MapPair { from, to, one_way_bytes_per_s: figure, ..MapPair::default() });
                }
            }
            let rounds = plan.rounds.len() as u32;
            let hosts = self.map.hosts.clone();
            self.map.probes = Some(MapProbes { rounds, complete_rounds: rounds, probes, hosts });
            self
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

    /// Rates of nodes are then uncertain by more than the fault, and the quickest pair is not.
    #[test]
    fn a_node_that_is_slow_with_everyone_is_seen_where_pairs_share_links() {
        let alarms = (0..40).filter(|seed| !Planted::new(*seed).shared().located().suspects.is_empty()).count();
        assert!(alarms <= 2, "{alarms} of 40");
        let planted = Planted::new(1).shared().slower(0.85, |pair| pair.from == 7);
        assert_eq!(planted.verdicts(), one("h7", Fault::SlowToSend, Way::Out));
        let slower = planted.located().suspects[0].first().slower;
        assert!((0.1..0.2).contains(&slower), "{slower}");
        let visible = planted.located().visible.unwrap();
        assert!(visible < 0.15, "{visible}");
        // All of a group's nodes that leave it is the group's link's.
        let planted = Planted::new(2).slower(0.8, |pair| pair.from / 8 == 2 && pair.to / 8 != 2);
        assert_eq!(planted.verdicts(), one("leaf2", Fault::Uplink, Way::Out));
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
        // Packets are lost in front of a slow port, too; single messages only where any are.
        let lossy = |slower: f64, latency: f64| {
            let slow = Planted::new(2).slower(slower, |pair| pair.from == 9);
            let resent = slow.each(|pair| pair.from == 9, |pair| pair.retransmitted = Some(40));
            let late = |pair: &mut MapPair| {
                if let Some(of) = pair.latency_s.as_mut() {
                    of.worst = latency * of.median;
                }
            };
            resent.each(|pair| touches(pair) && pair.from.max(pair.to) % 3 == 0, late).verdicts()
        };
        assert_eq!(lossy(0.7, 100.0), one("h9", Fault::Loss, Way::Out));
        assert_eq!(lossy(0.7, 5.0), one("h9", Fault::SlowToSend, Way::Out));
        assert_eq!(lossy(1.0, 5.0), one("h9", Fault::Loss, Way::Both));
        let late = Planted::new(2).each(touches, |pair| {
            if let Some(of) = pair.latency_s.as_mut() {
                of.median *= 2.0;
            }
        });
        assert_eq!(late.verdicts(), one("h9", Fault::Cable, Way::Both));
        assert_eq!(late.slower(0.8, |pair| pair.from == 9).verdicts(), one("h9", Fault::Cable, Way::Both));
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

    /// A third of the pairs each, nearly half of which share links: one map is seldom certain of a node, both together are.
    #[test]
    fn what_no_map_is_certain_of_all_of_them_may_show() {
        let sparse = |seed: u64, rate: f64| {
            let mut planted = Planted::new(seed).shared().slower(rate, |pair| pair.from == 7);
            let Planted { random, map } = &mut planted;
            map.pairs.retain(|_| random.random::<f64>() < 0.3);
            planted.map
        };
        let is_named = |of: &[Suspect]| of.iter().any(|of| of.name == "h7");
        let suspects = |maps: &[&MapResult]| Located::of_all(maps, Demands::default()).unwrap().suspects;
        let (mut by_one, mut by_both) = (0, 0);
        for seed in 0..20 {
            let [first, second] = [sparse(2 * seed, 0.7), sparse(2 * seed + 1, 0.7)];
            let both = suspects(&[&first, &second]);
            by_one += usize::from(is_named(&suspects(&[&first])));
            by_both += usize::from(is_named(&both));
            assert!(both.iter().all(|of| of.name == "h7"), "{both:?}");
            let healthy = [sparse(2 * seed, 1.0), sparse(2 * seed + 1, 1.0)];
            assert_eq!(suspects(&[&healthy[0], &healthy[1]]), []);
        }
        assert!(by_one <= 4 && by_both >= 12, "{by_one} and {by_both} of 20");
    }

    /// In an order of their own.
    fn names(of: &[Suspect]) -> Vec<&str> {
        let mut names: Vec<&str> = of.iter().map(|of| of.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// h4 is slow in the map alone, h7 both times, h12 so little in the map that it is no suspect of it.
    #[test]
    fn what_is_slow_alone_too_is_broken_and_the_rest_was_busy() {
        let map = || {
            let slow = Planted::new(8).slower(0.6, |pair| pair.from == 4).slower(0.6, |pair| pair.from == 7);
            slow.slower(0.96, |pair| pair.to == 12)
        };
        assert_eq!(names(&map().located().suspects), ["h4", "h7"]);
        let alone = |from, to| if from == 7 || to == 12 { 0.7 } else { 1.0 };
        let located = map().probed(alone).located();
        assert_eq!((names(&located.suspects), names(&located.busy)), (vec!["h12", "h7"], vec!["h4"]));
        let first = located.suspects[0].first();
        assert!(
            (first.slower - 0.3).abs() < 0.05 && first.interval.low < 0.3 && first.interval.high > 0.3,
            "{first:?}"
        );
        assert_eq!(located.suspects.iter().find(|of| of.name == "h12").unwrap().fault, Fault::SlowToReceive);
        let probed = located.probed.unwrap();
        assert!(probed.nodes >= 3 && probed.controls >= 8 && probed.visible.unwrap() < 0.3, "{probed:?}");
        // Probes that were cut short say nothing, and the map stands.
        let mut cut = map().probed(alone);
        cut.map.probes.as_mut().unwrap().probes.iter_mut().for_each(|of| of.pairs.truncate(4));
        assert_eq!(names(&cut.located().suspects), ["h4", "h7"]);
    }

    #[test]
    fn links_of_groups_are_seen_alone_too() {
        let leaves = |from: u32, to: u32| from / 8 == 2 && to / 8 != 2;
        let map = || Planted::new(1).slower(0.5, |pair| leaves(pair.from, pair.to));
        let alone = |from, to| if leaves(from, to) { 0.6 } else { 1.0 };
        assert_eq!(map().probed(alone).verdicts(), one("leaf2", Fault::Uplink, Way::Out));
        let located = map().probed(|_, _| 1.0).located();
        assert_eq!((names(&located.suspects), names(&located.busy)), (vec![], vec!["leaf2"]));
        let between = |from: u32, to: u32| (from / 8, to / 8) == (0, 3);
        let map = Planted::new(1).slower(0.5, |pair| between(pair.from, pair.to));
        let alone = |from, to| if between(from, to) { 0.6 } else { 1.0 };
        assert_eq!(map.probed(alone).verdicts(), one("leaf0 to leaf3", Fault::GroupPair, Way::Out));
    }

    /// Pairs that share links have one of two rates: how many of a group have which is chance.
    #[test]
    fn rates_of_two_kinds_are_no_slow_links() {
        let shared =
            |from: u32, to: u32| if from / 8 != to / 8 && (from * 13 + to * 7 + from * to) % 9 < 4 { 0.6 } else { 1.0 };
        for seed in 20..30 {
            assert_eq!(Planted::new(seed).probed(shared).verdicts(), [], "{seed}");
        }
    }

    /// A host is slow when it copies slowly both times.
    #[test]
    fn a_slow_host_is_slow_again() {
        let mut host = Planted::new(2);
        host.map.hosts[9].copy_bytes_per_s *= 0.6;
        let mut again = host.probed(|_, _| 1.0);
        assert_eq!(again.verdicts(), one("h9", Fault::Host, Way::Both));
        again.map.probes.as_mut().unwrap().hosts[9].copy_bytes_per_s /= 0.6;
        assert_eq!((again.verdicts(), names(&again.located().busy)), (vec![], vec!["h9"]));
    }

    /// At the level of 1% no more than 2 of 40 are expected in 99 of 100 cases; seeds are given.
    #[test]
    fn nothing_is_said_of_a_healthy_system_that_was_probed() {
        let alarms = |seed: &u64| !Planted::new(100 + seed).probed(|_, _| 1.0).located().suspects.is_empty();
        let alarms = (0..40).filter(alarms).count();
        assert!(alarms <= 2, "{alarms} of 40");
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
