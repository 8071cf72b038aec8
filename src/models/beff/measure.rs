//! The measurements, on any transport.

use tailback_transport::{Bootstrap, Error, Group, Monitor, Nanos, Rank, Result, Span, Tag, Transport};

use super::{Beff, Settings, Spread};
use crate::layout::{Neighbours, natural_ring, random_rings, sample_pairs};
use crate::models::measure::{Side, WARM_UP, check, everyone, forget, ping_pong, share};

/// A ring is measured so often, and the fastest counts.
const ATTEMPTS: usize = 3;

/// Measures everything. Collective; every rank gets the figures.
pub fn measure<B: Bootstrap, T: Transport>(
    bootstrap: &mut B,
    transport: &mut T,
    settings: &Settings,
    seed: u64,
    monitor: &Monitor,
) -> Result<Beff> {
    let (me, size) = (bootstrap.rank(), bootstrap.size());
    if size < 2 {
        return Err(Error::Setup("beff needs at least 2 ranks: give -n N".into()));
    }
    let largest = settings.latency_bytes.max(settings.bandwidth_bytes);
    let mut group = everyone(bootstrap, transport, largest, 2)?;
    let pairs = sample_pairs(seed, size, settings.pairs);
    let rings = random_rings(seed, 0, size, me, settings.rings);
    let natural = natural_ring(size, me);

    let mut measured = |bytes: usize, iterations: usize| {
        monitor.enter(&format!("ping-pong, {bytes} B"));
        let one_way = all_pairs(bootstrap, &mut group, &pairs, (bytes, largest), iterations, monitor)?;
        monitor.enter(&format!("rings, {bytes} B"));
        let mut ring = |neighbours| {
            monitor.tick();
            let mine = fastest(&mut group, neighbours, (bytes, largest), iterations)?;
            let slowest = share(bootstrap, &mine)?.into_iter().max().unwrap_or_default();
            Ok(slowest as f64 * 1e-9)
        };
        let natural = ring(natural)?;
        let random: Vec<f64> = rings.iter().map(|&neighbours| ring(neighbours)).collect::<Result<_>>()?;
        Ok::<_, Error>((one_way, natural, random))
    };
    let (one_way, natural_time, random_times) = measured(settings.latency_bytes, settings.latency_iterations)?;
    let bytes = settings.bandwidth_bytes;
    let (transfers, natural_transfer, random_transfers) = measured(bytes, settings.bandwidth_iterations)?;
    let rate = |seconds: f64| bytes as f64 / seconds * 1e-9;
    Ok(Beff {
        settings: settings.clone(),
        pairs: pairs.len(),
        ping_pong_latency_us: spread(one_way.iter().map(|seconds| seconds * 1e6)),
        ping_pong_bandwidth_gb_per_s: spread(transfers.iter().map(|&seconds| rate(seconds))),
        // An exchange moves two messages each way past a process: half its time is one message's.
        natural_ring_latency_us: natural_time / 2.0 * 1e6,
        natural_ring_bandwidth_gb_per_s: rate(natural_transfer / 2.0),
        random_ring_latency_us: geometric_mean(random_times.iter().map(|seconds| seconds / 2.0 * 1e6)),
        random_ring_bandwidth_gb_per_s: geometric_mean(random_transfers.iter().map(|seconds| rate(seconds / 2.0))),
    })
}

/// One pair after the other, all other ranks waiting; the one-way time of each in seconds, on every rank.
fn all_pairs<B: Bootstrap, G: Group>(
    bootstrap: &mut B,
    group: &mut G,
    pairs: &[(Rank, Rank)],
    place: (usize, usize),
    iterations: usize,
    monitor: &Monitor,
) -> Result<Vec<f64>> {
    let me = group.rank();
    let mut mine: Vec<(usize, u64)> = Vec::new();
    for (at, &(first, second)) in pairs.iter().enumerate() {
        group.barrier()?;
        monitor.tick();
        if me == first {
            mine.push((at, ping_pong(group, (second, Side::Serves), place, iterations)?.0));
        } else if me == second {
            ping_pong(group, (first, Side::Returns), place, iterations)?;
        }
    }
    group.barrier()?;
    let mut all: Vec<(usize, u64)> = share(bootstrap, &mine)?.into_iter().flatten().collect();
    all.sort_unstable();
    Ok(all.into_iter().map(|(_, nanos)| Nanos(nanos.max(1)).as_secs_f64()).collect())
}

/// This rank's time for one exchange in a ring, in ns: the faster of HPCC's two ways to write it.
fn fastest<G: Group>(
    group: &mut G,
    ring: Neighbours,
    (bytes, received): (usize, usize),
    iterations: usize,
) -> Result<u64> {
    let mut best = u64::MAX;
    for together in [true, false] {
        for _ in 0..ATTEMPTS {
            forget(group, received, 2 * bytes);
            group.barrier()?;
            let mut begin = group.now();
            for round in 0..WARM_UP + iterations {
                if round == WARM_UP {
                    begin = group.now();
                }
                exchange(group, ring, (bytes, received), together)?;
            }
            let time = group.now().since(begin).0 / (iterations as u64).max(1);
            check(group, ring.left, received, bytes)?;
            check(group, ring.right, received + bytes, bytes)?;
            best = best.min(time.max(1));
        }
    }
    Ok(best)
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

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    Spread {
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        avg: values.iter().sum::<f64>() / values.len() as f64,
        max: values.iter().copied().fold(0.0, f64::max),
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

#[cfg(test)]
mod tests {
    use tailback_transport::loopback::{Fault, Job, Transfer};
    use tailback_transport::{Collective, Lane, Operation};

    use super::*;

    fn settings() -> Settings {
        let (latency_iterations, bandwidth_iterations) = (3, 2);
        Settings {
            latency_bytes: 8,
            bandwidth_bytes: 20_000,
            rings: 3,
            pairs: 4,
            latency_iterations,
            bandwidth_iterations,
        }
    }

    fn run(job: Job) -> Result<Vec<Beff>> {
        job.run(|mut bootstrap, raw| {
            measure(&mut bootstrap, &mut Collective::new(raw), &settings(), 7, &Monitor::new())
        })
    }

    #[test]
    fn every_figure_is_measured_and_the_same_everywhere() {
        let results = run(Job::new(5)).unwrap();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        let found = &results[0];
        assert_eq!(found.pairs, 4);
        assert!(found.figures().iter().all(|(_, _, value)| value.is_finite() && *value > 0.0), "{found:?}");
        let latency = found.ping_pong_latency_us;
        assert!(latency.min <= latency.avg && latency.avg <= latency.max);
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

    #[test]
    fn means_are_geometric() {
        assert!((geometric_mean([1.0, 100.0].into_iter()) - 10.0).abs() < 1e-9);
    }
}
