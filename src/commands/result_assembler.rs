//! What the runs of a job have found so far, and the result file that it makes: whole, or a draft should the job fail.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailback_transport::{Bootstrap, Description, Monitor};

use super::Request;
use super::enclosing_lab::EnclosingLab;
use super::placement_run::Outcome;
use super::prepare::Session;
use super::request::Decision;
use super::show::handed_over;
use super::warnings::warnings;
use crate::assemble::{self, RunBuilder};
use crate::backend::{Network, Networks, Variant};
use crate::engine::Measured;
use crate::layout::Layout;
use crate::result::{
    self, Build, CountersRecord, Headline, HostFacts, KnownBy, MachineRecord, MemoryRecord, ModelResults, Node,
    NodePorts, ResultFile, Run, System, TransportFacts, WatchRecord,
};

/// The most that is measured in vain when a job does not come to its end, but for the phase it was in.
const DRAFTS_APART: Duration = Duration::from_secs(3);

/// One run among those that take turns on every placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunConfig {
    /// What it goes over.
    pub(super) variant: Variant,
    /// Which of the session's loads it is beside.
    pub(super) mix: usize,
}

/// What was found; but for notes and interrupts, on rank 0 only.
pub(super) struct ResultAssembler<'a> {
    session: &'a Session,
    request: &'a Request,
    monitor: &'a Arc<Monitor>,
    lab: Arc<EnclosingLab>,
    root: bool,
    started: String,
    clock: Instant,
    pub(super) notes: Vec<String>,
    /// The runs that take turns; on every rank.
    pub(super) configs: Vec<RunConfig>,
    /// One for each run that has measured anything, in their order.
    builders: Vec<(RunConfig, RunBuilder<'a>)>,
    /// What a study found, over each network that it was complete on.
    pub(super) studied: Vec<(TransportFacts, ModelResults)>,
    /// The builder of the run under way, with what it has of a placement that is not complete.
    partial: RefCell<Option<(RunConfig, RunBuilder<'a>)>>,
    /// When the result file may be written again.
    next_draft: Cell<Instant>,
    /// Who took part, known with the first placement.
    system: Option<System>,
    /// The machine that is simulated, if one is.
    machine: Option<MachineRecord>,
    /// What the nodes' devices counted.
    pub(super) counters: CountersRecord,
    /// The watchers' wake-ups on all ranks.
    pub(super) watch: Option<WatchRecord>,
    /// The memory of all ranks.
    pub(super) memory: Option<MemoryRecord>,
    /// Whether the user wanted no more; on every rank.
    pub(super) interrupted: bool,
    /// Whether these runs are a part of something else, which shows and keeps them.
    pub(super) is_part: bool,
}

impl<'a> ResultAssembler<'a> {
    pub(super) fn new(
        (session, request): (&'a Session, &'a Request),
        monitor: &'a Arc<Monitor>,
        lab: Arc<EnclosingLab>,
        root: bool,
    ) -> Self {
        ResultAssembler {
            session,
            request,
            monitor,
            lab,
            root,
            started: assemble::now_rfc3339(),
            clock: Instant::now(),
            notes: Vec::new(),
            configs: Vec::new(),
            builders: Vec::new(),
            studied: Vec::new(),
            partial: RefCell::new(None),
            next_draft: Cell::new(Instant::now() + DRAFTS_APART),
            system: None,
            machine: request.study.as_ref().and(request.settings.machine.as_deref()).map(MachineRecord::of),
            counters: CountersRecord::default(),
            watch: None,
            memory: None,
            interrupted: false,
            is_part: request.calibration.is_some(),
        }
    }

    /// Takes note of who takes part, on rank 0.
    pub(super) fn begin(&mut self, bootstrap: &dyn Bootstrap, nodes: impl FnOnce() -> Vec<Node>) {
        if !self.root || self.system.is_some() {
            return;
        }
        self.system = Some(System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: nodes(),
            host: HostFacts::this(),
            environment: assemble::environment(),
            ends: self.session.ends.clone(),
            ports: None,
            watch: None,
            memory: None,
        });
    }

    /// What a run goes over, and under which load where there are several.
    pub(super) fn label(&self, config: RunConfig) -> String {
        let load = self.session.mixes[config.mix].name.as_ref().map(|name| format!(" beside {name}"));
        format!("{}{}", config.variant.label(), load.unwrap_or_default())
    }

    /// Tells the user something once, now and in the file.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            if self.root {
                self.request.say(&note);
            }
            self.notes.push(note);
        }
    }

    /// Says why the application ends the job, and keeps the first line of it.
    pub(super) fn tell(&mut self, trouble: &str) {
        eprintln!("tailback: error: {trouble}");
        self.notes.extend(trouble.lines().next().map(str::to_owned));
    }

    /// Tells the user those notes of the file that were not told when they were made.
    pub(super) fn say_rest(&self, file: &ResultFile) {
        file.notes.iter().filter(|note| !self.notes.contains(note)).for_each(|note| self.request.say(note));
    }

    /// Takes note of what was simulated for a run, if it was.
    pub(super) fn simulated(&mut self, networks: &mut Networks<'_>) {
        if let Some(simulated) = networks.simulated() {
            self.machine.get_or_insert_with(|| MachineRecord::of(&simulated.machine)).add(simulated);
        }
    }

    /// What the runs say, each of one canary.
    pub(super) fn headlines(&self) -> impl Iterator<Item = Headline> {
        self.builders.iter().flat_map(|(_, builder)| builder.headlines())
    }

    /// How long they took so far; simulated time is the same every time, whatever this machine does.
    pub(super) fn spent_s(&self) -> f64 {
        let virtual_s = self.machine.as_ref().and_then(|machine| machine.virtual_s);
        virtual_s.unwrap_or_else(|| self.clock.elapsed().as_secs_f64())
    }

    /// Whether drafts are written: on rank 0 if there is a place for them. Simulated ranks have small stacks, and nothing to
    /// lose that could not be had again.
    pub(super) fn keeps(&self) -> bool {
        self.root && self.request.settings.machine.is_none() && self.draft().is_some()
    }

    /// Keeps what a run has of a placement, unless a draft was written just now.
    pub(super) fn keep_part(
        &self,
        config: RunConfig,
        (index, layout): (u32, &Layout),
        descriptions: (&Description, &Description),
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

    /// Takes what a run gave on a placement; on rank 0.
    pub(super) fn add(&mut self, config: RunConfig, index: u32, layout: &Layout, outcome: Outcome) {
        let Outcome { description, congestors, phases, .. } = outcome;
        if let Some(wait) = description.details.get("wait") {
            self.note(format!("ranks wait for the network by: {wait}"));
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
            let builder = self.builder(config, (&description, &congestors));
            self.builders.push((config, builder));
            self.builders.len() - 1
        });
        // Decoding takes its time, while the others wait for this rank.
        self.monitor.tick();
        self.builders[at].1.add(self.session.placement(index).own_seed(), layout, &phases);
        self.monitor.tick();
    }

    /// The builder of a run, without a placement.
    fn builder(&self, config: RunConfig, (canaries, congestors): (&Description, &Description)) -> RunBuilder<'a> {
        let (mut canaries, mut congestors) = (canaries.clone(), congestors.clone());
        for of in [&mut canaries, &mut congestors] {
            // Every rank has that of its role; rank 0's says nothing about the others'.
            let given = self.request.settings.roles.details();
            of.details.extend(given.map(|(name, value)| (name.to_owned(), value.clone())));
        }
        if let Some(protocol) = canaries.details.get_mut("protocol") {
            protocol.push_str(&config.variant.copy_mark());
        }
        let transport = TransportFacts::of(canaries, config.variant.network.eager_threshold());
        let under = |network: Network| TransportFacts::of(congestors, network.eager_threshold());
        let congestors_over = config.variant.congestors.map(under);
        let mix = &self.session.mixes[config.mix];
        RunBuilder::new(&mix.plan, transport, congestors_over).beside(mix.name.clone())
    }

    /// Where drafts of the result go, if anywhere.
    fn draft(&self) -> Option<PathBuf> {
        handed_over().or_else(|| self.request.output.out.clone()).filter(|_| !self.is_part)
    }

    /// Keeps what there is so far, in case what is to come fails. Others wait for this rank meanwhile: for nineteen times as
    /// long, and for some seconds, nothing is kept again but whole placements.
    pub(super) fn keep(&self) {
        let Some(path) = self.draft() else { return };
        let begun = Instant::now();
        self.monitor.tick();
        // The complete result is written to the same place, and a problem with it is then the user's to know.
        let _ = self.unfinished().map(|file| result::write_draft(&path, &file));
        self.monitor.tick();
        self.next_draft.set(Instant::now() + DRAFTS_APART.max(19 * begun.elapsed()));
    }

    /// What there is if something was measured and the job fails now; on rank 0.
    pub(super) fn unfinished(&self) -> Option<ResultFile> {
        let mut file = self.file().filter(|_| !self.builders.is_empty() || self.partial.borrow().is_some())?;
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
        if !self.studied.is_empty() {
            // Over one network what was found stands with the file, over several with each run.
            let several = self.configs.len() > 1;
            let run = |(transport, found): &(TransportFacts, ModelResults)| Run {
                models: several.then(|| found.clone()),
                ..Run::bare(transport.clone())
            };
            return self.studied.iter().map(run).collect();
        }
        let found = |config| partial.iter().chain(&self.builders).find(|(of, _)| of == config);
        self.configs.iter().filter_map(found).map(|(_, builder)| builder.finish()).collect()
    }

    /// The result as far as it came; on rank 0.
    pub(super) fn file(&self) -> Option<ResultFile> {
        let mut system = self.system.clone()?;
        let Decision { command, plan, .. } = &self.session.decision;
        let runs = self.runs();
        let tests = runs.iter().flat_map(|run| &run.tests).map(|test| (test.phase, test.title.as_str()));
        let counters = self.counters.clone().of_complete(&tests.collect::<Vec<_>>()).within_limits();
        system.ports = self.ports(&system, &counters);
        (system.watch, system.memory) = (self.watch, self.memory.clone());
        let mut file = ResultFile {
            schema_version: result::SCHEMA_VERSION,
            build: Build::this(),
            command: *command,
            label: self.request.output.label.clone(),
            started: self.started.clone(),
            duration_s: self.clock.elapsed().as_secs_f64(),
            seed: self.session.seed,
            plan: plan.clone(),
            system,
            runs,
            lab: None,
            machine: self.machine.clone().map(MachineRecord::within_limits),
            counters: Some(counters).filter(|of| !of.phases.is_empty()),
            models: self.studied.first().filter(|_| self.configs.len() == 1).map(|(_, found)| found.clone()),
            calibration: None,
            notes: self.notes.clone(),
            interrupted: self.interrupted,
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
        let machine = self.request.settings.machine.as_ref().map(|machine| machine.nodes.nics as u32);
        // Virtual nodes share the ports of their host.
        let own = machine.is_none() && self.session.decision.plan.ranks_per_node.is_none();
        let nodes = || system.nodes.iter().map(|node| node.ranks.clone()).collect::<Vec<_>>();
        (self.request.ports_per_node.map(|ports| said(ports, KnownBy::User)))
            .or_else(|| machine.map(|ports| said(ports, KnownBy::Machine)))
            .or_else(|| own.then(|| NodePorts::find(&nodes(), &system.ends, counters)).flatten())
    }
}
