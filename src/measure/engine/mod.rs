//! Runs a plan: builds the groups, keeps the ranks in step, and follows the load test's sequence.
//!
//! The engine knows nothing of files, tables or command lines. Between the start and the end of a phase it talks through
//! the transport only; what a phase measured is collected by the bootstrap after it. Only what is below [`OpenNetwork`],
//! the timed loops, is generic over the backend.

mod application;
mod burst;
mod canary;
mod collect;
mod congestor;
mod control;
mod lockstep;
mod network;
mod onset;
mod order;
mod pace;
mod phase;
#[cfg(test)]
mod probes;
mod rank;
mod sequence;
mod slices;
mod timetable;

pub use burst::Bursts;
pub use canary::{CanaryPhase, Finished, Passes};
pub use collect::{EncodedTally, Load, Measured, Quickest, Tally};
pub use congestor::CongestorPhase;
pub use control::{Control, Ended, PhaseObserver, REAL_GRAIN, Starter, VIRTUAL_GRAIN};
pub use network::{Body, MeasureGraph, Membership, OpenNetwork, OpenPair, Opened};
pub use order::turns;
pub use pace::Kept;
pub use phase::{LoadState, PhaseId};
pub use rank::{Job, Keep};
pub use sequence::{congest, load_test, network_test, under_load};
pub use slices::Slices;
pub use timetable::{Due, expected_s};
