//! What the system gives: the tools a lab is made with, the right to make one, and a way into its namespaces.
//!
//! The lab is made by `ip`, `tc`, `unshare`, `nsenter` and `mount`: the code here only runs them. Whether a lab can be
//! had is found by making a tiny one, not by guessing from versions and settings; those only word the refusal.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{Error, Reason, Result};
use super::process::ProcessId;

/// Where administrators' tools are; ordinary users' PATH often lacks these.
const ADMIN_PATH: &str = "/usr/sbin:/sbin:/usr/bin:/bin";
/// The tools a lab needs, and the package that has each on Debian and Fedora.
const TOOLS: [(&str, &str); 8] = [
    ("ip", "iproute2 (iproute)"),
    ("tc", "iproute2 (iproute-tc)"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
    ("mount", "mount (util-linux)"),
    ("hostname", "hostname"),
    ("sh", "dash (bash)"),
];
const PROBE: &str = "ip link add probe0 type veth peer name probe1 \
    && ip link add probe2 type bridge \
    && tc qdisc add dev probe0 root tbf rate 200mbit burst 16384 limit 131072 \
    && mount -t tmpfs tmpfs /dev/shm";

/// What only some labs need of the kernel, found by trying it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needed {
    /// A queue that marks.
    Marks,
    /// A queue that delays.
    Delay,
    /// Packets lost by lot.
    Loss,
}

impl Needed {
    /// The option that needs it, what tries it, what is missing otherwise and may be added.
    fn details(self) -> [&'static str; 4] {
        match self {
            Needed::Marks => ["--ecn", PROBE_MARKS, "red queue", "sch_red"],
            Needed::Delay => ["--degrade ...:delay", PROBE_DELAY, "netem queue", "sch_netem"],
            Needed::Loss => ["--degrade ...:loss", PROBE_LOSS, "bpf filter or no blackhole queue", "cls_bpf"],
        }
    }
}

const PROBE_DELAY: &str =
    "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root netem delay 1ms limit 1000";

const PROBE_LOSS: &str = "ip link add probe0 type veth peer name probe1 \
    && tc qdisc add dev probe0 root handle 1: htb && tc class add dev probe0 parent 1: classid 1:1 htb rate 1gbit quantum 60000 \
    && tc qdisc add dev probe0 parent 1:1 blackhole \
    && tc filter add dev probe0 parent 1: protocol all prio 1 bpf bytecode '1,6 0 0 0' flowid 1:1";

const PROBE_MARKS: &str = "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root \
    red limit 131072 min 32768 max 32769 avpkt 1000 burst 33 bandwidth 200mbit probability 1 ecn nodrop";

/// Enters namespaces of a process if it is the one that is meant. Its directory in `/proc`, once it is the working
/// directory, never comes to mean another process: the start time and the namespaces that are opened there are of one
/// process, or nothing is. Arguments: number, start time, then `nsenter` with namespaces below `ns`.
pub(super) const ENTER: &str = r#"started=$2
is_meant() { [ "${20-}" = "$started" ]; }
cd "/proc/$1" 2>/dev/null && IFS= read -r stat <stat && set -f && is_meant ${stat##*) } || {
    echo "process $1 of the lab is gone" >&2
    exit 126
}
shift 2; exec "$@""#;

/// How the lab's namespaces are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The user is root.
    Root,
    /// Everything lives inside one user namespace, in which the user is root.
    UserNamespace,
}

impl Mode {
    /// The flags of `unshare` that make a first namespace of the lab.
    fn unshare(self) -> &'static [&'static str] {
        match self {
            Mode::Root => &["--net", "--uts", "--ipc", "--mount"],
            Mode::UserNamespace => &["--user", "--map-root-user", "--net", "--uts", "--ipc", "--mount"],
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Root => "root",
            Mode::UserNamespace => "user namespace",
        })
    }
}

/// Whether this user can have a lab on this machine, and how.
///
/// # Errors
/// Which tool is missing, or what the kernel refused.
pub fn available() -> std::result::Result<Mode, Reason> {
    System::find(None).map(|system| system.mode)
}

/// The tools, found, and the mode, tried.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub mode: Mode,
    path: OsString,
}

impl System {
    /// Finds the tools and the mode: the one asked for, or the first that works.
    pub fn find(mode: Option<Mode>) -> std::result::Result<Self, Reason> {
        Self::find_in(&search_path(), mode)
    }

    fn find_in(path: &OsString, mode: Option<Mode>) -> std::result::Result<Self, Reason> {
        for (tool, package) in TOOLS {
            if !std::env::split_paths(path).any(|dir| is_executable(&dir.join(tool))) {
                return Err(Reason(format!("the command `{tool}` is missing: install the package {package}")));
            }
        }
        let root = rustix::process::geteuid().is_root();
        let modes: &[Mode] = match mode {
            Some(Mode::UserNamespace) => &[Mode::UserNamespace],
            Some(Mode::Root) => &[Mode::Root],
            None if root => &[Mode::Root, Mode::UserNamespace],
            None => &[Mode::UserNamespace],
        };
        let mut refusals = Vec::new();
        for &mode in modes {
            let system = System { mode, path: path.clone() };
            match system.probe() {
                Ok(()) => return Ok(system),
                Err(refusal) => refusals.push(format!("{mode}: {refusal}")),
            }
        }
        Err(Reason(refusals.join("; ")))
    }

    /// The tools for a lab that is up already, whose mode is known.
    pub fn of(mode: Mode) -> Self {
        System { mode, path: search_path() }
    }

    /// Whether the kernel has what only some labs need.
    ///
    /// # Errors
    /// What the kernel says, and what may help.
    pub fn check(&self, needed: Needed) -> Result<()> {
        let [option, probe, missing, module] = needed.details();
        let mut command = self.unshare(None);
        let output = command.args(["sh", "-c", probe]).stdin(Stdio::null()).output();
        let output = output.map_err(Error::command("unshare"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = complaint(&output);
        Err(Error::Spec(format!(
            "{option}: the kernel has no {missing} (as root, `modprobe {module}` may add it): {said}"
        )))
    }

    fn probe(&self) -> std::result::Result<(), String> {
        let mut command = self.unshare(None);
        let output = command.args(["sh", "-c", PROBE]).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(match (self.mode, why_no_user_namespace()) {
                (Mode::UserNamespace, Some(why)) => why,
                _ => complaint(&output),
            }),
            Err(error) => Err(format!("unshare: {error}")),
        }
    }

    /// `unshare` into new namespaces: the lab's first ones, or more inside the user namespace that `within` holds. It
    /// keeps its process number when it becomes the command.
    pub fn unshare(&self, within: Option<ProcessId>) -> Command {
        match (self.mode, within) {
            (Mode::UserNamespace, Some(holder)) => {
                let words = self.nsenter(holder, &["--preserve-credentials", "--user=ns/user"]);
                let mut command = self.command(&words[0]);
                command.args(&words[1..]).arg("unshare").args(Mode::Root.unshare()).arg("--");
                command
            }
            _ => {
                let mut command = self.command("unshare");
                command.args(self.mode.unshare()).arg("--");
                command
            }
        }
    }

    /// The words that, put before a command, run it in the namespaces that `holder` holds.
    pub fn enter(&self, holder: ProcessId) -> Vec<OsString> {
        let mut options = vec!["--net=ns/net", "--uts=ns/uts", "--ipc=ns/ipc", "--mount=ns/mnt"];
        // A process may not enter the user namespace it is in; commands inside the lab start others there.
        if self.mode == Mode::UserNamespace && !same_user_namespace(holder.pid) {
            options.extend(["--user=ns/user", "--preserve-credentials"]);
        }
        self.nsenter(holder, &options)
    }

    fn nsenter(&self, holder: ProcessId, options: &[&str]) -> Vec<OsString> {
        let words = [self.locate("sh").into(), "-c".into(), ENTER.into(), "tailback-lab".into()];
        let process = [holder.pid.to_string().into(), holder.started.to_string().into(), self.locate("nsenter").into()];
        words.into_iter().chain(process).chain(options.iter().map(OsString::from)).chain(["--".into()]).collect()
    }

    /// Runs commands in several namespaces at once, each with its input; their outputs in the same order.
    pub fn run_in(&self, jobs: &[(ProcessId, &[&str], String)]) -> Result<Vec<String>> {
        let started: Vec<Result<Child>> =
            jobs.iter().map(|(holder, words, input)| self.start_in(*holder, words, input)).collect();
        // Every child is waited for, also after a failure: none stays behind as a zombie.
        let finished: Vec<Result<String>> = started
            .into_iter()
            .zip(jobs)
            .map(|(child, (_, words, _))| {
                let output = child?.wait_with_output().map_err(Error::command(words[0]))?;
                if output.status.success() {
                    return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
                }
                Err(Error::Command { what: words.join(" "), detail: complaint(&output) })
            })
            .collect();
        finished.into_iter().collect()
    }

    fn start_in(&self, holder: ProcessId, words: &[&str], input: &str) -> Result<Child> {
        let prefix = self.enter(holder);
        let mut command = self.command(&prefix[0]);
        command.args(&prefix[1..]).args(words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::command(words[0]))?;
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        // A tool that stops at a bad line closes its input early; its exit status tells more than our EPIPE.
        let _ = stdin.write_all(input.as_bytes());
        Ok(child)
    }

    /// A command whose PATH has the administrators' tools too.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(self.locate(program.as_ref()));
        command.env("PATH", &self.path);
        command
    }

    fn locate(&self, program: impl AsRef<OsStr>) -> PathBuf {
        let program = Path::new(program.as_ref());
        let found = std::env::split_paths(&self.path).map(|dir| dir.join(program)).find(|file| is_executable(file));
        found.unwrap_or_else(|| program.to_owned())
    }
}

/// The congestion controls that the kernel has.
///
/// # Errors
/// If `wanted` is not one of them.
pub(super) fn check_congestion_control(wanted: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = fs::read_to_string(path).map_err(Error::file(path))?;
    if known.split_whitespace().any(|name| name == wanted) {
        return Ok(());
    }
    let known = known.trim();
    Err(Error::Spec(format!(
        "--congestion-control {wanted}: the kernel has {known} (as root, `modprobe tcp_{wanted}` may add it)"
    )))
}

fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(ADMIN_PATH);
    path
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

fn same_user_namespace(holder: u32) -> bool {
    let own = fs::read_link("/proc/self/ns/user");
    let other = fs::read_link(format!("/proc/{holder}/ns/user"));
    matches!((own, other), (Ok(own), Ok(other)) if own == other)
}

/// What a failed command said, on one line.
pub(super) fn complaint(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let line = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if line.is_empty() { output.status.to_string() } else { line }
}

/// The setting that is known to forbid user namespaces, if one does.
fn why_no_user_namespace() -> Option<String> {
    const SETTINGS: [(&str, &str); 3] = [
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ];
    SETTINGS.iter().find_map(|(setting, forbids)| {
        let value = fs::read_to_string(format!("/proc/sys/{setting}")).ok()?;
        let name = setting.replace('/', ".");
        (value.trim() == *forbids).then(|| format!("user namespaces are forbidden here (sysctl {name} is {forbids})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let reason = System::find_in(&"/nonexistent".into(), None).expect_err("no tools there").to_string();
        assert_eq!(reason, "the command `ip` is missing: install the package iproute2 (iproute)");
    }

    #[test]
    fn an_unknown_congestion_control_is_refused_with_those_there_are() {
        let message = check_congestion_control("carrier-pigeon").expect_err("unknown").to_string();
        assert!(message.contains("carrier-pigeon") && message.contains("reno"), "{message}");
    }
}
