//! The forms of a test: on one rank, on all at once and by themselves, on all together; and how long a test of one rank may take on a
//! slow core. For so long its rank, and those that wait for it, show no progress, and nobody is to call them stuck: with the
//! memory of a large node a test takes many minutes.

use std::time::Duration;

use tailback_hpcc::{Sizes, largest, sum};
use tailback_transport::{Group, Monitor, Result};

/// Who watches a test of ranks by themselves, and for how long there may be nothing to see.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    pub(super) monitor: &'a Monitor,
    pub(super) longest: Duration,
}

impl Watched<'_> {
    fn begin(self) {
        self.monitor.tick();
        self.monitor.excuse(self.longest);
    }

    fn end(self) {
        self.monitor.excuse(Duration::ZERO);
        self.monitor.tick();
    }
}

/// What a rank found by itself: rates, and the number that tells whether they are right.
pub(super) struct Found<const N: usize> {
    pub(super) rates: [f64; N],
    pub(super) check: f64,
}

/// Every rank does it at once: the mean of the rates, and the worst check.
pub(super) fn star<G: Group, const N: usize>(
    group: &mut G,
    watched: Watched<'_>,
    work: impl FnOnce() -> Found<N>,
) -> Result<Found<N>> {
    watched.begin();
    group.barrier()?;
    let ranks = group.size() as f64;
    let mut found = together(group, watched, work())?;
    found.rates.iter_mut().for_each(|rate| *rate /= ranks);
    Ok(found)
}

/// One rank does it while the others wait: what it found, on every rank.
pub(super) fn single<G: Group, const N: usize>(
    group: &mut G,
    watched: Watched<'_>,
    is_me: bool,
    work: impl FnOnce() -> Found<N>,
) -> Result<Found<N>> {
    watched.begin();
    group.barrier()?;
    let nothing = Found { rates: [0.0; N], check: 0.0 };
    together(group, watched, if is_me { work() } else { nothing })
}

/// Sums of the rates and the worst check.
fn together<G: Group, const N: usize>(group: &mut G, watched: Watched<'_>, mut found: Found<N>) -> Result<Found<N>> {
    watched.monitor.wait();
    sum(group, 0, &mut found.rates)?;
    let check = largest(group, found.check)?;
    watched.end();
    Ok(Found { check, ..found })
}

/// What the slowest core gives that anybody runs this on: operations of a product and of a transform, bytes of a vector and
/// words at random, each a second.
const PRODUCT: f64 = 1e9;
const TRANSFORM: f64 = 1e8;
const BYTES: f64 = 5e8;
const WORDS: f64 = 2e6;

/// The product, with all that is done to check it.
pub(super) fn dgemm_time(sizes: &Sizes) -> Duration {
    seconds(2.0 * (sizes.dgemm_order as f64).powi(3) / PRODUCT)
}

/// Ten passes of four loops over two or three vectors.
pub(super) fn stream_time(sizes: &Sizes) -> Duration {
    seconds(10.0 * 10.0 * 8.0 * sizes.stream_words as f64 / BYTES)
}

/// Four updates of every word, and four to take them back.
pub(super) fn random_access_time(sizes: &Sizes) -> Duration {
    seconds(8.0 * sizes.table_words as f64 / WORDS)
}

/// So many transforms and back.
pub(super) fn fft_time(sizes: &Sizes, passes: usize) -> Duration {
    let points = sizes.fft_points as f64;
    seconds(2.0 * passes as f64 * 5.0 * points * points.log2() / TRANSFORM)
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::Job;
    use tailback_transport::arranged::Grid;
    use tailback_transport::{Bootstrap, Error, Rank, Transport};

    use super::*;

    #[test]
    fn star_means_over_ranks_and_single_is_ones_own() {
        let all = Job::new(3).run(|bootstrap, raw| {
            let members: Vec<Rank> = (0..3).map(Rank::from).collect();
            let mut transport = Collective::new(raw);
            let mut group = transport.group(&members, 64)?;
            let (me, monitor) = (f64::from(bootstrap.rank().0), Monitor::new());
            let watched = Watched { monitor: &monitor, longest: Duration::from_secs(60) };
            let own = || Found { rates: [me, 10.0], check: if me == 1.0 { f64::NAN } else { 0.5 } };
            let star = star(&mut group, watched, own)?;
            let single = single(&mut group, watched, me == 2.0, own)?;
            assert_eq!(monitor.ticks(), monitor.ticks(), "no excuse is left");
            Ok::<_, Error>((star.rates, star.check, single.rates, single.check))
        });
        for (star, worst, single, check) in all.unwrap() {
            assert_eq!((star, single, check), ([1.0, 10.0], [2.0, 10.0], 0.5));
            assert!(worst.is_nan(), "a check that came out as nothing is not lost");
        }
    }

    #[test]
    fn patience_grows_with_the_memory_of_a_rank() {
        let of = |gib: f64| {
            let sizes = Sizes::of(Sizes::order_for(gib * f64::from(1 << 30), 128), 128, Grid::of(1));
            [dgemm_time(&sizes), stream_time(&sizes), random_access_time(&sizes), fft_time(&sizes, 2)]
        };
        // What nobody waits for needs no more than the usual limit; nobody sits before a table of 16 GiB for a day.
        assert!(of(0.03).iter().all(|longest| *longest < Duration::from_secs(60)), "{:?}", of(0.03));
        for longest in of(16.0) {
            assert!((120.0..86_400.0).contains(&longest.as_secs_f64()), "{:?}", of(16.0));
        }
    }
}
