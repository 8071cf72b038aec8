//! The embedded backend: plain sockets, its own bootstrap and launcher, nothing to install.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod launch;
pub mod secret;

pub use bootstrap::{JoinConfig, TcpBootstrap};
pub use secret::Secret;
