//! Traffic in which everyone sends to one other and receives from one other: no end is shared, so where it is slow the network
//! between is to blame. Worst cases of routing are of this kind.

use tailback_transport::Rank;

use super::at_once::Pattern;
use crate::layout::order;

/// Of the permutations that a team's size draws. Placements deal other nodes to a team's members.
const SEED: u64 = 0x7065_726d;

/// A random permutation in which nobody sends to himself: one cycle through all members in random order.
pub struct Permutation;

impl Permutation {
    /// The member that comes so many after `rank` in the cycle.
    fn along(size: usize, rank: usize, steps: usize) -> Vec<Rank> {
        let cycle = order(SEED, size as u64, size);
        let place = cycle.iter().position(|of| *of == rank).unwrap_or_default();
        if size > 1 { vec![Rank::from(cycle[(place + steps) % size])] } else { Vec::new() }
    }
}

impl Pattern for Permutation {
    fn peers(size: usize, rank: usize) -> Vec<Rank> {
        Self::along(size, rank, 1)
    }

    fn senders(size: usize, rank: usize) -> Vec<Rank> {
        Self::along(size, rank, size - 1)
    }
}

/// A shift by just under half of the team, as far as the short way around a ring goes: on rings and tori, and between groups
/// whose nodes are numbered one after the other, all messages go the same way and load the same links.
pub struct Tornado;

impl Tornado {
    fn shift(size: usize) -> usize {
        (size.div_ceil(2) - 1).max(1)
    }
}

impl Pattern for Tornado {
    fn peers(size: usize, rank: usize) -> Vec<Rank> {
        if size > 1 { vec![Rank::from((rank + Self::shift(size)) % size)] } else { Vec::new() }
    }

    fn senders(size: usize, rank: usize) -> Vec<Rank> {
        if size > 1 { vec![Rank::from((rank + size - Self::shift(size)) % size)] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::at_once::AtOnce;
    use super::super::traits::{BadCard, run_on_loopback as run};
    use super::*;

    fn is_one_to_one<P: Pattern>(size: usize) {
        let mut reached = vec![false; size];
        for rank in 0..size {
            let [to] = P::peers(size, rank)[..] else { panic!("{size}: {rank} sends to one") };
            assert!(to.index() != rank && !reached[to.index()], "{size}: {rank} sends to {to:?}");
            assert_eq!(P::senders(size, to.index()), [Rank::from(rank)]);
            reached[to.index()] = true;
        }
    }

    #[test]
    fn everyone_sends_to_one_and_receives_from_one() {
        for size in 2..40 {
            is_one_to_one::<Permutation>(size);
            is_one_to_one::<Tornado>(size);
        }
        assert!(Permutation::peers(1, 0).is_empty() && Tornado::peers(1, 0).is_empty());
        assert_eq!([2, 3, 7, 8, 9].map(Tornado::shift), [1, 1, 3, 3, 4]);
        let shifts: std::collections::HashSet<usize> =
            (0..16).map(|rank| (Permutation::peers(16, rank)[0].index() + 16 - rank) % 16).collect();
        assert!(shifts.len() > 4, "a permutation is no shift: {shifts:?}");
    }

    #[test]
    fn data_arrives_and_corruption_is_found() {
        for size in [1, 2, 3, 7, 8] {
            let sent = vec![1000 * usize::from(size > 1); size];
            assert_eq!(run::<AtOnce<Permutation>>(Job::new(size), size).unwrap(), sent);
            assert_eq!(run::<AtOnce<Tornado>>(Job::new(size), size).unwrap(), sent);
        }
        for found in [
            run::<AtOnce<Permutation>>(Job::new(3).fault(BadCard), 3),
            run::<AtOnce<Tornado>>(Job::new(3).fault(BadCard), 3),
        ] {
            assert!(found.unwrap_err().to_string().contains("byte 77 of"));
        }
    }
}
