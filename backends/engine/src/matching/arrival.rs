//! Where what arrives goes: to the receive that it is for, into a buffer until there is one, or nowhere. What that opens and
//! closes is the ledger's to count.

use tailback_transport::Result;

use super::groups::{Arrival, Early};
use super::ledger::{HELD_EACH, Ledger};
use super::types::{Envelope, GroupLookup, Slot, WireTypes};
use crate::Lane;

/// Where a payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into a segment, at this offset; then [`Ledger::arrived`].
    Into {
        /// The group.
        slot: Slot,
        /// In its segment.
        offset: usize,
    },
    /// Into a buffer of its own; then [`Ledger::keep`].
    Hold,
    /// Nowhere: its group was dropped.
    Discard,
}

impl<K: WireTypes> Ledger<K> {
    /// Takes a whole message to the oldest receive, if that is the one it is for: the group and the place in its segment.
    /// The receive is complete then.
    #[inline]
    pub fn deliver(&mut self, peer: usize, envelope: &Envelope) -> Option<(Slot, usize)> {
        let slot = self.groups.find(envelope.group)?;
        let (rank, seat) = (self.rails.rank(peer), self.rails.seat(envelope.from, peer));
        let group = self.groups.at_mut(slot);
        if !group.is_member(envelope.from, rank) {
            return None;
        }
        let member = &mut group.members[seat];
        let offset = member.take_first(envelope.lane, envelope.tag, envelope.len)?;
        self.end_receive(peer, slot, envelope.lane);
        Some((slot, offset))
    }

    /// Decides where a message's payload goes.
    ///
    /// # Errors
    /// If no correct peer sends such a message, or there is no room for it.
    pub fn begin(&mut self, peer: usize, envelope: &Envelope) -> Result<Place> {
        match self.find(peer, envelope.group, envelope.from)? {
            GroupLookup::Dropped => Ok(Place::Discard),
            GroupLookup::Early => self.hold(peer, HELD_EACH + envelope.len).map(|()| Place::Hold),
            GroupLookup::Here(slot) => {
                let seat = self.rails.seat(envelope.from, peer);
                let group = self.groups.at_mut(slot);
                match group.members[seat].take_posted(envelope.lane, envelope.tag) {
                    Some(span) if span.len == envelope.len => {
                        group.hold();
                        Ok(Place::Into { slot, offset: span.offset })
                    }
                    Some(span) => Err(self.protocol(peer, wrong_length(envelope.len, span.len))),
                    None => self.hold(peer, HELD_EACH + envelope.len).map(|()| Place::Hold),
                }
            }
        }
    }

    /// A payload that went into a segment is there in full.
    #[inline]
    pub fn arrived(&mut self, peer: usize, slot: Slot, lane: Lane) {
        self.end_receive(peer, slot, lane);
        self.groups.unuse(slot);
    }

    /// A receive was posted for a message that is being held, of which `data` has arrived: its place, where the rest goes
    /// too. None if the message is another.
    ///
    /// # Errors
    /// If the receive is for another length.
    pub fn place_held(&mut self, peer: usize, envelope: &Envelope, data: &[u8]) -> Result<Option<(Slot, usize)>> {
        let GroupLookup::Here(slot) = self.find(peer, envelope.group, envelope.from)? else { return Ok(None) };
        let seat = self.rails.seat(envelope.from, peer);
        let group = self.groups.at_mut(slot);
        match group.members[seat].take_posted(envelope.lane, envelope.tag) {
            None => Ok(None),
            Some(span) if span.len == envelope.len => {
                group.segment.write(span.offset, data);
                group.hold();
                self.release(peer, HELD_EACH + envelope.len);
                Ok(Some((slot, span.offset)))
            }
            Some(span) => Err(self.protocol(peer, wrong_length(envelope.len, span.len))),
        }
    }

    /// Stores a whole payload that nothing waited for when it began to arrive.
    ///
    /// # Errors
    /// If no correct peer sends such a message.
    pub fn keep(&mut self, peer: usize, envelope: Envelope, data: Vec<u8>) -> Result<()> {
        let slot = match self.find(peer, envelope.group, envelope.from)? {
            GroupLookup::Here(slot) => slot,
            GroupLookup::Early => {
                self.groups.hold_early(envelope.group, Early { peer, what: Arrival::Message(envelope), data });
                return Ok(());
            }
            GroupLookup::Dropped => {
                self.release(peer, HELD_EACH + envelope.len);
                self.recycle(data);
                return Ok(());
            }
        };
        // The receive may have been posted, or the group made, while it arrived.
        let seat = self.rails.seat(envelope.from, peer);
        let group = self.groups.at_mut(slot);
        let member = &mut group.members[seat];
        match member.take_posted(envelope.lane, envelope.tag) {
            None => member.keep(envelope.lane, envelope.tag, data),
            Some(span) if span.len == data.len() => {
                group.segment.write(span.offset, &data);
                self.end_receive(peer, slot, envelope.lane);
                self.release(peer, HELD_EACH + envelope.len);
                self.recycle(data);
            }
            Some(span) => return Err(self.protocol(peer, wrong_length(data.len(), span.len))),
        }
        Ok(())
    }

    /// Holds a request for a group that is not made yet, until it is.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn hold_request(&mut self, peer: usize, group: u64, request: K::Request, data: Vec<u8>) -> Result<()> {
        self.hold(peer, HELD_EACH + data.len())?;
        self.groups.hold_early(group, Early { peer, what: Arrival::Request(request), data });
        Ok(())
    }

    /// Whether this rank has the group with this id.
    #[must_use]
    pub fn has(&self, group: u64) -> bool {
        self.groups.find(group).is_some()
    }

    /// The group with this id, in which the peer claims to be at position `from`.
    ///
    /// # Errors
    /// If it is not.
    #[inline]
    pub fn find(&self, peer: usize, group: u64, from: u32) -> Result<GroupLookup> {
        match self.groups.find(group) {
            Some(slot) if self.groups.at(slot).is_member(from, self.rails.rank(peer)) => Ok(GroupLookup::Here(slot)),
            Some(_) => Err(self.protocol(peer, format!("it is not member {from} of the group it names"))),
            None if self.groups.was_dropped(group) => Ok(GroupLookup::Dropped),
            None => Ok(GroupLookup::Early),
        }
    }
}

pub(super) fn wrong_length(arrived: usize, expected: usize) -> String {
    format!("a message of {arrived} bytes arrived where one of {expected} was expected")
}
