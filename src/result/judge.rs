//! The answer of a test, and whether it may be reported: asked of the file by every view and check, so that they agree.

use super::placements::time_ns;
use super::{HostActivity, PlacementRecord, Run, Stolen, Test};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::plan::SECONDS;
use crate::stats::{Added, Direction, Evidence, Factor, Judgement, Statistic, TimeView, Weight, mean};

/// What a test says, in the order in which it is shown.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Answer<'a> {
    pub test: &'a Test,
    /// The headline; of another program's results what it printed.
    pub statistic: Statistic,
    /// In the test's unit, as are the loaded ones: means over placements, of rates by the time of a MiB.
    pub idle: f64,
    pub loaded: f64,
    /// In [`Answer::added_unit`].
    pub added: Option<Added>,
    pub impact: Option<Factor>,
    pub judgement: Judgement,
}

impl Answer<'_> {
    /// The unit of the added time.
    pub fn added_unit(&self) -> &str {
        if self.test.kernel.is_application() { &self.test.unit } else { self.test.direction.added_unit() }
    }
}

const STATES: [LoadState; 2] = [LoadState::Isolated, LoadState::Loaded];

impl Run {
    /// The answer of each test that has one, in their order.
    pub fn answers(&self) -> impl Iterator<Item = Answer<'_>> {
        let loaded = self.tests.iter().filter(|test| test.phase == LoadState::Loaded);
        loaded.filter_map(|test| self.answer(test.kernel))
    }

    /// The answer of a canary; nothing unless it ran idle and under load.
    pub fn answer(&self, kernel: Canary) -> Option<Answer<'_>> {
        let test = self.test(kernel, LoadState::Loaded)?;
        let figures =
            |of: Statistic| Some((self.typical(kernel, STATES[0], of)?, self.typical(kernel, STATES[1], of)?));
        let (statistic, (idle, loaded)) =
            [kernel.headline(), Statistic::Avg].into_iter().find_map(|of| Some((of, figures(of)?)))?;
        // A program's unit is its own, and so is that of what load adds to its time.
        let unit = if kernel.is_application() { 1e-9 } else { 1e-3 };
        Some(Answer {
            test,
            statistic,
            idle,
            loaded,
            added: self.added_ns(kernel, statistic).map(|of| of.scaled(unit)),
            impact: self.impact(kernel, statistic),
            judgement: self.judgement(kernel),
        })
    }

    /// The time that load adds to a figure, in ns (ns per MiB for a bandwidth): mean over placements with its interval.
    /// Nothing unless every placement has it, and for a figure that is no time.
    pub fn added_ns(&self, kernel: Canary, statistic: Statistic) -> Option<Added> {
        let is_time = self.test(kernel, LoadState::Loaded).is_some_and(Test::is_time);
        Added::of(&self.each_added_ns(kernel, statistic)?).filter(|_| is_time)
    }

    /// The same of each placement, in their order.
    pub fn each_added_ns(&self, kernel: Canary, statistic: Statistic) -> Option<Vec<f64>> {
        let each: Option<Vec<f64>> = self.placements.iter().map(|of| of.added_ns(kernel, statistic)).collect();
        each.filter(|each| !each.is_empty())
    }

    /// A figure over placements: the mean of their times. Of results without placements, what the test has.
    pub fn typical(&self, kernel: Canary, phase: LoadState, statistic: Statistic) -> Option<f64> {
        let test = self.test(kernel, phase)?;
        let time = |of: &PlacementRecord| of.time_ns(kernel, phase, statistic);
        match self.placements.iter().map(time).collect::<Option<Vec<f64>>>().filter(|times| !times.is_empty()) {
            Some(times) => Some(test.figure_of(mean(&times))),
            None => test.figure(statistic),
        }
    }

    /// Whether added time and impact of a canary may be reported by its headline, or why not.
    pub fn judgement(&self, kernel: Canary) -> Judgement {
        self.judgement_by(kernel, kernel.headline())
    }

    /// The same by another statistic.
    pub fn judgement_by(&self, kernel: Canary, statistic: Statistic) -> Judgement {
        let state = |phase| self.test(kernel, phase);
        let evidence = Evidence {
            effective: STATES.map(|phase| state(phase)?.effective_iterations()),
            covered: STATES.map(|phase| state(phase)?.covered),
            stolen: [self.stolen.map(|of| of.idle), self.stolen.map(|of| of.loaded)],
            idle_blocks_ns: self.placements.iter().map(|of| idle_blocks_ns(of, kernel)).collect(),
            idle_ns: self.typical(kernel, STATES[0], statistic).and_then(|figure| time_ns(kernel, figure)),
            added_ns: self.each_added_ns(kernel, statistic).map(|each| mean(&each)),
            silent: self.silent(kernel),
            congested_idle: self.headline(kernel).and_then(|of| of.congested).map(|of| of.isolated),
        };
        Judgement::of(&evidence, statistic)
    }

    /// Congestors that delivered nothing while a canary measured, on any placement.
    fn silent(&self, kernel: Canary) -> Vec<String> {
        let of_placements = self.placements.iter().filter_map(|of| of.test(kernel, LoadState::Loaded));
        let whole = self.test(kernel, LoadState::Loaded);
        let loads = of_placements.flat_map(|test| &test.load).chain(whole.into_iter().flat_map(|test| &test.load));
        super::distinct(loads.filter(|load| load.delivered_bytes == 0).map(|load| load.title.clone()))
    }

    /// The same with what its phases lost to other guests of the hosts, judged anew.
    #[must_use]
    pub fn beside(mut self, activity: &[HostActivity]) -> Self {
        let label = self.label();
        let mine = |of: &&HostActivity| of.phase.over.as_ref().is_none_or(|over| *over == label);
        let share = |state: LoadState| {
            let phases = activity.iter().filter(mine).filter(|of| of.phase.is(state));
            let (stolen_s, all_s) = phases
                .filter_map(|of| Some((of.steal? * of.seconds, of.seconds)))
                .fold((0.0, 0.0), |(stolen, all), (more, seconds)| (stolen + more, all + seconds));
            (all_s > 0.0).then(|| stolen_s / all_s)
        };
        let [idle, loaded] = STATES.map(share);
        self.stolen = idle.zip(loaded).map(|(idle, loaded)| Stolen { idle, loaded });
        self.judged()
    }

    /// With added time and judgement of every impact, for readers of the file.
    #[must_use]
    pub fn judged(mut self) -> Self {
        for at in 0..self.impacts.len() {
            let kernel = self.impacts[at].kernel;
            self.impacts[at].added_us = self.added_ns(kernel, kernel.headline()).map(|of| of.scaled(1e-3));
            self.impacts[at].not_reportable = self.judgement(kernel).reasons;
        }
        self
    }
}

/// The headline's figure of every idle block, as a time.
fn idle_blocks_ns(placement: &PlacementRecord, kernel: Canary) -> Vec<f64> {
    let test = placement.test(kernel, LoadState::Isolated);
    let blocks = test.into_iter().flat_map(|test| &test.blocks);
    blocks.filter_map(|block| time_ns(kernel, block.headline?)).collect()
}

impl Test {
    /// The figure that stands for a time in ns (see [`PlacementRecord::time_ns`]).
    pub fn figure_of(&self, time_ns: f64) -> f64 {
        match self.direction {
            Direction::Latency if self.kernel.is_application() => 1e-9 * time_ns,
            direction => direction.figure(time_ns),
        }
    }

    /// Whether a longer time, or a lower rate of bytes, is what makes its figure worse. A figure that a program prints need
    /// not be of that kind.
    pub fn is_time(&self) -> bool {
        !self.kernel.is_application() || self.unit == SECONDS
    }

    /// How many iterations of equal length would say as much; nothing where samples were not kept.
    pub fn effective_iterations(&self) -> Option<f64> {
        let summary = self.summary.as_ref()?;
        let iterations = summary.iterations.unwrap_or(summary.samples) as f64;
        if self.kernel.is_application() {
            return Some(iterations);
        }
        let weight = if self.schedule.is_some() { Weight::Even } else { Weight::Length };
        let effective = TimeView::of(&self.samples()?, weight)?.effective(weight);
        // Ranks that wait for each other in one iteration count once.
        Some(effective * iterations / summary.samples.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;
    use crate::engine::PhaseId;
    use crate::stats::NotReportable;

    #[test]
    fn added_is_loaded_minus_idle_and_of_rates_the_time_of_a_mib() {
        let run = synthetic::file("tcp", None, 5.0).runs.remove(0);
        for answer in run.answers() {
            let (test, added) = (answer.test, answer.added.unwrap());
            let time = |figure: f64| test.direction.sample_ns(figure) / 1e3;
            let apart = time(answer.loaded) - time(answer.idle);
            assert!((added.value / apart - 1.0).abs() < 1e-9, "{answer:?}");
            // Samples of 2 us and 1 ms that load makes five times as long; their time-weighted p75 is somewhat longer.
            let idle = if test.direction == Direction::Latency { 2.0 } else { 1000.0 };
            assert!(added.value > 4.0 * idle && added.value < 16.0 * idle, "{answer:?}");
            assert!(!added.interval.unwrap().excludes(added.value) && answer.judgement.is_reportable(), "{answer:?}");
            let stored = run.impacts.iter().find(|of| of.kernel == test.kernel).unwrap().added_us;
            assert!((stored.unwrap().value / added.value - 1.0).abs() < 1e-9);
        }
        assert_eq!(run.answers().count(), 3);
    }

    #[test]
    fn what_the_file_tells_is_judged() {
        let judged = |change: fn(&mut Run)| {
            let mut run = synthetic::file("tcp", None, 5.0).runs.remove(0);
            change(&mut run);
            run.judged().impacts[0].not_reportable.clone()
        };
        assert_eq!(judged(|_| {}), []);
        fn swing(run: &mut Run) {
            for (at, placement) in run.placements.iter_mut().enumerate() {
                let idle = placement.tests.iter_mut().filter(|test| test.phase == LoadState::Isolated);
                idle.for_each(|test| *test.blocks[at % 2].headline.as_mut().unwrap() *= 20.0);
            }
        }
        // Up on one placement, down on the next.
        assert!(matches!(
            judged(swing)[..],
            [NotReportable::BaselineMoved { moved, .. }] if moved > 1.0
        ));
        let covered = judged(|run| run.tests.iter_mut().for_each(|test| test.covered = Some(0.2)));
        assert_eq!(covered.len(), 2, "{covered:?}");
        let silent = judged(|run| {
            run.placements[3].tests.iter_mut().for_each(|test| {
                test.load.iter_mut().take(1).for_each(|load| load.delivered_bytes = 0);
            });
        });
        assert!(matches!(silent[..], [NotReportable::LoadNotDelivered { .. }]), "{silent:?}");
        let phase = |words: &str, seconds: f64, steal: f64| HostActivity {
            phase: PhaseId::from(words.to_owned()),
            seconds,
            mhz: None,
            governors: Vec::new(),
            steal: Some(steal),
            voluntary_switches: None,
            involuntary_switches: None,
        };
        let all = [
            phase("isolated all canaries, placement 1 of 2", 1.0, 0.0),
            phase("loaded all canaries, placement 1 of 2", 3.0, 0.36),
            phase("loaded all canaries, placement 2 of 2", 9.0, 0.0),
            phase("loaded all canaries over verbs, placement 1 of 2", 9.0, 0.9),
        ];
        let run = synthetic::file("tcp", None, 5.0).runs.remove(0).beside(&all);
        assert_eq!(run.stolen, Some(Stolen { idle: 0.0, loaded: 0.36 * 3.0 / 12.0 }));
        assert!(run.impacts[0].not_reportable.is_empty());
        let run = run.beside(&all[..2]);
        assert!(matches!(run.impacts[0].not_reportable[..], [NotReportable::ProcessorStolen { .. }]), "{run:?}");
        let few = judged(|run| {
            run.tests.iter_mut().for_each(|test| {
                test.summary.as_mut().unwrap().iterations = Some(6);
            });
        });
        assert!(few.iter().all(|of| matches!(of, NotReportable::TooFewIterations { .. })) && few.len() == 2, "{few:?}");
    }
}
