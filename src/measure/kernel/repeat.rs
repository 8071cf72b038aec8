//! Repeats what a group does until its rate is steady.

use tailback_transport::{Group, Monitor, Nanos, Result};

use crate::stats::{Rested, Rule, Steady};

/// Repeats `batch` until the rate of the slowest member is steady. `batch` does so many iterations and gives this member's
/// time, 0 when it has no part. Collective over `group`: members are told the slowest one's time after every batch, so all
/// of them go on or stop. Nothing when any of them was interrupted.
pub(crate) fn until_steady<G: Group>(
    group: &mut G,
    rule: Rule,
    monitor: &Monitor,
    interrupted: impl Fn() -> bool,
    mut batch: impl FnMut(&mut G, u64) -> Result<Nanos>,
) -> Result<Option<Rested>> {
    let mut steady = Steady::new(rule);
    loop {
        let took = batch(group, steady.next())?;
        monitor.wait();
        group.start_agreement([took.0, u64::from(interrupted()), 0, 0])?;
        let [slowest, cut, ..] = group.wait_agreement()?;
        monitor.tick();
        if cut != 0 {
            return Ok(None);
        }
        if let Some(rested) = steady.add(Nanos(slowest)) {
            return Ok(Some(rested));
        }
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::Job;
    use tailback_transport::{Bootstrap, Rank, Transport};

    use super::*;

    /// Every rank says what it took by itself; what all of them decided.
    fn decided(each_ns: fn(Rank, u64) -> u64, cut: Option<Rank>) -> Vec<(Option<Rested>, Vec<u64>)> {
        let all: Result<Vec<_>> = Job::new(3).run(|bootstrap, raw| {
            let members: Vec<Rank> = (0..bootstrap.size()).map(Rank::from).collect();
            let mut transport = Collective::new(raw);
            let mut group = transport.group(&members, 8)?;
            let (me, monitor) = (group.rank(), Monitor::new());
            let mut sizes = Vec::new();
            let rested = until_steady(
                &mut group,
                Rule::default(),
                &monitor,
                || cut == Some(me),
                |_, iterations| {
                    sizes.push(iterations);
                    Ok(Nanos(iterations * each_ns(me, sizes.len() as u64)))
                },
            )?;
            Ok((rested, sizes))
        });
        all.unwrap()
    }

    #[test]
    fn the_slowest_member_decides_for_all() {
        // One is uneven and quick, one has no part, one is slow and steady.
        let each = |rank: Rank, batch: u64| [100 + 50 * (batch % 2), 0, 2000][rank.index()];
        let all = decided(each, None);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        let rested = all[0].0.expect("nobody interrupts");
        assert!(rested.steady && rested.median_ns == 2000.0, "{rested:?}");
        assert_eq!(all[0].1.iter().sum::<u64>(), rested.iterations);
    }

    #[test]
    fn one_interrupt_ends_all() {
        assert_eq!(decided(|_, _| 1000, Some(Rank(2))), vec![(None, vec![1]); 3]);
    }
}
