//! What HPL solves, where a rank is in the grid, and which rows and columns it has.

use tailback_transport::Rank;
use tailback_transport::arranged::Grid;

use crate::blocks::Cyclic;

/// A rank's part of the matrix, of which the last column is the right-hand side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) problem: Problem,
    pub(super) grid: Grid,
    /// This rank's row and column of the grid.
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: Cyclic,
    pub(super) columns: Cyclic,
    /// Rows and columns that it has.
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Place {
    pub(super) fn new(problem: Problem, me: Rank) -> Self {
        let Problem { order, block, grid, .. } = problem;
        let (row, column) = grid.place(me);
        let rows = Cyclic { total: order, block, parts: grid.rows };
        let columns = Cyclic { total: order + 1, block, parts: grid.columns };
        Place { problem, grid, row, column, rows, columns, height: rows.count(row), width: columns.count(column) }
    }

    /// How many panels there are.
    pub(super) fn steps(&self) -> usize {
        self.rows.blocks()
    }

    /// The row of the matrix that this rank has at `local`.
    pub(super) fn row_at(&self, local: usize) -> usize {
        self.rows.global(self.row, local)
    }

    pub(super) fn column_at(&self, local: usize) -> usize {
        self.columns.global(self.column, local)
    }

    /// How many rows below `end` this rank has.
    pub(super) fn rows_before(&self, end: usize) -> usize {
        self.rows.before(self.row, end)
    }

    pub(super) fn columns_before(&self, end: usize) -> usize {
        self.columns.before(self.column, end)
    }

    /// The ranks of this one's column of the grid, from the top.
    pub(super) fn in_column(&self, row: usize) -> Rank {
        self.grid.rank(row, self.column)
    }
}

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
        Problem::operations(self.order as f64) / seconds * 1e-9
    }

    /// Operations by HPL's count.
    #[must_use]
    pub fn operations(order: f64) -> f64 {
        2.0 / 3.0 * order.powi(3) + 1.5 * order.powi(2)
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
