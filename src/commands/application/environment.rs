//! What a program is told by its environment, and what it is not: variables that make launchers take it for a part of
//! the job that Tailback itself is.

use std::path::Path;
use std::process::Command;

use super::victims::Victims;
use crate::lab::{Lab, SHIM_VARIABLE};

/// Set for the program: its victims.
const HOSTS: &str = "TAILBACK_APP_HOSTS";
const HOSTFILE: &str = "TAILBACK_APP_HOSTFILE";
const PROCESSES: &str = "TAILBACK_APP_N";
/// Lists of all hosts of a lab, by which launchers would start processes on congestors.
const LISTS: [&str; 3] = ["OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE"];

/// Prepares a command for a program on these victims.
pub(super) fn prepare(
    command: &mut Command,
    victims: &Victims,
    hostfile: &Path,
    idle_shim: bool,
) -> Result<(), String> {
    let under_openmpi = std::env::var_os("OMPI_COMM_WORLD_RANK").is_some();
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| is_of_this_job(name, under_openmpi)) {
            command.env_remove(name);
        }
    }
    if let Some(lab) = Lab::around() {
        let lab = lab.map_err(|error| format!("could not be started: {error}"))?;
        command.envs(lab.mpi_environment());
        LISTS.iter().for_each(|name| {
            command.env(name, hostfile);
        });
        if idle_shim {
            let object = lab.shim().map_err(|error| format!("could not be started: {error}"))?;
            command.env("LD_PRELOAD", object).env(SHIM_VARIABLE, "1");
        }
    }
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        // For launchers that call srun by themselves.
        command.env("SLURM_OVERLAP", "1");
    }
    command.env(HOSTS, victims.list()).env(HOSTFILE, hostfile).env(PROCESSES, victims.processes().to_string());
    Ok(())
}

/// Whether a variable speaks of the rank that this process is. What steers Open MPI is kept, unless its launcher set it
/// for this rank.
fn is_of_this_job(name: &str, under_openmpi: bool) -> bool {
    const OWN: &str = "TAILBACK_";
    const KEPT: [&str; 2] = ["TAILBACK_LAB", "TAILBACK_IDLE_SHIM"];
    const MPI: [&str; 4] = ["PMI_", "PMIX_", "HYDI_", "MPI_LOCAL"];
    const OPEN_MPI: [&str; 2] = ["OMPI_", "PRTE_"];
    const SLURM: [&str; 13] = [
        "SLURM_STEP",
        "SLURM_TASK_PID",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_NODEID",
        "SLURM_GTIDS",
        "SLURM_CPU_BIND",
        "SLURM_MEM_BIND",
        "SLURM_SRUN_COMM",
        "SLURM_LAUNCH_NODE",
        "SLURM_DISTRIBUTION",
        "SLURM_NTASKS",
        "SLURM_NPROCS",
    ];
    let starts = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    // Whoever may start one as root may start another.
    let may_be_root = name.contains("_ALLOW_RUN_AS_ROOT");
    (name.starts_with(OWN) && !starts(&KEPT))
        || starts(&MPI)
        || starts(&SLURM)
        || (under_openmpi && starts(&OPEN_MPI) && !may_be_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_no_rank_of_this_job() {
        for name in ["TAILBACK_RANK", "TAILBACK_SECRET", "PMIX_RANK", "PMI_FD", "SLURM_PROCID", "SLURM_STEP_ID"] {
            assert!(is_of_this_job(name, false), "{name}");
        }
        for name in [
            "TAILBACK_LAB_DIR",
            "SLURM_JOB_ID",
            "SLURM_CONF",
            "SLURM_OVERCOMMIT",
            "PATH",
            "OMPI_MCA_btl",
            "MPIR_CVAR_X",
        ] {
            assert!(!is_of_this_job(name, false), "{name}");
        }
        assert!(is_of_this_job("OMPI_COMM_WORLD_RANK", true) && is_of_this_job("OMPI_MCA_ess", true));
        assert!(!is_of_this_job("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", true));
    }
}
