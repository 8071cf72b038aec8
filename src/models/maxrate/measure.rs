//! Measures k pairs at once, for every k and message size, between the first two nodes of a job.
//!
//! A repetition measures every (k, n) once, in an order of its own that the seed decides: what changes with time then
//! falls on all of them alike, and is no property of a size. A repetition is also what is whole when the user interrupts.
//! Each measurement is repeated until its rate is steady.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Error, Group, Nanos, Result, Transport};

use super::Observation;
use crate::layout::{Nodes, order};
use crate::models::measure::{Control, Repeated, Side, check, everyone, forget, round_trips};
use crate::plan::units;
use crate::stats::{Rule, Took, median};

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Largest message in bytes; sizes are the powers of two up to it
    #[arg(long, value_name = "BYTES", value_parser = units::message, default_value_t = 1 << 20)]
    pub largest: usize,
    /// At most so many pairs at once [default: as many as the nodes have ranks]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub most_pairs: Option<usize>,
    /// Measurements of every size and number of pairs
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 5)]
    pub repetitions: usize,
    /// At least so many round trips in a measurement, fewer for messages above 64 KiB: they are repeated until their rate
    /// is steady
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 20)]
    pub iterations: usize,
    /// Answer with one byte rather than the whole message: all pairs then load the same direction of a link, which the
    /// paper's ping-pongs do only as long as they stay in step
    #[arg(long)]
    pub one_way: bool,
    /// How much each measurement counts in the fits
    #[arg(long, value_enum, default_value_t)]
    pub weighting: super::Weighting,
    /// The largest size of each protocol regime but the last, such as 32,1KiB [default: found from the data]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::message)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<usize>,
}

impl Settings {
    /// How often everything is measured: at least once.
    pub fn repetitions(&self) -> usize {
        self.repetitions.max(1)
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        let largest = self.largest.max(1);
        (0..usize::BITS - 1).map(|power| 1 << power).take_while(move |&bytes| bytes <= largest)
    }

    /// Large messages need fewer round trips for the same certainty.
    fn least(&self, bytes: usize) -> u64 {
        let least = (self.iterations * (1 << 16) / bytes.max(1 << 16)).clamp(2, self.iterations.max(2));
        least as u64
    }
}

/// How many pairs the first two nodes can form.
pub fn most_pairs(nodes: &Nodes) -> usize {
    if nodes.len() < 2 { 0 } else { nodes.ranks(0).len().min(nodes.ranks(1).len()) }
}

/// Measures every size and number of pairs; every rank gets the observations of the repetitions that were complete, in the
/// order measured.
pub fn measure<B: Bootstrap, T: Transport>(
    bootstrap: &mut B,
    transport: &mut T,
    nodes: &Nodes,
    settings: &Settings,
    seed: u64,
    control: Control<'_>,
) -> Result<Repeated<(Vec<Observation>, Took)>> {
    let most = most_pairs(nodes).min(settings.most_pairs.unwrap_or(usize::MAX));
    if most == 0 {
        return Err(Error::Setup("maxrate needs two nodes: start ranks on two hosts, or give --ranks-per-node".into()));
    }
    let largest = settings.sizes().last().unwrap_or(1);
    let mut group = everyone(bootstrap, transport, largest, 1)?;
    let me = group.rank();
    let partner = (0..most).find_map(|pair| match (nodes.ranks(0)[pair], nodes.ranks(1)[pair]) {
        (first, second) if first == me => Some((pair, second, Side::Serves)),
        (first, second) if second == me => Some((pair, first, Side::Returns)),
        _ => None,
    });
    let all: Vec<(usize, usize)> =
        (1..=most).flat_map(|pairs| settings.sizes().map(move |bytes| (pairs, bytes))).collect();
    let (mut slowest, mut cells): (Vec<u64>, Vec<(usize, usize)>) = Default::default();
    let mut took = Took::default();
    'repetitions: for repetition in 0..settings.repetitions() {
        control.monitor.enter(&format!("repetition {}", repetition + 1));
        for at in order(seed, repetition as u64, all.len()) {
            let (pairs, bytes) = all[at];
            let answer = if settings.one_way { 1 } else { bytes };
            let mine = partner.filter(|(pair, ..)| *pair < pairs).map(|(_, peer, side)| (peer, side));
            let incoming = mine.map_or(0, |(_, side)| if side == Side::Serves { answer } else { bytes });
            forget(&mut group, largest, incoming);
            let rule = Rule { least: settings.least(bytes), ..control.rule };
            // The slowest pair's time counts.
            let rested = control.until_steady(&mut group, rule, |group, iterations| match mine {
                Some(partner) => round_trips(group, partner, (bytes, answer), largest, iterations),
                None => Ok(Nanos(0)),
            })?;
            let Some(rested) = rested else { break 'repetitions };
            if let Some((peer, _)) = mine {
                check(&group, peer, largest, incoming)?;
            }
            took.add(&rested);
            slowest.push(rested.median_ns.round() as u64);
            cells.push((pairs, bytes));
        }
    }
    let complete = cells.len() / all.len();
    cells.truncate(complete * all.len());
    Ok(Repeated { found: (one_way_times(&cells, &slowest, settings.one_way), took), complete })
}

/// One-way times from those of round trips: half of them, or the rest after a one-byte answer's part, which is half of
/// a round trip of one byte with as many pairs.
fn one_way_times(cells: &[(usize, usize)], nanos: &[u64], answered: bool) -> Vec<Observation> {
    let all = || cells.iter().zip(nanos);
    let answer = |pairs: usize| {
        let single = all().filter(|&(&cell, _)| cell == (pairs, 1)).map(|(_, &nanos)| nanos as f64 / 2.0);
        median(&mut single.collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let one_way = |pairs: usize, nanos: f64| {
        // An answer that took longer than usual must not make the rest vanish.
        if answered { (nanos - answer(pairs)).max(nanos / 2.0) } else { nanos / 2.0 }
    };
    all()
        .map(|(&(pairs, bytes), &nanos)| Observation {
            pairs,
            bytes,
            seconds: one_way(pairs, nanos.max(2) as f64) * 1e-9,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use tailback_transport::loopback::{Fault, Job, Transfer};
    use tailback_transport::{Collective, Lane, Monitor, Rank};

    use super::*;

    const SETTINGS: Settings = Settings {
        largest: 64,
        most_pairs: None,
        repetitions: 2,
        iterations: 2,
        one_way: false,
        weighting: super::super::Weighting::InverseSize,
        thresholds: Vec::new(),
    };

    fn run(job: Job, per_node: usize, one_way: bool) -> Result<Vec<Vec<Observation>>> {
        let settings = Settings { one_way, ..SETTINGS };
        let nodes = Nodes::virtual_nodes(5, per_node);
        job.run(|mut bootstrap, raw| {
            let control =
                Control { monitor: &Monitor::new(), interrupt: &AtomicBool::new(false), rule: Rule::default() };
            let found = measure(&mut bootstrap, &mut Collective::new(raw), &nodes, &settings, 9, control)?;
            assert_eq!(found.complete, 2);
            let (observations, took) = found.found;
            assert!(took.measurements == observations.len() as u64 && took.fewest > 2, "{took:?}");
            Ok(observations)
        })
    }

    #[test]
    fn every_cell_is_measured_in_every_repetition_in_an_order_of_its_own() {
        for one_way in [false, true] {
            let found = run(Job::new(5), 2, one_way).unwrap();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
            // 2 numbers of pairs, 7 sizes, 2 repetitions.
            assert_eq!((found[0].len(), crate::models::maxrate::medians(&found[0]).len()), (28, 14));
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
        let found = Job::new(4).run(|mut bootstrap, raw| {
            let interrupt = AtomicBool::new(bootstrap.rank() == Rank(2));
            let control = Control { monitor: &Monitor::new(), interrupt: &interrupt, rule: Rule::default() };
            measure(&mut bootstrap, &mut Collective::new(raw), &nodes, &SETTINGS, 9, control)
        });
        assert_eq!(found.unwrap(), vec![Repeated { found: (Vec::new(), Took::default()), complete: 0 }; 4]);
    }

    #[test]
    fn a_one_byte_answer_is_taken_off() {
        let found = one_way_times(&[(1, 1), (1, 1000)], &[2_000, 51_000], true);
        assert!(found.iter().zip([1e-6, 50e-6]).all(|(seen, expected)| (seen.seconds / expected - 1.0).abs() < 1e-9));
        let found = one_way_times(&[(1, 1000)], &[50_000], false);
        assert!((found[0].seconds / 25e-6 - 1.0).abs() < 1e-9);
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
