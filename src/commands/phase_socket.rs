//! How rank 0 tells the process that started it about phases: a line over a local socket, answered before the phase
//! begins, and before what it measured is collected. What the listener does in between (reading counters, drawing a bar)
//! therefore never overlaps a measurement.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tailback_transport::Nanos;

use crate::engine::PhaseId;

/// Where the listener listens.
pub(super) const VARIABLE: &str = "TAILBACK_PHASES";
/// A listener that does not answer must not hold up the job.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says that a phase is over.
const OVER: &str = "over";

/// What the listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A phase with this budget begins.
    Begins(PhaseId, Nanos),
    /// It is over.
    Ends,
}

/// Rank 0's side.
pub struct PhaseReporter(Mutex<UnixStream>);

impl PhaseReporter {
    /// A connection to whoever started this rank, if it wants to hear.
    pub fn from_env() -> Option<Self> {
        let stream = UnixStream::connect(std::env::var_os(VARIABLE)?).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(PhaseReporter(Mutex::new(stream)))
    }

    /// Tells that a phase begins, and waits for the answer.
    pub fn begins(&self, phase: &PhaseId, budget: Nanos) {
        self.tell(&format!("{} {phase}", budget.0));
    }

    /// Tells that it is over, and waits for the answer.
    pub fn ends(&self) {
        self.tell(OVER);
    }

    /// A listener that is gone is not missed: its end ends the ranks anyway.
    fn tell(&self, line: &str) {
        let mut stream = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if writeln!(stream, "{line}").is_ok() {
            let _ = stream.read(&mut [0]);
        }
    }
}

/// The listening side. Its thread ends with the process.
pub(super) struct PhaseListener;

impl PhaseListener {
    pub(super) fn start(path: &Path, mut heard: impl FnMut(Heard) + Send + 'static) -> Result<Self, String> {
        let listener =
            UnixListener::bind(path).map_err(|error| format!("cannot listen at {}: {error}", path.display()))?;
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                serve(&stream, &mut heard);
            }
        });
        Ok(PhaseListener)
    }
}

fn serve(stream: &UnixStream, heard: &mut (dyn FnMut(Heard) + Send)) {
    let mut answer = stream;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if let Some((budget, phase)) = line.split_once(' ') {
            heard(Heard::Begins(phase.into(), Nanos(budget.parse().unwrap_or(0))));
        } else if line == OVER {
            heard(Heard::Ends);
        }
        if answer.write_all(b"\n").is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_phase_is_heard_before_it_begins_and_when_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("phases");
        let (sender, heard) = mpsc::channel();
        PhaseListener::start(&path, move |heard| {
            std::thread::sleep(Duration::from_millis(50));
            sender.send(format!("{heard:?}")).unwrap();
        })
        .unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        let reporter = PhaseReporter(Mutex::new(stream));
        reporter.begins(&"isolated lat".into(), Nanos(7));
        assert_eq!(heard.try_recv().unwrap(), format!("{:?}", Heard::Begins("isolated lat".into(), Nanos(7))));
        reporter.ends();
        assert_eq!(heard.try_recv().unwrap(), "Ends");
    }
}
