//! One user's labs, and the commands that make them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::eventually;

pub const TAILBACK: &str = env!("CARGO_BIN_EXE_tailback");
/// The number of `nobody`, who owns nothing and has no home.
const NOBODY: &str = "65534";

/// One user's labs, written down in a directory of their own. Ends them all when dropped.
pub struct Bench {
    pub name: String,
    pub dir: PathBuf,
    pub program: PathBuf,
    pub as_nobody: bool,
}

impl Bench {
    pub fn new(test: &str, as_nobody: bool) -> Self {
        let name = format!("{test}-{}", if as_nobody { "nobody" } else { "self" });
        let root = std::env::temp_dir().join(format!("tailback-test-{name}-{}", std::process::id()));
        fs::create_dir(&root).expect("makes a directory");
        // The build directory may be closed to others. A copy made by this process could be inherited, open for writing,
        // by a child of another test, and then not be run.
        let program = root.join("tailback");
        let copied = Command::new("cp").arg(TAILBACK).arg(&program).status().expect("starts");
        assert!(copied.success(), "copies the program");
        let dir = root.join("labs");
        if as_nobody {
            std::os::unix::fs::chown(&root, Some(65534), Some(65534)).expect("gives the directory away");
        }
        Bench { name, dir, program, as_nobody }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.beside("lab");
        command.args(words);
        command
    }

    /// Another command than `lab`, which finds the same labs.
    pub fn beside(&self, name: &str) -> Command {
        let mut command = if self.as_nobody {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command.env("TAILBACK_NO_OUT", "1");
        command.arg(name).env("TAILBACK_LAB_DIR", &self.dir).env("TAILBACK_LAB", &self.name);
        command.current_dir("/").env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("starts")
    }

    /// Standard output of a command that must work.
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?} as {}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("is text")
    }

    /// The one line that a command says when it cannot be done.
    pub fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let message = String::from_utf8(output.stderr).expect("is text");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        message
    }

    /// A small network test with a rank on each of the first `ranks` hosts, which meet at `root`, as someone else's launcher
    /// would start them; `before` is put before rank 0's command. What each of them left.
    pub fn network_test(&self, ranks: usize, root: &str, before: &[&str], options: &[&str]) -> Vec<Output> {
        let rank = |number: usize| {
            let mut command = self.command(&["exec", &format!("h{number}"), "--"]);
            command.args(if number == 0 { before } else { &[] }).arg(&self.program);
            command.args(["network", "--canaries", "lat", "--budget", "200ms", "--format", "json", "--quiet"]);
            command.args(options).env("TAILBACK_RANK", number.to_string()).env("TAILBACK_SIZE", ranks.to_string());
            command.env("TAILBACK_ROOT", root).env("TAILBACK_SECRET", "ab".repeat(32));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
        };
        let ranks: Vec<_> = (0..ranks).map(rank).collect();
        ranks.into_iter().map(|rank| rank.wait_with_output().expect("ends")).collect()
    }

    /// Processes of any lab of this bench, by the mark they carry.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("TAILBACK_LAB_ID={}", self.name);
        let entries = fs::read_dir("/proc").expect("lists processes");
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
        })
        .collect()
    }

    /// The processes of a lab that was just made. One that is becoming another program has no environment for a moment.
    pub fn holders(&self, expected: usize) -> Vec<u32> {
        let mut found = Vec::new();
        wait_until(&format!("{expected} holders"), || {
            found = self.processes();
            found.len() == expected
        });
        found
    }

    pub fn assert_nothing_left(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "{}: processes {left:?} are left", self.name);
        assert!(!self.dir.exists(), "{}: {:?} is left", self.name, fs::read_dir(&self.dir).map(Iterator::count));
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("lists mounts");
        assert!(!mounts.contains(&self.name), "{}: mounts are left", self.name);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in [self.name.clone(), format!("{}-2", self.name)] {
            let _ = self.run(&["down", "--name", &name]);
        }
        let _ = fs::remove_dir_all(self.dir.parent().expect("is in a directory"));
    }
}

/// Runs a test as this user, and as `nobody` where this user is root.
pub fn for_each_user(test: &str, check: impl Fn(&Bench)) {
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    check(&Bench::new(test, false));
    if rustix::process::geteuid().is_root() {
        check(&Bench::new(test, true));
    }
}

/// Runs a test of what its user has no part in: as `nobody` where this user is root.
pub fn as_ordinary_user(test: &str, check: impl Fn(&Bench)) {
    tailback::lab::available().unwrap_or_else(|reason| panic!("no lab on this machine: {reason}"));
    check(&Bench::new(test, rustix::process::geteuid().is_root()));
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    eventually(what, || done().then_some(()));
}
