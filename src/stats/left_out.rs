//! An interval for a figure that is computed from several repetitions together, by leaving out one at a time.
//!
//! For a geometric mean, and for a ratio of two, this is Student's t on logarithms to the last digit; what is nearly
//! linear in the logarithms of its repetitions has nearly that.

use super::spread::{FEWEST_PLACEMENTS, around};
use super::{Interval, t95};

/// The 95% interval of `whole`, given what the same computation makes of all repetitions but one, for each one. Nothing
/// for fewer than three, or when one of them is no positive number.
pub fn left_out(whole: f64, without: &[f64]) -> Option<Interval> {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    if without.len() < FEWEST_PLACEMENTS || !usable(&whole) || !without.iter().all(usable) {
        return None;
    }
    let count = without.len() as f64;
    let mean = without.iter().map(|value| value.ln()).sum::<f64>() / count;
    let squares: f64 = without.iter().map(|value| (value.ln() - mean).powi(2)).sum();
    // Each repetition moves the whole by (count - 1) times what leaving it out does.
    let error = ((count - 1.0) / count * squares).sqrt();
    Some(around(whole.ln(), t95(count - 1.0) * error))
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    #[test]
    fn a_geometric_mean_has_students_interval() {
        let values = [1.0, 1.4, 0.9, 1.1, 1.3];
        let mean = |skipped: Option<usize>| {
            let kept = values.iter().enumerate().filter(|(at, _)| Some(*at) != skipped).map(|(_, value)| *value);
            Spread::of(&kept.collect::<Vec<f64>>()).unwrap().factor
        };
        let without: Vec<f64> = (0..values.len()).map(|at| mean(Some(at))).collect();
        let (found, expected) = (left_out(mean(None), &without).unwrap(), Spread::of(&values).unwrap());
        let expected = expected.interval.unwrap();
        assert!((found.low - expected.low).abs() < 1e-12 && (found.high - expected.high).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn too_few_or_senseless_repetitions_have_none() {
        assert_eq!(left_out(1.0, &[1.0, 1.1]), None);
        assert_eq!(left_out(1.0, &[1.0, 1.1, 0.0]), None);
        assert_eq!(left_out(f64::NAN, &[1.0, 1.1, 1.2]), None);
    }
}
