//! Holders: sleeping processes, one per host and one for the switches, that keep the namespaces of a lab alive.
//!
//! A holder is a shell that talks to the lab's maker over a pipe: it says `made` once its namespaces are there, waits
//! for `go`, sets up its network, says `ready`, and waits again. When the pipe closes it ends, however the maker ended,
//! and its namespaces with it. Told to `stay`, it sleeps instead until it is killed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::error::{Error, Result};
use super::process::{ID_VARIABLE, ProcessId};
use super::system::System;

/// A machine under load makes 250 hosts in less; without a limit a stuck tool would hang the lab.
const LIMIT: Duration = Duration::from_secs(60);

/// Arguments: host name, its `/etc/hosts` (empty for the switches), `ip` batch, `tc` batch.
const SCRIPT: &str = r#"
set -eu
cd /
hostname "$1"
if [ -n "$2" ]; then
    mount -t sysfs sysfs /sys 2>/dev/null ||
        echo "note no /sys of its own in each host: MPI and libfabric may not find d0"
    mount --bind "$2" /etc/hosts 2>/dev/null ||
        echo "note no /etc/hosts of its own in each host: use addresses"
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm 2>/dev/null ||
        echo "note no /dev/shm of its own in each host: hosts share it"
fi
echo made
read -r word || exit 0
[ -z "$3" ] || printf '%s' "$3" | ip -batch -
[ -z "$4" ] || printf '%s' "$4" | tc -batch -
echo ready
read -r word || exit 0
exec sleep 2147483647 </dev/null >/dev/null 2>&1
"#;

/// What a holder is to set up.
pub(super) struct Setup<'a> {
    pub name: &'a str,
    /// Path of the hosts' `/etc/hosts`; `None` for the switches.
    pub hosts_file: Option<&'a str>,
    pub ip_batch: &'a str,
    pub tc_batch: &'a str,
}

/// A holder that listens to this process.
#[derive(Debug)]
pub(super) struct Holder {
    pub process: ProcessId,
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it said it could not do.
    pub notes: Vec<String>,
}

impl Holder {
    /// Starts one in new namespaces, inside the user namespace of `within` if there is one.
    pub fn start(system: &System, id: &str, within: Option<ProcessId>, setup: &Setup<'_>) -> Result<Self> {
        let unshare = system.unshare(within);
        // Its own session: an interrupt from the terminal is for the benchmark, which ends the lab in order.
        let mut command = system.command("setsid");
        command.arg(unshare.get_program()).args(unshare.get_args()).args(["sh", "-c", SCRIPT, "tailback-lab-holder"]);
        command.args([setup.name, setup.hosts_file.unwrap_or_default(), setup.ip_batch, setup.tc_batch]);
        command.env(ID_VARIABLE, id);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::command("starting a holder"))?;
        let process = ProcessId::of(child.id());
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("stdout is a pipe"));
        let (sender, lines) = channel();
        // Reading in a thread of its own gives every wait a time limit. It ends when the holder closes its output.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let name = setup.name.to_owned();
        let Some(process) = process else {
            let _ = child.kill();
            return Err(failed(&name, &mut child));
        };
        Ok(Holder { process, name, child, stdin, lines, notes: Vec::new() })
    }

    /// Waits until it says `word`.
    pub fn wait_for(&mut self, word: &str) -> Result<()> {
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) if line == word => return Ok(()),
                Ok(line) => self.notes.extend(line.strip_prefix("note ").map(str::to_owned)),
                Err(RecvTimeoutError::Disconnected) => return Err(failed(&self.name, &mut self.child)),
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!("waiting for {} to be {word}", self.name);
                    return Err(Error::Timeout { what, seconds: LIMIT.as_secs() });
                }
            }
        }
    }

    /// Lets it go on to its next step: `go` or `stay`.
    pub fn tell(&mut self, word: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().expect("open until it is dropped");
        writeln!(stdin, "{word}").map_err(Error::command(format!("telling {} to {word}", self.name)))
    }

    /// Takes its end off this process's hands, once it was ended: none stays a zombie.
    pub fn reap(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a holder ended, in its own words.
fn failed(name: &str, child: &mut Child) -> Error {
    let mut words = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(4096).read_to_string(&mut words);
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let detail = if lines.is_empty() { status } else { lines.join("; ") };
    Error::Command { what: format!("setting up {name}"), detail }
}
