//! The wire under the engine: every pair, what is posted on it and what arrives. Serves all peers in any call.
//!
//! - `ids`, `work`, `link`, `endpoint`: request numbers, what is to be posted, one pair, this rank's end. `state` has all
//!   pairs. `window`, `buffers`: how much may be under way to a peer, and where it arrives.
//! - `connect`: pairs are made when ranks first talk, by greetings over datagrams. `pump`: posts what waits.
//!   `arrive`: what messages mean. `progress`: completions, waiting, and what is wrong.
//! - `ops`: what the engine asks for.

mod arrive;
mod buffers;
mod connect;
mod endpoint;
mod ids;
mod link;
mod ops;
mod progress;
mod pump;
mod state;
mod window;
mod work;

pub(crate) use self::endpoint::Endpoint;
pub use self::state::VerbsWire;
pub(crate) use self::window::Sizes;
