//! Tailback's binary: parse, do, report one line on failure.

#![forbid(unsafe_code)]

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Arc;

use signal_hook::consts::SIGXFSZ;
use tailback::cli::{Cli, execute, refuse};
use tailback::text::printable;

fn main() -> ExitCode {
    tailback::backend::prepare();
    // A file that may not grow is an error of the write, which is told, and not the end of the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // The description of the command line takes more memory than all that a rank needs: on a stack of its own, which goes with it.
    let typed = std::thread::Builder::new().stack_size(8 << 20).spawn(Cli::typed);
    let typed =
        typed.map_or_else(|_| Cli::typed(), |thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    tailback::backend::release_free_memory();
    let done = match typed {
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
