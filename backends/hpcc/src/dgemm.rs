//! DGEMM: the product of two matrices, checked with a vector as HPCC does.

use std::time::Instant;

use crate::EPSILON;
use crate::ffi::{Shape, View, ViewMut, multiply_on};
use crate::random::element;
use crate::random::greatest;

const SEED_A: u64 = 1;
const SEED_B: u64 = 2;
const SEED_C: u64 = 3;
const SEED_X: u64 = 4;
const ALPHA: f64 = 0.75;
const BETA: f64 = -0.5;

/// C <- alpha A B + beta C, of matrices of `order`.
#[derive(Debug)]
pub struct Dgemm {
    order: usize,
    threads: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Dgemm {
    /// Random matrices, to be multiplied by so many threads.
    #[must_use]
    pub fn new(order: usize, threads: usize) -> Self {
        let matrix = |seed| {
            let row = |row| (0..order).map(move |column| element(seed, row, column));
            (0..order).flat_map(row).collect()
        };
        Dgemm { order, threads, a: matrix(SEED_A), b: matrix(SEED_B), c: matrix(SEED_C) }
    }

    /// Multiplies; 10^9 operations a second.
    pub fn run(&mut self) -> f64 {
        let order = self.order;
        let shape = Shape::by_rows(order, order, order);
        let begin = Instant::now();
        let c = ViewMut::new(&mut self.c, shape);
        multiply_on(self.threads, ALPHA, View::new(&self.a, shape), View::new(&self.b, shape), BETA, c);
        2.0 * (order as f64).powi(3) / begin.elapsed().as_secs_f64() * 1e-9
    }

    /// HPCC's ||C x - (alpha A B x + beta C' x)|| / (eps ||C|| ||x|| N) for a random x, where C' is C as it was: maximum norms,
    /// found by products with vectors alone.
    #[must_use]
    pub fn residual(&self) -> f64 {
        let order = self.order;
        let x: Vec<f64> = (0..order).map(|at| element(SEED_X, at, 0)).collect();
        let row = |matrix: &[f64], row: usize, with: &[f64]| -> f64 {
            matrix[row * order..][..order].iter().zip(with).map(|(left, right)| left * right).sum()
        };
        let weight = |matrix: &[f64]| {
            let of_row = |row: &[f64]| row.iter().map(|number| number.abs()).sum::<f64>();
            greatest(matrix.chunks_exact(order.max(1)).map(of_row))
        };
        let bx: Vec<f64> = (0..order).map(|at| row(&self.b, at, &x)).collect();
        let before = |at: usize| (0..order).map(|column| element(SEED_C, at, column) * x[column]).sum::<f64>();
        let apart =
            (0..order).map(|at| (row(&self.c, at, &x) - ALPHA * row(&self.a, at, &bx) - BETA * before(at)).abs());
        let apart = greatest(apart);
        let scale = weight(&self.c) * greatest(x.iter().map(|number| number.abs()));
        apart / (EPSILON * scale * order as f64)
    }
}

/// 10^9 operations a second of a product of `order` x `inner` by `inner` x `order`: the best of three. It is what HPL's updates
/// are made of.
#[must_use]
pub fn product_gflops(order: usize, inner: usize, threads: usize) -> f64 {
    let numbers = |seed| (0..order * inner).map(|at| element(seed, at, 0)).collect::<Vec<f64>>();
    let (a, b, mut c) = (numbers(SEED_A), numbers(SEED_B), vec![0.0; order * order]);
    let mut once = || {
        let begin = Instant::now();
        let (left, right) =
            (View::new(&a, Shape::by_rows(order, inner, inner)), View::new(&b, Shape::by_rows(inner, order, order)));
        multiply_on(threads, -1.0, left, right, 1.0, ViewMut::new(&mut c, Shape::by_rows(order, order, order)));
        2.0 * (order * order * inner) as f64 / begin.elapsed().as_secs_f64() * 1e-9
    };
    (0..3).map(|_| once()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RESIDUAL_LIMIT;

    #[test]
    fn a_product_passes_and_a_spoilt_one_does_not() {
        for order in [1, 7, 100, 301] {
            let mut dgemm = Dgemm::new(order, 2);
            assert!(dgemm.residual() > RESIDUAL_LIMIT, "not multiplied yet");
            assert!(dgemm.run() > 0.0);
            assert!(dgemm.residual() < RESIDUAL_LIMIT, "{order}: {}", dgemm.residual());
            dgemm.c[order * order / 2] += 1e-6;
            assert!(dgemm.residual() > RESIDUAL_LIMIT, "{order}: {}", dgemm.residual());
            dgemm.c[order * order / 2] = f64::NAN;
            assert!(dgemm.residual().is_nan(), "{order}");
        }
    }
}
