//! Processes named so that a reused number is never mistaken for them, and the end of all that run in a lab.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tailback_host::ProcessStat;

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

    /// The process itself, if it still runs.
    fn open(self) -> Option<Process> {
        Process::open(self.pid).filter(|process| process.id == self)
    }
}

/// A process that runs, held by its directory in `/proc`. The descriptor never comes to mean another process: what is
/// read through it is about this one, and a signal sent through it reaches this one, or neither is possible any more.
struct Process {
    id: ProcessId,
    parent: u32,
    dir: OwnedFd,
}

impl Process {
    /// The process that has this number now.
    fn open(pid: u32) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
        let stat = ProcessStat::parse(&String::from_utf8_lossy(&read(&dir, "stat")?))?;
        let id = ProcessId { pid, started: stat.started };
        (!stat.has_ended()).then_some(Process { id, parent: stat.parent, dir })
    }

    fn network_namespace(&self) -> Option<CString> {
        rustix::fs::readlinkat(&self.dir, "ns/net", Vec::new()).ok()
    }

    /// The network namespace of a holder that has come so far as to have one. Before, it is still in that of whoever
    /// started it, where everything else on the machine runs too.
    fn namespace_of_its_own(&self) -> Option<CString> {
        let namespace = self.network_namespace()?;
        let others = [std::process::id(), 1, self.parent].into_iter().filter_map(Process::open);
        let is_shared = others.into_iter().any(|other| other.network_namespace().as_ref() == Some(&namespace));
        (!is_shared).then_some(namespace)
    }

    fn carries(&self, mark: &str) -> bool {
        let environment = read(&self.dir, "environ").unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }

    fn kill(&self) {
        let _ = pidfd_send_signal(&self.dir, Signal::KILL);
    }
}

fn read(dir: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    let file = rustix::fs::openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text).ok()?;
    Some(text)
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
        for process in members(id, holders).filter(|process| !holders.contains(&process.id)) {
            process.kill();
            ending.insert(process.id);
        }
        ending.retain(|process: &ProcessId| process.is_alive());
        if ending.is_empty() {
            // Holders are the last: without them it is not known whose a namespace is.
            if holders.iter().filter_map(|holder| holder.open()).inspect(Process::kill).count() == 0 {
                return Ok(());
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Err(Error::Timeout { what: "waiting for the lab's processes to end".to_owned(), seconds: LIMIT.as_secs() })
}

/// The lab's processes that run now, this one left out.
fn members(id: &str, holders: &[ProcessId]) -> impl Iterator<Item = Process> {
    let namespace = |&holder: &ProcessId| Some((holder.open()?.namespace_of_its_own()?, holder));
    let namespaces: HashMap<CString, ProcessId> = holders.iter().filter_map(namespace).collect();
    let mark = format!("{ID_VARIABLE}={id}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| pid != std::process::id()).filter_map(Process::open).filter(move |process| {
        let holder = process.network_namespace().and_then(|namespace| namespaces.get(&namespace));
        // The kernel reuses namespace numbers: a holder that runs even now has kept its own from being given to another.
        holders.contains(&process.id) || holder.is_some_and(|holder| holder.is_alive()) || process.carries(&mark)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Output, Stdio};

    use super::*;
    use crate::lab::system::{ENTER, Mode, System};

    #[test]
    fn a_process_is_itself_and_no_other() {
        let own = ProcessId::of(std::process::id()).expect("this process runs");
        assert!(own.is_alive());
        let earlier = ProcessId { started: own.started.wrapping_sub(1), ..own };
        assert!(!earlier.is_alive(), "the same number with another start is another process");
        assert!(earlier.open().is_none(), "and is not taken for it");
        assert_eq!(own.open().map(|process| process.id), Some(own));
    }

    /// Does what the rest of a test needs a PID namespace of its own for: nobody else takes numbers there.
    fn inside_pid_namespace(test: &str, check: impl FnOnce()) {
        const INSIDE: &str = "TAILBACK_TEST_INSIDE";
        if std::env::var_os(INSIDE).is_some() {
            return check();
        }
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"]);
        command.arg(std::env::current_exe().expect("has a path")).args(["--exact", test]).env(INSIDE, "1");
        let output = command.output().expect("unshare starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
    }

    /// A process with a host name of its own.
    fn named(name: &str) -> Child {
        let mut command = Command::new("unshare");
        command.args(["--uts", "sh", "-c", "hostname $0 && echo && exec sleep 60 >/dev/null", name]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("unshare starts");
        read_line(&mut child);
        child
    }

    fn read_line(child: &mut Child) -> String {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("is a pipe")).read_line(&mut line).expect("reads");
        line
    }

    fn entered(words: &[std::ffi::OsString]) -> Output {
        Command::new(&words[0]).args(&words[1..]).arg("hostname").output().expect("starts")
    }

    #[test]
    fn a_number_given_to_another_process_is_neither_entered_nor_ended() {
        let test = "lab::process::tests::a_number_given_to_another_process_is_neither_entered_nor_ended";
        inside_pid_namespace(test, || {
            let system = System::of(Mode::Root);
            let mut first = named("first");
            let id = ProcessId::of(first.id()).expect("it runs");
            let held = id.open().expect("it runs");
            assert_eq!(entered(&system.enter(id)).stdout, b"first\n");
            // One that is on its way: it has found that the process is the one meant, and has not entered yet.
            let mut late = Command::new("sh");
            late.args(["-c", ENTER, "sh", &id.pid.to_string(), &id.started.to_string()]);
            late.args(["sh", "-c", "echo checked; read -r go; exec nsenter --uts=ns/uts hostname"]);
            let mut late = late.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
            assert_eq!(read_line(&mut late), "checked\n");

            first.kill().expect("kills");
            first.wait().expect("waits");
            // The kernel counts start times in hundredths of a second.
            std::thread::sleep(Duration::from_millis(20));
            fs::write("/proc/sys/kernel/ns_last_pid", (id.pid - 1).to_string()).expect("chooses the next number");
            let mut second = named("second");
            assert_eq!(second.id(), id.pid, "the number is given again");
            let number = ["nsenter", "--target", &id.pid.to_string(), "--uts"].map(Into::into);
            assert_eq!(entered(&number).stdout, b"second\n", "by its number it would be entered");

            late.stdin.take().expect("is a pipe").write_all(b"go\n").expect("writes");
            assert_eq!(read_line(&mut late), "", "what was checked is gone, and nothing else is entered");
            assert!(!late.wait().expect("waits").success());
            let refused = entered(&system.enter(id));
            assert_eq!((refused.status.code(), &*refused.stdout), (Some(126), &b""[..]));
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(said.contains(&format!("process {} of the lab is gone", id.pid)), "{said}");
            held.kill();
            end_all("none such", &[id]).expect("has nothing to end");
            assert!(second.try_wait().expect("looks").is_none(), "it still runs");

            let id = ProcessId::of(second.id()).expect("it runs");
            assert_eq!(entered(&system.enter(id)).stdout, b"second\n");
            end_all("none such", &[id]).expect("ends");
            assert!(!second.wait().expect("waits").success());
        });
    }

    /// Ctrl-C in the first milliseconds of a lab: whoever runs beside a holder that has no network yet is not of the lab.
    #[test]
    fn a_holder_without_a_namespace_of_its_own_is_ended_alone() {
        let spawn = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep starts");
        let (mut holder, mut stranger) = (spawn(), spawn());
        let process = ProcessId::of(holder.id()).expect("it runs");
        let namespace = |pid| Process::open(pid).expect("it runs").network_namespace();
        assert_eq!(namespace(holder.id()), namespace(std::process::id()));
        let found: Vec<ProcessId> = members("none such", &[process]).map(|member| member.id).collect();
        assert_eq!(found, [process], "before anything is ended");
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
        while members(&id, &[]).next().is_none() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        end_all(&id, &[]).expect("ends");
        assert!(!member.wait().expect("waits").success());
        assert!(stranger.try_wait().expect("waits").is_none(), "the other one still runs");
        stranger.kill().expect("kills");
        stranger.wait().expect("waits");
    }
}
