//! The network under test: [`Transport`] and [`Group`] for kernels, [`RawTransport`] and [`RawGroup`] for backends
//! that leave their collectives to [`crate::Collective`].
//!
//! Rules that hold for all four:
//! - A blocking call makes progress for every peer and every group of the transport, not only for its own.
//! - A span handed to a post, a put or a get belongs to the backend until the matching wait or flush returned.
//! - Members' own requests (a peer's put or get on this rank's segment) are served inside any call of any group.
//! - Background barriers and agreements advance in their own polls and waits; a backend may advance them elsewhere too.
//!   A member that waits for one must not withhold data that another member waits for.
//! - A call refused with [`crate::Error::Usage`] changes nothing. All other errors are final: the caller reports them
//!   and the job ends.
//! - Copies in and out of one's own segment panic when the range is not inside it, as slices do.

use crate::{Capabilities, Description, Nanos, Rank, Result, Span, Tag};

/// Values a group agrees on: every member gets the elementwise maximum of what the members proposed.
pub type Proposal = [u64; 4];

/// A network under test, opened for one rank of the job.
pub trait Transport {
    /// Its sub-communicators.
    type Group: Group;

    /// What it can do; asked before the run starts.
    fn capabilities(&self) -> Capabilities;

    /// What it is, for the result file.
    fn describe(&self) -> Description;

    /// Finds out what there is to say of puts and gets, where that takes trying them, for [`Transport::describe`] to tell.
    /// Collective over the job; a run that will use them asks for it before it starts.
    fn try_one_sided(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes a group of `members` (ranks of the job, in group order, this rank among them), each with a zeroed segment
    /// of `segment` bytes. Collective over the members only: other ranks may make other groups at the same time. Every
    /// rank makes the groups it shares with another in the same order. When it returns, every member's segment exists.
    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group>;
}

/// A sub-communicator with one memory segment per member. Ranks are positions in the group.
pub trait Group {
    /// This rank's position in the group.
    fn rank(&self) -> Rank;

    /// How many members the group has.
    fn size(&self) -> usize;

    /// The clock to time with: real, or a simulator's own.
    fn now(&self) -> Nanos;

    /// Serves what others ask of this rank until the clock says `at`.
    fn wait_until(&mut self, at: Nanos) -> Result<()>;

    /// Copies from this rank's segment. No peer may be writing there.
    fn read(&self, offset: usize, into: &mut [u8]);

    /// Copies into this rank's segment. No peer may be accessing it there.
    fn write(&mut self, offset: usize, from: &[u8]);

    /// Starts sending `span` to member `to`.
    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()>;

    /// Starts receiving into `span` from member `from`; the message must be `span.len` bytes long.
    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()>;

    /// Waits for every send and receive posted on this group.
    fn wait_all(&mut self) -> Result<()>;

    /// Sends, and waits for it and for all that was posted before. Where a network has a shorter way for one message that is
    /// waited for at once, this takes it.
    fn send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.post_send(to, tag, span)?;
        self.wait_all()
    }

    /// Receives, as [`Group::send`] sends.
    fn recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.post_recv(from, tag, span)?;
        self.wait_all()
    }

    /// Starts writing `local` at `remote` (an offset) of `to`'s segment.
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()>;

    /// Starts reading `local.len` bytes at `remote` (an offset) of `from`'s segment into `local`.
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()>;

    /// Waits until every put to `peer` is visible in its segment and every get from it has arrived.
    fn flush(&mut self, peer: Rank) -> Result<()>;

    /// Returns once every member has called it.
    fn barrier(&mut self) -> Result<()>;

    /// Replaces the doubles in `values` (a multiple of 8 bytes) by their sums over the members, the same bits on each.
    fn allreduce(&mut self, values: Span) -> Result<()>;

    /// Enters a barrier without waiting in it. One may be under way per group.
    fn start_barrier(&mut self) -> Result<()>;

    /// Whether the barrier entered by [`Group::start_barrier`] is complete. Makes progress; does not wait.
    fn poll_barrier(&mut self) -> Result<bool>;

    /// Proposes values without waiting for the others'. One agreement may be under way per group.
    fn start_agreement(&mut self, mine: Proposal) -> Result<()>;

    /// The agreed values, once every member has proposed. Makes progress; does not wait.
    fn poll_agreement(&mut self) -> Result<Option<Proposal>>;

    /// Waits for the agreement under way.
    fn wait_agreement(&mut self) -> Result<Proposal>;
}

/// Lets a part of `left` pass: asleep while much of it is left, then awake, as a sleeper wakes up late.
pub fn nap(left: Nanos) {
    const NAP: Nanos = Nanos(100_000);
    if left.0 > 3 * NAP.0 {
        std::thread::sleep(std::time::Duration::from_nanos(NAP.0));
    } else {
        std::thread::yield_now();
    }
}

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

/// What a round of progress does when it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Return.
    Return,
    /// Wait as the wait mode says until something arrives or leaves. The caller has looked at everything that earlier
    /// rounds completed: nothing else will wake it.
    Wait,
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
