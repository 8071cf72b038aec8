//! [`Group`] over one MPI communicator and window; collectives are MPI's own.
//!
//! - Two-sided messages are `MPI_Isend` and `MPI_Irecv` completed by one `MPI_Waitall`; requests live in arrays made
//!   with the group, so a timed loop does not allocate. One message that is waited for at once is `MPI_Send` or
//!   `MPI_Recv`, as other programs' ping-pongs have it.
//! - Ranks that share a core wait through `MPI_Testall` and started collectives instead: see `ffi/wait.rs`.
//! - The window is locked for all members from its creation; put and get are completed by `MPI_Win_flush`, which means
//!   complete at the target. A target that has no hardware for it serves peers inside its MPI calls.
//! - The background barrier and agreement have communicators of their own, because MPI wants all collectives of one
//!   communicator in the same order on every member.
//! - MPI's sums are the same on every member as far as the library keeps the standard's advice to make them so.

use std::rc::Rc;

use tailback_host::{Clock, nap};
use tailback_transport::{Error, Group, Nanos, Proposal, Rank, Result, Span, Tag};

use crate::ffi::Port;
use crate::session::Session;

/// A sub-communicator of an MPI job with a window over one segment per member.
pub struct MpiGroup {
    port: Port,
    clock: Clock,
    rank: Rank,
    size: usize,
    id: u64,
    session: Rc<Session>,
}

impl MpiGroup {
    pub(crate) fn new(session: &Rc<Session>, clock: &Clock, members: &[Rank], segment: usize) -> Result<Self> {
        let rank = members.iter().position(|&member| member == session.rank).map(Rank::from);
        let rank = rank.ok_or_else(|| usage(format!("rank {} is not a member", session.rank)))?;
        if let Some(stranger) = members.iter().find(|member| member.index() >= session.size) {
            return Err(usage(format!("no rank {stranger} in a job of {}", session.size)));
        }
        let comm = session.world.of_members(members, group_tag(members))?;
        let port = Port::open(comm, members, segment, session.windows.is_ok(), session.largest_tag)?;
        let id = session.enrol(&port);
        Ok(MpiGroup { port, clock: clock.clone(), rank, size: members.len(), id, session: Rc::clone(session) })
    }
}

impl Drop for MpiGroup {
    fn drop(&mut self) {
        self.session.retire(self.id, self.port.retire());
    }
}

fn usage(detail: String) -> Error {
    Error::Usage { operation: "group", detail }
}

/// Groups made at the same time by different members of the job should not meet in one tag. They stay correct when
/// they do, since every rank makes the groups it shares with another in the same order. MPI promises tags to 32767.
fn group_tag(members: &[Rank]) -> i32 {
    let mixed = members.iter().fold(17u32, |mix, rank| mix.wrapping_mul(31).wrapping_add(rank.0));
    (mixed % 32768).cast_signed()
}

impl Group for MpiGroup {
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

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        loop {
            self.port.progress()?;
            let now = self.clock.now();
            if now.0 >= at.0 {
                return Ok(());
            }
            nap(at.since(now));
        }
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.port.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.port.write(offset, from);
    }

    fn add_words(&mut self, left: Span, right: usize, into: usize) {
        self.port.add_words(left, right, into);
    }

    #[inline(always)]
    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.port.isend(to, tag, span)
    }

    #[inline(always)]
    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.port.irecv(from, tag, span)
    }

    #[inline(always)]
    fn wait_all(&mut self) -> Result<()> {
        self.port.wait_all()
    }

    #[inline(always)]
    fn send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.port.send(to, tag, span)
    }

    #[inline(always)]
    fn recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.port.recv(from, tag, span)
    }

    #[inline]
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.port.put(to, local, remote)
    }

    #[inline]
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.port.get(from, local, remote)
    }

    #[inline]
    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.port.flush(peer)
    }

    #[inline(always)]
    fn barrier(&mut self) -> Result<()> {
        self.port.barrier()
    }

    #[inline(always)]
    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.port.allreduce(values)
    }

    fn start_barrier(&mut self) -> Result<()> {
        self.port.start_barrier()
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        self.port.test_barrier()
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        self.port.start_agreement(mine)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        self.port.test_agreement()
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        self.port.wait_agreement()
    }
}
