//! Memory that the device may access. Invariants as in `ffi.rs`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr;
use std::rc::Rc;

use tailback_transport::{Error, Result};

use super::{Domain, failed_errno, loaded, sys};

const PAGE: usize = 4096;

/// Who may do what through a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The device, for work of this rank.
    Own,
    /// Peers too, by RDMA write and read.
    Peers,
}

/// Zeroed pages, registered with the device.
#[derive(Debug)]
pub(crate) struct Memory {
    region: *mut sys::ibv_mr,
    base: *mut u8,
    len: usize,
    layout: Layout,
    _domain: Rc<Domain>,
}

/// A range of registered memory, for a work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) key: u32,
}

impl Memory {
    pub(crate) fn new(domain: &Rc<Domain>, len: usize, access: Access) -> Result<Memory> {
        let too_much = || Error::Setup(format!("there is no memory for {len} bytes that the device can access"));
        let pages = len.max(1).checked_next_multiple_of(PAGE).ok_or_else(too_much)?;
        let layout = Layout::from_size_align(pages, PAGE).map_err(|_| too_much())?;
        let flags = match access {
            Access::Own => sys::IBV_ACCESS_LOCAL_WRITE,
            Access::Peers => sys::IBV_ACCESS_LOCAL_WRITE | sys::IBV_ACCESS_REMOTE_WRITE | sys::IBV_ACCESS_REMOTE_READ,
        };
        // SAFETY: *Open*; the layout is not empty; the whole allocation is registered and nothing else.
        unsafe {
            let base = alloc_zeroed(layout);
            if base.is_null() {
                return Err(too_much());
            }
            let region = (loaded().ibv_reg_mr)(domain.raw, base.cast(), pages, flags as i32);
            if region.is_null() {
                let error = failed_errno("ibv_reg_mr", None);
                dealloc(base, layout);
                return Err(explain(error, len));
            }
            Ok(Memory { region, base, len, layout, _domain: Rc::clone(domain) })
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where it begins, as peers name it.
    pub(crate) fn address(&self) -> u64 {
        self.base as u64
    }

    /// What peers show to access it.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: *Open*.
        unsafe { (*self.region).rkey }
    }

    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub(crate) fn piece(&self, offset: usize, len: usize) -> Piece {
        self.check(offset, len);
        // SAFETY: *Open*.
        let key = unsafe { (*self.region).lkey };
        Piece { address: self.base as u64 + offset as u64, len: len as u32, key }
    }

    #[inline]
    fn check(&self, offset: usize, len: usize) {
        let inside = len <= self.len && offset <= self.len - len;
        assert!(inside, "{len} bytes at {offset} are outside memory of {} bytes", self.len);
    }

    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: *In bounds*; `into` is a Rust slice and no part of memory that is only reached through `base`. What
        // the device writes there meanwhile is the caller's to prevent, as the traits say; bytes have no invalid value.
        unsafe { ptr::copy_nonoverlapping(self.base.add(offset), into.as_mut_ptr(), into.len()) };
    }

    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub(crate) fn write(&mut self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        // SAFETY: as for `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.base.add(offset), from.len()) };
    }

    /// Copies from another memory.
    ///
    /// # Panics
    /// If a range is not inside.
    #[inline]
    pub(crate) fn copy_from(&mut self, offset: usize, other: &Memory, from: usize, len: usize) {
        self.check(offset, len);
        other.check(from, len);
        // SAFETY: *In bounds*; two memories are two allocations, for one of them is borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(other.base.add(from), self.base.add(offset), len) };
    }

    /// Copies inside this memory; the ranges may overlap.
    ///
    /// # Panics
    /// If a range is not inside.
    pub(crate) fn copy_within(&mut self, from: usize, to: usize, len: usize) {
        self.check(from, len);
        self.check(to, len);
        // SAFETY: *In bounds*.
        unsafe { ptr::copy(self.base.add(from), self.base.add(to), len) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: *Registered*.
        unsafe {
            if (loaded().ibv_dereg_mr)(self.region) == 0 {
                dealloc(self.base, self.layout);
            }
        }
    }
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
