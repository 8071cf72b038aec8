//! The process between a rank and the application it started. It outlives a rank that is killed, and ends the
//! application then: with all its processes on this host, also those that left their parents.
//!
//! Its standard input is its lifeline: once that is closed, the application is ended. On its standard output it says a
//! line when the application has started and one when it has ended ([`Said`]).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait};

use super::family::descendants;
use crate::commands::local::Scratch;

/// How long a program has to end in order before it is killed: launchers use it to end processes on other hosts.
const GRACE: Duration = Duration::from_secs(3);
/// How long processes may go on after the one that was started has ended well.
const AFTER: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// What a guard says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
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

    pub(super) fn parse(line: &str) -> Option<Self> {
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

#[cfg(test)]
mod tests {
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
}
