//! FFT of one rank: a complex transform, checked by the inverse one.

use std::sync::Arc;
use std::time::Instant;

use num_complex::Complex64;
use rustfft::FftPlanner;

use crate::EPSILON;
use crate::random::element;
use crate::random::greatest;

const SEED: u64 = 5;

/// The `at`-th number of the vector that is transformed.
#[inline]
pub(crate) fn number(at: usize) -> Complex64 {
    Complex64::new(element(SEED, at, 0), element(SEED, at, 1))
}

/// Operations of a transform by HPCC's count.
pub(crate) fn operations(points: usize) -> f64 {
    5.0 * points as f64 * (points.max(2) as f64).log2()
}

/// What an error that large means, by HPCC's scale: eps ln m.
pub(crate) fn scaled(error: f64, points: usize) -> f64 {
    error / (EPSILON * (points.max(2) as f64).ln())
}

/// A transform of `points`.
pub struct Fft {
    forward: Arc<dyn rustfft::Fft<f64>>,
    inverse: Arc<dyn rustfft::Fft<f64>>,
    data: Vec<Complex64>,
    scratch: Vec<Complex64>,
}

impl Fft {
    /// Random numbers, and the plan.
    #[must_use]
    pub fn new(points: usize) -> Self {
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(points), planner.plan_fft_inverse(points));
        let scratch = forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len());
        let zero = Complex64::new(0.0, 0.0);
        Fft { forward, inverse, data: (0..points).map(number).collect(), scratch: vec![zero; scratch] }
    }

    /// Transforms; 10^9 operations a second.
    pub fn run(&mut self) -> f64 {
        let begin = Instant::now();
        self.forward.process_with_scratch(&mut self.data, &mut self.scratch);
        operations(self.data.len()) / begin.elapsed().as_secs_f64() * 1e-9
    }

    /// Makes the numbers anew that were transformed.
    pub fn reset(&mut self) {
        self.data.iter_mut().enumerate().for_each(|(at, point)| *point = number(at));
    }

    /// Transforms back, and gives the largest scaled difference from what there was.
    pub fn residual(&mut self) -> f64 {
        self.inverse.process_with_scratch(&mut self.data, &mut self.scratch);
        let points = self.data.len();
        let apart = |(at, found): (usize, &Complex64)| (found / points as f64 - number(at)).norm();
        let apart = self.data.iter().enumerate().map(apart);
        scaled(greatest(apart), points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RESIDUAL_LIMIT;

    #[test]
    fn errors_are_scaled_as_hpcc_does() {
        // 16 of them are the limit: 2^-53 times ln 1024.
        let error = 16.0 * 2f64.powi(-53) * 1024f64.ln();
        assert!((scaled(error, 1024) / RESIDUAL_LIMIT - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_transform_comes_back_unless_it_was_spoilt() {
        for points in [2, 64, 1 << 12] {
            let mut fft = Fft::new(points);
            assert!(fft.run() > 0.0);
            assert!(fft.residual() < RESIDUAL_LIMIT);
            let mut fft = Fft::new(points);
            fft.run();
            fft.data[points / 2] += 1e-9;
            assert!(fft.residual() > RESIDUAL_LIMIT);
            fft.data[0] = Complex64::new(f64::NAN, 0.0);
            assert!(fft.residual().is_nan());
        }
    }
}
