//! Tailback over libfabric: one reliable datagram endpoint per rank, on any provider with tagged messages.
//!
//! - The library is loaded at run time: a binary with this backend starts on machines without libfabric.
//! - Matching, holding early messages and memory registration are the provider's; this crate adds groups, completion
//!   per lane and flush (see `engine.rs`), all unsafe code is in `ffi.rs`.
//!
//! Out of scope: who the ranks are ([`tailback_transport::Bootstrap`]), collectives and rendezvous protocols, which come
//! from `tailback-transport`.

mod choose;
mod engine;
mod facts;
mod ffi;
mod group;
mod offer;
mod shared_memory;
mod tag;
mod traffic_class;
mod transport;

use std::path::Path;

use libfabric_sys::LoadError;

use tailback_transport::{Error, Result};

pub use choose::{Source, Wishes};
pub use facts::{Provider, survey};
pub use group::LibfabricGroup;
pub use traffic_class::TrafficClass;
pub use transport::{LibfabricConfig, LibfabricTransport};

/// Whether the library can be used, and if not, what to do.
///
/// # Errors
/// If it cannot be loaded.
pub fn check(path: Option<&Path>) -> Result<()> {
    load(path).map(|_| ())
}

fn load(path: Option<&Path>) -> Result<ffi::Fabric> {
    ffi::Fabric::load(path).map_err(|error| match error {
        LoadError::Missing { .. } => Error::Setup(format!(
            "{error}: install libfabric (Debian: libfabric1, Fedora and others: libfabric), or name the file with \
             --libfabric-path or TAILBACK_LIBFABRIC"
        )),
        other => Error::Setup(other.to_string()),
    })
}
