//! The forms of a test: on one rank, on all at once and by themselves, on all together.

use tailback_transport::{Group, Monitor, Result};

use tailback_hpcc::{largest, sum};

/// What a rank found by itself: rates, and the number that tells whether they are right.
pub(super) struct Found<const N: usize> {
    pub(super) rates: [f64; N],
    pub(super) check: f64,
}

/// Every rank does it at once: the mean of the rates, and the worst check.
pub(super) fn star<G: Group, const N: usize>(
    group: &mut G,
    monitor: &Monitor,
    work: impl FnOnce() -> Found<N>,
) -> Result<Found<N>> {
    monitor.tick();
    group.barrier()?;
    let ranks = group.size() as f64;
    let mut found = together(group, monitor, work())?;
    found.rates.iter_mut().for_each(|rate| *rate /= ranks);
    Ok(found)
}

/// One rank does it while the others wait: what it found, on every rank.
pub(super) fn single<G: Group, const N: usize>(
    group: &mut G,
    monitor: &Monitor,
    is_me: bool,
    work: impl FnOnce() -> Found<N>,
) -> Result<Found<N>> {
    monitor.tick();
    group.barrier()?;
    let nothing = Found { rates: [0.0; N], check: 0.0 };
    together(group, monitor, if is_me { work() } else { nothing })
}

/// Sums of the rates and the worst check.
fn together<G: Group, const N: usize>(group: &mut G, monitor: &Monitor, mut found: Found<N>) -> Result<Found<N>> {
    monitor.wait();
    sum(group, 0, &mut found.rates)?;
    let check = largest(group, found.check)?;
    monitor.tick();
    Ok(Found { check, ..found })
}

#[cfg(test)]
mod tests {
    use tailback_transport::loopback::Job;
    use tailback_transport::{Bootstrap, Collective, Error, Rank, Transport};

    use super::*;

    #[test]
    fn star_means_over_ranks_and_single_is_ones_own() {
        let all = Job::new(3).run(|bootstrap, raw| {
            let members: Vec<Rank> = (0..3).map(Rank::from).collect();
            let mut transport = Collective::new(raw);
            let mut group = transport.group(&members, 64)?;
            let (me, monitor) = (f64::from(bootstrap.rank().0), Monitor::new());
            let own = || Found { rates: [me, 10.0], check: if me == 1.0 { f64::NAN } else { 0.5 } };
            let star = star(&mut group, &monitor, own)?;
            let single = single(&mut group, &monitor, me == 2.0, own)?;
            Ok::<_, Error>((star.rates, star.check, single.rates, single.check))
        });
        for (star, worst, single, check) in all.unwrap() {
            assert_eq!((star, single, check), ([1.0, 10.0], [2.0, 10.0], 0.5));
            assert!(worst.is_nan(), "a check that came out as nothing is not lost");
        }
    }
}
