//! The load test in the emulated cluster, with the unshaped control.

use std::sync::{Arc, Mutex, PoisonError};

use tailback_tcp::launch;

use super::ranks::{exit_code, on_hosts, this_command};
use super::scratch::Scratch;
use super::simulated;
use crate::commands::Request;
use crate::commands::phases::{self, PhaseListener};
use crate::commands::ports::Recording;
use crate::commands::show::show;
use crate::lab::{Lab, LabSpec};
use crate::output::Progress;
use crate::plan::{Plan, Preset};
use crate::result::{self, Command, ControlRecord, LabRecord, PhaseCounters, ResultFile};

const SHAPED: &str = "shaped";
const UNSHAPED: &str = "unshaped";
/// Enough for an interval.
const CONTROL_PLACEMENTS: u32 = 3;
/// Of the time of a block.
const CONTROL_SHARE: f64 = 0.5;

/// Brings a lab up, runs the request with a rank on each host, brings it down.
pub(in crate::commands) fn run_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    if simulated::machine(&request.settings).is_some() {
        return Err("the emulated cluster has no simulated network: `tailback run --transport sim` needs no lab".into());
    }
    let plan = request.resolve(Preset::Lab)?;
    let text = |error: crate::lab::Error| error.to_string();
    let control = request.command == Command::Run && spec.shaped && request.control && !request.dry_run;
    request.say(&format!(
        "no launcher: an emulated cluster of {} hosts on {} leaf switches ({} links, {} KiB queues) on this machine, {} plan{}",
        spec.hosts,
        spec.leaves,
        spec.link_rate,
        spec.queue_bytes >> 10,
        plan.preset,
        if control { "; then the same with unshaped links, as a control" } else { "" }
    ));
    let lab = Lab::up(spec).map_err(text)?;
    let mut bench = LabBench { request, plan, lab: Arc::new(Mutex::new(lab)), scratch: Scratch::new()? };
    let outcome = bench.run(control);
    let LabBench { lab, .. } = bench;
    // The phase listener's thread has served its last request by now.
    let down = match Arc::try_unwrap(lab) {
        Ok(lab) => lab.into_inner().unwrap_or_else(PoisonError::into_inner).down().map_err(text),
        Err(_) => Err("the lab is still in use".to_owned()),
    };
    let code = outcome?;
    down.map(|()| code)
}

struct LabBench<'a> {
    request: &'a Request,
    plan: Plan,
    lab: Arc<Mutex<Lab>>,
    scratch: Scratch,
}

/// What one run of the ranks left.
enum Ran {
    Result(Box<ResultFile>, Vec<PhaseCounters>),
    /// No result: the ranks said why, or there was none to give.
    Code(u8),
}

impl LabBench<'_> {
    fn run(&mut self, control: bool) -> Result<u8, String> {
        let (mut file, phases) = match self.once(SHAPED)? {
            Ran::Result(file, phases) => (file, phases),
            Ran::Code(code) => return Ok(code),
        };
        let control = if control && !file.interrupted { self.control(&mut file)? } else { None };
        let lab = self.lab.lock().unwrap_or_else(PoisonError::into_inner);
        file.notes.extend(lab.notes().iter().cloned());
        file.lab = Some(LabRecord { control, ..LabRecord::of(&lab, phases) });
        drop(lab);
        Ok(show(self.request, &file))
    }

    fn control(&mut self, file: &mut ResultFile) -> Result<Option<ControlRecord>, String> {
        self.request.say("control: the same plan and placement with unshaped links");
        let text = |error: crate::lab::Error| error.to_string();
        self.lab.lock().unwrap_or_else(PoisonError::into_inner).set_shaping(false).map_err(text)?;
        let (unshaped, phases) = match self.once(UNSHAPED)? {
            Ran::Result(unshaped, phases) => (unshaped, phases),
            Ran::Code(_) => return Ok(None),
        };
        file.interrupted |= unshaped.interrupted;
        Ok(ControlRecord::of(&file.runs, unshaped.runs, phases))
    }

    /// Runs the ranks once, over links as they are.
    fn once(&self, name: &str) -> Result<Ran, String> {
        let mut command = this_command()?;
        command.extend(self.request.fixed(&self.plan));
        if name == UNSHAPED {
            // Fewer placements and shorter blocks tell where the time goes: without queues little varies.
            let placements = self.plan.placements.min(CONTROL_PLACEMENTS);
            // A schedule has so many iterations in a block and no more.
            let share = if self.plan.pace_s.is_some() { 1.0 } else { CONTROL_SHARE };
            let budget_ms = 1e3 * self.plan.budget_s * f64::from(placements) / f64::from(self.plan.placements) * share;
            command.extend(["--placements".into(), placements.to_string().into()]);
            command.extend(["--budget".into(), format!("{budget_ms}ms").into()]);
        }
        if name == UNSHAPED && !self.request.quiet() {
            // The user has read its notes before.
            command.push("--quiet".into());
        }
        let socket = self.scratch.path(&format!("{name}.phases"));
        let record = self.listen(&socket)?;
        let result = self.scratch.path(&format!("{name}.json"));

        let lab = self.lab.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = on_hosts(&lab, lab.hosts().iter(), command, &result);
        options.env.push((phases::VARIABLE.into(), socket.into_os_string()));
        drop(lab);

        let code = exit_code(launch::run(&options))?;
        let file = match result::read(&result) {
            Ok(file) if code == 0 || file.interrupted => file,
            _ => return Ok(Ran::Code(code)),
        };
        Ok(Ran::Result(Box::new(file), record.finish(&self.lab)?))
    }

    /// Shows phases and reads the lab's counters between them.
    fn listen(&self, socket: &std::path::Path) -> Result<Recorder, String> {
        let recorder = Recorder(Arc::new(Mutex::new(Recording::default())));
        let (recording, lab) = (Arc::clone(&recorder.0), Arc::downgrade(&self.lab));
        let progress = Progress::new(!self.request.quiet());
        PhaseListener::start(socket, move |name, budget| {
            progress.phase(name, budget);
            if let Some(lab) = lab.upgrade() {
                let read = || lab.lock().unwrap_or_else(PoisonError::into_inner).counters();
                recording.lock().unwrap_or_else(PoisonError::into_inner).begin(name, read);
            }
        })?;
        Ok(recorder)
    }
}

struct Recorder(Arc<Mutex<Recording>>);

impl Recorder {
    /// What happened until now.
    fn finish(self, lab: &Mutex<Lab>) -> Result<Vec<PhaseCounters>, String> {
        let read = || lab.lock().unwrap_or_else(PoisonError::into_inner).counters();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).phases(read)
    }
}
