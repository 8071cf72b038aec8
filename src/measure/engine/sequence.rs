//! The order of phases. In blocks, all canaries are measured isolated (A) and loaded (B) as ABBA or its mirror, so that a
//! drift of the machine counts for both states alike; without, all baselines come first, then each canary under load, as
//! GPCNeT does it.
//!
//! What is measured without a change of state is one stretch: the load comes up once, canary follows canary under it, and
//! results are collected when it is over.

use std::cell::Cell;

use tailback_transport::{Nanos, Result};

use super::application::repetition;
use super::burst::Bursts;
use super::canary::{CanaryPhase, Passes};
use super::congestor::CongestorPhase;
use super::onset;
use super::order::{Part, Stretch, stretches};
use super::timetable::{Due, Timetable};
use super::{EncodedTally, Job, LoadState, Measured, PhaseId, Quickest, Tally};
use crate::layout::Role;
use crate::stats::Direction;

/// What a sequence gives on rank 0: the phases that were completed, and whether the user cut it short.
type Outcome = Result<(Vec<Measured>, bool)>;

/// So many rings share a block's time: enough that placements do not differ by which rings were drawn, few enough that
/// a loaded block has time for each.
fn rings_a_block(direction: Direction) -> usize {
    match direction {
        Direction::Latency => 6,
        Direction::Bandwidth => 3,
    }
}

/// The load test on one placement: every canary alone and under load.
pub fn load_test(job: &mut Job<'_>) -> Outcome {
    let loads = !job.plan.congestors.is_empty();
    // Where nothing loads, isolated blocks stand where they stood.
    in_states(job, |phase| phase == LoadState::Isolated || loads)
}

/// The half of it that is under load; where nothing loads, the other half.
pub fn under_load(job: &mut Job<'_>) -> Outcome {
    let only = if job.plan.congestors.is_empty() { LoadState::Isolated } else { LoadState::Loaded };
    in_states(job, |phase| phase == only)
}

/// Those parts of the load test on one placement that are in a state that is wanted.
fn in_states(job: &mut Job<'_>, wanted: impl Fn(LoadState) -> bool) -> Outcome {
    let mut sequence = Sequence::new(job);
    let plan = sequence.job.plan;
    sequence.budget = nanos(plan.block_s());
    let alone = if plan.congestors_alone { sequence.job.present.clone() } else { Vec::new() };
    let canaries = plan.canaries.len();
    sequence.warm_up()?;
    let seed = sequence.job.seed();
    if let Some(length) = sequence.job.control.length.filter(|_| plan.blocks > 1) {
        let (now, grain) = (sequence.job.network.world().now(), sequence.job.control.grain);
        sequence.timetable = Some(Timetable::of(plan, seed, grain, now, length));
    }
    sequence.probe()?;
    if plan.blocks > 1 {
        sequence.passes = Passes::Timed;
        for stretch in stretches(plan.blocks as usize, canaries, seed).into_iter().filter(|of| wanted(of.phase)) {
            sequence.stretch(&stretch)?;
        }
    } else if wanted(LoadState::Isolated) {
        for test in 0..canaries {
            sequence.stretch(&Stretch::of(LoadState::Isolated, Part { canary: Some(test), ..Part::default() }))?;
        }
    }
    for kind in (0..alone.len()).filter(|&kind| alone[kind]) {
        sequence.stretch(&Stretch::of(LoadState::Alone, Part { congestor: Some(kind), ..Part::default() }))?;
    }
    if plan.blocks == 1 && wanted(LoadState::Loaded) {
        for test in 0..canaries {
            sequence.stretch(&Stretch::of(LoadState::Loaded, Part { canary: Some(test), ..Part::default() }))?;
        }
    }
    Ok(sequence.outcome())
}

/// Every canary, without load.
pub fn network_test(job: &mut Job<'_>) -> Outcome {
    let mut sequence = Sequence::new(job);
    for test in 0..sequence.job.plan.canaries.len() {
        sequence.stretch(&Stretch::of(LoadState::Isolated, Part { canary: Some(test), ..Part::default() }))?;
    }
    Ok(sequence.outcome())
}

/// Congestors only, for a time or until interrupted.
pub fn congest(job: &mut Job<'_>, duration: Nanos) -> Outcome {
    let mut sequence = Sequence::new(job);
    sequence.budget = duration;
    sequence.stretch(&Stretch::of(LoadState::Congest, Part::default()))?;
    Ok(sequence.outcome())
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

struct Sequence<'j, 'a> {
    job: &'j mut Job<'a>,
    /// How long a part may take that is not an application's.
    budget: Nanos,
    passes: Passes,
    /// What is still to come, where the run has a length to keep.
    timetable: Option<Timetable<'a>>,
    measured: Vec<Measured>,
    /// For each canary, whether there was load since it last ran alone.
    after_load: Vec<bool>,
    /// How long an iteration of this rank's congestor takes at full rate, where it has a lower one.
    full_rate: Cell<Option<Nanos>>,
    /// Whether that is being measured.
    probing: bool,
    /// When load is on, in the stretch under way, and the most that a clock is off.
    bursts: Option<(Bursts, Nanos)>,
    /// How many tests were begun.
    phases: u64,
    interrupted: bool,
}

impl<'j, 'a> Sequence<'j, 'a> {
    fn new(job: &'j mut Job<'a>) -> Self {
        let budget = nanos(job.plan.budget_s);
        let after_load = vec![false; job.plan.canaries.len()];
        Sequence {
            job,
            budget,
            passes: Passes::Counted,
            timetable: None,
            measured: Vec::new(),
            after_load,
            full_rate: Cell::new(None),
            probing: false,
            bursts: None,
            phases: 0,
            interrupted: false,
        }
    }

    /// Repetitions of an application before anything counts: its files are then where they are needed.
    fn warm_up(&mut self) -> Result<()> {
        let times = self.job.plan.application.as_ref().map_or(0, |application| application.warm_up);
        let first = self.job.plan.canaries.iter().position(|test| test.kernel.is_application());
        let keep = self.job.keep.take();
        for _ in 0..times {
            self.stretch(&Stretch::of(LoadState::Isolated, Part { canary: first, ..Part::default() }))?;
            self.measured.clear();
        }
        self.job.keep = keep;
        Ok(())
    }

    /// All congestors at full rate, without canaries, where some have a lower one.
    fn probe(&mut self) -> Result<()> {
        if self.job.plan.congestors.iter().all(|test| test.rate == 1.0) {
            return Ok(());
        }
        let keep = self.job.keep.take();
        self.probing = true;
        self.stretch(&Stretch::of(LoadState::Alone, Part::default()))?;
        self.probing = false;
        self.measured.clear();
        self.job.keep = keep;
        Ok(())
    }

    /// How long a part may take.
    fn budget_of(&self, part: &Part, state: LoadState) -> Nanos {
        let plan = self.job.plan;
        match part.canary.map(|test| &plan.canaries[test]).filter(|test| test.kernel.is_application()) {
            Some(test) => nanos(plan.longest_block_s(test)),
            None => self.budget_in(state),
        }
    }

    /// How long a canary may take in a state.
    fn budget_in(&self, state: LoadState) -> Nanos {
        let share = state.of_test().map_or(1.0, |state| self.job.plan.share_of(state));
        Nanos((self.budget.0 as f64 * share) as u64)
    }

    fn outcome(self) -> (Vec<Measured>, bool) {
        (self.measured, self.interrupted)
    }

    /// One stretch from barrier to collected results. After an interruption nothing more is run, on any rank, and of a
    /// part that was cut short nothing is kept: it would be compared with whole ones. Only congestion has no planned end.
    fn stretch(&mut self, stretch: &Stretch) -> Result<()> {
        if self.interrupted {
            return Ok(());
        }
        let Stretch { phase, parts } = stretch;
        if let Some(timetable) = &mut self.timetable {
            match phase {
                LoadState::Alone => timetable.alone(self.probing),
                phase => timetable.stretch(*phase),
            }
        }
        let budget: u64 = parts.iter().map(|part| self.budget_of(part, *phase).0).sum();
        self.job.control.enter(&self.phase(stretch), Nanos(budget));
        self.interrupted = self.job.meet(false)?;
        if self.interrupted {
            return Ok(());
        }
        self.bursts = match self.job.plan.burst.filter(|_| *phase == LoadState::Loaded) {
            Some(burst) => Some(onset::agree(self.job.network, burst)?),
            None => None,
        };
        let tallies = match (phase, self.job.role) {
            (LoadState::Alone | LoadState::Congest, Role::Congestor(kind)) => self.congest(kind, parts[0].congestor)?,
            (LoadState::Alone | LoadState::Congest, _) => vec![self.tally().into()],
            (LoadState::Loaded, Role::Congestor(kind)) => self.load(kind, parts.len())?,
            (LoadState::Loaded, _) => {
                self.interrupted = self.job.meet(false)?;
                self.parts(parts, true)?
            }
            (LoadState::Isolated, _) => self.parts(parts, false)?,
        };
        self.interrupted |= self.job.meet(self.interrupted)?;
        if let Some((bursts, error)) = &mut self.bursts {
            *error = onset::error_since(self.job.network, bursts, *error)?;
        }
        self.job.control.observer.ends();
        self.collect(stretch, tallies)?;
        if *phase != LoadState::Isolated {
            self.after_load.fill(true);
        }
        Ok(())
    }

    fn collect(&mut self, stretch: &Stretch, tallies: Vec<EncodedTally>) -> Result<()> {
        let complete = match stretch.phase {
            LoadState::Alone => !self.interrupted,
            LoadState::Isolated | LoadState::Loaded | LoadState::Congest => true,
        };
        for (part, tally) in stretch.parts.iter().zip(tallies) {
            if let Some(tally) = tally.decode().collect(self.job.bootstrap)?.filter(|_| complete) {
                let Part { canary, congestor, block } = *part;
                let clock_error_ns = self.bursts.map_or(0, |(_, error)| error.0);
                self.measured.push(Measured { phase: stretch.phase, canary, congestor, block, clock_error_ns, tally });
            }
        }
        if let Some(keep) = self.job.keep.filter(|_| !self.measured.is_empty()) {
            keep(&self.measured);
        }
        Ok(())
    }

    fn phase(&self, stretch: &Stretch) -> PhaseId {
        let first = stretch.parts[0];
        let title = match (first.canary, first.congestor) {
            (Some(_), _) if stretch.parts.iter().any(|part| part.canary != first.canary) => {
                PhaseId::ALL_CANARIES.into()
            }
            (Some(test), _) => self.title(test),
            (_, Some(kind)) => self.job.plan.congestors[kind].title(),
            _ => "all congestors".into(),
        };
        self.job.control.phase(Some(stretch.phase), title)
    }

    fn title(&self, test: usize) -> String {
        self.job.plan.title(&self.job.plan.canaries[test])
    }

    fn tally(&self) -> Tally {
        Tally::new(self.job.plan.congestors.len())
    }

    /// Part by part, on ranks that do not congest. Everyone agrees on the end of each, so what was completed is the same
    /// on every rank. What is waiting to be collected is kept small.
    fn parts(&mut self, parts: &[Part], loaded: bool) -> Result<Vec<EncodedTally>> {
        let mut tallies = Vec::new();
        for part in parts {
            if self.interrupted {
                break;
            }
            let mut tally = self.tally();
            let state = if loaded { LoadState::Loaded } else { LoadState::Isolated };
            let due = self.timetable.as_mut().map(|timetable| timetable.part(state, part));
            if let Some(test) = part.canary {
                let control = &self.job.control;
                control.step(&control.phase(Some(state), self.title(test)));
            }
            let cut = match (part.canary, self.job.role) {
                (Some(test), Role::Canary) if self.job.plan.canaries[test].kernel.is_application() => {
                    self.repeat(loaded, &mut tally)
                }
                (Some(test), Role::Canary) => self.measure(test, state, due, &mut tally)?,
                _ => false,
            };
            self.interrupted = self.job.meet(cut)?;
            if !self.interrupted {
                tallies.push(tally.into());
            }
        }
        Ok(tallies)
    }

    /// Load without canaries, if this rank's kind is wanted.
    fn congest(&mut self, kind: usize, only: Option<usize>) -> Result<Vec<EncodedTally>> {
        let mut tally = self.tally();
        if only.is_none_or(|only| only == kind) {
            let started = self.job.network.world().now();
            let (mut loads, cut) = self.congestor(kind, None)?;
            self.interrupted = cut;
            tally = loads.pop().map_or(tally, |load| load.decode());
            tally.wall_ns = self.job.network.world().now().since(started).0;
        }
        Ok(vec![tally.into()])
    }

    /// Load during so many parts.
    fn load(&mut self, kind: usize, parts: usize) -> Result<Vec<EncodedTally>> {
        let (loads, cut) = self.congestor(kind, Some(parts))?;
        self.interrupted = cut;
        Ok(loads)
    }

    fn congestor(&mut self, kind: usize, parts: Option<usize>) -> Result<(Vec<EncodedTally>, bool)> {
        let Job { plan, control, network, congestor_network, .. } = &mut *self.job;
        let (test, kind) = (&plan.congestors[kind], (kind, plan.congestors.len()));
        let (full_rate, probe) = (&self.full_rate, self.probing);
        let bursts = self.bursts.map(|(bursts, _)| bursts).filter(|_| parts.is_some());
        let phase = CongestorPhase { test, kind, budget: self.budget, parts, full_rate, probe, bursts, control };
        match congestor_network {
            Some(other) => other.load(phase, Some(network.world())),
            None => network.load(phase, None),
        }
    }

    /// The application once, on the rank that starts it. True when that ends the job.
    fn repeat(&mut self, loaded: bool, tally: &mut Tally) -> bool {
        if !self.job.starts_application {
            return false;
        }
        let phase = if loaded { LoadState::Loaded } else { LoadState::Isolated };
        match repetition(&self.job.control, phase, tally) {
            Ok(()) => false,
            Err(why) => {
                self.job.trouble = Some(why);
                true
            }
        }
    }

    fn measure(&mut self, at: usize, state: LoadState, due: Option<Due>, tally: &mut Tally) -> Result<bool> {
        let test = &self.job.plan.canaries[at];
        let mut rings = self.job.rings(test);
        let pace = self.job.plan.pace_of(test);
        let passes = if pace.is_some() { Passes::Timed } else { self.passes };
        if passes == Passes::Timed {
            rings.truncate(rings_a_block(test.kernel.info().direction));
        }
        // Another schedule in every phase, and on every placement.
        self.phases += 1;
        let seed = self.job.seed() ^ (self.phases << 32);
        let loaded = state == LoadState::Loaded;
        let settle = !loaded && std::mem::take(&mut self.after_load[at]);
        let phase = CanaryPhase {
            test,
            largest_team: self.job.largest_team,
            rings: &rings,
            passes,
            budget: self.budget_in(state),
            due,
            all_rings: self.job.plan.finishes_a_measurement(),
            by_ring: self.job.plan.ring_histograms,
            fewest: self.job.plan.fewest_of_block(test),
            pace,
            seed,
            bursts: self.bursts.map(|(bursts, _)| bursts).filter(|_| loaded),
            settle: settle.then_some(Nanos(self.budget.0 / 2)),
            control: &self.job.control,
        };
        let finished = self.job.network.measure(phase)?;
        // Batches of passes tell something where there is nothing else that was repeated.
        let blocks = self.job.plan.blocks > 1;
        tally.canary = Some(if blocks { finished.samples.in_one() } else { finished.samples });
        tally.rings = finished.rings;
        if !finished.quickest.is_empty() {
            tally.quickest.push(Quickest { rank: self.job.bootstrap.rank().0, ns: finished.quickest });
        }
        tally.folded = finished.folded;
        tally.wall_ns = finished.wall.0;
        (tally.covered_ns, tally.rank_ns) = (finished.covered.0, finished.wall.0);
        tally.settled_ns = finished.settled.0;
        tally.warm_up = finished.warm_up;
        tally.kept = finished.kept;
        Ok(finished.interrupted)
    }
}
