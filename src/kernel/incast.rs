//! Incast: everyone's bytes go to member 0, by messages, by puts, or by the root's gets.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

const ROOT: Rank = Rank(0);

/// Where an incast's messages lie. Segment: [sent | from member 1 | from member 2 | ...].
#[derive(Clone, Copy)]
struct Places {
    bytes: usize,
    size: usize,
    is_root: bool,
}

impl Places {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        Places { bytes: shape.bytes, size, is_root: rank == ROOT }
    }

    fn of(self, sender: Rank) -> Span {
        Span::new(self.bytes * sender.index(), self.bytes)
    }

    fn senders(self) -> impl Iterator<Item = Rank> {
        (1..self.size).map(Rank::from)
    }

    fn check<G: Group>(self, group: &mut G) -> Result<()> {
        if !self.is_root {
            return Ok(());
        }
        self.senders().try_for_each(|sender| check_pattern(group, sender, self.of(sender).offset, self.bytes))
    }

    fn payload(self) -> usize {
        if self.is_root { 0 } else { self.bytes }
    }
}

/// The root posts a receive for every other member and waits; the others send and wait.
pub struct Incast(Places);

impl Kernel for Incast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        Incast(Places::new(shape, size, rank))
    }

    fn segment(shape: Shape, size: usize) -> usize {
        shape.bytes * size
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.0.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        if self.0.is_root {
            for sender in self.0.senders() {
                group.post_recv(sender, Tag(0), self.0.of(sender))?;
            }
        } else {
            group.post_send(ROOT, Tag(0), Span::new(0, self.0.bytes))?;
        }
        group.wait_all()
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        self.0.check(group)
    }

    fn payload(&self) -> usize {
        self.0.payload()
    }
}

/// Every member but the root puts to its own place at the root and flushes; the root only serves.
pub struct PutIncast(Places);

impl Kernel for PutIncast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        PutIncast(Places::new(shape, size, rank))
    }

    fn segment(shape: Shape, size: usize) -> usize {
        shape.bytes * size
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.0.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        if self.0.is_root {
            return Ok(());
        }
        let place = self.0.of(group.rank()).offset;
        group.put(ROOT, Span::new(0, self.0.bytes), place)?;
        group.flush(ROOT)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        self.0.check(group)
    }

    fn payload(&self) -> usize {
        self.0.payload()
    }
}

/// The root gets the bytes of every other member and flushes; the others only serve. Whoever starts the transfers decides
/// how many of them are under way: here one card asks for as much as it likes to receive.
pub struct GetIncast(Places);

impl Kernel for GetIncast {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        GetIncast(Places::new(shape, size, rank))
    }

    fn segment(shape: Shape, size: usize) -> usize {
        shape.bytes * size
    }

    fn fill<G: Group>(&self, group: &mut G) -> Result<()> {
        fill_pattern(group, 0, self.0.bytes);
        Ok(())
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        if !self.0.is_root {
            return Ok(());
        }
        for sender in self.0.senders() {
            group.get(sender, self.0.of(sender), 0)?;
        }
        self.0.senders().try_for_each(|sender| group.flush(sender))
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        self.0.check(group)
    }

    fn payload(&self) -> usize {
        if self.0.is_root { self.0.bytes * (self.0.size - 1) } else { 0 }
    }
}
