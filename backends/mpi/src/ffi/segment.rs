//! The memory of a group on this rank: an MPI window, or plain memory where MPI has none. Invariants as in `ffi.rs`.

use std::ffi::c_int;
use std::{ptr, slice};

use mpi::ffi;
use mpi::ffi::{MPI_Aint, MPI_Win};
use tailback_transport::{Error, Result, Span, payload};

use super::{Comm, count, failure, mpi, tailback_mpi_mode_nocheck, tailback_mpi_win_model, tailback_mpi_win_unified};

/// What a window's memory is to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// One copy: a peer's put reaches it without a call.
    Unified,
    /// A public and a private copy, brought together by MPI_Win_sync.
    Separate,
}

/// The group's memory on this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// None where MPI has no one-sided communication: plain memory then.
    window: Option<(MPI_Win, Model)>,
    base: *mut u8,
    len: usize,
}

impl Segment {
    /// A zeroed window, open for puts and gets from now on. Collective.
    pub(super) fn window(comm: Comm, len: usize) -> Result<Segment> {
        let mut base: *mut u8 = ptr::null_mut();
        // SAFETY: *Live*; MPI stores the address of at least `len` bytes in `base`. NOCHECK: nobody ever takes an
        // exclusive lock. The model attribute points to an int that lives as long as the window.
        unsafe {
            let mut window = ffi::RSMPI_WIN_NULL;
            let at: *mut *mut u8 = &mut base;
            mpi!(MPI_Win_allocate(whole_pages(len)?, 1, ffi::RSMPI_INFO_NULL, comm.raw, at.cast(), &mut window))?;
            mpi!(MPI_Win_set_errhandler(window, ffi::RSMPI_ERRORS_RETURN))?;
            let (mut value, mut found): (*const c_int, c_int) = (ptr::null(), 0);
            let at: *mut *const c_int = &mut value;
            mpi!(MPI_Win_get_attr(window, tailback_mpi_win_model, at.cast(), &mut found))?;
            let unified = found != 0 && !value.is_null() && *value == tailback_mpi_win_unified;
            mpi!(MPI_Win_lock_all(tailback_mpi_mode_nocheck, window))?;
            let model = if unified { Model::Unified } else { Model::Separate };
            Ok(Segment { window: Some((window, model)), base, len }.zeroed())
        }
    }

    /// Memory for messages alone.
    pub(super) fn plain(len: usize) -> Result<Segment> {
        let mut base: *mut u8 = ptr::null_mut();
        // SAFETY: *Live*; MPI stores the address of at least `len` bytes in `base`.
        unsafe {
            let at: *mut *mut u8 = &mut base;
            mpi!(MPI_Alloc_mem(whole_pages(len)?, ffi::RSMPI_INFO_NULL, at.cast()))?;
        }
        Ok(Segment { window: None, base, len }.zeroed())
    }

    fn zeroed(self) -> Segment {
        if self.len > 0 {
            // SAFETY: `base` has `len` bytes, and no peer knows of them yet.
            unsafe { ptr::write_bytes(self.base, 0, self.len) };
        }
        self.sync();
        self
    }

    /// The address and MPI count of a span inside the segment.
    #[inline(always)]
    pub(super) fn place(&self, operation: &'static str, span: Span) -> Result<(*mut u8, c_int)> {
        let inside = span.len <= self.len && span.offset <= self.len - span.len;
        match c_int::try_from(span.len) {
            // SAFETY: `offset` is at most `len`, and `base` has that many bytes.
            Ok(n) if inside => Ok((unsafe { self.base.add(span.offset) }, n)),
            _ => Err(self.outside(operation, span)),
        }
    }

    #[inline]
    pub(super) fn remote(&self, operation: &'static str, offset: usize, len: usize) -> Result<MPI_Aint> {
        self.place(operation, Span::new(offset, len))?;
        bytes(offset)
    }

    #[cold]
    fn outside(&self, operation: &'static str, span: Span) -> Error {
        if let Err(error) = count(operation, span.len) {
            return error;
        }
        let detail = format!("{} bytes at {} are outside a segment of {} bytes", span.len, span.offset, self.len);
        Error::Usage { operation, detail }
    }

    fn check(&self, operation: &str, offset: usize, len: usize) {
        let inside = len <= self.len && offset <= self.len - len;
        assert!(inside, "{operation}: {len} bytes at {offset} are outside a segment of {} bytes", self.len);
    }

    #[inline]
    pub(super) fn rma(&self, operation: &'static str) -> Result<MPI_Win> {
        self.window.map(|(window, _)| window).ok_or_else(|| Error::Usage {
            operation,
            detail: "this MPI has no one-sided communication here, as its capabilities say".into(),
        })
    }

    pub(super) fn model(&self) -> Option<Model> {
        self.window.map(|(_, model)| model)
    }

    pub(super) fn read(&self, offset: usize, into: &mut [u8]) {
        self.check("read", offset, into.len());
        self.sync();
        // SAFETY: the range was checked; `into` is the caller's and cannot overlap memory of MPI's; the trait forbids a
        // peer's access to the range at this time, and `sync` ordered what peers did before.
        unsafe { ptr::copy_nonoverlapping(self.base.add(offset), into.as_mut_ptr(), into.len()) };
    }

    pub(super) fn write(&mut self, offset: usize, from: &[u8]) {
        self.check("write", offset, from.len());
        self.sync();
        // SAFETY: as for `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.base.add(offset), from.len()) };
        self.sync();
    }

    /// Adds words: [`tailback_transport::Group::add_words`].
    pub(super) fn add_words(&mut self, left: Span, right: usize, into: usize) {
        let len = left.len;
        [left.offset, right, into].into_iter().for_each(|offset| self.check("add_words", offset, len));
        // An empty segment may have no address.
        if len == 0 {
            return;
        }
        left.assert_sums_apart(right, into);
        self.sync();
        // SAFETY: the ranges were checked and are initialised; what is written overlaps nothing that is read; the trait forbids
        // a peer's access to them at this time, and `sync` ordered what peers did before.
        unsafe {
            let (left, right) = (self.base.add(left.offset), self.base.add(right));
            let (left, right) = (slice::from_raw_parts(left, len), slice::from_raw_parts(right, len));
            payload::add_words(left, right, slice::from_raw_parts_mut(self.base.add(into), len));
        }
        self.sync();
    }

    /// Gives the memory back. Collective where it is a window.
    pub(super) fn free(self) -> Result<()> {
        // SAFETY: *Live*; nothing is pending on any member, so nothing refers to the memory any more; consumed here.
        unsafe {
            match self.window {
                Some((mut window, _)) => {
                    mpi!(MPI_Win_unlock_all(window))?;
                    mpi!(MPI_Win_free(&mut window))
                }
                None => mpi!(MPI_Free_mem(self.base.cast())),
            }
        }
    }

    /// Orders this rank's loads and stores with what peers did to the window: a fence in the unified model, an exchange
    /// of the two copies in the separate one.
    pub(super) fn sync(&self) {
        if let Some((window, _)) = self.window {
            // SAFETY: *Live*; the window is locked.
            let result = unsafe { mpi!(MPI_Win_sync(window)) };
            // It reports misuse only, and there is none: the window is locked and its own.
            debug_assert!(result.is_ok(), "{result:?}");
        }
    }
}

/// Window sizes are whole pages and never nothing: ranks of a node do not share pages then, empty windows need no care,
/// and MPICH 4.0 mistakes where a peer's part of a shared window begins if sizes are no multiple of 32.
fn whole_pages(len: usize) -> Result<MPI_Aint> {
    bytes(len.max(1).checked_next_multiple_of(4096).unwrap_or(usize::MAX))
}

fn bytes(len: usize) -> Result<MPI_Aint> {
    MPI_Aint::try_from(len)
        .map_err(|_| Error::Usage { operation: "segment", detail: format!("{len} bytes are more than memory has") })
}
