//! Memory that the device may access: a segment with a registration. Invariants as in `ffi.rs`.

use std::ptr;
use std::rc::Rc;

use tailback_transport::{Error, Registration, Result, Segment};

use super::{Domain, failed_errno, loaded, sys};

/// Who may do what through a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The device, for work of this rank.
    Own,
    /// Peers too, by RDMA write and read.
    Peers,
}

/// Memory registered with the device.
pub(crate) type Memory = Segment<Region>;

/// What libibverbs knows about a segment.
#[derive(Debug)]
pub struct Region {
    /// Null once it is no longer registered.
    raw: *mut sys::ibv_mr,
    local_key: u32,
    remote_key: u32,
    _domain: Rc<Domain>,
}

impl Registration for Region {
    fn end(&mut self) -> bool {
        // SAFETY: *Open*, *Registered*; deregistered once.
        if !self.raw.is_null() && unsafe { (loaded().ibv_dereg_mr)(self.raw) } == 0 {
            self.raw = ptr::null_mut();
        }
        self.raw.is_null()
    }
}

/// A range of registered memory, for a work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) key: u32,
}

/// `len` zeroed bytes that the device may access.
pub(crate) fn memory(domain: &Rc<Domain>, len: usize, access: Access) -> Result<Memory> {
    let flags = match access {
        Access::Own => sys::IBV_ACCESS_LOCAL_WRITE,
        Access::Peers => sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ,
    };
    Segment::new(len, |base, pages| {
        // SAFETY: *Open*; all pages of the segment are registered and nothing else.
        let raw = unsafe { (loaded().ibv_reg_mr)(domain.raw, base.cast(), pages, flags as i32) };
        if raw.is_null() {
            return Err(explain(failed_errno("ibv_reg_mr", None), len));
        }
        // SAFETY: *Open*: the library made it just now.
        let (local_key, remote_key) = unsafe { ((*raw).lkey, (*raw).rkey) };
        Ok(Region { raw, local_key, remote_key, _domain: Rc::clone(domain) })
    })
}

/// A range of it.
///
/// # Panics
/// If the range is not inside.
#[inline]
pub(crate) fn piece(memory: &Memory, offset: usize, len: usize) -> Piece {
    Piece { address: memory.place(offset, len) as u64, len: len as u32, key: memory.registration().local_key }
}

/// Where it begins, as peers name it, and what they show to access it.
pub(crate) fn card(memory: &Memory) -> (u64, u32) {
    (memory.place(0, 0) as u64, memory.registration().remote_key)
}

/// Registering locks pages, which ordinary users may do only so much of.
fn explain(error: Error, len: usize) -> Error {
    match error {
        Error::Library { call, peer, code, message } => {
            let hint = if code == 12 { ": raise the limit of locked memory, `ulimit -l`" } else { "" };
            Error::Library { call, peer, code, message: format!("{message} for {len} bytes{hint}") }
        }
        other => other,
    }
}
