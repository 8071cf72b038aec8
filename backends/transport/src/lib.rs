//! What every Tailback backend provides, and what is written once on top of it.
//!
//! Two planes, never mixed:
//! - [`Bootstrap`] knows who is here. It is used before and after timed phases only.
//! - [`Transport`] is the network under test. Its [`Group`]s carry everything that is measured.
//!
//! A backend comes in one of two shapes:
//! - it implements [`Transport`] and [`Group`] itself, collectives included (MPI does);
//! - it implements [`RawTransport`] and [`RawGroup`] (messages, put, get, flush) and is wrapped in
//!   [`Rendezvous`], which adds the put and get protocols for messages, and then in [`Collective`], which adds barrier,
//!   allreduce and agreement: the same known protocols and algorithms on every raw backend. What a raw backend's network
//!   does not do by itself, such as matching, comes from [`matching`]; its groups are [`EngineGroup`]s, their memory a
//!   [`Segment`].
//!
//! Kernels are generic over [`Group`] and monomorphised, so there is no dyn call in a timed loop. Every backend
//! instantiates [`conformance`], which is the executable definition of these traits.

#![deny(unsafe_code)]

mod bootstrap;
mod capability;
mod clock;
pub mod collective;
pub mod conformance;
mod cores;
pub mod ends;
mod engine;
mod error;
mod ffi;
mod group;
pub mod loopback;
pub mod matching;
mod monitor;
pub mod near;
pub mod pages;
pub mod payload;
mod post;
mod process_stat;
pub mod rendezvous;
mod seats;
mod traffic_class;
mod types;
pub mod units;
mod wait;

pub use bootstrap::{Bootstrap, Merge};
pub use capability::{Capabilities, Description, Operation, Support};
pub use clock::Clock;
pub use collective::Collective;
pub use engine::{Engine, EngineGroup, position};
pub use error::{Error, Result};
pub use ffi::{Registration, Segment};
pub use group::{Group, Idle, Lane, Proposal, RawGroup, RawTransport, Transport, nap};
pub use monitor::{Monitor, START_UP, WatchPost};
pub use process_stat::ProcessStat;
pub use rendezvous::{Protocol, Rendezvous};
pub use traffic_class::traffic_class;
pub use types::{Bytes, Nanos, Rank, Span, Tag};
pub use wait::{Rest, WaitMode};
