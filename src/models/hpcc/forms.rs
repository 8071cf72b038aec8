//! The forms of a test: on one rank, on all at once and by themselves, on all together.

use std::time::Duration;

use tailback_transport::{Group, Monitor, Result};

use tailback_hpcc::{largest, sum};

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

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::Job;
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
}
