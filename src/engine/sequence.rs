//! The order of phases. In blocks, each canary is measured isolated (A) and loaded (B) as ABBA or its mirror, so that a
//! drift of the machine counts for both states alike; without, all baselines come first, then each canary under load, as
//! GPCNeT does it.

use tailback_transport::{Bootstrap, Group, Nanos, Result, Transport};

use super::canary::{CanaryRun, Passes};
use super::congestor::{CongestorRun, Until};
use super::{EncodedTally, Job, Phase, Tally};
use crate::layout::Role;

/// One phase's results on rank 0.
#[derive(Debug)]
pub struct Measured {
    /// In what state.
    pub phase: Phase,
    /// The canary test of the plan, by index.
    pub canary: Option<usize>,
    /// The congestor of the plan that ran alone, by index.
    pub congestor: Option<usize>,
    /// When, in the order of this canary's phases on this placement.
    pub block: usize,
    /// What was measured.
    pub tally: EncodedTally,
}

/// What a sequence gives on rank 0: the phases that were completed, and whether the user cut it short.
type Outcome = Result<(Vec<Measured>, bool)>;

/// So many rings share a block's time.
const RINGS_A_BLOCK: usize = 2;

/// The load test on one placement: every canary alone and under load.
pub fn load_test<B: Bootstrap, T: Transport>(job: &mut Job<'_, B, T>) -> Outcome {
    let mut sequence = Sequence::new(job);
    let plan = sequence.job.plan;
    sequence.budget = Nanos((plan.block_s() * 1e9) as u64);
    let alone = if plan.congestors_alone { sequence.job.present.clone() } else { Vec::new() };
    let canaries = plan.canaries.len();
    if plan.blocks > 1 {
        sequence.passes = Passes::Timed;
        for test in 0..canaries {
            sequence.blocks(test)?;
        }
    } else {
        for test in 0..canaries {
            sequence.phase(Phase::Isolated, Some(test), None)?;
        }
    }
    for kind in (0..alone.len()).filter(|&kind| alone[kind]) {
        sequence.phase(Phase::Alone, None, Some(kind))?;
    }
    if plan.blocks == 1 {
        for test in 0..canaries {
            sequence.phase(Phase::Loaded, Some(test), None)?;
        }
    }
    Ok(sequence.outcome())
}

/// Isolated and loaded in the order of blocks: ABBA where `mirrored` is false, else BAAB, over and over.
fn order(blocks: usize, mirrored: bool) -> Vec<Phase> {
    let at = |place: usize| (matches!(place % 4, 1 | 2) != mirrored).then_some(Phase::Loaded);
    (0..2 * blocks).map(|place| at(place).unwrap_or(Phase::Isolated)).collect()
}

/// Every canary, without load.
pub fn network_test<B: Bootstrap, T: Transport>(job: &mut Job<'_, B, T>) -> Outcome {
    let mut sequence = Sequence::new(job);
    for test in 0..sequence.job.plan.canaries.len() {
        sequence.phase(Phase::Isolated, Some(test), None)?;
    }
    Ok(sequence.outcome())
}

/// Congestors only, for a time or until interrupted.
pub fn congest<B: Bootstrap, T: Transport>(job: &mut Job<'_, B, T>, duration: Nanos) -> Outcome {
    let mut sequence = Sequence::new(job);
    sequence.budget = duration;
    sequence.phase(Phase::Congest, None, None)?;
    Ok(sequence.outcome())
}

struct Sequence<'j, 'a, B: Bootstrap, T: Transport> {
    job: &'j mut Job<'a, B, T>,
    budget: Nanos,
    passes: Passes,
    measured: Vec<Measured>,
    /// The place of the next phase among those of its canary, and whether load came right before it.
    block: usize,
    after_load: bool,
    interrupted: bool,
}

impl<'j, 'a, B: Bootstrap, T: Transport> Sequence<'j, 'a, B, T> {
    fn new(job: &'j mut Job<'a, B, T>) -> Self {
        let budget = Nanos((job.plan.budget_s * 1e9) as u64);
        let (passes, measured) = (Passes::Counted, Vec::new());
        Sequence { job, budget, passes, measured, block: 0, after_load: false, interrupted: false }
    }

    /// All blocks of one canary. Which order comes first is drawn, and changes from canary to canary and from placement
    /// to placement.
    fn blocks(&mut self, test: usize) -> Result<()> {
        let mirrored = (self.job.seed() ^ (self.job.seed() >> 7) ^ test as u64) & 1 == 1;
        for (block, phase) in order(self.job.plan.blocks as usize, mirrored).into_iter().enumerate() {
            self.block = block;
            self.phase(phase, Some(test), None)?;
        }
        self.block = 0;
        Ok(())
    }

    fn outcome(self) -> (Vec<Measured>, bool) {
        (self.measured, self.interrupted)
    }

    /// One phase from barrier to collected results. After an interruption nothing more is run, on any rank.
    fn phase(&mut self, phase: Phase, canary: Option<usize>, congestor: Option<usize>) -> Result<()> {
        if self.interrupted {
            return Ok(());
        }
        self.job.control.enter(&self.name(phase, canary, congestor), self.budget);
        self.interrupted = self.job.meet(false)?;
        if self.interrupted {
            return Ok(());
        }
        let mut tally = Tally::new(self.job.plan.congestors.len());
        let cut = match phase {
            Phase::Isolated => self.isolated(canary, &mut tally)?,
            Phase::Alone | Phase::Congest => self.congestors(congestor, &mut tally)?,
            Phase::Loaded => self.loaded(canary, &mut tally)?,
        };
        self.interrupted = self.job.meet(cut)?;
        let collected = tally.collect(self.job.bootstrap)?;
        // A phase that was cut short would be compared with whole ones: only congestion has no planned end.
        if let Some(tally) = collected
            && (!self.interrupted || phase == Phase::Congest)
        {
            self.measured.push(Measured { phase, canary, congestor, block: self.block, tally });
        }
        self.after_load = phase != Phase::Isolated;
        Ok(())
    }

    fn name(&self, phase: Phase, canary: Option<usize>, congestor: Option<usize>) -> String {
        let plan = self.job.plan;
        let title = match (canary, congestor) {
            (Some(test), _) => plan.canaries[test].title(),
            (_, Some(kind)) => plan.congestors[kind].title(),
            _ => "all congestors".into(),
        };
        format!("{} {title}", phase.word())
    }

    fn isolated(&mut self, canary: Option<usize>, tally: &mut Tally) -> Result<bool> {
        match (canary, self.job.role) {
            (Some(test), Role::Canary) => self.measure(test, false, tally),
            _ => Ok(false),
        }
    }

    fn congestors(&mut self, only: Option<usize>, tally: &mut Tally) -> Result<bool> {
        match self.job.role {
            Role::Congestor(kind) if only.is_none_or(|only| only == kind) => {
                let started = self.job.world.now();
                let run = CongestorRun {
                    test: &self.job.plan.congestors[kind],
                    team: self.job.team.as_mut().expect("a congestor has a team"),
                    until: Until::Elapsed(self.budget),
                    control: &self.job.control,
                };
                let (load, cut) = run.test.kernel.visit(run)?;
                tally.loads[kind] = Some(load);
                tally.wall_ns = self.job.world.now().since(started).0;
                Ok(cut)
            }
            _ => Ok(false),
        }
    }

    fn loaded(&mut self, canary: Option<usize>, tally: &mut Tally) -> Result<bool> {
        match (canary, self.job.role) {
            (Some(test), Role::Canary) => {
                self.job.meet(false)?;
                let cut = self.measure(test, true, tally)?;
                self.job.meet(cut)
            }
            (_, Role::Congestor(kind)) => {
                let run = CongestorRun {
                    test: &self.job.plan.congestors[kind],
                    team: self.job.team.as_mut().expect("a congestor has a team"),
                    until: Until::Canaries(&mut self.job.world, self.budget),
                    control: &self.job.control,
                };
                let (load, cut) = run.test.kernel.visit(run)?;
                tally.loads[kind] = Some(load);
                Ok(cut)
            }
            _ => {
                self.job.meet(false)?;
                self.job.meet(false)
            }
        }
    }

    fn measure(&mut self, test: usize, loaded: bool, tally: &mut Tally) -> Result<bool> {
        let test = &self.job.plan.canaries[test];
        let mut rings = self.job.rings(test);
        if self.passes == Passes::Timed {
            rings.truncate(RINGS_A_BLOCK);
        }
        let run = CanaryRun {
            test,
            team: self.job.team.as_mut().expect("a canary has a team"),
            canaries: self.job.canaries.as_mut().expect("a canary knows the others"),
            rings: &rings,
            passes: self.passes,
            budget: self.budget,
            settle: self.after_load && !loaded,
            control: &self.job.control,
        };
        let finished = test.kernel.visit(run)?;
        tally.canary = Some(finished.samples);
        tally.wall_ns = finished.wall.0;
        tally.settled_ns = finished.settled.0;
        Ok(finished.interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_balance_the_states_over_time() {
        let text = |blocks, mirrored| -> String {
            order(blocks, mirrored).iter().map(|phase| if *phase == Phase::Loaded { 'B' } else { 'A' }).collect()
        };
        assert_eq!((text(2, false).as_str(), text(2, true).as_str()), ("ABBA", "BAAB"));
        assert_eq!(text(4, false), "ABBAABBA");
    }
}
