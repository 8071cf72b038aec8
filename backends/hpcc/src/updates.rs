//! RandomAccess of all ranks: updates of one table, of which each rank has a part, made by all of them at once.
//!
//! Every rank walks its own part of the sequence and keeps what it may not apply itself in a bucket for each owner, never
//! more than [`LOOK_AHEAD`] updates in all. In a round it sends each other rank one message of fixed length: how many
//! updates are in it, whether there are more to come, and the updates. What does not fit waits for the next round. All
//! ranks hear everyone's word on what is left, so all end after the same round.

use std::time::Duration;

use tailback_transport::{Group, Monitor, Nanos, Rank, Result, Span, Tag};

use crate::LOOK_AHEAD;
use crate::random_access::{UPDATES_PER_WORD, next, start};
use crate::share::{WORD, largest, others, sum};

const TAG: Tag = Tag(1);
/// Bits of a message's first word above the number of updates in it.
const MORE: u64 = 1 << 32;
const LATE: u64 = 1 << 33;

/// What a run did, over all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Updates made.
    pub updates: f64,
    /// The slowest rank's time.
    pub seconds: f64,
    /// Whether time was up before all were made.
    pub cut: bool,
}

impl Outcome {
    /// 10^9 updates a second.
    #[must_use]
    pub fn gups(&self) -> f64 {
        self.updates / self.seconds * 1e-9
    }
}

/// One rank's part of the table.
#[derive(Debug)]
pub struct Updates {
    /// Words of the whole table, a power of two.
    total: usize,
    owners: Owners,
    me: Rank,
    words: Vec<u64>,
    /// For each rank, what it is still to be told.
    buckets: Vec<Vec<u64>>,
    /// How many updates this rank made.
    made: u64,
    limit: u64,
}

impl Updates {
    /// A table of `total` words over `ranks`. Every word has its own index.
    ///
    /// # Panics
    /// If `total` is no power of two.
    #[must_use]
    pub fn new(total: usize, ranks: usize, me: Rank) -> Self {
        assert!(total.is_power_of_two(), "{total} words");
        let owners = Owners { total, ranks };
        let (first, end) = (owners.first(me.index()), owners.first(me.index() + 1));
        let updates = UPDATES_PER_WORD * total as u64;
        let limit = share(updates, ranks, me.index() + 1) - share(updates, ranks, me.index());
        let words = (first as u64..end as u64).collect();
        Updates { total, owners, me, words, buckets: vec![Vec::new(); ranks], made: 0, limit }
    }

    /// Bytes of segment that a rank needs: what it sends each other, then what each sends it.
    #[must_use]
    pub fn segment(ranks: usize) -> usize {
        (2 * ranks * message(ranks) * WORD).max(4 * WORD)
    }

    /// Makes the updates, or as many as `within` allows.
    ///
    /// # Errors
    /// What the group says.
    pub fn run<G: Group>(&mut self, group: &mut G, within: Duration, monitor: &Monitor) -> Result<Outcome> {
        group.barrier()?;
        let (begin, within) = (group.now(), Nanos::from(within));
        let limit = self.limit;
        self.walk(group, limit, 0, &mut |group| {
            monitor.tick();
            group.now().since(begin) >= within
        })?;
        let seconds = largest(group, group.now().since(begin).as_secs_f64())?;
        let mut made = [self.made as f64, f64::from(u8::from(self.made < self.limit))];
        sum(group, 0, &mut made)?;
        Ok(Outcome { updates: made[0], seconds, cut: made[1] > 0.0 })
    }

    /// Takes every update back and gives the part of the words that are not as before. Messages carry the updates in
    /// another form than those of the run, so that what spoils both alike does not cancel.
    ///
    /// # Errors
    /// What the group says.
    pub fn errors<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<f64> {
        const ROTATED: u32 = 23;
        let made = self.made;
        self.walk(group, made, ROTATED, &mut |_| {
            monitor.tick();
            false
        })?;
        let first = self.owners.first(self.me.index()) as u64;
        let wrong = self.words.iter().zip(first..).filter(|&(&word, index)| word != index).count();
        let mut wrong = [wrong as f64];
        sum(group, 0, &mut wrong)?;
        Ok(wrong[0] / self.total as f64)
    }

    /// Walks `count` numbers from the beginning of this rank's part of the sequence, or until anyone is late.
    fn walk<G: Group>(
        &mut self,
        group: &mut G,
        count: u64,
        rotated: u32,
        late: &mut dyn FnMut(&G) -> bool,
    ) -> Result<()> {
        let ranks = group.size();
        let mut number = start(share(UPDATES_PER_WORD * self.total as u64, ranks, self.me.index()));
        let (mut left, mut scratch) = (count, vec![0; message(ranks)]);
        self.made = 0;
        loop {
            left -= self.collect(&mut number, left);
            let is_late = late(group);
            let held: usize = self.buckets.iter().map(Vec::len).sum();
            let (go_on, anyone_late) = if ranks == 1 {
                (left > 0, is_late)
            } else {
                self.round(group, (left > 0 || held > 0, is_late), rotated, &mut scratch)?
            };
            if anyone_late {
                left = 0;
            }
            if !go_on {
                return Ok(());
            }
        }
    }

    /// Takes numbers until nearly as many are held as may be, and applies those of its own. How many it took.
    ///
    /// All go to buckets first, its own too: which rank a number belongs to is a coin toss that no processor foresees.
    fn collect(&mut self, number: &mut u64, left: u64) -> u64 {
        const ENOUGH: usize = LOOK_AHEAD / 8 * 7;
        let (mask, me) = (self.total - 1, self.me.index());
        let first = self.owners.first(me);
        let mut held: usize = self.buckets.iter().map(Vec::len).sum();
        let mut taken = 0;
        // A rank by itself holds nothing back: it looks up now and then.
        let most = left.min(64 * LOOK_AHEAD as u64);
        while taken < most && held < ENOUGH {
            let room = (most - taken).min((LOOK_AHEAD - held) as u64);
            for _ in 0..room {
                *number = next(*number);
                self.buckets[self.owners.of(*number as usize & mask)].push(*number);
            }
            taken += room;
            held += room as usize - self.buckets[me].len();
            for update in self.buckets[me].drain(..) {
                self.words[(update as usize & mask) - first] ^= update;
            }
        }
        self.made += taken;
        taken
    }

    /// A message to and from each other rank. Whether anyone, this rank included, has more to say, and is late.
    fn round<G: Group>(
        &mut self,
        group: &mut G,
        (more, late): (bool, bool),
        rotated: u32,
        scratch: &mut [u64],
    ) -> Result<(bool, bool)> {
        let (me, ranks, len) = (self.me, group.size(), scratch.len());
        let span = |place: usize| Span::new(place * len * WORD, len * WORD);
        let (mut anyone, mut anyone_late) = (more, late);
        for peer in others(me, ranks) {
            group.post_recv(peer, TAG, span(ranks + peer.index()))?;
        }
        for peer in others(me, ranks) {
            let bucket = &mut self.buckets[peer.index()];
            let count = bucket.len().min(len - 1);
            scratch[0] = count as u64 | if more { MORE } else { 0 } | if late { LATE } else { 0 };
            let sent = bucket.drain(bucket.len() - count..);
            scratch[1..].iter_mut().zip(sent).for_each(|(word, update)| *word = update.rotate_left(rotated));
            group.write(span(peer.index()).offset, bytemuck::cast_slice(&scratch[..=count]));
            group.post_send(peer, TAG, span(peer.index()))?;
        }
        group.wait_all()?;
        let (mask, first, mine) = (self.total - 1, self.owners.first(me.index()), self.words.len());
        for peer in others(me, ranks) {
            group.read(span(ranks + peer.index()).offset, bytemuck::cast_slice_mut(scratch));
            anyone |= scratch[0] & MORE != 0;
            anyone_late |= scratch[0] & LATE != 0;
            let count = (scratch[0] & (MORE - 1)) as usize;
            for update in scratch[1..].iter().take(count).map(|word| word.rotate_right(rotated)) {
                // An update that was spoilt may point elsewhere: it is lost, and the check counts it.
                let at = (update as usize & mask).wrapping_sub(first);
                if at < mine {
                    self.words[at] ^= update;
                }
            }
        }
        Ok((anyone, anyone_late))
    }
}

/// Words of a message: a head, and room for more than the even share of what a rank may hold.
fn message(ranks: usize) -> usize {
    let even = LOOK_AHEAD / ranks.saturating_sub(1).max(1);
    (1 + even + 4 * even.isqrt().max(2)).min(1 + LOOK_AHEAD)
}

/// Where the part of the `at`-th of `ranks` begins.
fn share(total: u64, ranks: usize, at: usize) -> u64 {
    (u128::from(total) * at as u128 / ranks as u128) as u64
}

/// Who has which words: equal parts where ranks are a power of two, nearly equal ones elsewhere.
#[derive(Clone, Copy, Debug)]
struct Owners {
    total: usize,
    ranks: usize,
}

impl Owners {
    fn first(self, rank: usize) -> usize {
        (self.total * rank).div_ceil(self.ranks)
    }

    #[inline]
    fn of(self, index: usize) -> usize {
        // The total is a power of two: no division.
        (index * self.ranks) >> self.total.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::{Fault, Job, Transfer};
    use tailback_transport::{Error, Transport};

    use super::*;
    use crate::ERROR_LIMIT;

    const LONG: Duration = Duration::from_secs(3600);

    fn run(job: Job, ranks: usize, total: usize, within: Duration) -> Result<Vec<(Outcome, f64)>> {
        job.run(|_, raw| {
            let members: Vec<Rank> = (0..ranks).map(Rank::from).collect();
            let mut group = Collective::new(raw).group(&members, Updates::segment(ranks))?;
            let mut updates = Updates::new(total, ranks, group.rank());
            let outcome = updates.run(&mut group, within, &Monitor::new())?;
            Ok::<_, Error>((outcome, updates.errors(&mut group, &Monitor::new())?))
        })
    }

    #[test]
    fn owners_have_all_words_once() {
        for (total, ranks) in [(64, 1), (64, 2), (64, 3), (1024, 6), (256, 7)] {
            let owners = Owners { total, ranks };
            for index in 0..total {
                let owner = owners.of(index);
                assert!((owners.first(owner)..owners.first(owner + 1)).contains(&index), "{index} of {total}, {ranks}");
            }
        }
    }

    #[test]
    fn every_update_arrives_on_any_number_of_ranks() {
        for ranks in [1, 2, 3, 4, 6, 8] {
            let total = 1 << 12;
            for (outcome, errors) in run(Job::new(ranks), ranks, total, LONG).unwrap() {
                assert_eq!((outcome.updates, outcome.cut, errors), (4.0 * total as f64, false, 0.0), "{ranks}");
                assert!(outcome.gups() > 0.0);
            }
        }
    }

    #[test]
    fn the_table_is_the_one_a_single_rank_makes() {
        let total = 1 << 10;
        let tables = |ranks: usize| -> Vec<u64> {
            let parts = Job::new(ranks).run(|_, raw| {
                let members: Vec<Rank> = (0..ranks).map(Rank::from).collect();
                let mut group = Collective::new(raw).group(&members, Updates::segment(ranks))?;
                let mut updates = Updates::new(total, ranks, group.rank());
                updates.run(&mut group, LONG, &Monitor::new())?;
                Ok::<_, Error>(updates.words)
            });
            parts.unwrap().concat()
        };
        let alone = tables(1);
        assert_ne!(alone, (0..total as u64).collect::<Vec<_>>());
        assert_eq!(tables(2), alone);
        assert_eq!(tables(3), alone);
    }

    #[test]
    fn time_ends_it_and_what_was_done_is_checked() {
        let all = run(Job::new(3), 3, 1 << 16, Duration::ZERO).unwrap();
        let (outcome, errors) = all[0];
        assert!(outcome.cut && outcome.updates > 0.0 && outcome.updates < 4.0 * f64::from(1 << 16), "{outcome:?}");
        assert_eq!(errors, 0.0);
    }

    /// Flips a bit of the tenth update of every message that rank 1 sends.
    struct BadCard;

    impl Fault for BadCard {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            if transfer.from == Rank(1) && payload.len() > 1000 {
                payload[10 * WORD + 3] ^= 1;
            }
        }
    }

    #[test]
    fn updates_that_were_spoilt_are_counted() {
        // One in some 500 is: so few are left over that the limit does not catch it, and the figure does.
        let all = run(Job::new(2).fault(BadCard), 2, 1 << 14, LONG).unwrap();
        assert!(all.iter().all(|(_, errors)| *errors > 0.001), "{all:?}");
        struct Worse;
        impl Fault for Worse {
            fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
                if transfer.from == Rank(1) && payload.len() > 1000 {
                    payload.iter_mut().skip(2 * WORD).step_by(WORD).for_each(|byte| *byte ^= 8);
                }
            }
        }
        let all = run(Job::new(2).fault(Worse), 2, 1 << 14, LONG).unwrap();
        assert!(all.iter().all(|(_, errors)| *errors > ERROR_LIMIT), "{all:?}");
    }
}
