//! Tailback's command line.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tailback::lab::{self, LabCommand};

#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// An emulated cluster on this machine
    #[command(subcommand)]
    Lab(LabCommand),
}

fn main() -> ExitCode {
    let Command::Lab(command) = Command::parse();
    lab::execute(command).unwrap_or_else(|error| {
        eprintln!("tailback: {error}");
        ExitCode::from(2)
    })
}
