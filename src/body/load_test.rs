//! The runs of a job: the same plan over every network, placement by placement, into one result.
//!
//! Networks take turns on every placement, so that what changes with time is no difference between them. Every network
//! was opened once before the first placement, so what cannot be run is known by then. Should a later one fail all the
//! same, what was measured before is kept: rank 0 writes the result file after each of them, and between phases.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use tailback_transport::{Bootstrap, Description, Error, Nanos, Operation, Result};

use super::application::{Repetitions, Victims};
use super::dry_run::{PLACEMENT_S, keeps_time, sizes_said, whole_sweep};
use super::tuning::Tuner;
use crate::assemble;
use crate::backend::{Networks, RoleSettings, Variant, give_up};
use crate::engine::{self, Control, Job, Measured, OpenPair, Starter, turns};
use crate::job::{
    Decision, EnclosingLab, FinishedRun, Journal, Observers, Place, ResultAssembler, RunConfig, RunOutcome, Session,
    WatcherOverhead, activity, interrupt_flag, memory, show, tell,
};
use crate::kernel::Info;
use crate::layout::{Layout, Role, order};
use crate::plan::{Plan, point_name};
use crate::result::{Command, CountedPhase, CountersRecord, Headline, ResultFile};
use crate::text;

/// The runs so far.
pub(crate) struct Runs<'a> {
    session: &'a Session<'a>,
    observers: Arc<Observers>,
    /// Where the watchers' wake-ups began on this rank.
    watcher: WatcherOverhead,
    /// Who changes settings, where several take turns.
    tuner: Option<Tuner<'a>>,
    assembler: ResultAssembler<'a>,
    /// On rank 0 of a sweep, where finished runs are kept.
    journal: Option<Journal>,
    /// The runs of a sweep that were finished before; on every rank.
    known: Vec<Place>,
    /// When the first one began that is made here, how many of them are over, and how long these were to take.
    begun: Instant,
    over: (usize, f64),
}

impl<'a> Runs<'a> {
    pub(crate) fn new(session: &'a Session<'a>) -> Self {
        let lab = Arc::new(EnclosingLab::find(session.root, session.request.calibration.is_some()));
        let observers = Observers::of(session, &lab);
        let watcher = WatcherOverhead::begin(session.monitor);
        let (assembler, known) = (ResultAssembler::new(session, lab), Vec::new());
        let (begun, over) = (Instant::now(), (0, 0.0));
        Runs { session, observers, watcher, tuner: None, assembler, journal: None, known, begun, over }
    }

    /// Makes all of them, shows what they gave, and gives the exit code.
    pub(crate) fn make(mut self, networks: &mut Networks<'_>) -> u8 {
        match Tuner::begin(networks.bootstrap(), self.session) {
            Ok(Ok(tuner)) => self.tuner = tuner,
            Ok(Err(why)) => {
                if self.session.root {
                    eprintln!("tailback: error: {why}");
                }
                return 2;
            }
            Err(error) => give_up(networks.bootstrap(), &error),
        }
        self.assembler.configs = self.configs(networks.variants());
        if self.session.decision.command == Command::Sweep && !self.begin_journal(networks.bootstrap()) {
            return 2;
        }
        self.measured(networks).map_or(0, |file| {
            self.assembler.say_rest(&file);
            show(self.session.request, &file)
        })
    }

    /// Opens the journal of a sweep, whose runs may be known from an earlier job; false where rank 0 said why not. Collective
    /// over the job.
    fn begin_journal(&mut self, bootstrap: &mut dyn Bootstrap) -> bool {
        let opened = self.session.root.then(|| Journal::open(self.session, &self.assembler.configs));
        let mine = opened.as_ref().map(|opened| {
            opened
                .as_ref()
                .map(|journal| journal.as_ref().map(Journal::known).unwrap_or_default())
                .map_err(Clone::clone)
        });
        match tell::<std::result::Result<Vec<Place>, String>>(bootstrap, mine.as_ref()) {
            Ok(Ok(known)) => {
                self.known = known;
                self.journal = opened.and_then(std::result::Result::ok).flatten();
                if self.session.root && self.session.request.resume.is_some() {
                    let all = self.assembler.configs.len() * self.session.placements() as usize;
                    self.session.request.say(&format!("{} of {all} runs are finished and kept", self.known.len()));
                }
                true
            }
            Ok(Err(why)) => {
                if self.session.root {
                    eprintln!("tailback: error: {why}");
                }
                false
            }
            Err(error) => give_up(bootstrap, &error),
        }
    }

    /// Makes all of them, and gives what they gave, on rank 0.
    pub(crate) fn measured(&mut self, networks: &mut Networks<'_>) -> Option<ResultFile> {
        self.assembler.configs = self.configs(networks.variants());
        if self.session.root && !self.assembler.is_part {
            self.session.request.say(&format!("seed {}", self.session.seed));
            if !self.session.decision.plan.sizes.is_empty() {
                self.session.request.say(&sizes_said(self.session, self.assembler.configs.len()));
            } else if let several @ [_, _, ..] = &self.assembler.configs[..] {
                let point = |config: &RunConfig| point_name(&self.session.mixes[config.mix].point);
                let is_sweep = !self.session.decision.plan.sweep.is_empty();
                let label = |config: &RunConfig| match is_sweep {
                    true => point(config),
                    false => format!("over {}", self.assembler.label(*config)),
                };
                let names: Vec<String> = several.iter().map(label).collect();
                let (count, names) = (names.len(), names.join("; "));
                let takes = self.expected().map(|takes| format!(", {takes} in all")).unwrap_or_default();
                self.session.request.say(&format!("{count} runs take turns on every placement{takes}: {names}"));
            }
            if self.session.decision.plan.each_congestor && self.session.mixes.len() > 1 {
                let share = match self.session.decision.plan.each_own_share {
                    true => "a congestor by itself loads the nodes that it has among all; the others rest",
                    false => "a congestor by itself loads all congestor nodes (each=share: its own share of them)",
                };
                self.session.request.say(share);
            }
        }
        self.begun = Instant::now();
        for index in 0.. {
            let layout = self.layout(index, &self.session.decision.plan);
            let parts = match &self.session.decision.plan {
                plan if plan.sweep.is_empty() => plan.load_fractions.len(),
                _ => self.session.mixes.len(),
            };
            let smaller: Vec<Layout> =
                self.session.mixes[..parts].iter().map(|mix| self.layout(index, &mix.plan)).collect();
            let notes = smaller.iter().chain([&layout]).flat_map(|of| &of.notes);
            notes.for_each(|note| self.assembler.note(note.clone()));
            self.assembler.begin(networks.bootstrap(), || assemble::placement(&layout, &self.session.decision.plan));
            if let Err(error) = self.placement(networks, index) {
                self.fail(networks.bootstrap(), &error);
            }
            let more = match self.goes_on(networks.bootstrap(), index + 1) {
                Ok(more) => more && !self.assembler.interrupted,
                Err(error) => self.fail(networks.bootstrap(), &error),
            };
            if !more {
                break;
            }
            self.say_rest(index + 1);
        }
        if let Some(tuner) = self.tuner.take() {
            match tuner.end(networks.bootstrap()) {
                Ok(record) => self.assembler.tuning = Some(record),
                Err(error) => self.fail(networks.bootstrap(), &error),
            }
        }
        self.assembler.file()
    }

    /// How long a sweep takes, in words.
    fn expected(&self) -> Option<String> {
        let points = self.assembler.configs.iter().map(|of| &self.session.mixes[of.mix].plan);
        (!self.session.decision.plan.sweep.is_empty()).then(|| whole_sweep(self.session, points))
    }

    /// How long a run of a sweep takes once it is connected, as was said before: it keeps to that.
    fn length_s(&self, index: u32, config: RunConfig) -> Option<f64> {
        let Session { decision, mixes, .. } = self.session;
        let plan = &mixes[config.mix].plan;
        let seed = self.session.placement(index).own_seed();
        keeps_time(decision.command, plan).then(|| engine::expected_s(plan, seed, self.session.grain()))
    }

    /// What the runs before took less than was said, shared by all that are to come. On virtual time each has its own: it is the
    /// same whatever was made before it.
    fn catch_up_s(&self) -> f64 {
        if self.session.request.settings.machine.is_some() {
            return 0.0;
        }
        let all = self.assembler.configs.len() * self.session.placements() as usize;
        let left = all.saturating_sub(self.known.len() + self.over.0).max(1);
        (self.over.1 - self.begun.elapsed().as_secs_f64()) / left as f64
    }

    /// What the first placement of a sweep took is what the others take: the network and the machine are known by then.
    fn say_rest(&self, done: u32) {
        let (runs, placements) = (self.assembler.configs.len(), self.session.placements());
        let made = (0..runs).filter(|at| !self.known.contains(&(0, *at))).count();
        let left = (1..placements).flat_map(|of| (0..runs).map(move |at| (of, at)));
        let left = left.filter(|place| !self.known.contains(place)).count();
        if done == 1 && made > 0 && left > 0 && self.session.root && !self.session.decision.plan.sweep.is_empty() {
            let took = self.begun.elapsed().as_secs_f64();
            let (took, rest) = (text::duration(1e9 * took), text::duration(1e9 * took / made as f64 * left as f64));
            self.session.request.say(&format!("placement 1 of {placements} took {took}: about {rest} more"));
        }
    }

    /// All runs: over every network, beside every load, with every setting.
    fn configs(&self, variants: &[Variant]) -> Vec<RunConfig> {
        let settings = self.session.request.tuning.as_ref().map_or(1, |of| of.settings.len());
        let each = |(variant, mix)| (0..settings).map(move |setting| RunConfig { variant, mix, setting });
        self.session.runs(variants).into_iter().flat_map(each).collect()
    }

    fn layout(&self, index: u32, plan: &Plan) -> Layout {
        self.session.layout(index, plan).expect("the first placement was possible, and so are the others")
    }

    /// Every run on one placement, in an order that is balanced over placements.
    fn placement(&mut self, networks: &mut Networks<'_>, index: u32) -> Result<()> {
        if self.session.request.jobs > 1 {
            return self.side_by_side(networks, index);
        }
        for at in self.turns(index) {
            let config = self.assembler.configs[at];
            if let Some(tuner) = &mut self.tuner {
                let put = tuner.put(networks.bootstrap(), config.setting, index)?;
                self.assembler.tuning = self.session.root.then(|| tuner.record.clone());
                if let Err(why) = put {
                    self.assembler.interrupted = true;
                    if self.session.root {
                        self.assembler.tell(&why);
                    }
                    break;
                }
            }
            if !self.take_known(networks, (index, at)) {
                self.run_one(networks, (index, at))?;
            }
            if self.assembler.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// The same where they are simulated, several at a time: each is a job of its own, whenever it is made, and taken in its turn.
    fn side_by_side(&mut self, networks: &mut Networks<'_>, index: u32) -> Result<()> {
        let Some(ahead) = networks.ahead() else {
            return Err(Error::Setup("runs at a time are of a simulated network".into()));
        };
        let (session, configs) = (self.session, self.assembler.configs.clone());
        let turns: Vec<Place> = self.turns(index).into_iter().map(|at| (index, at)).collect();
        let planned = |(number, place): (u64, &Place)| {
            let config = configs[place.1];
            let layout = self.layout(index, &session.mixes[config.mix].plan);
            let control = self.control(index, config, &layout);
            (number, *place, layout, control)
        };
        let left = (0..).zip(&turns).filter(|(_, place)| !self.known.contains(place));
        let left: Vec<(u64, Place, Layout, Control)> = left.map(planned).collect();
        let make = |(number, place, layout, control): &(u64, Place, Layout, Control)| {
            let config = configs[place.1];
            let run = PlacementRun::of(session, (index, config), layout, control.clone(), None);
            let role = |rank| own_settings(session, layout.role(rank));
            ahead.open(*number, config.variant, &role, &|bootstrap, networks| run.measure(bootstrap, networks))
        };
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..session.request.jobs.min(left.len()) {
                let (sender, left, next, make) = (sender.clone(), &left, &next, &make);
                scope.spawn(move || {
                    while let Some(run) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody waits for it once another has failed.
                        let _ = sender.send((run.1, make(run)));
                    }
                });
            }
            drop(sender);
            let mut early = BTreeMap::new();
            for place in turns {
                if self.take_known(networks, place) {
                    continue;
                }
                let made = loop {
                    if let Some(made) = early.remove(&place) {
                        break made;
                    }
                    let (of, made) = receiver.recv().expect("a thread makes every run");
                    early.insert(of, made);
                };
                networks.pass_over();
                // What has not begun is left.
                let (outcome, simulated) = made.inspect_err(|_| next.store(left.len(), Ordering::Relaxed))?;
                let (counters, activity, notes) = (CountersRecord::default(), Vec::new(), Vec::new());
                self.end(place, FinishedRun { outcome, counters, activity, notes, simulated: Some(simulated) });
                if self.assembler.interrupted {
                    next.store(left.len(), Ordering::Relaxed);
                    break;
                }
            }
            Ok(())
        })
    }

    /// Takes a run that was finished by an earlier job; false where it was not.
    fn take_known(&mut self, networks: &mut Networks<'_>, place: Place) -> bool {
        let is_known = self.known.contains(&place);
        if is_known {
            networks.pass_over();
            if let Some(journal) = &self.journal {
                let run = journal.run(self.session, self.assembler.configs[place.1], place);
                self.take(place, run);
            }
        }
        is_known
    }

    /// The order of the runs on a placement. The points of a sweep are dealt out by the seed first: values that follow each
    /// other are not to be measured one after the other.
    fn turns(&self, index: u32) -> Vec<usize> {
        let runs = self.assembler.configs.len();
        let balanced = turns(runs, index);
        if self.session.decision.plan.sweep.is_empty() {
            return balanced;
        }
        let drawn = order(self.session.seed, 0, runs);
        balanced.into_iter().map(|at| drawn[at]).collect()
    }

    /// One of them.
    fn run_one(&mut self, networks: &mut Networks<'_>, place: Place) -> Result<()> {
        let session = self.session;
        let (index, config) = (place.0, self.assembler.configs[place.1]);
        let layout = &self.layout(index, &session.mixes[config.mix].plan);
        let keep = |descriptions: [&Description; 2], measured: &[Measured]| {
            self.assembler.keep_part(config, index, layout, descriptions, measured);
        };
        let keeps = self.assembler.keeps().then_some(&keep as KeepRun<'_>);
        let control = self.control(index, config, layout);
        let run = PlacementRun::of(session, (index, config), layout, control, keeps);
        let role = |rank| own_settings(session, layout.role(rank));
        let outcome = networks.open(config.variant, &role, &|bootstrap, networks| run.measure(bootstrap, networks))?;
        let mut counters = CountersRecord::default();
        let notes = session.host_counters.collect(networks.bootstrap(), &mut counters)?;
        if session.request.settings.machine.is_none() {
            self.assembler.watch = self.watcher.collect(networks.bootstrap(), session.monitor)?;
            self.assembler.memory = memory(networks.bootstrap())?;
        }
        let activity = match self.observers.activity() {
            Some(mine) => activity(networks.bootstrap(), &mine)?,
            None => Vec::new(),
        };
        self.over =
            (self.over.0 + 1, self.over.1 + self.length_s(index, config).map_or(0.0, |said| said + PLACEMENT_S));
        let simulated = networks.simulated();
        self.end(place, FinishedRun { outcome, counters, activity, notes, simulated });
        Ok(())
    }

    /// Keeps what a run gave.
    fn end(&mut self, place: Place, run: FinishedRun) {
        self.assembler.interrupted = run.outcome.interrupted;
        if let Some(trouble) = &run.outcome.trouble {
            self.assembler.tell(trouble);
        }
        if !self.session.root {
            return;
        }
        if let Some(journal) = self.journal.as_mut().filter(|_| !run.outcome.interrupted)
            && let Some(problem) = journal.keep(place, &run)
        {
            self.session.request.say(&problem);
        }
        self.take(place, run);
        if !self.assembler.interrupted {
            self.assembler.keep();
        }
    }

    /// Takes what a run gave, now or before; on rank 0.
    fn take(&mut self, (index, at): Place, run: FinishedRun) {
        let FinishedRun { outcome, counters, activity, notes, simulated } = run;
        let config = self.assembler.configs[at];
        let layout = self.layout(index, &self.session.mixes[config.mix].plan);
        let assembler = &mut self.assembler;
        notes.into_iter().for_each(|note| assembler.note(note));
        for CountedPhase { phase, devices } in counters.phases {
            devices.into_iter().for_each(|device| assembler.counters.add(phase.clone(), device));
        }
        assembler.activity.extend(activity);
        assembler.simulated(simulated);
        assembler.add(config, index, &layout, outcome);
    }

    /// Whether another placement follows the `done` there are. Rank 0 decides where the figures do.
    fn goes_on(&self, bootstrap: &mut dyn Bootstrap, done: u32) -> Result<bool> {
        let plan = &self.session.decision.plan;
        let Some(precision) = plan.precision.filter(|_| done >= self.session.placements()) else {
            return Ok(done < self.session.placements());
        };
        let wide = |of: &Headline| {
            // Half of the interval on a logarithmic scale: 0.1 is +-10%.
            of.spread.interval.is_none_or(|interval| (interval.high / interval.low).ln() / 2.0 > precision)
        };
        let wide = self.assembler.headlines().any(|of| wide(&of));
        let more = wide && self.assembler.spent_s() < plan.longest_s;
        let told = bootstrap.broadcast(vec![u8::from(more)])?;
        Ok(told.first() == Some(&1))
    }

    /// How a run on a placement is followed and stopped.
    fn control(&self, index: u32, config: RunConfig, layout: &Layout) -> Control {
        let over = (self.assembler.configs.len() > 1).then(|| self.assembler.label(config));
        let (monitor, interrupt) = (Arc::clone(self.session.monitor), interrupt_flag());
        let of = self.session.placements().max(index + 1);
        let placement = (of > 1).then_some((index + 1, of));
        let (observer, starter) = (Arc::clone(&self.observers) as _, self.starter(layout));
        let length = self.length_s(index, config).map(|said| nanos(said + self.catch_up_s()));
        Control { monitor, interrupt, observer, over, placement, grain: self.session.grain(), length, starter }
    }

    /// What starts the plan's application on the victims of a placement.
    fn starter(&self, layout: &Layout) -> Option<Arc<dyn Starter>> {
        let application = self.session.decision.plan.application.as_ref()?;
        let victims = Victims::of(layout, &self.session.hosts, application.per_node);
        Some(Arc::new(Repetitions::new(application, victims)))
    }

    /// Ends the job because of an error on this rank; on rank 0, after it has shown what there is.
    fn fail(&self, bootstrap: &dyn Bootstrap, error: &Error) -> ! {
        if let Some(file) = self.assembler.unfinished().filter(|_| !self.assembler.is_part) {
            show(self.session.request, &file);
        }
        give_up(bootstrap, error)
    }
}

/// Hears on rank 0 of the canaries' network, the congestors', and all that was measured so far.
type KeepRun<'a> = &'a dyn Fn([&Description; 2], &[Measured]);

/// The plan over one network.
struct PlacementRun<'a> {
    decision: &'a Decision,
    /// The decision's, with the congestors of this run.
    plan: &'a Plan,
    layout: &'a Layout,
    seed: u64,
    control: Control,
    /// Who keeps what is measured, should the job not come to its end.
    keep: Option<KeepRun<'a>>,
}

/// What the ranks of a role have of their own.
fn own_settings(session: &Session<'_>, role: Role) -> RoleSettings {
    let roles = &session.request.settings.roles;
    match role {
        Role::Canary => roles.canary.clone(),
        Role::Congestor(_) => roles.congestor.clone(),
        Role::Idle => RoleSettings::default(),
    }
}

impl<'a> PlacementRun<'a> {
    fn of(
        session: &'a Session<'_>,
        (index, config): (u32, RunConfig),
        layout: &'a Layout,
        control: Control,
        keep: Option<KeepRun<'a>>,
    ) -> Self {
        let (decision, plan) = (&session.decision, &session.mixes[config.mix].plan);
        PlacementRun { decision, plan, layout, seed: session.placement(index).own_seed(), control, keep }
    }

    /// Does it, as one rank. Collective over the job.
    fn measure(&self, bootstrap: &mut dyn Bootstrap, networks: &mut OpenPair<'_>) -> Result<RunOutcome> {
        let Decision { command, duration_s, .. } = self.decision;
        let (canaries, congestors) = self.decision.kernels(self.plan);
        if is_one_sided(&canaries) {
            networks.canaries.try_one_sided()?;
        }
        if is_one_sided(&congestors) {
            networks.congestors().try_one_sided()?;
        }
        let early = (networks.canaries.describe(), networks.congestors().describe());
        let keep = |measured: &[Measured]| {
            if let Some(keep) = self.keep {
                keep([&early.0, &early.1], measured);
            }
        };
        let job = Job::new(bootstrap, networks, self.plan, self.layout, self.seed, self.control.clone())?;
        let mut job = job.kept_by(&keep);
        let (phases, interrupted) = match command {
            Command::Run | Command::App | Command::Tune | Command::Sweep | Command::Burst => {
                engine::load_test(&mut job)?
            }
            Command::Calibrate => engine::under_load(&mut job)?,
            Command::Network => engine::network_test(&mut job)?,
            Command::Congest => engine::congest(&mut job, nanos(*duration_s))?,
            study => return Err(Error::Setup(format!("{study:?} is a study and has no plan"))),
        };
        let trouble = job.finish()?;
        // At the end: what grew with the need, such as connections, is then known.
        let (description, congestors) = (networks.canaries.describe(), networks.congestors().describe());
        Ok(RunOutcome { description, congestors, phases, interrupted, trouble })
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((1e9 * seconds.max(0.0)) as u64)
}

fn is_one_sided(kernels: &[Info]) -> bool {
    kernels.iter().flat_map(|info| info.needs).any(|operation| matches!(operation, Operation::Put | Operation::Get))
}
