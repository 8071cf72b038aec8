//! Ranks arranged: in rows and columns, or as the tree that HPL hands its panels along; and messages of any length.

use std::fmt;
use std::str::FromStr;

use crate::{Group, Rank, Result, Span, Tag};

/// Longer messages go in parts: no transport has to carry more at once.
const LONGEST: usize = 32 << 20;

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
    #[must_use]
    pub fn place(self, rank: Rank) -> (usize, usize) {
        (rank.index() / self.columns, rank.index() % self.columns)
    }

    /// The rank at a place.
    #[must_use]
    pub fn rank(self, row: usize, column: usize) -> Rank {
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

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let sides = text.split_once('x').and_then(|(rows, columns)| rows.parse().ok().zip(columns.parse().ok()));
        let (rows, columns) = sides
            .filter(|&(rows, columns): &(usize, usize)| rows > 0 && columns > 0)
            .ok_or_else(|| format!("invalid grid '{text}': expected rows x columns, as in 2x4"))?;
        Ok(Grid { rows, columns })
    }
}

/// Posts a message of any length.
///
/// # Errors
/// What the group says.
pub fn send<G: Group>(group: &mut G, to: Rank, tag: Tag, span: Span) -> Result<()> {
    parts(span).try_for_each(|part| group.post_send(to, tag, part))
}

/// Posts the receives of a message of any length.
///
/// # Errors
/// What the group says.
pub fn receive<G: Group>(group: &mut G, from: Rank, tag: Tag, span: Span) -> Result<()> {
    parts(span).try_for_each(|part| group.post_recv(from, tag, part))
}

/// A span cut into messages; nothing of an empty one.
fn parts(span: Span) -> impl Iterator<Item = Span> {
    let starts = (0..span.len).step_by(LONGEST);
    starts.map(move |start| Span::new(span.offset + start, LONGEST.min(span.len - start)))
}

/// A binomial tree over the members of a line: what HPL hands its panels along.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The members.
    pub line: &'a [Rank],
    /// Which of them has what is handed along.
    pub root: usize,
    /// Which of them this is.
    pub me: usize,
}

impl Tree<'_> {
    fn place(&self) -> usize {
        (self.me + self.line.len() - self.root) % self.line.len()
    }

    fn at(&self, place: usize) -> Rank {
        self.line[(place + self.root) % self.line.len()]
    }

    /// The lowest bit of a place says in which round it is told, and by whom.
    fn reach(&self) -> usize {
        match self.place() {
            0 => self.line.len().next_power_of_two(),
            place => 1 << place.trailing_zeros(),
        }
    }

    /// Posts the receive from the member above; nothing at the root.
    ///
    /// # Errors
    /// What the group says.
    pub fn receive<G: Group>(&self, group: &mut G, tag: Tag, span: Span) -> Result<()> {
        if self.place() == 0 {
            return Ok(());
        }
        receive(group, self.at(self.place() - self.reach()), tag, span)
    }

    /// Posts the messages to the members below.
    ///
    /// # Errors
    /// What the group says.
    pub fn send<G: Group>(&self, group: &mut G, tag: Tag, span: Span) -> Result<()> {
        let mut reach = self.reach();
        while reach > 1 {
            reach /= 2;
            if self.place() + reach < self.line.len() {
                send(group, self.at(self.place() + reach), tag, span)?;
            }
        }
        Ok(())
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
    fn long_messages_are_cut_without_a_gap() {
        let all: Vec<Span> = parts(Span::new(5, 2 * LONGEST + 3)).collect();
        assert_eq!(all.iter().map(|part| part.len).collect::<Vec<_>>(), [LONGEST, LONGEST, 3]);
        assert!(all.windows(2).all(|two| two[0].end() == two[1].offset));
        assert_eq!(parts(Span::new(5, 0)).count(), 0);
    }
}
