//! Where a rank is, for those who must say so when something goes wrong.
//!
//! The benchmark writes (phase, ticks); the bootstrap's watcher thread reads, tells the job, and names the rank that
//! made no progress. A tick is a relaxed atomic add and a store and may sit between timed iterations, never inside one.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The phase of a rank that has not entered any.
pub const START_UP: &str = "start-up";

/// A rank's current phase and a counter that moves while it makes progress.
#[derive(Debug, Default)]
pub struct Monitor {
    phase: Mutex<String>,
    ticks: AtomicU64,
    waiting: AtomicBool,
    wake: Mutex<Option<UnixStream>>,
}

impl Monitor {
    /// A monitor in phase [`START_UP`].
    #[must_use]
    pub fn new() -> Self {
        Monitor { phase: Mutex::new(START_UP.into()), ..Monitor::default() }
    }

    /// Enters a phase; entering counts as progress.
    pub fn enter(&self, phase: &str) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase.to_owned();
        self.tick();
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            // A byte that does not fit means that others wait there already.
            let _ = (&*wake).write(&[1]);
        }
    }

    /// From now on a byte is written to `wake`, which must not block, whenever a phase is entered: whoever reads it can
    /// tell others at once, before anything is measured.
    pub fn wake_on_enter(&self, wake: UnixStream) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    /// Says that progress was made.
    pub fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(false, Ordering::Relaxed);
    }

    /// Says that from now until the next tick this rank has nothing to do but wait for others, so that it is not the
    /// one to blame when nothing moves.
    pub fn wait(&self) {
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// Whether the rank waits for others.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The phase entered last.
    #[must_use]
    pub fn phase(&self) -> String {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often progress was made; only differences mean something.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}
