//! Processes named so that a reused number is never mistaken for them, and the end of all that run in a lab.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tailback_transport::ProcessStat;

use super::error::{Error, Result};

/// Processes in a lab's namespaces carry its identity in this variable.
pub(super) const ID_VARIABLE: &str = "TAILBACK_LAB_ID";

/// A process, with its start time: the number alone may come to mean another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ProcessId {
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub started: u64,
}

impl ProcessId {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = ProcessStat::of(pid).filter(|stat| !stat.has_ended())?;
        Some(ProcessId { pid, started: stat.started })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Ends it, if it still runs.
    fn kill(self) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return };
        // The descriptor pins the process: checked after opening, the number cannot change its meaning before the signal.
        if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
            && self.is_alive()
        {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// Ends every process of a lab: those in the network namespaces of its live holders, and those that carry its identity.
/// Namespaces, devices, mounts and queues go with the last process in them.
pub(super) fn end_all(id: &str, holders: &[ProcessId]) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(10);
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let mut ending = HashSet::new();
    // A process may fork between the look and the signal, so it looks again until nothing is left.
    while start.elapsed() < LIMIT {
        // One that is ending has left its namespaces already, but not the list of processes.
        ending.extend(members(id, holders));
        ending.retain(|process: &ProcessId| process.is_alive());
        if ending.is_empty() {
            return Ok(());
        }
        ending.iter().for_each(|process| process.kill());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Err(Error::Timeout { what: "waiting for the lab's processes to end".to_owned(), seconds: LIMIT.as_secs() })
}

/// The lab's processes that run now, this one left out.
pub(super) fn members(id: &str, holders: &[ProcessId]) -> Vec<ProcessId> {
    // The kernel reuses namespace numbers: only those that a live holder vouches for are the lab's.
    let alive: Vec<ProcessId> = holders.iter().copied().filter(|holder| holder.is_alive()).collect();
    let namespaces: HashSet<PathBuf> = alive.iter().filter_map(|holder| namespace_of_its_own(holder.pid)).collect();
    let mark = format!("{ID_VARIABLE}={id}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| pid != std::process::id())
        .filter(|&pid| {
            alive.iter().any(|holder| holder.pid == pid)
                || network_namespace(pid).is_some_and(|namespace| namespaces.contains(&namespace))
                || carries(pid, &mark)
        })
        .filter_map(ProcessId::of)
        .collect()
}

/// The network namespace of a holder that has come so far as to have one. Before, it is still in that of whoever started it,
/// where everything else on the machine runs too.
fn namespace_of_its_own(holder: u32) -> Option<PathBuf> {
    let others = [std::process::id(), 1, ProcessStat::of(holder)?.parent];
    let namespace = network_namespace(holder)?;
    let is_shared = others.into_iter().any(|other| network_namespace(other).as_ref() == Some(&namespace));
    (!is_shared).then_some(namespace)
}

fn network_namespace(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

fn carries(pid: u32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_itself_and_no_other() {
        let own = ProcessId::of(std::process::id()).expect("this process runs");
        assert!(own.is_alive());
        let earlier = ProcessId { started: own.started.wrapping_sub(1), ..own };
        assert!(!earlier.is_alive(), "the same number with another start is another process");
        earlier.kill();
        assert!(own.is_alive(), "and is not ended in its place");
    }

    /// Ctrl-C in the first milliseconds of a lab: whoever runs beside a holder that has no network yet is not of the lab.
    #[test]
    fn a_holder_without_a_namespace_of_its_own_is_ended_alone() {
        let spawn = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep starts");
        let (mut holder, mut stranger) = (spawn(), spawn());
        let process = ProcessId::of(holder.id()).expect("it runs");
        assert_eq!(network_namespace(holder.id()), network_namespace(std::process::id()));
        assert_eq!(members("none such", &[process]), [process], "before anything is ended");
        end_all("none such", &[process]).expect("ends");
        assert!(!holder.wait().expect("waits").success());
        assert!(stranger.try_wait().expect("waits").is_none(), "the other one still runs");
        stranger.kill().expect("kills");
        stranger.wait().expect("waits");
    }

    #[test]
    fn what_carries_the_identity_is_ended() {
        let id = format!("test.{}", std::process::id());
        let spawn = |id: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").env(ID_VARIABLE, id).stdin(Stdio::null()).spawn().expect("sleep starts")
        };
        let (mut member, mut stranger) = (spawn(&id), spawn("another"));
        // The variable shows only once the child became `sleep`; `end_all` itself need not wait for that.
        let start = Instant::now();
        while members(&id, &[]).is_empty() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        end_all(&id, &[]).expect("ends");
        assert!(!member.wait().expect("waits").success());
        assert!(stranger.try_wait().expect("waits").is_none(), "the other one still runs");
        stranger.kill().expect("kills");
        stranger.wait().expect("waits");
    }
}
