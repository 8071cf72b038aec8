//! Brings rows right of a panel into the order of its pivots.
//!
//! All ranks of a column of the grid get the pivots' rows, for they all update with them; rows that gave way go where the
//! pivots came from. Who sends what follows from the pivots, which everyone knows.

use std::collections::BTreeMap;

use tailback_transport::arranged::{receive, send};
use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::panel::Panel;
use super::place::Place;
use crate::share::WORD;

const PIVOTS: Tag = Tag(3);
const DISPLACED: Tag = Tag(4);

/// Words of segment that it takes, for rows of `width`: pivots' rows and displaced ones, sent and received.
pub(super) fn words(block: usize, width: usize) -> usize {
    4 * block * width
}

/// Where rows go.
struct Moves {
    /// The row that becomes the first of the panel, the second and so on.
    pivots: Vec<usize>,
    /// Rows of the block on the diagonal, and where each goes below it.
    displaced: Vec<(usize, usize)>,
}

impl Moves {
    fn of(panel: &Panel) -> Self {
        let mut now: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, &pivot) in panel.pivots.iter().enumerate() {
            let place = panel.start + at;
            let (here, there) = (*now.get(&place).unwrap_or(&place), *now.get(&pivot).unwrap_or(&pivot));
            now.insert(place, there);
            now.insert(pivot, here);
        }
        let pivots = (panel.start..panel.end()).map(|place| *now.get(&place).unwrap_or(&place)).collect();
        let displaced = now.range(panel.end()..).map(|(&place, &row)| (row, place)).collect();
        Moves { pivots, displaced }
    }
}

/// Moves rows of `matrix` from column `right` on; `upper` gets the pivots' rows.
pub(super) fn swap<G: Group>(
    group: &mut G,
    place: &Place,
    panel: &Panel,
    matrix: &mut [f64],
    right: usize,
    upper: &mut Vec<f64>,
) -> Result<()> {
    let width = place.width - right;
    upper.clear();
    upper.resize(panel.width * width, 0.0);
    if width == 0 {
        return Ok(());
    }
    let moves = Moves::of(panel);
    let mut rows = Rows { group, place, width, right, matrix };
    rows.local(&moves, upper);
    if place.grid.rows > 1 {
        rows.exchange(&moves, panel, upper)?;
    }
    Ok(())
}

struct Rows<'a, G> {
    group: &'a mut G,
    place: &'a Place,
    width: usize,
    right: usize,
    matrix: &'a mut [f64],
}

impl<G: Group> Rows<'_, G> {
    fn start(&self, row: usize) -> usize {
        self.place.rows.local(row) * self.place.width + self.right
    }

    fn owner(&self, row: usize) -> usize {
        self.place.rows.owner(row)
    }

    /// What this rank has and wants itself. Rows of the block on the diagonal stay until the update overwrites them.
    fn local(&mut self, moves: &Moves, upper: &mut [f64]) {
        let me = self.place.row;
        for (at, &row) in moves.pivots.iter().enumerate().filter(|(_, row)| self.owner(**row) == me) {
            let start = self.start(row);
            upper[at * self.width..][..self.width].copy_from_slice(&self.matrix[start..start + self.width]);
        }
        let rows = self.place.rows;
        let is_mine = |row: usize| rows.owner(row) == me;
        for &(row, to) in moves.displaced.iter().filter(|(row, to)| is_mine(*row) && is_mine(*to)) {
            let (from, to) = (self.start(row), self.start(to));
            self.matrix.copy_within(from..from + self.width, to);
        }
    }

    /// The same between ranks. Segment: pivots' rows of this rank, displaced rows by receiver, then what comes.
    fn exchange(&mut self, moves: &Moves, panel: &Panel, upper: &mut [f64]) -> Result<()> {
        let (me, size, bytes) = (self.place.row, self.place.grid.rows, self.width * WORD);
        let block = self.place.problem.block;
        let from_top = panel.row_of_grid(self.place);
        let count = |row: usize| moves.pivots.iter().filter(|pivot| self.owner(**pivot) == row).count();
        let going = |to: usize| moves.displaced.iter().filter(|(_, place)| self.owner(*place) == to).count();
        let own = Span::new(0, count(me) * bytes);
        // Where the rows of every other rank come to lie, one behind the other.
        let mut at = 2 * block * bytes;
        let mut incoming = Vec::new();
        for row in (0..size).filter(|row| *row != me) {
            incoming.push((row, Span::new(at, count(row) * bytes)));
            at += count(row) * bytes;
        }
        let displaced = Span::new(3 * block * bytes, if me == from_top { 0 } else { going(me) * bytes });
        let mut outgoing = Vec::new();
        let mut at = block * bytes;
        for row in (0..size).filter(|row| *row != me && me == from_top) {
            outgoing.push((row, Span::new(at, going(row) * bytes)));
            at += going(row) * bytes;
        }
        for &(row, span) in &incoming {
            receive(self.group, self.place.in_column(row), PIVOTS, span)?;
        }
        receive(self.group, self.place.in_column(from_top), DISPLACED, displaced)?;
        self.pack(moves, upper, own, &outgoing);
        for row in (0..size).filter(|row| *row != me) {
            send(self.group, self.peer(row), PIVOTS, own)?;
        }
        for &(row, span) in &outgoing {
            send(self.group, self.peer(row), DISPLACED, span)?;
        }
        self.group.wait_all()?;
        self.unpack(moves, upper, &incoming, displaced);
        Ok(())
    }

    fn peer(&self, row: usize) -> Rank {
        self.place.in_column(row)
    }

    fn pack(&mut self, moves: &Moves, upper: &[f64], own: Span, outgoing: &[(usize, Span)]) {
        let me = self.place.row;
        let mine = moves.pivots.iter().enumerate().filter(|(_, row)| self.owner(**row) == me);
        let rows = mine.flat_map(|(at, _)| &upper[at * self.width..][..self.width]);
        let packed: Vec<f64> = rows.copied().collect();
        self.group.write(own.offset, bytemuck::cast_slice(&packed));
        for &(row, span) in outgoing {
            let there = moves.displaced.iter().filter(|(_, place)| self.owner(*place) == row);
            let rows = there.flat_map(|(from, _)| &self.matrix[self.start(*from)..][..self.width]);
            let packed: Vec<f64> = rows.copied().collect();
            self.group.write(span.offset, bytemuck::cast_slice(&packed));
        }
    }

    fn unpack(&mut self, moves: &Moves, upper: &mut [f64], incoming: &[(usize, Span)], displaced: Span) {
        let (me, width) = (self.place.row, self.width);
        for &(row, span) in incoming {
            let theirs = moves.pivots.iter().enumerate().filter(|(_, pivot)| self.owner(**pivot) == row);
            for (at, (into, _)) in theirs.enumerate() {
                let into = &mut upper[into * width..][..width];
                self.group.read(span.offset + at * width * WORD, bytemuck::cast_slice_mut(into));
            }
        }
        if displaced.len == 0 {
            return;
        }
        let mine: Vec<usize> =
            moves.displaced.iter().filter(|(_, place)| self.owner(*place) == me).map(|&(_, place)| place).collect();
        for (at, place) in mine.into_iter().enumerate() {
            let start = self.start(place);
            let into = &mut self.matrix[start..start + width];
            self.group.read(displaced.offset + at * width * WORD, bytemuck::cast_slice_mut(into));
        }
    }
}
