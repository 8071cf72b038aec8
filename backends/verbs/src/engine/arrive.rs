//! What messages mean: where payload goes, what answers a request, and what is complete when it has arrived.
//!
//! A payload that nothing waits for is held: by its group until a receive is posted, or aside until the group is made.
//! Headers come from ranks of the job, and are checked all the same: a wrong one names its sender.

use tailback_transport::{Rank, Result};

use super::Engine;
use super::groups::{Early, Groups, Key};
use super::peer::{BUFFER, Incoming, Link, Route, Work};
use crate::wire::{HEADER, Header, LONG_HEADER, Message};

/// How many buffers of held payloads are kept for the next ones, and how large they may be.
const SPARES: usize = 64;
const SPARE_LEN: usize = 256 * 1024;

impl Engine {
    /// A buffer of `len` bytes arrived from `peer`, which has freed `credits` buffers.
    #[inline]
    pub(super) fn arrive(&mut self, peer: usize, buffer: u32, len: usize, credits: u32) -> Result<()> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        link.credits += credits;
        if !deliver(link, &mut self.groups, peer, buffer, len) {
            return self.arrive_part(peer, buffer, len);
        }
        state.open -= 1;
        link.free(Rank::from(peer), buffer)?;
        if state.wants_pump() { self.pump(peer) } else { Ok(()) }
    }

    /// Likewise, for what is not a whole message that was waited for.
    fn arrive_part(&mut self, peer: usize, buffer: u32, len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        let at = buffer as usize * BUFFER;
        if len == 0 {
            link.repost(Rank::from(peer), buffer)?;
        } else if matches!(link.incoming, Incoming::Header) {
            self.arrive_header(peer, at, len)?;
        } else {
            self.absorb(peer, at, len)?;
        }
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        if len > 0 {
            link.free(Rank::from(peer), buffer)?;
        }
        // A message is as good as a greeting.
        if !link.heard {
            self.hear(peer)?;
        }
        self.pump(peer)
    }

    /// The first buffer of a message.
    fn arrive_header(&mut self, peer: usize, at: usize, len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        let Some((header, size)) = read_header(link, at, len) else {
            return Err(self.protocol(peer, format!("{len} bytes without a header")));
        };
        let incoming = self.begin(peer, header)?;
        if let Route::Linked(link) = &mut self.peers[peer].route {
            link.incoming = incoming;
        }
        self.absorb(peer, at + size, len - size)
    }

    /// Payload arrived: it goes where the message under way says.
    fn absorb(&mut self, peer: usize, at: usize, len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        match &mut link.incoming {
            Incoming::Header if len == 0 => Ok(()),
            Incoming::Into { left, .. } | Incoming::Discard { left } if len > *left => {
                let detail = format!("{len} bytes where {left} were left");
                Err(self.protocol(peer, detail))
            }
            Incoming::Into { slot, offset, left, lane } => {
                let (slot, lane) = (*slot, *lane);
                self.groups.at_mut(slot).segment.copy_from(*offset, &link.memory, at, len);
                (*offset, *left) = (*offset + len, *left - len);
                if *left == 0 {
                    link.incoming = Incoming::Header;
                    self.groups.at_mut(slot).pending[lane as usize] -= 1;
                    self.groups.unuse(slot, 1);
                    self.peers[peer].open -= 1;
                }
                Ok(())
            }
            Incoming::Discard { left } => {
                *left -= len;
                if *left == 0 {
                    link.incoming = Incoming::Header;
                }
                Ok(())
            }
            Incoming::Hold { header, data } => {
                let (filled, whole) = (data.len(), header.length as usize);
                if filled + len > whole {
                    return Err(self.protocol(peer, format!("{len} bytes where {} were left", whole - filled)));
                }
                data.resize(filled + len, 0);
                link.memory.read(at, &mut data[filled..]);
                if filled + len < whole {
                    return Ok(());
                }
                let Incoming::Hold { header, data } = std::mem::replace(&mut link.incoming, Incoming::Header) else {
                    return Ok(());
                };
                self.keep(peer, header, data)
            }
            Incoming::Header => Err(self.protocol(peer, format!("{len} bytes that no header announced"))),
        }
    }

    /// Stores a complete payload that nothing waited for when it began to arrive.
    fn keep(&mut self, peer: usize, header: Header, data: Vec<u8>) -> Result<()> {
        let Some(slot) = self.groups.find(header.group) else {
            if self.groups.was_dropped(header.group) {
                self.recycle(data);
            } else {
                self.groups.hold(Early { peer, header, data });
            }
            return Ok(());
        };
        let Message::Send { lane, tag } = header.message else { return Ok(()) };
        let group = self.groups.at_mut(slot);
        if group.ranks.get(header.from as usize) != Some(&Rank::from(peer)) {
            return Err(self.protocol(peer, format!("it is not member {} of the group it names", header.from)));
        }
        // The receive may have been posted, or the group made, while it arrived.
        match group.members[header.from as usize].take_posted(lane, tag) {
            None => group.members[header.from as usize].keep(lane, tag, data),
            Some(span) if span.len == data.len() => {
                group.segment.write(span.offset, &data);
                group.pending[lane as usize] -= 1;
                self.peers[peer].open -= 1;
                self.recycle(data);
            }
            Some(span) => return Err(self.protocol(peer, wrong_length(data.len(), span.len))),
        }
        Ok(())
    }

    /// Decides where a header's payload goes, or answers it.
    fn begin(&mut self, peer: usize, header: Header) -> Result<Incoming> {
        let Some(slot) = self.groups.find(header.group) else {
            return self.begin_without_group(peer, header);
        };
        let group = self.groups.at_mut(slot);
        if group.ranks.get(header.from as usize) != Some(&Rank::from(peer)) {
            return Err(self.protocol(peer, format!("it is not member {} of the group it names", header.from)));
        }
        let (member, left) = (&mut group.members[header.from as usize], header.length as usize);
        match header.message {
            Message::Send { lane, tag } => match member.take_posted(lane, tag) {
                Some(span) if span.len == left => {
                    group.used += 1;
                    Ok(Incoming::Into { slot, offset: span.offset, left, lane })
                }
                Some(span) => Err(self.protocol(peer, wrong_length(left, span.len))),
                None => Ok(Incoming::Hold { header, data: self.spare.pop().unwrap_or_default() }),
            },
            Message::KeyRequest => {
                let message = Message::Key { address: group.segment.address(), key: group.segment.remote_key() };
                let answer = Header { message, from: group.rank, group: group.id, length: 0 };
                self.peers[peer].out.push_back(Work::Say(answer));
                Ok(Incoming::Header)
            }
            Message::Key { address, key } => {
                let waiting = std::mem::replace(&mut member.key, Key::Known { address, key });
                if let Key::Asked(work) = waiting {
                    self.peers[peer].out.extend(work);
                }
                Ok(Incoming::Header)
            }
            Message::Refused => Err(self.protocol(peer, "it dropped the group while this rank still used its segment")),
        }
    }

    /// For a group that this rank dropped: payloads vanish, requests are refused. For one that it has not made: held.
    fn begin_without_group(&mut self, peer: usize, header: Header) -> Result<Incoming> {
        let dropped = self.groups.was_dropped(header.group);
        Ok(match header.message {
            Message::Send { .. } if dropped && header.length == 0 => Incoming::Header,
            Message::Send { .. } if dropped => Incoming::Discard { left: header.length as usize },
            Message::Send { .. } => Incoming::Hold { header, data: self.spare.pop().unwrap_or_default() },
            Message::KeyRequest if dropped => {
                let refusal = Header { message: Message::Refused, from: 0, group: header.group, length: 0 };
                self.peers[peer].out.push_back(Work::Say(refusal));
                Incoming::Header
            }
            Message::KeyRequest => {
                self.groups.hold(Early { peer, header, data: Vec::new() });
                Incoming::Header
            }
            // Answers to what a group asked before it was dropped.
            Message::Key { .. } | Message::Refused => Incoming::Header,
        })
    }

    /// Serves what arrived before its group was made.
    pub(super) fn replay(&mut self, early: Early) -> Result<()> {
        let Early { peer, header, data } = early;
        match self.begin(peer, header)? {
            // No receive can be posted yet.
            Incoming::Hold { header, .. } => self.keep(peer, header, data)?,
            _ => self.recycle(data),
        }
        self.pump(peer)
    }

    /// Takes a buffer of held payload back, so that early messages need no allocation in the long run.
    pub(super) fn recycle(&mut self, mut data: Vec<u8>) {
        if self.spare.len() < SPARES && data.capacity() <= SPARE_LEN {
            data.clear();
            self.spare.push(data);
        }
    }
}

/// Takes a message that is whole in its buffer to the receive that waits for it: whether that is what came.
#[inline]
fn deliver(link: &Link, groups: &mut Groups, peer: usize, buffer: u32, len: usize) -> bool {
    let at = buffer as usize * BUFFER;
    if !link.heard || !matches!(link.incoming, Incoming::Header) {
        return false;
    }
    let Some((Header { message: Message::Send { lane, tag }, from, group, length }, HEADER)) =
        read_header(link, at, len)
    else {
        return false;
    };
    let (length, Some(slot)) = (length as usize, groups.find(group)) else { return false };
    let group = groups.at_mut(slot);
    if group.ranks.get(from as usize).is_none_or(|rank| rank.index() != peer) {
        return false;
    }
    let Some(offset) = group.members[from as usize].take_first(lane, tag, length) else { return false };
    group.segment.copy_from(offset, &link.memory, at + HEADER, length);
    group.pending[lane as usize] -= 1;
    true
}

/// The header in a buffer of `len` bytes, and its size.
#[inline]
fn read_header(link: &Link, at: usize, len: usize) -> Option<(Header, usize)> {
    let mut bytes = [0; LONG_HEADER];
    link.memory.read(at, &mut bytes);
    Header::decode(&bytes, len)
}

pub(super) fn wrong_length(arrived: usize, expected: usize) -> String {
    format!("a message of {arrived} bytes arrived where one of {expected} was expected")
}
