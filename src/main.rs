//! Tailback's binary: parse, do, report one line on failure.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tailback::cli::{Cli, execute, refuse};

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => execute(cli),
        Err(error) => refuse(&error),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("tailback: error: {message}");
            ExitCode::from(2)
        }
    }
}
