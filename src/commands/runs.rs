//! The runs of a job: the same plan, seed and placement over one network after the other, into one result.
//!
//! Every network was opened once before the first run, so what cannot be run is known by then. Should a later run fail
//! all the same, the runs before it are kept: rank 0 writes the result file after each of them.

use std::sync::Arc;
use std::time::Instant;

use tailback_transport::{Bootstrap, Description, Error, Monitor, Nanos, Result, Transport};

use super::phases::PhaseReporter;
use super::prepare::Session;
use super::request::Decision;
use super::show::{handed_over, show};
use super::{Request, interrupt};
use crate::backend::{Networks, Variant, Visitor, give_up};
use crate::engine::{self, Control, Job, Measured, OnPhase};
use crate::output::Progress;
use crate::result::{self, Build, Command, HostFacts, ResultFile, Run, RunBuilder, System};

/// The runs so far.
pub(super) struct Runs<'a> {
    session: &'a Session,
    request: &'a Request,
    monitor: &'a Arc<Monitor>,
    on_phase: OnPhase,
    root: bool,
    started: String,
    clock: Instant,
    notes: Vec<String>,
    done: Vec<Run>,
    interrupted: bool,
}

impl<'a> Runs<'a> {
    pub(super) fn new(session: &'a Session, request: &'a Request, monitor: &'a Arc<Monitor>, root: bool) -> Self {
        Runs {
            session,
            request,
            monitor,
            on_phase: phase_observer(request, root),
            root,
            started: result::now_rfc3339(),
            clock: Instant::now(),
            notes: Vec::new(),
            done: Vec::new(),
            interrupted: false,
        }
    }

    /// Makes all of them, shows what they gave, and gives the exit code.
    pub(super) fn make<N: Networks>(mut self, networks: &mut N) -> u8 {
        let variants = networks.variants().to_vec();
        let system = self.root.then(|| self.system(networks.bootstrap()));
        if self.root {
            self.request.say(&format!("seed {}", self.session.decision.seed));
        }
        self.session.layout.notes.iter().for_each(|note| self.note(note.clone()));
        for (at, &variant) in variants.iter().enumerate() {
            let over = (variants.len() > 1).then(|| variant.label());
            if let Some(over) = over.as_ref().filter(|_| self.root) {
                self.request.say(&format!("run {} of {}: over {over}", at + 1, variants.len()));
            }
            let outcome = networks.open(variant, self.measure(over)).and_then(|measured| measured);
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => self.fail(networks.bootstrap(), system, &variants[at..], &error),
            };
            self.interrupted = outcome.interrupted;
            if let Some(system) = &system {
                self.add(variant, outcome);
                if at + 1 < variants.len() && !self.interrupted {
                    self.keep(system, &variants[at + 1..]);
                }
            }
            if self.interrupted {
                break;
            }
        }
        system.map_or(0, |system| show(self.request, &self.file(system)))
    }

    fn measure(&self, over: Option<String>) -> Measure<'a> {
        let (monitor, interrupt) = (Arc::clone(self.monitor), interrupt::flag());
        let control = Control { monitor, interrupt, on_phase: Arc::clone(&self.on_phase), over };
        Measure { session: self.session, control }
    }

    /// Tells the user something once, now and in the file.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            if self.root {
                self.request.say(&note);
            }
            self.notes.push(note);
        }
    }

    fn add(&mut self, variant: Variant, Outcome { description, phases, .. }: Outcome) {
        if let Some(wait) = description.details.get("wait") {
            self.note(format!("ranks wait for the network by: {wait}"));
        }
        let Decision { plan, seed, .. } = &self.session.decision;
        let mut builder = RunBuilder::new(plan, *seed, description, variant.eager_threshold());
        let complete = !phases.is_empty();
        for phase in phases {
            // Resampling takes its time, while the others wait for this rank.
            self.monitor.tick();
            builder.add(phase);
        }
        // A later run that was interrupted before its first phase was complete has nothing to show.
        if complete || self.done.is_empty() {
            self.done.push(builder.finish());
        }
    }

    /// Keeps the runs so far, in case a later one fails.
    fn keep(&self, system: &System, missing: &[Variant]) {
        let path = handed_over().or_else(|| self.request.output.out.clone());
        let Some(path) = path else { return };
        // The complete result is written to the same place, and a problem with it is then the user's to know.
        let _ = result::write_draft(&path, &self.file_without(system.clone(), missing));
    }

    /// Ends the job because of an error on this rank; on rank 0, after it has shown what there is.
    fn fail<B: Bootstrap>(&self, bootstrap: &B, system: Option<System>, missing: &[Variant], error: &Error) -> ! {
        if let Some(system) = system.filter(|_| !self.done.is_empty()) {
            show(self.request, &self.file_without(system, missing));
        }
        give_up(bootstrap, error)
    }

    fn file_without(&self, system: System, missing: &[Variant]) -> ResultFile {
        let missing: Vec<String> = missing.iter().map(|variant| variant.label()).collect();
        let mut file = self.file(system);
        file.interrupted = true;
        file.notes.push(format!("the job ended before these runs were complete: {}", missing.join("; ")));
        file
    }

    fn file(&self, system: System) -> ResultFile {
        let Decision { command, plan, seed, .. } = &self.session.decision;
        ResultFile {
            schema_version: result::SCHEMA_VERSION,
            build: Build::this(),
            command: *command,
            started: self.started.clone(),
            duration_s: self.clock.elapsed().as_secs_f64(),
            seed: *seed,
            plan: plan.clone(),
            system,
            runs: self.done.clone(),
            lab: None,
            models: None,
            notes: self.notes.clone(),
            interrupted: self.interrupted,
            imported: None,
        }
    }

    fn system<B: Bootstrap>(&self, bootstrap: &B) -> System {
        System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: result::placement(&self.session.layout, &self.session.decision.plan),
            host: HostFacts::this(),
            environment: result::environment(),
        }
    }
}

/// The plan over one network.
struct Measure<'a> {
    session: &'a Session,
    control: Control,
}

/// What a run left.
struct Outcome {
    description: Description,
    /// On rank 0, its complete phases.
    phases: Vec<Measured>,
    /// Whether the user cut it short; the same on every rank.
    interrupted: bool,
}

impl Visitor for Measure<'_> {
    type Output = Result<Outcome>;

    fn visit<B: Bootstrap, T: Transport>(self, bootstrap: &mut B, transport: &mut T) -> Result<Outcome> {
        let description = transport.describe();
        let Decision { command, plan, seed, duration_s, .. } = &self.session.decision;
        let mut job = Job::new(bootstrap, transport, plan, &self.session.layout, *seed, self.control)?;
        let (phases, interrupted) = match command {
            Command::Run => engine::load_test(&mut job)?,
            Command::Network => engine::network_test(&mut job)?,
            Command::Congest => engine::congest(&mut job, Nanos((duration_s * 1e9) as u64))?,
            study => return Err(Error::Setup(format!("{study:?} is a study and has no plan"))),
        };
        job.finish()?;
        Ok(Outcome { description, phases, interrupted })
    }
}

/// Who hears of phases: on rank 0 the process that started the ranks, if it wants to, else the user.
fn phase_observer(request: &Request, root: bool) -> OnPhase {
    if !root {
        return Arc::new(|_, _| {});
    }
    if let Some(listener) = PhaseReporter::from_env() {
        return Arc::new(move |name, budget| listener.tell(name, budget));
    }
    let progress = Progress::new(!request.quiet());
    Arc::new(move |name, budget| progress.phase(name, budget))
}
