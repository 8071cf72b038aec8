//! What the runs of a job have found so far, and the result file that it makes: whole, or a draft should the job fail.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailback_transport::{Bootstrap, Bytes, Description};

use super::port_counters::EnclosingLab;
use super::prepare::Session;
use super::request::Decision;
use super::show::handed_over;
use crate::analysis::sweep;
use crate::analysis::tuning::rank;
use crate::assemble::{self, RunBuilder};
use crate::backend::{self, Network, Simulated, Variant};
use crate::engine::{LoadState, Measured};
use crate::layout::Layout;
use crate::plan::Swept;
use crate::result::{
    self, Build, Command, CountersRecord, Headline, HostActivity, HostFacts, KnownBy, MachineRecord, MemoryRecord,
    ModelResults, Node, NodePorts, ResultFile, Run, System, Test, TransportFacts, TuningRecord, WatchRecord, distinct,
};

/// The most that is measured in vain when a job does not come to its end, but for the phase it was in.
const DRAFTS_APART: Duration = Duration::from_secs(3);

/// One run among those that take turns on every placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunConfig {
    /// What it goes over.
    pub(crate) variant: Variant,
    /// Which of the session's loads it is beside.
    pub(crate) mix: usize,
    /// Which of the settings is in force, where several take turns.
    pub(crate) setting: usize,
}

/// What a run left on a placement.
pub(crate) struct RunOutcome {
    /// Of the canaries' network, and of the congestors'.
    pub description: Description,
    pub congestors: Description,
    /// On rank 0, its complete phases.
    pub phases: Vec<Measured>,
    /// Whether the user cut it short, or the application did; the same on every rank.
    pub interrupted: bool,
    /// On rank 0, why the application did.
    pub trouble: Option<String>,
}

/// What was found; but for notes and interrupts, on rank 0 only.
pub(crate) struct ResultAssembler<'a> {
    session: &'a Session<'a>,
    lab: Arc<EnclosingLab>,
    started: String,
    clock: Instant,
    pub(crate) notes: Vec<String>,
    /// The runs that take turns; on every rank.
    pub(crate) configs: Vec<RunConfig>,
    /// One for each run that has measured anything, in their order.
    builders: Vec<(RunConfig, RunBuilder<'a>)>,
    /// What a study found, over each network that it was complete on.
    studied: Vec<(TransportFacts, ModelResults)>,
    /// The builder of the run under way, with what it has of a placement that is not complete.
    partial: RefCell<Option<(RunConfig, RunBuilder<'a>)>>,
    /// What the study under way has found so far.
    partly_studied: RefCell<Option<(TransportFacts, ModelResults)>>,
    /// When the result file may be written again.
    next_draft: Cell<Instant>,
    /// Who took part, known with the first placement.
    system: Option<System>,
    /// The machine that is simulated, if one is.
    machine: Option<MachineRecord>,
    /// What the nodes' devices counted.
    pub(crate) counters: CountersRecord,
    /// The watchers' wake-ups on all ranks.
    pub(crate) watch: Option<WatchRecord>,
    /// The memory of all ranks.
    pub(crate) memory: Option<MemoryRecord>,
    /// What the machine did in each phase.
    pub(crate) activity: Vec<HostActivity>,
    /// What is known of settings that take turns.
    pub(crate) tuning: Option<TuningRecord>,
    /// Whether the user wanted no more; on every rank.
    pub(crate) interrupted: bool,
    /// Why it ended before its time, where that was not the user.
    failed: Option<String>,
    /// Whether these runs are a part of something else, which shows and keeps them.
    pub(crate) is_part: bool,
}

impl<'a> ResultAssembler<'a> {
    pub(crate) fn new(session: &'a Session<'a>, lab: Arc<EnclosingLab>) -> Self {
        let request = session.request;
        ResultAssembler {
            session,
            lab,
            started: assemble::now_rfc3339(),
            clock: Instant::now(),
            notes: Vec::new(),
            configs: Vec::new(),
            builders: Vec::new(),
            studied: Vec::new(),
            partial: RefCell::new(None),
            partly_studied: RefCell::new(None),
            next_draft: Cell::new(Instant::now() + DRAFTS_APART),
            system: None,
            machine: request.study.as_ref().and(request.settings.machine.as_deref()).map(MachineRecord::of),
            counters: CountersRecord::default(),
            watch: None,
            memory: None,
            activity: Vec::new(),
            tuning: None,
            interrupted: false,
            failed: None,
            is_part: request.calibration.is_some(),
        }
    }

    /// Takes note of who takes part, on rank 0.
    pub(crate) fn begin(&mut self, bootstrap: &dyn Bootstrap, nodes: impl FnOnce() -> Vec<Node>) {
        if !self.session.root || self.system.is_some() {
            return;
        }
        self.system = Some(System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: nodes(),
            hosts: Some(distinct(self.session.hosts.iter()).len()),
            host: HostFacts::this(),
            environment: assemble::environment(),
            ends: self.session.ends.clone(),
            ports: None,
            watch: None,
            memory: None,
            activity: Vec::new(),
        });
    }

    /// What a run goes over, under which load and with which setting where there are several.
    pub(crate) fn label(&self, config: RunConfig) -> String {
        let mix = &self.session.mixes[config.mix];
        let size = mix.size.map(|bytes| format!(", {}", Bytes(bytes as u64)));
        let load = mix.name.as_ref().map(|name| format!(" beside {name}"));
        let setting = self.setting(config).map(|name| format!(" set to {name}"));
        let point = result::at_point(&mix.point);
        let told: String = [size, load, setting].into_iter().flatten().collect();
        config.variant.label() + &told + &point
    }

    /// The setting that a run is measured with, where several take turns.
    pub(crate) fn setting(&self, config: RunConfig) -> Option<String> {
        self.session.request.tuning.as_ref()?.names().get(config.setting).cloned()
    }

    /// Tells the user something once, now and in the file.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            if self.session.root {
                self.session.request.say(&note);
            }
            self.notes.push(note);
        }
    }

    /// Says why the application ends the job, and keeps the first line of it.
    pub(crate) fn tell(&mut self, trouble: &str) {
        eprintln!("tailback: error: {trouble}");
        self.failed = trouble.lines().next().map(str::to_owned);
        self.notes.extend(self.failed.clone());
    }

    /// Tells the user those notes of the file that were not told when they were made.
    pub(crate) fn say_rest(&self, file: &ResultFile) {
        file.notes.iter().filter(|note| !self.notes.contains(note)).for_each(|note| self.session.request.say(note));
    }

    /// Takes note of what was simulated for a run, if it was.
    pub(crate) fn simulated(&mut self, simulated: Option<Simulated>) {
        if let Some(simulated) = simulated {
            self.machine.get_or_insert_with(|| MachineRecord::of(&simulated.machine)).add(simulated);
        }
    }

    /// What the runs say, each of one canary.
    pub(crate) fn headlines(&self) -> impl Iterator<Item = Headline> {
        self.builders.iter().flat_map(|(_, builder)| builder.headlines())
    }

    /// How long they took so far; simulated time is the same every time, whatever this machine does.
    pub(crate) fn spent_s(&self) -> f64 {
        let virtual_s = self.machine.as_ref().and_then(|machine| machine.virtual_s);
        virtual_s.unwrap_or_else(|| self.clock.elapsed().as_secs_f64())
    }

    /// Whether drafts are written: on rank 0 if there is a place for them. Simulated ranks have small stacks, and nothing to
    /// lose that could not be had again.
    pub(crate) fn keeps(&self) -> bool {
        self.session.root && self.session.request.settings.machine.is_none() && self.draft().is_some()
    }

    /// Keeps what a run has of a placement, unless a draft was written just now.
    pub(crate) fn keep_part(
        &self,
        config: RunConfig,
        index: u32,
        layout: &Layout,
        descriptions: [&Description; 2],
        measured: &[Measured],
    ) {
        if Instant::now() < self.next_draft.get() {
            return;
        }
        let known = self.builders.iter().find(|(of, _)| *of == config).map(|(_, builder)| builder.clone());
        let mut builder = known.unwrap_or_else(|| self.builder(config, descriptions));
        builder.add(self.session.placement(index).own_seed(), layout, measured);
        self.partial.replace(Some((config, builder)));
        self.keep();
    }

    /// Keeps what a study has found so far, unless a draft was written just now; on rank 0.
    pub(crate) fn keep_study(&self, transport: &TransportFacts, found: ModelResults) {
        if self.keeps() && Instant::now() >= self.next_draft.get() {
            self.partly_studied.replace(Some((transport.clone(), found)));
            self.keep();
        }
    }

    /// Takes what a study found over a network.
    pub(crate) fn add_study(&mut self, transport: TransportFacts, found: ModelResults) {
        self.partly_studied.replace(None);
        self.studied.push((transport, found));
    }

    /// What studies found over each network, the one under way as far as it came.
    fn studies(&self) -> Vec<(TransportFacts, ModelResults)> {
        self.studied.iter().chain(&*self.partly_studied.borrow()).cloned().collect()
    }

    /// Takes what a run gave on a placement; on rank 0.
    pub(crate) fn add(&mut self, config: RunConfig, index: u32, layout: &Layout, outcome: RunOutcome) {
        let RunOutcome { description, congestors, phases, .. } = outcome;
        if let Some(wait) = description.details.get("wait") {
            self.note(format!("how ranks wait for messages: {wait}"));
        }
        if let Some(unlike) = description.details.get("unlike_devices") {
            self.note(format!("the hosts do not use the same devices: {unlike}"));
        }
        for remark in [&description, &congestors].iter().filter_map(|of| of.details.get("one_sided_emulated")) {
            self.note(remark.clone());
        }
        self.partial.replace(None);
        let known = self.builders.iter().position(|(of, _)| *of == config);
        // A later run that was interrupted before its first phase was complete has nothing to show.
        if phases.is_empty() && (known.is_some() || !self.builders.is_empty()) {
            return;
        }
        let at = known.unwrap_or_else(|| {
            let builder = self.builder(config, [&description, &congestors]);
            self.builders.push((config, builder));
            self.builders.len() - 1
        });
        // Decoding takes its time, while the others wait for this rank.
        self.session.monitor.tick();
        self.builders[at].1.add(self.session.placement(index).own_seed(), layout, &phases);
        self.session.monitor.tick();
    }

    /// The builder of a run, without a placement.
    fn builder(&self, config: RunConfig, [canaries, congestors]: [&Description; 2]) -> RunBuilder<'a> {
        let (mut canaries, mut congestors) = (canaries.clone(), congestors.clone());
        for of in [&mut canaries, &mut congestors] {
            // Every rank has that of its role; rank 0's says nothing about the others'.
            let given = self.session.request.settings.roles.details();
            of.details.extend(given.map(|(name, value)| (name.to_owned(), value.clone())));
        }
        if let Some(protocol) = canaries.details.get_mut("protocol") {
            protocol.push_str(&config.variant.copy_mark());
        }
        let transport = TransportFacts::of(canaries, config.variant.network.eager_threshold());
        let under = |network: Network| TransportFacts::of(congestors, network.eager_threshold());
        let congestors_over = config.variant.congestors.map(under);
        let mix = &self.session.mixes[config.mix];
        let builder = RunBuilder::new(&mix.plan, transport, congestors_over);
        builder.beside(mix.name.clone()).of_size(mix.size).set_to(self.setting(config)).at(mix.point.clone())
    }

    /// Where drafts of the result go, if anywhere.
    fn draft(&self) -> Option<PathBuf> {
        handed_over().or_else(|| self.session.request.output.out.clone()).filter(|_| !self.is_part)
    }

    /// Keeps what there is so far, in case what is to come fails. Others wait for this rank meanwhile: for nineteen times as
    /// long, and for some seconds, nothing is kept again but whole placements.
    pub(crate) fn keep(&self) {
        let Some(path) = self.draft() else { return };
        let begun = Instant::now();
        self.session.monitor.tick();
        // The complete result is written to the same place, and a problem with it is then the user's to know.
        let _ = self.unfinished().map(|file| result::write_draft(&path, &file));
        backend::release_free_memory();
        self.session.monitor.tick();
        self.next_draft.set(Instant::now() + DRAFTS_APART.max(19 * begun.elapsed()));
    }

    /// What there is if something was measured and the job fails now; on rank 0.
    pub(crate) fn unfinished(&self) -> Option<ResultFile> {
        let has_any = !self.builders.is_empty() || self.partial.borrow().is_some() || !self.studies().is_empty();
        let mut file = self.file().filter(|_| has_any)?;
        file.interrupted = true;
        let planned = self.session.placements() as usize;
        let done = |config: &RunConfig| {
            self.builders.iter().find(|(of, _)| of == config).map_or(0, |(_, builder)| builder.placements())
        };
        let missing: Vec<String> = self
            .configs
            .iter()
            .filter(|config| done(config) < planned)
            .map(|config| match planned {
                1 => self.label(*config),
                _ => format!("{} ({} of {planned} placements)", self.label(*config), done(config)),
            })
            .collect();
        file.notes.push(format!("the job ended before these runs were complete: {}", missing.join("; ")));
        Some(file)
    }

    /// Every run as far as it came, the one under way with what it has of its placement.
    fn runs(&self) -> Vec<Run> {
        let partial = self.partial.borrow();
        let studies = self.studies();
        if !studies.is_empty() {
            // Over one network what was found stands with the file, over several with each run.
            let several = self.configs.len() > 1;
            let run = |(transport, found): (TransportFacts, ModelResults)| Run {
                models: several.then_some(found),
                ..Run::bare(transport)
            };
            return studies.into_iter().map(run).collect();
        }
        let found = |config| partial.iter().chain(&self.builders).find(|(of, _)| of == config);
        self.configs.iter().filter_map(found).map(|(_, builder)| builder.finish()).collect()
    }

    /// Whether a study found anything.
    pub(crate) fn has_studied(&self) -> bool {
        !self.studied.is_empty()
    }

    /// The result as far as it came; on rank 0.
    pub(crate) fn file(&self) -> Option<ResultFile> {
        let mut system = self.system.clone()?;
        let Decision { command, plan, .. } = &self.session.decision;
        let runs: Vec<Run> = self.runs().into_iter().map(|run| run.beside(&self.activity)).collect();
        let tests = runs.iter().flat_map(|run| &run.tests).map(|test| (test.phase, test.title.as_str()));
        let counters = self.counters.clone().of_complete(&tests.collect::<Vec<_>>()).within_limits();
        let tuning = self.tuning.clone().map(|of| TuningRecord { ranking: rank(&runs), ..of });
        let swept: &[Swept] = if *command == Command::Sweep { &plan.sweep } else { &[] };
        let sweep = sweep::record(&runs, swept, &self.session.request.crosses);
        system.ports = self.ports(&system, &counters);
        (system.watch, system.memory) = (self.watch, self.memory.clone());
        system.activity.clone_from(&self.activity);
        let mut file = ResultFile {
            schema_version: result::SCHEMA_VERSION,
            build: Build::this(),
            command: *command,
            label: self.session.request.output.label.clone(),
            started: self.started.clone(),
            duration_s: self.clock.elapsed().as_secs_f64(),
            seed: self.session.seed,
            plan: plan.clone(),
            system,
            runs,
            lab: None,
            machine: self.machine.clone().map(MachineRecord::within_limits),
            counters: Some(counters).filter(|of| !of.phases.is_empty()),
            models: self.studies().into_iter().next().filter(|_| self.configs.len() == 1).map(|(_, found)| found),
            calibration: None,
            tuning,
            sweep,
            notes: self.notes.clone(),
            interrupted: self.interrupted,
            failed: self.failed.clone(),
            imported: None,
        };
        file.notes.extend(file.system.memory.as_ref().and_then(MemoryRecord::huge));
        file.notes.extend(warnings(&file));
        self.lab.complete(&mut file);
        Some(file)
    }

    /// What the user says of the nodes' ports, or what can be known of them.
    fn ports(&self, system: &System, counters: &CountersRecord) -> Option<NodePorts> {
        if self.session.decision.study.is_some() {
            return None;
        }
        let said = |per_node, known_by| NodePorts { per_node, known_by };
        let machine = self.session.request.settings.machine.as_ref().map(|machine| machine.nodes.nics as u32);
        // Virtual nodes share the ports of their host.
        let own = machine.is_none() && self.session.decision.plan.ranks_per_node.is_none();
        let nodes = || system.nodes.iter().map(|node| node.ranks.clone()).collect::<Vec<_>>();
        (self.session.request.ports_per_node.map(|ports| said(ports, KnownBy::User)))
            .or_else(|| machine.map(|ports| said(ports, KnownBy::Machine)))
            .or_else(|| own.then(|| NodePorts::find(&nodes(), &system.ends, counters)).flatten())
    }
}

/// All that is to be said, for the result's notes.
fn warnings(file: &ResultFile) -> Vec<String> {
    overloaded(file).into_iter().chain(overran(file)).chain(longer_than_bursts(file)).collect()
}

/// What is to be said of schedules that were not kept: their figures are of another load than was asked for.
fn overloaded(file: &ResultFile) -> Option<String> {
    let several = file.runs.len() > 1;
    let told = file.overloaded().map(|(run, test, kept)| {
        let state = if test.phase == LoadState::Loaded { "loaded" } else { "idle" };
        let part = 100.0 * (kept.late + kept.lost) as f64 / (kept.iterations + kept.lost).max(1) as f64;
        let over = if several { format!(" {}", file.run_phrase(run)) } else { String::new() };
        format!("{} {state}{over} {part:.0}%", test.kernel)
    });
    let told: Vec<String> = told.collect();
    let pace = file.longer_pace()?;
    Some(format!(
        "iterations of the open loop that were late or lost: {}; their figures may be too low, {pace} keeps the schedule",
        told.join(", "),
    ))
}

/// What is to be said of congestors of which an iteration does not fit into a burst: their load is not off when it should be.
fn longer_than_bursts(file: &ResultFile) -> Option<String> {
    let all = file.runs.iter().flat_map(|run| &run.tests).filter_map(|test| test.burst.as_ref());
    let long = all.flat_map(|of| &of.loads).filter(|load| load.iterations_per_burst < 0.5);
    let names = distinct(long.map(|load| load.kernel.to_string()));
    (!names.is_empty()).then(|| {
        format!(
            "an iteration of {} is longer than a burst, so that its load does not end with it: smaller messages (--set \
             CONGESTOR.bytes=N) or a longer --on are needed",
            names.join(", ")
        )
    })
}

/// What is to be said of tests that took longer than they were given: an iteration is never cut.
fn overran(file: &ResultFile) -> Option<String> {
    /// Beginning and ending blocks takes its time too.
    const TOLERATED: f64 = 1.5;
    const TOLERATED_S: f64 = 0.5;
    let plan = &file.plan;
    // More placements than were planned, for precision, have more time.
    let given_s = |run: &Run| plan.budget_s * run.placements.len().max(1) as f64 / f64::from(plan.placements);
    let tests = file.runs.iter().flat_map(|run| {
        run.tests
            .iter()
            .map(move |test| (test, test.phase.of_test().map_or(1.0, |of| plan.share_of(of)) * given_s(run)))
    });
    let long = |test: &Test, given_s: f64| test.wall_s > TOLERATED * given_s + TOLERATED_S;
    let told = tests.filter(|(test, given_s)| !test.kernel.is_application() && long(test, *given_s));
    let told: Vec<String> = told
        .map(|(test, given_s)| {
            let state = if test.phase == LoadState::Loaded { "loaded" } else { "idle" };
            format!("{} {state} {:.1} of {given_s:.1} s", test.kernel, test.wall_s)
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "tests that took longer than their budget, as their iterations last longer than their blocks: {}; smaller \
             messages (--set CANARY.bytes=N) or a longer --budget are needed",
            told.join(", ")
        )
    })
}
