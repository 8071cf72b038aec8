//! The processes of an application on this host, as /proc shows them.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

/// All processes below this one that still run.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![of.as_raw_nonzero().get()];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// The parent of a process that still runs.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, state, parent) = parse_stat(&stat)?;
    if state == "Z" || state == "X" { None } else { Some(parent) }
}

/// The name, the state and the parent in /proc/PID/stat. The name stands in parentheses and may contain any character.
fn parse_stat(stat: &str) -> Option<(&str, &str, i32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    Some((before.split_once('(')?.1, fields.next()?, fields.next()?.parse().ok()?))
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
        let pid = pid.as_raw_nonzero();
        let read = |what| fs::read_to_string(format!("/proc/{pid}/{what}")).ok();
        Self::parse(&read("stat")?, &read("schedstat")?)
    }

    /// `schedstat`: nanoseconds on a core, nanoseconds of waiting for one, turns.
    fn parse(stat: &str, schedstat: &str) -> Option<Self> {
        let (name, state, _) = parse_stat(stat)?;
        let ran_ns = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Readiness { name: name.to_owned(), is_ready: state == "R", ran_ns })
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
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(parent_of(own), getppid().map(|pid| pid.as_raw_nonzero().get()));
        assert_eq!(parent_of(i32::MAX), None);
        assert_eq!(parse_stat("7 (a) b) (c) R 3 7"), Some(("a) b) (c", "R", 3)));
        assert_eq!(parse_stat("7 a R 3"), None);
    }

    #[test]
    fn a_process_that_waits_for_a_core_is_told_from_one_that_sleeps_or_runs() {
        let readiness = |state: &str, ran: u64| {
            Readiness::parse(&format!("7 (orted) {state} 3 7"), &format!("{ran} 90 4\n"))
                .expect("as the kernel writes it")
        };
        let told = |before, after: Readiness| Readiness::got_nothing_until(before, &after);
        assert_eq!(told(readiness("R", 5), readiness("R", 5)).as_deref(), Some("orted"));
        assert_eq!(told(readiness("R", 5), readiness("R", 6)), None, "it ran");
        assert_eq!(told(readiness("S", 5), readiness("S", 5)), None, "it sleeps");
        assert_eq!(told(readiness("S", 5), readiness("R", 5)), None, "it woke just now");
        assert!(Readiness::parse("7 (orted) R 3 7", "").is_none());
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
