//! MPI between `MPI_Init_thread` and `MPI_Finalize`, shared by the bootstrap, the transport and their groups.
//!
//! - MPI is initialised with `MPI_THREAD_SINGLE` unless the user asks for more: one thread calls it, as in most programs,
//!   and some libraries are slower at every level above. The watcher thread is there all the same; what it
//!   calls is `MPI_Abort` alone, at the end of a rank that is stuck.
//! - Dropping a group is local, because ranks that fail drop theirs when the others do not, and freeing a window waits
//!   for all its members. What was dropped is freed at the next [`Session::reap`] (each bootstrap barrier), by the
//!   groups' members together, in the order of creation, which is the same on all of them.
//! - The session ends when the last of its users is dropped: with `MPI_Finalize` after a clean run, with `MPI_Abort`
//!   after a panic or an error of MPI's, when finalising could wait forever.

use std::cell::{OnceCell, RefCell};
use std::env;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mpi::Threading;
use mpi::environment::{self, Universe};
use tailback_host::WaitMode;
use tailback_transport::{Error, Monitor, Rank, Result};

use crate::ffi::{self, Comm, Model, Port, Remains, Waiting};
use crate::launcher::{self, Launcher};
use crate::neighbour::{Farewell, Neighbour};
use crate::onesided::{self, Service};
use crate::watch::{Identity, Watch};

/// A group's state as told to its members when they ask whether it can be freed. The smallest one counts.
const LIVE: u64 = 0;
const BUSY: u64 = 1;
const IDLE: u64 = 2;

/// Which of MPI's thread levels was asked for, and which the library gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) asked: Threading,
    pub(crate) provided: Threading,
}

/// The level as a user types it.
pub(crate) fn level(threading: Threading) -> &'static str {
    match threading {
        Threading::Single => "single",
        Threading::Funneled => "funneled",
        Threading::Serialized => "serialized",
        Threading::Multiple => "multiple",
    }
}

#[derive(Debug)]
struct Entry {
    id: u64,
    comm: Comm,
    remains: Option<Remains>,
}

/// MPI, initialised.
pub(crate) struct Session {
    pub(crate) world: Comm,
    pub(crate) rank: Rank,
    pub(crate) size: usize,
    /// Equal on ranks that share memory: the host's name and the lowest such rank.
    pub(crate) node: String,
    pub(crate) identity: Identity,
    pub(crate) launcher: Option<Launcher>,
    pub(crate) library: String,
    pub(crate) threads: Threads,
    pub(crate) largest_tag: u32,
    /// The windows' memory model, or why there are none.
    pub(crate) windows: std::result::Result<Model, String>,
    /// Who serves puts and gets on them, once that was tried.
    pub(crate) service: OnceCell<Service>,
    /// The lowest rank of the job on this rank's node.
    lowest: u64,
    /// How this rank waits, and why.
    pub(crate) wait: (WaitMode, String),
    groups: RefCell<Vec<Entry>>,
    universe: Option<Universe>,
    watch: Option<Watch>,
}

impl Session {
    /// Initialises MPI. Collective over the job.
    pub(crate) fn start(monitor: Arc<Monitor>, stall: Option<Duration>, asked: Threading) -> Result<Session> {
        let launcher = launcher::launcher();
        let library = library();
        avoid_known_faults(&library);
        let first = launcher.as_ref().and_then(|of| of.rank).unwrap_or(0) == 0;
        if let Some(note) = launcher::foreign(launcher.as_ref(), &library).filter(|_| first) {
            eprintln!("tailback: note: {note}");
        }
        let Some((universe, provided)) = environment::initialize_with_threading(asked) else {
            return Err(Error::Setup("MPI is already initialised: one session per process".into()));
        };
        let (world, rank, size) = Comm::world()?;
        if let Some(reason) = launcher::mismatch(launcher.as_ref(), size, &library) {
            return Err(Error::Setup(reason));
        }
        if provided < asked {
            let (asked, provided) = (level(asked), level(provided));
            let said = format!("{library} has thread level {provided} and no more; --mpi-thread {asked} was asked for");
            return Err(Error::Setup(said));
        }
        let host = environment::processor_name().unwrap_or_else(|_| "unknown".into());
        let farewell = Arc::new(Farewell::new());
        let identity = Identity { rank: rank.0, host: host.clone(), monitor, farewell };
        let watch = Watch::start(identity.clone(), stall)?;
        let (lowest, neighbour) = on_node(world, rank, &identity.farewell)?;
        if let Some(neighbour) = neighbour {
            watch.look_after(neighbour);
        }
        let node = format!("{host}/{lowest}");
        let largest_tag = world.largest_tag()?;
        let windows = with_window(world, size, |port| Ok(port.model()))?
            .and_then(|model| model.ok_or_else(|| "the library does not say how its windows see memory".into()));
        let groups = RefCell::default();
        let universe = Some(universe);
        Ok(Session {
            world,
            rank,
            size,
            node,
            identity,
            launcher,
            library,
            threads: Threads { asked, provided },
            largest_tag,
            windows,
            service: OnceCell::new(),
            lowest,
            wait: (WaitMode::Spin, "MPI is being set up".into()),
            groups,
            universe,
            watch: Some(watch),
        })
    }

    /// From here on this rank waits in this `mode`. Collective over the job, before there are groups: all ranks must
    /// learn whether any of them does not spin.
    pub(crate) fn wait(&mut self, mode: WaitMode, mut reason: String) -> Result<()> {
        if mode == WaitMode::Block {
            reason.push_str("; in naps, as MPI has no other way");
        }
        // Inside MPI's calls it is the library that looks again, with or without a pause.
        let spins = matches!(mode, WaitMode::Spin | WaitMode::Pause);
        let all_spin = self.world.minimum(u64::from(spins))?;
        self.world = self.world.waiting(match (mode, all_spin) {
            (WaitMode::Spin | WaitMode::Pause, 1) => Waiting::Inside,
            (WaitMode::Spin | WaitMode::Pause, _) => Waiting::Mixed,
            (WaitMode::Yield, _) => Waiting::Yielding,
            (WaitMode::Block, _) => Waiting::Napping,
        });
        self.wait = (mode, reason);
        Ok(())
    }

    /// Finds out who serves puts and gets, if there are any and it is not known. Collective over the job.
    pub(crate) fn try_one_sided(&self) -> Result<()> {
        if self.windows.is_err() || self.service.get().is_some() {
            return Ok(());
        }
        let (world, rank, size, lowest) = (self.world, self.rank, self.size, self.lowest);
        let found = with_window(world, size, |port| onesided::service(world, port, rank, size, lowest))?;
        let _ = self.service.set(found.unwrap_or(Service::Unknown));
        Ok(())
    }

    /// Keeps track of a group that was just made.
    pub(crate) fn enrol(&self, port: &Port) -> u64 {
        let mut groups = self.groups.borrow_mut();
        let id = groups.last().map_or(0, |last| last.id + 1);
        groups.push(Entry { id, comm: port.comm(), remains: None });
        id
    }

    /// Takes over what a dropped group leaves.
    pub(crate) fn retire(&self, id: u64, remains: Remains) {
        if let Some(entry) = self.groups.borrow_mut().iter_mut().find(|entry| entry.id == id) {
            entry.remains = Some(remains);
        }
    }

    /// Frees the groups that all their members have dropped. Collective over the job. One with something pending is
    /// left to MPI: its memory may still be written.
    pub(crate) fn reap(&self) -> Result<()> {
        let mut kept = Vec::new();
        for entry in self.groups.take() {
            let state = match &entry.remains {
                None => LIVE,
                Some(remains) if remains.idle => IDLE,
                Some(_) => BUSY,
            };
            match (entry.comm.minimum(state)?, entry.remains) {
                (IDLE, Some(remains)) => remains.free()?,
                (LIVE, remains) => kept.push(Entry { remains, ..entry }),
                _ => {}
            }
        }
        self.groups.replace(kept);
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.identity.monitor.enter("finalize");
        self.reap()?;
        // Before the barrier, after which the neighbour's process may end.
        self.identity.farewell.say();
        self.world.barrier()?;
        self.world.free()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if thread::panicking() {
            self.identity.abort("ended by the panic above");
        }
        if ffi::failed() {
            self.identity.abort("ended by an error of MPI's");
        }
        if let Err(error) = self.finish() {
            self.identity.abort(&error.to_string());
        }
        // MPI_Finalize; the watcher stays until it returned.
        drop(self.universe.take());
        drop(self.watch.take());
    }
}

/// Open MPI before 5 names the files behind osc/rdma's windows after the host and the communicator's number, which
/// groups without common members share: such groups, made at the same time on one host, get each other's memory. Its
/// other components do not have this fault. A user's own choice stands, and either shows among the settings.
fn avoid_known_faults(library: &str) {
    let major = library.strip_prefix("Open MPI ").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if major.is_some_and(|major| major < 5) && env::var_os("OMPI_MCA_osc").is_none() {
        ffi::set_before_init("OMPI_MCA_osc", "^rdma");
    }
}

/// The job's lowest rank on this rank's node, and the next one there.
fn on_node(world: Comm, rank: Rank, farewell: &Farewell) -> Result<(u64, Option<Neighbour>)> {
    let node = world.shared_memory(rank)?;
    let lowest = node.minimum(u64::from(rank.0))?;
    let neighbour = Neighbour::meet(node, rank, farewell)?;
    node.free()?;
    Ok((lowest, neighbour))
}

/// Makes a window over the whole job, does something with it and frees it: some networks and settings have none, and it is
/// better to know before the run. All ranks come to the same answer, or why there is none.
fn with_window<A>(
    world: Comm,
    size: usize,
    ask: impl FnOnce(&mut Port) -> Result<A>,
) -> Result<std::result::Result<A, String>> {
    let everyone: Vec<Rank> = (0..size).map(Rank::from).collect();
    let (answer, reason) = match Port::open(world.duplicate()?, &everyone, 8, true, 0) {
        Ok(mut port) => {
            let answer = ask(&mut port)?;
            (Some(answer), port.retire().free().err().map(|error| error.to_string()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let works = world.minimum(u64::from(reason.is_none()))?;
    ffi::forgive();
    Ok(match (works, answer) {
        (1, Some(answer)) => Ok(answer),
        _ => Err(reason.unwrap_or_else(|| "another rank of the job could not make a window".into())),
    })
}

/// Name and version of the MPI library in one line; known before MPI is initialised.
#[must_use]
pub fn library() -> String {
    let full = environment::library_version().unwrap_or_default();
    short_name(&full)
}

fn short_name(full: &str) -> String {
    let line = full.lines().next().unwrap_or_default();
    let line = line.split(',').next().unwrap_or_default().replace("Version:", " ").replace("Open MPI v", "Open MPI ");
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() { "an MPI library that does not name itself".into() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named_in_one_line() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        assert_eq!(short_name(open), "Open MPI 4.1.4");
        assert_eq!(short_name("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7"), "MPICH 4.0.2");
        assert_eq!(
            short_name("Intel(R) MPI Library 2021.13 for Linux* OS\n"),
            "Intel(R) MPI Library 2021.13 for Linux* OS"
        );
    }
}
