//! Progress on stderr: one line for the whole job on a terminal, nothing elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tailback_transport::Nanos;

use crate::engine::PhaseId;

/// The line of a job: what is measured, since when, and how long it will go on. It is drawn by a thread of its own, five times a
/// second.
pub struct Progress {
    enabled: bool,
    /// Budgets are no times that a user could wait for.
    is_virtual: bool,
    line: Mutex<Option<Line>>,
}

struct Line {
    bar: ProgressBar,
    since: Instant,
}

impl Progress {
    /// Progress that shows when it is `wanted` and stderr is a terminal.
    pub fn new(wanted: bool) -> Self {
        Progress { enabled: wanted && std::io::stderr().is_terminal(), is_virtual: false, line: Mutex::new(None) }
    }

    /// The same for phases that are simulated, if they are.
    #[must_use]
    pub fn of_virtual_time(self, is_virtual: bool) -> Self {
        Progress { is_virtual, ..self }
    }

    /// Shows a phase in place of the one before.
    pub fn phase(&self, phase: &PhaseId, budget: Nanos) {
        if !self.enabled {
            return;
        }
        let mut line = self.lock();
        let line = line.get_or_insert_with(Line::new);
        let left = match (self.is_virtual, phase.placement) {
            (false, Some(at)) => left(at, line.since.elapsed()),
            // Congestion without an end has a budget of a day.
            (false, None) => Some(Duration::from_nanos(budget.0)).filter(|of| of.as_secs() < 3600),
            (true, _) => None,
        };
        let left = left.map(|left| format!(", about {} s left", left.as_secs().max(1))).unwrap_or_default();
        line.bar.set_message(phase.to_string());
        line.bar.set_prefix(left);
    }

    /// Takes the line away.
    pub fn finish(&self) {
        if let Some(last) = self.lock().take() {
            last.bar.finish_and_clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed}{prefix}: {msg}")
            .expect("the template is constant")
            .tick_chars("|/-\\ ");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Line { bar, since: Instant::now() }
    }
}

/// How long a job goes on that is at this placement of so many after this time; unknown on the first.
fn left((at, of): (u32, u32), elapsed: Duration) -> Option<Duration> {
    (at > 1).then(|| elapsed * (of + 1).saturating_sub(at) / (at - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_that_are_left_take_as_long_as_those_before() {
        let seconds = |at: u32, elapsed: u64| left((at, 5), Duration::from_secs(elapsed)).map(|of| of.as_secs());
        assert_eq!([seconds(1, 3), seconds(2, 8), seconds(5, 32)], [None, Some(32), Some(8)]);
        assert_eq!(seconds(7, 60), Some(0), "more placements than were planned");
    }
}
