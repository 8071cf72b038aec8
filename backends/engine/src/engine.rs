//! A raw backend: everything of a rank's network but collectives.
//!
//! Any call serves all peers and all groups. Single-threaded; there is no progress thread.

use std::collections::HashSet;
use std::fmt;

use tailback_host::{Idle, nap};
use tailback_transport::{Capabilities, Description, Error, Nanos, Rank, Result, Span, Tag, payload};

/// Memory that is looked at is copied in blocks of so many bytes.
const BLOCK: usize = 4096;

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

/// A group that an engine made.
#[derive(Clone, Copy, Debug)]
pub struct Membership<S> {
    /// How the engine knows the group.
    pub slot: S,
    /// This rank's position in it.
    pub rank: Rank,
    /// How many members it has.
    pub size: usize,
}

/// One rank's connections, segments and progress. Ranks are positions in the group in `slot`. Methods without a comment mean
/// what they mean in [`tailback_transport::Group`].
#[allow(missing_docs)]
pub trait Engine {
    /// How the engine knows a group.
    type Slot: Copy + fmt::Debug;

    /// As [`tailback_transport::Transport::capabilities`].
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    /// As [`tailback_transport::Transport::describe`].
    fn describe(&self) -> Description;

    fn now(&self) -> Nanos;

    /// Lets a part of `left` pass, until when there is nothing to do but progress now and then.
    fn pause(&mut self, left: Nanos) -> Result<()> {
        nap(left);
        Ok(())
    }

    /// As [`tailback_transport::Transport::group`], except that it need not wait for the other members: messages and requests
    /// that reach a member before it made the group are held until it does.
    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<Self::Slot>>;

    /// The group's handle is gone, and its segment with it.
    fn drop_group(&mut self, slot: Self::Slot);

    /// Also looks at the span of a receive that is pending, if that is of at most 32 bytes at a multiple of eight: each
    /// of its words of eight bytes is then as it was before the receive was posted, or as the message has it, or, where
    /// bytes arrive one after the other, a prefix of that.
    fn read(&self, slot: Self::Slot, offset: usize, into: &mut [u8]);
    fn write(&mut self, slot: Self::Slot, offset: usize, from: &[u8]);

    /// As [`tailback_transport::Group::add_words`]; by blocks that are copied, where there is no shorter way.
    fn add_words(&mut self, slot: Self::Slot, left: Span, right: usize, into: usize) {
        let (mut ours, mut theirs, mut sums) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for start in (0..left.len).step_by(BLOCK) {
            let len = BLOCK.min(left.len - start);
            self.read(slot, left.offset + start, &mut ours[..len]);
            self.read(slot, right + start, &mut theirs[..len]);
            payload::add_words(&ours[..len], &theirs[..len], &mut sums[..len]);
            self.write(slot, into + start, &sums[..len]);
        }
    }

    /// Messages match by (sender, lane, tag), in order.
    fn post_send(&mut self, slot: Self::Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()>;
    /// See [`Engine::post_send`].
    fn post_recv(&mut self, slot: Self::Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()>;

    fn put(&mut self, slot: Self::Slot, to: Rank, local: Span, remote: usize) -> Result<()>;
    fn get(&mut self, slot: Self::Slot, from: Rank, local: Span, remote: usize) -> Result<()>;

    /// One round of progress for every peer and every group.
    fn progress(&mut self, idle: Idle) -> Result<()>;

    /// Whether everything posted on `lane` is complete, as of the last round of progress.
    fn is_complete(&mut self, slot: Self::Slot, lane: Lane) -> Result<bool>;

    /// Whether every message posted to `to` on `lane` has left its memory, which may be written again, as of the last
    /// round of progress. What is not received yet must not keep a short message from leaving for ever.
    fn is_sent(&mut self, slot: Self::Slot, lane: Lane, to: Rank) -> Result<bool>;

    /// Whether a flush of `peer` would return at once, as of the last round of progress. Asks the peer where that takes a
    /// message, and does not wait for the answer.
    fn is_flushed(&mut self, slot: Self::Slot, peer: Rank) -> Result<bool>;

    /// How many operations of all groups are complete, where the backend counts them: as long as that is the same, nothing has
    /// arrived, left or been flushed.
    fn completions(&self) -> Option<u64> {
        None
    }

    /// How many puts and gets were made with a peer, where the backend counts them.
    fn accesses(&self, _slot: Self::Slot, _peer: Rank) -> u64 {
        0
    }

    /// As [`Engine::is_flushed`], of the first so many of [`Engine::accesses`] alone: what was made since keeps nothing
    /// waiting. A backend that does not count them answers for all.
    fn are_flushed(&mut self, slot: Self::Slot, peer: Rank, _count: u64) -> Result<bool> {
        self.is_flushed(slot, peer)
    }

    /// Waits until everything posted on `lane` is complete.
    fn wait(&mut self, slot: Self::Slot, lane: Lane) -> Result<()> {
        while !self.is_complete(slot, lane)? {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Makes progress once and says whether everything posted on `lane` is complete.
    #[inline]
    fn test(&mut self, slot: Self::Slot, lane: Lane) -> Result<bool> {
        self.progress(Idle::Return)?;
        self.is_complete(slot, lane)
    }

    fn flush(&mut self, slot: Self::Slot, peer: Rank) -> Result<()> {
        while !self.is_flushed(slot, peer)? {
            self.progress(Idle::Wait)?;
        }
        Ok(())
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
