//! A simulated network for Tailback, as a backend: the ranks of a job are coroutines of one process on virtual time, the
//! network is a discrete-event simulator in packets.
//!
//! - [`machine`]: what is simulated, read from TOML files;
//! - [`net`]: the network alone, for whoever has traffic of their own;
//! - [`Simulation`]: jobs, with a [`tailback_transport::Bootstrap`] and a [`tailback_engine::Engine`] for every
//!   rank, on which everything that is written for those runs unchanged.
//!
//! The same machine, seed and job give the same result, bit for bit.

#![deny(unsafe_code)]

mod ffi;
mod hash;
mod job;
pub mod machine;
pub mod net;
pub mod rng;

pub use job::{Finished, SimBootstrap, SimError, SimSlot, SimTransport, Simulation, begin_phase, host_name, room};
