//! Keeps a group in step without stopping it: members agree now and then on when to stop and when to ask again.
//!
//! Iterations are cut into chunks. At a chunk's boundary every member proposes whether to stop and how long its
//! iterations take; the maximum of both is agreed, so all members stop at the same iteration and choose the same
//! length for the next chunk. A slow network therefore asks after every iteration, a fast one after thousands.
//!
//! Canaries agree at the boundary itself, outside any timed iteration. Congestors overlap the agreement with the next
//! chunk's traffic and act on it one boundary later, so that the load never pauses.

use tailback_transport::{Group, Nanos, Proposal, Result};

/// What a member proposes at a boundary, and what is agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ballot {
    /// Stop at this boundary.
    pub stop: bool,
    /// The user asked the job to end.
    pub interrupted: bool,
    /// Go on to the next part at this boundary.
    pub next: bool,
}

/// When a group agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    AtBoundary,
    Overlapped,
}

/// What follows an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Iterate,
    /// A good moment to let background agreements advance: [`Lockstep::poll`].
    Poll,
    /// The chunk is over: [`Lockstep::agree`].
    Boundary,
}

/// A chunk is polled this often, so that an agreement's rounds are over before the chunk is.
const POLLS: u64 = 8;

/// A member's view of its group's chunks. Every member's is the same.
pub(super) struct Lockstep {
    timing: Timing,
    /// How long a chunk should take.
    target: Nanos,
    longest: u64,
    chunk: u64,
    done: u64,
    started: Nanos,
    under_way: bool,
    /// What a poll already brought of the agreement under way.
    seen: Option<Proposal>,
    poll_at: u64,
}

impl Lockstep {
    /// Starts with a chunk of one iteration; none is longer than `longest`.
    pub(super) fn new(timing: Timing, target: Nanos, longest: u64, now: Nanos) -> Self {
        Lockstep {
            timing,
            target,
            longest: longest.max(1),
            chunk: 1,
            done: 0,
            started: now,
            under_way: false,
            seen: None,
            poll_at: 1,
        }
    }

    /// Counts an iteration and says what follows it.
    #[inline]
    pub(super) fn step(&mut self) -> Next {
        self.done += 1;
        if self.done >= self.chunk {
            Next::Boundary
        } else if self.done >= self.poll_at {
            self.poll_at = self.done + (self.chunk / POLLS).max(1);
            Next::Poll
        } else {
            Next::Iterate
        }
    }

    /// Lets the agreement under way advance, without waiting for it.
    pub(super) fn poll<G: Group>(&mut self, group: &mut G) -> Result<()> {
        if self.under_way && self.seen.is_none() {
            self.seen = group.poll_agreement()?;
        }
        Ok(())
    }

    /// How long the next chunk is expected to take, from this member's last one.
    pub(super) fn expected(&self, now: Nanos) -> Nanos {
        Nanos(now.since(self.started).0 / self.done.max(1) * self.chunk)
    }

    /// Agrees at a boundary. What comes back is binding for every member.
    pub(super) fn agree<G: Group>(&mut self, group: &mut G, mine: Ballot) -> Result<Ballot> {
        let now = group.now();
        let per_iteration = now.since(self.started).0 / self.done.max(1);
        let proposal = [u64::from(mine.stop), u64::from(mine.interrupted), per_iteration, u64::from(mine.next)];
        let agreed = match self.timing {
            Timing::AtBoundary => {
                group.start_agreement(proposal)?;
                Some(group.wait_agreement()?)
            }
            Timing::Overlapped => {
                let earlier = match (self.under_way, self.seen.take()) {
                    (true, None) => Some(group.wait_agreement()?),
                    (_, seen) => seen,
                };
                self.under_way = earlier.is_none_or(|agreed| agreed[0] == 0);
                if self.under_way {
                    group.start_agreement(proposal)?;
                }
                earlier
            }
        };
        if let Some([_, _, slowest, _]) = agreed {
            let wanted = self.target.0 / slowest.max(1);
            self.chunk = wanted.clamp(1, (4 * self.chunk).min(self.longest));
        }
        (self.done, self.poll_at, self.started) = (0, (self.chunk / POLLS).max(1), group.now());
        Ok(agreed.map_or_else(Ballot::default, |agreed| Ballot {
            stop: agreed[0] != 0,
            interrupted: agreed[1] != 0,
            next: agreed[3] != 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_sim::Simulation;
    use tailback_sim::machine::Machine;
    use tailback_transport::{Error, Rank, Transport};

    use super::*;

    /// Members work at different speeds and want to stop at different times; all must stop at one iteration.
    fn stops(size: usize, timing: Timing) -> Vec<u64> {
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(size);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..size).map(Rank::from).collect();
            let mut group = transport.group(&members, 64)?;
            let mut lockstep = Lockstep::new(timing, Nanos(200_000), 1000, group.now());
            let me = group.rank().0;
            for iteration in 1..100_000u64 {
                let slow = iteration % (7 + u64::from(me)) == 0;
                let took = 1000 + if slow { 20_000 * u64::from(me) } else { 0 };
                group.wait_until(Nanos(group.now().0 + took))?;
                let next = lockstep.step();
                if next == Next::Poll {
                    lockstep.poll(&mut group)?;
                }
                if next == Next::Boundary {
                    let mine =
                        Ballot { stop: iteration > 500 + 100 * u64::from(me), interrupted: me == 0, next: false };
                    let agreed = lockstep.agree(&mut group, mine)?;
                    if agreed.stop {
                        assert!(agreed.interrupted);
                        return Ok::<u64, Error>(iteration);
                    }
                }
            }
            Ok(0)
        });
        finished.unwrap().results
    }

    #[test]
    fn all_members_stop_at_one_iteration() {
        for timing in [Timing::AtBoundary, Timing::Overlapped] {
            for size in [1, 2, 3, 5] {
                let stops = stops(size, timing);
                assert!(stops[0] > 500 && stops.iter().all(|&at| at == stops[0]), "{timing:?} {size}: {stops:?}");
            }
        }
    }
}
