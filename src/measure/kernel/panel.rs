//! A panel handed along as HPL does: from every member in turn to all others, up the same tree.

use tailback_transport::arranged::Tree;
use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern};
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
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        PanelBroadcast { bytes: sizes.bytes, line: (0..size).map(Rank::from).collect(), me: rank.index() }
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        2 * sizes.bytes
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
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_on_loopback};
    use super::*;

    #[test]
    fn everyone_has_the_last_members_bytes() {
        for size in [1, 2, 3, 5, 8] {
            assert_eq!(run_on_loopback::<PanelBroadcast>(Job::new(size), size).unwrap(), vec![1000 * (size - 1); size]);
        }
    }

    #[test]
    fn a_corrupted_panel_is_found() {
        // Of two, rank 1's panel is the last that rank 0 receives.
        let found = run_on_loopback::<PanelBroadcast>(Job::new(2).fault(BadCard), 2);
        assert!(found.unwrap_err().to_string().contains("byte 77"));
    }
}
