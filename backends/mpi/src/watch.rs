//! Ends the job when this rank is stuck, and says where it was.
//!
//! The thread reads the [`Monitor`] and never calls MPI, which may have been told that there is no second thread, with one
//! exception: `MPI_Abort`, when the rank has made no progress for the whole limit. A rank that merely ends leaves it to
//! chance whether the launcher's exit code is its own or that of those it kills. Should the call not come back, the process
//! ends all the same. Every rank watches itself: the first to run out of time names itself, and the launcher ends the others.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use tailback_transport::{Error, Monitor, Result};

use crate::ffi;

/// The exit code of a job that could not run or go on.
const COULD_NOT_RUN: i32 = 2;
/// How long the watcher's call may take to end the job.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who this rank is, for the one line it prints when it ends the job.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) monitor: Arc<Monitor>,
}

impl Identity {
    /// Prints the reason and ends the job with exit code 2.
    pub(crate) fn abort(&self, reason: &str) -> ! {
        self.say(reason);
        ffi::abort(COULD_NOT_RUN);
    }

    /// The same on a thread that MPI does not know, whose call may hang: then the launcher sees a rank that died.
    fn abort_from_aside(&self, reason: &str) -> ! {
        let guard = Builder::new().stack_size(64 << 10).spawn(|| {
            sleep(PATIENCE);
            ffi::leave(COULD_NOT_RUN);
        });
        self.say(reason);
        match guard {
            Ok(_) => ffi::abort(COULD_NOT_RUN),
            Err(_) => ffi::leave(COULD_NOT_RUN),
        }
    }

    fn say(&self, reason: &str) {
        let phase = self.monitor.phase();
        let line = format!("tailback: error: rank {} (host {}), phase \"{phase}\": {reason}\n", self.rank, self.host);
        // One write, so that lines of several ranks do not mix, and a pause: launchers do not wait for what a rank wrote
        // before it aborted. If standard error is closed there is nobody to tell.
        let _ = io::stderr().write_all(line.as_bytes());
        sleep(Duration::from_millis(200));
    }
}

/// The running watcher. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Watch {
    // Some until dropped: closing the channel is what wakes the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn start(identity: Identity, limit: Duration) -> Result<Watch> {
        let (stop, stopped) = channel::<()>();
        let pause = (limit / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let body = move || {
            let mut seen = (identity.monitor.ticks(), Instant::now());
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let ticks = identity.monitor.ticks();
                if ticks != seen.0 {
                    seen = (ticks, Instant::now());
                } else if seen.1.elapsed() >= limit {
                    identity.abort_from_aside(&format!("no progress for {:.1} s", limit.as_secs_f64()));
                }
            }
        };
        let thread = Builder::new()
            .name("tailback-watch".into())
            .stack_size(64 << 10)
            .spawn(body)
            .map_err(|source| Error::Io { operation: "start of the watcher thread", peer: None, source })?;
        Ok(Watch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked with anything worth saying here.
            let _ = thread.join();
        }
    }
}
