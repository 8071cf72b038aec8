//! The measurements, on any transport.
//!
//! A repetition is a whole measurement: every pair, the natural ring, and its share of the random rings, for both sizes,
//! in an order that the seed decides anew each time. What changes with time then falls on all figures alike. Each of them
//! is repeated until its rate is steady.

use tailback_transport::{Error, Group, Nanos, Rank, Result, Span, Tag, Transport};

use super::figures::{Size, Step, Timed, What, figures};
use super::{Beff, Settings};
use crate::layout::{Neighbours, natural_ring, order, random_rings, sample_pairs};
use crate::models::measure::{Control, Repeated, Side, StudyJob, check, everyone, forget, round_trips};
use crate::stats::{Rested, Rule, Took};

/// Measures everything. Collective; every rank gets the figures of the repetitions that were complete, if any was.
pub fn measure<T: Transport>(
    StudyJob { bootstrap, seed, control, .. }: StudyJob<'_>,
    transport: &mut T,
    settings: &Settings,
) -> Result<Repeated<Option<Beff>>> {
    let (me, size) = (bootstrap.rank(), bootstrap.size());
    if size < 2 {
        return Err(Error::Setup("beff needs at least 2 ranks: give -n N".into()));
    }
    let received = settings.latency_bytes.max(settings.bandwidth_bytes);
    let mut bench = Bench {
        group: everyone(bootstrap, transport, received, 2)?,
        settings,
        pairs: sample_pairs(seed, size, settings.pairs.max(1)),
        natural: natural_ring(size, me),
        rings: random_rings(seed, 0, size, me, settings.rings.max(1)),
        received,
        control,
        took: [Took::default(); 2],
    };
    let mut repetitions: Vec<Vec<Timed>> = Vec::new();
    for number in 0..settings.repetitions() {
        control.monitor.enter(&format!("repetition {}", number + 1));
        let steps = bench.steps(number);
        let Some(timed) = bench.repetition(&steps, order(seed, number as u64, steps.len()))? else { break };
        repetitions.push(timed);
    }
    let complete = repetitions.len();
    let found = (complete > 0).then(|| figures(settings, bench.pairs.len(), bench.took, &repetitions));
    Ok(Repeated { found, complete })
}

struct Bench<'a, G> {
    group: G,
    settings: &'a Settings,
    pairs: Vec<(Rank, Rank)>,
    natural: Neighbours,
    rings: Vec<Neighbours>,
    /// Where received data begins.
    received: usize,
    control: Control<'a>,
    /// How many iterations it took, by size.
    took: [Took; 2],
}

impl<G: Group> Bench<'_, G> {
    /// What a repetition measures. Random rings are dealt to the repetitions in turn.
    fn steps(&self, repetition: usize) -> Vec<Step> {
        let rings = (repetition..self.rings.len()).step_by(self.settings.repetitions());
        let all = (0..self.pairs.len()).map(What::Pair).chain([What::Natural]).chain(rings.map(What::Random));
        all.flat_map(|what| [Size::Latency, Size::Bandwidth].map(|size| Step { what, size })).collect()
    }

    /// The times, the same on every rank: of a pair the first one's, of a ring the slowest rank's. Nothing when interrupted.
    fn repetition(&mut self, steps: &[Step], order: Vec<usize>) -> Result<Option<Vec<Timed>>> {
        let mut seconds = vec![0.0; steps.len()];
        for at in order {
            let Step { what, size } = steps[at];
            let nanos = match what {
                What::Pair(pair) => self.pair(pair, size)?,
                What::Natural => self.ring(self.natural, size)?,
                What::Random(ring) => self.ring(self.rings[ring], size)?,
            };
            let Some(nanos) = nanos else { return Ok(None) };
            seconds[at] = nanos * 1e-9;
        }
        let timed = |(&step, seconds): (&Step, f64)| Timed { step, seconds };
        Ok(Some(steps.iter().zip(seconds).map(timed).collect()))
    }

    /// The message size, and how long it is repeated.
    fn asked(&self, size: Size) -> (usize, Rule) {
        let (bytes, least) = match size {
            Size::Latency => (self.settings.latency_bytes, self.settings.latency_iterations),
            Size::Bandwidth => (self.settings.bandwidth_bytes, self.settings.bandwidth_iterations),
        };
        (bytes, Rule { least: least as u64, ..self.control.rule })
    }

    fn keep(&mut self, size: Size, rested: &Rested) {
        self.took[size as usize].add(rested);
    }

    /// One pair, all other ranks waiting: the one-way time in ns.
    fn pair(&mut self, pair: usize, size: Size) -> Result<Option<f64>> {
        let (bytes, rule) = self.asked(size);
        let (me, (first, second), received) = (self.group.rank(), self.pairs[pair], self.received);
        let partner = match me {
            me if me == first => Some((second, Side::Serves)),
            me if me == second => Some((first, Side::Returns)),
            _ => None,
        };
        forget(&mut self.group, received, if partner.is_some() { bytes } else { 0 });
        let rested = self.control.until_steady(&mut self.group, rule, |group, iterations| match partner {
            Some(partner) => round_trips(group, partner, (bytes, bytes), received, iterations),
            None => Ok(Nanos(0)),
        })?;
        let Some(rested) = rested else { return Ok(None) };
        if let Some((peer, _)) = partner {
            check(&self.group, peer, received, bytes)?;
        }
        self.keep(size, &rested);
        Ok(Some(rested.median_ns / 2.0))
    }

    /// The slowest rank's time of one exchange in a ring, in ns: the quickest batch of those that are steady, with the
    /// quicker of HPCC's two ways to write it.
    fn ring(&mut self, ring: Neighbours, size: Size) -> Result<Option<f64>> {
        let (bytes, rule) = self.asked(size);
        let place = (bytes, self.received);
        let mut best = f64::INFINITY;
        for together in [true, false] {
            forget(&mut self.group, self.received, 2 * bytes);
            let rested = self.control.until_steady(&mut self.group, rule, |group, iterations| {
                group.barrier()?;
                let begin = group.now();
                (0..iterations).try_for_each(|_| exchange(group, ring, place, together))?;
                Ok(group.now().since(begin))
            })?;
            let Some(rested) = rested else { return Ok(None) };
            check(&self.group, ring.left, self.received, bytes)?;
            check(&self.group, ring.right, self.received + bytes, bytes)?;
            self.keep(size, &rested);
            best = best.min(rested.quickest_ns);
        }
        Ok(Some(best))
    }
}

/// A message to and from each neighbour: all at once, or one direction after the other.
fn exchange<G: Group>(
    group: &mut G,
    ring: Neighbours,
    (bytes, received): (usize, usize),
    together: bool,
) -> Result<()> {
    const RIGHTWARD: Tag = Tag(1);
    const LEFTWARD: Tag = Tag(2);
    let sent = Span::new(0, bytes);
    group.post_recv(ring.left, RIGHTWARD, Span::new(received, bytes))?;
    group.post_send(ring.right, RIGHTWARD, sent)?;
    if !together {
        group.wait_all()?;
    }
    group.post_recv(ring.right, LEFTWARD, Span::new(received + bytes, bytes))?;
    group.post_send(ring.left, LEFTWARD, sent)?;
    group.wait_all()
}

#[cfg(test)]
mod tests {
    use tailback_engine::Lane;
    use tailback_testkit::loopback::{Fault, Job, Transfer};
    use tailback_transport::Operation;

    use super::*;
    use crate::layout::Nodes;
    use crate::models::measure::testing::study;

    fn settings() -> Settings {
        let (latency_iterations, bandwidth_iterations) = (3, 2);
        Settings {
            bandwidth_bytes: 20_000,
            rings: 4,
            pairs: 4,
            latency_iterations,
            bandwidth_iterations,
            ..Settings::brief()
        }
    }

    fn run(job: Job) -> Result<Vec<Beff>> {
        let found = interrupted(job, None)?;
        Ok(found.into_iter().map(|found| found.found.expect("nobody interrupts")).collect())
    }

    fn interrupted(job: Job, by: Option<Rank>) -> Result<Vec<Repeated<Option<Beff>>>> {
        study(job, &Nodes::virtual_nodes(1, 1), by, |job, transport| measure(job, transport, &settings()))
    }

    #[test]
    fn every_figure_is_measured_and_the_same_everywhere() {
        let results = run(Job::new(5)).unwrap();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        let found = &results[0];
        assert_eq!((found.pairs, found.complete_repetitions, found.random_rings), (4, Some(3), Some(4)));
        // Pairs once a repetition, rings in two ways: the natural one likewise, each random one once.
        for (took, least) in [(found.latency_took, 3), (found.bandwidth_took, 2)] {
            let took = took.expect("new files have it");
            assert_eq!(took.measurements, 3 * 4 + 2 * (3 + 4));
            assert!(least < took.fewest && took.fewest <= took.most, "{took:?}");
        }
        for figure in found.figures() {
            let interval = figure.interval.expect("three repetitions have one");
            assert!(figure.value > 0.0 && !interval.excludes(figure.value), "{figure:?}");
        }
        let latency = found.ping_pong_latency_us;
        assert!(latency.min <= latency.avg && latency.avg <= latency.max);
    }

    #[test]
    fn an_interrupt_of_one_rank_ends_all_of_them() {
        let found = interrupted(Job::new(3), Some(Rank(1))).unwrap();
        assert_eq!(found, vec![Repeated { found: None, complete: 0 }; 3]);
    }

    #[test]
    fn two_ranks_are_a_ring_too() {
        assert!(run(Job::new(2)).is_ok());
    }

    /// Flips a bit of data messages of the given size from rank 2.
    struct BadCard(usize);

    impl Fault for BadCard {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            let data = transfer.label.is_some_and(|(lane, _)| lane == Lane::Data);
            if data && transfer.operation == Operation::TwoSided && transfer.from == Rank(2) && payload.len() == self.0
            {
                payload[self.0 / 2] ^= 0x10;
            }
        }
    }

    #[test]
    fn corruption_is_detected_and_its_sender_named() {
        for bytes in [8, 20_000] {
            let message = run(Job::new(4).fault(BadCard(bytes))).unwrap_err().to_string();
            assert!(
                message.contains("with rank 2") && message.contains(&format!("byte {} of", bytes / 2)),
                "{message}"
            );
        }
    }
}
