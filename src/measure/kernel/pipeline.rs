//! Steps of a pipeline of stages: each hands what it has received to the next, and at the end something comes back.

use tailback_transport::{Group, Rank, Result, Span, Tag};

use super::traits::{Kernel, Sizes, check_pattern};
use crate::layout::Neighbours;

const FORWARD: Tag = Tag(0);
const BACKWARD: Tag = Tag(1);

/// A window of messages from the first member to the last, stage by stage, then one back from the last to the first: what
/// stages of a model do with its activations and their gradients. A stage has the next message under way while it waits.
pub struct Pipeline {
    bytes: usize,
    window: usize,
    size: usize,
    rank: usize,
}

impl Pipeline {
    /// Where a message lies that has come forward, or backward.
    fn place(&self, direction: Tag, message: usize) -> Span {
        let before = if direction == FORWARD { 0 } else { self.window };
        Span::new(self.bytes * (1 + before + message), self.bytes)
    }

    /// A window of messages: what has come from `from` goes on to `to`; what begins here is this member's own.
    fn pass<G: Group>(&self, group: &mut G, direction: Tag, from: Option<Rank>, to: Option<Rank>) -> Result<()> {
        for message in 0..self.window {
            let place = self.place(direction, message);
            if let Some(from) = from {
                group.post_recv(from, direction, place)?;
                group.wait_all()?;
            }
            if let Some(to) = to {
                let sent = if from.is_some() { place } else { Span::new(0, self.bytes) };
                group.post_send(to, direction, sent)?;
            }
        }
        group.wait_all()
    }

    fn previous(&self) -> Option<Rank> {
        self.rank.checked_sub(1).map(Rank::from)
    }

    fn next(&self) -> Option<Rank> {
        (self.rank + 1 < self.size).then(|| Rank::from(self.rank + 1))
    }
}

/// Segment: [sent | window forward | window backward].
impl Kernel for Pipeline {
    fn new(sizes: Sizes, size: usize, rank: Rank) -> Self {
        Pipeline { bytes: sizes.bytes, window: sizes.window, size, rank: rank.index() }
    }

    fn segment(sizes: Sizes, _size: usize) -> usize {
        sizes.bytes * (1 + 2 * sizes.window)
    }

    #[inline]
    fn iterate<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        self.pass(group, FORWARD, self.previous(), self.next())?;
        self.pass(group, BACKWARD, self.next(), self.previous())
    }

    fn check<G: Group>(&self, group: &mut G, _ring: Neighbours) -> Result<()> {
        let (first, last) = (Rank(0), Rank::from(self.size - 1));
        let came = [(FORWARD, self.previous(), first), (BACKWARD, self.next(), last)];
        for (direction, _, sender) in came.into_iter().filter(|(_, from, _)| from.is_some()) {
            for message in 0..self.window {
                check_pattern(group, sender, self.place(direction, message).offset, self.bytes)?;
            }
        }
        Ok(())
    }

    /// A stage in the middle sends both ways.
    fn payload(&self) -> usize {
        self.window * self.bytes * [self.previous(), self.next()].iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use tailback_testkit::loopback::Job;

    use super::super::traits::{BadCard, run_on_loopback as run};
    use super::*;

    #[test]
    fn what_the_ends_send_reaches_every_stage() {
        for size in [1, 2, 3, 7, 8] {
            // Two messages of 1000 bytes each way; the ends have one neighbour.
            let sent = |rank: usize| 2000 * (usize::from(rank > 0) + usize::from(rank + 1 < size));
            assert_eq!(run::<Pipeline>(Job::new(size), size).unwrap(), (0..size).map(sent).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_a_stage_corrupts_is_found() {
        // Of 2 the last corrupts what is its own, of 3 the middle what it hands on.
        for size in [2, 3] {
            let found = run::<Pipeline>(Job::new(size).fault(BadCard), size).unwrap_err().to_string();
            assert!(found.contains("byte 77 of 1000"), "{found}");
        }
    }
}
