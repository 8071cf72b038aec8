//! What every Tailback backend provides: traits, newtypes, errors.
//!
//! Two planes, never mixed:
//! - [`Bootstrap`] knows who is here. It is used before and after timed phases only.
//! - [`Transport`] is the network under test. Its [`Group`]s carry everything that is measured.
//!
//! A backend with collectives of its own (MPI) implements both traits; any other is an engine of `tailback-engine`, which
//! makes a transport of it. Kernels are generic over [`Group`] and monomorphised, so there is no dyn call in a timed loop.
//! The conformance suite of `tailback-testkit`, which every backend instantiates, is the executable definition of these traits,
//! and its `examples/kernel.rs` a kernel over them:
//!
//! ```
//! use tailback_transport::{Group, Rank, Result, Span, Tag};
//!
//! /// The time of one message to the right neighbour and one from the left, over any backend.
//! fn exchange<G: Group>(group: &mut G) -> Result<u64> {
//!     let (me, size, start) = (group.rank().index(), group.size(), group.now());
//!     group.post_recv(Rank::from((me + size - 1) % size), Tag(1), Span::new(64, 8))?;
//!     group.post_send(Rank::from((me + 1) % size), Tag(1), Span::new(0, 8))?;
//!     group.wait_all()?;
//!     Ok(group.now().since(start).0)
//! }
//! ```

#![forbid(unsafe_code)]

pub mod arranged;
mod bootstrap;
mod capability;
pub mod cpu_list;
mod error;
mod group;
mod monitor;
pub mod payload;
mod traffic_class;
mod types;
pub mod units;

pub use bootstrap::{Bootstrap, Merge};
pub use capability::{Capabilities, Description, Operation, Support};
pub use error::{Error, Result};
pub use group::{Group, Proposal, Transport};
pub use monitor::{Monitor, START_UP, WatchPost};
pub use traffic_class::traffic_class;
pub use types::{Bytes, Nanos, Rank, Span, Tag};
