//! The network under test: [`Transport`] and [`Group`].
//!
//! Rules that hold for both, and for every backend below them:
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

    /// Adds the 64-bit words of two parts of this rank's segment, as [`payload::add_words`](crate::payload::add_words) does:
    /// `left`, and as many bytes at `right`. The sums go `into` a part that overlaps neither. No peer may be accessing them.
    fn add_words(&mut self, left: Span, right: usize, into: usize);

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
