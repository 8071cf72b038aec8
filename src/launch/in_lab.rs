//! A request in the emulated cluster; the load test with its control.
//!
//! An iteration is never cut, so a budget can only be kept if iterations are shorter than a block. Over the lab's links that
//! is known before anything runs, and a plan that does not fit is refused.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tailback_bootstrap::launch;

use super::ranks::{exit_code, fits_hosts, grace, local_ranks, on_hosts, this_command, unmarked, with_options};
use super::simulated;
use crate::body::seconds;
use crate::job::{
    ControlSelection, Heard, PHASES_VARIABLE, RESULT_VARIABLE, Recording, Request, Scratch, listen, show,
};
use crate::lab::{BYPASS, Lab, LabSpec, Shaping};
use crate::output::{self, Progress};
use crate::plan::{Counts, Plan, Preset};
use crate::result::{self, Command, ControlKind, ControlRecord, LabRecord, PhaseCounters, ResultFile};

/// Enough for an interval.
const CONTROL_PLACEMENTS: u32 = 3;
/// Of the time of a block.
const CONTROL_SHARE: f64 = 0.5;
/// A plan has no less.
const LEAST_BUDGET_S: f64 = 0.05;

/// Brings a lab up, runs the request with a rank on each host, or as many as a study needs, and brings it down.
pub(crate) fn run_in_lab(request: &Request, spec: &LabSpec) -> Result<u8, String> {
    if simulated::machine(&request.settings).is_some() {
        return Err("the emulated cluster has no simulated network: `tailback run --transport sim` needs no lab".into());
    }
    fits_hosts(&request.settings)?;
    let plan = request.resolve(Preset::Lab)?;
    let points = plan.points().map_err(|error| error.to_string())?;
    let plans = if points.is_empty() { vec![&plan] } else { points.iter().map(|point| &point.plan).collect() };
    plans.into_iter().try_for_each(|plan| check_budget(request.command, plan, spec))?;
    let text = |error: crate::lab::Error| error.to_string();
    let control = control_kind(request)?.filter(|_| spec.shaped && !plan.congestors.is_empty());
    let links = format!("({} links, {} KiB queues) on this machine", spec.link_rate, spec.queue_bytes >> 10);
    let host_of_rank: Vec<usize> = if request.study.is_some() {
        let (ranks, per_node) = local_ranks(request, None)?;
        request.say(&format!(
            "no launcher: {ranks} ranks on an emulated cluster of {} hosts on one switch {links}",
            spec.hosts
        ));
        (0..ranks).map(|rank| rank / per_node).collect()
    } else {
        let then = match control {
            Some(ControlKind::Bypass) => "; then some of it with canaries that bypass the queues, as a control",
            Some(ControlKind::Unshaped) => "; then some of it with unshaped links, as a control",
            None => "",
        };
        request.say(&format!(
            "no launcher: an emulated cluster of {} hosts on {} leaf switches {links}, {} plan{then}",
            spec.hosts, spec.leaves, plan.preset
        ));
        (0..spec.hosts).collect()
    };
    let lab = Lab::up(spec).map_err(text)?;
    let mut bench = LabBench { request, plan, host_of_rank, lab: Arc::new(Mutex::new(lab)), scratch: Scratch::new()? };
    let outcome = bench.run(control);
    let LabBench { lab, .. } = bench;
    let down = when_unused(lab).down().map_err(text);
    let code = outcome?;
    down.map(|()| code)
}

/// The lab, once the phase listener's thread has read its counters for the last time: of ranks that were lost it may still
/// be at it.
fn when_unused(mut lab: Arc<Mutex<Lab>>) -> Lab {
    loop {
        lab = match Arc::try_unwrap(lab) {
            Ok(lab) => return lab.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(read) => read,
        };
        drop(lab.lock());
        thread::sleep(Duration::from_millis(1));
    }
}

/// The control this request is to have.
fn control_kind(request: &Request) -> Result<Option<ControlKind>, String> {
    let unmarked = unmarked(&request.settings);
    Ok(match (request.control, unmarked) {
        _ if !matches!(request.command, Command::Run | Command::App) => None,
        (ControlSelection::No, _) => None,
        // The packets of a program are not Tailback's to mark.
        (ControlSelection::Auto, _) if request.application().is_some() => Some(ControlKind::Unshaped),
        (ControlSelection::Bypass, _) if request.application().is_some() => {
            return Err("--control=bypass: the lab cannot mark packets of a program; choose unshaped".into());
        }
        (ControlSelection::Unshaped, _) | (ControlSelection::Auto, Some(_)) => Some(ControlKind::Unshaped),
        (ControlSelection::Auto | ControlSelection::Bypass, None) => Some(ControlKind::Bypass),
        (ControlSelection::Bypass, Some(backend)) => {
            return Err(format!("--control=bypass: the lab cannot mark packets of {backend}; choose unshaped"));
        }
    })
}

struct LabBench<'a> {
    request: &'a Request,
    plan: Plan,
    host_of_rank: Vec<usize>,
    lab: Arc<Mutex<Lab>>,
    scratch: Scratch,
}

/// Routes of the lab decide about congestion control, as its settings say: the machine's default is that of no connection.
fn leave_to_routes(file: &mut ResultFile) {
    let control = file.lab.as_mut().and_then(|of| of.control.as_mut());
    let again = control.into_iter().flat_map(|of| std::iter::once(&mut of.run).chain(&mut of.more_runs));
    for run in file.runs.iter_mut().chain(again) {
        let networks = std::iter::once(&mut run.transport).chain(&mut run.congestors_over);
        networks.for_each(|of| drop(of.details.remove("default_congestion_control")));
    }
}

/// What one run of the ranks left.
enum Ran {
    Result(Box<ResultFile>, Vec<PhaseCounters>),
    /// No result: the ranks said why, or there was none to give.
    Code(u8),
}

impl LabBench<'_> {
    fn run(&mut self, control: Option<ControlKind>) -> Result<u8, String> {
        let (mut file, phases) = match self.once(None)? {
            Ran::Result(file, phases) => (file, phases),
            Ran::Code(code) => {
                if let Some(kind) = control.filter(|_| self.request.dry_run && code == 0) {
                    output::print(&self.expected_control(kind))?;
                }
                return Ok(code);
            }
        };
        let (control, code) = match control.filter(|_| !file.interrupted) {
            Some(kind) => self.control(kind, &mut file)?,
            None => (None, 0),
        };
        let lab = self.lab.lock().unwrap_or_else(PoisonError::into_inner);
        file.notes.extend(lab.notes().iter().cloned());
        // Of a search, the ranks know which phases were of the run that was found.
        let known = file.lab.take().unwrap_or_else(|| LabRecord::of(&lab, phases));
        file.lab = Some(LabRecord { control, ..known });
        leave_to_routes(&mut file);
        if self.request.resume.is_some() {
            file.notes.push("counters of the lab's ports are of the runs since --resume only".into());
        }
        drop(lab);
        // The run stands, and is shown; but not all was done that was asked for.
        Ok(show(self.request, &file).max(code))
    }

    /// Measures some of the placements again; with the exit code. What keeps it from that is noted: the result of the run
    /// stands.
    fn control(&mut self, mut kind: ControlKind, file: &mut ResultFile) -> Result<(Option<ControlRecord>, u8), String> {
        let shape = |to: Shaping| self.lab.lock().unwrap_or_else(PoisonError::into_inner).set_shaping(to);
        let mut note = |text: String| {
            self.request.say(&text);
            file.notes.push(text);
        };
        if kind == ControlKind::Bypass
            && let Err(error) = shape(Shaping::Bypass)
        {
            note(format!("no bypass control on this machine ({error}): unshaped links instead"));
            kind = ControlKind::Unshaped;
        }
        if kind == ControlKind::Unshaped {
            shape(Shaping::Off).map_err(|error| error.to_string())?;
        }
        self.request.say(match kind {
            ControlKind::Bypass => "control: placements again, with canaries whose packets bypass the queues",
            ControlKind::Unshaped => "control: placements again, with unshaped links",
        });
        match self.once(Some((kind, file.seed)))? {
            Ran::Result(again, phases) => {
                if again.interrupted {
                    file.interrupted = true;
                    let why = again.notes.iter().filter(|note| !file.notes.contains(note));
                    let why: Vec<String> = why.map(|note| format!("in the control: {note}")).collect();
                    file.notes.extend(why);
                }
                Ok((ControlRecord::of(kind, &file.runs, again.runs, phases), 0))
            }
            Ran::Code(code) => {
                note(format!("the control ended with exit code {code}: what the impact comes from is not known"));
                Ok((None, code))
            }
        }
    }

    /// The plan of a control. Fewer placements and shorter blocks tell where the time goes: without queues little varies.
    fn control_plan(&self) -> Plan {
        let plan = &self.plan;
        let placements = plan.placements.min(CONTROL_PLACEMENTS);
        // At a pace of the user's a block has so many iterations and no more.
        let share = if plan.pace_s.is_some() { 1.0 } else { CONTROL_SHARE };
        let budget_s = plan.budget_s * f64::from(placements) / f64::from(plan.placements) * share;
        Plan { placements, budget_s: budget_s.max(LEAST_BUDGET_S), ..plan.clone() }
    }

    /// What a dry run says of it.
    fn expected_control(&self, kind: ControlKind) -> String {
        let more_s = seconds(self.request.command, &self.control_plan(), 0.0);
        let how = match kind {
            ControlKind::Bypass => "canaries that bypass the queues",
            ControlKind::Unshaped => "unshaped links",
        };
        format!("Then a control with {how}: at most {more_s:.0} s more (--no-control leaves it out)\n")
    }

    /// What ranks are told beyond the user's own words in a control.
    fn control_words(&self, kind: ControlKind, seed: u64) -> Vec<OsString> {
        let plan = &self.plan;
        let Plan { placements, budget_s, .. } = self.control_plan();
        // The placements of the run: its seed may have been drawn, or another result's.
        let mut words = vec!["--seed".into(), seed.to_string().into()];
        words.extend(["--placements".into(), placements.to_string().into()]);
        words.extend(["--budget".into(), format!("{}ms", 1e3 * budget_s).into()]);
        if let Some(precision) = plan.precision {
            // As precise as it is, it is no more.
            words.extend(["--precision".into(), precision.to_string().into(), "--longest".into(), "1ms".into()]);
        }
        if kind == ControlKind::Bypass {
            words.extend(["--canary-class".into(), BYPASS.to_string().into()]);
        }
        if !self.request.output.quiet {
            // The user has read its notes before.
            words.push("--quiet".into());
        }
        words
    }

    /// Runs the ranks once, over links as they are: the run itself, or a control on placements of its seed.
    fn once(&self, control: Option<(ControlKind, u64)>) -> Result<Ran, String> {
        let control_words = control.map(|(kind, seed)| self.control_words(kind, seed)).unwrap_or_default();
        let command = with_options(this_command()?, self.request.fixed(&self.plan).into_iter().chain(control_words));
        let name = control.map_or("run", |(kind, _)| kind.word());
        let socket = self.scratch.path(&format!("{name}.phases"));
        let record = self.listen(&socket)?;
        let result = self.scratch.path(&format!("{name}.json"));

        let lab = self.lab.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = on_hosts(&lab, self.host_of_rank.iter().map(|&host| &lab.hosts()[host]), command);
        options.grace = grace(self.request);
        options.env.push((PHASES_VARIABLE.into(), socket.into_os_string()));
        options.env.push((RESULT_VARIABLE.into(), result.clone().into_os_string()));
        drop(lab);

        let code = exit_code(launch::run(&options))?;
        let mut file = match result::read(&result) {
            Ok(file) if code == 0 || file.interrupted => file,
            _ => return Ok(Ran::Code(code)),
        };
        // A lab that was lost has no counters any more; what was measured before stands.
        let read = || self.lab.lock().unwrap_or_else(PoisonError::into_inner).counters();
        let phases = record.lock().unwrap_or_else(PoisonError::into_inner).phases(read).unwrap_or_else(|problem| {
            file.notes.push(format!("the counters of the lab's ports could not be read: {problem}"));
            Vec::new()
        });
        Ok(Ran::Result(Box::new(file), phases))
    }

    /// Shows phases and reads the lab's counters between them.
    fn listen(&self, socket: &Path) -> Result<Arc<Mutex<Recording>>, String> {
        let kept = Arc::new(Mutex::new(Recording::default()));
        let (recording, lab) = (Arc::clone(&kept), Arc::downgrade(&self.lab));
        let progress = Progress::new(self.request.shows_progress());
        let by_ranks = self.request.calibration.is_some();
        listen(socket, move |heard| {
            if let Heard::Begins(phase, budget) = &heard {
                progress.phase(phase, *budget);
            }
            let Some(lab) = lab.upgrade().filter(|_| !by_ranks) else { return };
            let read = || lab.lock().unwrap_or_else(PoisonError::into_inner).counters();
            let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
            match heard {
                Heard::Begins(phase, _) => recording.begin(&phase, read),
                Heard::Ends => recording.end(read),
            }
        })?;
        Ok(kept)
    }
}

/// A test that takes this many times what it was given says so itself, and is still what was asked for.
const GROSS: f64 = 4.0;

/// Refuses a plan whose budget cannot be kept even nearly, with the time it would need.
fn check_budget(command: Command, plan: &Plan, spec: &LabSpec) -> Result<(), String> {
    if !spec.shaped || command == Command::Congest {
        return Ok(());
    }
    let canaries = plan.canaries.iter().map(|test| (test.kernel.info().key, &test.counts));
    let congestors = plan.congestors.iter().map(|test| (test.kernel.info().key, &test.counts));
    let tests = canaries.chain(congestors.filter(|_| {
        matches!(command, Command::Run | Command::Tune | Command::Sweep | Command::Burst | Command::Calibrate)
    }));
    let least_s = |counts: &Counts| spec.link_rate.seconds((counts.bytes * counts.window.max(1)) as u64);
    let longest = tests.max_by(|(_, one), (_, other)| least_s(one).total_cmp(&least_s(other)));
    let Some((key, counts)) = longest.filter(|(_, counts)| least_s(counts) > GROSS * plan.block_s()) else {
        return Ok(());
    };
    let (needed_s, block_s) = (least_s(counts), plan.block_s());
    let budget_s = (needed_s * f64::from(plan.placements) * f64::from(plan.blocks)).ceil();
    let fits = (counts.bytes as f64 * block_s / needed_s) as usize;
    let smaller = if fits > 0 { format!(", or messages of at most --set {key}.bytes={fits}") } else { String::new() };
    Err(format!(
        "one iteration of {key} moves {} x {} B, which takes {needed_s:.3} s at {}, and has blocks of {block_s:.3} s: it needs \
         a --budget of at least {budget_s:.0}s{smaller}",
        counts.window.max(1),
        counts.bytes,
        spec.link_rate
    ))
}

#[cfg(test)]
mod tests {
    use crate::plan::Preset;
    use crate::units::Rate;

    use super::*;

    #[test]
    fn what_cannot_be_kept_is_refused_with_the_time_it_needs() {
        let plan = Plan { budget_s: 0.5, ..Preset::Lab.plan() };
        let spec = LabSpec::default();
        assert_eq!(check_budget(Command::Run, &plan, &spec), Ok(()));
        assert_eq!(check_budget(Command::Run, &Plan { budget_s: 0.3, ..plan.clone() }, &spec), Ok(()));
        let slow = LabSpec { link_rate: Rate::bits_per_second(1_000_000), ..spec };
        let refusal = check_budget(Command::Run, &plan, &slow).unwrap_err();
        assert!(refusal.contains("--budget of at least") && refusal.contains(".bytes="), "{refusal}");
        assert_eq!(check_budget(Command::Run, &plan, &LabSpec { shaped: false, ..slow.clone() }), Ok(()));
        let patient = Plan { budget_s: 3600.0, ..plan };
        assert_eq!(check_budget(Command::Run, &patient, &slow), Ok(()));
    }
}
