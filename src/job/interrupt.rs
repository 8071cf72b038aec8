//! Ctrl-C, SIGTERM and a terminal that hangs up as a request: the ranks finish what they measure and end in order.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tailback_bootstrap::launch::is_ignored;

/// Raised by the first Ctrl-C, SIGTERM or SIGHUP; a second Ctrl-C ends the process at once. Batch systems send SIGTERM more than
/// once when a job's time is over, to tasks and through their launcher, and leave time before SIGKILL: repeated ones change
/// nothing. Signals belong to the process, so the flag does too. Ranks call this before they join by our own bootstrap, which ends a rank that still waits for others, and
/// as soon as MPI has started: from then on no signal makes the others take them for dead.
pub fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        // A rank that was started to outlive its terminal does.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        // Without a handler the signal ends the process, which is what a second one should do anyway.
        let _ = signal_hook::flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&flag));
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    }))
}
