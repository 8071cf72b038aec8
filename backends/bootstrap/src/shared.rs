//! What a rank's own thread and its watcher share.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailback_transport::{Monitor, Rank};

use crate::message::{Beat, State};

/// What the rank's own thread asks of its watcher.
#[derive(Debug)]
pub(crate) enum Command {
    /// End the job.
    Abort(String),
    /// A collective found this neighbour gone.
    Lost(Rank, String),
    /// Say goodbye and stop watching.
    Finish,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) monitor: Arc<Monitor>,
    waiting: AtomicBool,
    collectives: AtomicU64,
    commands: Mutex<Vec<Command>>,
    wake: UnixStream,
    failed: Mutex<bool>,
    changed: Condvar,
}

impl Shared {
    /// `wake` is written to whenever there is a command.
    pub(crate) fn new(monitor: Arc<Monitor>, wake: UnixStream) -> Self {
        Shared {
            monitor,
            waiting: AtomicBool::new(false),
            collectives: AtomicU64::new(0),
            commands: Mutex::default(),
            wake,
            failed: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn enter_collective(&self) {
        self.collectives.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn leave_collective(&self) {
        self.waiting.store(false, Ordering::Relaxed);
    }

    /// This rank's sign of life, without its phase.
    pub(crate) fn beat(&self, rank: Rank) -> Beat {
        let waiting = self.waiting.load(Ordering::Relaxed) || self.monitor.is_waiting();
        let state = if waiting { State::Waiting } else { State::Busy };
        let collectives = self.collectives.load(Ordering::Relaxed);
        Beat { rank, ticks: self.monitor.ticks(), collectives, state, phase: None }
    }

    pub(crate) fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        // The pipe is never read-blocked: one byte that does not fit means others wait there already.
        let _ = (&self.wake).write(&[1]);
    }

    pub(crate) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut lock(&self.commands))
    }

    pub(crate) fn set_failed(&self) {
        *lock(&self.failed) = true;
        self.changed.notify_all();
    }

    pub(crate) fn has_failed(&self) -> bool {
        *lock(&self.failed)
    }

    /// Waits until the watcher has ended the job; `false` if it did not within `limit`.
    pub(crate) fn wait_failed(&self, limit: Duration) -> bool {
        let guard = lock(&self.failed);
        let waited = self.changed.wait_timeout_while(guard, limit, |failed| !*failed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
