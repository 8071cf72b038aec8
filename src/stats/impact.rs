//! The Congestion Impact Factor: how many times worse a figure is under load, with its uncertainty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bootstrap::{Batched, Interval, bootstrap};
use super::{Direction, Samples, Statistic, Summary};

/// One figure's impact factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Loaded over isolated for latencies, isolated over loaded for bandwidths: 1 = no impact, more = worse.
    pub factor: f64,
    /// The 95% confidence interval; absent when either side has too few passes to tell.
    pub interval: Option<Interval>,
}

/// The impact factors of one canary test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Impact {
    pub avg: Factor,
    pub p50: Factor,
    pub p90: Factor,
    pub p99: Factor,
    pub p999: Factor,
}

impl Impact {
    /// One of the factors.
    pub fn get(&self, statistic: Statistic) -> Factor {
        match statistic {
            Statistic::Avg => self.avg,
            Statistic::P50 => self.p50,
            Statistic::P90 => self.p90,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999,
        }
    }
}

/// What a factor needs of one side, in a tenth of the samples' own memory.
pub struct Side {
    summary: Summary,
    batched: Batched,
}

impl Side {
    /// The side that `samples` are; nothing when there is none.
    pub fn of(samples: &Samples, direction: Direction) -> Option<Self> {
        Some(Side { summary: Summary::of(samples, direction)?, batched: Batched::of(samples) })
    }
}

/// The impact of the load between `isolated` and `loaded`. `seed` makes the resampling repeatable.
pub fn impact(isolated: &Side, loaded: &Side, direction: Direction, seed: u64) -> Impact {
    let batches = [&isolated.batched, &loaded.batched];
    let factor = |statistic: Statistic| Factor {
        factor: direction.factor(isolated.summary.get(statistic), loaded.summary.get(statistic)),
        interval: bootstrap(&batches, direction, statistic, seed, |of| direction.factor(of[0], of[1])),
    };
    let [avg, p50, p90, p99, p999] = Statistic::ALL.map(factor);
    Impact { avg, p50, p90, p99, p999 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impact_of(isolated: &Samples, loaded: &Samples, direction: Direction, seed: u64) -> Impact {
        let side = |samples| Side::of(samples, direction).expect("samples");
        impact(&side(isolated), &side(loaded), direction, seed)
    }

    /// Passes whose samples are `base` times a fixed, uneven pattern.
    fn samples(base: f64, passes: u64) -> Samples {
        let mut samples = Samples::new();
        for pass in 0..passes {
            let scale = base * (1.0 + 0.1 * ((pass * 7 % 5) as f64 - 2.0) / 2.0);
            (0..50).for_each(|i| samples.record((scale * (1.0 + f64::from(i) / 100.0)) as u64));
            samples.close_pass(Some(scale * 1.245 / 1e3));
        }
        samples
    }

    #[test]
    fn known_ratio_is_found_and_covered() {
        let impact = impact_of(&samples(10_000.0, 15), &samples(50_000.0, 15), Direction::Latency, 1);
        for statistic in Statistic::ALL {
            let factor = impact.get(statistic);
            let interval = factor.interval.expect("fifteen passes are enough");
            assert!((factor.factor - 5.0).abs() < 0.02, "{statistic:?}: {factor:?}");
            assert!(interval.low < 5.0 && 5.0 < interval.high, "{statistic:?}: {factor:?}");
            assert!(interval.low > 4.0 && interval.high < 6.0, "{statistic:?}: {factor:?}");
        }
    }

    #[test]
    fn bandwidth_factors_are_turned_round() {
        let (fast, slow) = (samples(10_000.0, 15), samples(20_000.0, 15));
        let impact = impact_of(&fast, &slow, Direction::Bandwidth, 1);
        assert!((impact.p99.factor - 2.0).abs() < 0.01, "{impact:?}");
    }

    #[test]
    fn too_few_passes_give_no_interval() {
        let impact = impact_of(&samples(10_000.0, 2), &samples(50_000.0, 15), Direction::Latency, 1);
        assert_eq!(impact.avg.interval, None);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let (a, b) = (samples(10_000.0, 15), samples(50_000.0, 15));
        assert_eq!(impact_of(&a, &b, Direction::Latency, 9), impact_of(&a, &b, Direction::Latency, 9));
    }
}
