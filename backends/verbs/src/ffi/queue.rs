//! The completion queue and the channel that wakes its owner. Invariants as in `ffi.rs`.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::rc::Rc;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tailback_transport::{Error, Result};

use super::{Context, check, failed, failed_errno, loaded, sys};

/// IBV_WC_GRH, among the flags of a completion.
const WITH_GLOBAL_HEADER: u32 = 1;

/// One completion.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Completion(sys::ibv_wc);

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("id", &self.id()).field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Completion {
    /// Room for one.
    pub(crate) fn empty() -> Completion {
        Completion(sys::ibv_wc::default())
    }

    /// The number given with the request.
    pub(crate) fn id(&self) -> u64 {
        self.0.wr_id
    }

    /// Whether the request succeeded. If not, only id and status mean something.
    pub(crate) fn is_success(&self) -> bool {
        self.0.status == sys::IBV_WC_SUCCESS
    }

    pub(crate) fn status(&self) -> u32 {
        self.0.status
    }

    pub(crate) fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }

    /// Whether the request was dropped because an earlier one of the pair had failed.
    pub(crate) fn is_consequence(&self) -> bool {
        self.0.status == sys::IBV_WC_WR_FLUSH_ERR
    }

    /// Bytes received.
    pub(crate) fn len(&self) -> usize {
        self.0.byte_len as usize
    }

    /// The number that came with a received message.
    pub(crate) fn immediate(&self) -> u32 {
        // SAFETY: both fields of the union are plain 32-bit numbers.
        u32::from_be(unsafe { self.0.__bindgen_anon_1.imm_data })
    }

    /// The number of the pair a datagram came from.
    pub(crate) fn source(&self) -> u32 {
        self.0.src_qp
    }

    /// The port it came from, inside an InfiniBand subnet.
    pub(crate) fn source_lid(&self) -> u16 {
        self.0.slid
    }

    /// Whether a global header came with it.
    pub(crate) fn has_global_header(&self) -> bool {
        self.0.wc_flags & WITH_GLOBAL_HEADER != 0
    }
}

/// The error of a poll that gave a negative number.
pub(crate) fn poll_failed(number: i32) -> Error {
    failed("ibv_poll_cq", None, number)
}

/// A completion queue with its channel.
#[derive(Debug)]
pub(crate) struct Completions {
    pub(super) raw: *mut sys::ibv_cq,
    channel: *mut sys::ibv_comp_channel,
    _context: Rc<Context>,
}

impl Completions {
    /// A queue for at least `len` completions.
    pub(crate) fn new(context: &Rc<Context>, len: u32) -> Result<Rc<Completions>> {
        // SAFETY: *Open*; the queue is made with its channel and destroyed before it.
        let queue = unsafe {
            let channel = (loaded().ibv_create_comp_channel)(context.raw);
            if channel.is_null() {
                return Err(failed_errno("ibv_create_comp_channel", None));
            }
            let len = i32::try_from(len).unwrap_or(i32::MAX);
            let raw = (loaded().ibv_create_cq)(context.raw, len, ptr::null_mut(), channel, 0);
            if raw.is_null() {
                let error = failed_errno("ibv_create_cq", None);
                (loaded().ibv_destroy_comp_channel)(channel);
                return Err(error);
            }
            Completions { raw, channel, _context: Rc::clone(context) }
        };
        let fd = queue.fd();
        let flags = fcntl_getfl(fd).and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK));
        flags.map_err(|source| Error::Io {
            operation: "open completion channel",
            peer: None,
            source: source.into(),
        })?;
        Ok(Rc::new(queue))
    }

    /// Makes room for at least `len` completions; what is in the queue stays in it.
    ///
    /// # Errors
    /// If the device cannot, or its driver does not know how.
    pub(crate) fn grow(&self, len: u32) -> Result<()> {
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        // SAFETY: *Open*; the queue belongs to this thread, which does not poll it meanwhile.
        check("ibv_resize_cq", None, unsafe { (loaded().ibv_resize_cq)(self.raw, len) })
    }

    /// How many completions it has room for.
    pub(crate) fn len(&self) -> u32 {
        // SAFETY: *Open*; the library keeps the number in its object.
        u32::try_from(unsafe { (*self.raw).cqe }).unwrap_or_default()
    }

    /// Takes completions into `batch`; how many, or less than none if it [failed](poll_failed). A plain number, for this
    /// is what a rank that waits does all the time.
    #[inline]
    pub(crate) fn poll(&self, batch: &mut [Completion]) -> i32 {
        // SAFETY: *Open*; the wrapper has the layout of what it wraps, and the callee fills at most `batch`.
        unsafe { sys::ibv_poll_cq(self.raw, batch.len() as i32, batch.as_mut_ptr().cast()) }
    }

    /// Asks for an event with the next completion.
    pub(crate) fn arm(&self) -> Result<()> {
        // SAFETY: *Open*.
        check("ibv_req_notify_cq", None, unsafe { sys::ibv_req_notify_cq(self.raw, 0) })
    }

    /// Readable when there is an event.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: *Open*: the descriptor is the channel's until it is destroyed.
        unsafe { BorrowedFd::borrow_raw((*self.channel).fd) }
    }

    /// Takes an event, if there is one.
    pub(crate) fn take_event(&self) -> bool {
        let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: *Open*; the descriptor does not block. An event is acknowledged at once: a queue with one that was
        // not cannot be destroyed.
        unsafe {
            let taken = (loaded().ibv_get_cq_event)(self.channel, &raw mut queue, &raw mut context) == 0;
            if taken {
                (loaded().ibv_ack_cq_events)(queue, 1);
            }
            taken
        }
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: *Open*; pairs that use the queue hold it.
        unsafe {
            (loaded().ibv_destroy_cq)(self.raw);
            (loaded().ibv_destroy_comp_channel)(self.channel);
        }
    }
}
