//! The words that are started: CMD with {hosts} and the like replaced, behind a launcher where CMD names none of them.

use std::path::Path;
use std::process::Command;

use super::victims::Victims;
use crate::plan::Launcher;

/// What is replaced in CMD.
const NAMES: [&str; 6] = ["{launch}", "{hosts}", "{hostfile}", "{nodes}", "{per_node}", "{n}"];

/// The words to start.
pub(super) fn words(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Nodes, Placement, Split};

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
        let found = made(&["mpirun", "--host", "{hosts}", "-n", "{n}", "-ppn={per_node}", "{nodes}"], Launcher::Slurm);
        assert_eq!(found, ["mpirun", "--host", &list, "-n", "6", "-ppn=3", "2"]);
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
}
