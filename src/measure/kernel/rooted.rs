//! One member against all others: everyone's bytes go to member 0 (incast), or its bytes to everyone (broadcast); by
//! messages, by puts or by gets.

use std::marker::PhantomData;

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Gets, Kernel, Messages, Puts, Sizes, check_pattern};
use crate::layout::Neighbours;

const ROOT: Rank = Rank(0);

/// The root and the others, as a member sees them.
#[derive(Clone, Copy)]
pub struct Team {
    bytes: usize,
    size: usize,
    is_root: bool,
}

impl Team {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        Team { bytes: sizes.bytes, size, is_root: rank == ROOT }
    }

    /// What a member sends lies first.
    fn sent(self) -> Span {
        Span::new(0, self.bytes)
    }

    /// In a broadcast what the root sent lies behind it.
    fn root_span(self) -> Span {
        Span::new(self.bytes, self.bytes)
    }

    /// In an incast what every other member sent, in their order.
    fn other_span(self, sender: Rank) -> Span {
        Span::new(self.bytes * sender.index(), self.bytes)
    }

    fn others(self) -> impl Iterator<Item = Rank> {
        (1..self.size).map(Rank::from)
    }

    /// What this member moves: the bytes of all where the root counts them, else its own where it is another.
    fn payload(self, root_counts: bool) -> usize {
        match (root_counts, self.is_root) {
            (true, true) => self.bytes * (self.size - 1),
            (false, false) => self.bytes,
            _ => 0,
        }
    }
}

/// How an incast's bytes get to the root.
pub trait ToRoot {
    /// Whether the root moves the bytes, rather than the others.
    const ROOT_COUNTS: bool = false;

    /// One iteration of one member.
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()>;
}

/// The root posts a receive for every other member and waits; the others send and wait.
impl ToRoot for Messages {
    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if team.is_root {
            team.others().try_for_each(|sender| group.post_recv(sender, Tag(0), team.other_span(sender)))?;
        } else {
            group.post_send(ROOT, Tag(0), team.sent())?;
        }
        group.wait_all()
    }
}

/// Every member but the root puts to its own place at the root and flushes; the root only serves.
impl ToRoot for Puts {
    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if team.is_root {
            return Ok(());
        }
        let place = team.other_span(group.rank()).offset;
        group.put(ROOT, team.sent(), place)?;
        group.flush(ROOT)
    }
}

/// The root gets the bytes of every other member and flushes; the others only serve. Whoever starts the transfers decides
/// how many of them are under way: here one card asks for as much as it likes to receive.
impl ToRoot for Gets {
    const ROOT_COUNTS: bool = true;

    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if !team.is_root {
            return Ok(());
        }
        team.others().try_for_each(|sender| group.get(sender, team.other_span(sender), 0))?;
        team.others().try_for_each(|sender| group.flush(sender))
    }
}

/// Everyone's bytes to the root. Segment: [sent | from member 1 | from member 2 | ...].
pub struct Incast<M>(Team, PhantomData<M>);

impl<M: ToRoot> Kernel for Incast<M> {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        Incast(Team::new(sizes, size, rank), PhantomData)
    }

    fn segment(sizes: Sizes, size: usize) -> usize {
        sizes.bytes * size
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        M::iterate(self.0, group)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let team = self.0;
        let mut received = team.others().filter(|_| team.is_root);
        received.try_for_each(|sender| check_pattern(group, sender, team.other_span(sender).offset, team.bytes))
    }

    fn payload(&self) -> usize {
        self.0.payload(M::ROOT_COUNTS)
    }
}

/// How a broadcast's bytes get to everyone.
pub trait FromRoot {
    /// Whether the root moves the bytes, rather than the others.
    const ROOT_COUNTS: bool = false;

    /// One iteration of one member.
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()>;
}

/// The root sends to every other member; they receive.
impl FromRoot for Messages {
    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if team.is_root {
            team.others().try_for_each(|member| group.post_send(member, Tag(0), team.sent()))?;
        } else {
            group.post_recv(ROOT, Tag(0), team.root_span())?;
        }
        group.wait_all()
    }
}

/// The root puts the same bytes to every other member and flushes; they only serve.
impl FromRoot for Puts {
    const ROOT_COUNTS: bool = true;

    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if !team.is_root {
            return Ok(());
        }
        team.others().try_for_each(|member| group.put(member, team.sent(), team.root_span().offset))?;
        team.others().try_for_each(|member| group.flush(member))
    }
}

/// Every member but the root gets the same bytes from the root and flushes; the root only serves.
impl FromRoot for Gets {
    #[inline]
    fn iterate<G: Group>(team: Team, group: &mut G) -> Result<()> {
        if team.is_root {
            return Ok(());
        }
        group.get(ROOT, team.root_span(), 0)?;
        group.flush(ROOT)
    }
}

/// The root's bytes to everyone. Segment: [sent | received].
pub struct Broadcast<M>(Team, PhantomData<M>);

impl<M: FromRoot> Kernel for Broadcast<M> {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        Broadcast(Team::new(sizes, size, rank), PhantomData)
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        2 * sizes.bytes
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        M::iterate(self.0, group)
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let Team { bytes, is_root, .. } = self.0;
        if is_root { Ok(()) } else { check_pattern(group, ROOT, bytes, bytes) }
    }

    fn payload(&self) -> usize {
        self.0.payload(M::ROOT_COUNTS)
    }
}
