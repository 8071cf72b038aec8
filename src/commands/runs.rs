//! The runs of a job: the same plan over every network, placement by placement, into one result.
//!
//! Networks take turns on every placement, so that what changes with time is no difference between them. Every network
//! was opened once before the first placement, so what cannot be run is known by then. Should a later one fail all the
//! same, what was measured before is kept: rank 0 writes the result file after each of them, and between phases.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailback_transport::{Bootstrap, Description, Error, Monitor, Result};

use super::around::Around;
use super::counting::Counting;
use super::measure::{KeepRun, Measure, Outcome};
use super::phases::PhaseReporter;
use super::prepare::Session;
use super::remarks::remarks;
use super::request::Decision;
use super::show::{handed_over, show};
use super::watching::{self, Watching};
use super::{Request, interrupt};
use crate::backend::{self, Network, Networks, RoleSettings, Variant, give_up};
use crate::engine::{Control, Measured, OnEnd, OnPhase, REAL_GRAIN, VIRTUAL_GRAIN};
use crate::layout::{Layout, Role};
use crate::output::Progress;
use crate::plan::Plan;
use crate::result::{
    self, Build, CountersRecord, Headline, HostFacts, KnownBy, MachineRecord, MemoryRecord, NodePorts, ResultFile, Run,
    RunBuilder, System, TransportFacts, WatchRecord,
};

/// The most that is measured in vain when a job does not come to its end, but for the phase it was in.
const DRAFTS_APART: Duration = Duration::from_secs(3);

/// The runs so far.
pub(super) struct Runs<'a> {
    session: &'a Session,
    request: &'a Request,
    monitor: &'a Arc<Monitor>,
    on_phase: OnPhase,
    on_end: OnEnd,
    /// What the nodes' devices counted; on rank 0.
    counters: CountersRecord,
    /// The watchers' wake-ups; where they began on this rank, and what all ranks told rank 0.
    watching: Watching,
    watch: Option<WatchRecord>,
    /// The memory of all ranks; on rank 0.
    memory: Option<MemoryRecord>,
    around: Arc<Around>,
    root: bool,
    started: String,
    clock: Instant,
    notes: Vec<String>,
    /// The runs that take turns.
    turns: Vec<Turn>,
    /// One for each turn that has measured anything, in their order; on rank 0.
    builders: Vec<(Turn, RunBuilder<'a>)>,
    /// The builder of the turn under way, with what it has of a placement that is not complete; on rank 0.
    partial: RefCell<Option<(Turn, RunBuilder<'a>)>>,
    /// When the result file may be written again.
    next_draft: Cell<Instant>,
    /// The machine that is simulated, if one is.
    machine: Option<MachineRecord>,
    interrupted: bool,
    /// Whether these are a part of something else, which shows and keeps them.
    is_part: bool,
}

impl<'a> Runs<'a> {
    pub(super) fn new(session: &'a Session, request: &'a Request, monitor: &'a Arc<Monitor>, root: bool) -> Self {
        let is_part = request.calibration.is_some();
        let around = Arc::new(Around::find(root, is_part));
        let (on_phase, on_end) = phase_observers(request, root, &around, &session.counting);
        Runs {
            session,
            request,
            monitor,
            on_phase,
            on_end,
            counters: CountersRecord::default(),
            watching: Watching::begin(monitor),
            watch: None,
            memory: None,
            around,
            root,
            started: result::now_rfc3339(),
            clock: Instant::now(),
            notes: Vec::new(),
            turns: Vec::new(),
            builders: Vec::new(),
            partial: RefCell::new(None),
            next_draft: Cell::new(Instant::now() + DRAFTS_APART),
            machine: None,
            interrupted: false,
            is_part,
        }
    }

    /// Makes all of them, shows what they gave, and gives the exit code.
    pub(super) fn make<N: Networks>(mut self, networks: &mut N) -> u8 {
        self.measured(networks).map_or(0, |file| {
            file.notes.iter().filter(|note| !self.notes.contains(note)).for_each(|note| self.request.say(note));
            show(self.request, &file)
        })
    }

    /// Makes all of them, and gives what they gave, on rank 0.
    pub(super) fn measured<N: Networks>(&mut self, networks: &mut N) -> Option<ResultFile> {
        let mixes = 0..self.session.mixes.len();
        let turns = |variant: &Variant| mixes.clone().map(|mix| Turn { variant: *variant, mix }).collect::<Vec<_>>();
        self.turns = networks.variants().iter().flat_map(turns).collect();
        if self.root && !self.is_part {
            self.request.say(&format!("seed {}", self.session.seed));
            if let several @ [_, _, ..] = &self.turns[..] {
                let names: Vec<String> = several.iter().map(|turn| format!("over {}", self.label(*turn))).collect();
                let (count, names) = (names.len(), names.join("; "));
                self.request.say(&format!("{count} runs take turns on every placement: {names}"));
            }
        }
        let mut system = None;
        for index in 0.. {
            let layout = self.layout(index, &self.session.decision.plan);
            layout.notes.iter().for_each(|note| self.note(note.clone()));
            if self.root && system.is_none() {
                system = Some(self.system(networks.bootstrap(), &layout));
            }
            if let Err(error) = self.placement(networks, index, system.as_ref()) {
                self.fail(networks.bootstrap(), system, &error);
            }
            let more = match self.goes_on(networks.bootstrap(), index + 1) {
                Ok(more) => more && !self.interrupted,
                Err(error) => self.fail(networks.bootstrap(), system, &error),
            };
            if !more {
                break;
            }
        }
        system.map(|system| self.file(system))
    }

    fn layout(&self, index: u32, plan: &Plan) -> Layout {
        self.session.layout(index, plan).expect("the first placement was possible, and so are the others")
    }

    /// What a turn goes over, and under which load where there are several.
    fn label(&self, turn: Turn) -> String {
        let load = self.session.mixes[turn.mix].name.as_ref().map(|name| format!(" beside {name}"));
        format!("{}{}", turn.variant.label(), load.unwrap_or_default())
    }

    /// Every turn on one placement: forwards on one, backwards on the next, so that none is always first.
    fn placement<N: Networks>(&mut self, networks: &mut N, index: u32, system: Option<&System>) -> Result<()> {
        let mut turns = self.turns.clone();
        let several = turns.len() > 1;
        if index % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            let over = several.then(|| self.label(turn));
            let session = self.session;
            let layout = &self.layout(index, &session.mixes[turn.mix].plan);
            let keep = |canaries: &Description, congestors: &Description, measured: &[Measured]| {
                if let Some(system) = system.filter(|_| Instant::now() >= self.next_draft.get()) {
                    let known = self.builders.iter().find(|(of, _)| *of == turn).map(|(_, builder)| builder.clone());
                    let mut builder = known.unwrap_or_else(|| self.builder(turn, (canaries, congestors)));
                    builder.add(session.placement(index).own_seed(), layout, measured);
                    self.partial.replace(Some((turn, builder)));
                    self.keep(system);
                }
            };
            // Simulated ranks have small stacks, and nothing to lose that could not be had again.
            let keeps = system.is_some() && self.request.settings.machine.is_none() && self.draft().is_some();
            let measure = self.measure(index, turn, layout, over, keeps.then_some(&keep));
            let role = |rank| self.role(layout.role(rank));
            let outcome = networks.open_pair(turn.variant, &role, measure).and_then(|measured| measured)?;
            self.interrupted = outcome.interrupted;
            for problem in session.counting.collect(networks.bootstrap(), &mut self.counters)? {
                self.note(problem);
            }
            if self.request.settings.machine.is_none() {
                self.watch = self.watching.collect(networks.bootstrap(), self.monitor)?;
                self.memory = watching::memory(networks.bootstrap())?;
            }
            if let Some(trouble) = &outcome.trouble {
                self.tell(trouble);
            }
            if let Some(system) = system {
                self.simulated(networks);
                self.add(turn, index, layout, outcome);
                if !self.interrupted {
                    self.keep(system);
                }
            }
            if self.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// Says why the application ends the job, and keeps the first line of it.
    fn tell(&mut self, trouble: &str) {
        eprintln!("tailback: error: {trouble}");
        self.notes.extend(trouble.lines().next().map(str::to_owned));
    }

    /// Takes note of what was simulated for a run, if it was.
    fn simulated<N: Networks>(&mut self, networks: &mut N) {
        if let Some(simulated) = networks.simulated() {
            self.machine.get_or_insert_with(|| MachineRecord::of(&simulated.machine)).add(simulated);
        }
    }

    /// What the ranks of a role have of their own.
    fn role(&self, role: Role) -> RoleSettings {
        let roles = &self.request.settings.roles;
        match role {
            Role::Canary => roles.canary.clone(),
            Role::Congestor(_) => roles.congestor.clone(),
            Role::Idle => RoleSettings::default(),
        }
    }

    /// Whether another placement follows the `done` there are. Rank 0 decides where the figures do.
    fn goes_on<B: Bootstrap>(&self, bootstrap: &mut B, done: u32) -> Result<bool> {
        let plan = &self.session.decision.plan;
        let Some(precision) = plan.precision.filter(|_| done >= self.session.placements()) else {
            return Ok(done < self.session.placements());
        };
        let wide = |of: &Headline| {
            // Half of the interval on a logarithmic scale: 0.1 is +-10%.
            of.spread.interval.is_none_or(|interval| (interval.high / interval.low).ln() / 2.0 > precision)
        };
        let wide = self.builders.iter().flat_map(|(_, builder)| builder.headlines()).any(|of| wide(&of));
        // Simulated time is the same every time, whatever this machine does.
        let virtual_s = self.machine.as_ref().and_then(|machine| machine.virtual_s);
        let spent = virtual_s.unwrap_or_else(|| self.clock.elapsed().as_secs_f64());
        let more = wide && spent < plan.longest_s;
        let told = bootstrap.broadcast(vec![u8::from(more)])?;
        Ok(told.first() == Some(&1))
    }

    fn measure<'m>(
        &self,
        index: u32,
        turn: Turn,
        layout: &'m Layout,
        over: Option<String>,
        keep: Option<KeepRun<'m>>,
    ) -> Measure<'m>
    where
        'a: 'm,
    {
        let (monitor, interrupt) = (Arc::clone(self.monitor), interrupt::flag());
        let of = self.session.placements().max(index + 1);
        let placement = (of > 1).then_some((index + 1, of));
        let grain = if self.request.settings.machine.is_some() { VIRTUAL_GRAIN } else { REAL_GRAIN };
        let (on_phase, on_end) = (Arc::clone(&self.on_phase), Arc::clone(&self.on_end));
        let starter = self.session.starter(layout);
        let control = Control { monitor, interrupt, on_phase, on_end, over, placement, grain, starter };
        let seed = self.session.placement(index).own_seed();
        let (decision, plan) = (&self.session.decision, &self.session.mixes[turn.mix].plan);
        Measure { decision, plan, layout, seed, control, keep }
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

    fn add(&mut self, turn: Turn, index: u32, layout: &Layout, outcome: Outcome) {
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
        let known = self.builders.iter().position(|(of, _)| *of == turn);
        // A later run that was interrupted before its first phase was complete has nothing to show.
        if phases.is_empty() && (known.is_some() || !self.builders.is_empty()) {
            return;
        }
        let at = known.unwrap_or_else(|| {
            let builder = self.builder(turn, (&description, &congestors));
            self.builders.push((turn, builder));
            self.builders.len() - 1
        });
        // Decoding takes its time, while the others wait for this rank.
        self.monitor.tick();
        self.builders[at].1.add(self.session.placement(index).own_seed(), layout, &phases);
        self.monitor.tick();
    }

    /// The builder of a turn, without a placement.
    fn builder(&self, turn: Turn, (canaries, congestors): (&Description, &Description)) -> RunBuilder<'a> {
        let (mut canaries, mut congestors) = (canaries.clone(), congestors.clone());
        for of in [&mut canaries, &mut congestors] {
            // Every rank has that of its role; rank 0's says nothing about the others'.
            let given = self.request.settings.roles.details();
            of.details.extend(given.map(|(name, value)| (name.to_owned(), value.clone())));
        }
        if let Some(protocol) = canaries.details.get_mut("protocol") {
            protocol.push_str(&turn.variant.copy_mark());
        }
        let transport = TransportFacts::of(canaries, turn.variant.network.eager_threshold());
        let under = |network: Network| TransportFacts::of(congestors, network.eager_threshold());
        let congestors_over = turn.variant.congestors.map(under);
        let mix = &self.session.mixes[turn.mix];
        RunBuilder::new(&mix.plan, transport, congestors_over).beside(mix.name.clone())
    }

    /// Where drafts of the result go, if anywhere.
    fn draft(&self) -> Option<PathBuf> {
        handed_over().or_else(|| self.request.output.out.clone()).filter(|_| !self.is_part)
    }

    /// Keeps what there is so far, in case what is to come fails. Others wait for this rank meanwhile: for nineteen times as
    /// long, and for some seconds, nothing is kept again but whole placements.
    fn keep(&self, system: &System) {
        let Some(path) = self.draft() else { return };
        let begun = Instant::now();
        self.monitor.tick();
        // The complete result is written to the same place, and a problem with it is then the user's to know.
        let _ = result::write_draft(&path, &self.unfinished(system.clone()));
        self.monitor.tick();
        self.next_draft.set(Instant::now() + DRAFTS_APART.max(19 * begun.elapsed()));
    }

    /// Ends the job because of an error on this rank; on rank 0, after it has shown what there is.
    fn fail<B: Bootstrap>(&self, bootstrap: &B, system: Option<System>, error: &Error) -> ! {
        let measured = !self.builders.is_empty() || self.partial.borrow().is_some();
        if let Some(system) = system.filter(|_| measured && !self.is_part) {
            show(self.request, &self.unfinished(system));
        }
        give_up(bootstrap, error)
    }

    fn unfinished(&self, system: System) -> ResultFile {
        let mut file = self.file(system);
        file.interrupted = true;
        let planned = self.session.placements() as usize;
        let done = |turn: &Turn| {
            self.builders.iter().find(|(of, _)| of == turn).map_or(0, |(_, builder)| builder.placements())
        };
        let missing: Vec<String> = self
            .turns
            .iter()
            .filter(|turn| done(turn) < planned)
            .map(|turn| match planned {
                1 => self.label(*turn),
                _ => format!("{} ({} of {planned} placements)", self.label(*turn), done(turn)),
            })
            .collect();
        file.notes.push(format!("the job ended before these runs were complete: {}", missing.join("; ")));
        file
    }

    /// Every run as far as it came, the one under way with what it has of its placement.
    fn runs(&self) -> Vec<Run> {
        let partial = self.partial.borrow();
        let found = |turn| partial.iter().chain(&self.builders).find(|(of, _)| of == turn);
        self.turns.iter().filter_map(found).map(|(_, builder)| builder.finish()).collect()
    }

    fn file(&self, mut system: System) -> ResultFile {
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
            models: None,
            calibration: None,
            notes: self.notes.clone(),
            interrupted: self.interrupted,
            imported: None,
        };
        file.notes.extend(file.system.memory.as_ref().and_then(MemoryRecord::huge));
        file.notes.extend(remarks(&file));
        self.around.complete(&mut file);
        file
    }

    /// What the user says of the nodes' ports, or what can be known of them.
    fn ports(&self, system: &System, counters: &CountersRecord) -> Option<NodePorts> {
        let said = |per_node, known_by| NodePorts { per_node, known_by };
        let machine = self.request.settings.machine.as_ref().map(|machine| machine.nodes.nics as u32);
        // Virtual nodes share the ports of their host.
        let own = machine.is_none() && self.session.decision.plan.ranks_per_node.is_none();
        let nodes = || system.nodes.iter().map(|node| node.ranks.clone()).collect::<Vec<_>>();
        (self.request.ports_per_node.map(|ports| said(ports, KnownBy::User)))
            .or_else(|| machine.map(|ports| said(ports, KnownBy::Machine)))
            .or_else(|| own.then(|| NodePorts::find(&nodes(), &system.ends, counters)).flatten())
    }

    fn system<B: Bootstrap>(&self, bootstrap: &B, layout: &Layout) -> System {
        System {
            ranks: bootstrap.size(),
            launcher: bootstrap.launcher(),
            nodes: result::placement(layout, &self.session.decision.plan),
            host: HostFacts::this(),
            environment: result::environment(),
            ends: self.session.ends.clone(),
            ports: None,
            watch: None,
            memory: None,
        }
    }
}

/// One run among those that take turns on every placement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    /// What it goes over.
    variant: Variant,
    /// Which of the session's loads it is beside.
    mix: usize,
}

/// Who hears of phases: whoever reads this node's counters; and on rank 0, whoever looks at the network around it, and the
/// process that started the ranks, if it wants to, else the user.
fn phase_observers(request: &Request, root: bool, around: &Arc<Around>, counting: &Counting) -> (OnPhase, OnEnd) {
    let (begins, ends) = (counting.clone(), counting.clone());
    if !root {
        return (Arc::new(move |name, _| begins.begin(name)), Arc::new(move || ends.end()));
    }
    let (before, after) = (Arc::clone(around), Arc::clone(around));
    if let Some(listener) = PhaseReporter::from_env().map(Arc::new) {
        let told = Arc::clone(&listener);
        let on_phase: OnPhase = Arc::new(move |name, budget| {
            before.begin(name);
            told.begins(name, budget);
            begins.begin(name);
        });
        let on_end = move || {
            ends.end();
            after.end();
            listener.ends();
        };
        return (on_phase, Arc::new(on_end));
    }
    let progress = Progress::new(!request.quiet()).of_virtual_time(request.settings.machine.is_some());
    let on_phase: OnPhase = Arc::new(move |name, budget| {
        before.begin(name);
        // Where nothing is simulated nobody counts.
        backend::begin_phase(name);
        progress.phase(name, budget);
        begins.begin(name);
    });
    let on_end = move || {
        ends.end();
        after.end();
    };
    (on_phase, Arc::new(on_end))
}
