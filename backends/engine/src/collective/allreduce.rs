//! Sum of doubles by recursive doubling: in step k a member exchanges its partial sum with the member whose index
//! differs in bit k, and adds what it gets.
//!
//! Where n is 2^m + r, the first 2r members pair up: the even one gives its values to the odd one before the doubling
//! and takes the result from it afterwards, so that 2^m members double.
//!
//! Same bits everywhere: after step k all members of a block of 2^(k+1) hold the same sum, because both partners add the
//! same two numbers and floating-point addition commutes. (Which of two NaNs survives is the one thing left open.)
//!
//! Large values go chunk by chunk: chunk i + 1 travels while chunk i is added, and the two receive slots take turns.
//! A chunk is sent straight from the user's values, which is safe because it is changed only after its send completed.

use tailback_transport::{Rank, Result, Span, Tag};

use super::scratch::{Scratch, Sequence};
use crate::{Engine, Lane};

/// What a member does with one peer for every chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Sends its sum, receives the peer's, adds.
    Exchange(Rank),
    /// Sends.
    Give(Rank),
    /// Receives and adds.
    Add(Rank),
    /// Receives the result in place.
    Take(Rank),
}

/// A member's part, worked out when the group is made.
#[derive(Debug)]
pub(super) struct Allreduce {
    steps: Vec<Step>,
    slots: [Span; 2],
    /// As long as the longest chunk so far: most groups never sum, and a job has many.
    mine: Vec<u8>,
    theirs: Vec<u8>,
}

/// One chunk in one step. Steps go over all chunks, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    step: usize,
    /// Where the chunk starts in the values.
    start: usize,
    slot: usize,
}

impl Allreduce {
    /// The part of member `rank` of `size`.
    pub(super) fn new(rank: usize, size: usize, scratch: Scratch) -> Self {
        let slots = scratch.chunks();
        Allreduce { steps: steps(rank, size), slots, mine: Vec::new(), theirs: Vec::new() }
    }

    /// Replaces `values` by their sums.
    pub(super) fn run<E: Engine>(
        &mut self,
        engine: &mut E,
        slot: E::Slot,
        sequence: Sequence,
        values: Span,
    ) -> Result<()> {
        if self.steps.is_empty() || values.len == 0 {
            return Ok(());
        }
        // A sender and a receiver meet in one step of a sum only: the sequence alone tells messages apart, and chunks
        // arrive in order.
        let tag = sequence.tag(0);
        let single = values.len <= self.slots[0].len;
        let longest = values.len.min(self.slots[0].len).max(self.mine.len());
        self.mine.resize(longest, 0);
        self.theirs.resize(longest, 0);
        let mut turn = Turn::default();
        self.post(engine, slot, tag, values, turn)?;
        loop {
            engine.wait(slot, Lane::Collective)?;
            // With a single chunk the next turn sends what this turn computes.
            if single {
                self.add(engine, slot, values, turn);
            }
            let next = self.after(turn, values);
            let more = next.step < self.steps.len();
            if more {
                self.post(engine, slot, tag, values, next)?;
            }
            if !single {
                self.add(engine, slot, values, turn);
            }
            if !more {
                return Ok(());
            }
            turn = next;
        }
    }

    fn post<E: Engine>(&self, engine: &mut E, slot: E::Slot, tag: Tag, values: Span, turn: Turn) -> Result<()> {
        let (chunk, incoming) = self.places(values, turn);
        let (from, to, into) = match self.steps[turn.step] {
            Step::Exchange(peer) => (Some(peer), Some(peer), incoming),
            Step::Give(peer) => (None, Some(peer), incoming),
            Step::Add(peer) => (Some(peer), None, incoming),
            Step::Take(peer) => (Some(peer), None, chunk),
        };
        if let Some(from) = from {
            engine.post_recv(slot, Lane::Collective, from, tag, into)?;
        }
        to.map_or(Ok(()), |to| engine.post_send(slot, Lane::Collective, to, tag, chunk))
    }

    /// Adds what arrived in `turn`, where that turn adds.
    fn add<E: Engine>(&mut self, engine: &mut E, slot: E::Slot, values: Span, turn: Turn) {
        if matches!(self.steps[turn.step], Step::Give(_) | Step::Take(_)) {
            return;
        }
        let (chunk, incoming) = self.places(values, turn);
        let (mine, theirs) = (&mut self.mine[..chunk.len], &mut self.theirs[..chunk.len]);
        engine.read(slot, chunk.offset, mine);
        engine.read(slot, incoming.offset, theirs);
        add(mine, theirs);
        engine.write(slot, chunk.offset, mine);
    }

    fn after(&self, turn: Turn, values: Span) -> Turn {
        let (start, slot) = (turn.start + self.slots[0].len, 1 - turn.slot);
        if start < values.len { Turn { start, slot, ..turn } } else { Turn { step: turn.step + 1, start: 0, slot } }
    }

    /// The part of the values that `turn` is about, and where it receives a peer's.
    fn places(&self, values: Span, turn: Turn) -> (Span, Span) {
        let len = self.slots[0].len.min(values.len - turn.start);
        (Span::new(values.offset + turn.start, len), Span::new(self.slots[turn.slot].offset, len))
    }
}

/// The steps of member `rank` of `size`, in order.
fn steps(rank: usize, size: usize) -> Vec<Step> {
    let doubling = 1 << size.ilog2();
    let extra = size - doubling;
    let paired = rank < 2 * extra;
    if paired && rank.is_multiple_of(2) {
        let partner = Rank::from(rank + 1);
        return vec![Step::Give(partner), Step::Take(partner)];
    }
    let index = if paired { rank / 2 } else { rank - extra };
    let member = |index: usize| Rank::from(if index < extra { 2 * index + 1 } else { index + extra });
    let exchanges = (0..size.ilog2()).map(|bit| Step::Exchange(member(index ^ 1 << bit)));
    if !paired {
        return exchanges.collect();
    }
    let partner = Rank::from(rank - 1);
    std::iter::once(Step::Add(partner)).chain(exchanges).chain([Step::Give(partner)]).collect()
}

fn add(mine: &mut [u8], theirs: &[u8]) {
    let (mine, _) = mine.as_chunks_mut::<8>();
    let (theirs, _) = theirs.as_chunks::<8>();
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (f64::from_ne_bytes(*mine) + f64::from_ne_bytes(*theirs)).to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_members_fold_one_pair_and_double_over_two() {
        let rank = |index: usize| Rank::from(index);
        assert_eq!(steps(0, 3), [Step::Give(rank(1)), Step::Take(rank(1))]);
        assert_eq!(steps(1, 3), [Step::Add(rank(0)), Step::Exchange(rank(2)), Step::Give(rank(0))]);
        assert_eq!(steps(2, 3), [Step::Exchange(rank(1))]);
        assert!(steps(0, 1).is_empty());
    }

    #[test]
    fn exchanges_are_mutual_and_every_pair_meets_once() {
        for size in 1..=40 {
            let all: Vec<_> = (0..size).map(|rank| steps(rank, size)).collect();
            for (rank, mine) in all.iter().enumerate() {
                let me = Rank::from(rank);
                for step in mine {
                    let (peer, answer) = match *step {
                        Step::Exchange(peer) => (peer, vec![Step::Exchange(me)]),
                        Step::Give(peer) => (peer, vec![Step::Add(me), Step::Take(me)]),
                        Step::Add(peer) | Step::Take(peer) => (peer, vec![Step::Give(me)]),
                    };
                    let met = all[peer.index()].iter().filter(|theirs| answer.contains(theirs)).count();
                    assert_eq!(met, 1, "rank {rank} of {size}: {step:?}");
                }
            }
        }
    }
}
