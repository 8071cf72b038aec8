//! An application as the engine sees it: something that is started, ends, and leaves one figure.
//!
//! It is run by the first canary. The other ranks that do not congest sleep meanwhile, for a rank that spins would take a
//! core from the program that is measured.

use std::sync::Arc;
use std::time::Duration;

use tailback_transport::{Group, Nanos, Proposal, Result};

/// How often a sleeping rank looks whether the others are there.
const NAP: Duration = Duration::from_millis(5);

/// What became of one repetition.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// It ended well.
    Well {
        /// What it is measured by.
        figure: f64,
        /// How long it took.
        wall: Nanos,
    },
    /// The user wanted the job to end.
    Interrupted,
    /// It gave no figure: the reason in a line, then what it wrote last.
    Badly(String),
}

/// Starts an application once and waits for its end. `goes_on` is to be called now and then; once it says no, the
/// application is ended.
pub trait Starter: Send + Sync {
    /// One repetition.
    fn once(&self, goes_on: &mut dyn FnMut() -> bool) -> Ended;
}

/// A starter, shared.
pub type SharedStarter = Arc<dyn Starter>;

/// Waits for an agreement without taking a core.
pub(super) fn asleep(world: &mut dyn Group) -> Result<Proposal> {
    loop {
        if let Some(agreed) = world.poll_agreement()? {
            return Ok(agreed);
        }
        std::thread::sleep(NAP);
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback;
    use tailback_transport::{Error, Rank, Transport};

    use super::*;

    #[test]
    fn sleeping_members_agree_with_waking_ones() {
        let agreed = loopback::run(3, |_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..3usize).map(Rank::from).collect();
            let mut group = transport.group(&members, 8)?;
            group.start_agreement([0, u64::from(group.rank().0 == 1), 0, 0])?;
            let agreed = if group.rank().0 == 0 { group.wait_agreement()? } else { asleep(&mut group)? };
            Ok::<_, Error>(agreed[1])
        });
        assert_eq!(agreed.unwrap(), [1, 1, 1]);
    }
}
