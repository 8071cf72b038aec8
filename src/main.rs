//! Tailback's binary: parse, do, report one line on failure.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use signal_hook::consts::SIGXFSZ;
use tailback::cli::{Cli, execute, refuse};
use tailback::text::printable;

fn main() -> ExitCode {
    tailback::backend::prepare();
    // A file that may not grow is an error of the write, which is told, and not the end of the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let done = match Cli::typed() {
        Ok(cli) => execute(cli),
        Err(error) => refuse(&error),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("tailback: error: {}", printable(&message));
            ExitCode::from(2)
        }
    }
}
