//! The process between a rank and the application it started. It outlives a rank that is killed, and ends the
//! application then: with all its processes on this host, also those that left their parents.
//!
//! Its standard input is its lifeline: once that is closed, the application is ended. On its standard output it says a
//! line when the application has started and one when it has ended ([`Said`]).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait};
use tailback_host::ProcessStat;

use crate::job::Scratch;

/// How long a program has to end in order before it is killed: launchers use it to end processes on other hosts.
const GRACE: Duration = Duration::from_secs(3);
/// How long processes may go on after the one that was started has ended well.
const AFTER: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// What a guard says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It has started; the number of its process group.
    Started(i32),
    /// It could not be started.
    Unstartable(String),
    /// It ended with an exit code.
    Code { code: i32, wall_ns: u64, left: usize },
    /// A signal ended it.
    Signal { signal: i32, wall_ns: u64 },
}

impl Said {
    fn line(&self) -> String {
        match self {
            Said::Started(pid) => format!("started {pid}\n"),
            Said::Unstartable(why) => format!("unstartable {}\n", why.replace('\n', " ")),
            Said::Code { code, wall_ns, left } => format!("code {code} {wall_ns} {left}\n"),
            Said::Signal { signal, wall_ns } => format!("signal {signal} {wall_ns}\n"),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let numbers: Vec<u64> = rest.split(' ').filter_map(|number| number.parse().ok()).collect();
        match (word, &numbers[..]) {
            ("started", [pid]) => Some(Said::Started(i32::try_from(*pid).ok()?)),
            ("unstartable", _) => Some(Said::Unstartable(rest.to_owned())),
            ("code", [code, wall_ns, left]) => {
                Some(Said::Code { code: i32::try_from(*code).ok()?, wall_ns: *wall_ns, left: *left as usize })
            }
            ("signal", [signal, wall_ns]) => {
                Some(Said::Signal { signal: i32::try_from(*signal).ok()?, wall_ns: *wall_ns })
            }
            _ => None,
        }
    }

    fn say(&self) {
        // A rank that is gone closes the lifeline too.
        let _ = io::stdout().write_all(self.line().as_bytes()).and_then(|()| io::stdout().flush());
    }
}

enum News {
    Ended(io::Result<ExitStatus>, Duration),
    LifelineCut,
}

/// Runs a command under guard, with all it writes into `output`.
pub fn guard(output: &Path, words: &[OsString]) -> u8 {
    // Whoever loses its parent becomes a child of this process and cannot slip away.
    let _ = set_child_subreaper(Some(getpid()));
    let (pid, news) = match start(output, words) {
        Ok(started) => started,
        Err(why) => {
            Said::Unstartable(why).say();
            return 2;
        }
    };
    Said::Started(pid.as_raw_nonzero().get()).say();
    match news.recv() {
        Ok(News::Ended(Ok(status), wall)) => {
            let left = outlasting();
            end_all(pid);
            report(status, wall, left).say();
            0
        }
        _ => {
            end_all(pid);
            Scratch::tidy_after_parent(output);
            2
        }
    }
}

fn report(status: ExitStatus, wall: Duration, left: usize) -> Said {
    let wall_ns = wall.as_nanos() as u64;
    match status.code() {
        Some(code) => Said::Code { code, wall_ns, left },
        None => Said::Signal { signal: status.signal().unwrap_or(0), wall_ns },
    }
}

fn start(output: &Path, words: &[OsString]) -> Result<(Pid, Receiver<News>), String> {
    let (program, arguments) = words.split_first().ok_or("there is no command")?;
    let file = File::options().append(true).create(true).open(output);
    let file = file.map_err(|error| format!("{}: {error}", output.display()))?;
    let copy = file.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(file).stderr(copy).process_group(0);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{}: command not found", program.display()),
        _ => format!("{}: {error}", program.display()),
    })?;
    let pid = Pid::from_child(&child);
    let (sender, news) = channel();
    let lifeline = sender.clone();
    std::thread::spawn(move || {
        let status = child.wait();
        let _ = sender.send(News::Ended(status, begun.elapsed()));
    });
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = lifeline.send(News::LifelineCut);
    });
    Ok((pid, news))
}

/// How many processes go on after a while, though the one that was started has ended.
fn outlasting() -> usize {
    let begun = Instant::now();
    loop {
        if !reap() {
            return 0;
        }
        if begun.elapsed() > AFTER {
            return descendants(getpid()).len();
        }
        std::thread::sleep(LOOK);
    }
}

/// Takes leave of children that have ended; whether there are others.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends the program's process group and every other descendant; at first in order.
fn end_all(group: Pid) {
    if !reap() {
        return;
    }
    let _ = kill_process_group(group, Signal::TERM);
    let begun = Instant::now();
    while reap() && begun.elapsed() < 2 * GRACE {
        if begun.elapsed() > GRACE {
            let _ = kill_process_group(group, Signal::KILL);
            descendants(getpid()).into_iter().for_each(|pid| {
                let _ = kill_process(pid, Signal::KILL);
            });
        } else if !has_members(group) {
            // Those that left the group were not told.
            descendants(getpid()).into_iter().for_each(|pid| {
                let _ = kill_process(pid, Signal::TERM);
            });
        }
        std::thread::sleep(LOOK);
    }
}

fn has_members(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

/// All processes below this one that still run.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
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
pub(crate) fn held_up(of: Pid, during: Duration) -> Option<String> {
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
    fn what_a_guard_says_is_understood() {
        for said in [
            Said::Started(7),
            Said::Unstartable("x: command not found".into()),
            Said::Code { code: 3, wall_ns: 12, left: 1 },
            Said::Signal { signal: 9, wall_ns: 12 },
        ] {
            assert_eq!(Said::parse(said.line().trim_end()), Some(said));
        }
        for line in ["", "code", "code x 1 2", "started", "signal 9"] {
            assert_eq!(Said::parse(line), None, "{line}");
        }
    }

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
