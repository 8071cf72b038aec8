//! PTRANS: A <- A^T + B of matrices whose blocks are dealt to a grid of ranks.
//!
//! Block (I, J) of the result wants block (J, I) of A. Each rank packs its blocks by the rank that wants them, turned
//! already, and all ranks exchange with all at once; blocks it wants of itself never leave it.

use tailback_transport::arranged::{Grid, receive, send};
use tailback_transport::{Group, Monitor, Rank, Result, Span, Tag};

use crate::EPSILON;
use crate::blocks::Cyclic;
use crate::random::element;
use crate::random::greatest;
use crate::share::{WORD, largest, others};

const SEED_A: u64 = 6;
const SEED_B: u64 = 7;
const TAG: Tag = Tag(1);

/// One rank's blocks.
#[derive(Debug)]
pub struct Ptrans {
    order: usize,
    grid: Grid,
    rows: Cyclic,
    columns: Cyclic,
    /// This rank's row and column of the grid.
    place: (usize, usize),
    a: Vec<f64>,
    /// B, and then the result.
    c: Vec<f64>,
    packed: Vec<f64>,
}

/// A block of A: its own row and column of blocks.
#[derive(Clone, Copy)]
struct Block {
    row: usize,
    column: usize,
}

impl Ptrans {
    /// Random matrices of `order`, in blocks of `block`.
    #[must_use]
    pub fn new(order: usize, block: usize, grid: Grid, me: Rank) -> Self {
        let rows = Cyclic { total: order, block, parts: grid.rows };
        let columns = Cyclic { total: order, block, parts: grid.columns };
        let place = grid.place(me);
        let a = fill(SEED_A, rows, columns, place);
        let packed = vec![0.0; a.len()];
        let mut made = Ptrans { order, grid, rows, columns, place, a, c: Vec::new(), packed };
        made.reset();
        made
    }

    /// Makes B anew where the result is.
    pub fn reset(&mut self) {
        self.c = fill(SEED_B, self.rows, self.columns, self.place);
    }

    /// Bytes of segment that a rank of any place needs: what it sends, then what it receives.
    #[must_use]
    pub fn segment(order: usize, block: usize, grid: Grid) -> usize {
        let most = |parts: usize| order.div_ceil(block).div_ceil(parts) * block;
        2 * most(grid.rows) * most(grid.columns) * WORD
    }

    /// Adds the transpose; the slowest rank's seconds.
    ///
    /// # Errors
    /// What the group says.
    pub fn run<G: Group>(&mut self, group: &mut G, monitor: &Monitor) -> Result<f64> {
        monitor.tick();
        group.barrier()?;
        let (begin, me, size) = (group.now(), group.rank(), group.size());
        let received = Self::segment(self.order, self.rows.block, self.grid) / 2;
        let incoming = self.spans(size, received, |peer| self.words(peer, me));
        let outgoing = self.spans(size, 0, |peer| self.words(me, peer));
        for peer in others(me, size) {
            receive(group, peer, TAG, incoming[peer.index()])?;
        }
        for peer in others(me, size) {
            let words = self.pack(me, peer);
            group.write(outgoing[peer.index()].offset, bytemuck::cast_slice(&self.packed[..words]));
            send(group, peer, TAG, outgoing[peer.index()])?;
        }
        let words = self.pack(me, me);
        self.add(me, me, words);
        group.wait_all()?;
        for peer in others(me, size) {
            let span = incoming[peer.index()];
            let words = span.len / WORD;
            group.read(span.offset, bytemuck::cast_slice_mut(&mut self.packed[..words]));
            self.add(peer, me, words);
        }
        largest(group, group.now().since(begin).as_secs_f64())
    }

    /// Where the messages with every peer lie, one behind the other.
    fn spans(&self, size: usize, from: usize, words: impl Fn(Rank) -> usize) -> Vec<Span> {
        let next = |at: &mut usize, peer: usize| {
            let span = Span::new(*at, words(Rank::from(peer)) * WORD);
            *at = span.end();
            Some(span)
        };
        (0..size).scan(from, next).collect()
    }

    /// The blocks of A that `from` has and `to` wants, in an order that both know.
    fn blocks(&self, from: Rank, to: Rank) -> impl Iterator<Item = Block> + use<> {
        let ((p, q), (to_row, to_column)) = (self.grid.place(from), self.grid.place(to));
        let (grid, blocks) = (self.grid, self.rows.blocks());
        // Column J of A is row J of the result, and must be in the wanting rank's row of the grid; and so the other way.
        let rows = move || (p..blocks).step_by(grid.rows).filter(move |row| row % grid.columns == to_column);
        let columns = move || (q..blocks).step_by(grid.columns).filter(move |column| column % grid.rows == to_row);
        rows().flat_map(move |row| columns().map(move |column| Block { row, column }))
    }

    fn words(&self, from: Rank, to: Rank) -> usize {
        self.blocks(from, to).map(|block| self.rows.len(block.row) * self.columns.len(block.column)).sum()
    }

    /// Turns what `to` wants of this rank into `packed`; how much that is.
    fn pack(&mut self, me: Rank, to: Rank) -> usize {
        let stride = self.columns.count(self.place.1);
        let mut at = 0;
        for Block { row, column } in self.blocks(me, to) {
            let (height, width) = (self.rows.len(row), self.columns.len(column));
            let first = self.rows.local(row * self.rows.block) * stride + self.columns.local(column * self.rows.block);
            for turned in 0..width {
                let line = &mut self.packed[at..][..height];
                line.iter_mut().zip(self.a[first + turned..].iter().step_by(stride)).for_each(|(to, from)| *to = *from);
                at += height;
            }
        }
        at
    }

    /// Adds what `from` packed for `me`, `words` in `packed`, to the result.
    fn add(&mut self, from: Rank, me: Rank, words: usize) {
        let stride = self.columns.count(self.place.1);
        let mut lines = &self.packed[..words];
        for Block { row, column } in self.blocks(from, me) {
            let (width, height) = (self.columns.len(column), self.rows.len(row));
            let first = self.rows.local(column * self.rows.block) * stride + self.columns.local(row * self.rows.block);
            for turned in 0..width {
                let (line, rest) = lines.split_at(height);
                let into = &mut self.c[first + turned * stride..][..height];
                into.iter_mut().zip(line).for_each(|(sum, number)| *sum += number);
                lines = rest;
            }
        }
    }

    /// The largest scaled difference of the result from what it must be, over all ranks.
    ///
    /// # Errors
    /// What the group says.
    pub fn residual<G: Group>(&self, group: &mut G) -> Result<f64> {
        let stride = self.columns.count(self.place.1).max(1);
        let apart = self.c.chunks(stride).enumerate().flat_map(|(local, row)| {
            let row_at = self.rows.global(self.place.0, local);
            row.iter().enumerate().map(move |(at, &found)| {
                let column_at = self.columns.global(self.place.1, at);
                (found - (element(SEED_A, column_at, row_at) + element(SEED_B, row_at, column_at))).abs()
            })
        });
        let most = largest(group, greatest(apart))?;
        Ok(most / (EPSILON * self.order as f64))
    }

    /// 10^9 bytes of the matrix a second.
    #[must_use]
    pub fn gigabytes_per_second(&self, seconds: f64) -> f64 {
        (self.order as f64).powi(2) * WORD as f64 / seconds * 1e-9
    }
}

fn fill(seed: u64, rows: Cyclic, columns: Cyclic, (p, q): (usize, usize)) -> Vec<f64> {
    let width = columns.count(q);
    let row = |local| {
        let row = rows.global(p, local);
        (0..width).map(move |at| element(seed, row, columns.global(q, at)))
    };
    (0..rows.count(p)).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::*;
    use crate::RESIDUAL_LIMIT;
    use crate::testing::{BadCard, on_ranks};

    fn residuals(job: Job, order: usize, grid: Grid) -> Result<Vec<[f64; 3]>> {
        on_ranks(job, grid.ranks(), Ptrans::segment(order, 8, grid), |group| {
            let mut ptrans = Ptrans::new(order, 8, grid, group.rank());
            let before = ptrans.residual(group)?;
            assert!(ptrans.run(group, &Monitor::new())? >= 0.0);
            let after = ptrans.residual(group)?;
            ptrans.reset();
            ptrans.run(group, &Monitor::new())?;
            Ok([before, after, ptrans.residual(group)?])
        })
    }

    #[test]
    fn it_is_the_transpose_on_any_grid() {
        for grid in ["1x1", "1x2", "1x3", "2x2", "2x3", "3x2", "2x4", "4x2"] {
            for order in [5, 40, 67] {
                let grid: Grid = grid.parse().unwrap();
                for [before, after, again] in residuals(Job::new(grid.ranks()), order, grid).unwrap() {
                    assert!(before > RESIDUAL_LIMIT && after == 0.0 && again == 0.0, "{grid} {order}");
                }
            }
        }
    }

    #[test]
    fn one_spoilt_number_fails_the_check_everywhere() {
        let card = BadCard { longer: 512, at: 100, bits: 0x40 };
        for [_, after, _] in residuals(Job::new(4).fault(card), 67, Grid::of(4)).unwrap() {
            assert!(after > RESIDUAL_LIMIT, "{after}");
        }
    }
}
