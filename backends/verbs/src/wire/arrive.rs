//! What messages mean: where payload goes, what answers a request, and what is complete when it has arrived.
//!
//! Messages of the user's are the engine's to place. Headers come from ranks of the job, and are checked all the same: a
//! wrong one names its sender.

use tailback_engine::matching::{Envelope, GroupLookup, Place};
use tailback_transport::Result;

use super::link::{Connection, Incoming, Route};
use super::work::{Key, Work};
use super::{VerbsLedger, VerbsWire};
use crate::ffi::{self, Memory};
use crate::header::{HEADER, Header, LONG_HEADER, Message};

impl VerbsWire {
    /// A buffer of `len` bytes arrived from `peer`, and the number that came along.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        ledger: &mut VerbsLedger,
        peer: usize,
        buffer: u32,
        len: usize,
        number: u32,
    ) -> Result<()> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let last = match link.window.hear(number) {
            Ok(last) => last,
            Err(freed) => {
                return Err(ledger.protocol(peer, format!("it gives {freed} buffers back, more than it was sent")));
            }
        };
        if last {
            self.widen(peer)?;
        }
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        if !deliver(link, ledger, peer, buffer, len) {
            return self.arrive_part(ledger, peer, buffer, len);
        }
        link.free(buffer)?;
        if state.wants_pump() { self.pump(ledger, peer) } else { Ok(()) }
    }

    /// Likewise, for what is not a whole message that was waited for.
    fn arrive_part(&mut self, ledger: &mut VerbsLedger, peer: usize, buffer: u32, len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        if len == 0 {
            link.repost(buffer)?;
        } else if matches!(link.incoming, Incoming::Header) {
            self.arrive_header(ledger, peer, buffer, len)?;
        } else {
            self.absorb(ledger, peer, (buffer, 0), len)?;
        }
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        if len > 0 {
            link.free(buffer)?;
        }
        // A message is as good as a greeting.
        if !link.heard {
            self.hear(ledger, peer)?;
        }
        self.pump(ledger, peer)
    }

    /// The first buffer of a message.
    fn arrive_header(&mut self, ledger: &mut VerbsLedger, peer: usize, buffer: u32, len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        let Some((header, size)) = read_header(link.buffers.find(buffer), len) else {
            return Err(ledger.protocol(peer, format!("{len} bytes without a header")));
        };
        let incoming = self.begin(ledger, peer, header)?;
        if let Route::Linked(link) = &mut self.peers[peer].route {
            link.incoming = incoming;
        }
        self.absorb(ledger, peer, (buffer, size), len - size)
    }

    /// Payload arrived, from a place in a buffer on: it goes where the message under way says.
    fn absorb(&mut self, ledger: &mut VerbsLedger, peer: usize, (buffer, at): (u32, usize), len: usize) -> Result<()> {
        let Route::Linked(link) = &mut self.peers[peer].route else { return Ok(()) };
        let left = link.incoming.left();
        if len > left {
            return Err(ledger.protocol(peer, format!("{len} bytes where {left} were left")));
        }
        let (memory, begin) = link.buffers.find(buffer);
        match &mut link.incoming {
            Incoming::Header => return Ok(()),
            Incoming::Into { slot, offset, left, .. } => {
                ledger.groups.at_mut(*slot).segment.copy_from(*offset, memory, begin + at, len);
                (*offset, *left) = (*offset + len, *left - len);
            }
            Incoming::Discard { left } => *left -= len,
            Incoming::Hold { data, .. } => {
                let filled = data.len();
                data.resize(filled + len, 0);
                memory.read(begin + at, &mut data[filled..]);
            }
        }
        if len < left {
            return Ok(());
        }
        match std::mem::replace(&mut link.incoming, Incoming::Header) {
            Incoming::Into { slot, lane, .. } => ledger.arrived(peer, slot, lane),
            Incoming::Hold { envelope, data } => ledger.keep(peer, envelope, data)?,
            Incoming::Header | Incoming::Discard { .. } => {}
        }
        Ok(())
    }

    /// Decides where a header's payload goes, or answers it.
    fn begin(&mut self, ledger: &mut VerbsLedger, peer: usize, header: Header) -> Result<Incoming> {
        let (group, from, left) = (header.group, header.from, header.length as usize);
        match header.message {
            Message::Send { lane, tag } => {
                let envelope = Envelope { group, from, lane, tag, len: left };
                return Ok(match ledger.begin(peer, &envelope)? {
                    Place::Into { slot, offset } => Incoming::Into { slot, offset, left, lane },
                    Place::Hold => Incoming::Hold { envelope, data: ledger.spare() },
                    Place::Discard => Incoming::Discard { left },
                });
            }
            Message::FlowControl(word) => ledger.on_flow_control(peer, word),
            Message::Refused if ledger.has(group) => {
                return Err(ledger.protocol(peer, "it dropped the group while this rank still used its segment"));
            }
            Message::Refused => {}
            Message::KeyRequest | Message::Key { .. } => {
                let found = ledger.find(peer, group, from)?;
                self.request(ledger, peer, found, header)?;
            }
        }
        Ok(Incoming::Header)
    }

    /// Tells a member where this rank's segment is, or learns where the member's is.
    pub(super) fn request(
        &mut self,
        ledger: &mut VerbsLedger,
        peer: usize,
        found: GroupLookup,
        header: Header,
    ) -> Result<()> {
        let rail = self.rails.rail(peer);
        let out = &mut self.peers[peer].out;
        match (header.message, found) {
            (Message::KeyRequest, GroupLookup::Here(slot)) => {
                let group = ledger.groups.at(slot);
                let (address, key) = ffi::card(&group.segment, rail);
                let message = Message::Key { address, key };
                out.push_back(Work::Say(Header { message, from: group.rank, group: group.id, length: 0 }));
            }
            (Message::KeyRequest, GroupLookup::Early) => {
                return ledger.hold_request(peer, header.group, header, Vec::new());
            }
            (Message::KeyRequest, GroupLookup::Dropped) => {
                out.push_back(Work::Say(Header { message: Message::Refused, from: 0, group: header.group, length: 0 }));
            }
            (Message::Key { address, key }, GroupLookup::Here(slot)) => {
                let seat = ledger.rails.seat(header.from, peer);
                let there = &mut ledger.groups.at_mut(slot).members[seat].remote;
                let waiting = std::mem::replace(&mut there.key, Key::Known { address, key });
                if let Key::Asked(work) = waiting {
                    out.extend(work);
                }
            }
            // Answers to what a group asked before it was dropped.
            _ => {}
        }
        Ok(())
    }
}

/// Takes a message that is whole in its buffer to the receive that waits for it: whether that is what came.
#[inline]
fn deliver(link: &Connection, ledger: &mut VerbsLedger, peer: usize, buffer: u32, len: usize) -> bool {
    if !link.heard || !matches!(link.incoming, Incoming::Header) {
        return false;
    }
    let (memory, begin) = link.buffers.find(buffer);
    let Some((Header { message: Message::Send { lane, tag }, from, group, length }, HEADER)) =
        read_header((memory, begin), len)
    else {
        return false;
    };
    let len = length as usize;
    let Some((slot, offset)) = ledger.deliver(peer, &Envelope { group, from, lane, tag, len }) else { return false };
    ledger.groups.at_mut(slot).segment.copy_from(offset, memory, begin + HEADER, len);
    true
}

/// The header in a buffer with `len` bytes in it, and its size.
#[inline]
fn read_header((memory, begin): (&Memory, usize), len: usize) -> Option<(Header, usize)> {
    let mut bytes = [0; LONG_HEADER];
    memory.read(begin, &mut bytes);
    Header::decode(&bytes, len)
}
