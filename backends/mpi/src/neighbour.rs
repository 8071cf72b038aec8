//! The next rank on this node, as the kernel tells of its process.
//!
//! A launcher that loses a rank ends the others, some at once, and says what it knows; when a rank is merely stopped, nobody
//! says anything. So the ranks of a node watch each other in a ring. Whether a process that is gone left on purpose is told by
//! a byte of shared memory that has no name, so that nothing stays behind: the owner sets it before it goes, and the
//! neighbour still reads it afterwards.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process;

use rustix::fs::{MemfdFlags, memfd_create};
use tailback_host::ProcessStat;
use tailback_transport::{Rank, Result};

use crate::ffi::Comm;

/// Instead of a file's number: this rank could not make one.
const NONE: u64 = u64::MAX;
/// What stands in the file of a rank that leaves on purpose.
const LEAVES: [u8; 1] = [1];

/// Where a rank says that it leaves on purpose.
#[derive(Debug)]
pub(crate) struct Farewell(Option<File>);

impl Farewell {
    pub(crate) fn new() -> Farewell {
        Farewell(memfd_create("tailback-farewell", MemfdFlags::CLOEXEC).ok().map(File::from))
    }

    /// From here on the end of this process is nobody's concern.
    pub(crate) fn say(&self) {
        // A neighbour that cannot be told says that this rank is gone, which is true.
        let _ = self.0.as_ref().map(|file| file.write_all_at(&LEAVES, 0));
    }
}

/// How a neighbour's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Well,
    /// By a signal or a debugger, until it is told to go on.
    Stopped,
    /// It ended, and did not say so before.
    Gone,
}

/// Another rank of this node.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) rank: Rank,
    pub(crate) process: u64,
    /// When it was started, in the kernel's count: the number of a process may be given again.
    started: u64,
    farewell: File,
}

impl Neighbour {
    /// The rank after this one on its `node`, if there is one whose process can be seen from here: ranks in containers of
    /// their own may share memory and not each other's processes. Collective over the node.
    pub(crate) fn meet(node: Comm, rank: Rank, farewell: &Farewell) -> Result<Option<Neighbour>> {
        let size = node.size()?;
        let mine = u64::from(process::id());
        let file = farewell.0.as_ref().map_or(NONE, |file| file.as_raw_fd() as u64);
        let ranks = node.allgather_number(u64::from(rank.0), size)?;
        let processes = node.allgather_number(mine, size)?;
        let starts = node.allgather_number(look(mine).map_or(0, |seen| seen.started), size)?;
        let files = node.allgather_number(file, size)?;
        let at = ranks.iter().position(|other| *other == u64::from(rank.0)).unwrap_or_default();
        let next = (at + 1) % size;
        let is_there =
            next != at && files[next] != NONE && look(processes[next]).is_some_and(|seen| seen.started == starts[next]);
        let farewell =
            is_there.then(|| File::open(format!("/proc/{}/fd/{}", processes[next], files[next])).ok()).flatten();
        // None opens a file that its owner has closed: all stay until all have met.
        node.barrier()?;
        Ok(farewell.map(|farewell| Neighbour {
            rank: Rank(u32::try_from(ranks[next]).unwrap_or(u32::MAX)),
            process: processes[next],
            started: starts[next],
            farewell,
        }))
    }

    pub(crate) fn state(&self) -> State {
        match look(self.process).filter(|seen| seen.started == self.started) {
            Some(seen) if seen.is_stopped() => State::Stopped,
            Some(seen) if !seen.has_ended() => State::Well,
            _ if self.has_left() => State::Well,
            _ => State::Gone,
        }
    }

    fn has_left(&self) -> bool {
        let mut said = [0];
        matches!(self.farewell.read_at(&mut said, 0), Ok(1)) && said == LEAVES
    }
}

fn look(process: u64) -> Option<ProcessStat> {
    ProcessStat::of(u32::try_from(process).ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// A neighbour that is no rank, and the file in which it would say farewell.
    fn neighbour(process: u32) -> (Neighbour, Farewell) {
        let farewell = Farewell::new();
        let file = farewell.0.as_ref().expect("a file in memory");
        let opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("the same again");
        let started = look(process.into()).expect("a process").started;
        (Neighbour { rank: Rank(1), process: process.into(), started, farewell: opened }, farewell)
    }

    fn until(neighbour: &Neighbour, state: State) {
        let seen = (0..500).any(|_| {
            sleep(Duration::from_millis(10));
            neighbour.state() == state
        });
        assert!(seen, "{state:?} was never seen, but {:?}", neighbour.state());
    }

    #[test]
    fn a_process_is_seen_to_stop_to_go_on_and_to_die() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
        let (neighbour, farewell) = neighbour(child.id());
        assert_eq!(neighbour.state(), State::Well);
        let signal = |name: &str| {
            let told = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
            assert!(told.success());
        };
        signal("-STOP");
        until(&neighbour, State::Stopped);
        signal("-CONT");
        until(&neighbour, State::Well);
        child.kill().expect("a signal");
        until(&neighbour, State::Gone);
        child.wait().expect("its end");
        assert_eq!(neighbour.state(), State::Gone);
        farewell.say();
        assert_eq!(neighbour.state(), State::Well, "it left on purpose");
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let (mut neighbour, _farewell) = neighbour(process::id());
        assert_eq!(neighbour.state(), State::Well);
        neighbour.started -= 1;
        assert_eq!(neighbour.state(), State::Gone);
    }
}
