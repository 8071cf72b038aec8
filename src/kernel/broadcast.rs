//! Broadcast as load: everyone has the same bytes from member 0, by gets, by messages, or by the root's puts.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

const ROOT: Rank = Rank(0);

/// Every member but the root gets the same bytes from the root and flushes; the root only serves.
pub struct GetBroadcast {
    bytes: usize,
    is_root: bool,
}

/// Segment: [served | taken].
impl Kernel for GetBroadcast {
    fn new(shape: Shape, _size: usize, rank: Rank) -> Self {
        GetBroadcast { bytes: shape.bytes, is_root: rank == ROOT }
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
        if self.is_root {
            return Ok(());
        }
        group.get(ROOT, Span::new(self.bytes, self.bytes), 0)?;
        group.flush(ROOT)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        if self.is_root { Ok(()) } else { check_pattern(group, ROOT, self.bytes, self.bytes) }
    }

    fn payload(&self) -> usize {
        if self.is_root { 0 } else { self.bytes }
    }
}

/// The root sends to every other member; they receive.
pub struct Broadcast {
    bytes: usize,
    size: usize,
    is_root: bool,
}

/// Segment: [sent | received].
impl Kernel for Broadcast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        Broadcast { bytes: shape.bytes, size, is_root: rank == ROOT }
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
        if self.is_root {
            for member in (1..self.size).map(Rank::from) {
                group.post_send(member, Tag(0), Span::new(0, self.bytes))?;
            }
        } else {
            group.post_recv(ROOT, Tag(0), Span::new(self.bytes, self.bytes))?;
        }
        group.wait_all()
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        if self.is_root { Ok(()) } else { check_pattern(group, ROOT, self.bytes, self.bytes) }
    }

    fn payload(&self) -> usize {
        if self.is_root { 0 } else { self.bytes }
    }
}

/// The root puts the same bytes to every other member and flushes; they only serve.
pub struct PutBroadcast(Broadcast);

/// Segment: [sent | received].
impl Kernel for PutBroadcast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        PutBroadcast(Broadcast::new(shape, size, rank))
    }

    fn segment(shape: Shape, size: usize) -> usize {
        Broadcast::segment(shape, size)
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        self.0.fill(group)
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let Broadcast { bytes, size, is_root } = self.0;
        if !is_root {
            return Ok(());
        }
        let mut members = (1..size).map(Rank::from);
        members.clone().try_for_each(|member| group.put(member, Span::new(0, bytes), bytes))?;
        members.try_for_each(|member| group.flush(member))
    }

    fn check<G: Group>(&self, group: &mut G, ring: Neighbours) -> Result<()> {
        self.0.check(group, ring)
    }

    fn payload(&self) -> usize {
        if self.0.is_root { self.0.bytes * (self.0.size - 1) } else { 0 }
    }
}
