//! How much figures of repeated jobs differ: their coefficient of variation, as requests for proposals ask for it, with an
//! interval.
//!
//! The interval is on a logarithmic scale, as that of figures is: the variance of the logarithms has a chi-squared interval, and
//! sqrt(exp(variance) - 1) is the coefficient of variation of what is normal there. Where figures differ little, as most do,
//! that is the interval for normal figures too.

use super::spread::{Interval, mean, variance};
use super::student::ln_gamma;

/// The coefficient of variation of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Standard deviation over mean.
    pub coefficient: f64,
    /// Its 95% interval.
    pub interval: Interval,
    /// Of how many figures.
    pub count: usize,
}

impl Variation {
    /// Fewer figures have no interval worth showing: of two, its ends are 70 times apart.
    pub const FEWEST: usize = 3;

    /// That of these figures; nothing for too few of them, or where one is not above 0.
    pub fn of(figures: &[f64]) -> Option<Self> {
        if figures.len() < Self::FEWEST || figures.iter().any(|of| !(*of > 0.0 && of.is_finite())) {
            return None;
        }
        let freedom = (figures.len() - 1) as f64;
        let logarithms: Vec<f64> = figures.iter().map(|of| of.ln()).collect();
        let sum = freedom * variance(&logarithms)?;
        let at = |probability: f64| (sum / chi_squared(probability, freedom)).exp_m1().sqrt();
        let coefficient = variance(figures)?.sqrt() / mean(figures);
        Some(Variation { coefficient, interval: Interval { low: at(0.975), high: at(0.025) }, count: figures.len() })
    }
}

/// The value that a chi-squared variable stays below with this probability.
fn chi_squared(probability: f64, freedom: f64) -> f64 {
    let below = |value: f64| gamma(freedom / 2.0, value / 2.0);
    let mut high = freedom.max(1.0);
    while below(high) < probability {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Halving stops where no number is between them.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if below(middle) < probability { low = middle } else { high = middle }
    }
}

/// The regularised lower incomplete gamma function, by its series.
fn gamma(a: f64, x: f64) -> f64 {
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for step in 1..100_000 {
        term *= x / (a + f64::from(step));
        sum += term;
        if term < sum * 1e-16 {
            break;
        }
    }
    (front * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, freedom, value) in [
            (0.025, 1.0, 0.000_982_069),
            (0.025, 2.0, 0.050_635_616),
            (0.975, 2.0, 7.377_758_908),
            (0.025, 9.0, 2.700_389_500),
            (0.975, 9.0, 19.022_767_80),
            (0.975, 100.0, 129.561_197),
        ] {
            let found = chi_squared(probability, freedom);
            assert!((found / value - 1.0).abs() < 1e-6, "{probability} {freedom}: {found}");
        }
    }

    #[test]
    fn it_is_deviation_over_mean() {
        let of = Variation::of(&[9.0, 10.0, 11.0]).unwrap();
        assert!((of.coefficient - 0.1).abs() < 1e-12 && of.count == 3);
        assert!(of.interval.low < 0.1 && of.interval.high > 0.1, "{of:?}");
        assert_eq!(Variation::of(&[5.0; 4]).unwrap().interval, Interval { low: 0.0, high: 0.0 });
        assert_eq!((Variation::of(&[1.0, 2.0]), Variation::of(&[1.0, 0.0, 2.0])), (None, None));
    }

    /// Figures are drawn with a coefficient of variation that is known.
    #[test]
    fn intervals_hold_the_truth_in_19_of_20_jobs() {
        const DRAWS: usize = 4000;
        let mut random = SmallRng::seed_from_u64(8);
        // After Box and Muller.
        let mut normal = || {
            let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
            (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
        };
        let mut held = |truth: f64, jobs: usize, draw: &dyn Fn(f64) -> f64| {
            let mut hits = 0;
            for _ in 0..DRAWS {
                let figures: Vec<f64> = (0..jobs).map(|_| draw(normal())).collect();
                let Interval { low, high } = Variation::of(&figures).expect("enough of them").interval;
                hits += usize::from((low..=high).contains(&truth));
            }
            hits as f64 / DRAWS as f64
        };
        for jobs in [3, 5, 12] {
            for truth in [0.02, 0.1f64] {
                let share = held(truth, jobs, &|z| 20.0 * (1.0 + truth * z));
                assert!((0.935..0.965).contains(&share), "normal {truth}, {jobs} jobs: {share}");
            }
            let (truth, deviation) = (0.6f64, (1.0 + 0.6f64.powi(2)).ln().sqrt());
            let share = held(truth, jobs, &|z| 20.0 * (deviation * z).exp());
            assert!((0.935..0.965).contains(&share), "skewed, {jobs} jobs: {share}");
        }
    }
}
