//! The embedded backend: plain sockets, its own bootstrap and launcher, nothing to install.

#![forbid(unsafe_code)]

pub mod address;
pub mod bootstrap;
mod facts;
mod files;
mod handshake;
mod header;
pub mod launch;
pub mod secret;
mod strangers;
mod transport;
mod wire;

pub use bootstrap::{Interrupt, JoinConfig, TcpBootstrap};
pub use secret::Secret;
pub use tailback_host::WaitMode;
pub use transport::{TcpConfig, TcpTransport, has_congestion_control, open};
