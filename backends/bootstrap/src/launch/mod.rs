//! Starts a job's ranks on this host, passes their output and signals on, and ends them together.
//!
//! Invariants: no rank outlives the launcher (each holds a [`crate::LauncherPipe`]); no line of output is torn;
//! the secret goes by environment only. The launcher stays silent unless a failure was reported by no rank. Out of
//! scope: other hosts; use the system's own launcher and [`crate::JoinConfig::from_env`] there.

mod options;
mod output;
mod processes;
mod signals;

use tailback_transport::{Error, Result};

use self::processes::Processes;
use self::signals::Signals;

pub use self::options::{LaunchOptions, Output, RankSetup};
pub use self::signals::{heed_signals, is_ignored, is_interrupted};

/// Runs the job and gives its exit code: 0, the first failing rank's own, or 2 when a rank was killed. When the launcher
/// was told to end: the ranks' own code if they all ended in order, else 128 + signal.
pub fn run(options: &LaunchOptions) -> Result<i32> {
    let signals = Signals::install()?;
    if is_interrupted() {
        return Err(Error::Setup("interrupted before the ranks were started".into()));
    }
    let code = Processes::start(options)?.supervise(&signals, options.health_check.as_ref());
    signals.uninstall();
    code
}
