//! Where the collectives keep their memory and how they tag their messages.
//!
//! Behind the user's segment, from the next multiple of 64 bytes on: two chunks that an allreduce receives into, then
//! one outgoing and one incoming word block for agreements. Barriers carry nothing and need no memory.

use tailback_transport::{Proposal, Span, Tag};

/// What an allreduce moves at a time at most.
const CHUNK: usize = 64 << 10;

/// Bytes of a proposal on the wire.
pub(super) const PROPOSAL: usize = size_of::<Proposal>();

/// Bits of a tag that say the round; 32 rounds of a collective over 2^32 members and two more steps fit.
const ROUND_BITS: u32 = 6;

/// The layout of a raw segment whose first `user` bytes are the user's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch {
    base: usize,
    chunk: usize,
}

impl Scratch {
    /// The scratch behind `user` bytes. An allreduce never has more than `user` bytes, so neither has its chunk.
    pub(super) fn behind(user: usize) -> Self {
        Scratch { base: user.next_multiple_of(64), chunk: user.next_multiple_of(8).clamp(8, CHUNK) }
    }

    /// How long the raw segment has to be.
    pub(super) fn end(self) -> usize {
        self.incoming().end()
    }

    /// The two places an allreduce receives into.
    pub(super) fn chunks(self) -> [Span; 2] {
        [0, 1].map(|slot| Span::new(self.base + slot * self.chunk, self.chunk))
    }

    /// The words an agreement sends.
    pub(super) fn outgoing(self) -> Span {
        Span::new(self.base + 2 * self.chunk, PROPOSAL)
    }

    /// The words an agreement receives.
    pub(super) fn incoming(self) -> Span {
        Span::new(self.outgoing().end(), PROPOSAL)
    }
}

/// Numbers the collectives of one lane, so that a message of one never meets a receive of another. It wraps after
/// 2^26: members are never more than one collective apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence(u32);

impl Sequence {
    /// Takes the next number.
    pub(super) fn advance(&mut self) -> Sequence {
        self.0 = self.0.wrapping_add(1);
        *self
    }

    /// The tag of a round of this collective.
    pub(super) fn tag(self, round: u32) -> Tag {
        debug_assert!(round < 1 << ROUND_BITS);
        Tag(self.0 << ROUND_BITS | round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_lies_behind_the_user_and_does_not_overlap() {
        for user in [0, 1, 8, 63, 64, 65, 4096, 131_072, 6_553_600] {
            let scratch = Scratch::behind(user);
            let [first, second] = scratch.chunks();
            let spans = [first, second, scratch.outgoing(), scratch.incoming()];
            assert!(first.offset >= user);
            assert!(spans.windows(2).all(|pair| pair[0].end() == pair[1].offset));
            assert_eq!(scratch.end(), scratch.incoming().end());
            assert!(first.len <= CHUNK && first.len % 8 == 0 && first.len > 0);
        }
    }

    #[test]
    fn tags_of_neighbouring_collectives_differ_even_where_the_sequence_wraps() {
        let mut sequence = Sequence(u32::MAX - 2);
        let mut tags: Vec<Tag> = Vec::new();
        for _ in 0..5 {
            let this = sequence.advance();
            tags.extend((0..34).map(|round| this.tag(round)));
        }
        let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
        assert_eq!(distinct.len(), tags.len());
    }
}
