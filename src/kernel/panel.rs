//! A panel handed along as HPL does: from every member in turn to all others, up the same tree.

use tailback_hpcc::Tree;
use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

/// One broadcast from each member, one after the other.
pub struct PanelBroadcast {
    bytes: usize,
    line: Vec<Rank>,
    me: usize,
}

impl PanelBroadcast {
    /// Where a root's bytes are here.
    fn span(&self, root: usize) -> Span {
        Span::new(if root == self.me { 0 } else { self.bytes }, self.bytes)
    }
}

/// Segment: [sent | received].
impl Kernel for PanelBroadcast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        PanelBroadcast { bytes: shape.bytes, line: (0..size).map(Rank::from).collect(), me: rank.index() }
    }

    fn segment(shape: Shape, _size: usize) -> usize {
        2 * shape.bytes
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        for root in 0..self.line.len() {
            let tree = Tree { line: &self.line, root, me: self.me };
            tree.receive(group, Tag(0), self.span(root))?;
            group.wait_all()?;
            tree.send(group, Tag(0), self.span(root))?;
            group.wait_all()?;
        }
        Ok(())
    }

    /// What came last stands: the last of the others' bytes.
    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let last = (0..self.line.len()).rev().find(|root| *root != self.me);
        last.map_or(Ok(()), |root| check_pattern(group, self.line[root], self.bytes, self.bytes))
    }

    fn payload(&self) -> usize {
        self.bytes * (self.line.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use tailback_engine::Collective;
    use tailback_testkit::loopback::{Fault, Job, Transfer};
    use tailback_transport::Transport;

    use super::*;

    fn run(job: Job, size: usize) -> Result<Vec<usize>> {
        let shape = Shape { bytes: 1000, window: 1 };
        job.run(|_, raw| {
            let mut transport = Collective::new(raw);
            let members: Vec<Rank> = (0..size).map(Rank::from).collect();
            let mut group = transport.group(&members, PanelBroadcast::segment(shape, size))?;
            let kernel = PanelBroadcast::new(shape, size, group.rank());
            let ring = Neighbours { left: group.rank(), right: group.rank() };
            kernel.fill(&mut group)?;
            (0..3).try_for_each(|_| kernel.iterate(&mut group, ring))?;
            kernel.check(&mut group, ring)?;
            Ok(kernel.payload())
        })
    }

    #[test]
    fn everyone_has_the_last_members_bytes() {
        for size in [1, 2, 3, 5, 8] {
            assert_eq!(run(Job::new(size), size).unwrap(), vec![1000 * (size - 1); size]);
        }
    }

    /// Spoils what rank 3 sends, of its own or of others.
    struct BadCard;

    impl Fault for BadCard {
        fn corrupt(&self, transfer: Transfer, payload: &mut [u8]) {
            if transfer.from == Rank(3) && payload.len() == 1000 {
                payload[500] ^= 4;
            }
        }
    }

    #[test]
    fn a_spoilt_panel_is_found() {
        assert!(run(Job::new(4).fault(BadCard), 4).unwrap_err().to_string().contains("byte 500"));
    }
}
