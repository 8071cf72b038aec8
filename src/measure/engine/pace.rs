//! Iterations that begin at times agreed beforehand, however long the ones before took.
//!
//! A canary that sends one message after the other asks a slow network seldom. One with a schedule asks at equal
//! distances, as the world outside does, and counts from when it should have begun: what it could not send in time
//! because an earlier message was still under way waited too.
//!
//! All canaries begin an iteration together, so they need one clock, which [`SharedClock`] is.

use tailback_transport::{Group, Nanos, Result};

use crate::kernel::SharedClock;

/// How a schedule was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Iterations that had a time to begin.
    pub slots: u64,
    /// Those that began late, as the one before was not over.
    pub late: u64,
    /// The longest that one began too late, in ns.
    pub worst_ns: u64,
}

impl Kept {
    /// Adds another rank's.
    pub(super) fn merge(&mut self, other: Kept) {
        self.slots += other.slots;
        self.late += other.late;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

/// Times at equal distances, the same on every canary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    clock: SharedClock,
    pace: Nanos,
    /// The next time to begin, by this member's clock.
    next: Nanos,
    /// How long agreeing took last time.
    agreed_in: Nanos,
    pub kept: Kept,
}

impl Schedule {
    pub(super) fn new(clock: SharedClock, pace: Nanos) -> Self {
        Schedule { clock, pace, next: Nanos(0), agreed_in: Nanos(0), kept: Kept::default() }
    }

    /// Agrees on a first time that is still to come when the last member hears of it. Collective over `canaries`.
    pub(super) fn begin<G: Group>(&mut self, canaries: &mut G) -> Result<()> {
        if self.agreed_in.0 == 0 {
            self.agree(canaries)?;
        }
        let [latest, slowest, ..] = self.agree(canaries)?;
        self.next = self.clock.own(latest + 2 * slowest + self.pace.0);
        Ok(())
    }

    fn agree<G: Group>(&mut self, canaries: &mut G) -> Result<[u64; 4]> {
        let begin = canaries.now();
        canaries.start_agreement([self.clock.shared(begin), self.agreed_in.0, 0, 0])?;
        let agreed = canaries.wait_agreement()?;
        self.agreed_in = Nanos(canaries.now().since(begin).0.max(1));
        Ok(agreed)
    }

    /// Waits for the next time to begin and gives when the iteration's own time begins, and how long it had waited by
    /// then: nothing, unless the one before had kept it.
    pub(super) fn slot<G: Group>(&mut self, group: &mut G) -> Result<(Nanos, Nanos)> {
        let due = self.next;
        self.next = Nanos(due.0 + self.pace.0);
        self.kept.slots += 1;
        let now = group.now();
        if now.0 < due.0 {
            group.wait_until(due)?;
            return Ok((group.now(), Nanos(0)));
        }
        let late = now.since(due);
        self.kept.late += u64::from(late.0 > 0);
        self.kept.worst_ns = self.kept.worst_ns.max(late.0);
        Ok((now, late))
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_sim::Simulation;
    use tailback_sim::machine::Machine;
    use tailback_transport::{Error, Rank, Transport};

    use super::*;

    #[test]
    fn members_begin_together_and_count_what_kept_them() {
        const PACE: Nanos = Nanos(4_000_000);
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(3);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..3usize).map(Rank::from).collect();
            let mut group = transport.group(&members, crate::kernel::CLOCK_SEGMENT)?;
            let clock = SharedClock::compare(&mut group)?;
            let mut schedule = Schedule::new(clock, PACE);
            let mut begun = Vec::new();
            for chunk in 0..2 {
                schedule.begin(&mut group)?;
                for slot in 0..4 {
                    let (start, late) = schedule.slot(&mut group)?;
                    begun.push((clock.shared(start), late.0));
                    if (chunk, slot) == (1, 1) {
                        group.wait_until(Nanos(group.now().0 + 6_000_000))?;
                    }
                }
            }
            Ok::<_, Error>((begun, schedule.kept))
        });
        let begun = finished.unwrap().results;
        for (times, kept) in &begun {
            // One slot was kept by the long one before it, and none else.
            assert_eq!((kept.slots, kept.late), (8, 1), "{kept:?}");
            assert!((1_900_000..2_100_000).contains(&kept.worst_ns), "{kept:?}");
            // The slot after the long one: its own time began late, by what the long one took over its slot.
            assert!(times[6].1 >= 1_900_000, "{times:?}");
            assert!(times[7].0 > times[6].0);
        }
        // Virtual time is one clock: the comparison is exact to what a message takes.
        for place in 0..8 {
            let due = |rank: usize| {
                let (start, late) = begun[rank].0[place];
                start - late
            };
            let spread = (0..3).map(due).max().unwrap() - (0..3).map(due).min().unwrap();
            assert!(spread < 5_000, "slot {place} was due {spread} ns apart");
        }
    }
}
