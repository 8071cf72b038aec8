//! Every call into the MPI library on the hot path, for windows and for collectives, as safe functions.
//!
//! rsmpi drops MPI's return codes and has no windows, so set-up beyond `MPI_Init_thread` goes through `mpi::ffi` too.
//! Invariants that the SAFETY arguments below rely on:
//! - *Live*: a [`Comm`] or [`Port`] exists only between `MPI_Init_thread` and `MPI_Finalize`, on the thread that
//!   initialised MPI (both are `!Send`); its handles are freed by [`Remains::free`] alone, which consumes them.
//! - *Inside*: an address handed to MPI comes from `Segment::place`, which checks the span against the segment.
//! - *Alive*: the segment is MPI's own memory and is freed only when no request of its port is pending.
//! - *Kept*: memory of ours that MPI uses while a call is under way is given up to it, and had back only when MPI says that
//!   the call is complete. After any error of MPI's nothing that it may still refer to is freed: its requests then prove
//!   nothing.
//! - Memory that peers may write is copied through raw pointers and never lent as a slice.
//!
//! This file has the communicators, `ffi/wait.rs` how the end of a call is waited for, `ffi/segment.rs` a group's memory,
//! `ffi/port.rs` its messages. Out of scope: what the calls are for; see `group.rs`, `bootstrap.rs` and `session.rs`.

mod port;
mod segment;
mod wait;

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::ffi;
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Request};
use tailback_transport::{Error, Rank, Result};

pub(crate) use port::{Port, Remains};
pub(crate) use segment::Model;
pub(crate) use wait::Waiting;

// SAFETY: `shim.c` defines exactly these names with these types, all constant and initialised at load time.
unsafe extern "C" {
    safe static tailback_mpi_in_place: *mut c_void;
    safe static tailback_mpi_byte: MPI_Datatype;
    safe static tailback_mpi_double: MPI_Datatype;
    safe static tailback_mpi_uint64: MPI_Datatype;
    safe static tailback_mpi_max_error_string: c_int;
    safe static tailback_mpi_mode_nocheck: c_int;
    safe static tailback_mpi_tag_ub: c_int;
    safe static tailback_mpi_win_model: c_int;
    safe static tailback_mpi_win_unified: c_int;
    safe static tailback_mpi_err_in_status: c_int;
    safe static tailback_mpi_err_pending: c_int;
}

/// Calls an MPI function; its code becomes an error that names the call and, where one is given, the peer.
macro_rules! mpi {
    ($function:ident($($argument:expr),*)) => { mpi!($function($($argument),*), None) };
    ($function:ident($($argument:expr),*), $peer:expr) => {
        // `ffi::$function` is unsafe: each use of this macro stands in an unsafe block with its own argument.
        match ffi::$function($($argument),*) {
            0 => Ok(()),
            code => Err(failure(stringify!($function), code, $peer)),
        }
    };
}

use mpi;

/// The order of unsigned numbers in signed ones, since MPICH 4.0 compares MPI_UINT64_T as if it were signed.
fn signed(number: u64) -> i64 {
    (number ^ (1 << 63)).cast_signed()
}

fn unsigned(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// Set by the first error of MPI's: from then on, finalising could wait forever for a peer.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Whether MPI has returned an error.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Forgets an error that was expected and that every rank knows of.
pub(crate) fn forgive() {
    FAILED.store(false, Ordering::Relaxed);
}

#[cold]
fn failure(call: &'static str, code: c_int, peer: Option<Rank>) -> Error {
    FAILED.store(true, Ordering::Relaxed);
    let mut text = vec![0u8; usize::try_from(tailback_mpi_max_error_string).unwrap_or(512) + 1];
    let mut length = 0;
    // SAFETY: `text` has room for MPI_MAX_ERROR_STRING bytes and a zero; codes come from MPI itself.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
    text.truncate(if known == 0 { usize::try_from(length).unwrap_or(0) } else { 0 });
    Error::Library { call, peer, code: code.into(), message: String::from_utf8_lossy(&text).trim().to_owned() }
}

#[inline]
fn count(operation: &'static str, len: usize) -> Result<c_int> {
    c_int::try_from(len).map_err(|_| Error::Usage {
        operation,
        detail: format!("{len} bytes are more than one MPI call can carry (2 GiB - 1)"),
    })
}

/// Where `bytes` are. The address of an empty slice is 1 in Rust, which some libraries know as MPI_IN_PLACE.
fn address(bytes: &[u8]) -> *const c_void {
    const ELSEWHERE: &[u8] = &[0];
    if bytes.is_empty() { ELSEWHERE } else { bytes }.as_ptr().cast()
}

fn null_request() -> MPI_Request {
    // SAFETY: a constant of rsmpi's shim, initialised at load time.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// Sets a variable that MPI reads when it is initialised.
pub(crate) fn set_before_init(name: &str, value: &str) {
    // SAFETY: called by `init` alone, which is documented to be called before the process has other threads that could
    // read or write the environment at the same time.
    unsafe { std::env::set_var(name, value) };
}

/// Ends every process of the job. Meant for the thread that initialised MPI; the watcher calls it when that one is stuck for
/// good, and both ways this can go (the job is aborted, or this process crashes in the attempt) end the job.
pub(crate) fn abort(code: i32) -> ! {
    // SAFETY: MPI is initialised whenever a session exists, which is what this is called on behalf of; MPI_Abort only
    // talks to the launcher and reads no memory of ours.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    std::process::exit(code);
}

/// Ends this process at once, on any thread: what libraries registered to run at an exit is left out, since it may call
/// MPI or wait for a thread that is stuck. The launcher sees a rank that ended without `MPI_Finalize`, and ends the rest.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: POSIX's `_exit`, declared as its header has it; it touches no memory and does not return.
    unsafe extern "C" {
        safe fn _exit(code: c_int) -> !;
    }
    _exit(code)
}

/// A communicator whose errors are returned. What is made from it waits as it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comm {
    raw: MPI_Comm,
    waiting: Waiting,
    one_thread: PhantomData<*const ()>,
}

impl Comm {
    /// A copy of MPI_COMM_WORLD, with its rank and size. Collective. MPI must be initialised (see *Live*).
    pub(crate) fn world() -> Result<(Comm, Rank, usize)> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised; the out-pointers are locals. The world itself must return errors too: it is what
        // errors without a communicator are raised on.
        let comm = unsafe {
            mpi!(MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN))?;
            mpi!(MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank))?;
            mpi!(MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size))?;
            Comm { raw: ffi::RSMPI_COMM_WORLD, waiting: Waiting::Inside, one_thread: PhantomData }.duplicate()?
        };
        Ok((comm, Rank(rank.unsigned_abs()), size.unsigned_abs() as usize))
    }

    /// How many members it has.
    pub(crate) fn size(self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: *Live*; the out-pointer is a local.
        unsafe { mpi!(MPI_Comm_size(self.raw, &mut size)) }?;
        Ok(size.unsigned_abs() as usize)
    }

    /// The same communicator, waiting in this way. Collectives of two ways do not meet: all members change together.
    pub(crate) fn waiting(self, waiting: Waiting) -> Comm {
        Comm { waiting, ..self }
    }

    fn returning_errors(self) -> Result<Comm> {
        // SAFETY: *Live*.
        unsafe { mpi!(MPI_Comm_set_errhandler(self.raw, ffi::RSMPI_ERRORS_RETURN)) }?;
        Ok(self)
    }

    /// The same members in a communicator of its own. Collective.
    pub(crate) fn duplicate(self) -> Result<Comm> {
        let mut copy = self;
        // SAFETY: *Live*; the out-pointer is a local.
        unsafe { mpi!(MPI_Comm_dup(self.raw, &mut copy.raw)) }?;
        copy.returning_errors()
    }

    /// The members that can share memory with this one. Collective.
    pub(crate) fn shared_memory(self, rank: Rank) -> Result<Comm> {
        let mut part = self;
        let key = count("MPI_Comm_split_type", rank.index())?;
        // SAFETY: *Live*; the out-pointer is a local.
        unsafe {
            let (kind, info) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            mpi!(MPI_Comm_split_type(self.raw, kind, key, info, &mut part.raw))
        }?;
        part.returning_errors()
    }

    /// `members` in that order, made by them alone; `tag` keeps apart what is made at the same time.
    pub(crate) fn of_members(self, members: &[Rank], tag: c_int) -> Result<Comm> {
        let ranks: Vec<c_int> = members.iter().map(|r| r.0.cast_signed()).collect();
        let size = count("MPI_Group_incl", ranks.len())?;
        let mut part = self;
        // SAFETY: *Live*; `ranks` has `size` elements; the groups are freed once, after their last use.
        unsafe {
            let (mut all, mut some) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
            mpi!(MPI_Comm_group(self.raw, &mut all))?;
            mpi!(MPI_Group_incl(all, size, ranks.as_ptr(), &mut some))?;
            mpi!(MPI_Comm_create_group(self.raw, some, tag, &mut part.raw))?;
            mpi!(MPI_Group_free(&mut some))?;
            mpi!(MPI_Group_free(&mut all))?;
        }
        part.returning_errors()
    }

    /// The largest tag a message may have.
    pub(crate) fn largest_tag(self) -> Result<u32> {
        let (mut value, mut found): (*const c_int, c_int) = (ptr::null(), 0);
        // SAFETY: *Live*; MPI stores a pointer to an int that lives as long as MPI does, if `found` says so.
        let largest = unsafe {
            let at: *mut *const c_int = &mut value;
            mpi!(MPI_Comm_get_attr(self.raw, tailback_mpi_tag_ub, at.cast(), &mut found))?;
            if found != 0 && !value.is_null() { *value } else { 32767 }
        };
        Ok(u32::try_from(largest).unwrap_or(32767))
    }

    #[inline]
    pub(crate) fn barrier(self) -> Result<()> {
        // SAFETY: *Live*.
        unsafe {
            match self.waiting {
                Waiting::Inside => mpi!(MPI_Barrier(self.raw)),
                apart => apart.after(None, |end| mpi!(MPI_Ibarrier(self.raw, end))),
            }
        }
    }

    /// The least of the members' values.
    pub(crate) fn minimum(self, value: u64) -> Result<u64> {
        // SAFETY: rsmpi's shim defines both as constants.
        let (kind, minimum) = unsafe { (ffi::RSMPI_INT64_T, ffi::RSMPI_MIN) };
        let all = tailback_mpi_in_place;
        if self.waiting == Waiting::Inside {
            let mut value = signed(value);
            // SAFETY: *Live*; `value` is ours alone until this returns, when the call is complete.
            unsafe { mpi!(MPI_Allreduce(all, ptr::from_mut(&mut value).cast(), 1, kind, minimum, self.raw)) }?;
            return Ok(unsigned(value));
        }
        // SAFETY: *Live*, *Kept*.
        let done = self.waiting.after_with(None, vec![signed(value)], |own, end| unsafe {
            mpi!(MPI_Iallreduce(all, own.as_mut_ptr().cast(), 1, kind, minimum, self.raw, end))
        })?;
        Ok(unsigned(done[0]))
    }

    pub(crate) fn broadcast(self, bytes: &mut [u8]) -> Result<()> {
        let n = count("MPI_Bcast", bytes.len())?;
        let byte = tailback_mpi_byte;
        if self.waiting == Waiting::Inside {
            // SAFETY: *Live*; `bytes` is ours alone until this returns, when the call is complete.
            return unsafe { mpi!(MPI_Bcast(bytes.as_mut_ptr().cast(), n, byte, 0, self.raw)) };
        }
        // SAFETY: *Live*, *Kept*.
        let done = self.waiting.after_with(None, bytes.to_vec(), |own, end| unsafe {
            mpi!(MPI_Ibcast(own.as_mut_ptr().cast(), n, byte, 0, self.raw, end))
        })?;
        bytes.copy_from_slice(&done);
        Ok(())
    }

    /// Every member's bytes, one after the other; `lengths` are theirs, in order, and the same on every member.
    pub(crate) fn allgather(self, mine: &[u8], lengths: &[usize]) -> Result<Vec<u8>> {
        let mut all = vec![0u8; lengths.iter().sum()];
        count("MPI_Allgatherv", all.len())?;
        if all.is_empty() {
            return Ok(all);
        }
        let counts: Vec<c_int> = lengths.iter().map(|&l| count("MPI_Allgatherv", l)).collect::<Result<_>>()?;
        let starts: Vec<c_int> = counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
        let n = count("MPI_Allgatherv", mine.len())?;
        let byte = tailback_mpi_byte;
        if self.waiting == Waiting::Inside {
            // SAFETY: *Live*; counts and starts partition `all`, one of each per member (the caller passed as many lengths
            // as there are members; MPI reads no more), and all buffers outlive the call, which is complete when this
            // returns.
            unsafe {
                let (from, into) = (address(mine), all.as_mut_ptr().cast());
                let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
                mpi!(MPI_Allgatherv(from, n, byte, into, counts, starts, byte, self.raw))
            }?;
            return Ok(all);
        }
        let memory = (mine.to_vec(), all, counts, starts);
        // SAFETY: *Live*, *Kept*; otherwise as above.
        let done = self.waiting.after_with(None, memory, |(mine, all, counts, starts), end| unsafe {
            let (from, into) = (address(mine), all.as_mut_ptr().cast());
            let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
            mpi!(MPI_Iallgatherv(from, n, byte, into, counts, starts, byte, self.raw, end))
        })?;
        Ok(done.1)
    }

    /// Every member's number, in order; `size` is the number of members.
    pub(crate) fn allgather_number(self, mine: u64, size: usize) -> Result<Vec<u64>> {
        let mut all = vec![0u64; size];
        let kind = tailback_mpi_uint64;
        if self.waiting == Waiting::Inside {
            // SAFETY: *Live*; `all` has room for one number per member, and both buffers outlive the call, which is
            // complete when this returns.
            unsafe {
                let (from, into) = (ptr::from_ref(&mine).cast(), all.as_mut_ptr().cast());
                mpi!(MPI_Allgather(from, 1, kind, into, 1, kind, self.raw))
            }?;
            return Ok(all);
        }
        // SAFETY: *Live*, *Kept*; otherwise as above.
        let done = self.waiting.after_with(None, (vec![mine], all), |(mine, all), end| unsafe {
            let (from, into) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
            mpi!(MPI_Iallgather(from, 1, kind, into, 1, kind, self.raw, end))
        })?;
        Ok(done.1)
    }

    pub(crate) fn send(self, bytes: &[u8], to: Rank) -> Result<()> {
        let n = count("MPI_Send", bytes.len())?;
        let (byte, peer) = (tailback_mpi_byte, to.0.cast_signed());
        if self.waiting == Waiting::Inside {
            // SAFETY: *Live*; `bytes` outlives the call, which is complete when this returns.
            return unsafe { mpi!(MPI_Send(address(bytes), n, byte, peer, 0, self.raw), Some(to)) };
        }
        // SAFETY: *Live*, *Kept*.
        let sent = self.waiting.after_with(Some(to), bytes.to_vec(), |own, end| unsafe {
            mpi!(MPI_Isend(address(own), n, byte, peer, 0, self.raw, end), Some(to))
        });
        sent.map(|_| ())
    }

    pub(crate) fn receive(self, bytes: &mut [u8], from: Rank) -> Result<()> {
        let n = count("MPI_Recv", bytes.len())?;
        let (byte, peer) = (tailback_mpi_byte, from.0.cast_signed());
        if self.waiting == Waiting::Inside {
            // SAFETY: *Live*; `bytes` is ours alone until this returns, when the call is complete.
            return unsafe {
                let at = bytes.as_mut_ptr().cast();
                mpi!(MPI_Recv(at, n, byte, peer, 0, self.raw, ffi::RSMPI_STATUS_IGNORE), Some(from))
            };
        }
        // SAFETY: *Live*, *Kept*.
        let done = self.waiting.after_with(Some(from), bytes.to_vec(), |own, end| unsafe {
            mpi!(MPI_Irecv(own.as_mut_ptr().cast(), n, byte, peer, 0, self.raw, end), Some(from))
        })?;
        bytes.copy_from_slice(&done);
        Ok(())
    }

    /// Frees the communicator. Collective.
    pub(crate) fn free(mut self) -> Result<()> {
        // SAFETY: *Live*; consumed here, and callers keep no copy in use.
        unsafe { mpi!(MPI_Comm_free(&mut self.raw)) }
    }
}
