//! One rank's process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tailback_transport::{Error, Rank, Result};

use super::options::LaunchOptions;
use crate::config::hostname;
use crate::env::variables;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) rank: Rank,
    /// Where it says that it is.
    host: String,
    pub(super) child: Child,
    pub(super) status: Option<ExitStatus>,
    /// Since when it was seen to stand still.
    pub(super) stopped: Option<Instant>,
}

impl Member {
    /// Starts a rank with what is common to all, what was asked for and what is its own, each over those before.
    pub(super) fn start(rank: Rank, options: &LaunchOptions, common: &[(&str, String)]) -> Result<Self> {
        let setup = (options.setup)(rank);
        let words: Vec<&OsString> = setup.prefix.iter().chain(&options.command).collect();
        let mut command = Command::new(words[0]);
        // Its own process group: the terminal's signals reach the launcher alone, which passes each on once.
        command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let keep_stdin = rank.0 == 0 && !io::stdin().is_terminal();
        command.stdin(if keep_stdin { Stdio::inherit() } else { Stdio::null() });
        // These would contradict what is set below.
        for name in [variables::SECRET_FILE, variables::BOOTSTRAP_ADDR, variables::BOOTSTRAP_IF] {
            command.env_remove(name);
        }
        command.envs(common.iter().map(|(name, value)| (name, value))).env(variables::RANK, rank.to_string());
        if let Some(count) = options.ranks_per_node {
            command.env(variables::HOST, format!("node{}", rank.index() / count.max(1)));
        }
        command.envs(options.env.iter().chain(&setup.env).map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(|e| {
            let program = words[0].to_string_lossy();
            Error::Setup(match e.kind() {
                io::ErrorKind::NotFound => format!("cannot start rank {rank}: {program}: command not found"),
                _ => format!("cannot start rank {rank}: {program}: {e}"),
            })
        })?;
        Ok(Member { rank, host: host_of(&command), child, status: None, stopped: None })
    }

    /// As errors name it.
    pub(super) fn name(&self) -> String {
        format!("rank {} (host {})", self.rank, self.host)
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    pub(super) fn is_stopped(&self) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.pid().is_some_and(|pid| waitid(WaitId::Pid(pid), look).is_ok_and(|status| status.is_some()))
    }
}

/// The host that a rank names as its own: the one it is given, or this one.
fn host_of(command: &Command) -> String {
    let given = command.get_envs().find(|(name, _)| *name == OsStr::new(variables::HOST));
    let given = given.and_then(|(_, value)| value.map(OsStr::to_owned)).or_else(|| env::var_os(variables::HOST));
    given.map_or_else(hostname, |host| host.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_on_the_host_that_it_is_given() {
        let mut command = Command::new("true");
        assert_eq!(host_of(&command), hostname());
        command.env(variables::HOST, "h3");
        assert_eq!(host_of(&command), "h3");
    }
}
