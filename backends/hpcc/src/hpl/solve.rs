//! The triangle that elimination leaves, solved block by block from the last one up; and HPL's checks, with the matrix made
//! anew.

use tailback_transport::{Group, Result, Span, Tag};

use super::place::{Place, Problem};
use crate::EPSILON;
use crate::random::element;
use crate::random::greatest;
use crate::share::{WORD, sum};

const SUMS: Tag = Tag(5);
const SOLVED: Tag = Tag(6);

/// Words of segment that it takes: a block sent, and one from every rank of a row.
pub(super) fn words(problem: Problem) -> usize {
    problem.block * (1 + problem.grid.columns)
}

/// The solution, on every rank.
pub(super) fn solve<G: Group>(group: &mut G, place: &Place, matrix: &[f64]) -> Result<Vec<f64>> {
    let order = place.problem.order;
    // What the blocks solved so far take from every row that this rank has.
    let mut taken = vec![0.0; place.height];
    let mut x = vec![0.0; order];
    for step in (0..place.steps()).rev() {
        let block = Block { start: step * place.problem.block, width: place.rows.len(step) };
        let (row, column) = (step % place.grid.rows, step % place.grid.columns);
        if place.row == row {
            let right = block.gather(group, place, matrix, &taken, column)?;
            if let Some(right) = right {
                x[block.start..][..block.width].copy_from_slice(&block.substitute(place, matrix, right));
            }
        }
        if place.column == column {
            let solved = &mut x[block.start..][..block.width];
            block.tell(group, place, row, solved)?;
            let (above, left) = (place.rows_before(block.start), place.columns_before(block.start));
            for (local, taken) in taken.iter_mut().enumerate().take(above) {
                let numbers = &matrix[local * place.width + left..][..block.width];
                *taken += numbers.iter().zip(&*solved).map(|(number, x)| number * x).sum::<f64>();
            }
        }
    }
    // Every block is known to one column of the grid: its first rank speaks for it.
    for step in 0..place.steps() {
        if place.row != 0 || place.column != step % place.grid.columns {
            x[step * place.problem.block..][..place.rows.len(step)].fill(0.0);
        }
    }
    sum(group, 0, &mut x)?;
    Ok(x)
}

/// Rows and columns of a block on the diagonal.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    width: usize,
}

impl Block {
    /// The right-hand side less what later blocks take, on the rank that has this block; all ranks of its row take part.
    fn gather<G: Group>(
        self,
        group: &mut G,
        place: &Place,
        matrix: &[f64],
        taken: &[f64],
        column: usize,
    ) -> Result<Option<Vec<f64>>> {
        let first = place.rows_before(self.start);
        let mut mine: Vec<f64> = taken[first..first + self.width].iter().map(|taken| -taken).collect();
        let order = place.problem.order;
        if place.columns.owner(order) == place.column {
            let last = place.columns.local(order);
            for (at, number) in mine.iter_mut().enumerate() {
                *number += matrix[(first + at) * place.width + last];
            }
        }
        let bytes = self.width * WORD;
        if place.column != column {
            group.write(0, bytemuck::cast_slice(&mine));
            group.post_send(place.grid.rank(place.row, column), SUMS, Span::new(0, bytes))?;
            group.wait_all()?;
            return Ok(None);
        }
        let others = || (0..place.grid.columns).filter(|other| *other != column);
        let span = |other: usize| Span::new((1 + other) * bytes, bytes);
        for other in others() {
            group.post_recv(place.grid.rank(place.row, other), SUMS, span(other))?;
        }
        group.wait_all()?;
        let mut theirs = vec![0.0; self.width];
        for other in others() {
            group.read(span(other).offset, bytemuck::cast_slice_mut(&mut theirs));
            mine.iter_mut().zip(&theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        Ok(Some(mine))
    }

    /// Solves the block itself.
    fn substitute(self, place: &Place, matrix: &[f64], mut right: Vec<f64>) -> Vec<f64> {
        let (first, left) = (place.rows_before(self.start), place.columns_before(self.start));
        for row in (0..self.width).rev() {
            let numbers = &matrix[(first + row) * place.width + left..][..self.width];
            let known: f64 = numbers[row + 1..].iter().zip(&right[row + 1..]).map(|(number, x)| number * x).sum();
            right[row] = (right[row] - known) / numbers[row];
        }
        right
    }

    /// Tells the solution of the block to the ranks of its column of the grid, of which the one in `row` has it.
    fn tell<G: Group>(self, group: &mut G, place: &Place, row: usize, solved: &mut [f64]) -> Result<()> {
        let span = Span::new(0, self.width * WORD);
        if place.row == row {
            group.write(0, bytemuck::cast_slice(solved));
            for other in (0..place.grid.rows).filter(|other| *other != row) {
                group.post_send(place.in_column(other), SOLVED, span)?;
            }
            return group.wait_all();
        }
        group.post_recv(place.in_column(row), SOLVED, span)?;
        group.wait_all()?;
        group.read(0, bytemuck::cast_slice_mut(solved));
        Ok(())
    }
}

/// How far a solution is off, scaled in four ways. Each has HPL's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residuals {
    /// That of HPL 2 and HPCC 1.5: ||Ax - b|| / (eps (||A|| ||x|| + ||b||) N), all of them maximum norms.
    pub hpl: f64,
    /// The paper's first: ||Ax - b|| / (eps ||A||_1 N).
    pub by_order: f64,
    /// Its second: ||Ax - b|| / (eps ||A||_1 ||x||_1).
    pub by_sums: f64,
    /// Its third: ||Ax - b|| / (eps ||A|| ||x|| N), maximum norms. The paper leaves the N out, which HPL itself has.
    pub by_maxima: f64,
}

/// The scaled residuals of a solution, the same on every rank.
pub(super) fn residuals<G: Group>(group: &mut G, place: &Place, x: &[f64]) -> Result<Residuals> {
    let (order, seed) = (place.problem.order, place.problem.seed);
    let (mut apart, mut right) = (vec![0.0; order], vec![0.0; order]);
    let (mut of_rows, mut of_columns) = (vec![0.0; order], vec![0.0; order]);
    for local in 0..place.height {
        let row = place.row_at(local);
        for at in 0..place.width {
            let column = place.column_at(at);
            let number = element(seed, row, column);
            if column == order {
                apart[row] -= number;
                right[row] = number;
            } else {
                apart[row] += number * x[column];
                of_rows[row] += number.abs();
                of_columns[column] += number.abs();
            }
        }
    }
    for numbers in [&mut apart, &mut of_rows, &mut of_columns, &mut right] {
        sum(group, 0, numbers)?;
    }
    let [apart, of_rows, of_columns, size, right] = [&apart[..], &of_rows, &of_columns, x, &right].map(norm);
    let scaled = |by: f64| apart / (EPSILON * by);
    Ok(Residuals {
        hpl: scaled((of_rows * size + right) * order as f64),
        by_order: scaled(of_columns * order as f64),
        by_sums: scaled(of_columns * x.iter().map(|number| number.abs()).sum::<f64>()),
        by_maxima: scaled(of_rows * size * order as f64),
    })
}

fn norm(numbers: &[f64]) -> f64 {
    greatest(numbers.iter().map(|number| number.abs()))
}
