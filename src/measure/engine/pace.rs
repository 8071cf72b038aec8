//! Iterations that begin at times drawn beforehand, however long the ones before took: an open loop.
//!
//! A canary that sends one message after the other asks a slow network seldom, and its ranks wait for each other, so one
//! slow path makes all of them slow. One with a schedule asks at random moments, as the world outside does, and counts from
//! when it should have begun: what it could not send in time because an earlier message was still under way waited too.
//! Half of a distance is always the same, so that most messages are over before the next is due, and half of it, in the
//! mean, is exponential, so that no rhythm of the load is met more often than others.
//!
//! All canaries begin an iteration together, so they need one clock, which [`SharedClock`] is.

use chacha20::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use tailback_transport::{Group, Nanos, Result};

use crate::kernel::SharedClock;
use crate::plan::Pace;

/// So many iterations in a block, in the mean, tell enough.
const ENOUGH: u64 = 200;
/// In the mean, distances are at least so many times the longest of some iterations that follow each other, which is longer
/// than a message takes. Where there is time, they are longer.
const SHORTEST: u64 = 2;
const LONGEST: u64 = 20;
/// A distance that bursts ask for is at least so many times an iteration that met no load: when a burst is over, canaries make
/// up for what came due while they were blocked, and are to be done with that in a small part of the time.
const CLEAR: u64 = 32;
/// However long iterations take, there is room for so many.
const FEWEST: u64 = 10;

/// How a schedule was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Iterations that had a time to begin.
    pub slots: u64,
    /// Those that began late, as the one before was not over.
    pub late: u64,
    /// Those that were not timed, as their time had come while an agreement was waited for.
    pub lost: u64,
    /// The longest that one began too late, in ns.
    pub worst_ns: u64,
}

impl Kept {
    /// Adds another rank's.
    pub(super) fn merge(&mut self, other: Kept) {
        self.slots += other.slots;
        self.late += other.late;
        self.lost += other.lost;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

/// Times at random distances, the same on every canary.
#[derive(Debug)]
pub(super) struct Schedule {
    clock: SharedClock,
    pace: Pace,
    mean: Nanos,
    random: ChaCha8Rng,
    /// The next time to begin, by this member's clock.
    next: Nanos,
    /// Until then this member waited for something that is not timed.
    excused: Nanos,
    /// When the last iteration began.
    began: Nanos,
    /// When the iteration was over that was under way when this one was due, or the one before.
    blocked: Nanos,
    /// When the iteration before this one began.
    before: Nanos,
    /// Whether this one had come due while this member waited for something that is not timed.
    is_excused: bool,
    /// The longest iteration since the last boundary that was not over when the next was due.
    longest: Nanos,
    pub kept: Kept,
}

impl Schedule {
    pub(super) fn new(clock: SharedClock, pace: Pace, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let zero = Nanos(0);
        Schedule {
            clock,
            pace,
            mean: Nanos(1),
            random,
            next: zero,
            excused: zero,
            began: zero,
            blocked: zero,
            before: zero,
            is_excused: false,
            longest: zero,
            kept: Kept::default(),
        }
    }

    /// The mean distance.
    pub(super) fn mean(&self) -> Nanos {
        self.mean
    }

    /// Decides on the mean distance, where that was left open, by the quickest and the longest that iterations took on any
    /// member, and agrees on a first time that is still to come when the last member hears of it. Collective over `canaries`.
    pub(super) fn begin<G: Group>(
        &mut self,
        canaries: &mut G,
        [quickest, longest]: [Nanos; 2],
        budget: Nanos,
    ) -> Result<()> {
        let begin = canaries.now();
        canaries.start_agreement([0; 4])?;
        canaries.wait_agreement()?;
        let now = canaries.now();
        canaries.start_agreement([self.clock.shared(now), now.since(begin).0, longest.0, quickest.0])?;
        let [latest, slowest, longest, quickest] = canaries.wait_agreement()?;
        self.mean = match self.pace {
            Pace::Mean(mean) => mean,
            Pace::InBursts(mean) => Nanos(mean.0.max(CLEAR * quickest)),
            Pace::Auto => {
                let wanted = (budget.0 / ENOUGH).clamp(SHORTEST * longest, LONGEST * longest);
                Nanos(wanted.min(budget.0 / FEWEST).max(1))
            }
        };
        self.next = self.clock.own(latest + 2 * slowest + self.distance());
        Ok(())
    }

    /// How long this iteration, which was due then, had to wait for one that was under way, and not for those that came due
    /// meanwhile and were sent after it; nothing if it waited only for those, or for what is not timed.
    pub(super) fn waited(&self, due: Nanos) -> Option<Nanos> {
        let is_behind = due.0 <= self.before.0 && due.0 >= self.blocked.0;
        (!self.is_excused && !is_behind).then(|| Nanos(self.blocked.0.saturating_sub(due.0)))
    }

    /// When the next iteration is due.
    pub(super) fn due(&self) -> Nanos {
        self.next
    }

    fn distance(&mut self) -> u64 {
        let uniform: f64 = self.random.random();
        (0.5 * self.mean.0 as f64 * (1.0 - (1.0 - uniform).ln())) as u64
    }

    /// What came due until now, while this member waited for others, is not timed.
    pub(super) fn excuse(&mut self, now: Nanos) {
        self.excused = now;
    }

    /// An iteration is over, at this time.
    pub(super) fn took(&mut self, took: Nanos, free: Nanos) {
        if free.0 > self.next.0 {
            self.longest = self.longest.max(took);
        }
    }

    /// The longest iteration that kept another, since this was last asked for.
    pub(super) fn longest(&mut self) -> Nanos {
        std::mem::take(&mut self.longest)
    }

    /// Distances are longer from now on, where they were too short for what an iteration took, on any member: at most twice as
    /// long.
    pub(super) fn slow_down(&mut self, longest: Nanos, budget: Nanos) {
        if self.pace == Pace::Auto {
            let wanted = (SHORTEST * longest.0).min(2 * self.mean.0).min(budget.0 / FEWEST);
            self.mean.0 = self.mean.0.max(wanted);
        }
    }

    /// Waits for the next time to begin and gives how long the iteration had waited by then: nothing, unless the one before,
    /// which was over at `free`, had kept it. No time at all when it is not to be timed: one that was due before even the one
    /// before had begun waited for the canary itself.
    pub(super) fn slot<G: Group>(&mut self, group: &mut G, free: Nanos) -> Result<Option<Nanos>> {
        let due = self.next;
        self.next = Nanos(due.0 + self.distance());
        self.kept.slots += 1;
        self.is_excused = due.0 <= self.excused.0;
        self.before = self.began;
        if due.0 > self.began.0 {
            self.blocked = free;
        }
        let is_lost = self.is_excused || due.0 <= self.began.0;
        if free.0 <= due.0 {
            group.wait_until(due)?;
        }
        self.began = group.now();
        if is_lost {
            self.kept.lost += 1;
            return Ok(None);
        }
        if free.0 <= due.0 {
            return Ok(Some(Nanos(0)));
        }
        let late = self.began.since(due);
        self.kept.late += 1;
        self.kept.worst_ns = self.kept.worst_ns.max(late.0);
        Ok(Some(late))
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_sim::Simulation;
    use tailback_sim::machine::Machine;
    use tailback_transport::{Error, Rank, Transport};

    use super::*;

    /// When a member's iterations began and how late, and how it kept the schedule.
    type Begun = (Vec<(u64, Option<u64>)>, Kept);

    /// Every member's by the one clock. The iteration of slot 20 takes 40 ms, of which other slots become due; member 1 waits for something else for 40 ms in slot 60.
    fn run(seed: u64) -> Vec<Begun> {
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(3);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..3usize).map(Rank::from).collect();
            let mut group = transport.group(&members, crate::kernel::CLOCK_SEGMENT)?;
            let clock = SharedClock::compare(&mut group)?;
            let mut schedule = Schedule::new(clock, Pace::Mean(MEAN), seed);
            schedule.begin(&mut group, [Nanos(1000); 2], Nanos(1_000_000_000))?;
            let mut begun = Vec::new();
            let mut free = Nanos(0);
            for slot in 0..SLOTS {
                let due = schedule.due();
                let late = schedule.slot(&mut group, free)?;
                let waited = schedule.waited(due);
                // Of those behind a long iteration, each waited until it was over.
                assert!(slot <= 20 || slot > 60 || waited.is_none_or(|of| of.0 < 40_000_000), "{waited:?}");
                assert!(
                    late.is_none_or(|of| of.0 == 0)
                        || late.is_some_and(|of| of.0.abs_diff(waited.map_or(0, |of| of.0)) < 1_000)
                );
                begun.push((clock.shared(group.now()), late.map(|late| late.0)));
                if slot == 20 || (slot, group.rank().0) == (60, 1) {
                    group.wait_until(Nanos(group.now().0 + 40_000_000))?;
                }
                if slot == 60 && group.rank().0 == 1 {
                    schedule.excuse(group.now());
                }
                free = group.now();
            }
            Ok::<_, Error>((begun, schedule.kept))
        });
        finished.unwrap().results
    }

    const MEAN: Nanos = Nanos(4_000_000);
    const SLOTS: usize = 1000;

    #[test]
    fn members_begin_together_and_count_what_kept_them() {
        let all = run(1);
        let due = |rank: usize, slot: usize| {
            let (start, late) = all[rank].0[slot];
            late.map(|late| start - late)
        };
        // Virtual time is one clock: the comparison is exact to what a message takes.
        for slot in 0..SLOTS {
            let times: Vec<u64> = (0..3).filter_map(|rank| due(rank, slot)).collect();
            let (Some(last), Some(first)) = (times.iter().max(), times.iter().min()) else { continue };
            let spread = last - first;
            assert!(spread < 5_000, "slot {slot} was due {spread} ns apart");
        }
        for (rank, (begun, kept)) in all.iter().enumerate() {
            let late = begun.iter().filter(|(_, late)| late.is_some_and(|late| late > 0)).count() as u64;
            let lost = begun.iter().filter(|(_, late)| late.is_none()).count() as u64;
            assert_eq!((kept.slots, kept.late, kept.lost), (SLOTS as u64, late, lost));
            // Some ten were due in 40 ms: the first waited for slot 20, the others for each other.
            assert!((1..4).contains(&late) && kept.worst_ns > 20_000_000, "{kept:?}");
            assert!((3..25).contains(&lost), "{kept:?}");
            assert_eq!(lost > 10, rank == 1, "{kept:?}");
        }
    }

    #[test]
    fn distances_are_half_fixed_half_exponential_and_drawn_anew() {
        let distances = |seed: u64| -> Vec<f64> {
            let begun = &run(seed)[0].0;
            let due: Vec<Option<u64>> = begun.iter().map(|(start, late)| Some(start - (*late)?)).collect();
            due.windows(2).filter_map(|pair| Some((pair[1]? - pair[0]?) as f64 / MEAN.0 as f64)).collect()
        };
        let (one, other) = (distances(1), distances(2));
        assert_ne!(one[..10], other[..10]);
        for distances in [one, other] {
            let count = distances.len() as f64;
            let mean = distances.iter().sum::<f64>() / count;
            // As far as 1000 draws tell: four standard errors.
            assert!((mean - 1.0).abs() < 4.0 * 0.5 / count.sqrt(), "{mean}");
            let below = |limit: f64| distances.iter().filter(|distance| **distance < limit).count() as f64 / count;
            assert!((below(0.75) - (1.0 - (-0.5f64).exp())).abs() < 4.0 * (0.24 / count).sqrt(), "{}", below(0.75));
            assert_eq!(below(0.499), 0.0);
        }
    }

    #[test]
    fn a_pace_left_open_follows_the_iteration_and_the_budget() {
        let job = Simulation::new(Machine::load("small").unwrap()).ranks(2);
        let finished = job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let mut group = transport.group(&[Rank(0), Rank(1)], crate::kernel::CLOCK_SEGMENT)?;
            let clock = SharedClock::compare(&mut group)?;
            let mut mean = |pace: Pace, iteration: u64| -> Result<u64> {
                let mut schedule = Schedule::new(clock, pace, 1);
                schedule.begin(&mut group, [Nanos(iteration / 10), Nanos(iteration)], Nanos(1_000_000))?;
                Ok(schedule.mean().0)
            };
            let of_bursts = Pace::InBursts(Nanos(500));
            let auto = [mean(Pace::Auto, 1_000)?, mean(Pace::Auto, 300_000)?, mean(Pace::Auto, 10)?];
            Ok::<_, Error>((auto, [mean(of_bursts, 1_000)?, mean(of_bursts, 10_000)?]))
        });
        assert_eq!(finished.unwrap().results, [([5_000, 100_000, 200], [3_200, 32_000]); 2]);
    }

    #[test]
    fn distances_that_were_too_short_grow() {
        let mut schedule = Schedule::new(SharedClock::default(), Pace::Auto, 1);
        (schedule.mean, schedule.next) = (Nanos(1_000), Nanos(50_000));
        schedule.took(Nanos(9_000), Nanos(49_000));
        assert_eq!(schedule.longest(), Nanos(0), "it was over in time");
        schedule.took(Nanos(9_000), Nanos(51_000));
        let longest = schedule.longest();
        assert_eq!((longest, schedule.longest()), (Nanos(9_000), Nanos(0)));
        let mut mean = |budget: u64| {
            schedule.slow_down(longest, Nanos(budget));
            schedule.mean().0
        };
        assert_eq!([mean(10_000_000), mean(10_000_000), mean(50_000)], [2_000, 4_000, 5_000], "at most doubled");
        assert_eq!([mean(10_000_000), mean(10_000_000), mean(10_000_000)], [10_000, 18_000, 18_000], "and long enough");
        schedule.pace = Pace::Mean(Nanos(7));
        schedule.slow_down(Nanos(1_000_000), Nanos(1 << 40));
        assert_eq!(schedule.mean().0, 18_000, "a pace that was asked for stays");
    }
}
