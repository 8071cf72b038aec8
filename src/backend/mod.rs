//! Chooses how the ranks come together and opens the networks under test. The only place that knows which backends are
//! compiled in; it takes plain [`Settings`] and knows no command line.

mod agree;
mod job;
mod kind;
mod network;
mod settings;
mod sim;
mod tcp;
mod threads;
mod variant;

// The one place of src that asks for features: an absent backend is a module that says so.
#[cfg(feature = "libfabric")]
mod libfabric;
#[cfg(not(feature = "libfabric"))]
#[path = "libfabric_absent.rs"]
mod libfabric;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(not(feature = "mpi"))]
#[path = "mpi_absent.rs"]
mod mpi;
#[cfg(feature = "verbs")]
mod verbs;
#[cfg(not(feature = "verbs"))]
#[path = "verbs_absent.rs"]
mod verbs;

pub use job::{available, in_job, is_reporting_rank, job_seen, prepare, simulate};
pub use kind::Backend;
pub use network::{Networks, Place, Work, give_up};
pub use settings::{CongestorNetworks, FabricSettings, LibfabricPath, RoleSettings, Roles, Settings, VerbsSettings};
pub use sim::{JobSize, Simulated};
pub use tailback_sim::begin_phase;
pub use threads::ThreadLevel;
pub use variant::{Network, Variant, variants};
