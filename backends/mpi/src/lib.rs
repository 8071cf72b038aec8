//! Tailback over any MPI-3 library: `MpiBootstrap` says who is here, `MpiTransport` is the network under test.
//!
//! rsmpi binds the library that `MPICC` names at build time and initialises it; messages, windows and collectives call
//! `mpi::ffi` directly, at the cost of the same calls in C. Every unsafe block is in the `ffi` module.
//!
//! One MPI per build: use one target folder per MPI, since a change of `MPICC` in a used one goes unnoticed. A binary
//! started by another MPI's launcher is refused by [`init`] with the names of both.

mod bootstrap;
mod ffi;
mod group;
mod launcher;
mod neighbour;
mod onesided;
mod session;
mod transport;
mod watch;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tailback_host::WaitMode;
use tailback_transport::{Monitor, Result};

pub use bootstrap::MpiBootstrap;
pub use group::MpiGroup;
pub use launcher::{Launcher, launcher};
pub use mpi::Threading;
pub use session::library;
pub use transport::MpiTransport;

/// Initialises MPI. Collective over the job; once per process, on the thread that will use what it returns,
/// before there are others: it may set environment variables that MPI reads.
///
/// `monitor` is where this rank says what it does: its phase goes into the message of an abort, and with a `stall`
/// limit a rank whose monitor does not move for that long ends the job. MPI is finalised when both values and every
/// group are dropped, which all ranks do after a clean run; after a panic or an error of MPI's, the job is aborted
/// instead, since finalising could wait forever.
///
/// `threads` is the thread level to ask MPI for; a library that has less is refused. No call of MPI's comes from a second
/// thread at any level, so it is for users who want to see what a level costs.
///
/// `wait` is how this rank waits, or `None` for what suits the ranks of its machine: in MPI's blocking calls when each
/// has a core, else by looking for the end of what it started, with naps in between.
pub fn init(
    monitor: Arc<Monitor>,
    stall: Option<Duration>,
    threads: Threading,
    wait: Option<WaitMode>,
) -> Result<(MpiBootstrap, MpiTransport)> {
    let session = Rc::new(session::Session::start(monitor, stall, threads)?);
    let session = MpiBootstrap::new(session).choose_waiting(wait)?;
    Ok((MpiBootstrap::new(Rc::clone(&session)), MpiTransport::new(session)))
}
