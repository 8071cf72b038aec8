//! Progress on stderr: a bar per phase on a terminal, nothing elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tailback_transport::Nanos;

use crate::engine::PhaseId;

/// The bar of the phase under way. It is drawn by a thread of its own, five times a second.
pub struct Progress {
    enabled: bool,
    /// Budgets are no times that a user could wait for.
    is_virtual: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress {
    /// Progress that shows when it is `wanted` and stderr is a terminal.
    pub fn new(wanted: bool) -> Self {
        Progress { enabled: wanted && std::io::stderr().is_terminal(), is_virtual: false, bar: Mutex::new(None) }
    }

    /// The same for phases that are simulated, if they are.
    #[must_use]
    pub fn of_virtual_time(self, is_virtual: bool) -> Self {
        Progress { is_virtual, ..self }
    }

    /// Shows a phase and its time budget in place of the one before.
    pub fn phase(&self, phase: &PhaseId, budget: Nanos) {
        if !self.enabled {
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed} of at most {prefix}")
            .expect("the template is constant");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.set_message(phase.to_string());
        bar.set_prefix(match self.is_virtual {
            true => format!("{:.2} ms of virtual time", 1e3 * budget.as_secs_f64()),
            false => format!("{:.1} s", budget.as_secs_f64()),
        });
        bar.enable_steady_tick(Duration::from_millis(200));
        if let Some(last) = self.lock().replace(bar) {
            last.finish_and_clear();
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(last) = self.lock().take() {
            last.finish_and_clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
