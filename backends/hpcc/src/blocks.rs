//! Blocks of a matrix dealt to a grid of ranks in turn, along its rows and along its columns.

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
