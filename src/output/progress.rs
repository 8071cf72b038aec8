//! Progress on stderr: a bar per phase on a terminal, nothing elsewhere.
//!
//! Ranks under Tailback's own launcher have no terminal: they tell the launcher, which draws the bar.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tailback_transport::Nanos;

/// The bar of the phase under way. It is drawn by a thread of its own, five times a second.
pub struct Progress {
    show: Show,
    bar: Mutex<Option<ProgressBar>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Nothing,
    Bar,
    TellLauncher,
}

impl Progress {
    /// Progress of rank 0 (`root`); a bar only when the user wants to see it.
    pub fn of_rank(root: bool, quiet: bool) -> Self {
        let told = std::env::var_os(tailback_tcp::bootstrap::variables::PHASES).is_some();
        let show = match (root, told) {
            (false, _) => Show::Nothing,
            (true, true) => Show::TellLauncher,
            (true, false) => Self::on_terminal(quiet),
        };
        Progress { show, bar: Mutex::new(None) }
    }

    /// Progress of a launcher.
    pub fn of_launcher(quiet: bool) -> Self {
        Progress { show: Self::on_terminal(quiet), bar: Mutex::new(None) }
    }

    fn on_terminal(quiet: bool) -> Show {
        if !quiet && std::io::stderr().is_terminal() { Show::Bar } else { Show::Nothing }
    }

    /// What a rank told with [`Show::TellLauncher`].
    pub fn told(&self, line: &str) {
        if let Some((budget, name)) = line.split_once(' ') {
            self.phase(name, Nanos(budget.parse().unwrap_or(0)));
        }
    }

    /// Shows a phase and its time budget in place of the one before.
    pub fn phase(&self, name: &str, budget: Nanos) {
        match self.show {
            Show::Nothing => return,
            Show::TellLauncher => {
                eprintln!("tailback: phase: {} {name}", budget.0);
                return;
            }
            Show::Bar => {}
        }
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed} of at most {prefix}")
            .expect("the template is constant");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.set_message(name.to_owned());
        bar.set_prefix(format!("{:.1} s", budget.as_secs_f64()));
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
