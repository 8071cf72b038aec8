//! Who hears of phases on a rank.

use std::sync::Arc;

use super::Request;
use super::enclosing_lab::EnclosingLab;
use super::host_counters::HostCounters;
use super::phase_socket::PhaseReporter;
use crate::backend;
use crate::engine::{OnEnd, OnPhase};
use crate::output::Progress;

/// Whoever reads this node's counters; and on rank 0, whoever looks at the network around it, and the
/// process that started the ranks, if it wants to, else the user.
pub(super) fn observers(
    request: &Request,
    root: bool,
    lab: &Arc<EnclosingLab>,
    host_counters: &HostCounters,
) -> (OnPhase, OnEnd) {
    let (begins, ends) = (host_counters.clone(), host_counters.clone());
    if !root {
        return (Arc::new(move |phase, _| begins.begin(phase)), Arc::new(move || ends.end()));
    }
    let (before, after) = (Arc::clone(lab), Arc::clone(lab));
    if let Some(listener) = PhaseReporter::from_env().map(Arc::new) {
        let told = Arc::clone(&listener);
        let on_phase: OnPhase = Arc::new(move |phase, budget| {
            before.begin(phase);
            told.begins(phase, budget);
            begins.begin(phase);
        });
        let on_end = move || {
            ends.end();
            after.end();
            listener.ends();
        };
        return (on_phase, Arc::new(on_end));
    }
    let progress = Progress::new(request.shows_progress()).of_virtual_time(request.settings.machine.is_some());
    let on_phase: OnPhase = Arc::new(move |phase, budget| {
        before.begin(phase);
        // Where nothing is simulated nobody counts.
        backend::begin_phase(&phase.to_string());
        progress.phase(phase, budget);
        begins.begin(phase);
    });
    let on_end = move || {
        ends.end();
        after.end();
    };
    (on_phase, Arc::new(on_end))
}
