//! `tailback machine`: what can be simulated.

use std::fmt::Write as _;

use clap::Subcommand;

use crate::backend::can_simulate;
use crate::backend::simulator::machine::{Machine, shipped};
use crate::output;

/// Subcommands of `tailback machine`.
#[derive(Clone, Debug, Subcommand)]
pub enum MachineCommand {
    /// The machines that come with Tailback
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Read a machine, refuse it if it makes no sense, and say what it is
    Check {
        /// A shipped machine, or a TOML file
        #[arg(value_name = "NAME_OR_FILE")]
        machine: String,
    },
    /// Print a shipped machine's file, to start another from
    Show {
        /// A shipped machine, or a TOML file
        #[arg(value_name = "NAME_OR_FILE")]
        machine: String,
    },
}

impl MachineCommand {
    pub(super) fn execute(self) -> Result<u8, String> {
        can_simulate()?;
        output::print(&match self {
            MachineCommand::List { json } => list(json)?,
            MachineCommand::Check { machine } => describe(&load(&machine)?),
            MachineCommand::Show { machine } => load(&machine)?.text,
        })
    }
}

fn load(name: &str) -> Result<Machine, String> {
    Machine::load(name).map_err(|error| error.to_string())
}

fn list(json: bool) -> Result<String, String> {
    if json {
        let facts = |name: &str| {
            let Machine { nodes, about, .. } = load(name)?;
            let ranks = nodes.count * nodes.ranks_per_node;
            Ok(serde_json::json!({"name": name, "nodes": nodes.count, "ranks": ranks, "about": about}))
        };
        let all: Vec<_> = shipped().map(facts).collect::<Result<_, String>>()?;
        return Ok(serde_json::to_string_pretty(&all).expect("plain data") + "\n");
    }
    let mut out = format!("{:<15} {:>6} {:>6}\n", "machine", "nodes", "ranks");
    for name in shipped() {
        let machine = load(name)?;
        let (nodes, ranks) = (machine.nodes.count, machine.nodes.count * machine.nodes.ranks_per_node);
        let _ = writeln!(out, "{name:<15} {nodes:>6} {ranks:>6}  {}", machine.about);
    }
    Ok(
        out + "\nSimulate one with `tailback run --transport sim --machine NAME`; a file of your own goes in the same place.\n"
    )
}

fn describe(machine: &Machine) -> String {
    let mut out = format!("{}: {}\n", machine.name, machine.about);
    for (part, words) in machine.describe() {
        let _ = writeln!(out, "  {part:<18}  {words}");
    }
    out
}
