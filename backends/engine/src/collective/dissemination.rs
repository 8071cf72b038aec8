//! Dissemination: in round k a member tells member rank + 2^k what it knows and hears from member rank - 2^k; after
//! ceil(log2 n) rounds everyone knows of everyone.
//!
//! What is carried is the elementwise maximum of the members' words. Maximum is idempotent, so it is right for every n
//! although some members are counted twice where n is no power of two. A barrier carries nothing.
//!
//! One outgoing and one incoming block are enough: a round starts only when both transfers of the one before are
//! complete, and a peer that is a round or a whole barrier ahead is held by the backend until the receive for its
//! (round, sequence) tag is posted. Nothing is ever written into a block that is still to be read.

use tailback_transport::{Proposal, Rank, Result, Span};

use super::scratch::{PROPOSAL, Sequence};
use crate::{Engine, Lane, Membership};

/// The exchanges of one lane, at most one of them under way.
#[derive(Debug)]
pub(super) struct Dissemination {
    lane: Lane,
    outgoing: Span,
    incoming: Span,
    under_way: Option<Exchange>,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    sequence: Sequence,
    round: u32,
    known: Proposal,
}

impl Dissemination {
    /// Exchanges that carry nothing.
    pub(super) fn bare(lane: Lane) -> Self {
        Self::carrying(lane, Span::default(), Span::default())
    }

    /// Exchanges that carry a proposal through these two blocks of scratch.
    pub(super) fn carrying(lane: Lane, outgoing: Span, incoming: Span) -> Self {
        Dissemination { lane, outgoing, incoming, under_way: None }
    }

    /// Whether an exchange was started and has not been reported complete.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Starts an exchange; none may be under way.
    pub(super) fn start<E: Engine>(
        &mut self,
        engine: &mut E,
        group: Membership<E::Slot>,
        sequence: Sequence,
        mine: Proposal,
    ) -> Result<()> {
        debug_assert!(self.under_way.is_none());
        let exchange = Exchange { sequence, round: 0, known: mine };
        self.under_way = Some(exchange);
        self.post(engine, group, exchange)
    }

    /// Goes as far as it can without waiting; the maximum, once everyone was heard of.
    pub(super) fn poll<E: Engine>(&mut self, engine: &mut E, group: Membership<E::Slot>) -> Result<Option<Proposal>> {
        self.run(engine, group, |engine, lane| engine.test(group.slot, lane))
    }

    /// Waits for the exchange under way.
    pub(super) fn wait<E: Engine>(&mut self, engine: &mut E, group: Membership<E::Slot>) -> Result<Proposal> {
        let known = self.run(engine, group, |engine, lane| engine.wait(group.slot, lane).map(|()| true))?;
        Ok(known.expect("an exchange that waits in every round completes"))
    }

    /// Runs rounds while `complete` says that the one under way is done. At most 32 turns.
    fn run<E: Engine>(
        &mut self,
        engine: &mut E,
        group: Membership<E::Slot>,
        complete: impl Fn(&mut E, Lane) -> Result<bool>,
    ) -> Result<Option<Proposal>> {
        let mut exchange = self.under_way.expect("callers check that an exchange is under way");
        while step(exchange.round) < group.size {
            if !complete(engine, self.lane)? {
                self.under_way = Some(exchange);
                return Ok(None);
            }
            self.fold(engine, group.slot, &mut exchange.known);
            exchange.round += 1;
            self.post(engine, group, exchange)?;
        }
        self.under_way = None;
        Ok(Some(exchange.known))
    }

    /// Posts the two transfers of a round, unless everyone was heard of.
    fn post<E: Engine>(&mut self, engine: &mut E, group: Membership<E::Slot>, exchange: Exchange) -> Result<()> {
        let (size, rank, step) = (group.size, group.rank.index(), step(exchange.round));
        if step >= size {
            return Ok(());
        }
        let tag = exchange.sequence.tag(exchange.round);
        if self.outgoing.len > 0 {
            engine.write(group.slot, self.outgoing.offset, &to_bytes(exchange.known));
        }
        engine.post_recv(group.slot, self.lane, Rank::from((rank + size - step) % size), tag, self.incoming)?;
        engine.post_send(group.slot, self.lane, Rank::from((rank + step) % size), tag, self.outgoing)
    }

    fn fold<E: Engine>(&self, engine: &E, slot: E::Slot, known: &mut Proposal) {
        if self.incoming.len == 0 {
            return;
        }
        let mut bytes = [0; PROPOSAL];
        engine.read(slot, self.incoming.offset, &mut bytes);
        for (known, heard) in known.iter_mut().zip(from_bytes(bytes)) {
            *known = (*known).max(heard);
        }
    }
}

/// How far away the partners of a round are.
fn step(round: u32) -> usize {
    1_usize << round
}

fn to_bytes(words: Proposal) -> [u8; PROPOSAL] {
    let mut bytes = [0; PROPOSAL];
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

fn from_bytes(bytes: [u8; PROPOSAL]) -> Proposal {
    let mut words = [0; 4];
    let (chunks, _) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_survive_the_wire() {
        let words = [0, 1, u64::MAX, 0x0123_4567_89ab_cdef];
        assert_eq!(from_bytes(to_bytes(words)), words);
    }
}
