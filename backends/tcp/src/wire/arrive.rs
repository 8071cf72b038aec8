//! What a header means: where its payload goes, what answers it, and what is complete when it has arrived.
//!
//! Messages are the engine's to place; puts, gets and flushes are served here. Headers come from ranks that proved
//! themselves, and are checked all the same: a wrong one names its sender.

use tailback_engine::matching::{Envelope, Found, Place, Slot};
use tailback_transport::Result;

use super::outbox::Ends;
use super::peer::{Asked, Held, Incoming, Route, Then};
use super::state::{Books, TcpWire};
use crate::header::{Header, Message};

impl TcpWire {
    /// Decides where a header's payload goes, or answers it.
    pub(super) fn begin(&mut self, books: &mut Books, peer: usize, header: Header) -> Result<Incoming> {
        let (group, from, len) = (header.group, header.from, header.payload());
        match header.message {
            Message::Send { lane, tag } => {
                let envelope = Envelope { group, from, lane, tag, len };
                Ok(match books.begin(peer, &envelope)? {
                    Place::Into { slot, offset } => {
                        Incoming::Into { slot, offset, left: len, then: Then::Receive(lane) }
                    }
                    Place::Hold => hold(books, Held::Message(envelope), len),
                    Place::Discard => Incoming::Discard { left: len },
                })
            }
            Message::Word(word) => {
                books.heard(peer, word);
                Ok(Incoming::Header)
            }
            Message::Refused if books.has(group) => {
                Err(books.protocol(peer, "it dropped the group while this rank still used its segment"))
            }
            Message::Refused => Ok(Incoming::Header),
            _ => match books.find(peer, group, from)? {
                Found::Here(slot) => self.request(books, peer, slot, header),
                Found::Early if len > 0 => Ok(hold(books, Held::Put(header), len)),
                Found::Early => books.hold_request(peer, group, header, Vec::new()).map(|()| Incoming::Header),
                Found::Dropped => self.late(books, peer, header),
            },
        }
    }

    /// What a member asks of this rank's segment, or answers.
    fn request(&mut self, books: &mut Books, peer: usize, slot: Slot, header: Header) -> Result<Incoming> {
        let left = header.payload();
        let seat = books.rails.seat(header.from, peer);
        let group = books.groups.at_mut(slot);
        let answer = |message, length| Header { message, from: group.rank, group: group.id, length };
        let far = &mut group.members[seat].far;
        match header.message {
            Message::Put { offset } => {
                let offset = in_segment(books, peer, slot, offset, header.length)?;
                books.lend(slot);
                return Ok(Incoming::Into { slot, offset, left, then: Then::Put });
            }
            Message::GetReply => {
                return match far.asked.pop_front() {
                    Some(Asked::Get { into, over }) if into.len == left => {
                        let then = Then::Get { member: header.from, over };
                        Ok(Incoming::Into { slot, offset: into.offset, left, then })
                    }
                    Some(Asked::Get { into, .. }) => {
                        Err(books.protocol(peer, format!("{left} bytes answer a get of {}", into.len)))
                    }
                    Some(Asked::Flush { .. }) | None => {
                        Err(books.protocol(peer, "an answer to a get that was not made"))
                    }
                };
            }
            Message::Get { offset } => {
                let reply = answer(Message::GetReply, header.length);
                let offset = in_segment(books, peer, slot, offset, header.length)?;
                let out = &mut self.peers[peer].out;
                out.stage(&reply.encode());
                if header.length > 0 {
                    out.refer(slot, offset, header.length as usize);
                    out.end_with_last(Ends::Loan { slot });
                    books.lend(slot);
                }
                self.pump(books, peer)?;
            }
            Message::Flush { counter } => {
                let ack = answer(Message::FlushAck { counter }, 0);
                self.answer(books, peer, ack)?;
            }
            Message::FlushAck { counter } => {
                match far.asked.pop_front() {
                    Some(Asked::Flush { counter: own, over }) if own == counter => far.over = over,
                    _ => return Err(books.protocol(peer, "an answer to a flush that was not asked for")),
                }
                books.end_access(peer, slot);
            }
            Message::Send { .. } | Message::Refused | Message::Word(_) => {
                return Err(books.protocol(peer, "a header that is no request"));
            }
        }
        Ok(Incoming::Header)
    }

    /// What reaches a group that this rank dropped: payloads vanish, requests are refused.
    fn late(&mut self, books: &mut Books, peer: usize, header: Header) -> Result<Incoming> {
        if matches!(header.message, Message::Get { .. } | Message::Flush { .. }) {
            self.answer(books, peer, Header { message: Message::Refused, from: 0, group: header.group, length: 0 })?;
        }
        Ok(Incoming::Discard { left: header.payload() })
    }

    /// A put is here in full whose group did not exist when it began to arrive.
    pub(super) fn put_held(&mut self, books: &mut Books, peer: usize, header: Header, data: Vec<u8>) -> Result<()> {
        match books.find(peer, header.group, header.from)? {
            Found::Early => return books.hold_request(peer, header.group, header, data),
            found => self.serve_early(books, peer, found, header, &data)?,
        }
        books.recycle(data);
        Ok(())
    }

    /// Serves a request with its payload.
    pub(super) fn serve_early(
        &mut self,
        books: &mut Books,
        peer: usize,
        found: Found,
        header: Header,
        data: &[u8],
    ) -> Result<()> {
        let Found::Here(slot) = found else { return self.late(books, peer, header).map(drop) };
        if header.payload() > 0 && !matches!(header.message, Message::Put { .. }) {
            return Err(books.protocol(peer, "an answer to a get that was not made"));
        }
        if let Incoming::Into { slot, offset, then, .. } = self.request(books, peer, slot, header)? {
            books.groups.at_mut(slot).segment.write(offset, data);
            arrived(books, peer, slot, then);
        }
        Ok(())
    }

    /// Decides again where a message under way goes, now that a receive was posted.
    pub(super) fn reconsider(&mut self, books: &mut Books, peer: usize) -> Result<()> {
        let Route::Up(link) = &mut self.peers[peer].route else { return Ok(()) };
        let Incoming::Hold { what: Held::Message(envelope), len, data, filled } = &mut link.incoming else {
            return Ok(());
        };
        let (left, filled, lane) = (*len - *filled, *filled, envelope.lane);
        let Some((slot, offset)) = books.place_held(peer, envelope, &data[..filled])? else { return Ok(()) };
        let data = std::mem::take(data);
        link.incoming = Incoming::Into { slot, offset: offset + filled, left, then: Then::Receive(lane) };
        books.recycle(data);
        self.digest(books, peer)
    }
}

fn hold(books: &mut Books, what: Held, len: usize) -> Incoming {
    Incoming::Hold { what, len, data: books.spare(), filled: 0 }
}

/// A payload is in its segment.
pub(super) fn arrived(books: &mut Books, peer: usize, slot: Slot, then: Then) {
    match then {
        Then::Receive(lane) => books.arrived(peer, slot, lane),
        Then::Get { member, over } => {
            let seat = books.rails.seat(member, peer);
            books.groups.at_mut(slot).members[seat].far.over = over;
            books.end_access(peer, slot);
        }
        Then::Put => books.unlend(slot),
    }
}

fn in_segment(books: &Books, peer: usize, slot: Slot, offset: u64, length: u64) -> Result<usize> {
    let size = books.groups.at(slot).segment.len() as u64;
    if offset + length > size {
        let detail = format!("asks for bytes {offset}..{} of a segment of {size}", offset + length);
        return Err(books.protocol(peer, detail));
    }
    Ok(offset as usize)
}
