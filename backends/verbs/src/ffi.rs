//! Every unsafe block of this crate: libibverbs wrapped so that the rest cannot misuse it.
//!
//! Invariants that the SAFETY comments refer to by name:
//! - *Open*: objects hold what they were made from (`Rc`), so a pointer to libibverbs' object is valid until its owner's
//!   drop, which destroys it once. All of it belongs to one thread: the types are not `Send`.
//! - *Registered*: memory is deregistered before its pages are freed, and is never freed if that fails. A work request
//!   that outlives its memory therefore ends in the device's refusal of the key, never in a stray access.
//! - *In bounds*: addresses of work requests and copies come from [`Memory`], which checks them.

mod device;
mod memory;
mod pair;
mod queue;

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::sync::OnceLock;

use rdma_sys as sys;
use rdma_sys::Library;
use tailback_transport::{Error, Rank, Result};

pub(crate) use device::{Context, Domain, Event, Limits, LinkLayer, Port, device_names};
pub use memory::Regions;
pub(crate) use memory::{Access, Memory, Piece, card, memory, piece, shared, shared_piece};
pub(crate) use pair::{Datagrams, Depths, Handle, Pair, Path, Patience, Peer};
pub(crate) use queue::{Completion, Completions, poll_failed};

/// The loaded library.
pub(crate) fn library() -> std::result::Result<&'static Library, &'static sys::Missing> {
    static LIBRARY: OnceLock<std::result::Result<Library, sys::Missing>> = OnceLock::new();
    LIBRARY.get_or_init(Library::load).as_ref()
}

/// The library, where something exists that only it can have made.
fn loaded() -> &'static Library {
    library().expect("the library is loaded before its objects are made")
}

/// An error of a call that returns its error number.
#[cold]
fn failed(call: &'static str, peer: Option<Rank>, number: c_int) -> Error {
    let message = io::Error::from_raw_os_error(number.abs()).to_string();
    Error::Library { call, peer, code: number.into(), message }
}

/// An error of a call that sets `errno`.
fn failed_errno(call: &'static str, peer: Option<Rank>) -> Error {
    failed(call, peer, io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

#[inline]
fn check(call: &'static str, peer: Option<Rank>, number: c_int) -> Result<()> {
    if number == 0 { Ok(()) } else { Err(failed(call, peer, number)) }
}

/// The library's words for a completion's status.
pub(crate) fn status_text(status: u32) -> String {
    // SAFETY: returns a constant string for every number.
    unsafe { text((loaded().ibv_wc_status_str)(status)) }
}

/// # Safety
/// `pointer` is null or a string that outlives this call.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
