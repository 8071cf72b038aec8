//! What `-h` shows: of the commands with many options those that most people need, in a line each; all of them, by group, are
//! under `--help`. Options that cannot apply to a command or to this build are in neither; who types one is told why.

use clap::{Arg, Command};

pub(super) const EXIT_CODES: &str =
    "Exit codes: 0 = passed, 1 = a threshold failed, 2 = could not run or was cut short, 3 = inconclusive";

/// What `-h` of every command has, in words that fit a line.
const SHORT: [(&str, &str); 21] = [
    ("preset", "Plan to start from"),
    ("plan", "TOML plan file, applied over the preset"),
    ("budget", "Wall time of each test, e.g. 10s or 500ms"),
    ("duration", "How long to load the network [default: until Ctrl-C]"),
    ("seed", "Repeat the placements of another job"),
    ("dry_run", "Print plan, placement and duration; run nothing"),
    ("canaries", "What is measured, e.g. lat,bw-sync,allreduce"),
    ("congestors", "What loads the network, e.g. a2a,incast; or none"),
    ("placements", "Number of placements; intervals are over them"),
    ("ranks", "Without a launcher: how many ranks to start"),
    ("transport", "Network under test"),
    ("protocol", "Protocols of raw transports: eager, put, get"),
    ("machine", "With sim: the machine to simulate"),
    ("format", "summary, table, gpcnet, csv or json"),
    ("verbose", "All tables"),
    ("out", "Result file [default: tailback-COMMAND-DATE-TIME.json]"),
    ("label", "What the result file calls this job"),
    ("quiet", "No progress and no notes on stderr"),
    ("fail_if", "Threshold, e.g. 'lat.time-p90.added > 500' (us)"),
    ("junit", "Outcome of every threshold as a JUnit file"),
    ("history", "Folder of earlier results: how much jobs differ"),
];

/// Commands with more options than this show the common ones and their own.
const FEW: usize = 20;

/// Of the common ones, what commands show that have many of their own.
const CORE: [&str; 9] = ["budget", "placements", "seed", "ranks", "transport", "out", "verbose", "quiet", "fail_if"];

/// Those commands, and which of their own options, by their long names, are for `--help` only: `-h` fits 40 lines of 80 columns.
const OF_THEIR_OWN: [(&str, &[&str]); 12] = [
    ("app", &["idle-shim", "app-name", "warm-up"]),
    (
        "lab run",
        &[
            "user-namespace",
            "bands",
            "mark-above",
            "degrade",
            "rto-min",
            "spine-rate",
            "unshaped",
            "name",
            "congestion-control",
        ],
    ),
    ("calibrate", &[]),
    ("tune", &["read-any"]),
    ("sweep", &[]),
    ("burst", &[]),
    ("map", &["messages", "round-trips"]),
    ("locate", &["messages", "round-trips", "slices", "step", "all-pairs", "ranks-per-node", "junit"]),
    ("maxrate", &["signed", "weighting", "both-directions", "compute", "thresholds", "iterations"]),
    ("contention", &["steps", "t-ref", "draw", "ranks-per-node"]),
    ("beff", &["latency-iterations", "bandwidth-iterations", "ranks-per-node"]),
    ("hpcc", &["hpl-gflops", "ranks-per-node"]),
];

/// Groups of options that several commands have.
const SHARED: [&str; 6] = ["Plan", "Transport", "Counters", "Output", "Thresholds", "Without a launcher"];

/// What only a real network has, or a result that is not compared: not for `simulate`.
const NOT_SIMULATED: [&str; 25] = [
    "transport",
    "congestor_transport",
    "wait",
    "huge_pages",
    "rails",
    "data_interface",
    "data_address",
    "canary_congestion_control",
    "congestor_congestion_control",
    "no_lab",
    "control",
    "no_control",
    "launches",
    "ports_per_node",
    "no_counters",
    "counters_cmd",
    "counters_cmd_on",
    "out",
    "no_out",
    "csv",
    "metrics",
    "fail_if",
    "junit",
    "strict",
    "dry_run",
];

/// The same command line with its help arranged.
pub(super) fn arranged(command: Command) -> Command {
    subcommands(command, "")
}

/// Those of a command, which is called `path` after the program's name.
fn subcommands(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|of| of.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        let is_left_out = match path.as_str() {
            "simulate" | "machine" => !cfg!(feature = "sim"),
            "hpcc" => !cfg!(feature = "hpcc"),
            _ => false,
        };
        command.mut_subcommand(name, |of| {
            let of = options(subcommands(of, &path), &path);
            if is_left_out { of.hide(true) } else { of }
        })
    })
}

fn options(command: Command, name: &str) -> Command {
    let many = command.get_arguments().filter(|arg| !arg.is_hide_set()).count() > FEW;
    let command = command.mut_args(|arg| argument(arg, name, many));
    if !many {
        return command;
    }
    // What a command says of itself at the end stays under `--help`.
    let own = command.get_after_help().map(|of| format!("{of}\n\n")).unwrap_or_default();
    command.after_help("All options: --help").after_long_help(format!("{own}{EXIT_CODES}"))
}

fn argument(arg: Arg, command: &str, many: bool) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string).filter(|_| !arg.is_hide_set()) else { return arg };
    let id = arg.get_id().as_str().to_owned();
    let is_missing = match (command, help.split_once(':').map_or("", |(of, _)| of)) {
        ("simulate", "With verbs" | "With libfabric" | "With MPI") => true,
        ("simulate", _) if NOT_SIMULATED.contains(&id.as_str()) => true,
        (_, needs) => !is_met(needs),
    };
    if is_missing {
        return arg.hide(true);
    }
    // Where there are few, an option of the same name may be another: the page of a report, the result of an import. A study's
    // seed draws no placements.
    let is_another = id == "seed" && !arg.get_default_values().is_empty();
    let common = SHORT.iter().find(|(known, _)| many && *known == id && !is_another).map(|(_, text)| *text);
    let heading = arg.get_help_heading().map(str::to_owned);
    let is_shared = heading.as_deref().is_some_and(|heading| SHARED.contains(&heading));
    let long = arg.get_long_help().map_or_else(|| help.clone(), ToString::to_string);
    let hides = match OF_THEIR_OWN.iter().find(|(of, _)| *of == command) {
        Some((_, rest)) if !is_shared => {
            arg.get_long().is_some_and(|long| rest.contains(&long))
                || command == "lab run" && heading.as_deref() == Some("Application") && id != "app"
        }
        Some(_) => !CORE.contains(&id.as_str()),
        None => many && is_shared && common.is_none(),
    };
    let arg = arg.long_help(long).hide_short_help(hides);
    arg.help(common.map_or_else(|| clause(&help).to_owned(), str::to_owned))
}

/// Whether this build has what an option needs, by the words that its help begins with.
fn is_met(needs: &str) -> bool {
    let [tcp, sim, verbs, libfabric] =
        [cfg!(feature = "tcp"), cfg!(feature = "sim"), cfg!(feature = "verbs"), cfg!(feature = "libfabric")];
    match needs {
        "With verbs" => verbs,
        "With libfabric" => libfabric,
        "With MPI" => cfg!(feature = "mpi"),
        "With sim" => sim,
        "With tcp" => tcp,
        "With tcp and verbs" => tcp || verbs,
        "With raw transports" | "With put and get" => tcp || sim || verbs || libfabric,
        _ => true,
    }
}

/// The first of what a help text says.
fn clause(text: &str) -> &str {
    // "With sim: ..." says nothing yet.
    const CONDITION: usize = 25;
    let ends = [" [", "; ", ", e.g.", ". ", " ("].iter().filter_map(|end| text.find(end));
    let colon = text.find(": ").filter(|at| *at > CONDITION);
    text[..ends.chain(colon).min().unwrap_or(text.len())].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_short_help_leaves_out_is_there() {
        use clap::CommandFactory as _;
        let line = super::super::Cli::command();
        for (path, rest) in OF_THEIR_OWN {
            let of = path.split(' ').fold(&line, |of, name| of.find_subcommand(name).expect("a command"));
            for long in rest {
                assert!(of.get_arguments().any(|arg| arg.get_long() == Some(long)), "{path} --{long}");
            }
        }
    }

    #[test]
    fn a_clause_is_what_stands_before_details() {
        assert_eq!(clause("Seed of rings, which repeats [default: drawn]"), "Seed of rings, which repeats");
        assert_eq!(clause("Fraction of the nodes, e.g. 25%"), "Fraction of the nodes");
        assert_eq!(clause("Whole."), "Whole");
    }
}
