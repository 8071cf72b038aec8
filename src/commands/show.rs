//! What a command leaves: shown, kept and checked; or, by a rank that this program started, handed over.

use std::path::PathBuf;

use super::Request;
use crate::output::{self, Format};
use crate::result::{self, Command, ResultFile};

/// Where rank 0 leaves the result, for the process that started it.
pub(super) const RESULT_VARIABLE: &str = "TAILBACK_RESULT";

/// The same as a path, in a rank that was started by [`super::local`].
pub(super) fn handed_over() -> Option<PathBuf> {
    std::env::var_os(RESULT_VARIABLE).map(Into::into)
}

/// Prints the results, then keeps them: what cannot be written has at least been seen. A rank that was started by
/// [`super::local`] hands them over instead.
pub fn show(request: &Request, file: &ResultFile) -> u8 {
    if let Some(path) = handed_over() {
        return match result::write(&path, file) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("tailback: error: {error}");
                2
            }
        };
    }
    let wanted = &request.output;
    // A file on stdout is there for a program, which would not read a table before it.
    let silent = wanted.silent || request.files().any(|path| result::is_stdout(path));
    let printed = if silent { Ok(0) } else { output::print(&wanted.format.render(file, wanted.verbose)) };
    let kept =
        wanted.out.as_deref().map_or(Ok(()), |path| result::write(path, file).map_err(|error| error.to_string()));
    let csv = wanted.csv.as_deref().map_or(Ok(()), |path| {
        result::write_text(path, &Format::Csv.render(file, false)).map_err(|error| error.to_string())
    });
    let checked = request.checks.check(file);
    let mut code = *checked.as_ref().unwrap_or(&0);
    if file.interrupted && file.command != Command::Congest {
        code = 2;
    }
    for problem in [printed.map(|_| ()), kept, csv, checked.map(|_| ())].into_iter().filter_map(Result::err) {
        eprintln!("tailback: error: {problem}");
        code = 2;
    }
    code
}
