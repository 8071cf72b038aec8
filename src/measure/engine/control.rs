//! How the outside follows and stops a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailback_transport::{Monitor, Nanos};

use super::{LoadState, PhaseId};
use crate::stats::Samples;

/// Hears of phases, on every rank.
pub trait PhaseObserver: Send + Sync {
    /// A phase with this budget begins; nothing is measured yet.
    fn begins(&self, phase: &PhaseId, budget: Nanos);

    /// It is over, and nobody measures any more; what it measured is not yet collected.
    fn ends(&self);
}

/// What became of one repetition.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// It ended well.
    Well {
        /// What it is measured by.
        figure: f64,
        /// How long it took.
        wall: Nanos,
    },
    /// The user wanted the job to end.
    Interrupted,
    /// It gave no figure: the reason in a line, then what it wrote last.
    Badly(String),
}

/// Starts an application once and waits for its end. `goes_on` is to be called now and then; once it says no, the
/// application is ended.
pub trait Starter: Send + Sync {
    /// One repetition.
    fn once(&self, goes_on: &mut dyn FnMut() -> bool) -> Ended;
}

/// How the outside follows and stops a run.
#[derive(Clone)]
pub struct Control {
    /// Where this rank is.
    pub monitor: Arc<Monitor>,
    /// Set by a signal handler when the user wants the job to end.
    pub interrupt: Arc<AtomicBool>,
    /// Hears of every phase.
    pub observer: Arc<dyn PhaseObserver>,
    /// What this run goes over, where the job has several: its phases say so.
    pub over: Option<String>,
    /// Which placement it is, from 1, and of how many, where there are several.
    pub placement: Option<(u32, u32)>,
    /// The shortest time for which load is looked at by itself.
    pub grain: Nanos,
    /// How long a load test in blocks is to take, once its ranks are connected, where that was said.
    pub length: Option<Nanos>,
    /// Starts the plan's application, where it has one.
    pub starter: Option<Arc<dyn Starter>>,
}

/// [`Control::grain`] in real time: whatever is shorter tells more of the scheduler than of the load.
pub const REAL_GRAIN: Nanos = Nanos(20_000_000);
/// The same on virtual time, where nothing but the network takes any.
pub const VIRTUAL_GRAIN: Nanos = Nanos(1_000);

impl Control {
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Where samples go: in real time, into memory that is all there, so that none has to wait for it.
    pub(super) fn samples(&self, batches: usize) -> Samples {
        if self.grain < REAL_GRAIN { Samples::growing(batches) } else { Samples::new() }
    }

    /// The same for one of many parts of a test.
    pub(super) fn samples_of_part(&self) -> Samples {
        if self.grain < REAL_GRAIN { Samples::growing(1) } else { Samples::single() }
    }

    /// A phase that is measured begins.
    pub(super) fn enter(&self, phase: &PhaseId, budget: Nanos) {
        self.step(phase);
        self.observer.begins(phase, budget);
    }

    /// A step of a phase begins, or one before or after all of them.
    pub(super) fn step(&self, phase: &PhaseId) {
        self.monitor.enter(&phase.to_string());
    }

    /// A phase of this run.
    pub(super) fn phase(&self, state: Option<LoadState>, test: impl Into<String>) -> PhaseId {
        PhaseId { state, test: test.into(), over: self.over.clone(), placement: self.placement }
    }
}
