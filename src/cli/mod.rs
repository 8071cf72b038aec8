//! The command line: what the user types, turned into a request for the rest.
//!
//! Exit codes: 0 = ran and passed its thresholds, 1 = a threshold failed, 2 = it could not run.

mod info;
mod launch;
mod models;
mod options;

use clap::{Parser, Subcommand};

use crate::backend;
use crate::result;
use crate::session::Request;

pub use options::{
    CommonOptions, CongestOptions, NetworkOptions, OutputOptions, PlanOptions, RunOptions, TransportOptions,
};

/// Measures what congestion does to HPC and data-centre networks.
///
/// Canary kernels are measured alone and again while congestor kernels load the network; the ratio is the congestion
/// impact. Start it under a launcher (mpirun, srun, `tailback launch`), or alone: then it starts ranks on this machine
/// by itself.
#[derive(Debug, Parser)]
#[command(name = "tailback", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load test: every canary alone, then under load
    Run(RunOptions),
    /// Network test: all canaries, no load
    Network(NetworkOptions),
    /// Load the network with congestors only, for a time or until interrupted
    Congest(CongestOptions),
    /// How many ranks of a node should talk at once: the max-rate model, measured and fitted
    Maxrate(models::MaxRateOptions),
    /// Messages that compete for ports: predicted by a model, and measured
    Contention(models::ContentionOptions),
    /// HPC Challenge's latency and bandwidth: ping-pong, natural ring, random rings
    Beff(models::BeffOptions),
    /// Start a command as ranks on this machine
    Launch(launch::LaunchArguments),
    /// Show what this machine and this binary can do
    Info,
    /// Print the JSON schema of result files
    Schema,
    /// Print a new job secret, for TAILBACK_SECRET
    Secret,
}

/// Does what was asked and gives the exit code; an error is one line for stderr.
pub fn execute(cli: Cli) -> Result<u8, String> {
    match cli.command {
        Command::Run(options) => backend::start(&Request::run(options)?),
        Command::Network(options) => backend::start(&Request::network(options)?),
        Command::Congest(options) => backend::start(&Request::congest(options)?),
        Command::Maxrate(options) => options.execute(),
        Command::Contention(options) => options.execute(),
        Command::Beff(options) => options.execute(),
        Command::Launch(arguments) => arguments.execute(),
        Command::Info => print(&info::text()),
        Command::Schema => print(&format!("{:#}\n", result::schema())),
        Command::Secret => print(&format!("{}\n", tailback_tcp::Secret::random().map_err(|e| e.to_string())?.to_hex())),
    }
}

/// To stdout; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<u8, String> {
    use std::io::Write as _;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(0),
    }
}
