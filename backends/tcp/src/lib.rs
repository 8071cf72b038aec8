//! The embedded backend: plain sockets, nothing to install.

#![forbid(unsafe_code)]

mod facts;
mod header;
mod transport;
mod wire;

pub use transport::{TcpConfig, TcpTransport, has_congestion_control, open};
