//! The command that is started: CMD with {hosts} and the like replaced, behind a launcher where CMD names none of them; the
//! hosts it is started on; and its environment, without variables that make launchers take it for a part of the job that
//! Tailback itself is.

use std::path::Path;
use std::process::Command;

use tailback_transport::Rank;

use crate::lab::{HOST_LISTS, Lab, SHIM_VARIABLE};
use crate::layout::{Layout, Role};
use crate::plan::Launcher;

/// What is replaced in CMD.
const NAMES: [&str; 7] = ["{launch}", "{hosts}", "{hostfile}", "{nodes}", "{per_node}", "{processes}", "{n}"];

/// The words to start.
pub(crate) fn words(
    command: &[String],
    launcher: Launcher,
    victims: &Victims,
    hostfile: &Path,
) -> Result<Vec<String>, String> {
    let names_some = command.iter().any(|word| NAMES.iter().any(|name| word.contains(name)));
    let hostfile = hostfile.display().to_string();
    let launch = if command.iter().any(|word| word.contains("{launch}")) || !names_some {
        form(launcher, victims, &hostfile)?
    } else {
        Vec::new()
    };
    let replace = |word: &str| {
        word.replace("{launch}", &launch.join(" "))
            .replace("{hosts}", &victims.list())
            .replace("{hostfile}", &hostfile)
            .replace("{nodes}", &victims.count().to_string())
            .replace("{per_node}", &victims.per_host().to_string())
            .replace("{processes}", &victims.processes().to_string())
            // The same, as 0.2 had it; its help could not show it, as clap breaks the line there.
            .replace("{n}", &victims.processes().to_string())
    };
    let mut words = if names_some { Vec::new() } else { launch.clone() };
    for word in command {
        // Alone it is as many words as the form has; inside another, as in `sh -c`, it is text.
        match word.as_str() {
            "{launch}" => words.extend(launch.iter().cloned()),
            word => words.push(replace(word)),
        }
    }
    Ok(words)
}

/// A launcher's words before those of the program.
fn form(launcher: Launcher, victims: &Victims, hostfile: &str) -> Result<Vec<String>, String> {
    let processes = victims.processes().to_string();
    let launcher = if launcher == Launcher::Auto { detect()? } else { launcher };
    let words: Vec<String> = match launcher {
        Launcher::Openmpi => ["mpirun", "-n", &processes, "--hostfile", hostfile].map(str::to_owned).into(),
        // `mpiexec` is Open MPI's where both are installed.
        Launcher::Mpich => ["mpiexec.hydra", "-n", &processes, "-f", hostfile].map(str::to_owned).into(),
        Launcher::Slurm => vec![
            "srun".into(),
            // Tailback's own ranks are a step of the same allocation.
            "--overlap".into(),
            format!("--nodes={}", victims.count()),
            format!("--ntasks={processes}"),
            format!("--nodelist={}", victims.list()),
        ],
        Launcher::None | Launcher::Auto => Vec::new(),
    };
    Ok(words)
}

/// Which launcher there is.
fn detect() -> Result<Launcher, String> {
    const HINT: &str = "give --launcher, or write a launcher into CMD with {hosts} or {hostfile}";
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        return Ok(Launcher::Slurm);
    }
    let output = Command::new("mpirun")
        .arg("--version")
        .output()
        .map_err(|error| format!("could not be started: no mpirun ({error}); {HINT}"))?;
    known(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        format!("could not be started: `mpirun --version` names neither Open MPI nor MPICH's Hydra; {HINT}")
    })
}

/// The launcher that speaks so of itself.
fn known(version: &str) -> Option<Launcher> {
    let lower = version.to_lowercase();
    if lower.contains("open mpi") || lower.contains("openrte") || lower.contains("prrte") {
        Some(Launcher::Openmpi)
    } else if lower.contains("hydra") || lower.contains("mpich") || lower.contains("intel(r) mpi") {
        Some(Launcher::Mpich)
    } else {
        None
    }
}

/// Set for the program: its victims.
const HOSTS: &str = "TAILBACK_APP_HOSTS";
const HOSTFILE: &str = "TAILBACK_APP_HOSTFILE";
const PROCESSES: &str = "TAILBACK_APP_N";

/// Prepares a command for a program on these victims.
pub(crate) fn prepare_environment(
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
        // All hosts of the lab are in theirs, by which launchers would start processes on congestors.
        command.envs(HOST_LISTS.map(|name| (name, hostfile)));
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

/// Hosts in the order of the nodes, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Victims {
    hosts: Vec<(String, usize)>,
}

impl Victims {
    /// The nodes that measure. Nodes that share a host, as virtual ones do, share a line.
    pub(crate) fn of(layout: &Layout, hosts: &[String], per_node: Option<usize>) -> Self {
        let nodes = layout.nodes();
        let mut victims = Victims::default();
        for node in 0..nodes.len() {
            let measures = |rank: &&Rank| layout.role(**rank) == Role::Canary;
            let ranks = nodes.ranks(node);
            let canaries = ranks.iter().filter(measures).count();
            if canaries > 0 {
                victims.add(&hosts[ranks[0].index()], per_node.unwrap_or(canaries));
            }
        }
        victims
    }

    fn add(&mut self, host: &str, processes: usize) {
        match self.hosts.iter_mut().find(|(known, _)| known == host) {
            Some((_, sum)) => *sum += processes,
            None => self.hosts.push((host.to_owned(), processes)),
        }
    }

    /// How many hosts there are.
    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// How many processes there are on all of them.
    pub(crate) fn processes(&self) -> usize {
        self.hosts.iter().map(|(_, processes)| processes).sum()
    }

    /// The most processes on one.
    pub(crate) fn per_host(&self) -> usize {
        self.hosts.iter().map(|(_, processes)| *processes).max().unwrap_or(0)
    }

    /// The hosts with commas.
    pub(crate) fn list(&self) -> String {
        self.hosts.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>().join(",")
    }

    /// A line for each process with the host it is for: Open MPI, MPICH and Slurm all read that.
    pub(crate) fn file(&self) -> String {
        let lines = |(host, processes): &(String, usize)| format!("{host}\n").repeat(*processes);
        self.hosts.iter().map(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::{Layout, Nodes, Placement, Split};

    use super::*;

    fn victims() -> Victims {
        let hosts: Vec<String> = (0..4).map(|node| format!("n{node}")).collect();
        let layout =
            Layout::load_test(Nodes::from_hosts(&hosts), Placement::random(1), 0.5, &[("a2a", 1.0)], Split::Node)
                .unwrap();
        Victims::of(&layout, &hosts, Some(3))
    }

    fn made(command: &[&str], launcher: Launcher) -> Vec<String> {
        let command: Vec<String> = command.iter().map(ToString::to_string).collect();
        words(&command, launcher, &victims(), Path::new("/tmp/x")).unwrap()
    }

    #[test]
    fn a_command_without_names_is_put_behind_its_launcher() {
        let list = victims().list();
        assert_eq!(made(&["lmp", "-in", "x"], Launcher::Openmpi).join(" "), "mpirun -n 6 --hostfile /tmp/x lmp -in x");
        assert_eq!(made(&["lmp"], Launcher::Mpich).join(" "), "mpiexec.hydra -n 6 -f /tmp/x lmp");
        assert_eq!(
            made(&["lmp"], Launcher::Slurm).join(" "),
            format!("srun --overlap --nodes=2 --ntasks=6 --nodelist={list} lmp")
        );
        assert_eq!(made(&["./job", "${x}"], Launcher::None), ["./job", "${x}"]);
    }

    #[test]
    fn names_are_replaced_wherever_they_stand() {
        let list = victims().list();
        let found = made(
            &["mpirun", "--host", "{hosts}", "-n", "{n}", "-ppn={per_node}", "{nodes}:{processes}"],
            Launcher::Slurm,
        );
        assert_eq!(found, ["mpirun", "--host", &list, "-n", "6", "-ppn=3", "2:6"]);
        let found = made(&["sh", "-c", "cd d && {launch} lmp {hostfile}"], Launcher::Openmpi);
        assert_eq!(found, ["sh", "-c", "cd d && mpirun -n 6 --hostfile /tmp/x lmp /tmp/x"]);
        assert_eq!(
            made(&["time", "{launch}", "lmp"], Launcher::Mpich).join(" "),
            "time mpiexec.hydra -n 6 -f /tmp/x lmp"
        );
    }

    #[test]
    fn launchers_are_known_by_their_own_words() {
        assert_eq!(known("mpirun (Open MPI) 4.1.4\n"), Some(Launcher::Openmpi));
        assert_eq!(known("HYDRA build details:\n    Version: 4.2"), Some(Launcher::Mpich));
        assert_eq!(known("something else"), None);
    }

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

    fn layout(nodes: Nodes) -> Layout {
        Layout::load_test(nodes, Placement::random(3), 0.5, &[("a2a", 1.0)], Split::Node).unwrap()
    }

    #[test]
    fn victims_are_the_nodes_that_measure() {
        let hosts: Vec<String> = (0..4).flat_map(|node| std::iter::repeat_n(format!("n{node}"), 3)).collect();
        let layout = layout(Nodes::from_hosts(&hosts));
        let victims = Victims::of(&layout, &hosts, None);
        assert_eq!((victims.count(), victims.processes(), victims.per_host()), (2, 6, 3));
        assert_eq!(victims.file().lines().count(), 6);
        for host in victims.list().split(',') {
            let rank = hosts.iter().position(|name| name == host).unwrap();
            assert_eq!(layout.role(Rank::from(rank)), Role::Canary);
        }
        assert_eq!(Victims::of(&layout, &hosts, Some(8)).processes(), 16);
    }

    #[test]
    fn virtual_nodes_of_a_host_share_its_line() {
        let victims = Victims::of(&layout(Nodes::virtual_nodes(6, 1)), &vec!["box".to_owned(); 6], None);
        assert_eq!((victims.list().as_str(), victims.file().as_str()), ("box", "box\nbox\nbox\n"));
    }
}
