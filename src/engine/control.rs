//! How the outside follows and stops a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailback_transport::{Monitor, Nanos};

use super::application::SharedStarter;
use super::{Phase, PhaseId};
use crate::stats::Samples;

/// Hears of a phase and its budget when it begins.
pub type OnPhase = Arc<dyn Fn(&PhaseId, Nanos) + Send + Sync>;

/// Hears that a phase is over, when nobody measures any more.
pub type OnEnd = Arc<dyn Fn() + Send + Sync>;

/// How the outside follows and stops a run.
#[derive(Clone)]
pub struct Control {
    /// Where this rank is.
    pub monitor: Arc<Monitor>,
    /// Set by a signal handler when the user wants the job to end.
    pub interrupt: Arc<AtomicBool>,
    /// Called on every rank when a phase begins, with its budget.
    pub on_phase: OnPhase,
    /// Called on every rank when it is over, before what it measured is collected.
    pub on_end: OnEnd,
    /// What this run goes over, where the job has several: its phases say so.
    pub over: Option<String>,
    /// Which placement it is, from 1, and of how many, where there are several.
    pub placement: Option<(u32, u32)>,
    /// The shortest time for which load is looked at by itself.
    pub grain: Nanos,
    /// Starts the plan's application, where it has one.
    pub starter: Option<SharedStarter>,
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

    /// A phase that is measured begins.
    pub(super) fn enter(&self, phase: &PhaseId, budget: Nanos) {
        self.step(phase);
        (self.on_phase)(phase, budget);
    }

    /// A step of a phase begins, or one before or after all of them.
    pub(super) fn step(&self, phase: &PhaseId) {
        self.monitor.enter(&phase.to_string());
    }

    /// A phase of this run.
    pub(super) fn phase(&self, state: Option<Phase>, test: impl Into<String>) -> PhaseId {
        PhaseId { state, test: test.into(), over: self.over.clone(), placement: self.placement }
    }
}
