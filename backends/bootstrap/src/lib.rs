//! Who is here: ranks join a job, prove its secret, exchange bytes, choose addresses and watch over each other.
//!
//! It is the control plane and is never measured. Every connection proves the job secret; strangers are turned away
//! without harm. A failure anywhere ends the whole job with one message and exit code 2. [`launch`] starts ranks on this
//! host. Out of scope: the network under test, which shares the secret, the handshake and the limits for strangers.

#![forbid(unsafe_code)]

mod acceptor;
pub mod address;
mod bootstrap;
mod codec;
mod config;
mod env;
mod failure;
mod failure_detector;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod handshake;
mod hosts;
mod join;
pub mod launch;
mod launcher_pipe;
pub mod limits;
pub mod local_ports;
mod message;
mod neighbour;
mod polling;
mod secret;
pub mod strangers;
mod tree;
mod watcher;

pub use bootstrap::TcpBootstrap;
pub use config::{Interrupt, JoinConfig};
pub use env::variables;
pub use failure::{EXIT_CODE, ExitProcess, OnFailure};
pub use launcher_pipe::LauncherPipe;
pub use secret::Secret;
