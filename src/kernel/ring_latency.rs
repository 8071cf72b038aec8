//! Random-ring latency: a small exchange with both neighbours, by messages or by gets.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

const RIGHTWARD: Tag = Tag(0);
const LEFTWARD: Tag = Tag(1);

/// Two receives and two sends, one with each neighbour, then a wait for all.
pub struct RingLatency {
    bytes: usize,
}

/// Segment: [sent | from left | from right].
impl Kernel for RingLatency {
    const PARTS: u64 = 2;

    fn new(shape: Shape, _size: usize, _rank: Rank) -> Self {
        RingLatency { bytes: shape.bytes }
    }

    fn segment(shape: Shape, _size: usize) -> usize {
        3 * shape.bytes
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        let span = |place: usize| Span::new(place * self.bytes, self.bytes);
        group.post_recv(ring.left, RIGHTWARD, span(1))?;
        group.post_recv(ring.right, LEFTWARD, span(2))?;
        group.post_send(ring.right, RIGHTWARD, span(0))?;
        group.post_send(ring.left, LEFTWARD, span(0))?;
        group.wait_all()
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        check_pattern(group, ring.left, self.bytes, self.bytes)?;
        check_pattern(group, ring.right, 2 * self.bytes, self.bytes)
    }

    fn payload(&self) -> usize {
        2 * self.bytes
    }
}

/// A get from each neighbour, then a flush of both.
pub struct RingGetLatency {
    bytes: usize,
}

/// Segment: [served | from left | from right].
impl Kernel for RingGetLatency {
    const PARTS: u64 = 2;

    fn new(shape: Shape, _size: usize, _rank: Rank) -> Self {
        RingGetLatency { bytes: shape.bytes }
    }

    fn segment(shape: Shape, _size: usize) -> usize {
        3 * shape.bytes
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        group.get(ring.left, Span::new(self.bytes, self.bytes), 0)?;
        group.get(ring.right, Span::new(2 * self.bytes, self.bytes), 0)?;
        group.flush(ring.left)?;
        group.flush(ring.right)
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        check_pattern(group, ring.left, self.bytes, self.bytes)?;
        check_pattern(group, ring.right, 2 * self.bytes, self.bytes)
    }

    fn payload(&self) -> usize {
        2 * self.bytes
    }
}
