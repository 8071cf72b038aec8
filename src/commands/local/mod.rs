//! A job without a launcher: this very command, as ranks on this machine.
//!
//! By default the ranks sit on the hosts of the emulated cluster, where there is a network to congest; where namespaces
//! are not allowed they are plain local ranks. A simulated machine needs no process but this one. The process that starts them
//! hears of their phases, reads the lab's counters in between, and shows the results that rank 0 hands over.

mod fit;
mod in_lab;
mod place;
mod plain;
mod ranks;
mod scratch;
mod simulated;

pub(super) use in_lab::run_in_lab;
pub use place::Place;
pub(super) use plain::run;
pub(super) use scratch::Scratch;
