//! Signals to the launcher, as bytes in sockets that poll can wait for.

use std::io::Read;
use std::os::unix::net::UnixStream;

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
        for number in [SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
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
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}
