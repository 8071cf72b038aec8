//! Bytes in: headers and small messages through a staging buffer, large payloads straight into the segment.
//!
//! One read fetches the rest of the payload under way and, behind it, the start of what follows.

use std::io::IoSliceMut;

use rustix::io::{Errno, readv};

use tailback_transport::{Rank, Result};

use super::Engine;
use super::groups::Early;
use super::peer::{Incoming, Link, Route, STAGE, Then};
use crate::wire::{HEADER, Header, Message};

/// Reads of one connection before others get their turn.
const BUDGET: usize = 16;

/// Behind a long payload only this much is staged: what is staged has to be copied.
const TAIL: usize = 512;

/// Payloads shorter than this are read together with whatever follows.
const LONG: usize = 4 * 1024;

/// A connection is left unread while this many bytes from it wait for receives and this rank wants nothing from it.
const HELD_LIMIT: usize = 1024 * 1024;

/// How much a held payload's buffer grows at a time: what a header claims is not allocated before it arrives.
const HOLD_STEP: usize = 64 * 1024;

/// How many buffers of held payloads are kept for the next ones.
const SPARES: usize = 64;

enum Got {
    Bytes { full: bool },
    Nothing,
    Closed(String),
}

impl Engine {
    /// Reads from `peer` until it is dry, paused or over budget. Returns whether anything arrived.
    pub(super) fn read_link(&mut self, peer: usize) -> Result<bool> {
        let mut any = false;
        for _ in 0..BUDGET {
            let Some(got) = self.read_once(peer) else { return Ok(any) };
            match got {
                Got::Bytes { full } => {
                    any = true;
                    self.digest(peer)?;
                    let Route::Up(link) = &mut self.peers[peer].route else { return Ok(any) };
                    if !full && !link.closing {
                        link.ready = false;
                        return Ok(any);
                    }
                }
                Got::Nothing => {
                    if let Route::Up(link) = &mut self.peers[peer].route {
                        link.ready = false;
                    }
                    return Ok(any);
                }
                Got::Closed(detail) => {
                    self.lose(peer, detail)?;
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    /// One system call, or `None` when there is no link or it is paused.
    fn read_once(&mut self, peer: usize) -> Option<Got> {
        let state = &mut self.peers[peer];
        if state.held > HELD_LIMIT && state.open == 0 {
            return None;
        }
        let Route::Up(link) = &mut state.route else { return None };
        let Link { socket, incoming, stage, start, end, .. } = &mut **link;
        if *start > 0 {
            stage.copy_within(*start..*end, 0);
            (*start, *end) = (0, *end - *start);
        }
        let payload: &mut [u8] = match incoming {
            Incoming::Into { slot, offset, left, .. } => {
                &mut self.groups.at_mut(*slot).segment[*offset..*offset + *left]
            }
            Incoming::Hold { data, filled, .. } => &mut data[*filled..],
            Incoming::Header | Incoming::Discard { .. } => &mut [],
        };
        let wanted = payload.len();
        let room = if wanted < LONG { STAGE } else { TAIL };
        let spare = &mut stage[*end..room.max(*end)];
        let offered = wanted + spare.len();
        let result = if wanted == 0 {
            rustix::io::read(&*socket, spare)
        } else {
            readv(&*socket, &mut [IoSliceMut::new(payload), IoSliceMut::new(spare)])
        };
        Some(match result {
            Ok(0) => Got::Closed("connection closed".into()),
            Ok(n) => {
                let direct = n.min(wanted);
                match incoming {
                    Incoming::Into { offset, left, .. } => (*offset, *left) = (*offset + direct, *left - direct),
                    Incoming::Hold { filled, .. } => *filled += direct,
                    _ => {}
                }
                *end += n - direct;
                Got::Bytes { full: n == offered }
            }
            Err(Errno::AGAIN) => Got::Nothing,
            Err(Errno::INTR) => Got::Bytes { full: true },
            Err(error) => Got::Closed(format!("connection closed: {error}")),
        })
    }

    /// Works through what was read: finishes payloads, parses headers, copies what was staged.
    fn digest(&mut self, peer: usize) -> Result<()> {
        loop {
            let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
            let staged = link.end - link.start;
            match &mut link.incoming {
                Incoming::Header => {
                    let Some(bytes) = link.stage[link.start..link.end].first_chunk::<HEADER>() else { return Ok(()) };
                    let parsed = Header::decode(bytes);
                    link.start += HEADER;
                    let header = parsed.map_err(|what| self.protocol(peer, what))?;
                    let incoming = self.begin(peer, header)?;
                    self.set_incoming(peer, incoming);
                    continue;
                }
                Incoming::Into { slot, offset, left, .. } if *left > 0 => {
                    let n = staged.min(*left);
                    self.groups.at_mut(*slot).segment[*offset..*offset + n]
                        .copy_from_slice(&link.stage[link.start..link.start + n]);
                    (*offset, *left) = (*offset + n, *left - n);
                    link.start += n;
                }
                Incoming::Hold { header, data, filled } if *filled < header.payload() => {
                    let n = staged.min(header.payload() - *filled);
                    if data.len() < *filled + n {
                        data.resize(*filled + n, 0);
                    }
                    data[*filled..*filled + n].copy_from_slice(&link.stage[link.start..link.start + n]);
                    *filled += n;
                    if data.len() == *filled {
                        data.resize((*filled + HOLD_STEP).min(header.payload()), 0);
                    }
                    link.start += n;
                }
                Incoming::Discard { left } if *left > 0 => {
                    let n = staged.min(*left);
                    *left -= n;
                    link.start += n;
                }
                _ => {}
            }
            if !self.finish(peer)? {
                return Ok(());
            }
        }
    }

    /// Ends the payload under way if it is complete; says whether it was.
    fn finish(&mut self, peer: usize) -> Result<bool> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(false) };
        let complete = match &link.incoming {
            Incoming::Header => false,
            Incoming::Into { left, .. } | Incoming::Discard { left } => *left == 0,
            Incoming::Hold { header, filled, .. } => *filled == header.payload(),
        };
        if !complete {
            return Ok(false);
        }
        match std::mem::replace(&mut link.incoming, Incoming::Header) {
            Incoming::Into { slot, then, .. } => self.arrived(peer, slot, then),
            Incoming::Hold { header, data, .. } => self.keep(peer, header, data),
            Incoming::Header | Incoming::Discard { .. } => {}
        }
        Ok(true)
    }

    fn arrived(&mut self, peer: usize, slot: usize, then: Then) {
        let group = self.groups.at_mut(slot);
        match then {
            Then::Receive(lane) => group.pending[lane as usize] -= 1,
            Then::Get(member) => group.members[member as usize].gets_open -= 1,
            Then::Put => return,
        }
        self.peers[peer].open -= 1;
    }

    /// Stores a complete payload that nothing waits for.
    fn keep(&mut self, peer: usize, header: Header, data: Vec<u8>) {
        match (self.groups.find(header.group), header.message) {
            (Some(slot), Message::Send { lane, tag }) => {
                self.groups.at_mut(slot).members[header.from as usize].keep(lane, tag, data);
            }
            _ => self.groups.hold(Early { peer: Rank::from(peer), header, data }),
        }
    }

    /// Decides where a header's payload goes, or answers it.
    fn begin(&mut self, peer: usize, header: Header) -> Result<Incoming> {
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
        let mut data = self.spare.pop().unwrap_or_default();
        data.resize(header.payload().min(HOLD_STEP), 0);
        Incoming::Hold { header, data, filled: 0 }
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

    fn set_incoming(&mut self, peer: usize, incoming: Incoming) {
        if let Route::Up(link) = &mut self.peers[peer].route {
            link.incoming = incoming;
        }
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
