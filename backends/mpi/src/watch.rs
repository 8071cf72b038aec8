//! Ends the job when this rank is stuck or its neighbour is lost, and says where it was.
//!
//! The thread reads the [`Monitor`] and never calls MPI, which may have been told that there is no second thread, with one
//! exception: `MPI_Abort`, when the rank has made no progress for the whole limit. A rank that merely ends leaves it to
//! chance whether the launcher's exit code is its own or that of those it kills. Should the call not come back, the process
//! ends all the same. Every rank watches itself: the first to run out of time names itself, and the launcher ends the others.
//! And every rank watches the next one of its node (see `neighbour`), which it names when that one is killed or stopped.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use tailback_transport::{Error, Monitor, Result};

use crate::ffi;
use crate::neighbour::{Farewell, Neighbour, State};

/// The exit code of a job that could not run or go on.
const COULD_NOT_RUN: i32 = 2;
/// How long the watcher's call may take to end the job.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a neighbour is looked at. Launchers that end a job by asking first give its ranks at least twice as long.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How long it may be stopped, counted in checks so that a job that is stopped as a whole, and this thread with it, goes on
/// where it was.
const STOPPED_LIMIT: Duration = Duration::from_secs(7);

/// Who this rank is, for the one line it prints when it ends the job.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) farewell: Arc<Farewell>,
}

impl Identity {
    /// Prints the reason and ends the job with exit code 2.
    pub(crate) fn abort(&self, reason: &str) -> ! {
        self.say(self.rank, reason);
        ffi::abort(COULD_NOT_RUN);
    }

    /// The same about `rank`, on a thread that MPI does not know, whose call may hang: then the launcher sees a rank that
    /// died.
    fn abort_from_aside(&self, rank: u32, reason: &str) -> ! {
        let guard = Builder::new().stack_size(64 << 10).spawn(|| {
            sleep(PATIENCE);
            ffi::leave(COULD_NOT_RUN);
        });
        self.say(rank, reason);
        match guard {
            Ok(_) => ffi::abort(COULD_NOT_RUN),
            Err(_) => ffi::leave(COULD_NOT_RUN),
        }
    }

    /// Ranks pass from phase to phase together, so this rank's phase is its neighbour's too.
    fn say(&self, rank: u32, reason: &str) {
        self.farewell.say();
        let phase = self.monitor.phase();
        let line = format!("tailback: error: rank {rank} (host {}), phase \"{phase}\": {reason}\n", self.host);
        // One write, so that lines of several ranks do not mix, and a pause: launchers do not wait for what a rank wrote
        // before it aborted. If standard error is closed there is nobody to tell.
        let _ = io::stderr().write_all(line.as_bytes());
        sleep(Duration::from_millis(200));
    }
}

/// The running watcher. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Watch {
    // Some until dropped: closing the channel is what ends the thread.
    neighbours: Option<Sender<Neighbour>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Without a `limit` a rank may be stuck for as long as it likes; its neighbour is looked after all the same.
    pub(crate) fn start(identity: Identity, limit: Option<Duration>) -> Result<Watch> {
        let (neighbours, met) = channel::<Neighbour>();
        let pause = limit.map_or(CHECK_EVERY, |limit| (limit / 8).clamp(Duration::from_millis(10), CHECK_EVERY));
        let body = move || {
            let mut seen = (identity.monitor.ticks(), Instant::now());
            let mut beside: Option<Beside> = None;
            identity.monitor.begin_watch();
            loop {
                let woken = met.recv_timeout(pause);
                identity.monitor.woke();
                match woken {
                    Ok(neighbour) => beside = Some(Beside { neighbour, pause, stopped_checks: 0 }),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if let Some(beside) = &mut beside
                    && let Some(reason) = beside.check()
                {
                    identity.abort_from_aside(beside.neighbour.rank.0, &reason);
                }
                let ticks = identity.monitor.ticks();
                if ticks != seen.0 {
                    seen = (ticks, Instant::now());
                } else if let Some(limit) = limit.filter(|limit| seen.1.elapsed() >= *limit) {
                    identity.abort_from_aside(identity.rank, &format!("no progress for {:.1} s", limit.as_secs_f64()));
                }
            }
        };
        let thread = Builder::new()
            .name("tailback-watch".into())
            .stack_size(64 << 10)
            .spawn(body)
            .map_err(|source| Error::Io { operation: "start of the watcher thread", peer: None, source })?;
        Ok(Watch { neighbours: Some(neighbours), thread: Some(thread) })
    }

    /// From now on this rank is looked after too.
    pub(crate) fn look_after(&self, neighbour: Neighbour) {
        // The thread is there as long as the channel is.
        let _ = self.neighbours.as_ref().map(|neighbours| neighbours.send(neighbour));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.neighbours.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked with anything worth saying here.
            let _ = thread.join();
        }
    }
}

/// A neighbour, the pause between two checks of it, and how many in a row found it stopped.
struct Beside {
    neighbour: Neighbour,
    pause: Duration,
    stopped_checks: u32,
}

impl Beside {
    /// Looks at the neighbour; says what is wrong with it.
    fn check(&mut self) -> Option<String> {
        let process = self.neighbour.process;
        match self.neighbour.state() {
            State::Well => self.stopped_checks = 0,
            State::Gone => return Some(format!("its process {process} is gone: killed, or crashed")),
            State::Stopped => self.stopped_checks += 1,
        }
        let stopped = self.pause * self.stopped_checks;
        let is_long = stopped >= STOPPED_LIMIT;
        is_long.then(|| format!("its process {process} has been stopped for {:.1} s", stopped.as_secs_f64()))
    }
}
