//! What a header means: where its payload goes, what answers it, and what is complete when it has arrived.
//!
//! A payload that nothing waits for is held: by its group until a receive is posted, or aside until the group is made.
//! Headers come from ranks that proved themselves, and are checked all the same: a wrong one names its sender.

use tailback_transport::{Rank, Result};

use super::Engine;
use super::groups::Early;
use super::peer::{Incoming, Route, Then};
use super::read::HOLD_STEP;
use crate::wire::{HEADER, Header, Message};

/// How many buffers of held payloads are kept for the next ones.
const SPARES: usize = 64;

impl Engine {
    pub(super) fn arrived(&mut self, peer: usize, slot: usize, then: Then) {
        let group = self.groups.at_mut(slot);
        match then {
            Then::Receive(lane) => group.pending[lane as usize] -= 1,
            Then::Get(member) => group.members[member as usize].gets_open -= 1,
            Then::Put => return,
        }
        self.peers[peer].open -= 1;
    }

    /// Stores a complete payload that nothing waits for.
    pub(super) fn keep(&mut self, peer: usize, header: Header, data: Vec<u8>) {
        match (self.groups.find(header.group), header.message) {
            (Some(slot), Message::Send { lane, tag }) => {
                self.groups.at_mut(slot).members[header.from as usize].keep(lane, tag, data);
            }
            _ => self.groups.hold(Early { peer: Rank::from(peer), header, data }),
        }
    }

    /// Decides where a header's payload goes, or answers it.
    pub(super) fn begin(&mut self, peer: usize, header: Header) -> Result<Incoming> {
        let Some(slot) = self.groups.find(header.group) else {
            return if self.groups.was_dropped(header.group) {
                self.late(peer, header)
            } else {
                Ok(self.hold(peer, header))
            };
        };
        if header.message == Message::Refused {
            return Err(self.protocol(peer, "it dropped the group while this rank still used its segment"));
        }
        let group = self.groups.at_mut(slot);
        if group.ranks.get(header.from as usize) != Some(&Rank::from(peer)) {
            return Err(self.protocol(peer, format!("it is not member {} of the group it names", header.from)));
        }
        let (member, left) = (&mut group.members[header.from as usize], header.payload());
        match header.message {
            Message::Send { lane, tag } => match member.take_posted(lane, tag) {
                Some(span) if span.len == left => {
                    Ok(Incoming::Into { slot, offset: span.offset, left, then: Then::Receive(lane) })
                }
                Some(span) => Err(self.protocol(peer, wrong_length(left, span.len))),
                None => Ok(self.hold(peer, header)),
            },
            Message::Put { offset } => {
                let offset = self.in_segment(peer, slot, offset, header.length)?;
                Ok(Incoming::Into { slot, offset, left, then: Then::Put })
            }
            Message::GetReply => match member.gets.pop_front() {
                Some(span) if span.len == left => {
                    Ok(Incoming::Into { slot, offset: span.offset, left, then: Then::Get(header.from) })
                }
                Some(span) => Err(self.protocol(peer, wrong_length(left, span.len))),
                None => Err(self.protocol(peer, "an answer to a get that was not made")),
            },
            _ => self.request(peer, slot, header).map(|()| Incoming::Header),
        }
    }

    /// Serves a header without payload.
    fn request(&mut self, peer: usize, slot: usize, header: Header) -> Result<()> {
        let group = self.groups.at_mut(slot);
        let answer = |message, length| Header { message, from: group.rank, group: group.id, length };
        match header.message {
            Message::Get { offset } => {
                let reply = answer(Message::GetReply, header.length);
                let offset = self.in_segment(peer, slot, offset, header.length)?;
                let out = &mut self.peers[peer].out;
                out.stage(&reply.encode());
                if header.length > 0 {
                    out.refer(slot, offset, header.length as usize);
                    self.groups.at_mut(slot).queued += 1;
                }
                self.pump(peer)
            }
            Message::Flush { counter } => {
                let ack = answer(Message::FlushAck { counter }, 0);
                self.answer(peer, ack)
            }
            Message::FlushAck { counter } => {
                let member = &mut group.members[header.from as usize];
                if counter != member.flushes_acked + 1 || counter > member.flushes {
                    return Err(self.protocol(peer, "an answer to a flush that was not asked for"));
                }
                member.flushes_acked = counter;
                self.peers[peer].open -= 1;
                Ok(())
            }
            _ => Err(self.protocol(peer, "a header that is no request")),
        }
    }

    /// What reaches a group that this rank dropped: payloads vanish, requests are refused.
    fn late(&mut self, peer: usize, header: Header) -> Result<Incoming> {
        if matches!(header.message, Message::Get { .. } | Message::Flush { .. }) {
            self.answer(peer, Header { message: Message::Refused, from: 0, group: header.group, length: 0 })?;
        }
        Ok(Incoming::Discard { left: header.payload() })
    }

    fn hold(&mut self, peer: usize, header: Header) -> Incoming {
        self.peers[peer].held += HEADER + header.payload();
        Incoming::Hold { header, data: self.spare.pop().unwrap_or_default(), filled: 0 }
    }

    /// Takes a buffer back that [`Engine::hold`] handed out, so that early messages need no allocation in the long run.
    pub(super) fn recycle(&mut self, mut data: Vec<u8>) {
        if self.spare.len() < SPARES && data.capacity() <= HOLD_STEP {
            data.clear();
            self.spare.push(data);
        }
    }

    fn in_segment(&self, peer: usize, slot: usize, offset: u64, length: u64) -> Result<usize> {
        let size = self.groups.at(slot).segment.len() as u64;
        if offset + length > size {
            let detail = format!("asks for bytes {offset}..{} of a segment of {size}", offset + length);
            return Err(self.protocol(peer, detail));
        }
        Ok(offset as usize)
    }

    /// Decides again where a payload under way goes, now that a receive was posted or its group was made.
    pub(super) fn reconsider(&mut self, peer: usize, wanted: impl Fn(&Header) -> bool) -> Result<()> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
        match &link.incoming {
            Incoming::Hold { header, .. } if wanted(header) => {}
            _ => return Ok(()),
        }
        let Incoming::Hold { header, data, filled } = std::mem::replace(&mut link.incoming, Incoming::Header) else {
            return Ok(());
        };
        let mut incoming = self.place(peer, header, &data[..filled])?;
        match &mut incoming {
            Incoming::Hold { data: kept, filled: kept_filled, .. } => {
                *kept_filled = filled;
                self.recycle(std::mem::replace(kept, data));
            }
            _ => self.recycle(data),
        }
        self.set_incoming(peer, incoming);
        self.digest(peer)
    }

    /// Begins a header whose payload, or the first part of it, has already arrived.
    pub(super) fn place(&mut self, peer: usize, header: Header, data: &[u8]) -> Result<Incoming> {
        self.peers[peer].held -= HEADER + header.payload();
        let mut incoming = self.begin(peer, header)?;
        if let Incoming::Into { slot, offset, left, .. } = &mut incoming {
            self.groups.at_mut(*slot).segment[*offset..*offset + data.len()].copy_from_slice(data);
            (*offset, *left) = (*offset + data.len(), *left - data.len());
        }
        Ok(incoming)
    }

    /// Serves what arrived before its group was made.
    pub(super) fn replay(&mut self, early: Early) -> Result<()> {
        let peer = early.peer.index();
        match self.place(peer, early.header, &early.data)? {
            Incoming::Into { slot, then, .. } => self.arrived(peer, slot, then),
            Incoming::Hold { header, data, .. } => {
                self.recycle(data);
                self.keep(peer, header, early.data);
            }
            Incoming::Header | Incoming::Discard { .. } => {}
        }
        Ok(())
    }
}

pub(super) fn wrong_length(arrived: usize, expected: usize) -> String {
    format!("a message of {arrived} bytes arrived where one of {expected} was expected")
}
