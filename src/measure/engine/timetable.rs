//! How long a load test in blocks takes on one placement, and how it keeps to that.
//!
//! What is not measured (load that comes up, warm-ups, agreements, collecting) takes as long as the network and the machine make
//! it. It is estimated here, from the widths of time that the engine goes by. Where a run has a length to keep, what this takes
//! more or less comes from the time that is still to be measured: its parts are shorter or longer than planned, within limits.

use tailback_transport::Nanos;

use super::LoadState;
use super::control::REAL_GRAIN;
use super::order::{Part, Stretch, stretches};
use super::slices::Slices;
use crate::plan::Plan;

/// Load comes up, or its full rate is measured, in so many slices: the first, those that are looked at, and an agreement.
const RISE: f64 = 5.0;
/// Congestors hear of the end of a part in so many slices.
const END: f64 = 2.0;
/// Warm-ups take this part of a block: under load agreements are slow.
const WARM_UP_LOADED: f64 = 0.35;
const WARM_UP_IDLE: f64 = 0.15;
/// In real time, ranks that congest connect to each other when they first send, and results are collected after every stretch.
const CONNECT_S: f64 = 0.15;
const COLLECT_S: f64 = 0.1;
/// A part is at least and at most so many times as long as planned.
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;

/// Seconds that are measured, and those beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Takes {
    measured: f64,
    beside: f64,
}

/// What is still to come of a run that has a length to keep.
pub(super) struct Timetable<'a> {
    plan: &'a Plan,
    grain: Nanos,
    /// When the run is to be over.
    ends: Nanos,
    left: Takes,
}

/// When a part is to be over.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// When the run is to be.
    ends: Nanos,
    /// What takes time between what is still to be measured.
    beside: Nanos,
    /// How much of what is still to be measured is this part's.
    share: f64,
}

impl Due {
    /// How long a part may measure that begins now and was planned to take `planned`.
    pub(super) fn budget(self, now: Nanos, planned: Nanos) -> Nanos {
        let free = self.ends.0 as f64 - now.0 as f64 - self.beside.0 as f64;
        let planned = planned.0 as f64;
        Nanos((free * self.share).clamp(LEAST * planned, MOST * planned) as u64)
    }
}

/// How many seconds the load test takes on the placement with this seed, once its ranks are connected.
pub fn expected_s(plan: &Plan, seed: u64, grain: Nanos) -> f64 {
    let Takes { measured, beside } = all(plan, seed, grain);
    measured + beside
}

fn all(plan: &Plan, seed: u64, grain: Nanos) -> Takes {
    let loads = |of: &Stretch| of.phase == LoadState::Isolated || !plan.congestors.is_empty();
    let stretches = stretches(plan.blocks as usize, plan.canaries.len(), seed).into_iter().filter(loads);
    let alone = if plan.congestors_alone { plan.congestors.len() } else { 0 };
    let probe = plan.congestors.iter().any(|test| test.rate < 1.0).then_some(true);
    let alone = (0..alone).map(|_| false).chain(probe).map(|probe| alone_takes(plan, probe, grain));
    let parts = stretches.map(|stretch| {
        let parts = stretch.parts.iter().map(|part| part_takes(plan, stretch.phase, part, grain));
        parts.fold(begin_takes(plan, stretch.phase, grain), Takes::and)
    });
    alone.chain(parts).fold(Takes::default(), Takes::and)
}

impl Takes {
    fn and(self, other: Takes) -> Takes {
        Takes { measured: self.measured + other.measured, beside: self.beside + other.beside }
    }

    fn without(self, other: Takes) -> Takes {
        Takes { measured: self.measured - other.measured, beside: self.beside - other.beside }
    }
}

fn of_slices(plan: &Plan, grain: Nanos, slices: f64) -> f64 {
    slices * Slices::of_phase(Nanos((1e9 * plan.block_s()) as u64), grain).width().as_secs_f64()
}

fn in_real_time(grain: Nanos, seconds: f64) -> f64 {
    if grain < REAL_GRAIN { 0.0 } else { seconds }
}

/// Congestors without canaries: a block of one of them, or all until it is known what they reach.
fn alone_takes(plan: &Plan, is_probe: bool, grain: Nanos) -> Takes {
    let loading = if is_probe { of_slices(plan, grain, RISE) } else { plan.block_s() };
    Takes { measured: 0.0, beside: loading + in_real_time(grain, CONNECT_S + COLLECT_S) }
}

/// A stretch until its first part begins, and what follows its last.
fn begin_takes(plan: &Plan, phase: LoadState, grain: Nanos) -> Takes {
    let rise = if phase == LoadState::Loaded { of_slices(plan, grain, RISE) } else { 0.0 };
    Takes { measured: 0.0, beside: rise + in_real_time(grain, COLLECT_S) }
}

fn part_takes(plan: &Plan, phase: LoadState, part: &Part, grain: Nanos) -> Takes {
    let block = plan.block_s();
    // A program takes the time it takes.
    if part.canary.is_some_and(|test| plan.canaries[test].kernel.is_application()) {
        return Takes::default();
    }
    let measured = block * phase.of_test().map_or(1.0, |state| plan.share_of(state));
    let beside = match phase {
        LoadState::Loaded => WARM_UP_LOADED * block + of_slices(plan, grain, END),
        _ => WARM_UP_IDLE * block,
    };
    Takes { measured, beside }
}

impl<'a> Timetable<'a> {
    /// Of a run that begins now and is to take so long.
    pub(super) fn of(plan: &'a Plan, seed: u64, grain: Nanos, now: Nanos, length: Nanos) -> Self {
        Timetable { plan, grain, ends: Nanos(now.0 + length.0), left: all(plan, seed, grain) }
    }

    /// What congestors reach is measured, or one of them alone.
    pub(super) fn alone(&mut self, is_probe: bool) {
        self.left = self.left.without(alone_takes(self.plan, is_probe, self.grain));
    }

    /// A stretch begins.
    pub(super) fn stretch(&mut self, phase: LoadState) {
        self.left = self.left.without(begin_takes(self.plan, phase, self.grain));
    }

    /// A part begins: when it is to be over.
    pub(super) fn part(&mut self, phase: LoadState, part: &Part) -> Due {
        let takes = part_takes(self.plan, phase, part, self.grain);
        let share = takes.measured / self.left.measured.max(takes.measured);
        self.left = self.left.without(takes);
        // What its congestors take to hear of its end is still to come.
        let end = if phase == LoadState::Loaded { of_slices(self.plan, self.grain, END) } else { 0.0 };
        Due { ends: self.ends, beside: Nanos((1e9 * (self.left.beside + end).max(0.0)) as u64), share }
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::VIRTUAL_GRAIN;
    use super::*;
    use crate::plan::Preset;

    #[test]
    fn what_is_left_is_measured_within_limits() {
        let due = Due { ends: Nanos(1_000), beside: Nanos(100), share: 0.5 };
        let at = |now: u64| due.budget(Nanos(now), Nanos(200)).0;
        assert_eq!([at(500), at(700), at(0), at(2_000)], [200, 100, 400, 100]);
    }

    #[test]
    fn a_run_that_takes_what_was_expected_ends_when_it_was_to() {
        for seed in 0..4 {
            let mut plan = Preset::Sim.plan();
            plan.congestors.iter_mut().for_each(|test| test.rate = 0.5);
            let length = expected_s(&plan, seed, VIRTUAL_GRAIN);
            let mut timetable = Timetable::of(&plan, seed, VIRTUAL_GRAIN, Nanos(0), Nanos((1e9 * length) as u64));
            let mut now = 0.0;
            timetable.alone(true);
            now += alone_takes(&plan, true, VIRTUAL_GRAIN).beside;
            for stretch in stretches(plan.blocks as usize, plan.canaries.len(), seed) {
                timetable.stretch(stretch.phase);
                // Load comes up in half of the time.
                now += 0.5 * begin_takes(&plan, stretch.phase, VIRTUAL_GRAIN).beside;
                for part in &stretch.parts {
                    let Takes { measured, beside } = part_takes(&plan, stretch.phase, part, VIRTUAL_GRAIN);
                    let due = timetable.part(stretch.phase, part);
                    let end =
                        if stretch.phase == LoadState::Loaded { of_slices(&plan, VIRTUAL_GRAIN, END) } else { 0.0 };
                    now += beside - end;
                    let planned = Nanos((1e9 * measured) as u64);
                    now += due.budget(Nanos((1e9 * now) as u64), planned).as_secs_f64() + end;
                }
            }
            assert!((now - length).abs() < 1e-6 * length, "{now} of {length}");
            assert!(timetable.left.measured.abs() < 1e-9 && timetable.left.beside.abs() < 1e-9);
        }
    }
}
