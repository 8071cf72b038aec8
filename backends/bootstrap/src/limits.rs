//! How many files this process may have open and how many tasks there may be, and whether a job of so many ranks needs
//! more.
//!
//! Asked before anything is started or connected: a limit that is met in the middle ends a job with "too many open
//! files", on a rank that can do nothing about it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tailback_transport::{Error, Result};

/// What a process has open besides: its own output, listeners, pipes, strangers at the door, connections half made.
const SPARE: usize = 64;

/// Allows this process as many files as it may allow itself: what libraries open on a rank's behalf counts too.
pub(crate) fn raise_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Allows `files` more open files than the usual few, for `whom`. The limit is raised, to the hard one, only if needed.
///
/// # Errors
/// If the hard limit is lower: with the number that is needed, and how to get it.
pub fn require_files(whom: &str, files: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let needed = files.saturating_add(SPARE);
    if is_enough(limit.current, needed) {
        return Ok(());
    }
    if !is_enough(limit.maximum, needed) {
        return Err(too_few(whom, needed, limit.maximum));
    }
    raise_files();
    let now = getrlimit(Resource::Nofile).current;
    if is_enough(now, needed) { Ok(()) } else { Err(too_few(whom, needed, now)) }
}

/// Whether this machine can run so many ranks at once, each a process with a thread that watches.
///
/// # Errors
/// If it cannot: with the number of tasks that is needed, and what allows how many.
pub(crate) fn require_tasks(ranks: usize) -> Result<()> {
    let needed = ranks.saturating_mul(2);
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limits = [
        ("kernel.pid_max", number("/proc/sys/kernel/pid_max")),
        ("kernel.threads-max", number("/proc/sys/kernel/threads-max")),
        ("pids.max of this control group", own_group().and_then(|group| number(&format!("{group}/pids.max")))),
        // Root is not held to it.
        ("ulimit -u", getrlimit(Resource::Nproc).current.filter(|_| !rustix::process::geteuid().is_root())),
    ];
    match too_few_tasks(ranks, needed, &limits) {
        None => Ok(()),
        Some(text) => Err(Error::Setup(text)),
    }
}

/// Where the limits of this process's control group are read.
fn own_group() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(format!("/sys/fs/cgroup{}", path.trim_end_matches('/')))
}

fn too_few_tasks(ranks: usize, needed: usize, limits: &[(&str, Option<u64>)]) -> Option<String> {
    let least = limits.iter().filter_map(|(name, limit)| Some((*limit.as_ref()?, *name))).min()?;
    let (limit, name) = least;
    (needed as u64 > limit).then(|| {
        format!("{ranks} ranks on this host are {needed} processes and threads, and {name} allows {limit}: start fewer ranks")
    })
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
        let huge = require_files("this test", usize::MAX - SPARE);
        assert!(getrlimit(Resource::Nofile).maximum.is_none() || huge.is_err());
    }

    #[test]
    fn more_ranks_than_tasks_are_refused_with_what_limits_them() {
        let limits = [("kernel.pid_max", Some(32768)), ("ulimit -u", Some(1000)), ("pids.max", None)];
        let said = too_few_tasks(501, 1002, &limits).unwrap();
        assert_eq!(
            said,
            "501 ranks on this host are 1002 processes and threads, and ulimit -u allows 1000: start fewer ranks"
        );
        assert_eq!(too_few_tasks(500, 1000, &limits), None);
        assert!(require_tasks(usize::MAX).is_err() && require_tasks(1).is_ok());
    }

    #[test]
    fn limits_are_reached_not_passed() {
        assert!(is_enough(None, usize::MAX) && is_enough(Some(100), 100) && !is_enough(Some(100), 101));
        require_files("this test", 0).expect("what every process may open");
    }
}
