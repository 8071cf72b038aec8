//! Incast: everyone's bytes go to member 0, by messages, by puts, or by the root's gets.

use std::marker::PhantomData;

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::{Kernel, Shape, check_pattern, fill_pattern};
use crate::layout::Neighbours;

const ROOT: Rank = Rank(0);

/// Where an incast's messages lie. Segment: [sent | from member 1 | from member 2 | ...].
#[derive(Clone, Copy)]
pub struct Places {
    bytes: usize,
    size: usize,
    is_root: bool,
}

impl Places {
    fn of(self, sender: Rank) -> Span {
        Span::new(self.bytes * sender.index(), self.bytes)
    }

    fn senders(self) -> impl Iterator<Item = Rank> {
        (1..self.size).map(Rank::from)
    }
}

/// How an incast's bytes get to the root.
pub trait Way {
    /// One iteration of one member.
    fn iterate<G: Group>(places: Places, group: &mut G) -> Result<()>;

    /// What a member moves in it: its own bytes, where members send them.
    fn payload(places: Places) -> usize {
        if places.is_root { 0 } else { places.bytes }
    }
}

/// The root posts a receive for every other member and waits; the others send and wait.
pub struct Messages;

impl Way for Messages {
    #[inline]
    fn iterate<G: Group>(places: Places, group: &mut G) -> Result<()> {
        if places.is_root {
            for sender in places.senders() {
                group.post_recv(sender, Tag(0), places.of(sender))?;
            }
        } else {
            group.post_send(ROOT, Tag(0), Span::new(0, places.bytes))?;
        }
        group.wait_all()
    }
}

/// Every member but the root puts to its own place at the root and flushes; the root only serves.
pub struct Puts;

impl Way for Puts {
    #[inline]
    fn iterate<G: Group>(places: Places, group: &mut G) -> Result<()> {
        if places.is_root {
            return Ok(());
        }
        let place = places.of(group.rank()).offset;
        group.put(ROOT, Span::new(0, places.bytes), place)?;
        group.flush(ROOT)
    }
}

/// The root gets the bytes of every other member and flushes; the others only serve. Whoever starts the transfers decides
/// how many of them are under way: here one card asks for as much as it likes to receive.
pub struct Gets;

impl Way for Gets {
    #[inline]
    fn iterate<G: Group>(places: Places, group: &mut G) -> Result<()> {
        if !places.is_root {
            return Ok(());
        }
        for sender in places.senders() {
            group.get(sender, places.of(sender), 0)?;
        }
        places.senders().try_for_each(|sender| group.flush(sender))
    }

    fn payload(places: Places) -> usize {
        if places.is_root { places.bytes * (places.size - 1) } else { 0 }
    }
}

/// An incast, one way or another.
pub struct IncastBy<W>(Places, PhantomData<W>);

impl<W: Way> Kernel for IncastBy<W> {
    fn new(shape: Shape, size: usize, rank: Rank) -> Self {
        IncastBy(Places { bytes: shape.bytes, size, is_root: rank == ROOT }, PhantomData)
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
        W::iterate(self.0, group)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let Places { bytes, is_root, .. } = self.0;
        if !is_root {
            return Ok(());
        }
        self.0.senders().try_for_each(|sender| check_pattern(group, sender, self.0.of(sender).offset, bytes))
    }

    fn payload(&self) -> usize {
        W::payload(self.0)
    }
}
