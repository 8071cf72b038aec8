//! The runs of a job: the same plan over every network, placement by placement, into one result.
//!
//! Networks take turns on every placement, so that what changes with time is no difference between them. Every network
//! was opened once before the first placement, so what cannot be run is known by then. Should a later one fail all the
//! same, what was measured before is kept: rank 0 writes the result file after each of them, and between phases.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Description, Error, Monitor, Result};

use super::enclosing_lab::EnclosingLab;
use super::observers::observers;
use super::placement_run::{KeepRun, PlacementRun};
use super::prepare::Session;
use super::result_assembler::{ResultAssembler, RunConfig};
use super::show::show;
use super::watcher_overhead::{self, WatcherOverhead};
use super::{Request, interrupt};
use crate::assemble;
use crate::backend::{Networks, RoleSettings, Variant, give_up};
use crate::engine::{Control, Measured, OnEnd, OnPhase, REAL_GRAIN, VIRTUAL_GRAIN};
use crate::layout::{Layout, Role};
use crate::plan::Plan;
use crate::result::{Headline, ResultFile};

/// The runs so far.
pub(super) struct Runs<'a> {
    session: &'a Session,
    request: &'a Request,
    monitor: &'a Arc<Monitor>,
    on_phase: OnPhase,
    on_end: OnEnd,
    /// Where the watchers' wake-ups began on this rank.
    watcher: WatcherOverhead,
    root: bool,
    assembler: ResultAssembler<'a>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(session: &'a Session, request: &'a Request, monitor: &'a Arc<Monitor>, root: bool) -> Self {
        let lab = Arc::new(EnclosingLab::find(root, request.calibration.is_some()));
        let (on_phase, on_end) = observers(request, root, &lab, &session.host_counters);
        let watcher = WatcherOverhead::begin(monitor);
        let assembler = ResultAssembler::new((session, request), monitor, lab, root);
        Runs { session, request, monitor, on_phase, on_end, watcher, root, assembler }
    }

    /// Makes all of them, shows what they gave, and gives the exit code.
    pub(super) fn make(mut self, networks: &mut Networks<'_>) -> u8 {
        self.measured(networks).map_or(0, |file| {
            self.assembler.say_rest(&file);
            show(self.request, &file)
        })
    }

    /// Makes all of them, and gives what they gave, on rank 0.
    pub(super) fn measured(&mut self, networks: &mut Networks<'_>) -> Option<ResultFile> {
        let mixes = 0..self.session.mixes.len();
        let configs =
            |variant: &Variant| mixes.clone().map(|mix| RunConfig { variant: *variant, mix }).collect::<Vec<_>>();
        self.assembler.configs = networks.variants().iter().flat_map(configs).collect();
        if self.root && !self.assembler.is_part {
            self.request.say(&format!("seed {}", self.session.seed));
            if let several @ [_, _, ..] = &self.assembler.configs[..] {
                let label = |config: &RunConfig| format!("over {}", self.assembler.label(*config));
                let names: Vec<String> = several.iter().map(label).collect();
                let (count, names) = (names.len(), names.join("; "));
                self.request.say(&format!("{count} runs take turns on every placement: {names}"));
            }
        }
        for index in 0.. {
            let layout = self.layout(index, &self.session.decision.plan);
            layout.notes.iter().for_each(|note| self.assembler.note(note.clone()));
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
        }
        self.assembler.file()
    }

    fn layout(&self, index: u32, plan: &Plan) -> Layout {
        self.session.layout(index, plan).expect("the first placement was possible, and so are the others")
    }

    /// Every run on one placement: forwards on one, backwards on the next, so that none is always first.
    fn placement(&mut self, networks: &mut Networks<'_>, index: u32) -> Result<()> {
        let mut configs = self.assembler.configs.clone();
        if index % 2 == 1 {
            configs.reverse();
        }
        for config in configs {
            self.run_one(networks, index, config)?;
            if self.assembler.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// One of them.
    fn run_one(&mut self, networks: &mut Networks<'_>, index: u32, config: RunConfig) -> Result<()> {
        let session = self.session;
        let layout = &self.layout(index, &session.mixes[config.mix].plan);
        let keep = |canaries: &Description, congestors: &Description, measured: &[Measured]| {
            self.assembler.keep_part(config, (index, layout), (canaries, congestors), measured);
        };
        let keeps = self.assembler.keeps().then_some(&keep as KeepRun<'_>);
        let run = self.placement_run(index, config, layout, keeps);
        let role = |rank| self.role(layout.role(rank));
        let outcome = networks.open(config.variant, &role, &|bootstrap, networks| run.measure(bootstrap, networks))?;
        let assembler = &mut self.assembler;
        assembler.interrupted = outcome.interrupted;
        for problem in session.host_counters.collect(networks.bootstrap(), &mut assembler.counters)? {
            assembler.note(problem);
        }
        if self.request.settings.machine.is_none() {
            assembler.watch = self.watcher.collect(networks.bootstrap(), self.monitor)?;
            assembler.memory = watcher_overhead::memory(networks.bootstrap())?;
        }
        if let Some(trouble) = &outcome.trouble {
            assembler.tell(trouble);
        }
        if self.root {
            assembler.simulated(networks);
            assembler.add(config, index, layout, outcome);
            if !assembler.interrupted {
                assembler.keep();
            }
        }
        Ok(())
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

    fn placement_run<'m>(
        &self,
        index: u32,
        config: RunConfig,
        layout: &'m Layout,
        keep: Option<KeepRun<'m>>,
    ) -> PlacementRun<'m>
    where
        'a: 'm,
    {
        let over = (self.assembler.configs.len() > 1).then(|| self.assembler.label(config));
        let (monitor, interrupt) = (Arc::clone(self.monitor), interrupt::flag());
        let of = self.session.placements().max(index + 1);
        let placement = (of > 1).then_some((index + 1, of));
        let grain = if self.request.settings.machine.is_some() { VIRTUAL_GRAIN } else { REAL_GRAIN };
        let (on_phase, on_end) = (Arc::clone(&self.on_phase), Arc::clone(&self.on_end));
        let starter = self.session.starter(layout);
        let control = Control { monitor, interrupt, on_phase, on_end, over, placement, grain, starter };
        let seed = self.session.placement(index).own_seed();
        let (decision, plan) = (&self.session.decision, &self.session.mixes[config.mix].plan);
        PlacementRun { decision, plan, layout, seed, control, keep }
    }

    /// Ends the job because of an error on this rank; on rank 0, after it has shown what there is.
    fn fail(&self, bootstrap: &dyn Bootstrap, error: &Error) -> ! {
        if let Some(file) = self.assembler.unfinished().filter(|_| !self.assembler.is_part) {
            show(self.request, &file);
        }
        give_up(bootstrap, error)
    }
}
