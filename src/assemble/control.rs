//! The control of a lab: the time that load still adds where canaries meet no queue is the processor's.

use crate::engine::LoadState;
use crate::result::{
    Cause, ControlKind, ControlRecord, PhaseCounters, PlacementRecord, Run, Test, TestImpact, Verdict, WORTH_EXPLAINING,
};
use crate::stats::{Added, Interval};

impl ControlRecord {
    /// Holds runs against the same ones without queues for canaries; nothing when there are none of those.
    pub fn of(kind: ControlKind, shaped: &[Run], again: Vec<Run>, phases: Vec<PhaseCounters>) -> Option<Self> {
        let several = shaped.len() > 1;
        let verdicts = shaped.iter().zip(&again).flat_map(|(shaped, again)| {
            let label = several.then(|| shaped.label());
            let verdict = |impact| Verdict::of(shaped, again, impact);
            shaped.impacts.iter().filter_map(verdict).map(move |verdict| Verdict { run: label.clone(), ..verdict })
        });
        let verdicts = verdicts.collect();
        let mut runs = again.into_iter();
        Some(ControlRecord { kind, run: runs.next()?, more_runs: runs.collect(), phases, verdicts })
    }
}

impl Verdict {
    /// The verdict on one canary, from the placements that both runs share. It compares times, not factors: factors over
    /// baselines of different speed say nothing about each other.
    pub fn of(shaped: &Run, control: &Run, impact: &TestImpact) -> Option<Self> {
        let kernel = impact.kernel;
        let added = |of: &PlacementRecord| of.added_ns(kernel, kernel.headline());
        let pairs: Vec<(f64, f64)> = shaped
            .placements
            .iter()
            .zip(&control.placements)
            .filter(|(with, without)| with.seed == without.seed)
            .filter_map(|(with, without)| Some((added(with)?, added(without)?)))
            .collect();
        let headline = |run: &Run| run.impact(kernel, kernel.headline()).map(|of| of.factor);
        let (with, without) = (headline(shaped)?, headline(control)?);
        let mean = |of: fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        // A figure that a program prints need not be a time; its parts are parts all the same.
        let is_time = shaped.test(kernel, LoadState::Loaded).is_some_and(Test::is_time);
        let share = share(&pairs);
        let interval = share.and_then(|(_, interval)| interval);
        Some(Verdict {
            kernel,
            title: impact.title.clone(),
            run: None,
            shaped: with,
            control: without,
            added_ns: mean(|pair| pair.0).filter(|_| is_time),
            control_added_ns: mean(|pair| pair.1).filter(|_| is_time),
            control_share: share.map(|(share, _)| share),
            control_share_interval: interval,
            cause: cause(with, interval),
        })
    }
}

/// The control's part of the added time, placement by placement, with the 95% interval of its mean (Student's t; from three
/// placements on). Not on logarithms: a part next to nothing is as far from one half whether it is 1% or 0.1%. Nothing
/// where load added no time.
fn share(pairs: &[(f64, f64)]) -> Option<(f64, Option<Interval>)> {
    if pairs.is_empty() || pairs.iter().any(|(whole, part)| *whole <= 0.0 || !part.is_finite()) {
        return None;
    }
    let shares: Vec<f64> = pairs.iter().map(|(whole, part)| part / whole).collect();
    Added::of(&shares).map(|of| (of.value, of.interval))
}

fn cause(shaped: f64, control: Option<Interval>) -> Cause {
    match control {
        _ if shaped < WORTH_EXPLAINING => Cause::NoImpact,
        Some(interval) if interval.high < 0.5 => Cause::Network,
        Some(interval) if interval.low > 0.5 => Cause::Cpu,
        _ => Cause::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_time_decides_and_not_the_ratio_of_ratios() {
        // 40 -> 120 ns/B shaped, 1 -> 2 unshaped: twice as slow, and 1.25% of the added time.
        let pairs = [(80.0, 1.0), (84.0, 1.1), (76.0, 0.9)];
        let interval = share(&pairs).unwrap().1.unwrap();
        assert!(!interval.excludes(0.0125) && interval.high < 0.05, "{interval:?}");
        assert_eq!(cause(3.0, Some(interval)), Cause::Network);
        // Next to nothing, however unevenly.
        let pairs = [(80.0, 0.1), (84.0, 4.0), (76.0, -0.5)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Network);
        let pairs = [(80.0, 70.0), (84.0, 75.0), (76.0, 69.0)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Cpu);
    }

    #[test]
    fn placements_that_disagree_decide_nothing() {
        let pairs = [(80.0, 5.0), (20.0, 30.0), (100.0, 55.0)];
        assert_eq!(cause(3.0, share(&pairs).and_then(|share| share.1)), Cause::Undecided);
        let two = share(&[(80.0, 1.0), (84.0, 1.1)]);
        assert!(two.is_some_and(|share| share.1.is_none()), "two placements are too few");
        assert!(share(&[(1.0, 1.0), (-1.0, 1.1), (0.5, 1.0)]).is_none(), "nothing was added");
        assert_eq!(cause(1.2, Some(Interval { low: 0.0, high: 0.1 })), Cause::NoImpact);
    }
}
