//! Tailback over libfabric: one reliable datagram endpoint per rank, on any provider with tagged messages.
//!
//! - The library is loaded at run time: a binary with this backend starts on machines without libfabric.
//! - Matching, holding early messages and memory registration are the provider's; this crate adds groups, completion
//!   per lane and flush (see `engine.rs`), all unsafe code is in `ffi.rs`.
//!
//! Out of scope: who the ranks are ([`tailback_transport::Bootstrap`]), collectives and rendezvous protocols, which come
//! from `tailback-transport`.

mod choose;
mod config;
mod domain;
mod facts;
mod ffi;
mod load;
mod offer;
mod shared_memory;
mod traffic_class;
mod transport;

pub use choose::{DomainSelection, Source};
pub use config::LibfabricConfig;
pub use facts::{Provider, survey};
pub use ffi::make_room;
pub use load::check;
pub use traffic_class::TrafficClass;
pub use transport::{LibfabricTransport, open};
