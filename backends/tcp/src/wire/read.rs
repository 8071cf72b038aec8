//! Bytes in: headers and small messages through a staging buffer, large payloads straight into the segment. And what a header
//! means: where its payload goes, what answers it, and what is complete when it has arrived.
//!
//! One read fetches the rest of the payload under way and, behind it, the start of what follows. Messages are the engine's
//! to place; puts, gets and flushes are served here. Headers come from ranks that proved themselves, and are checked all the
//! same: a wrong one names its sender.

use std::io::IoSliceMut;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recv, recvmsg};

use tailback_engine::matching::{Envelope, GroupLookup, Place, Slot};
use tailback_transport::Result;

use super::outbox::Ends;
use super::peer::{Asked, Connection, Held, Incoming, Route, STAGE, Then};
use super::{TcpLedger, TcpWire};
use crate::header::{HEADER, Header, Message};

/// Reads of one connection before others get their turn.
const BUDGET: usize = 16;

/// Behind a long payload only this much is staged: what is staged has to be copied.
const TAIL: usize = 512;

/// Payloads shorter than this are read together with whatever follows.
const LONG: usize = 4 * 1024;

/// How much a held payload's buffer grows at a time: what a header claims is not allocated before it arrives.
const HOLD_STEP: usize = 64 * 1024;

enum Got {
    Bytes { full: bool },
    Nothing,
    Closed(String),
}

impl TcpWire {
    /// Reads from `peer` until it is dry or over budget. Returns whether anything arrived.
    pub(super) fn read_link(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<bool> {
        self.read_with(ledger, peer, RecvFlags::DONTWAIT)
    }

    /// As [`TcpWire::read_link`], but sleeps until something arrives or the connection ends.
    pub(super) fn read_sleeping(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<bool> {
        self.read_with(ledger, peer, RecvFlags::empty())
    }

    fn read_with(&mut self, ledger: &mut TcpLedger, peer: usize, first: RecvFlags) -> Result<bool> {
        let mut any = false;
        for turn in 0..BUDGET {
            let flags = if turn == 0 { first } else { RecvFlags::DONTWAIT };
            let Some(got) = self.read_once(ledger, peer, flags) else { return Ok(any) };
            match got {
                Got::Bytes { full } => {
                    any = true;
                    self.digest(ledger, peer)?;
                    let Route::Up(link) = &mut self.peers[peer].route else { return Ok(any) };
                    if !full && !link.closing {
                        link.ready = false;
                        return Ok(any);
                    }
                    // Nothing wants this payload yet. The caller may be about to, and then it need not be copied.
                    if matches!(link.incoming, Incoming::Hold { .. }) {
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
                    self.lose(ledger, peer, detail)?;
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    /// One system call, or `None` when there is no link.
    fn read_once(&mut self, ledger: &mut TcpLedger, peer: usize, flags: RecvFlags) -> Option<Got> {
        let Route::Up(link) = &mut self.peers[peer].route else { return None };
        let Connection { socket, incoming, stage, start, end, long, .. } = &mut **link;
        if *start > 0 {
            stage.copy_within(*start..*end, 0);
            (*start, *end) = (0, *end - *start);
        }
        let payload: &mut [u8] = match incoming {
            Incoming::Into { slot, offset, left, .. } => {
                &mut ledger.groups.at_mut(*slot).segment.bytes_mut()[*offset..*offset + *left]
            }
            Incoming::Hold { len, data, filled, .. } => {
                data.resize((*filled + HOLD_STEP).min(*len), 0);
                &mut data[*filled..]
            }
            Incoming::Header | Incoming::Discard { .. } => &mut [],
        };
        let wanted = payload.len();
        let room = if wanted >= LONG || (wanted == 0 && *long) { TAIL } else { STAGE };
        let spare = &mut stage[*end..room.max(*end)];
        let offered = wanted + spare.len();
        let result = if wanted == 0 {
            recv(&*socket, spare, flags).map(|(n, _)| n)
        } else {
            let slices = &mut [IoSliceMut::new(payload), IoSliceMut::new(spare)];
            recvmsg(&*socket, slices, &mut RecvAncillaryBuffer::default(), flags).map(|message| message.bytes)
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
    pub(super) fn digest(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        loop {
            let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
            let staged = link.end - link.start;
            match &mut link.incoming {
                Incoming::Header => {
                    let Some(bytes) = link.stage[link.start..link.end].first_chunk::<HEADER>() else { return Ok(()) };
                    let parsed = Header::decode(bytes);
                    link.start += HEADER;
                    link.long = parsed.is_ok_and(|header| header.payload() >= LONG);
                    let header = parsed.map_err(|what| ledger.protocol(peer, what))?;
                    let incoming = self.begin(ledger, peer, header)?;
                    self.set_incoming(peer, incoming);
                    continue;
                }
                Incoming::Into { slot, offset, left, .. } if *left > 0 => {
                    let n = staged.min(*left);
                    let segment = &mut ledger.groups.at_mut(*slot).segment;
                    segment.write(*offset, &link.stage[link.start..link.start + n]);
                    (*offset, *left) = (*offset + n, *left - n);
                    link.start += n;
                }
                Incoming::Hold { len, data, filled, .. } if *filled < *len => {
                    let n = staged.min(*len - *filled);
                    data.truncate(*filled);
                    data.extend_from_slice(&link.stage[link.start..link.start + n]);
                    *filled += n;
                    link.start += n;
                }
                Incoming::Discard { left } if *left > 0 => {
                    let n = staged.min(*left);
                    *left -= n;
                    link.start += n;
                }
                _ => {}
            }
            if !self.finish(ledger, peer)? {
                return Ok(());
            }
        }
    }

    /// Ends the payload under way if it is complete; says whether it was.
    fn finish(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<bool> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(false) };
        let complete = match &link.incoming {
            Incoming::Header => false,
            Incoming::Into { left, .. } | Incoming::Discard { left } => *left == 0,
            Incoming::Hold { len, filled, .. } => filled == len,
        };
        if !complete {
            return Ok(false);
        }
        match std::mem::replace(&mut link.incoming, Incoming::Header) {
            Incoming::Into { slot, then, .. } => arrived(ledger, peer, slot, then),
            Incoming::Hold { what: Held::Message(envelope), data, .. } => ledger.keep(peer, envelope, data)?,
            Incoming::Hold { what: Held::Put(header), data, .. } => self.put_held(ledger, peer, header, data)?,
            Incoming::Header | Incoming::Discard { .. } => {}
        }
        Ok(true)
    }

    pub(super) fn set_incoming(&mut self, peer: usize, incoming: Incoming) {
        if let Route::Up(link) = &mut self.peers[peer].route {
            link.incoming = incoming;
        }
    }
}

impl TcpWire {
    /// Decides where a header's payload goes, or answers it.
    pub(super) fn begin(&mut self, ledger: &mut TcpLedger, peer: usize, header: Header) -> Result<Incoming> {
        let (group, from, len) = (header.group, header.from, header.payload());
        match header.message {
            Message::Send { lane, tag } => {
                let envelope = Envelope { group, from, lane, tag, len };
                Ok(match ledger.begin(peer, &envelope)? {
                    Place::Into { slot, offset } => {
                        Incoming::Into { slot, offset, left: len, then: Then::Receive(lane) }
                    }
                    Place::Hold => hold(ledger, Held::Message(envelope), len),
                    Place::Discard => Incoming::Discard { left: len },
                })
            }
            Message::FlowControl(control) => {
                ledger.on_flow_control(peer, control);
                Ok(Incoming::Header)
            }
            Message::Refused if ledger.has(group) => {
                Err(ledger.protocol(peer, "it dropped the group while this rank still used its segment"))
            }
            Message::Refused => Ok(Incoming::Header),
            _ => match ledger.find(peer, group, from)? {
                GroupLookup::Here(slot) => self.request(ledger, peer, slot, header),
                GroupLookup::Early if len > 0 => Ok(hold(ledger, Held::Put(header), len)),
                GroupLookup::Early => ledger.hold_request(peer, group, header, Vec::new()).map(|()| Incoming::Header),
                GroupLookup::Dropped => self.late(ledger, peer, header),
            },
        }
    }

    /// What a member asks of this rank's segment, or answers.
    fn request(&mut self, ledger: &mut TcpLedger, peer: usize, slot: Slot, header: Header) -> Result<Incoming> {
        let left = header.payload();
        let seat = ledger.rails.seat(header.from, peer);
        let group = ledger.groups.at_mut(slot);
        let answer = |message, length| Header { message, from: group.rank, group: group.id, length };
        let there = &mut group.members[seat].remote;
        match header.message {
            Message::Put { offset } => {
                let offset = in_segment(ledger, peer, slot, offset, header.length)?;
                ledger.lend(slot);
                return Ok(Incoming::Into { slot, offset, left, then: Then::Put });
            }
            Message::GetReply => {
                return match there.asked.pop_front() {
                    Some(Asked::Get { into, completed }) if into.len == left => {
                        let then = Then::Get { member: header.from, completed };
                        Ok(Incoming::Into { slot, offset: into.offset, left, then })
                    }
                    Some(Asked::Get { into, .. }) => {
                        Err(ledger.protocol(peer, format!("{left} bytes answer a get of {}", into.len)))
                    }
                    Some(Asked::Flush { .. }) | None => {
                        Err(ledger.protocol(peer, "an answer to a get that was not made"))
                    }
                };
            }
            Message::Get { offset } => {
                let reply = answer(Message::GetReply, header.length);
                let offset = in_segment(ledger, peer, slot, offset, header.length)?;
                let out = &mut self.peers[peer].out;
                out.stage(&reply.encode());
                if header.length > 0 {
                    out.refer(slot, offset, header.length as usize);
                    out.end_with_last(Ends::Loan { slot });
                    ledger.lend(slot);
                }
                self.pump(ledger, peer)?;
            }
            Message::Flush { counter } => {
                let ack = answer(Message::FlushAck { counter }, 0);
                self.answer(ledger, peer, ack)?;
            }
            Message::FlushAck { counter } => {
                match there.asked.pop_front() {
                    Some(Asked::Flush { counter: own, completed }) if own == counter => there.completed = completed,
                    _ => return Err(ledger.protocol(peer, "an answer to a flush that was not asked for")),
                }
                ledger.end_access(peer, slot);
            }
            Message::Send { .. } | Message::Refused | Message::FlowControl(_) => {
                return Err(ledger.protocol(peer, "a header that is no request"));
            }
        }
        Ok(Incoming::Header)
    }

    /// What reaches a group that this rank dropped: payloads vanish, requests are refused.
    fn late(&mut self, ledger: &mut TcpLedger, peer: usize, header: Header) -> Result<Incoming> {
        if matches!(header.message, Message::Get { .. } | Message::Flush { .. }) {
            self.answer(ledger, peer, Header { message: Message::Refused, from: 0, group: header.group, length: 0 })?;
        }
        Ok(Incoming::Discard { left: header.payload() })
    }

    /// A put is here in full whose group did not exist when it began to arrive.
    pub(super) fn put_held(
        &mut self,
        ledger: &mut TcpLedger,
        peer: usize,
        header: Header,
        data: Vec<u8>,
    ) -> Result<()> {
        match ledger.find(peer, header.group, header.from)? {
            GroupLookup::Early => return ledger.hold_request(peer, header.group, header, data),
            found => self.serve_early(ledger, peer, found, header, &data)?,
        }
        ledger.recycle(data);
        Ok(())
    }

    /// Serves a request with its payload.
    pub(super) fn serve_early(
        &mut self,
        ledger: &mut TcpLedger,
        peer: usize,
        found: GroupLookup,
        header: Header,
        data: &[u8],
    ) -> Result<()> {
        let GroupLookup::Here(slot) = found else { return self.late(ledger, peer, header).map(drop) };
        if header.payload() > 0 && !matches!(header.message, Message::Put { .. }) {
            return Err(ledger.protocol(peer, "an answer to a get that was not made"));
        }
        if let Incoming::Into { slot, offset, then, .. } = self.request(ledger, peer, slot, header)? {
            ledger.groups.at_mut(slot).segment.write(offset, data);
            arrived(ledger, peer, slot, then);
        }
        Ok(())
    }

    /// Decides again where a message under way goes, now that a receive was posted.
    pub(super) fn reconsider(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
        let Incoming::Hold { what: Held::Message(envelope), len, data, filled } = &mut link.incoming else {
            return Ok(());
        };
        let (left, filled, lane) = (*len - *filled, *filled, envelope.lane);
        let Some((slot, offset)) = ledger.place_held(peer, envelope, &data[..filled])? else { return Ok(()) };
        let data = std::mem::take(data);
        link.incoming = Incoming::Into { slot, offset: offset + filled, left, then: Then::Receive(lane) };
        ledger.recycle(data);
        self.digest(ledger, peer)
    }
}

fn hold(ledger: &mut TcpLedger, what: Held, len: usize) -> Incoming {
    Incoming::Hold { what, len, data: ledger.spare(), filled: 0 }
}

/// A payload is in its segment.
fn arrived(ledger: &mut TcpLedger, peer: usize, slot: Slot, then: Then) {
    match then {
        Then::Receive(lane) => ledger.arrived(peer, slot, lane),
        Then::Get { member, completed } => {
            let seat = ledger.rails.seat(member, peer);
            ledger.groups.at_mut(slot).members[seat].remote.completed = completed;
            ledger.end_access(peer, slot);
        }
        Then::Put => ledger.unlend(slot),
    }
}

fn in_segment(ledger: &TcpLedger, peer: usize, slot: Slot, offset: u64, length: u64) -> Result<usize> {
    let size = ledger.groups.at(slot).segment.len() as u64;
    if offset + length > size {
        let detail = format!("asks for bytes {offset}..{} of a segment of {size}", offset + length);
        return Err(ledger.protocol(peer, detail));
    }
    Ok(offset as usize)
}
