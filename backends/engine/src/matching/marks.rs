//! Over rails: how many of a member's accesses on each rail belong to the first so many of all.
//!
//! All accesses have a part on the home rail, so those are counted; a mark per access that has parts elsewhere says how many
//! the other rails had seen by then.

use std::collections::VecDeque;

use super::rails::MOST_RAILS;

/// Accesses on each rail.
pub(super) type Counts = [u64; MOST_RAILS];

/// So many on one rail, and nothing on the others.
pub(super) fn of_home(home: usize, count: u64) -> Counts {
    let mut counts = Counts::default();
    counts[home] = count;
    counts
}

/// The marks of accesses that are not known to be over, in order.
#[derive(Debug, Default)]
pub(super) struct Marks {
    open: VecDeque<Counts>,
}

impl Marks {
    /// An access was made on all rails, which had these counts then.
    pub(super) fn add(&mut self, counts: Counts) {
        self.open.push_back(counts);
    }

    /// What has to be over on each rail for the first `count` accesses of rail `home` to be: zeros where nothing is left.
    pub(super) fn of_first(&self, home: usize, count: u64) -> Counts {
        let before = self.open.partition_point(|mark| mark[home] <= count);
        if before == 0 {
            return of_home(home, count);
        }
        let mut counts = self.open[before - 1];
        counts[home] = count;
        counts
    }

    /// The first `count` accesses of rail `home` are over.
    pub(super) fn are_over(&mut self, home: usize, count: u64) {
        while self.open.front().is_some_and(|mark| mark[home] <= count) {
            self.open.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_rails_have_to_do_what_they_had_been_given_by_then() {
        let counts = |list: [u64; 3]| {
            let mut counts = Counts::default();
            counts[..3].copy_from_slice(&list);
            counts
        };
        let mut marks = Marks::default();
        // On rail 1: short, long, short, long. Rail 2 counts confirmations too.
        marks.add(counts([1, 2, 1]));
        marks.add(counts([2, 4, 5]));
        assert_eq!(marks.of_first(1, 1), counts([0, 1, 0]));
        assert_eq!(marks.of_first(1, 2), counts([1, 2, 1]));
        assert_eq!(marks.of_first(1, 3), counts([1, 3, 1]));
        assert_eq!(marks.of_first(1, 4), counts([2, 4, 5]));
        marks.are_over(1, 3);
        assert_eq!(marks.of_first(1, 3), counts([0, 3, 0]), "known to be over");
        assert_eq!(marks.of_first(1, 4), counts([2, 4, 5]));
    }
}
