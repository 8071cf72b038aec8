//! The memory and the messages of one group. Invariants as in `ffi.rs`.

mod collective;

use std::ffi::c_int;
use std::thread;

use mpi::ffi;
use mpi::ffi::{MPI_Request, MPI_Status};
use tailback_transport::{Error, Rank, Result, Span, Tag};

use super::segment::{Model, Segment};
use super::{
    Comm, Waiting, failed, failure, mpi, null_request, tailback_mpi_byte, tailback_mpi_err_in_status,
    tailback_mpi_err_pending,
};

/// Room for the messages of one iteration, so that posting does not allocate in a timed loop. It grows if it must.
const REQUESTS: usize = 256;

/// MPI's handles behind one group: communicators, the segment and what is posted on it.
#[derive(Debug)]
pub(crate) struct Port {
    comm: Comm,
    /// For the barrier and the agreement in the background, so that MPI need not order them with blocking collectives.
    background: [Comm; 2],
    members: Box<[Rank]>,
    largest_tag: u32,
    segment: Segment,
    /// How many requests are under way: the first of `requests`, each with its peer. All three have room for `room`.
    posted: c_int,
    room: c_int,
    requests: Vec<MPI_Request>,
    peers: Vec<c_int>,
    statuses: Vec<MPI_Status>,
    barrier: MPI_Request,
    agreement: MPI_Request,
    /// Proposed and agreed values, on the heap: they stay in place when the port moves while MPI uses them.
    proposals: Box<[[i64; 4]; 2]>,
}

/// A port whose group was dropped: what is left to free, together with the other members.
#[derive(Debug)]
pub(crate) struct Remains {
    comms: [Comm; 3],
    segment: Segment,
    /// Nothing was pending: MPI refers to no memory of the port's.
    pub(crate) idle: bool,
}

impl Port {
    /// Collective over `comm`, whose members are `members` of the job; `comm` belongs to the port from here on.
    pub(crate) fn open(comm: Comm, members: &[Rank], len: usize, windows: bool, largest_tag: u32) -> Result<Port> {
        let background = [comm.duplicate()?, comm.duplicate()?];
        let segment = if windows { Segment::window(comm, len) } else { Segment::plain(len) };
        // A put must not reach memory that its owner has yet to zero. And a member that has none must not leave the others
        // waiting: all of them hear of it, and what the others have is left to the end of the process.
        let all_have_one = comm.minimum(u64::from(segment.is_ok()))?;
        let segment = segment?;
        if all_have_one == 0 {
            return Err(Error::Setup("another rank of the group could not make its segment".into()));
        }
        let mut port = Port {
            comm,
            background,
            members: members.into(),
            largest_tag,
            segment,
            posted: 0,
            room: 0,
            requests: Vec::new(),
            peers: Vec::new(),
            statuses: Vec::new(),
            barrier: null_request(),
            agreement: null_request(),
            proposals: Box::new([[0; 4]; 2]),
        };
        port.grow();
        Ok(port)
    }

    pub(crate) fn comm(&self) -> Comm {
        self.comm
    }

    pub(crate) fn model(&self) -> Option<Model> {
        self.segment.model()
    }

    /// Hands over what must be freed. If something is pending, what MPI still refers to is leaked; so is everything after an
    /// error of MPI's, which may have taken a request away without being done with its memory.
    pub(crate) fn retire(&mut self) -> Remains {
        let pending = self.posted > 0 || self.barrier != null_request() || self.agreement != null_request();
        let idle = !pending && !failed();
        if !idle {
            Box::leak(std::mem::take(&mut self.proposals));
        }
        Remains { comms: [self.comm, self.background[0], self.background[1]], segment: self.segment, idle }
    }

    #[inline(always)]
    fn peer(&self, operation: &'static str, rank: Rank) -> Result<c_int> {
        if rank.index() < self.members.len() {
            return Ok(rank.0.cast_signed());
        }
        Err(self.no_member(operation, rank))
    }

    #[cold]
    fn no_member(&self, operation: &'static str, rank: Rank) -> Error {
        Error::Usage { operation, detail: format!("no member {rank} in a group of {}", self.members.len()) }
    }

    #[inline(always)]
    fn tag(&self, operation: &'static str, tag: Tag) -> Result<c_int> {
        if tag.0 <= self.largest_tag {
            return Ok(tag.0.cast_signed());
        }
        Err(self.large_tag(operation, tag))
    }

    #[cold]
    fn large_tag(&self, operation: &'static str, tag: Tag) -> Error {
        let detail = format!("tag {} is larger than this MPI's largest, {}", tag.0, self.largest_tag);
        Error::Usage { operation, detail }
    }

    /// Where the next request goes, with its peer noted. It counts once `posted` says so.
    #[inline(always)]
    fn slot(&mut self, peer: c_int) -> *mut MPI_Request {
        if self.posted == self.room {
            self.grow();
        }
        let at = self.posted as usize;
        // SAFETY: `grow` gave both room for `room` values, of which fewer are taken.
        unsafe {
            self.peers.as_mut_ptr().add(at).write(peer);
            self.requests.as_mut_ptr().add(at)
        }
    }

    #[cold]
    fn grow(&mut self) {
        let room = (2 * self.requests.len()).max(REQUESTS);
        self.requests.resize(room, null_request());
        self.peers.resize(room, 0);
        self.statuses.reserve(room);
        // A job of this many messages has no memory left for them.
        self.room = c_int::try_from(room).expect("fewer than 2^31 messages of a rank at a time");
    }

    #[inline(always)]
    pub(crate) fn isend(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        let (peer, tag) = (self.peer("post_send", to)?, self.tag("post_send", tag)?);
        let (at, n) = self.segment.place("post_send", span)?;
        let request = self.slot(peer);
        // SAFETY: *Live*, *Inside*, *Alive*.
        let code =
            unsafe { ffi::MPI_Isend(at.cast_const().cast(), n, tailback_mpi_byte, peer, tag, self.comm.raw, request) };
        self.posted("MPI_Isend", code)
    }

    #[inline(always)]
    pub(crate) fn irecv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        let (peer, tag) = (self.peer("post_recv", from)?, self.tag("post_recv", tag)?);
        let (at, n) = self.segment.place("post_recv", span)?;
        let request = self.slot(peer);
        // SAFETY: *Live*, *Inside*, *Alive*.
        let code = unsafe { ffi::MPI_Irecv(at.cast(), n, tailback_mpi_byte, peer, tag, self.comm.raw, request) };
        self.posted("MPI_Irecv", code)
    }

    /// One message by MPI's blocking call, which needs no request: some libraries take a fifth less time for it.
    #[inline(always)]
    pub(crate) fn send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        if !self.may_block() {
            self.isend(to, tag, span)?;
            return self.wait_all();
        }
        let (peer, tag) = (self.peer("send", to)?, self.tag("send", tag)?);
        let (at, n) = self.segment.place("send", span)?;
        // SAFETY: *Live*, *Inside*; MPI is done with the span when it returns.
        unsafe {
            let at = at.cast_const().cast();
            mpi!(MPI_Send(at, n, tailback_mpi_byte, peer, tag, self.comm.raw), self.job_rank(peer))
        }
    }

    #[inline(always)]
    pub(crate) fn recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        if !self.may_block() {
            self.irecv(from, tag, span)?;
            return self.wait_all();
        }
        let (peer, tag) = (self.peer("recv", from)?, self.tag("recv", tag)?);
        let (at, n) = self.segment.place("recv", span)?;
        // SAFETY: *Live*, *Inside*; MPI is done with the span when it returns.
        unsafe {
            let (at, ignored) = (at.cast(), ffi::RSMPI_STATUS_IGNORE);
            mpi!(MPI_Recv(at, n, tailback_mpi_byte, peer, tag, self.comm.raw, ignored), self.job_rank(peer))
        }
    }

    /// Whether a message can be waited for by itself, inside MPI.
    #[inline(always)]
    fn may_block(&self) -> bool {
        self.posted == 0 && !self.comm.waiting.is_apart()
    }

    /// Counts the message that [`Port::slot`] made room for, if MPI took it.
    #[inline(always)]
    fn posted(&mut self, call: &'static str, code: c_int) -> Result<()> {
        if code != 0 {
            return Err(self.post_failure(call, code));
        }
        self.posted += 1;
        Ok(())
    }

    #[cold]
    fn post_failure(&self, call: &'static str, code: c_int) -> Error {
        failure(call, code, self.job_rank(self.peers[self.posted as usize]))
    }

    #[inline(always)]
    pub(crate) fn wait_all(&mut self) -> Result<()> {
        if self.comm.waiting.is_apart() {
            return self.test_all();
        }
        // SAFETY: *Live*; the first `posted` of `requests` are active and ours, and `statuses` has room for as many.
        let code = unsafe { ffi::MPI_Waitall(self.posted, self.requests.as_mut_ptr(), self.statuses.as_mut_ptr()) };
        if code != 0 {
            return Err(self.wait_failure("MPI_Waitall", code));
        }
        self.posted = 0;
        Ok(())
    }

    /// As [`Port::wait_all`], with a pause after each fruitless look. Out of line: with a core for each rank the
    /// way to MPI_Waitall is as short as it can be.
    #[inline(never)]
    fn test_all(&mut self) -> Result<()> {
        let mut looks = 0u32;
        loop {
            let mut done = 0;
            // SAFETY: as in `wait_all`.
            let code = unsafe {
                let (requests, statuses) = (self.requests.as_mut_ptr(), self.statuses.as_mut_ptr());
                ffi::MPI_Testall(self.posted, requests, &mut done, statuses)
            };
            if code != 0 {
                return Err(self.wait_failure("MPI_Testall", code));
            }
            if done != 0 {
                self.posted = 0;
                return Ok(());
            }
            looks = looks.saturating_add(1);
            self.comm.waiting.pause(looks);
        }
    }

    /// Which message failed, where MPI says so in its status.
    #[cold]
    fn wait_failure(&self, call: &'static str, code: c_int) -> Error {
        if code == tailback_mpi_err_in_status {
            for (i, &peer) in self.peers[..self.posted as usize].iter().enumerate() {
                // SAFETY: with this code MPI has set the error field of all `n` statuses, which are plain numbers.
                let error = unsafe { (&raw const (*self.statuses.as_ptr().add(i)).MPI_ERROR).read() };
                if error != 0 && error != tailback_mpi_err_pending {
                    return failure(call, error, self.job_rank(peer));
                }
            }
        }
        failure(call, code, None)
    }

    #[cold]
    fn job_rank(&self, peer: c_int) -> Option<Rank> {
        self.members.get(usize::try_from(peer).ok()?).copied()
    }

    #[inline]
    pub(crate) fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        let (peer, window) = (self.peer("put", to)?, self.segment.rma("put")?);
        let (at, n) = self.segment.place("put", local)?;
        let there = self.segment.remote("put", remote, local.len)?;
        // SAFETY: *Live*, *Inside* here and (every member's segment has the same length) at the target, *Alive*: the
        // window stays locked and allocated until all members have dropped the group.
        unsafe {
            let (at, byte) = (at.cast_const().cast(), tailback_mpi_byte);
            mpi!(MPI_Put(at, n, byte, peer, there, n, byte, window), self.job_rank(peer))
        }
    }

    #[inline]
    pub(crate) fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        let (peer, window) = (self.peer("get", from)?, self.segment.rma("get")?);
        let (at, n) = self.segment.place("get", local)?;
        let there = self.segment.remote("get", remote, local.len)?;
        // SAFETY: as for `put`.
        unsafe {
            let byte = tailback_mpi_byte;
            mpi!(MPI_Get(at.cast(), n, byte, peer, there, n, byte, window), self.job_rank(peer))
        }
    }

    #[inline]
    pub(crate) fn flush(&mut self, peer: Rank) -> Result<()> {
        let (peer, window) = (self.peer("flush", peer)?, self.segment.rma("flush")?);
        if self.comm.waiting == Waiting::Yielding {
            // MPI cannot be asked whether a flush would wait; a target that serves it in software needs a core.
            thread::yield_now();
        }
        // SAFETY: *Live*; the window is locked for all members since it was made.
        unsafe { mpi!(MPI_Win_flush(peer, window), self.job_rank(peer)) }
    }

    /// Lets MPI see to what others ask of this rank: asking whether a message is there makes it look.
    pub(crate) fn progress(&mut self) -> Result<()> {
        let mut there = 0;
        // SAFETY: *Live*; nothing is received, and MPI writes the flag alone.
        unsafe {
            let (source, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            mpi!(MPI_Iprobe(source, tag, self.comm.raw, &mut there, ffi::RSMPI_STATUS_IGNORE))
        }
    }

    /// # Panics
    /// If the range is outside the segment.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        self.segment.read(offset, into);
    }

    /// # Panics
    /// If the range is outside the segment.
    pub(crate) fn write(&mut self, offset: usize, from: &[u8]) {
        self.segment.write(offset, from);
    }

    /// # Panics
    /// If a range is outside the segment.
    pub(crate) fn add_words(&mut self, left: Span, right: usize, into: usize) {
        self.segment.add_words(left, right, into);
    }
}

impl Remains {
    /// Gives everything back to MPI. Collective; only when every member's part is idle.
    pub(crate) fn free(self) -> Result<()> {
        self.segment.free()?;
        self.comms.into_iter().try_for_each(Comm::free)
    }
}
