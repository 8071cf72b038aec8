//! What is said of MPI by a binary without it.

use super::{Variant, Work};

/// Set by the launchers of Open MPI, Hydra, PMI, PMIx, PALS and jsrun.
const TRACES: [&str; 5] = ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "JSM_NAMESPACE_SIZE"];

pub(super) fn state() -> String {
    "not in this binary: build with --features mpi".into()
}

/// The variable that shows an MPI launcher: without MPI, its ranks would each start a job of their own. Slurm sets PMI
/// variables too, but its tasks can join without MPI.
pub(super) fn launcher() -> Option<String> {
    if std::env::var_os("SLURM_PROCID").is_some() {
        return None;
    }
    TRACES.iter().find(|name| std::env::var_os(name).is_some()).map(|name| format!("an MPI launcher ({name} is set)"))
}

pub(super) fn over_mpi(_work: &Work<'_>, launcher: &str, _variants: Vec<Variant>) -> Result<u8, String> {
    Err(format!("started by {launcher}, but this binary has no MPI: build it with --features mpi"))
}
