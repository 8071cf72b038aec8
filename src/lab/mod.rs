//! The lab: an emulated cluster on one machine, so that anyone sees and tests real congestion.
//!
//! Hosts are sets of namespaces (network, host name, IPC, mounts), each held by a sleeping process; leaf switches are
//! bridges in one more network namespace, joined by a spine. Every data link is shaped in rate and queue length at both
//! ends; a control network, unshaped, carries launching and bootstrap. It works as root and, without root, inside a user
//! namespace. Nothing is put into the machine's own network, so names and addresses cannot clash with anything.
//!
//! The order of things: a [`LabSpec`] is validated, made into a `Topology` (pure data), and brought up by
//! [`Lab::up`]. What is measured on the lab, and with which roles, is not this module's business.

mod cluster;
mod command;
mod counters;
mod error;
mod ground;
mod holder;
mod mpi;
mod process;
mod shim;
mod spec;
mod ssh;
mod state;
mod system;
mod topology;
mod units;

pub use cluster::{Lab, down};
pub use command::{LabCommand, execute};
pub use counters::{PortCounters, QueueCounters, SimulatedCounters};
pub use error::{Error, Reason, Result};
pub use ground::Ground;
pub use shim::SHIM_VARIABLE;
pub use spec::{EXPRESS, LabSpec, MAX_HOSTS};
pub use system::{Mode, available};
pub use topology::{Host, Shaping};
pub use units::{Rate, parse_bytes};
