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
mod counters;
mod degrade;
mod error;
mod ground;
mod holder;
mod mpi;
mod process;
mod setting;
mod shim;
mod spec;
mod state;
mod system;
mod topology;

pub use cluster::{Lab, down, names, remove_dead};
pub use counters::{PortCounters, PortKind, QueueCounters, SimulatedCounters, is_node};
pub use degrade::Degradation;
pub use error::{Error, Reason, Result};
pub use ground::Ground;
pub use mpi::HOST_LISTS;
pub use setting::LabKey;
pub use shim::SHIM_VARIABLE;
pub(crate) use spec::default_name;
pub use spec::{BYPASS, LabSpec, MAX_HOSTS};
pub use system::{Mode, available};
pub use topology::{Host, Shaping};

/// Takes bytes for what is written down about a lab, for fuzzing: it is a lab, and the same when it is written down again, or
/// refused.
#[cfg(fuzzing)]
pub fn fuzz_state(bytes: &[u8]) {
    let Ok(state) = serde_json::from_slice::<state::State>(bytes) else { return };
    let text = serde_json::to_vec(&state).expect("plain data");
    let again: state::State = serde_json::from_slice(&text).expect("what is written is read");
    assert_eq!(serde_json::to_vec(&again).expect("plain data"), text);
    if state.spec.validate().is_ok() {
        let topology = topology::Topology::new(&state.spec);
        assert!(topology.hosts().len() == state.spec.hosts && !topology.ports().is_empty());
    }
}
