//! Measures k pairs at once, for growing k and message sizes, between the first two nodes of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Bootstrap, Error, Group, Monitor, Result, Transport};

use super::Observation;
use crate::layout::Nodes;
use crate::models::measure::{Side, everyone, median, round_trips, share};

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Largest message in bytes; sizes are the powers of two up to it
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub largest: usize,
    /// At most so many pairs at once [default: as many as the nodes have ranks]
    #[arg(long, value_name = "N")]
    pub most_pairs: Option<usize>,
    /// Measurements of every size and number of pairs
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repetitions: usize,
    /// Round trips in a measurement; fewer for messages above 64 KiB
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub iterations: usize,
    /// Answer with one byte rather than the whole message: all pairs then load the same direction of a link, which the
    /// paper's ping-pongs do only as long as they stay in step
    #[arg(long)]
    pub one_way: bool,
    /// How much each measurement counts in the fits
    #[arg(long, value_enum, default_value_t)]
    pub weighting: super::Weighting,
}

impl Settings {
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let largest = self.largest.max(1);
        (0..usize::BITS - 1).map(|power| 1 << power).take_while(move |&bytes| bytes <= largest)
    }

    /// Large messages need fewer round trips for the same certainty.
    fn round_trips(&self, bytes: usize) -> usize {
        (self.iterations * (1 << 16) / bytes.max(1 << 16)).clamp(2, self.iterations.max(2))
    }
}

/// How many pairs the first two nodes can form.
pub fn most_pairs(nodes: &Nodes) -> usize {
    if nodes.len() < 2 { 0 } else { nodes.ranks(0).len().min(nodes.ranks(1).len()) }
}

/// Measures every size and number of pairs; every rank gets the observations.
pub fn measure<B: Bootstrap, T: Transport>(
    bootstrap: &mut B,
    transport: &mut T,
    nodes: &Nodes,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Vec<Observation>> {
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
    let mut mine: Vec<u64> = Vec::new();
    let mut cells = Vec::new();
    for pairs in 1..=most {
        monitor.enter(&format!("{pairs} pairs"));
        for bytes in settings.sizes() {
            for _ in 0..settings.repetitions.max(1) {
                group.barrier()?;
                let time = match partner {
                    Some((pair, peer, side)) if pair < pairs => {
                        let answer = if settings.one_way { 1 } else { bytes };
                        round_trips(&mut group, (peer, side), (bytes, answer), largest, settings.round_trips(bytes))?.0
                    }
                    _ => 0,
                };
                monitor.tick();
                mine.push(time);
                cells.push((pairs, bytes));
            }
        }
    }
    group.barrier()?;
    // The slowest pair's time counts.
    let mut slowest = vec![0u64; cells.len()];
    for times in share(bootstrap, &mine)? {
        slowest.iter_mut().zip(times).for_each(|(slowest, time)| *slowest = time.max(*slowest));
    }
    Ok(one_way_times(&cells, &slowest, settings.one_way))
}

/// The median of every (k, n), in the order measured.
pub fn medians(observations: &[Observation]) -> Vec<Observation> {
    let same = |a: &Observation, b: &Observation| (a.pairs, a.bytes) == (b.pairs, b.bytes);
    let middle = |cell: &[Observation]| {
        let seconds = median(&mut cell.iter().map(|seen| seen.seconds).collect::<Vec<f64>>()).unwrap_or_default();
        Observation { seconds, ..cell[0] }
    };
    observations.chunk_by(same).map(middle).collect()
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
    use tailback_transport::loopback::{Fault, Job, Transfer};
    use tailback_transport::{Collective, Lane, Rank};

    use super::*;

    fn run(job: Job, per_node: usize, one_way: bool) -> Result<Vec<Vec<Observation>>> {
        let weighting = super::super::Weighting::InverseSize;
        let settings = Settings { largest: 64, most_pairs: None, repetitions: 2, iterations: 2, one_way, weighting };
        let nodes = Nodes::virtual_nodes(5, per_node);
        job.run(|mut bootstrap, raw| {
            measure(&mut bootstrap, &mut Collective::new(raw), &nodes, &settings, &Monitor::new())
        })
    }

    #[test]
    fn every_cell_is_measured() {
        for one_way in [false, true] {
            let found = run(Job::new(5), 2, one_way).unwrap();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
            // 2 numbers of pairs, 7 sizes, 2 repetitions.
            assert_eq!((found[0].len(), medians(&found[0]).len()), (28, 14));
            assert!(found[0].iter().all(|seen| seen.seconds > 0.0));
        }
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
