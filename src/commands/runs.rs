//! The runs of a job: the same plan over every network, placement by placement, into one result.
//!
//! Networks take turns on every placement, so that what changes with time is no difference between them. Every network
//! was opened once before the first placement, so what cannot be run is known by then. Should a later one fail all the
//! same, what was measured before is kept: rank 0 writes the result file after each of them, and between phases.

use std::sync::Arc;

use tailback_transport::{Bootstrap, Description, Error, Monitor, Result};

use super::around::Around;
use super::findings::{Findings, Turn};
use super::measure::{KeepRun, Measure};
use super::observers::observers;
use super::prepare::Session;
use super::show::show;
use super::watching::{self, Watching};
use super::{Request, interrupt};
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
    watching: Watching,
    root: bool,
    findings: Findings<'a>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(session: &'a Session, request: &'a Request, monitor: &'a Arc<Monitor>, root: bool) -> Self {
        let around = Arc::new(Around::find(root, request.calibration.is_some()));
        let (on_phase, on_end) = observers(request, root, &around, &session.counting);
        let watching = Watching::begin(monitor);
        let findings = Findings::new((session, request), monitor, around, root);
        Runs { session, request, monitor, on_phase, on_end, watching, root, findings }
    }

    /// Makes all of them, shows what they gave, and gives the exit code.
    pub(super) fn make(mut self, networks: &mut Networks<'_>) -> u8 {
        self.measured(networks).map_or(0, |file| {
            self.findings.say_rest(&file);
            show(self.request, &file)
        })
    }

    /// Makes all of them, and gives what they gave, on rank 0.
    pub(super) fn measured(&mut self, networks: &mut Networks<'_>) -> Option<ResultFile> {
        let mixes = 0..self.session.mixes.len();
        let turns = |variant: &Variant| mixes.clone().map(|mix| Turn { variant: *variant, mix }).collect::<Vec<_>>();
        self.findings.turns = networks.variants().iter().flat_map(turns).collect();
        if self.root && !self.findings.is_part {
            self.request.say(&format!("seed {}", self.session.seed));
            if let several @ [_, _, ..] = &self.findings.turns[..] {
                let label = |turn: &Turn| format!("over {}", self.findings.label(*turn));
                let names: Vec<String> = several.iter().map(label).collect();
                let (count, names) = (names.len(), names.join("; "));
                self.request.say(&format!("{count} runs take turns on every placement: {names}"));
            }
        }
        for index in 0.. {
            let layout = self.layout(index, &self.session.decision.plan);
            layout.notes.iter().for_each(|note| self.findings.note(note.clone()));
            self.findings.begin(networks.bootstrap(), &layout);
            if let Err(error) = self.placement(networks, index) {
                self.fail(networks.bootstrap(), &error);
            }
            let more = match self.goes_on(networks.bootstrap(), index + 1) {
                Ok(more) => more && !self.findings.interrupted,
                Err(error) => self.fail(networks.bootstrap(), &error),
            };
            if !more {
                break;
            }
        }
        self.findings.file()
    }

    fn layout(&self, index: u32, plan: &Plan) -> Layout {
        self.session.layout(index, plan).expect("the first placement was possible, and so are the others")
    }

    /// Every turn on one placement: forwards on one, backwards on the next, so that none is always first.
    fn placement(&mut self, networks: &mut Networks<'_>, index: u32) -> Result<()> {
        let mut turns = self.findings.turns.clone();
        if index % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            self.turn(networks, index, turn)?;
            if self.findings.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// One of them.
    fn turn(&mut self, networks: &mut Networks<'_>, index: u32, turn: Turn) -> Result<()> {
        let session = self.session;
        let layout = &self.layout(index, &session.mixes[turn.mix].plan);
        let keep = |canaries: &Description, congestors: &Description, measured: &[Measured]| {
            self.findings.keep_part(turn, (index, layout), (canaries, congestors), measured);
        };
        let keeps = self.findings.keeps().then_some(&keep as KeepRun<'_>);
        let measure = self.measure(index, turn, layout, keeps);
        let role = |rank| self.role(layout.role(rank));
        let outcome = networks.open(turn.variant, &role, &|bootstrap, networks| measure.run(bootstrap, networks))?;
        let findings = &mut self.findings;
        findings.interrupted = outcome.interrupted;
        for problem in session.counting.collect(networks.bootstrap(), &mut findings.counters)? {
            findings.note(problem);
        }
        if self.request.settings.machine.is_none() {
            findings.watch = self.watching.collect(networks.bootstrap(), self.monitor)?;
            findings.memory = watching::memory(networks.bootstrap())?;
        }
        if let Some(trouble) = &outcome.trouble {
            findings.tell(trouble);
        }
        if self.root {
            findings.simulated(networks);
            findings.add(turn, index, layout, outcome);
            if !findings.interrupted {
                findings.keep();
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
        let wide = self.findings.headlines().any(|of| wide(&of));
        let more = wide && self.findings.spent_s() < plan.longest_s;
        let told = bootstrap.broadcast(vec![u8::from(more)])?;
        Ok(told.first() == Some(&1))
    }

    fn measure<'m>(&self, index: u32, turn: Turn, layout: &'m Layout, keep: Option<KeepRun<'m>>) -> Measure<'m>
    where
        'a: 'm,
    {
        let over = (self.findings.turns.len() > 1).then(|| self.findings.label(turn));
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

    /// Ends the job because of an error on this rank; on rank 0, after it has shown what there is.
    fn fail(&self, bootstrap: &dyn Bootstrap, error: &Error) -> ! {
        if let Some(file) = self.findings.unfinished().filter(|_| !self.findings.is_part) {
            show(self.request, &file);
        }
        give_up(bootstrap, error)
    }
}
