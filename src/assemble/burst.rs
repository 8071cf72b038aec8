//! From samples folded over bursts to what the file says of them.

use crate::engine::Load;
use crate::kernel::Congestor;
use crate::plan::Burst;
use crate::result::{BurstEffect, BurstFigure, BurstLoad, BurstPoint, BurstRecord};
use crate::stats::{BurstResponse, Folded, Interval, OverBursts};

/// A canary's samples in bursts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    folded: Folded,
    clock_error_ns: u64,
}

impl Bursts {
    /// Adds a block.
    pub(super) fn add(&mut self, folded: &Folded, clock_error_ns: u64) {
        self.folded.follow(folded);
        self.clock_error_ns = self.clock_error_ns.max(clock_error_ns);
    }

    /// Adds other blocks.
    pub(super) fn join(&mut self, later: &Bursts) {
        self.add(&later.folded, later.clock_error_ns);
    }

    /// What they say, where the median and the 99th percentile are so many ns without load.
    pub(super) fn record(&self, burst: Burst, loads: Vec<BurstLoad>, idle_ns: [f64; 2]) -> BurstRecord {
        let period_us = 1e6 * burst.period_s();
        let [p50, p99] = self.folded.responses(burst.on_s / burst.period_s(), idle_ns);
        let point = |part: &crate::stats::FoldedPart| BurstPoint {
            since_us: part.at * period_us,
            samples: part.samples,
            p50_us: part.p50_ns.map(us),
            p99_us: part.p99_ns.map(us),
        };
        BurstRecord {
            burst,
            bursts: self.folded.bursts(),
            clock_error_us: us(self.clock_error_ns as f64),
            loads,
            curve: self.folded.curve().iter().map(point).collect(),
            p50: effect(idle_ns[0], p50, period_us),
            p99: effect(idle_ns[1], p99, period_us),
        }
    }
}

fn us(ns: f64) -> f64 {
    1e-3 * ns
}

fn effect(idle_ns: f64, response: BurstResponse, period_us: f64) -> BurstEffect {
    let scaled = |by: f64| {
        move |of: OverBursts| BurstFigure {
            value: by * of.value,
            interval: of.interval.map(|of| Interval { low: by * of.low, high: by * of.high }),
        }
    };
    BurstEffect {
        idle_us: us(idle_ns),
        peak_us: response.peak_ns.map(scaled(1e-3)),
        is_felt: response.is_felt,
        felt_us: response.felt.map(scaled(period_us)),
        recovery_us: response.recovery.map(scaled(period_us)),
    }
}

/// What a congestor did in a burst.
pub(super) fn load(kernel: Congestor, load: &Load, burst: Burst) -> BurstLoad {
    // Seconds are added up over ranks.
    let bursts = (load.seconds / burst.period_s()).max(1e-9);
    BurstLoad {
        kernel,
        iterations_per_burst: load.samples.total().len() as f64 / bursts,
        mib_per_burst: load.bytes as f64 / 1_048_576.0 * load.ranks as f64 / bursts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::BurstOutcome;

    #[test]
    fn times_are_in_us_and_blocks_follow_each_other() {
        let burst = Burst { on_s: 2e-3, off_s: 8e-3 };
        let mut bursts = Bursts::default();
        for error in [300, 900, 200, 100] {
            let mut folded = Folded::new();
            for sample in 0..40_000u64 {
                let since = sample * 7919 % 10_000_000;
                let ns = if since < 5_000_000 { 400_000 } else { 10_000 };
                folded.record(0, since, 10_000_000, ns);
            }
            folded.saw(10);
            bursts.add(&folded, error);
        }
        let record = bursts.record(burst, Vec::new(), [10_000.0, 10_000.0]);
        assert_eq!((record.bursts, record.clock_error_us), (40, 0.9));
        let BurstOutcome::Back(recovery) = record.p99.outcome() else { panic!("{:?}", record.p99) };
        assert!((recovery.value - 3_000.0).abs() < 80.0 && recovery.interval.is_some(), "{recovery:?}");
        assert!(record.curve.iter().all(|point| (point.since_us < 5_000.0) == (point.p50_us > Some(200.0))));
    }
}
