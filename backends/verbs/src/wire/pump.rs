//! Posts what waits for a peer, in order, as far as there are places in the send queue and buffers at the peer.
//!
//! Short messages and puts travel inside their request: complete, as far as their memory goes, when they are posted.
//! Longer ones are taken from the segment by the device, without a copy. The last request of a long message tells of its
//! completion, and so do gets and fences; of the others every so many, to free the places of the send queue.

use tailback_engine::matching::{Group, GroupMember, MessageRequest, Slot};
use tailback_transport::{Result, Span};

use super::ids;
use super::link::{Connection, Route};
use super::work::{AccessKind, Done, Key, Work};
use super::{VerbsLedger, VerbsWire};
use crate::ffi::{self, Piece};
use crate::header::{HEADER, Header, Message};

/// What became of the work at the head of the queue.
enum Step {
    /// All of it is posted.
    Posted,
    /// Some of it is.
    Part,
    /// It has to wait.
    Stuck,
}

impl VerbsWire {
    /// Sends a message that travels inside its request, if nothing is before it and it goes: whether it did.
    #[inline]
    pub(super) fn send_at_once(&mut self, ledger: &VerbsLedger, peer: usize, request: &MessageRequest) -> Result<bool> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(false) };
        let goes = state.out.is_empty() && link.window.has_credit() && link.has_room();
        if !goes || HEADER + request.span.len > link.pair.inline() {
            return Ok(false);
        }
        send_short(link, peer, ledger.groups.at(request.slot), request)?;
        Ok(true)
    }

    /// Posts a put or a get that fits in one request, if nothing is before it and it goes: whether it did.
    #[inline]
    pub(super) fn access_at_once(
        &mut self,
        ledger: &mut VerbsLedger,
        peer: usize,
        GroupMember { slot, member }: GroupMember,
        kind: AccessKind,
        local: Span,
        remote: usize,
    ) -> Result<bool> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(false) };
        let seat = ledger.rails.seat(member.0, peer);
        let group = ledger.groups.at_mut(slot);
        let there = &mut group.members[seat].remote;
        let Key::Known { address, key } = there.key else { return Ok(false) };
        if !state.out.is_empty() || !link.has_room() || local.len > link.longest {
            return Ok(false);
        }
        there.begin();
        let from = ffi::shared_piece(&group.segment, link.rail, local.offset, local.len);
        let to = address + remote as u64;
        ledger.begin_access(peer, slot);
        let done = Done::Access { slot, member: member.0, reads: kind == AccessKind::Get };
        access(link, peer, kind, done, from, (to, key))?;
        Ok(true)
    }

    /// Posts work at once if nothing is before it and it goes, else lets it wait for its turn.
    #[inline]
    pub(super) fn submit(&mut self, ledger: &mut VerbsLedger, peer: usize, mut work: Work) -> Result<()> {
        let state = &mut self.peers[peer];
        if let Route::Linked(link) = &mut state.route
            && state.out.is_empty()
            && link.has_room()
        {
            let mut poster = Poster { peer, link, ledger };
            if let Step::Posted = poster.post(&mut work)? {
                return poster.settle();
            }
        }
        state.queued += work.message_len();
        state.out.push_back(work);
        self.pump(ledger, peer)
    }

    /// Posts as much as goes.
    pub(super) fn pump(&mut self, ledger: &mut VerbsLedger, peer: usize) -> Result<()> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let mut poster = Poster { peer, link, ledger };
        while let Some(work) = state.out.front_mut() {
            if !poster.link.has_room() {
                break;
            }
            match poster.post(work)? {
                Step::Posted => {
                    state.queued -= work.message_len();
                    state.out.pop_front();
                }
                Step::Part => {}
                Step::Stuck => break,
            }
        }
        poster.settle()
    }

    /// Makes sure that the completion of everything posted to `peer` will be told.
    pub(super) fn say_farewell(&mut self, ledger: &mut VerbsLedger, peer: usize) -> Result<()> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let mut poster = Poster { peer, link, ledger };
        if !poster.link.is_idle() && poster.link.has_room() {
            poster.credit(true)?;
        }
        Ok(())
    }

    /// Whether anything posted is not known to have arrived.
    pub(super) fn has_under_way(&self) -> bool {
        self.peers.iter().any(|peer| matches!(&peer.route, Route::Linked(link) if !link.is_idle()))
    }
}

/// Sends a message inside its request. There are a credit and a place for it.
#[inline]
fn send_short(link: &mut Connection, peer: usize, group: &Group<VerbsWire>, request: &MessageRequest) -> Result<()> {
    let (header, size) = header(group, request).encode(link.piece_len);
    let told = link.window.spend();
    let (number, signalled) = link.begin(Done::Nothing, false);
    link.pair.send_inline(
        ids::send(peer, number),
        signalled,
        told,
        &header[..size],
        body(group, link.rail, request, request.span.len),
    )
}

/// Posts a put from `piece`, or a get into it; the last one of an operation completes it. There is a place for it.
#[inline]
fn access(
    link: &mut Connection,
    peer: usize,
    kind: AccessKind,
    done: Done,
    piece: Piece,
    (to, key): (u64, u32),
) -> Result<()> {
    // A get is waited for soon; a put completes with the fence behind it.
    let (number, signalled) = link.begin(done, kind == AccessKind::Get && done != Done::Nothing);
    let id = ids::send(peer, number);
    match kind {
        AccessKind::Get => link.pair.read(id, signalled, piece, to, key),
        AccessKind::Put => link.pair.write(id, signalled, piece, to, key),
    }
}

#[inline]
fn header(group: &Group<VerbsWire>, request: &MessageRequest) -> Header {
    let message = Message::Send { lane: request.lane, tag: request.tag };
    Header { message, from: group.rank, group: group.id, length: request.span.len as u64 }
}

/// The first `len` bytes of a message's payload, for a request on a rail.
#[inline]
fn body(group: &Group<VerbsWire>, rail: usize, request: &MessageRequest, len: usize) -> Option<Piece> {
    (len > 0).then(|| ffi::shared_piece(&group.segment, rail, request.span.offset, len))
}

/// A link and what its work refers to.
struct Poster<'a> {
    peer: usize,
    link: &'a mut Connection,
    ledger: &'a mut VerbsLedger,
}

impl Poster<'_> {
    fn post(&mut self, work: &mut Work) -> Result<Step> {
        match work {
            Work::Send { .. } | Work::Say(_) if !self.link.window.has_credit() => Ok(Step::Stuck),
            Work::Send { at, begun, .. } if *at > 0 || *begun => self.send_more(work),
            Work::Send { .. } => self.send_first(work),
            Work::Say(header) => self.say(header).map(|()| Step::Posted),
            Work::Access { .. } => self.access(work),
            Work::Fence { slot, member } => {
                let (slot, member) = (*slot, *member);
                let (address, key) = self.key(slot, member);
                let (number, _) = self.link.begin(Done::Access { slot, member, reads: true }, true);
                self.link.pair.read(ids::send(self.peer, number), true, self.link.landing(), address, key)?;
                Ok(Step::Posted)
            }
        }
    }

    /// The first buffer of a message, with its header.
    #[inline]
    fn send_first(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Send { request, at, begun } = work else { return Ok(Step::Posted) };
        let MessageRequest { slot, member, lane, span, .. } = *request;
        let group = self.ledger.groups.at(slot);
        if HEADER + span.len <= self.link.pair.inline() {
            send_short(self.link, self.peer, group, request)?;
            self.ledger.end_send(self.peer, slot, member, lane);
            return Ok(Step::Posted);
        }
        let (header, size) = header(group, request).encode(self.link.piece_len);
        let told = self.link.window.spend();
        let len = span.len.min(self.link.piece_len - size);
        let last = len == span.len;
        let done = if last { Done::Send { slot, member, lane } } else { Done::Nothing };
        let (number, signalled) = self.link.begin(done, last);
        let head = self.link.stage(number, &header[..size]);
        let body = body(group, self.link.rail, request, len);
        self.link.pair.send(ids::send(self.peer, number), signalled, told, Some(head), body)?;
        (*at, *begun) = (len, true);
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// The next buffer of a message: payload alone.
    fn send_more(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Send { request, at, .. } = work else { return Ok(Step::Posted) };
        let MessageRequest { slot, member, lane, span, .. } = *request;
        let len = (span.len - *at).min(self.link.piece_len);
        let last = *at + len == span.len;
        let piece = self.piece(slot, Span::new(span.offset + *at, len));
        let told = self.link.window.spend();
        let done = if last { Done::Send { slot, member, lane } } else { Done::Nothing };
        let (number, signalled) = self.link.begin(done, last);
        self.link.pair.send(ids::send(self.peer, number), signalled, told, Some(piece), None)?;
        *at += len;
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// A put or a get, or the next part of one that is longer than the port's messages may be.
    fn access(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Access { kind, slot, member, local, remote, at } = work else { return Ok(Step::Posted) };
        let (address, key) = self.key(*slot, *member);
        let len = (local.len - *at).min(self.link.longest);
        let last = *at + len == local.len;
        let piece = self.piece(*slot, Span::new(local.offset + *at, len));
        let to = address + (*remote + *at) as u64;
        let reads = *kind == AccessKind::Get;
        let done = if last { Done::Access { slot: *slot, member: *member, reads } } else { Done::Nothing };
        access(self.link, self.peer, *kind, done, piece, (to, key))?;
        *at += len;
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// Tells of freed buffers, if there are many that no message told of.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        if self.link.window.owes_much() && self.link.has_room() { self.credit(false) } else { Ok(()) }
    }

    /// Tells of freed buffers, and of nothing else.
    fn credit(&mut self, signalled: bool) -> Result<()> {
        let told = self.link.window.tell();
        let (number, signalled) = self.link.begin(Done::Nothing, signalled);
        self.link.pair.send(ids::send(self.peer, number), signalled, told, None, None)
    }

    fn say(&mut self, header: &Header) -> Result<()> {
        let ((bytes, size), told) = (header.encode(self.link.piece_len), self.link.window.spend());
        let (number, signalled) = self.link.begin(Done::Nothing, false);
        let id = ids::send(self.peer, number);
        if size <= self.link.pair.inline() {
            return self.link.pair.send_inline(id, signalled, told, &bytes[..size], None);
        }
        let head = self.link.stage(number, &bytes[..size]);
        self.link.pair.send(id, signalled, told, Some(head), None)
    }

    fn piece(&self, slot: Slot, span: Span) -> Piece {
        ffi::shared_piece(&self.ledger.groups.at(slot).segment, self.link.rail, span.offset, span.len)
    }

    /// Where the member's segment is: work that needs it waits elsewhere until it is known.
    fn key(&self, slot: Slot, member: u32) -> (u64, u32) {
        match self.ledger.groups.at(slot).members[self.ledger.rails.seat(member, self.peer)].remote.key {
            Key::Known { address, key } => (address, key),
            _ => unreachable!("work is queued once the key is known"),
        }
    }
}
