//! Measures k pairs at once, for every k and message size, between two nodes of a job after the other.
//!
//! A repetition measures every (k, n) of every two nodes once, in an order of its own that the seed decides: what changes
//! with time then falls on all of them alike, and is no property of a size or of a node. A repetition is also what is whole
//! when the user interrupts. Each measurement is repeated until its rate is steady.
//!
//! Two nodes at a time: the model is of a node that has the network to itself. Pairs of nodes that took part together would
//! meet in the network, and its limits would pass for theirs.

use tailback_transport::{Error, Group, Nanos, Rank, Result, Transport};

use super::between::{Between, Direction, middle};
use super::halo::{Exchange, HaloSeen, room, units_in};
use super::threshold::{Threshold, bisect};
use super::{Line, Observation, Settings, medians, regimes};
use crate::layout::{Nodes, order};
use crate::models::measure::{Control, Repeated, Side, StudyJob, check, everyone, exchanges, forget, round_trips};
use crate::stats::{Rule, Took, median};

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Which two nodes and which direction, by their place in the list.
    between: usize,
    pairs: usize,
    bytes: usize,
}

/// What a rank does in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A side of a ping-pong.
    PingPong(Side),
    /// Sends and receives at once.
    Exchanges,
}

impl Between {
    /// The partner of a rank and what it does, when so many pairs talk.
    fn role(&self, nodes: &Nodes, me: Rank, pairs: usize) -> Option<(Rank, Role)> {
        let (node, at) = (nodes.node_of(me), nodes.slice_of(me));
        let (first, second) = self.nodes;
        if at >= pairs || (node != first && node != second) {
            return None;
        }
        let peer = nodes.ranks(if node == first { second } else { first })[at];
        let sends_first = (node == first) != (self.direction == Some(Direction::Back));
        let role = match self.direction {
            Some(Direction::Both) => Role::Exchanges,
            _ if sends_first => Role::PingPong(Side::Serves),
            _ => Role::PingPong(Side::Returns),
        };
        Some((peer, role))
    }
}

/// What a study found. Every rank has the same.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Found {
    /// What was observed between every two nodes.
    pub between: Vec<Between>,
    /// How many round trips that took.
    pub took: Took,
    /// The thresholds between its protocol regimes, where they were looked for.
    pub thresholds: Vec<Threshold>,
    pub halos: Vec<HaloSeen>,
}

/// Measures every size and number of pairs; every rank gets the observations of the repetitions that were complete, in the
/// order measured, for every two nodes and every direction that was asked for.
pub fn measure<T: Transport>(
    StudyJob { bootstrap, nodes, seed, control }: StudyJob<'_>,
    transport: &mut T,
    settings: &Settings,
) -> Result<Repeated<Found>> {
    let mut all = asked(nodes, settings, seed);
    let Some(first) = all.first().map(|of| of.nodes) else {
        return Err(Error::Setup("maxrate needs two nodes: start ranks on two hosts, or give --ranks-per-node".into()));
    };
    let most = settings.most(nodes, first);
    let largest = settings.sizes().last().unwrap_or(1);
    let halos = settings.halos(most);
    let (longest, messages) = room(&halos, most)?;
    let mut halo_group = if halos.is_empty() { None } else { Some(everyone(bootstrap, transport, longest, messages)?) };
    let group = everyone(bootstrap, transport, largest, 1)?;
    let mut bench = Bench { group, nodes, settings, control, largest, took: Took::default() };
    let cells: Vec<Cell> = (0..all.len())
        .flat_map(|between| (1..=settings.most(nodes, all[between].nodes)).map(move |pairs| (between, pairs)))
        .flat_map(|(between, pairs)| settings.sizes().map(move |bytes| Cell { between, pairs, bytes }))
        .collect();
    let (mut slowest, mut measured): (Vec<u64>, Vec<Cell>) = Default::default();
    let mut halos: Vec<HaloSeen> =
        halos.into_iter().map(|halo| HaloSeen::new(halo, settings.compute_ns.is_some())).collect();
    let work = settings.compute_ns.map(units_in);
    'repetitions: for repetition in 0..settings.repetitions() {
        control.monitor.enter(&format!("repetition {}", repetition + 1));
        for at in order(seed, repetition as u64, cells.len()) {
            let Some(nanos) = bench.cell(&all[cells[at].between], cells[at])? else { break 'repetitions };
            slowest.push(nanos);
            measured.push(cells[at]);
        }
        for seen in &mut halos {
            let group = halo_group.as_mut().expect("it was made for them");
            if !exchanged(group, seen, (nodes, first), longest, (control, work))? {
                break 'repetitions;
            }
        }
    }
    let mut complete = measured.len() / cells.len();
    complete = halos.iter().map(|seen| seen.seconds.len()).fold(complete, usize::min);
    measured.truncate(complete * cells.len());
    halos.iter_mut().for_each(|seen| seen.truncate(complete));
    for (at, between) in all.iter_mut().enumerate() {
        let own = measured.iter().zip(&slowest).filter(|(cell, _)| cell.between == at);
        let times: Vec<(Cell, u64)> = own.map(|(cell, nanos)| (*cell, *nanos)).collect();
        between.observations = match between.direction {
            Some(Direction::Both) => times.iter().map(|(cell, nanos)| observed(*cell, *nanos as f64)).collect(),
            _ => one_way_times(&times, settings.is_one_way()),
        };
    }
    let took = bench.took;
    let whole = complete == settings.repetitions() && settings.thresholds.is_empty();
    let thresholds = if whole { bench.thresholds(&all, complete)? } else { Some(Vec::new()) };
    // Interrupted in the search, which has no part that is whole.
    let thresholds = thresholds.unwrap_or_default();
    Ok(Repeated { found: Found { between: all, took, thresholds, halos }, complete })
}

/// Measures an exchange once more; whether nobody interrupted it.
fn exchanged<G: Group>(
    group: &mut G,
    seen: &mut HaloSeen,
    (nodes, first): (&Nodes, (usize, usize)),
    received: usize,
    (control, work): (Control<'_>, Option<u64>),
) -> Result<bool> {
    let exchange = Exchange::new(seen.halo, nodes, first, group.rank(), received);
    let Some(alone) = exchange.seconds(group, control, 0)? else { return Ok(false) };
    if let Some((overlap, work)) = seen.overlap.as_mut().zip(work) {
        let Some(compute) = exchange.computing(group, control, work)? else { return Ok(false) };
        let Some(both) = exchange.seconds(group, control, work)? else { return Ok(false) };
        overlap.compute_s.push(compute);
        overlap.both_s.push(both);
    }
    seen.seconds.push(alone);
    Ok(true)
}

/// A group of all ranks that measures.
struct Bench<'a, G> {
    group: G,
    nodes: &'a Nodes,
    settings: &'a Settings,
    control: Control<'a>,
    /// The largest message: received ones lie behind it.
    largest: usize,
    took: Took,
}

impl<G: Group> Bench<'_, G> {
    /// The slowest pair's nanoseconds of a round trip or an exchange; nothing when the user interrupts.
    fn cell(&mut self, between: &Between, Cell { pairs, bytes, .. }: Cell) -> Result<Option<u64>> {
        let (group, largest) = (&mut self.group, self.largest);
        let answer = if self.settings.is_one_way() { 1 } else { bytes };
        let mine = between.role(self.nodes, group.rank(), pairs);
        let incoming = match mine {
            None => 0,
            Some((_, Role::PingPong(Side::Serves))) => answer,
            Some(_) => bytes,
        };
        forget(group, largest, incoming);
        let rule = Rule { least: self.settings.least(bytes), ..self.control.rule };
        // The slowest pair's time counts.
        let rested = self.control.until_steady(group, rule, |group, iterations| match mine {
            Some((peer, Role::PingPong(side))) => {
                round_trips(group, (peer, side), (bytes, answer), largest, iterations)
            }
            Some((peer, Role::Exchanges)) => exchanges(group, peer, bytes, largest, iterations),
            None => Ok(Nanos(0)),
        })?;
        let Some(rested) = rested else { return Ok(None) };
        if let Some((peer, _)) = mine {
            check(&*group, peer, largest, incoming)?;
        }
        self.took.add(&rested);
        Ok(Some(rested.median_ns.round() as u64))
    }

    /// The thresholds between the regimes of what was observed, looked for with one pair between the first two nodes; nothing when
    /// the user interrupts.
    fn thresholds(&mut self, all: &[Between], complete: usize) -> Result<Option<Vec<Threshold>>> {
        let observed = medians(&middle(all, complete));
        let line = |sizes: &[usize]| {
            let within = |seen: &&Observation| seen.pairs == 1 && sizes.binary_search(&seen.bytes).is_ok();
            Line::through(observed.iter().filter(within))
        };
        let mut found = Vec::new();
        for two in regimes(&observed).windows(2) {
            let [Some(largest_bytes), Some(smallest_bytes)] = [two[0].last().copied(), two[1].first().copied()] else {
                continue;
            };
            let bracket = Threshold { largest_bytes, smallest_bytes };
            let threshold = match line(&two[0]).zip(line(&two[1])) {
                Some(lines) => bisect(bracket, lines, |bytes| self.one_pair(&all[0], bytes))?,
                None => Some(bracket),
            };
            let Some(threshold) = threshold else { return Ok(None) };
            found.push(threshold);
        }
        Ok(Some(found))
    }

    /// The one-way time of a message of one pair: the middle of three.
    fn one_pair(&mut self, between: &Between, bytes: usize) -> Result<Option<f64>> {
        let [cell, answer] = [bytes, 1].map(|bytes| Cell { between: 0, pairs: 1, bytes });
        let mut times = Vec::new();
        for asked in [Some(cell); 3].into_iter().chain([self.settings.is_one_way().then_some(answer)]).flatten() {
            let Some(nanos) = self.cell(between, asked)? else { return Ok(None) };
            times.push((asked, nanos));
        }
        let seen = one_way_times(&times, self.settings.is_one_way());
        let own = seen.iter().filter(|seen| seen.bytes == bytes).map(|seen| seen.seconds);
        Ok(median(&mut own.collect::<Vec<f64>>()))
    }
}

/// Which nodes and directions, with nothing measured yet.
fn asked(nodes: &Nodes, settings: &Settings, seed: u64) -> Vec<Between> {
    let directions: Vec<Option<Direction>> =
        if settings.both_directions { Direction::ALL.map(Some).to_vec() } else { vec![None] };
    let between = |nodes: (usize, usize)| {
        let of = move |&direction: &Option<Direction>| Between { nodes, direction, observations: Vec::new() };
        directions.iter().map(of).collect::<Vec<_>>()
    };
    settings.node_pairs.of(nodes, seed).into_iter().flat_map(between).collect()
}

/// One-way times from those of round trips: half of them, or the rest after a one-byte answer's part, which is half of
/// a round trip of one byte with as many pairs.
fn one_way_times(times: &[(Cell, u64)], answered: bool) -> Vec<Observation> {
    let answer = |pairs: usize| {
        let single = times.iter().filter(|(cell, _)| (cell.pairs, cell.bytes) == (pairs, 1));
        median(&mut single.map(|(_, nanos)| *nanos as f64 / 2.0).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let one_way = |&(cell, nanos): &(Cell, u64)| {
        let nanos = nanos.max(2) as f64;
        // An answer that took longer than usual must not make the rest vanish.
        observed(cell, if answered { (nanos - answer(cell.pairs)).max(nanos / 2.0) } else { nanos / 2.0 })
    };
    times.iter().map(one_way).collect()
}

fn observed(cell: Cell, nanos: f64) -> Observation {
    Observation { pairs: cell.pairs, bytes: cell.bytes, seconds: nanos.max(1.0) * 1e-9 }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Lane;
    use tailback_testkit::loopback::{Fault, Job, Transfer};

    use super::*;
    use crate::models::measure::testing::study;

    fn settings() -> Settings {
        Settings { largest: 64, repetitions: 2, iterations: 2, ..Settings::default() }
    }

    fn measured(job: Job, nodes: &Nodes, settings: &Settings) -> Result<Vec<Vec<Between>>> {
        study(job, nodes, None, |job, transport| {
            let found = measure(job, transport, settings)?;
            assert_eq!(found.complete, 2);
            let Found { between: all, took, .. } = found.found;
            let count: usize = all.iter().map(|between| between.observations.len()).sum();
            assert!(took.measurements == count as u64 && took.fewest > 2, "{took:?}");
            Ok(all)
        })
    }

    /// Five ranks, of which the first two nodes are measured.
    fn run(job: Job, per_node: usize, one_way: bool) -> Result<Vec<Vec<Observation>>> {
        let settings = Settings { one_way, ..settings() };
        let found = measured(job, &Nodes::virtual_nodes(5, per_node), &settings)?;
        Ok(found.into_iter().map(|mut all| all.remove(0).observations).collect())
    }

    #[test]
    fn every_two_nodes_are_measured_in_every_direction() {
        let settings = Settings { node_pairs: super::super::NodePairs::All, both_directions: true, ..settings() };
        let nodes = Nodes::from_hosts(&["a", "b", "a", "b", "c"]);
        let found = measured(Job::new(5), &nodes, &settings).unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "every rank is told the same");
        let told: Vec<_> = found[0].iter().map(|of| (of.nodes, of.direction.unwrap(), of.observations.len())).collect();
        let mut expected = Vec::new();
        // Two pairs between a and b, one where c is a side; 7 sizes, 2 repetitions.
        for (nodes, count) in [((0, 1), 28), ((0, 2), 14), ((1, 2), 14)] {
            expected.extend(Direction::ALL.map(|direction| (nodes, direction, count)));
        }
        assert_eq!(told, expected);
        assert!(found[0].iter().flat_map(|of| &of.observations).all(|seen| seen.seconds > 0.0));
    }

    #[test]
    fn partners_and_who_begins_follow_from_the_direction() {
        let nodes = Nodes::virtual_nodes(6, 2);
        let role = |direction, me: u32, pairs| {
            Between { nodes: (0, 2), direction, observations: Vec::new() }.role(&nodes, Rank(me), pairs)
        };
        let serves = |peer| Some((Rank(peer), Role::PingPong(Side::Serves)));
        let returns = |peer| Some((Rank(peer), Role::PingPong(Side::Returns)));
        for direction in [None, Some(Direction::There)] {
            assert_eq!((role(direction, 0, 1), role(direction, 4, 1)), (serves(4), returns(0)));
        }
        let (back, both) = (Some(Direction::Back), Some(Direction::Both));
        assert_eq!((role(back, 1, 2), role(back, 5, 2)), (returns(5), serves(1)));
        assert_eq!(role(both, 5, 2), Some((Rank(1), Role::Exchanges)));
        assert_eq!((role(back, 1, 1), role(None, 2, 2)), (None, None), "not yet, and on neither node");
    }

    #[test]
    fn every_cell_is_measured_in_every_repetition_in_an_order_of_its_own() {
        for one_way in [false, true] {
            let found = run(Job::new(5), 2, one_way).unwrap();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
            // 2 numbers of pairs, 7 sizes, 2 repetitions.
            assert_eq!((found[0].len(), medians(&found[0]).len()), (28, 14));
            assert!(found[0].iter().all(|seen| seen.seconds > 0.0));
            let cells: Vec<(usize, usize)> = found[0].iter().map(|seen| (seen.pairs, seen.bytes)).collect();
            let sorted = |cells: &[(usize, usize)]| {
                let mut cells = cells.to_vec();
                cells.sort_unstable();
                cells
            };
            assert_eq!(sorted(&cells[..14]), sorted(&cells[14..]));
            assert!(cells[..14] != cells[14..] && cells[..14] != sorted(&cells[..14]));
        }
    }

    #[test]
    fn an_interrupt_of_one_rank_ends_all_of_them_with_whole_repetitions() {
        let nodes = Nodes::virtual_nodes(4, 2);
        let found = study(Job::new(4), &nodes, Some(Rank(2)), |job, transport| measure(job, transport, &settings()));
        for Repeated { found: Found { between: all, took, .. }, complete } in found.unwrap() {
            assert!(all[0].observations.is_empty() && took == Took::default() && complete == 0);
        }
    }

    #[test]
    fn a_one_byte_answer_is_taken_off() {
        let cell = |bytes| Cell { between: 0, pairs: 1, bytes };
        let found = one_way_times(&[(cell(1), 2_000), (cell(1000), 51_000)], true);
        assert!(found.iter().zip([1e-6, 50e-6]).all(|(seen, expected)| (seen.seconds / expected - 1.0).abs() < 1e-9));
        let found = one_way_times(&[(cell(1000), 50_000)], false);
        assert!((found[0].seconds / 25e-6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn exchanges_are_measured_in_every_repetition_and_checked() {
        let halo = ["3x100x2", "2x50x2/1", "5x64x1"].map(|text| text.parse().unwrap()).to_vec();
        let settings = Settings { halo, compute_ns: Some(50_000), ..settings() };
        let nodes = Nodes::virtual_nodes(6, 2);
        let found = study(Job::new(6), &nodes, None, |job, transport| measure(job, transport, &settings)).unwrap();
        let halos: Vec<&Vec<HaloSeen>> = found.iter().map(|of| &of.found.halos).collect();
        assert!(halos.windows(2).all(|two| two[0] == two[1]), "every rank is told the same");
        assert_eq!(halos[0].len(), 3);
        for seen in halos[0] {
            let overlap = seen.overlap.as_ref().unwrap();
            let all = [&seen.seconds, &overlap.compute_s, &overlap.both_s];
            assert!(all.iter().all(|of| of.len() == 2 && of.iter().all(|seconds| *seconds > 0.0)), "{seen:?}");
        }
        let settings = Settings { halo: vec!["1x8x3".parse().unwrap()], ..settings };
        let refused =
            study(Job::new(6), &nodes, None, |job, transport| measure(job, transport, &settings)).unwrap_err();
        assert!(refused.to_string().contains("not measured with 2"), "{refused}");
    }

    #[test]
    fn one_node_is_refused() {
        assert!(run(Job::new(5), 5, false).unwrap_err().to_string().contains("two nodes"));
    }

    struct Corrupts;

    impl Fault for Corrupts {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            if transfer.from == Rank(3) && transfer.label.is_some_and(|(lane, _)| lane == Lane::Data) {
                payload[0] ^= 1;
            }
        }
    }

    #[test]
    fn corruption_is_detected_and_its_sender_named() {
        let message = run(Job::new(5).fault(Corrupts), 2, false).unwrap_err().to_string();
        assert!(message.contains("with rank 3") && message.contains("byte 0 of"), "{message}");
    }
}
