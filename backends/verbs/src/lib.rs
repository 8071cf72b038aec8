//! Tailback over InfiniBand and RoCE, straight on libibverbs, which is loaded at run time.
//!
//! - Messages: reliable queue pairs between the ranks that talk, made when they first do. Buffers with credits on the
//!   receiving side, matching in software; no copy on the sending side.
//! - Put and get: RDMA write and read, served by the device without the target's processor. A flush after puts ends with
//!   a read behind them, so that they are in the target's memory and not only in its adapter.
//!
//! Safety: every unsafe block is in `ffi` (and in the crate `rdma-sys`), whose head says what they rely on.
//!
//! Over rails a rank uses several ports at once, of several devices or of one, and has all of this on each.
//!
//! Out of scope: multicast, atomics, device memory.

mod choose;
mod config;
mod facts;
mod ffi;
mod gid;
mod header;
mod place;
mod seal;
mod transport;
mod wire;

pub use config::{Buffers, Tries, VerbsConfig};
pub use transport::{VerbsTransport, open};

/// The devices and ports of this machine, a line each; or what is missing and the package that has it.
///
/// # Errors
/// What is missing.
pub fn devices() -> Result<Vec<String>, String> {
    choose::list()
}
