//! The embedded backend: plain sockets, its own bootstrap and launcher, nothing to install.

#![forbid(unsafe_code)]

pub mod address;
pub mod bootstrap;
mod engine;
mod facts;
mod files;
mod group;
mod handshake;
pub mod launch;
pub mod secret;
mod transport;
mod wire;

pub use bootstrap::{Interrupt, JoinConfig, TcpBootstrap};
pub use group::TcpGroup;
pub use secret::Secret;
pub use tailback_transport::WaitMode;
pub use transport::{TcpConfig, TcpTransport};
