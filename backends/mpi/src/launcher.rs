//! Which launcher started this process, told from the environment alone.
//!
//! Asked before `MPI_Init`: the benchmark takes MPI when an MPI launcher started it, and a binary built for one MPI
//! but started by another's launcher would otherwise run as that many jobs of one rank each, without a word.
//! Out of scope: launchers of Tailback's own, which set other variables.

use std::env;
use std::fmt;

/// A launcher of MPI jobs, as the environment shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// What people call it.
    pub name: &'static str,
    /// How many processes it started, where it says so.
    pub size: Option<usize>,
    /// Which of them this is, where it says so.
    pub rank: Option<usize>,
    /// The variable that gave it away, for messages: `OMPI_COMM_WORLD_SIZE=4`.
    pub evidence: String,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.evidence)
    }
}

/// What each launcher sets: its name, a variable that only it sets, and those with the size and the rank.
struct Trace {
    name: &'static str,
    mark: &'static str,
    size: &'static str,
    rank: &'static str,
}

const OPEN_MPI: &str = "Open MPI's mpirun";
const HYDRA: &str = "Hydra's mpiexec (MPICH, Intel MPI)";

/// In the order of trust: a launcher may run inside another's allocation (mpirun inside Slurm), and the inner one, that
/// started this process, comes first.
const TRACES: [Trace; 9] = [
    Trace { name: "IBM jsrun", mark: "JSM_NAMESPACE_SIZE", size: "JSM_NAMESPACE_SIZE", rank: "JSM_NAMESPACE_RANK" },
    Trace { name: OPEN_MPI, mark: "OMPI_COMM_WORLD_SIZE", size: "OMPI_COMM_WORLD_SIZE", rank: "OMPI_COMM_WORLD_RANK" },
    Trace { name: "MVAPICH's mpirun_rsh", mark: "MPIRUN_RSH_LAUNCH", size: "MPIRUN_NPROCS", rank: "MPIRUN_RANK" },
    Trace { name: HYDRA, mark: "HYDI_CONTROL_FD", size: "PMI_SIZE", rank: "PMI_RANK" },
    Trace { name: "Cray PALS", mark: "PALS_RANKID", size: "PMI_SIZE", rank: "PALS_RANKID" },
    Trace { name: "Flux", mark: "FLUX_TASK_RANK", size: "FLUX_JOB_SIZE", rank: "FLUX_TASK_RANK" },
    Trace { name: "Slurm's srun", mark: "SLURM_STEP_NUM_TASKS", size: "SLURM_STEP_NUM_TASKS", rank: "SLURM_PROCID" },
    Trace { name: "a PMI launcher", mark: "PMI_RANK", size: "PMI_SIZE", rank: "PMI_RANK" },
    Trace { name: "a PMIx launcher", mark: "PMIX_RANK", size: "PMIX_SIZE", rank: "PMIX_RANK" },
];

/// The MPI launcher that started this process, if one did. Does not initialise MPI.
#[must_use]
pub fn launcher() -> Option<Launcher> {
    detect(|name| env::var(name).ok())
}

fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    let trace = TRACES.iter().find(|trace| variable(trace.mark).is_some())?;
    let number = |name| variable(name).and_then(|value| value.parse().ok());
    let shown = if variable(trace.size).is_some() { trace.size } else { trace.mark };
    let evidence = format!("{shown}={}", variable(shown).unwrap_or_default());
    Some(Launcher { name: trace.name, size: number(trace.size), rank: number(trace.rank), evidence })
}

/// What to say before MPI is initialised when the launcher is another MPI's. It may work, if they speak the same
/// language; if not, some libraries end the process with words that name neither.
pub(crate) fn foreign(launcher: Option<&Launcher>, library: &str) -> Option<String> {
    let launcher = launcher?;
    let open_launcher = match launcher.name {
        OPEN_MPI => true,
        HYDRA => false,
        _ => return None,
    };
    let differs = open_launcher != library.starts_with("Open MPI");
    differs.then(|| format!("{launcher} starts a binary that was built for {library}: if MPI fails now, this is why"))
}

/// Why the job cannot run although MPI started: the launcher has several processes and MPI sees one.
pub(crate) fn mismatch(launcher: Option<&Launcher>, size: usize, library: &str) -> Option<String> {
    let launcher = launcher.filter(|launcher| size == 1 && launcher.size.is_some_and(|n| n > 1))?;
    Some(format!(
        "{launcher} started {} processes, but the MPI this binary was built for, {library}, sees one: each would run \
         alone. Start it with that MPI's own mpirun, or rebuild it with MPICC set to the launcher's mpicc (in a new \
         target folder)",
        launcher.size.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(environment: &[(&str, &str)]) -> Option<Launcher> {
        detect(|name| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn an_ordinary_process_has_no_launcher() {
        assert_eq!(from(&[("PATH", "/bin"), ("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("SLURM_NTASKS", "4")]), None);
    }

    #[test]
    fn the_inner_launcher_wins() {
        let found = from(&[
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("PMIX_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_RANK", "3"),
        ]);
        let found = found.expect("a launcher");
        assert_eq!((found.name, found.size, found.rank), ("Open MPI's mpirun", Some(8), Some(3)));
        assert_eq!(found.evidence, "OMPI_COMM_WORLD_SIZE=8");
    }

    #[test]
    fn a_launcher_may_keep_its_size_to_itself() {
        let found = from(&[("PMIX_RANK", "0")]).expect("a launcher");
        assert_eq!((found.size, found.rank, found.evidence.as_str()), (None, Some(0), "PMIX_RANK=0"));
    }

    #[test]
    fn only_another_familys_launcher_is_worth_a_word() {
        let hydra = from(&[("HYDI_CONTROL_FD", "7"), ("PMI_SIZE", "4"), ("PMI_RANK", "2")]);
        let open = from(&[("OMPI_COMM_WORLD_SIZE", "4")]);
        let slurm = from(&[("SLURM_STEP_NUM_TASKS", "4")]);
        assert!(foreign(hydra.as_ref(), "Open MPI 5.0.1").is_some_and(|note| note.contains("Hydra")));
        assert!(foreign(open.as_ref(), "MPICH 5.0.2").is_some_and(|note| note.contains("MPICH 5.0.2")));
        for (launcher, library) in [(&hydra, "MPICH 5.0.2"), (&open, "Open MPI 4.1.4"), (&slurm, "MPICH 5.0.2")] {
            assert_eq!(foreign(launcher.as_ref(), library), None);
        }
    }

    #[test]
    fn several_processes_that_see_one_rank_are_refused_with_both_names() {
        let hydra = from(&[("HYDI_CONTROL_FD", "7"), ("PMI_SIZE", "4"), ("PMI_RANK", "2")]);
        let message = mismatch(hydra.as_ref(), 1, "Open MPI 4.1.4").expect("a refusal");
        assert!(message.contains("Hydra") && message.contains("PMI_SIZE=4") && message.contains("Open MPI 4.1.4"));
        assert_eq!(mismatch(hydra.as_ref(), 4, "MPICH 4.0.2"), None);
        assert_eq!(mismatch(None, 1, "MPICH 4.0.2"), None);
        assert_eq!(mismatch(from(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]).as_ref(), 1, "MPICH 4.0.2"), None);
    }
}
