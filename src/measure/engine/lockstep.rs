//! Keeps a group in step without stopping it: members agree now and then on when to stop and when to ask again.
//!
//! Iterations are cut into chunks. At a chunk's boundary every member proposes how far the group should be by the next one,
//! and how long its iterations take; the maximum of both is agreed, so all members stop at the same iteration and choose
//! the same length for the next chunk. The agreement is under way while the next chunk's iterations are, and is acted on
//! at the boundary that follows, so neither load nor measurement pauses for it: a chunk has at least as many iterations
//! as the last agreement took.

use tailback_transport::{Group, Nanos, Proposal, Result};

/// What a member proposes at a boundary for the next one, and what is agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ballot {
    /// The part of the work to go on with, or [`Ballot::OVER`].
    pub part: u64,
    /// The user asked the job to end.
    pub interrupted: bool,
    /// The longest iteration that kept others from beginning when they were due.
    pub longest: Nanos,
}

impl Ballot {
    /// Beyond the last part: stop.
    pub(super) const OVER: u64 = u64::MAX;

    /// Beside the longest iteration, as the greater of two words.
    const INTERRUPTED: u64 = 1 << 63;

    pub(super) fn is_over(self) -> bool {
        self.part == Ballot::OVER
    }

    fn words(self) -> [u64; 2] {
        [self.part, if self.interrupted { Ballot::INTERRUPTED } else { self.longest.0 }]
    }

    fn of([part, second]: [u64; 2]) -> Self {
        let interrupted = second >= Ballot::INTERRUPTED;
        Ballot { part, interrupted, longest: Nanos(if interrupted { 0 } else { second }) }
    }
}

/// What follows an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Iterate,
    /// A good moment to let the agreement under way advance: [`Lockstep::poll`].
    Poll,
    /// The chunk is over: [`Lockstep::agree`].
    Boundary,
}

/// A chunk is polled this often: an agreement's rounds, one a poll, are over before the chunk is.
const POLLS: u64 = 32;
/// A chunk that is longer only for the agreement's sake is so many times as long as it should be at most.
const LONGEST: u64 = 5;

/// A member's view of its group's chunks. Every member's is the same.
pub(super) struct Lockstep {
    /// How long a chunk should take.
    target: Nanos,
    longest: u64,
    chunk: u64,
    done: u64,
    started: Nanos,
    under_way: bool,
    /// What a poll already brought of the agreement under way.
    seen: Option<Proposal>,
    /// How many iterations the last agreement took.
    took: u64,
    poll_at: u64,
}

impl Lockstep {
    /// Starts with a chunk of one iteration; none is longer than `longest`.
    pub(super) fn new(target: Nanos, longest: u64, now: Nanos) -> Self {
        let longest = longest.max(1);
        Lockstep { target, longest, chunk: 1, done: 0, started: now, under_way: false, seen: None, took: 1, poll_at: 1 }
    }

    /// The same with a longer first chunk, where waiting for the first agreement costs more than a late one.
    #[must_use]
    pub(super) fn beginning_with(self, chunk: u64) -> Self {
        Lockstep { chunk: chunk.clamp(1, self.longest), ..self }
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
        if self.is_open() {
            self.seen = group.poll_agreement()?;
            self.took = self.done;
        }
        Ok(())
    }

    /// Whether polls may bring something.
    pub(super) fn is_open(&self) -> bool {
        self.under_way && self.seen.is_none()
    }

    /// How many iterations a chunk has.
    pub(super) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// How long the next chunk is expected to take, from this member's last one.
    pub(super) fn expected(&self, now: Nanos) -> Nanos {
        Nanos(now.since(self.started).0 / self.done.max(1) * self.chunk)
    }

    /// Proposes what holds from the next boundary on, and gives what was agreed for this one, which is binding for every
    /// member; also how long it had to be waited for.
    pub(super) fn agree<G: Group>(&mut self, group: &mut G, mine: Ballot) -> Result<(Ballot, Nanos)> {
        let now = group.now();
        let per_iteration = now.since(self.started).0 / self.done.max(1);
        let (agreed, waited) = self.take(group, now)?;
        if waited.0 > 0 {
            self.took = self.done + waited.0.div_ceil(per_iteration.max(1));
        }
        self.under_way = agreed.is_none_or(|agreed| agreed[0] != Ballot::OVER);
        if self.under_way {
            let [part, second] = mine.words();
            group.start_agreement([part, second, per_iteration, self.took])?;
        }
        if let Some([_, _, slowest, took]) = agreed {
            let of_time = |ns: u64| (ns / slowest.max(1)).max(1);
            let wanted = of_time(self.target.0).min(4 * self.chunk);
            self.chunk = wanted.max(took.min(of_time(LONGEST * self.target.0))).min(self.longest);
        }
        (self.done, self.poll_at, self.started) = (0, (self.chunk / POLLS).max(1), group.now());
        let [part, second, ..] = agreed.unwrap_or_default();
        Ok((Ballot::of([part, second]), waited))
    }

    /// Waits for the agreement that is still under way where the work ended by itself.
    pub(super) fn finish<G: Group>(&mut self, group: &mut G) -> Result<()> {
        let now = group.now();
        self.take(group, now)?;
        self.under_way = false;
        Ok(())
    }

    /// The agreement under way, if there is one, and how long it had to be waited for.
    fn take<G: Group>(&mut self, group: &mut G, now: Nanos) -> Result<(Option<Proposal>, Nanos)> {
        self.poll(group)?;
        Ok(match (self.under_way, self.seen.take()) {
            (true, None) => {
                let agreed = group.wait_agreement()?;
                (Some(agreed), group.now().since(now))
            }
            (_, seen) => (seen, Nanos(0)),
        })
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
    fn stops(size: usize) -> Vec<u64> {
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(size);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..size).map(Rank::from).collect();
            let mut group = transport.group(&members, 64)?;
            let mut lockstep = Lockstep::new(Nanos(200_000), 1000, group.now());
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
                    let is_over = iteration > 500 + 100 * u64::from(me);
                    let part = if is_over { Ballot::OVER } else { iteration / 100 };
                    let (agreed, _) =
                        lockstep.agree(&mut group, Ballot { part, interrupted: me == 0, longest: Nanos(7) })?;
                    if agreed.is_over() {
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
        for size in [1, 2, 3, 5] {
            let stops = stops(size);
            assert!(stops[0] > 500 && stops.iter().all(|&at| at == stops[0]), "{size}: {stops:?}");
        }
    }

    /// Iterations that take as long as a message does: an agreement takes several of them, and nobody waits for it.
    #[test]
    fn chunks_grow_until_an_agreement_fits_into_one() {
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(8);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..8usize).map(Rank::from).collect();
            let mut group = transport.group(&members, 64)?;
            let begin = group.now();
            // A chunk should take one iteration.
            let mut lockstep = Lockstep::new(Nanos(2_000), 1000, begin);
            let (mut waits, mut boundaries) = (0, 0);
            for _ in 0..400 {
                group.wait_until(Nanos(group.now().0 + 2_000))?;
                match lockstep.step() {
                    Next::Boundary => {
                        let (_, waited) = lockstep.agree(&mut group, Ballot::default())?;
                        boundaries += 1;
                        waits += waited.0;
                    }
                    _ => lockstep.poll(&mut group)?,
                }
            }
            lockstep.finish(&mut group)?;
            Ok::<_, Error>((waits as f64 / group.now().since(begin).0 as f64, boundaries))
        });
        for (waiting, boundaries) in finished.unwrap().results {
            assert!(waiting < 0.05 && boundaries >= 400 / 10, "{waiting} of the time, {boundaries} boundaries");
        }
    }
}
