//! Blocks of a matrix dealt to a grid of ranks in turn, row by row and column by column.

use std::fmt;
use std::str::FromStr;

use tailback_transport::Rank;

/// P rows by Q columns of ranks; ranks go along the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Grid {
    pub rows: usize,
    pub columns: usize,
}

impl Grid {
    /// The squarest grid of so many ranks, no taller than wide: what HPL's authors advise.
    #[must_use]
    pub fn of(ranks: usize) -> Self {
        let rows =
            (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last();
        let rows = rows.unwrap_or(1);
        Grid { rows, columns: ranks / rows }
    }

    /// How many ranks it has.
    #[must_use]
    pub fn ranks(self) -> usize {
        self.rows * self.columns
    }

    /// Row and column of a rank.
    pub(crate) fn place(self, rank: Rank) -> (usize, usize) {
        (rank.index() / self.columns, rank.index() % self.columns)
    }

    /// The rank at a place.
    pub(crate) fn rank(self, row: usize, column: usize) -> Rank {
        Rank::from(row * self.columns + column)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x').and_then(|(rows, columns)| rows.parse().ok().zip(columns.parse().ok()));
        let (rows, columns) = sides
            .filter(|&(rows, columns): &(usize, usize)| rows > 0 && columns > 0)
            .ok_or_else(|| format!("'{text}' is no grid: write rows x columns, as in 2x4"))?;
        Ok(Grid { rows, columns })
    }
}

/// A line of `total` indices, cut into blocks that are dealt to `parts` in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Cyclic {
    pub total: usize,
    pub block: usize,
    pub parts: usize,
}

impl Cyclic {
    /// Which part has an index.
    #[must_use]
    pub fn owner(self, index: usize) -> usize {
        index / self.block % self.parts
    }

    /// Where its part has it.
    #[must_use]
    pub fn local(self, index: usize) -> usize {
        index / self.block / self.parts * self.block + index % self.block
    }

    /// The index that a part has at a place.
    #[must_use]
    pub fn global(self, part: usize, local: usize) -> usize {
        (local / self.block * self.parts + part) * self.block + local % self.block
    }

    /// How many indices below `end` a part has.
    #[must_use]
    pub fn before(self, part: usize, end: usize) -> usize {
        let end = end.min(self.total);
        let whole = end / self.block;
        let rounds = whole / self.parts * self.block;
        rounds
            + match part.cmp(&(whole % self.parts)) {
                std::cmp::Ordering::Less => self.block,
                std::cmp::Ordering::Equal => end % self.block,
                std::cmp::Ordering::Greater => 0,
            }
    }

    /// How many indices a part has.
    #[must_use]
    pub fn count(self, part: usize) -> usize {
        self.before(part, self.total)
    }

    /// How many blocks there are, the last of which may be short.
    pub(crate) fn blocks(self) -> usize {
        self.total.div_ceil(self.block)
    }

    /// How long a block is.
    pub(crate) fn len(self, block: usize) -> usize {
        self.block.min(self.total - block * self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_can_be() {
        let shown: Vec<String> = [1, 2, 3, 4, 6, 8, 12, 13, 64].map(|ranks| Grid::of(ranks).to_string()).into();
        assert_eq!(shown, ["1x1", "1x2", "1x3", "2x2", "2x3", "2x4", "3x4", "1x13", "8x8"]);
        assert_eq!("2x4".parse(), Ok(Grid { rows: 2, columns: 4 }));
        assert!("2".parse::<Grid>().is_err() && "0x3".parse::<Grid>().is_err());
    }

    #[test]
    fn every_index_is_somewhere_once() {
        for (total, block, parts) in [(0, 4, 2), (1, 4, 3), (23, 4, 3), (24, 4, 3), (25, 8, 1), (100, 7, 5)] {
            let line = Cyclic { total, block, parts };
            for part in 0..parts {
                let mine: Vec<usize> = (0..total).filter(|&index| line.owner(index) == part).collect();
                assert_eq!(line.count(part), mine.len());
                for (at, &index) in mine.iter().enumerate() {
                    assert_eq!((line.local(index), line.global(part, at)), (at, index));
                    assert_eq!(line.before(part, index), at);
                }
            }
        }
    }
}
