//! Who is here: ranks join a job, prove its secret, exchange bytes, choose addresses and watch over each other.
//!
//! It is the control plane and is never measured. Every connection proves the job secret; strangers are turned away
//! without harm. A failure anywhere ends the whole job with one message and exit code 2. [`launch`] starts ranks on this
//! host. Out of scope: the network under test, which shares the secret, the handshake and the limits for strangers.

#![forbid(unsafe_code)]

pub mod address;
mod bootstrap;
mod codec;
mod config;
pub mod data_handshake;
mod env;
mod failure;
pub mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gate;
mod handshake;
mod hosts;
mod interrupt;
mod join;
mod judge;
pub mod launch;
mod lifeline;
mod link;
mod message;
mod nodelist;
mod patience;
mod peer;
mod polling;
mod roster;
pub mod secret;
mod setback;
mod shared;
pub mod strangers;
mod tree;
mod watch;

pub use bootstrap::TcpBootstrap;
pub use config::JoinConfig;
pub use env::variables;
pub use failure::{EXIT_CODE, ExitProcess, Failure, OnFailure};
pub use interrupt::Interrupt;
pub use lifeline::Lifeline;
pub use secret::Secret;
