//! The wire under the engine: every connection, bytes out, bytes in. Serves all peers in any call.
//!
//! - `peer`, `outbox`: one other rank. These hold state and do no I/O. `state` has all of them.
//! - `connect`: connections and their handshake. `write`, `read`: bytes out, bytes in. `arrive`: what headers mean.
//!   `progress`: when to do which.
//! - `ops`: what the engine asks for.
//!
//! Links are registered with epoll once, edge-triggered: a connection is on the ready list from the
//! event until a read finds it dry, so that waiting costs one system call and interest never has to be changed.

mod arrive;
mod connect;
mod ops;
mod outbox;
mod peer;
mod progress;
mod read;
mod state;
mod write;

pub use self::connect::set_traffic_class;
pub use self::state::{LocalEnd, TcpWire};
