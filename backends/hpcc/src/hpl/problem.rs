//! What HPL solves.

use crate::blocks::Grid;

/// What is solved, and how it is dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Problem {
    pub order: usize,
    /// Columns of a panel.
    pub block: usize,
    pub grid: Grid,
    pub seed: u64,
}

impl Problem {
    /// 10^9 operations a second, by HPL's count.
    #[must_use]
    pub fn gigaflops(&self, seconds: f64) -> f64 {
        let order = self.order as f64;
        (2.0 / 3.0 * order.powi(3) + 1.5 * order.powi(2)) / seconds * 1e-9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_as_hpl_does() {
        let problem = Problem { order: 1000, block: 80, grid: Grid::of(1), seed: 1 };
        assert!((problem.gigaflops(1.0) - 0.668_166_666_666_666_6).abs() < 1e-12);
    }
}
