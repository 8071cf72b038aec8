//! What backends without collectives of their own share.
//!
//! Such a backend is an [`Engine`] (messages, put, get, flush). [`Rendezvous`] adds the put and get protocols for messages,
//! and [`Collective`] barrier, allreduce and agreement: the same known protocols and algorithms on every raw backend. A
//! library that matches tags becomes an engine by [`tagged`], a network that matches nothing by [`matching`]; a group's memory is
//! a [`Segment`].

#![deny(unsafe_code)]

pub mod collective;
mod engine;
mod ffi;
pub mod matching;
pub mod rendezvous;
pub mod tagged;

pub use collective::Collective;
pub use engine::{Engine, Lane, Membership, position};
pub use ffi::{Registration, Segment, release_free_memory};
pub use rendezvous::{Protocol, Rendezvous};
