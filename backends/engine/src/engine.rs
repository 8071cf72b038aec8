//! A raw backend's engine, shared by its groups, and the handle that makes a [`RawGroup`] of it.
//!
//! Any call of any group serves all peers. Single-threaded; there is no progress thread.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use tailback_host::{Clock, Idle, nap};
use tailback_transport::{Capabilities, Description, Error, Nanos, Rank, Result, Span, Tag};

/// Keeps the completion and the tags of a group's concurrent activities apart: waiting on one lane does not wait for
/// what is posted on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// The kernel's own messages.
    Data = 0,
    /// Blocking collectives.
    Collective = 1,
    /// The barrier under way in the background.
    Barrier = 2,
    /// The agreement under way in the background.
    Agreement = 3,
    /// What a rendezvous protocol says about the kernel's messages.
    Protocol = 4,
}

impl Lane {
    /// All of them, in the order of their numbers.
    pub const ALL: [Lane; 5] = [Lane::Data, Lane::Collective, Lane::Barrier, Lane::Agreement, Lane::Protocol];

    /// How many lanes there are, for arrays indexed by `lane as usize`.
    pub const COUNT: usize = Lane::ALL.len();
}

/// A backend without collectives of its own. [`crate::Collective`] makes a [`Transport`] of it.
pub trait RawTransport {
    /// Its sub-communicators.
    type Group: RawGroup;

    /// As [`Transport::capabilities`].
    fn capabilities(&self) -> Capabilities;

    /// As [`Transport::describe`].
    fn describe(&self) -> Description;

    /// As [`Transport::group`], except that it need not wait for the other members: messages and requests that reach
    /// a member before it made the group are held until it does.
    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group>;
}

/// A group of a raw backend. Methods without a comment mean what they mean in [`Group`].
#[allow(missing_docs)]
pub trait RawGroup {
    fn rank(&self) -> Rank;
    fn size(&self) -> usize;
    fn now(&self) -> Nanos;
    /// Also looks at the span of a receive that is pending, if that is of at most 32 bytes at a multiple of eight: each
    /// of its words of eight bytes is then as it was before the receive was posted, or as the message has it, or, where
    /// bytes arrive one after the other, a prefix of that.
    fn read(&self, offset: usize, into: &mut [u8]);
    fn write(&mut self, offset: usize, from: &[u8]);

    /// Messages match by (sender, lane, tag), in order.
    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()>;
    /// See [`RawGroup::post_send`].
    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()>;

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()>;
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()>;

    /// One round of progress for every peer and every group of the transport.
    fn progress(&mut self, idle: Idle) -> Result<()>;

    /// Lets a part of `left` pass, until when there is nothing to do but progress now and then.
    fn pause(&mut self, left: Nanos) -> Result<()> {
        nap(left);
        Ok(())
    }

    /// Whether everything posted on `lane` is complete, as of the last round of progress of any group.
    fn is_complete(&mut self, lane: Lane) -> Result<bool>;

    /// Whether every message posted to `to` on `lane` has left its memory, which may be written again, as of the last
    /// round of progress of any group. What is not received yet must not keep a short message from leaving for ever.
    fn is_sent(&mut self, lane: Lane, to: Rank) -> Result<bool>;

    /// Whether a flush of `peer` would return at once, as of the last round of progress of any group. Asks the peer
    /// where that takes a message, and does not wait for the answer.
    fn is_flushed(&mut self, peer: Rank) -> Result<bool>;

    /// How many operations of all groups are complete, where the backend counts them: as long as that is the same, nothing has
    /// arrived, left or been flushed.
    fn completions(&self) -> Option<u64> {
        None
    }

    /// How many puts and gets were made with a peer, where the backend counts them.
    fn accesses(&self, _peer: Rank) -> u64 {
        0
    }

    /// As [`RawGroup::is_flushed`], of the first so many of [`RawGroup::accesses`] alone: what was made since keeps nothing
    /// waiting. A backend that does not count them answers for all.
    fn are_flushed(&mut self, peer: Rank, _count: u64) -> Result<bool> {
        self.is_flushed(peer)
    }

    /// Waits until everything posted on `lane` is complete.
    fn wait(&mut self, lane: Lane) -> Result<()> {
        while !self.is_complete(lane)? {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Makes progress once and says whether everything posted on `lane` is complete.
    fn test(&mut self, lane: Lane) -> Result<bool> {
        self.progress(Idle::Return)?;
        self.is_complete(lane)
    }

    fn flush(&mut self, peer: Rank) -> Result<()> {
        while !self.is_flushed(peer)? {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }
}

/// One rank's connections, segments and progress. Methods mean what they mean in [`RawGroup`], for the group in `slot`.
#[allow(missing_docs)]
pub trait Engine {
    /// How the engine knows a group.
    type Slot: Copy + fmt::Debug;

    /// As [`crate::RawTransport::group`].
    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Slot>;
    /// The group's handle is gone.
    fn drop_group(&mut self, slot: Self::Slot);
    /// This rank's position in the group, and the group's size.
    fn shape(&self, slot: Self::Slot) -> (Rank, usize);
    fn read(&self, slot: Self::Slot, offset: usize, into: &mut [u8]);
    fn write(&mut self, slot: Self::Slot, offset: usize, from: &[u8]);
    fn post_send(&mut self, slot: Self::Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()>;
    fn post_recv(&mut self, slot: Self::Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()>;
    fn put(&mut self, slot: Self::Slot, to: Rank, local: Span, remote: usize) -> Result<()>;
    fn get(&mut self, slot: Self::Slot, from: Rank, local: Span, remote: usize) -> Result<()>;
    fn progress(&mut self, idle: Idle) -> Result<()>;
    fn is_complete(&self, slot: Self::Slot, lane: Lane) -> bool;
    fn is_sent(&self, slot: Self::Slot, lane: Lane, to: Rank) -> bool;
    fn is_flushed(&mut self, slot: Self::Slot, peer: Rank) -> Result<bool>;
    /// Of all groups.
    fn completions(&self) -> u64;
    fn accesses(&self, slot: Self::Slot, peer: Rank) -> u64;
    fn are_flushed(&mut self, slot: Self::Slot, peer: Rank, count: u64) -> Result<bool>;
    fn wait(&mut self, slot: Self::Slot, lane: Lane) -> Result<()>;
    fn flush(&mut self, slot: Self::Slot, peer: Rank) -> Result<()>;
}

/// A group of ranks that talk through an engine. Dropping it ends its segment.
pub struct EngineGroup<E: Engine> {
    engine: Rc<RefCell<E>>,
    slot: E::Slot,
    clock: Clock,
    rank: Rank,
    size: usize,
}

impl<E: Engine> EngineGroup<E> {
    /// Makes a group. See [`crate::RawTransport::group`].
    ///
    /// # Errors
    /// What the engine says.
    pub fn make(engine: &Rc<RefCell<E>>, clock: &Clock, members: &[Rank], segment: usize) -> Result<Self> {
        let slot = engine.borrow_mut().make_group(members, segment)?;
        let (rank, size) = engine.borrow().shape(slot);
        Ok(EngineGroup { engine: Rc::clone(engine), slot, clock: clock.clone(), rank, size })
    }
}

/// The position of rank `me` of a job of `ranks` among `members`: distinct ranks of the job.
///
/// # Errors
/// If they are not, or `me` is not among them.
pub fn position(me: Rank, ranks: usize, members: &[Rank]) -> Result<usize> {
    let usage = |detail: String| Error::Usage { operation: "group", detail };
    if let Some(stranger) = members.iter().find(|member| member.index() >= ranks) {
        return Err(usage(format!("there is no rank {stranger} in a job of {ranks}")));
    }
    if members.iter().collect::<HashSet<_>>().len() != members.len() {
        return Err(usage("a rank is a member once".into()));
    }
    let position = members.iter().position(|&member| member == me);
    position.ok_or_else(|| usage(format!("rank {me} is not among the members")))
}

impl<E: Engine> Drop for EngineGroup<E> {
    fn drop(&mut self) {
        // While a panic inside the engine unwinds, the engine is still borrowed, and goes away as a whole.
        if let Ok(mut engine) = self.engine.try_borrow_mut() {
            engine.drop_group(self.slot);
        }
    }
}

impl<E: Engine> fmt::Debug for EngineGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, size) = (&self.rank, &self.size);
        f.debug_struct("EngineGroup").field("rank", rank).field("size", size).finish_non_exhaustive()
    }
}

impl<E: Engine> RawGroup for EngineGroup<E> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.engine.borrow().read(self.slot, offset, into);
    }

    #[inline]
    fn write(&mut self, offset: usize, from: &[u8]) {
        self.engine.borrow_mut().write(self.slot, offset, from);
    }

    #[inline]
    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.engine.borrow_mut().post_send(self.slot, lane, to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.engine.borrow_mut().post_recv(self.slot, lane, from, tag, span)
    }

    #[inline]
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.borrow_mut().put(self.slot, to, local, remote)
    }

    #[inline]
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.borrow_mut().get(self.slot, from, local, remote)
    }

    #[inline]
    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.engine.borrow_mut().progress(idle)
    }

    #[inline]
    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        Ok(self.engine.borrow().is_complete(self.slot, lane))
    }

    fn is_sent(&mut self, lane: Lane, to: Rank) -> Result<bool> {
        Ok(self.engine.borrow().is_sent(self.slot, lane, to))
    }

    #[inline]
    fn is_flushed(&mut self, peer: Rank) -> Result<bool> {
        self.engine.borrow_mut().is_flushed(self.slot, peer)
    }

    fn completions(&self) -> Option<u64> {
        Some(self.engine.borrow().completions())
    }

    fn accesses(&self, peer: Rank) -> u64 {
        self.engine.borrow().accesses(self.slot, peer)
    }

    fn are_flushed(&mut self, peer: Rank, count: u64) -> Result<bool> {
        self.engine.borrow_mut().are_flushed(self.slot, peer, count)
    }

    #[inline]
    fn wait(&mut self, lane: Lane) -> Result<()> {
        self.engine.borrow_mut().wait(self.slot, lane)
    }

    #[inline]
    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.engine.borrow_mut().flush(self.slot, peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_distinct_ranks_of_the_job_and_this_one_is_among_them() {
        let ranks = |ranks: &[u32]| ranks.iter().copied().map(Rank).collect::<Vec<_>>();
        assert_eq!(position(Rank(2), 4, &ranks(&[3, 2, 0])).expect("a group"), 1);
        for wrong in [&[0, 1][..], &[2, 4], &[2, 0, 0], &[]] {
            assert!(matches!(position(Rank(2), 4, &ranks(wrong)), Err(Error::Usage { .. })), "{wrong:?}");
        }
    }
}
