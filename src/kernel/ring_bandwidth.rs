//! Ring bandwidth: a window of large messages to each neighbour, by messages or by puts, with or without a barrier.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

/// Where a window's messages lie. Segment: [sent | window from left | window from right].
#[derive(Clone, Copy)]
struct Windows {
    bytes: usize,
    window: usize,
}

impl Windows {
    fn new(shape: Shape) -> Self {
        Windows { bytes: shape.bytes, window: shape.window }
    }

    fn len(self) -> usize {
        self.bytes * (1 + 2 * self.window)
    }

    /// Every message of a window leaves from the same place: sends only read it.
    fn sent(self) -> Span {
        Span::new(0, self.bytes)
    }

    fn left_span(self, message: usize) -> Span {
        Span::new(self.bytes * (1 + message), self.bytes)
    }

    fn right_span(self, message: usize) -> Span {
        Span::new(self.bytes * (1 + self.window + message), self.bytes)
    }

    fn check<G: Group>(self, group: &mut G, ring: Neighbours) -> Result<()> {
        for message in 0..self.window {
            check_pattern(group, ring.left, self.left_span(message).offset, self.bytes)?;
            check_pattern(group, ring.right, self.right_span(message).offset, self.bytes)?;
        }
        Ok(())
    }

    fn payload(self) -> usize {
        2 * self.window * self.bytes
    }
}

/// A window of receives and sends with each neighbour, then a wait for all.
pub struct RingBandwidth(Windows);

impl Kernel for RingBandwidth {
    fn new(shape: Shape, _size: usize, _rank: Rank) -> Self {
        RingBandwidth(Windows::new(shape))
    }

    fn segment(shape: Shape, _size: usize) -> usize {
        Windows::new(shape).len()
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.0.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        let windows = self.0;
        let (rightward, leftward) = (Tag(0), Tag(1));
        for message in 0..windows.window {
            group.post_recv(ring.left, rightward, windows.left_span(message))?;
            group.post_recv(ring.right, leftward, windows.right_span(message))?;
        }
        for _ in 0..windows.window {
            group.post_send(ring.right, rightward, windows.sent())?;
            group.post_send(ring.left, leftward, windows.sent())?;
        }
        group.wait_all()
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        self.0.check(group, ring)
    }

    fn payload(&self) -> usize {
        self.0.payload()
    }
}

/// [`RingBandwidth`] with a barrier of the team inside the timed region.
pub struct RingBandwidthSync(RingBandwidth);

impl Kernel for RingBandwidthSync {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        RingBandwidthSync(RingBandwidth::new(shape, size, rank))
    }

    fn segment(shape: Shape, size: usize) -> usize {
        RingBandwidth::segment(shape, size)
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        self.0.fill(group)
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        self.0.iterate(group, ring)?;
        group.barrier()
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        self.0.check(group, ring)
    }

    fn payload(&self) -> usize {
        self.0.payload()
    }
}

/// A window of puts to each neighbour, then a flush of both.
pub struct RingPutBandwidth(Windows);

impl Kernel for RingPutBandwidth {
    fn new(shape: Shape, _size: usize, _rank: Rank) -> Self {
        RingPutBandwidth(Windows::new(shape))
    }

    fn segment(shape: Shape, _size: usize) -> usize {
        Windows::new(shape).len()
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.0.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        let windows = self.0;
        for message in 0..windows.window {
            group.put(ring.right, windows.sent(), windows.left_span(message).offset)?;
            group.put(ring.left, windows.sent(), windows.right_span(message).offset)?;
        }
        group.flush(ring.right)?;
        group.flush(ring.left)
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        self.0.check(group, ring)
    }

    fn payload(&self) -> usize {
        self.0.payload()
    }
}
