//! Every call into libfabric, as safe functions: the only unsafe code of this crate.
//!
//! Invariants that the SAFETY arguments rely on:
//! - *Live*: an [`Endpoint`] owns its fabric, domain, queue, address vector and endpoint; all exist until it is dropped,
//!   which closes them in the order libfabric asks for. It is `!Send`: one thread makes all calls.
//! - *Inside*: an address handed to libfabric comes from `Regions::place`, which checks the span against the region.
//! - *Kept*: a region's memory is freed only when no operation refers to it: each operation in flight is counted, and
//!   regions that are given up earlier wait for their count (or for the endpoint's end).
//! - *Slots*: an operation's context lives in a slot whose address never changes, and which is not reused before the
//!   operation's completion was read.
//! - Memory that peers may write is copied through raw pointers and never lent as a slice.
//!
//! `ffi/library.rs` has the library and what it offers, `ffi/endpoint.rs` the objects and operations, `ffi/region.rs` a
//! group's memory, `ffi/slots.rs` the contexts, `ffi/signals.rs` what providers must not change behind our back.
//!
//! Out of scope: what operations are for, and when; see `engine.rs`.

mod endpoint;
mod library;
mod open;
mod region;
mod signals;
mod slots;

pub use endpoint::Endpoint;
pub use library::make_room;
pub(crate) use library::{Fabric, Info, Query};
pub(crate) use open::OpenConfig;

use std::ffi::{CStr, c_char};

/// The text behind a pointer of libfabric's, if there is one.
///
/// # Safety
/// Null, or a C string that lives through the call.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, so a live C string, as the caller promises.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}
