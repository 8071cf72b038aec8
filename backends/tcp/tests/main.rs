//! The integration tests, linked once.

mod common;
mod conformance;
mod loss;
mod messages;
mod rails;
mod rendezvous;
mod strangers;
