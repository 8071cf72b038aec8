//! The processes of an application on this host, as /proc shows them.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;
use tailback_host::ProcessStat;

/// All processes below this one that still run.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![number(of)];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    let known = |pid: u32| Pid::from_raw(i32::try_from(pid).ok()?);
    found.into_iter().skip(1).filter_map(known).collect()
}

fn number(of: Pid) -> u32 {
    of.as_raw_nonzero().get().unsigned_abs()
}

/// The parent of a process that still runs.
fn parent_of(pid: u32) -> Option<u32> {
    ProcessStat::of(pid).filter(|stat| !stat.has_ended()).map(|stat| stat.parent)
}

/// Says which processes below this one are ready to run and get no core, watched for so long; nothing if there are none.
pub(super) fn held_up(of: Pid, during: Duration) -> Option<String> {
    let family = descendants(of);
    let before: Vec<_> = family.iter().map(|pid| Readiness::of(*pid)).collect();
    std::thread::sleep(during);
    let after = family.iter().map(|pid| Readiness::of(*pid));
    let mut names: Vec<String> =
        before.into_iter().zip(after).filter_map(|(before, after)| before?.got_nothing_until(&after?)).collect();
    let held = names.len();
    names.sort_unstable();
    names.dedup();
    (held > 0).then(|| {
        let (all, names) = (family.len(), names.join(", "));
        format!(
            "{held} of its {all} processes ({names}) were ready to run and got no core: other programs had them all"
        )
    })
}

/// Whether a process could run, and for how long it has.
#[derive(Debug)]
struct Readiness {
    name: String,
    is_ready: bool,
    ran_ns: u64,
}

impl Readiness {
    fn of(pid: Pid) -> Option<Self> {
        let pid = number(pid);
        Self::parse(ProcessStat::of(pid)?, &fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?)
    }

    /// `schedstat`: nanoseconds on a core, nanoseconds of waiting for one, turns.
    fn parse(stat: ProcessStat, schedstat: &str) -> Option<Self> {
        let ran_ns = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Readiness { is_ready: stat.is_ready(), name: stat.name, ran_ns })
    }

    /// The process's name, if it was ready at both times and did not run between them.
    fn got_nothing_until(self, after: &Self) -> Option<String> {
        (self.is_ready && after.is_ready && self.ran_ns == after.ran_ns).then_some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{getpid, getppid};

    use super::*;

    #[test]
    fn parents_are_read() {
        assert_eq!(parent_of(number(getpid())), getppid().map(number));
        assert_eq!(parent_of(u32::MAX), None);
    }

    #[test]
    fn a_process_that_waits_for_a_core_is_told_from_one_that_sleeps_or_runs() {
        let readiness = |state: &str, ran: u64| {
            let line = format!("7 (orted) {state} 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3");
            let stat = ProcessStat::parse(&line).expect("as the kernel writes it");
            assert!(Readiness::parse(stat.clone(), "").is_none());
            Readiness::parse(stat, &format!("{ran} 90 4\n")).expect("as the kernel writes it")
        };
        let told = |before, after: Readiness| Readiness::got_nothing_until(before, &after);
        assert_eq!(told(readiness("R", 5), readiness("R", 5)).as_deref(), Some("orted"));
        assert_eq!(told(readiness("R", 5), readiness("R", 6)), None, "it ran");
        assert_eq!(told(readiness("S", 5), readiness("S", 5)), None, "it sleeps");
        assert_eq!(told(readiness("S", 5), readiness("R", 5)), None, "it woke just now");
    }

    #[test]
    fn a_family_that_sleeps_is_not_held_up() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
        let pid = Pid::from_child(&child);
        assert!(descendants(getpid()).contains(&pid));
        // It may still be about to begin, for a moment.
        let said = (0..20).map(|_| held_up(getpid(), Duration::from_millis(50))).find(Option::is_none);
        child.kill().and_then(|()| child.wait()).expect("it can be ended");
        assert_eq!(said, Some(None));
    }
}
