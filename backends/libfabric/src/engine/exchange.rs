//! Making a group: its memory, and everyone's card, told over the endpoint itself.
//!
//! The cards go round by Bruck's algorithm: in step k each member sends what it has to the member 2^k before it, so
//! ceil(log2 n) messages each suffice, to the same partners that a dissemination barrier has.

use tailback_engine::{Engine as _, position};
use tailback_transport::{Rank, Result, Span, Tag};

use super::Engine;
use super::groups::{GroupState, Member, Slot};
use crate::ffi::{Card, Kind};
use crate::tag::{LANES, SETUP};

impl Engine {
    /// Makes a group with a segment of `segment` bytes and waits until every member's memory is known.
    pub(super) fn make(&mut self, members: &[Rank], segment: usize) -> Result<Slot> {
        let position = position(self.me, self.groups.ranks(), members)?;
        let (confirm, cards) = GroupState::layout(segment, members.len());
        let (slot, card) = self.endpoint.region(cards.end())?;
        let member = |&rank: &Rank| {
            let number = self.groups.number_with(rank);
            let (outgoing, incoming) = (self.tags.of_group(number, self.me), self.tags.of_group(number, rank));
            Member {
                rank,
                outgoing,
                incoming,
                card,
                sending: [0; LANES],
                accesses: 0,
                over: 0,
                open: 0,
                unconfirmed: false,
            }
        };
        let members = members.iter().map(member).collect();
        let rank = Rank::from(position);
        self.groups.add(slot, GroupState { rank, members, segment, confirm, pending: [0; LANES], ahead: Vec::new() });
        if let Err(error) = self.exchange(slot, cards, card) {
            self.drop_group(slot);
            return Err(error);
        }
        Ok(slot)
    }

    fn exchange(&mut self, slot: Slot, cards: Span, mine: Card) -> Result<()> {
        let (rank, size) = (self.groups.at(slot).rank, self.groups.at(slot).members.len());
        let (rank, at) = (rank.index(), |card: usize| cards.offset + card * Card::LEN);
        self.endpoint.write(slot, at(0), &mine.to_bytes());
        let (mut have, mut step) = (1, 0);
        while have < size {
            let more = have.min(size - have);
            let (to, from) = (Rank::from((rank + size - have) % size), Rank::from((rank + have) % size));
            self.message(slot, Kind::Recv, SETUP, from, Tag(step), Span::new(at(have), more * Card::LEN))?;
            self.message(slot, Kind::Send, SETUP, to, Tag(step), Span::new(at(0), more * Card::LEN))?;
            self.wait_for(slot, SETUP)?;
            (have, step) = (have + more, step + 1);
        }
        for distance in 0..size {
            let mut bytes = [0; Card::LEN];
            self.endpoint.read(slot, at(distance), &mut bytes);
            self.groups.at_mut(slot).members[(rank + distance) % size].card = Card::from_bytes(bytes);
        }
        Ok(())
    }
}
