//! Chooses how the ranks come together and opens the networks under test. The only place that knows which backends are
//! compiled in; it takes plain [`Settings`] and knows no command line.

mod agree;
mod job;
mod kind;
mod network;
mod settings;
mod swept;
mod variant;

// The one place of src that asks for features: an absent backend is a module that says so.
mod absent;
#[cfg(feature = "libfabric")]
mod libfabric;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "sim")]
mod sim;
#[cfg(feature = "tcp")]
mod tcp;
#[cfg(feature = "verbs")]
mod verbs;

#[cfg(not(feature = "libfabric"))]
use absent::libfabric;
#[cfg(not(feature = "mpi"))]
use absent::mpi;
#[cfg(not(feature = "sim"))]
use absent::sim;
#[cfg(not(feature = "sim"))]
pub use absent::simulator;
#[cfg(not(feature = "tcp"))]
use absent::tcp;
#[cfg(not(feature = "verbs"))]
use absent::verbs;

pub use job::{available, in_job, is_reporting_rank, job_seen, prepare, rank, simulate};
pub use kind::Backend;
pub use network::{Ahead, Networks, RankHost, Work, give_up};
pub use settings::{
    CongestorNetworks, FabricOptions, LibfabricPath, RoleSettings, Roles, Settings, ThreadLevel, VerbsOptions,
};
pub use sim::{JobSize, Simulated, can_simulate};
pub use tailback_engine::release_free_memory;
#[cfg(feature = "sim")]
pub use tailback_sim as simulator;
pub use variant::{MessagePath, Network, Variant, variants};
