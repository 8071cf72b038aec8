//! Tailback's embedded backend: plain sockets, nothing to install.

#![forbid(unsafe_code)]

mod address;
mod engine;
mod facts;
mod group;
mod handshake;
mod transport;
mod wait;
mod wire;

pub use group::TcpGroup;
pub use transport::{TcpConfig, TcpTransport};
pub use wait::WaitMode;
