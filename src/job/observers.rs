//! Who hears of phases: on every rank whoever reads its node's counters; on rank 0 also whoever looks at the network around
//! it, and the process that started the ranks, if it wants to, else the user.
//!
//! Rank 0 tells that process by a line over a local socket, answered before the phase begins, and before what it measured is
//! collected. What the listener does in between (reading counters, drawing a bar) therefore never overlaps a measurement.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tailback_host::Activity;
use tailback_transport::Nanos;

use super::host_counters::HostCounters;
use super::port_counters::EnclosingLab;
use super::prepare::Session;
use crate::backend;
use crate::engine::{PhaseId, PhaseObserver};
use crate::output::Progress;
use crate::result::HostActivity;

/// All of them on one rank.
pub(crate) struct Observers {
    host_counters: HostCounters,
    /// What the machine does, where it is looked at.
    machine: Option<Mutex<MachineWatch>>,
    lab: Arc<EnclosingLab>,
    /// Rank 0's.
    reporter: Option<PhaseReporter>,
    progress: Option<Progress>,
}

impl Observers {
    pub(crate) fn of(session: &Session<'_>, lab: &Arc<EnclosingLab>) -> Arc<Self> {
        let (request, host_counters) = (session.request, session.host_counters.clone());
        let reporter = if session.root { PhaseReporter::from_env() } else { None };
        let progress = (session.root && reporter.is_none())
            .then(|| Progress::new(request.shows_progress()).of_virtual_time(request.settings.machine.is_some()));
        let real = request.settings.machine.is_none() && !request.counters.no_counters;
        let machine = real.then(Mutex::default);
        Arc::new(Observers { host_counters, machine, lab: Arc::clone(lab), reporter, progress })
    }

    /// What this rank saw of the machine since this was last asked; nothing where nobody looks.
    pub(crate) fn activity(&self) -> Option<Vec<HostActivity>> {
        let machine = self.machine.as_ref()?;
        Some(std::mem::take(&mut machine.lock().unwrap_or_else(PoisonError::into_inner).seen))
    }
}

/// What a rank sees of the machine, phase by phase.
#[derive(Default)]
struct MachineWatch {
    /// The phase that is measured, and what was seen before it.
    begun: Option<(PhaseId, Activity)>,
    seen: Vec<HostActivity>,
}

impl PhaseObserver for Observers {
    fn begins(&self, phase: &PhaseId, budget: Nanos) {
        self.lab.begin(phase);
        if let Some(reporter) = &self.reporter {
            reporter.begins(phase, budget);
        }
        if let Some(progress) = &self.progress {
            // Where nothing is simulated nobody counts.
            backend::simulator::begin_phase(&phase.key());
            progress.phase(phase, budget);
        }
        self.host_counters.begin(phase);
        if let Some(machine) = &self.machine {
            let mut machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
            machine.begun = Some((phase.clone(), Activity::now()));
        }
    }

    fn ends(&self) {
        if let Some(machine) = &self.machine {
            let mut machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((phase, before)) = machine.begun.take() {
                machine.seen.push(HostActivity::of(phase, Activity::now().since(&before)));
            }
        }
        self.host_counters.end();
        self.lab.end();
        if let Some(reporter) = &self.reporter {
            reporter.ends();
        }
    }
}

/// Where the listener listens.
pub(crate) const PHASES_VARIABLE: &str = "TAILBACK_PHASES";
/// A listener that does not answer must not hold up the job.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says that a phase is over.
const OVER: &str = "over";

/// What the listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A phase with this budget begins.
    Begins(PhaseId, Nanos),
    /// It is over.
    Ends,
}

/// Rank 0's side.
struct PhaseReporter(Mutex<UnixStream>);

impl PhaseReporter {
    /// A connection to whoever started this rank, if it wants to hear.
    fn from_env() -> Option<Self> {
        let stream = UnixStream::connect(std::env::var_os(PHASES_VARIABLE)?).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(PhaseReporter(Mutex::new(stream)))
    }

    /// Tells that a phase begins, and waits for the answer.
    fn begins(&self, phase: &PhaseId, budget: Nanos) {
        self.tell(&format!("{} {}", budget.0, phase.key()));
    }

    /// Tells that it is over, and waits for the answer.
    fn ends(&self) {
        self.tell(OVER);
    }

    /// A listener that is gone is not missed: its end ends the ranks anyway.
    fn tell(&self, line: &str) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if writeln!(stream, "{line}").is_ok() {
            let _ = stream.read(&mut [0]);
        }
    }
}

/// Listens at `path`, on a thread that ends with the process.
pub(crate) fn listen(path: &Path, mut heard: impl FnMut(Heard) + Send + 'static) -> Result<(), String> {
    let listener = UnixListener::bind(path).map_err(|error| format!("cannot listen at {}: {error}", path.display()))?;
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            serve(&stream, &mut heard);
        }
    });
    Ok(())
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
        listen(&path, move |heard| {
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
