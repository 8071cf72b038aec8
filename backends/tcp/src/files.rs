//! How many files this process may have open, and whether a job of so many ranks needs more.
//!
//! Asked before anything is started or connected: a limit that is met in the middle ends a job with "too many open
//! files", on a rank that can do nothing about it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tailback_transport::{Error, Result};

/// What a process has open besides: its own output, listeners, pipes, strangers at the door, connections half made.
const SPARE: usize = 64;

/// Allows this process as many files as it may allow itself: what libraries open on a rank's behalf counts too.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Makes room for `files` more than the usual few, for `whom`. The hard limit is free to use, and taken only if needed.
///
/// # Errors
/// If the hard limit is lower: with the number that is needed, and how to get it.
pub(crate) fn make_room(whom: &str, files: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let needed = files.saturating_add(SPARE);
    if is_enough(limit.current, needed) {
        return Ok(());
    }
    if !is_enough(limit.maximum, needed) {
        return Err(too_few(whom, needed, limit.maximum));
    }
    raise_limit();
    let now = getrlimit(Resource::Nofile).current;
    if is_enough(now, needed) { Ok(()) } else { Err(too_few(whom, needed, now)) }
}

/// Limits are absent where there is none.
fn is_enough(limit: Option<u64>, needed: usize) -> bool {
    limit.is_none_or(|limit| needed as u64 <= limit)
}

fn too_few(whom: &str, needed: usize, limit: Option<u64>) -> Error {
    Error::Setup(format!(
        "{whom} needs {needed} open files, and the limit is {}: start fewer ranks, or raise it before the start \
         (ulimit -n {needed}, which beyond the hard limit is root's to type; for good, nofile in \
         /etc/security/limits.conf)",
        limit.unwrap_or(u64::MAX)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_named_with_what_is_needed_and_what_to_type() {
        let said = too_few("rank 0 of 5000", 5160, Some(4096)).to_string();
        assert!(said.contains("rank 0 of 5000 needs 5160 open files, and the limit is 4096"), "{said}");
        assert!(said.contains("ulimit -n 5160"), "{said}");
        let huge = make_room("this test", usize::MAX - SPARE);
        assert!(getrlimit(Resource::Nofile).maximum.is_none() || huge.is_err());
    }

    #[test]
    fn limits_are_reached_not_passed() {
        assert!(is_enough(None, usize::MAX) && is_enough(Some(100), 100) && !is_enough(Some(100), 101));
        make_room("this test", 0).expect("what every process may open");
    }
}
