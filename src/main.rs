//! Tailback's binary: parse, do, report one line on failure.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tailback::cli::{Cli, execute};

fn main() -> ExitCode {
    match execute(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("tailback: error: {message}");
            ExitCode::from(2)
        }
    }
}
