//! A panel: the columns that are eliminated in one step, factored by the ranks of one column of the grid.
//!
//! Rows that were chosen as pivots are kept by all of these ranks (`top`), so that each updates its own rows without asking.
//! The columns are halved until few are left; what the left half does to the right one is a product of matrices.

use std::ops::Range;

use tailback_transport::{Error, Group, Result, Span, Tag};

use super::place::Place;
use crate::ffi::{Shape, View, ViewMut, multiply};
use crate::share::WORD;

const PIVOT: Tag = Tag(2);
/// Panels no wider than this are factored column by column.
const NARROW: usize = 8;
/// Rows that are copied together.
const ROWS: usize = 32;

/// Words of segment that the search for pivots takes: a candidate sent, and one received.
pub(super) fn words(block: usize) -> usize {
    2 * candidate(block)
}

fn candidate(width: usize) -> usize {
    3 + 2 * width
}

#[derive(Debug)]
pub(super) struct Panel {
    step: usize,
    /// Its first column, and row.
    pub(super) start: usize,
    pub(super) width: usize,
    /// Rows from `start` on that a rank has.
    height: usize,
    /// By columns.
    data: Vec<f64>,
    /// The pivots' rows, by rows: the lower factor's and the upper's block on the diagonal.
    top: Vec<f64>,
    /// Which row became the first, the second and so on.
    pub(super) pivots: Vec<usize>,
    /// This rank's rows that are pivots already: they are the first.
    done: usize,
}

impl Panel {
    pub(super) fn new(place: &Place, step: usize) -> Self {
        let start = step * place.problem.block;
        let width = place.rows.len(step);
        let height = place.height - place.rows_before(start);
        let (data, top) = (vec![0.0; height * width], vec![0.0; width * width]);
        Panel { step, start, width, height, data, top, pivots: vec![0; width], done: 0 }
    }

    /// The first column right of it.
    pub(super) fn end(&self) -> usize {
        self.start + self.width
    }

    pub(super) fn column_of_grid(&self, place: &Place) -> usize {
        self.step % place.grid.columns
    }

    pub(super) fn row_of_grid(&self, place: &Place) -> usize {
        self.step % place.grid.rows
    }

    /// Whether this rank has part of its columns.
    pub(super) fn is_mine(&self, place: &Place) -> bool {
        self.column_of_grid(place) == place.column
    }

    /// Where this rank has the rows of the block on the diagonal, if it has.
    pub(super) fn top_row(&self, place: &Place) -> Option<usize> {
        (self.row_of_grid(place) == place.row).then(|| place.rows_before(self.start))
    }

    /// This rank's first row below the block on the diagonal.
    pub(super) fn below(&self, place: &Place) -> usize {
        place.rows_before(self.end())
    }

    /// The lower factor below the block on the diagonal.
    pub(super) fn lower(&self, place: &Place) -> View<'_> {
        let skipped = self.below(place) - place.rows_before(self.start);
        let shape = Shape::by_columns(self.height - skipped, self.width, self.height);
        View::new(&self.data[skipped..], shape)
    }

    /// Copies the columns out of the matrix.
    pub(super) fn take(&mut self, place: &Place, matrix: &[f64]) {
        let (first, left) = (place.height - self.height, place.columns_before(self.start));
        // Some rows at a time: neighbours in both stay in the cache until they are used.
        for start in (0..self.height).step_by(ROWS) {
            let rows = ROWS.min(self.height - start);
            for (column, into) in self.data.chunks_exact_mut(self.height).enumerate() {
                let from = matrix[(first + start) * place.width + left + column..].iter().step_by(place.width);
                into[start..start + rows].iter_mut().zip(from).for_each(|(into, number)| *into = *number);
            }
        }
    }

    /// Writes the block on the diagonal back, where this rank has it: of the factors, the rest is not needed again.
    pub(super) fn put(&self, place: &Place, matrix: &mut [f64], top: usize) {
        if !self.is_mine(place) {
            return;
        }
        let left = place.columns_before(self.start);
        for (at, row) in self.top.chunks_exact(self.width).enumerate() {
            matrix[(top + at) * place.width + left..][..self.width].copy_from_slice(row);
        }
    }

    /// Words that are handed along.
    pub(super) fn words(&self) -> usize {
        self.data.len() + self.top.len() + self.pivots.len()
    }

    pub(super) fn write<G: Group>(&self, group: &mut G) {
        let pivots: Vec<f64> = self.pivots.iter().map(|&row| row as f64).collect();
        let mut at = 0;
        for part in [&self.data, &self.top, &pivots] {
            group.write(at, bytemuck::cast_slice(part));
            at += part.len() * WORD;
        }
    }

    pub(super) fn read<G: Group>(&mut self, group: &G) {
        let mut pivots = vec![0.0; self.pivots.len()];
        let mut at = 0;
        for part in [&mut self.data, &mut self.top, &mut pivots] {
            group.read(at, bytemuck::cast_slice_mut(part));
            at += part.len() * WORD;
        }
        self.pivots = pivots.into_iter().map(|row| row as usize).collect();
    }

    /// Factors it, with the other ranks of this column of the grid.
    pub(super) fn factor<G: Group>(&mut self, group: &mut G, place: &Place) -> Result<()> {
        self.columns(group, place, 0, self.width)
    }

    fn columns<G: Group>(&mut self, group: &mut G, place: &Place, from: usize, to: usize) -> Result<()> {
        if to - from <= NARROW {
            return (from..to).try_for_each(|column| self.column(group, place, column, to));
        }
        let middle = from + (to - from) / 2;
        self.columns(group, place, from, middle)?;
        self.update(from, middle, to);
        self.columns(group, place, middle, to)
    }

    /// Eliminates a column, and updates those up to `to`.
    fn column<G: Group>(&mut self, group: &mut G, place: &Place, column: usize, to: usize) -> Result<()> {
        let best = self.search(group, place, column)?;
        self.pivots[column] = best.row;
        self.exchange(place, column, &best);
        let height = self.height;
        let (left, right) = self.data.split_at_mut((column + 1) * height);
        let active = &mut left[column * height + self.done..];
        let inverse = 1.0 / best.pivot_row[column];
        active.iter_mut().for_each(|number| *number *= inverse);
        for at in column + 1..to {
            let (factor, into) =
                (best.pivot_row[at], &mut right[(at - column - 1) * height + self.done..][..active.len()]);
            into.iter_mut().zip(&*active).for_each(|(into, number)| *into -= factor * number);
        }
        Ok(())
    }

    /// The largest number of a column, over the ranks of this column of the grid, with its row and the one it displaces.
    fn search<G: Group>(&self, group: &mut G, place: &Place, column: usize) -> Result<Candidate> {
        let numbers = &self.data[column * self.height..][..self.height];
        let mut found: Option<(usize, f64)> = None;
        for (at, number) in numbers.iter().enumerate().skip(self.done) {
            if number.abs() > found.map_or(-1.0, |(_, most)| most) {
                found = Some((at, number.abs()));
            }
        }
        let first = place.height - self.height;
        let has_top = self.row_of_grid(place) == place.row;
        let mut best = Candidate {
            size: found.map_or(-1.0, |(_, size)| size),
            row: found.map_or(0, |(at, _)| place.row_at(first + at)),
            pivot_row: found.map_or_else(|| vec![0.0; self.width], |(at, _)| self.row(at)),
            displaced: has_top.then(|| self.row(column)),
        };
        best.agree(group, place)?;
        if best.size <= 0.0 {
            let detail = format!("column {} has no pivot: the matrix was spoilt", self.start + column);
            return Err(Error::Protocol { operation: "HPL", peer: None, detail });
        }
        Ok(best)
    }

    fn row(&self, at: usize) -> Vec<f64> {
        (0..self.width).map(|column| self.data[column * self.height + at]).collect()
    }

    /// Puts the pivot's row in its place on the diagonal, and what was there in the pivot's.
    fn exchange(&mut self, place: &Place, column: usize, best: &Candidate) {
        self.top[column * self.width..][..self.width].copy_from_slice(&best.pivot_row);
        let first = place.height - self.height;
        if place.rows.owner(best.row) == place.row
            && let Some(displaced) = &best.displaced
        {
            self.set_row(place.rows.local(best.row) - first, displaced);
        }
        if self.row_of_grid(place) == place.row {
            self.set_row(column, &best.pivot_row);
            self.done = column + 1;
        }
    }

    fn set_row(&mut self, at: usize, numbers: &[f64]) {
        let height = self.height;
        numbers.iter().enumerate().for_each(|(column, number)| self.data[column * height + at] = *number);
    }

    /// What the columns from `from` to `middle` do to those from there to `to`.
    fn update(&mut self, from: usize, middle: usize, to: usize) {
        let (width, height, done) = (self.width, self.height, self.done);
        substitute(&mut self.top, width, from..middle, middle..to);
        let (left, right) = self.data.split_at_mut(middle * height);
        if height > done {
            let lower = Shape::by_columns(height - done, middle - from, height);
            let upper = Shape::by_rows(middle - from, to - middle, width);
            let into = Shape::by_columns(height - done, to - middle, height);
            let lower = View::new(&left[from * height + done..], lower);
            let upper = View::new(&self.top[from * width + middle..], upper);
            multiply(-1.0, lower, upper, 1.0, ViewMut::new(&mut right[done..], into));
        }
    }

    /// Makes of the pivots' rows right of the panel, `stride` long, the rows of the upper factor, in some columns.
    pub(super) fn solve_upper(&self, upper: &mut [f64], stride: usize, columns: Range<usize>) {
        if !columns.is_empty() {
            self.solve_part(upper, stride, &columns, 0..self.width);
        }
    }

    fn solve_part(&self, upper: &mut [f64], stride: usize, columns: &Range<usize>, rows: Range<usize>) {
        let Range { start: from, end: to } = rows;
        if to - from <= NARROW {
            for row in from + 1..to {
                let (above, own) = upper.split_at_mut(row * stride);
                let own = &mut own[columns.clone()];
                for at in from..row {
                    let factor = self.top[row * self.width + at];
                    let above = &above[at * stride..][columns.clone()];
                    own.iter_mut().zip(above).for_each(|(into, number)| *into -= factor * number);
                }
            }
            return;
        }
        let middle = from + (to - from) / 2;
        self.solve_part(upper, stride, columns, from..middle);
        let (above, below) = upper.split_at_mut(middle * stride);
        let lower = Shape::by_rows(to - middle, middle - from, self.width);
        let lower = View::new(&self.top[middle * self.width + from..], lower);
        let shape = Shape::by_rows(middle - from, columns.len(), stride);
        let above = View::new(&above[from * stride + columns.start..], shape);
        let below = ViewMut::new(&mut below[columns.start..], Shape::by_rows(to - middle, columns.len(), stride));
        multiply(-1.0, lower, above, 1.0, below);
        self.solve_part(upper, stride, columns, middle..to);
    }
}

/// Solves with the unit lower triangle of `rows` of a square by rows, for its `columns`.
fn substitute(square: &mut [f64], width: usize, rows: Range<usize>, columns: Range<usize>) {
    for row in rows.clone() {
        let (above, own) = square.split_at_mut(row * width);
        for at in rows.start..row {
            let factor = own[at];
            let from = &above[at * width..][columns.clone()];
            own[columns.clone()].iter_mut().zip(from).for_each(|(into, number)| *into -= factor * number);
        }
    }
}

/// The pivot that a rank proposes, or that ranks agreed on so far.
struct Candidate {
    /// Its absolute value; negative where a rank has none.
    size: f64,
    /// Its row of the matrix.
    row: usize,
    pivot_row: Vec<f64>,
    /// The row that stands where it goes, once it is known.
    displaced: Option<Vec<f64>>,
}

impl Candidate {
    /// The best of the candidates of this column of the grid, on each of its ranks. Which is better does not depend on who
    /// asks, so to hear of one twice does no harm, and rounds of twice the distance each reach everyone.
    fn agree<G: Group>(&mut self, group: &mut G, place: &Place) -> Result<()> {
        let (size, me) = (place.grid.rows, place.row);
        let mut words = vec![0.0; candidate(self.pivot_row.len())];
        let bytes = words.len() * WORD;
        let mut distance = 1;
        while distance < size {
            self.encode(&mut words);
            group.write(0, bytemuck::cast_slice(&words));
            group.post_recv(place.in_column((me + size - distance) % size), PIVOT, Span::new(bytes, bytes))?;
            group.post_send(place.in_column((me + distance) % size), PIVOT, Span::new(0, bytes))?;
            group.wait_all()?;
            group.read(bytes, bytemuck::cast_slice_mut(&mut words));
            self.join(&words);
            distance *= 2;
        }
        Ok(())
    }

    fn encode(&self, words: &mut [f64]) {
        let width = self.pivot_row.len();
        words[..3].copy_from_slice(&[self.size, self.row as f64, f64::from(u8::from(self.displaced.is_some()))]);
        words[3..3 + width].copy_from_slice(&self.pivot_row);
        if let Some(displaced) = &self.displaced {
            words[3 + width..].copy_from_slice(displaced);
        }
    }

    fn join(&mut self, words: &[f64]) {
        let width = self.pivot_row.len();
        let (size, row) = (words[0], words[1] as usize);
        if size > self.size || (size == self.size && row < self.row) {
            (self.size, self.row) = (size, row);
            self.pivot_row.copy_from_slice(&words[3..3 + width]);
        }
        if words[2] != 0.0 {
            self.displaced = Some(words[3 + width..].to_vec());
        }
    }
}
