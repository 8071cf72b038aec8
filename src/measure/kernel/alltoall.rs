//! All-to-all as pairwise exchanges: in step i everyone trades with one partner.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern};
use crate::layout::Neighbours;

/// n - 1 exchanges; partners are rank XOR i when n is a power of two, else +i to send and -i to receive.
pub struct AllToAll {
    bytes: usize,
    size: usize,
    rank: usize,
}

impl AllToAll {
    /// Whom to send to and whom to receive from in a step.
    fn partners(&self, step: usize) -> (Rank, Rank) {
        if self.size.is_power_of_two() {
            let partner = Rank::from(self.rank ^ step);
            return (partner, partner);
        }
        (Rank::from((self.rank + step) % self.size), Rank::from((self.rank + self.size - step) % self.size))
    }
}

/// Segment: [sent | from member 0 | from member 1 | ...].
impl Kernel for AllToAll {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        AllToAll { bytes: sizes.bytes, size, rank: rank.index() }
    }

    fn segment(sizes: Sizes, size: usize) -> usize {
        sizes.bytes * (1 + size)
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for step in 1..self.size {
            let (to, from) = self.partners(step);
            group.post_recv(from, Tag(0), Span::new(self.bytes * (1 + from.index()), self.bytes))?;
            group.post_send(to, Tag(0), Span::new(0, self.bytes))?;
            group.wait_all()?;
        }
        Ok(())
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for step in 1..self.size {
            let (_, from) = self.partners(step);
            check_pattern(group, from, self.bytes * (1 + from.index()), self.bytes)?;
        }
        Ok(())
    }

    fn payload(&self) -> usize {
        self.bytes * (self.size - 1)
    }
}
