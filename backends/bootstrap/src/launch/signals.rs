//! Signals to the launcher, as bytes in sockets that poll can wait for.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::process::Signal;
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tailback_transport::{Error, Result};

#[derive(Debug)]
struct Source {
    signal: Signal,
    id: SigId,
    arrivals: UnixStream,
}

/// Signals that ask a process to end.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From here on a signal does not end this process but is remembered, so that what it prepares before [`super::run`] can
/// be undone in order. A hang-up that it was started to ignore stays ignored.
pub fn heed_signals() {
    INTERRUPTED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for number in ENDING.into_iter().filter(|number| *number != SIGHUP || !is_ignored(SIGHUP)) {
            // Without a handler the signal ends the process, as it would have without this call.
            let _ = signal_hook::flag::register(number, Arc::clone(&flag));
        }
        flag
    });
}

/// Whether a signal came since [`heed_signals`].
#[must_use]
pub fn is_interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The signals that the launcher passes on, and the end of children.
#[derive(Debug)]
pub(super) struct Signals {
    sources: Vec<Source>,
}

impl Signals {
    /// From here on the signals no longer end the launcher. A hang-up that it was
    /// started to ignore (nohup) stays ignored.
    pub(super) fn install() -> Result<Self> {
        let mut sources = Vec::new();
        for number in [SIGCHLD].into_iter().chain(ENDING) {
            if number == SIGHUP && is_ignored(number) {
                continue;
            }
            let bad = |e: std::io::Error| Error::Setup(format!("signal {number} cannot be handled: {e}"));
            let (arrivals, sender) = UnixStream::pair().map_err(bad)?;
            arrivals.set_nonblocking(true).map_err(bad)?;
            let id = signal_hook::low_level::pipe::register(number, sender).map_err(bad)?;
            let signal = Signal::from_named_raw(number).expect("a signal with a name");
            sources.push(Source { signal, id, arrivals });
        }
        Ok(Signals { sources })
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &UnixStream> {
        self.sources.iter().map(|s| &s.arrivals)
    }

    /// The signals that arrived since the last call, other than the end of children, each once.
    pub(super) fn arrived(&self) -> Vec<Signal> {
        let mut arrived = Vec::new();
        for source in &self.sources {
            let mut bytes = [0; 64];
            if matches!((&source.arrivals).read(&mut bytes), Ok(1..)) && source.signal != Signal::CHILD {
                arrived.push(source.signal);
            }
        }
        arrived
    }

    pub(super) fn uninstall(self) {
        for source in self.sources {
            signal_hook::low_level::unregister(source.id);
        }
    }
}

/// Whether this process was started to ignore a signal.
#[must_use]
pub fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}
