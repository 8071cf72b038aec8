//! When bursts of load begin: the clocks of all ranks are compared before each stretch of them, and again after it.

use tailback_transport::{Error, Nanos, Result};

use super::OpenNetwork;
use super::burst::Bursts;
use crate::plan::Burst;

/// Compares the clocks of all ranks, and agrees on a first onset that none of them has passed; with how far clocks are off at
/// most. Collective over the world, which should be quiet. Bursts that are shorter than that are refused.
pub(super) fn agree(network: &mut dyn OpenNetwork, burst: Burst) -> Result<(Bursts, Nanos)> {
    let clock = network.compare_clocks()?;
    let world = network.world();
    let begin = world.now();
    world.start_agreement([0; 4])?;
    world.wait_agreement()?;
    let now = world.now();
    world.start_agreement([clock.shared(now), now.since(begin).0, clock.error().0, 0])?;
    let [latest, slowest, error, _] = world.wait_agreement()?;
    let (on, period) = (burst.on().0, burst.period().0);
    let shortest = on.min(period - on);
    if error > shortest {
        return Err(Error::Setup(format!(
            "the clocks of the ranks are known to within {:.1} us only: bursts and pauses of {:.1} us cannot be told apart; give \
             --on and --off of at least {:.0} us",
            error as f64 * 1e-3,
            shortest as f64 * 1e-3,
            (error as f64 * 1e-3).ceil()
        )));
    }
    Ok((Bursts::new(clock, latest + 2 * slowest, burst), Nanos(error)))
}

/// Compares the clocks again, and gives the most that any of them was off since: by this comparison, by the one before, and by
/// how far they moved. Collective over the world.
pub(super) fn error_since(network: &mut dyn OpenNetwork, bursts: &Bursts, before: Nanos) -> Result<Nanos> {
    let clock = network.compare_clocks()?;
    let world = network.world();
    world.start_agreement([clock.error().0, clock.moved(bursts.clock()).0, 0, 0])?;
    let [error, moved, ..] = world.wait_agreement()?;
    Ok(Nanos(before.0.max(error).max(moved)))
}
