//! What applications do, by HPC Challenge's example: messages to many at once, all posted before any is waited for.
//!
//! Unlike `a2a`, which goes pair by pair, nothing keeps the network from having all of an iteration's messages at a time.

use std::marker::PhantomData;

use tailback_transport::arranged::Grid;
use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern, fill_pattern};
use crate::layout::Neighbours;

/// Who exchanges with whom, and how much.
pub trait Pattern {
    /// Whom a member sends to.
    fn peers(size: usize, rank: usize) -> Vec<Rank>;

    /// Whom it receives from: the same, unless the pattern goes one way.
    fn senders(size: usize, rank: usize) -> Vec<Rank> {
        Self::peers(size, rank)
    }

    /// The length of each message.
    fn message(bytes: usize, _size: usize) -> usize {
        bytes
    }
}

/// As PTRANS does on a grid of blocks: with those that have the other half of one's blocks of the transpose. On a square
/// grid that is one, and those on the diagonal have nobody.
pub struct Transposed;

impl Pattern for Transposed {
    fn peers(size: usize, rank: usize) -> Vec<Rank> {
        let Grid { rows, columns } = Grid::of(size);
        let (row, column) = (rank / columns, rank % columns);
        let common = (1..=rows).rev().find(|by| rows.is_multiple_of(*by) && columns.is_multiple_of(*by)).unwrap_or(1);
        // Block (I, J) goes to who has (J, I): for some I and J of this rank, if the remainders agree.
        let wants =
            |peer: &usize| (peer / columns) % common == column % common && (peer % columns) % common == row % common;
        (0..size).filter(|peer| *peer != rank && wants(peer)).map(Rank::from).collect()
    }
}

/// As a transform of all ranks does when it transposes: with everyone.
pub struct Everyone;

impl Pattern for Everyone {
    fn peers(size: usize, rank: usize) -> Vec<Rank> {
        (1..size).map(|step| Rank::from((rank + step) % size)).collect()
    }
}

/// As RandomAccess does: with everyone, an equal part of the updates that a rank may hold back.
pub struct Updates;

impl Pattern for Updates {
    fn peers(size: usize, rank: usize) -> Vec<Rank> {
        Everyone::peers(size, rank)
    }

    fn message(bytes: usize, size: usize) -> usize {
        const UPDATE: usize = 8;
        bytes.div_ceil(size.saturating_sub(1).max(1)).next_multiple_of(UPDATE)
    }
}

/// One message to each peer of a pattern, and from each sender.
pub struct AtOnce<P> {
    /// Of each message.
    bytes: usize,
    peers: Vec<Rank>,
    senders: Vec<Rank>,
    pattern: PhantomData<P>,
}

/// Segment: [sent | from the first sender | from the second | ...].
impl<P: Pattern> Kernel for AtOnce<P> {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        let (peers, senders) = (P::peers(size, rank.index()), P::senders(size, rank.index()));
        AtOnce { bytes: P::message(sizes.bytes, size), peers, senders, pattern: PhantomData }
    }

    fn segment(sizes: Sizes, size: usize) -> usize {
        P::message(sizes.bytes, size) * size.max(1)
    }

    fn fill<G: Group>(&self, group: &mut G, _: Sizes) {
        fill_pattern(group, 0, self.bytes);
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for (at, sender) in self.senders.iter().enumerate() {
            group.post_recv(*sender, Tag(0), Span::new(self.bytes * (1 + at), self.bytes))?;
        }
        for peer in &self.peers {
            group.post_send(*peer, Tag(0), Span::new(0, self.bytes))?;
        }
        group.wait_all()
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let received = self.senders.iter().enumerate();
        received
            .into_iter()
            .try_for_each(|(at, sender)| check_pattern(group, *sender, self.bytes * (1 + at), self.bytes))
    }

    fn payload(&self) -> usize {
        self.bytes * self.peers.len()
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_on_loopback as run};
    use super::*;

    fn peers(size: usize, rank: usize) -> Vec<u32> {
        Transposed::peers(size, rank).into_iter().map(|peer| peer.0).collect()
    }

    #[test]
    fn transposes_pair_members_both_ways() {
        // 2 x 2: across the diagonal. 3 x 3 likewise.
        assert_eq!([0, 1, 2, 3].map(|rank| peers(4, rank)), [vec![], vec![2], vec![1], vec![]]);
        assert_eq!((peers(9, 1), peers(9, 5), peers(9, 4)), (vec![3], vec![7], vec![]));
        // 1 x 3: with everyone, as rows and columns have nothing in common.
        assert_eq!(peers(3, 1), [0, 2]);
        for size in 1..40 {
            for rank in 0..size {
                for peer in Transposed::peers(size, rank) {
                    assert!(Transposed::peers(size, peer.index()).contains(&Rank::from(rank)), "{size}: {rank} {peer}");
                }
            }
        }
    }

    #[test]
    fn updates_are_shared_out() {
        assert_eq!([1, 2, 3, 9, 2000].map(|size| Updates::message(8192, size)), [8192, 8192, 4096, 1024, 8]);
    }

    #[test]
    fn data_arrives_on_any_number_of_members() {
        for size in [1, 2, 3, 4, 6, 8] {
            run::<AtOnce<Transposed>>(Job::new(size), size).unwrap();
            assert_eq!(run::<AtOnce<Everyone>>(Job::new(size), size).unwrap(), vec![1000 * (size - 1); size]);
            run::<AtOnce<Updates>>(Job::new(size), size).unwrap();
        }
    }

    #[test]
    fn corruption_is_detected() {
        for found in [
            run::<AtOnce<Transposed>>(Job::new(4).fault(BadCard), 4),
            run::<AtOnce<Everyone>>(Job::new(4).fault(BadCard), 4),
            run::<AtOnce<Updates>>(Job::new(4).fault(BadCard), 4),
        ] {
            assert!(found.unwrap_err().to_string().contains("byte 77 of"));
        }
    }
}
