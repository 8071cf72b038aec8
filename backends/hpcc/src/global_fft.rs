//! FFT of all ranks: one complex transform of a vector that all of them share, as transforms of rows and transposes.
//!
//! A vector of rows x columns points is a matrix in the order of its rows, which are dealt in equal runs. Transposed, each
//! of its columns is whole on one rank and is transformed there; the results are turned by the factors that depend on both
//! indices; transposed back, rows are transformed; a last transpose brings the points into their own order.

use std::sync::Arc;

use num_complex::Complex64;
use rustfft::{Fft as Transform, FftPlanner};
use tailback_transport::arranged::{receive, send};
use tailback_transport::{Group, Monitor, Rank, Result, Span, Tag};

use crate::fft::{number, operations, scaled};
use crate::random::greatest;
use crate::share::{largest, others};

const TAG: Tag = Tag(1);
const POINT: usize = 16;

/// One rank's run of the vector.
pub struct GlobalFft {
    /// Both are multiples of the number of ranks.
    rows: usize,
    columns: usize,
    me: usize,
    ranks: usize,
    data: Vec<Complex64>,
    turned: Vec<Complex64>,
    packed: Vec<Complex64>,
    scratch: Vec<Complex64>,
    down: Arc<dyn Transform<f64>>,
    along: Arc<dyn Transform<f64>>,
    factors: Factors,
}

impl GlobalFft {
    /// Random numbers, and the plans.
    ///
    /// # Panics
    /// If rows or columns are no multiples of the number of ranks.
    #[must_use]
    pub fn new((rows, columns): (usize, usize), ranks: usize, me: Rank) -> Self {
        assert!(rows.is_multiple_of(ranks) && columns.is_multiple_of(ranks), "{rows} x {columns} on {ranks}");
        let mut planner = FftPlanner::new();
        let (down, along) = (planner.plan_fft_forward(rows), planner.plan_fft_forward(columns));
        let zero = Complex64::new(0.0, 0.0);
        let (mine, me) = (rows * columns / ranks, me.index());
        GlobalFft {
            rows,
            columns,
            me,
            ranks,
            data: (me * mine..(me + 1) * mine).map(number).collect(),
            turned: vec![zero; mine],
            packed: vec![zero; mine / ranks],
            scratch: vec![zero; down.get_inplace_scratch_len().max(along.get_inplace_scratch_len())],
            down,
            along,
            factors: Factors::new(rows * columns),
        }
    }

    /// Bytes of segment that a rank needs: what it sends, then what it receives.
    #[must_use]
    pub fn segment((rows, columns): (usize, usize), ranks: usize) -> usize {
        2 * rows * columns / ranks * POINT
    }

    /// Transforms; the slowest rank's seconds.
    ///
    /// # Errors
    /// What the group says.
    pub fn run<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<f64> {
        monitor.tick();
        group.barrier()?;
        let begin = group.now();
        self.forward(group, monitor)?;
        largest(group, group.now().since(begin).as_secs_f64())
    }

    /// Makes the numbers anew that were transformed.
    pub fn reset(&mut self) {
        let first = self.me * self.data.len();
        self.data.iter_mut().enumerate().for_each(|(at, point)| *point = number(first + at));
    }

    /// 10^9 operations a second.
    #[must_use]
    pub fn gigaflops(&self, seconds: f64) -> f64 {
        operations(self.rows * self.columns) / seconds * 1e-9
    }

    fn forward<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<()> {
        let (rows, columns) = (self.rows, self.columns);
        self.transpose(group, rows, columns)?;
        self.down.process_with_scratch(&mut self.data, &mut self.scratch);
        let first = self.me * columns / self.ranks;
        for (at, line) in self.data.chunks_exact_mut(rows).enumerate() {
            self.factors.turn(line, first + at);
        }
        monitor.tick();
        self.transpose(group, columns, rows)?;
        self.along.process_with_scratch(&mut self.data, &mut self.scratch);
        monitor.tick();
        self.transpose(group, rows, columns)
    }

    /// Makes `data`, this rank's run of rows of a matrix, its run of rows of the transpose.
    fn transpose<G: Group>(&mut self, group: &mut G, rows: usize, columns: usize) -> Result<()> {
        let (me, ranks) = (Rank::from(self.me), self.ranks);
        let (height, width) = (rows / ranks, columns / ranks);
        let bytes = height * width * POINT;
        let span = |place: usize| Span::new(place * bytes, bytes);
        for peer in others(me, ranks) {
            receive(group, peer, TAG, span(ranks + peer.index()))?;
        }
        for peer in others(me, ranks) {
            let from = &self.data[peer.index() * width..];
            turn((from, columns), (&mut self.packed, height), (height, width));
            group.write(span(peer.index()).offset, bytemuck::cast_slice(&self.packed));
            send(group, peer, TAG, span(peer.index()))?;
        }
        let (own, into) = (&self.data[self.me * width..], &mut self.turned[self.me * height..]);
        turn((own, columns), (into, rows), (height, width));
        group.wait_all()?;
        for peer in others(me, ranks) {
            group.read(span(ranks + peer.index()).offset, bytemuck::cast_slice_mut(&mut self.packed));
            let into = self.turned[peer.index() * height..].chunks_mut(rows);
            into.zip(self.packed.chunks_exact(height)).for_each(|(into, line)| into[..height].copy_from_slice(line));
        }
        std::mem::swap(&mut self.data, &mut self.turned);
        Ok(())
    }

    /// Transforms back, and gives the largest scaled difference from what there was, over all ranks.
    ///
    /// # Errors
    /// What the group says.
    pub fn residual<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<f64> {
        // The inverse is the transform of the conjugate, conjugated.
        self.data.iter_mut().for_each(|point| *point = point.conj());
        self.forward(group, monitor)?;
        let points = self.rows * self.columns;
        let first = self.me * self.data.len();
        let apart = |(at, found): (usize, &Complex64)| (found.conj() / points as f64 - number(first + at)).norm();
        let apart = self.data.iter().enumerate().map(apart);
        Ok(scaled(largest(group, greatest(apart))?, points))
    }
}

/// Writes the transpose of a tile of `height` x `width`; rows of each side are its stride apart.
fn turn(
    (from, stride): (&[Complex64], usize),
    (into, into_stride): (&mut [Complex64], usize),
    (height, width): (usize, usize),
) {
    /// Points of a tile whose lines stay in the nearest cache.
    const TILE: usize = 16;
    for top in (0..height).step_by(TILE) {
        let rows = TILE.min(height - top);
        for left in (0..width).step_by(TILE) {
            for column in left..width.min(left + TILE) {
                let line = &mut into[column * into_stride + top..][..rows];
                let points = from[top * stride + column..].iter().step_by(stride);
                line.iter_mut().zip(points).for_each(|(into, from)| *into = *from);
            }
        }
    }
}

/// Powers of the first root of unity: of any exponent as the product of two from tables.
struct Factors {
    points: usize,
    /// Powers below the length of the table, and multiples of that length.
    fine: Vec<Complex64>,
    coarse: Vec<Complex64>,
}

impl Factors {
    fn new(points: usize) -> Self {
        let step = points.isqrt().max(1);
        let root = |power: usize| {
            let angle = -std::f64::consts::TAU * power as f64 / points as f64;
            Complex64::new(angle.cos(), angle.sin())
        };
        let coarse = (0..points.div_ceil(step)).map(|at| root(at * step)).collect();
        Factors { points, fine: (0..step).map(root).collect(), coarse }
    }

    /// Multiplies the `k`-th point of a line by the root's power `k * number`.
    fn turn(&self, line: &mut [Complex64], number: usize) {
        let (step, mut power) = (self.fine.len(), 0);
        // Where in the tables a power is moves by the same two distances every time.
        let (by_coarse, by_fine) = (number / step, number % step);
        let (mut coarse, mut fine) = (0, 0);
        for point in line {
            *point *= self.coarse[coarse] * self.fine[fine];
            power += number;
            (coarse, fine) = (coarse + by_coarse, fine + by_fine);
            if fine >= step {
                (coarse, fine) = (coarse + 1, fine - step);
            }
            if power >= self.points {
                power -= self.points;
                (coarse, fine) = (power / step, power % step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::*;
    use crate::RESIDUAL_LIMIT;
    use crate::testing::{BadCard, on_ranks};

    fn run(job: Job, ranks: usize, shape: (usize, usize)) -> Result<Vec<(Vec<Complex64>, f64)>> {
        on_ranks(job, ranks, GlobalFft::segment(shape, ranks), |group| {
            let mut fft = GlobalFft::new(shape, ranks, group.rank());
            assert!(fft.run(group, &Monitor::new())? >= 0.0);
            let found = fft.data.clone();
            Ok((found, fft.residual(group, &Monitor::new())?))
        })
    }

    #[test]
    fn it_is_the_transform_on_any_number_of_ranks() {
        for ranks in [1, 2, 3, 4, 6, 8] {
            let shape = (ranks * 4, ranks * 2);
            let points = shape.0 * shape.1;
            let mut expected: Vec<Complex64> = (0..points).map(number).collect();
            FftPlanner::new().plan_fft_forward(points).process(&mut expected);
            let all = run(Job::new(ranks), ranks, shape).unwrap();
            let found: Vec<Complex64> = all.iter().flat_map(|(found, _)| found.iter().copied()).collect();
            assert_eq!(found.len(), points);
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).norm() < 1e-12, "{ranks}");
            }
            assert!(all.iter().all(|(_, residual)| *residual < RESIDUAL_LIMIT));
        }
    }

    #[test]
    fn a_spoilt_point_fails_the_check_everywhere() {
        let card = BadCard { longer: 256, at: 13, bits: 0x04 };
        for (_, residual) in run(Job::new(2).fault(card), 2, (64, 32)).unwrap() {
            assert!(residual > RESIDUAL_LIMIT, "{residual}");
        }
    }

    #[test]
    fn factors_are_the_powers() {
        let factors = Factors::new(90);
        for number in [0, 1, 7, 89] {
            let mut line = vec![Complex64::new(1.0, 0.0); 40];
            factors.turn(&mut line, number);
            for (at, found) in line.iter().enumerate() {
                let angle = -std::f64::consts::TAU * ((at * number) % 90) as f64 / 90.0;
                assert!((found - Complex64::new(angle.cos(), angle.sin())).norm() < 1e-14);
            }
        }
    }
}
