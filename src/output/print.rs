//! Results to stdout.

use std::io::{ErrorKind, Write as _};

use crate::text::printable;

/// Prints to stdout and gives the exit code; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<u8, String> {
    match std::io::stdout().lock().write_all(printable(text).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to stdout: {error}")),
        _ => Ok(0),
    }
}
