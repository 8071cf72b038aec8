//! Rings: the order in which a slice's members are neighbours.

use tailback_transport::Rank;

use super::shuffle::{Stream, shuffle, stream};

/// The members left and right of one's own place in a ring, as positions in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The one before.
    pub left: Rank,
    /// The one after.
    pub right: Rank,
}

/// The ring in group order.
pub fn natural_ring(size: usize, me: Rank) -> Neighbours {
    Neighbours { left: Rank::from((me.index() + size - 1) % size), right: Rank::from((me.index() + 1) % size) }
}

/// This member's neighbours in each of `rings` random rings of its slice. Only these are kept, not the rings.
pub fn random_rings(seed: u64, slice: usize, size: usize, me: Rank, rings: usize) -> Vec<Neighbours> {
    let mut order: Vec<u32> = Vec::with_capacity(size);
    (0..rings)
        .map(|ring| {
            order.clear();
            order.extend(0..size as u32);
            shuffle(&mut order, &mut stream(seed, Stream::Ring { slice: slice as u32, ring: ring as u32 }));
            let place = order.iter().position(|&member| member == me.0).expect("the ring holds every member");
            let Neighbours { left, right } = natural_ring(size, Rank::from(place));
            Neighbours { left: Rank(order[left.index()]), right: Rank(order[right.index()]) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn members_agree_on_one_cycle(seed: u64, slice in 0usize..9, size in 1usize..40) {
            let all: Vec<Vec<Neighbours>> =
                (0..size).map(|me| random_rings(seed, slice, size, Rank::from(me), 3)).collect();
            for ring in [0, 1, 2] {
                let (mut at, mut steps) = (Rank(0), 0);
                loop {
                    let next = all[at.index()][ring].right;
                    prop_assert_eq!(all[next.index()][ring].left, at);
                    (at, steps) = (next, steps + 1);
                    if at == Rank(0) { break; }
                }
                prop_assert_eq!(steps, size);
            }
        }
    }

    #[test]
    fn seeds_slices_and_rings_differ() {
        let ring = |seed, slice| random_rings(seed, slice, 64, Rank(0), 2);
        assert_eq!(ring(1, 0), ring(1, 0));
        assert_ne!(ring(1, 0), ring(2, 0));
        assert_ne!(ring(1, 0), ring(1, 1));
        assert_ne!(ring(1, 0)[0], ring(1, 0)[1]);
    }
}
