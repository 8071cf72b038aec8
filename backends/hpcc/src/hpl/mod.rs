//! HPL: a system of linear equations, solved by elimination with row pivots, on blocks dealt to a grid of ranks.
//!
//! The right-hand side is a further column of the matrix, so that it is eliminated along and the lower factor need not be
//! kept. Step by step, the ranks of one column of the grid factor a panel ([`panel`]), hand it along the rows, bring rows
//! into the order of the pivots ([`swap`]), and update what is left by a product of matrices, which is where the time goes.
//! The next panel is factored ahead of the rest of the update.
//! The triangle is solved from the last block up , and the residual found with the matrix made anew ([`solve`]).

mod panel;
mod place;
mod solve;
mod swap;

use std::ops::Range;

use tailback_transport::arranged::Tree;
use tailback_transport::{Group, Monitor, Rank, Result, Span, Tag};

use crate::ffi::{Shape, View, ViewMut, multiply_on};
use crate::random::element;
use crate::share::{WORD, largest};
use panel::Panel;
use place::Place;

pub use place::Problem;
pub use solve::Residuals;

const PANEL: Tag = Tag(1);
/// Columns that are updated between two looks at the network. Every product packs the panel anew: few columns would not be
/// worth it.
const STRETCH: usize = 1024;

/// One rank's blocks.
#[derive(Debug)]
pub struct Hpl {
    place: Place,
    /// By rows.
    matrix: Vec<f64>,
    /// The solution, once there is one.
    x: Vec<f64>,
    /// Rows of the pivots from the panel's right on.
    upper: Vec<f64>,
    threads: usize,
}

impl Hpl {
    /// A random matrix and right-hand side.
    #[must_use]
    pub fn new(problem: Problem, me: Rank) -> Self {
        let place = Place::new(problem, me);
        let row = |local| {
            let row = place.row_at(local);
            (0..place.width).map(move |at| element(problem.seed, row, place.column_at(at)))
        };
        let matrix = (0..place.height).flat_map(row).collect();
        Hpl { place, matrix, x: Vec::new(), upper: Vec::new(), threads: 1 }
    }

    /// The same with updates made by so many threads.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Hpl { threads, ..self }
    }

    /// Bytes of segment that a rank of any place needs.
    #[must_use]
    pub fn segment(problem: Problem) -> usize {
        let Problem { order, block, grid, .. } = problem;
        let rows = order.div_ceil(block).div_ceil(grid.rows) * block;
        let columns = (order + 1).div_ceil(block).div_ceil(grid.columns) * block;
        let panel = (rows + block + 1) * block;
        // Of whatever needs the most: they take turns.
        panel.max(swap::words(block, columns)).max(panel::words(block)).max(solve::words(problem)).max(order) * WORD
    }

    /// Solves; the slowest rank's seconds.
    ///
    /// # Errors
    /// What the group says, or a matrix without a pivot, which a random one has not.
    pub fn run<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<f64> {
        monitor.tick();
        group.barrier()?;
        let begin = group.now();
        let mut panel = Panel::new(&self.place, 0);
        if panel.is_mine(&self.place) {
            panel.take(&self.place, &self.matrix);
            panel.factor(group, &self.place)?;
        }
        let along = Along::new(&self.place, &panel);
        along.start(group, &panel)?;
        along.end(group, &mut panel)?;
        for step in 1..=self.place.steps() {
            let next = (step < self.place.steps()).then(|| Panel::new(&self.place, step));
            let next = self.eliminate(group, &panel, next)?;
            monitor.tick();
            panel = next.unwrap_or(panel);
        }
        self.x = solve::solve(group, &self.place, &self.matrix)?;
        largest(group, group.now().since(begin).as_secs_f64())
    }

    /// The scaled residuals of the solution.
    ///
    /// # Errors
    /// What the group says.
    pub fn residuals<G: Group>(&self, group: &mut G) -> Result<Residuals> {
        solve::residuals(group, &self.place, &self.x)
    }

    /// The update of all that is right of a panel. The ranks that have the next panel update and factor that first, and while
    /// it is handed along, everyone updates the rest: nobody waits for a panel that is made meanwhile.
    fn eliminate<G: Group>(&mut self, group: &mut G, panel: &Panel, next: Option<Panel>) -> Result<Option<Panel>> {
        let place = self.place;
        let right = place.columns_before(panel.end());
        let width = place.width - right;
        swap::swap(group, &place, panel, &mut self.matrix, right, &mut self.upper)?;
        let mut done = 0;
        let mut ahead = None;
        if let Some(mut next) = next {
            if next.is_mine(&place) {
                done = next.width;
                self.update(panel, right, 0..done);
                next.take(&place, &self.matrix);
                next.factor(group, &place)?;
            }
            let along = Along::new(&place, &next);
            along.start(group, &next)?;
            ahead = Some((next, along));
        }
        while done < width {
            let end = width.min(done + STRETCH);
            self.update(panel, right, done..end);
            done = end;
            // What is under way goes on.
            group.wait_until(group.now())?;
        }
        if let Some(top) = panel.top_row(&place) {
            for (at, row) in self.upper.chunks_exact(width.max(1)).enumerate() {
                self.matrix[(top + at) * place.width + right..][..width].copy_from_slice(row);
            }
            panel.put(&place, &mut self.matrix, top);
        }
        let Some((mut next, along)) = ahead else { return Ok(None) };
        along.end(group, &mut next)?;
        Ok(Some(next))
    }

    /// Updates some columns, counted from `right` on.
    fn update(&mut self, panel: &Panel, right: usize, columns: Range<usize>) {
        let place = &self.place;
        let (all, width) = (place.width - right, columns.len());
        panel.solve_upper(&mut self.upper, all, columns.clone());
        let below = panel.below(place);
        let rows = place.height - below;
        if rows > 0 && width > 0 {
            let upper = View::new(&self.upper[columns.start..], Shape::by_rows(panel.width, width, all));
            let into = Shape::by_rows(rows, width, place.width);
            let trailing = ViewMut::new(&mut self.matrix[below * place.width + right + columns.start..], into);
            multiply_on(self.threads, -1.0, panel.lower(place), upper, 1.0, trailing);
        }
    }
}

/// A panel on its way along the rows of the grid.
#[derive(Debug)]
struct Along {
    line: Vec<Rank>,
    root: usize,
    me: usize,
    span: Span,
}

impl Along {
    fn new(place: &Place, panel: &Panel) -> Self {
        let line = (0..place.grid.columns).map(|column| place.grid.rank(place.row, column)).collect();
        let span = Span::new(0, panel.words() * WORD);
        Along { line, root: panel.column_of_grid(place), me: place.column, span }
    }

    fn tree(&self) -> Tree<'_> {
        Tree { line: &self.line, root: self.root, me: self.me }
    }

    /// Posts this rank's first part of it: until the end, the segment is the panel's.
    fn start<G: Group>(&self, group: &mut G, panel: &Panel) -> Result<()> {
        if self.line.len() == 1 {
            return Ok(());
        }
        if self.me != self.root {
            return self.tree().receive(group, PANEL, self.span);
        }
        panel.write(group);
        self.tree().send(group, PANEL, self.span)
    }

    fn end<G: Group>(&self, group: &mut G, panel: &mut Panel) -> Result<()> {
        if self.line.len() == 1 {
            return Ok(());
        }
        group.wait_all()?;
        if self.me != self.root {
            self.tree().send(group, PANEL, self.span)?;
            group.wait_all()?;
            panel.read(group);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;
    use tailback_transport::arranged::Grid;

    use super::*;
    use crate::RESIDUAL_LIMIT;
    use crate::testing::{BadCard, on_ranks};

    /// The solution, its residuals, and those after it was spoilt.
    type Solved = (Vec<f64>, [f64; 4], [f64; 4]);

    fn solved(job: Job, problem: Problem) -> Result<Vec<Solved>> {
        on_ranks(job, problem.grid.ranks(), Hpl::segment(problem), |group| {
            let mut hpl = Hpl::new(problem, group.rank()).on_threads(2);
            assert!(hpl.run(group, &Monitor::new())? >= 0.0);
            let residuals = hpl.residuals(group)?;
            let all = |of: Residuals| [of.hpl, of.by_order, of.by_sums, of.by_maxima];
            let x = hpl.x.clone();
            hpl.x[problem.order / 2] += 1e-6;
            Ok((x, all(residuals), all(hpl.residuals(group)?)))
        })
    }

    #[test]
    fn systems_are_solved_on_any_grid_and_a_spoilt_solution_is_seen() {
        for (order, block) in [(1, 8), (8, 8), (30, 8), (67, 16), (130, 32)] {
            let mut first: Option<Vec<f64>> = None;
            for grid in ["1x1", "1x2", "2x1", "1x3", "3x1", "2x2", "2x3", "3x2", "2x4", "4x2"] {
                let grid: Grid = grid.parse().unwrap();
                let problem = Problem { order, block, grid, seed: 11 };
                for (x, residuals, spoilt) in solved(Job::new(grid.ranks()), problem).unwrap() {
                    assert!(residuals.iter().all(|of| *of < RESIDUAL_LIMIT), "{order} {block} {grid}: {residuals:?}");
                    assert!(spoilt.iter().all(|of| *of > RESIDUAL_LIMIT), "{order} {block} {grid}: {spoilt:?}");
                    let first = first.get_or_insert_with(|| x.clone());
                    let close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-6 * (1.0 + other.abs());
                    assert!(x.iter().zip(&*first).all(close), "{order} {block} {grid}");
                }
            }
        }
    }

    #[test]
    fn a_spoilt_message_fails_the_check_or_ends_it() {
        for grid in ["1x2", "2x2"] {
            let grid: Grid = grid.parse().unwrap();
            let problem = Problem { order: 130, block: 16, grid, seed: 11 };
            let card = BadCard { longer: 2000, at: 806, bits: 0x10 };
            if let Ok(all) = solved(Job::new(grid.ranks()).fault(card), problem) {
                let wrong = |residual: &f64| residual.is_nan() || *residual > RESIDUAL_LIMIT;
                assert!(all.iter().all(|(_, residuals, _)| residuals.iter().all(wrong)), "{grid}");
            }
        }
    }
}
