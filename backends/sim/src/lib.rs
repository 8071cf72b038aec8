//! A simulated network for Tailback, as a backend: the ranks of a job are coroutines of one process on virtual time, the
//! network is a discrete-event simulator in packets.
//!
//! - [`machine`]: what is simulated, read from TOML files;
//! - [`net`]: the network alone, for whoever has traffic of their own;
//! - [`Simulation`]: jobs, with a [`tailback_transport::Bootstrap`] and a [`tailback_engine::Engine`] for every
//!   rank, on which everything that is written for those runs unchanged.
//!
//! The same machine, seed and job give the same result, bit for bit. `examples/network.rs` has two ranks
//! measure what an incast of the others does to them; the least job there is:
//!
//! ```
//! use tailback_sim::{Simulation, machine::Machine};
//! use tailback_transport::{Bootstrap as _, Error};
//!
//! let job = Simulation::new(Machine::load("small").unwrap()).ranks(4).run(|mut bootstrap, _| {
//!     bootstrap.barrier()?;
//!     Ok::<_, Error>(bootstrap.rank().0)
//! });
//! assert_eq!(job.unwrap().results, [0, 1, 2, 3]);
//! ```

#![deny(unsafe_code)]

mod ffi;
mod hash;
mod job;
pub mod machine;
pub mod net;
pub mod rng;

pub use job::{Finished, SimBootstrap, SimError, SimSlot, SimTransport, Simulation, begin_phase, host_name, room};
