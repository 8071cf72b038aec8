//! Posts what waits for a peer, in order, as far as there are places in the send queue and buffers at the peer.
//!
//! Short messages and puts travel inside their request: complete, as far as their memory goes, when they are posted.
//! Longer ones are taken from the segment by the device, without a copy. The last request of a long message tells of its
//! completion, and so do gets and fences; of the others every so many, to free the places of the send queue.

use tailback_transport::{Lane, Rank, Result, Span, Tag};

use super::groups::{GroupState, Groups, Key, Slot};
use super::peer::{AccessKind, BUFFER, Done, Link, Route, Work};
use super::{Engine, send_id};
use crate::ffi::Piece;
use crate::wire::{HEADER, Header, Message};

/// What became of the work at the head of the queue.
enum Step {
    /// All of it is posted.
    Posted,
    /// Some of it is.
    Part,
    /// It has to wait.
    Stuck,
}

impl Engine {
    /// Sends a message that travels inside its request, if nothing is before it and it goes: whether it did.
    #[inline]
    pub(super) fn send_at_once(&mut self, peer: usize, slot: Slot, lane: Lane, tag: Tag, span: Span) -> Result<bool> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(false) };
        let goes = state.out.is_empty() && link.credits > 0 && link.has_room();
        if !goes || HEADER + span.len > link.pair.inline() {
            return Ok(false);
        }
        send_short(link, peer, self.groups.at(slot), lane, tag, span)?;
        Ok(true)
    }

    /// Posts a put or a get that fits in one request, if nothing is before it and it goes: whether it did.
    #[inline]
    pub(super) fn access_at_once(
        &mut self,
        peer: usize,
        (slot, member): (Slot, Rank),
        kind: AccessKind,
        local: Span,
        remote: usize,
    ) -> Result<bool> {
        let max = self.endpoint.choice.port.max_message as usize;
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(false) };
        let group = self.groups.at_mut(slot);
        let partner = &mut group.members[member.index()];
        let Key::Known { address, key } = partner.key else { return Ok(false) };
        if !state.out.is_empty() || !link.has_room() || local.len > max {
            return Ok(false);
        }
        partner.accesses += 1;
        group.used += 1;
        state.open += 1;
        let (from, to) = (group.segment.piece(local.offset, local.len), address + remote as u64);
        access(link, peer, kind, Done::Access { slot, member: member.0 }, from, (to, key))?;
        Ok(true)
    }

    /// Posts work at once if nothing is before it and it goes, else lets it wait for its turn.
    #[inline]
    pub(super) fn submit(&mut self, peer: usize, mut work: Work) -> Result<()> {
        let max = self.endpoint.choice.port.max_message as usize;
        let state = &mut self.peers[peer];
        if let Route::Linked(link) = &mut state.route
            && state.out.is_empty()
            && link.has_room()
        {
            let mut poster = Poster { peer, link, groups: &mut self.groups, open: &mut state.open, max };
            if let Step::Posted = poster.post(&mut work)? {
                return poster.settle();
            }
        }
        state.out.push_back(work);
        self.pump(peer)
    }

    /// Posts as much as goes.
    pub(super) fn pump(&mut self, peer: usize) -> Result<()> {
        let max = self.endpoint.choice.port.max_message as usize;
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let mut poster = Poster { peer, link, groups: &mut self.groups, open: &mut state.open, max };
        while let Some(work) = state.out.front_mut() {
            if !poster.link.has_room() {
                break;
            }
            match poster.post(work)? {
                Step::Posted => drop(state.out.pop_front()),
                Step::Part => {}
                Step::Stuck => break,
            }
        }
        poster.settle()
    }

    /// Makes sure that the completion of everything posted to `peer` will be told.
    pub(super) fn say_farewell(&mut self, peer: usize) -> Result<()> {
        let state = &mut self.peers[peer];
        let Route::Linked(link) = &mut state.route else { return Ok(()) };
        let mut poster = Poster { peer, link, groups: &mut self.groups, open: &mut state.open, max: 0 };
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
fn send_short(link: &mut Link, peer: usize, group: &GroupState, lane: Lane, tag: Tag, span: Span) -> Result<()> {
    let (header, size) = header(group, lane, tag, span).encode(BUFFER);
    link.credits -= 1;
    let owed = link.take_owed();
    let (number, signalled) = link.begin(Done::Nothing, false);
    link.pair.send_inline(send_id(peer, number), signalled, owed, &header[..size], body(group, span, span.len))
}

/// Posts a put from `piece`, or a get into it; the last one of an operation completes it. There is a place for it.
#[inline]
fn access(
    link: &mut Link,
    peer: usize,
    kind: AccessKind,
    done: Done,
    piece: Piece,
    (to, key): (u64, u32),
) -> Result<()> {
    // A get is waited for soon; a put completes with the fence behind it.
    let (number, signalled) = link.begin(done, kind == AccessKind::Get && done != Done::Nothing);
    let id = send_id(peer, number);
    match kind {
        AccessKind::Get => link.pair.read(id, signalled, piece, to, key),
        AccessKind::Put => link.pair.write(id, signalled, piece, to, key),
    }
}

#[inline]
fn header(group: &GroupState, lane: Lane, tag: Tag, span: Span) -> Header {
    let message = Message::Send { lane, tag };
    Header { message, from: group.rank, group: group.id, length: span.len as u64 }
}

/// The first `len` bytes of a message's payload.
#[inline]
fn body(group: &GroupState, span: Span, len: usize) -> Option<Piece> {
    (len > 0).then(|| group.segment.piece(span.offset, len))
}

/// A link and what its work refers to.
struct Poster<'a> {
    peer: usize,
    link: &'a mut Link,
    groups: &'a mut Groups,
    open: &'a mut usize,
    /// The longest message of the port's.
    max: usize,
}

impl Poster<'_> {
    fn post(&mut self, work: &mut Work) -> Result<Step> {
        match work {
            Work::Send { .. } | Work::Say(_) if self.link.credits == 0 => Ok(Step::Stuck),
            Work::Send { at, begun, .. } if *at > 0 || *begun => self.send_more(work),
            Work::Send { .. } => self.send_first(work),
            Work::Say(header) => {
                self.link.credits -= 1;
                self.say(header).map(|()| Step::Posted)
            }
            Work::Access { .. } => self.access(work),
            Work::Fence { slot, member } => {
                let (slot, member) = (*slot, *member);
                let (address, key) = self.key(slot, member);
                let (number, _) = self.link.begin(Done::Access { slot, member }, true);
                self.link.pair.read(send_id(self.peer, number), true, self.link.landing(), address, key)?;
                Ok(Step::Posted)
            }
        }
    }

    /// The first buffer of a message, with its header.
    #[inline]
    fn send_first(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Send { slot, lane, tag, span, at, begun } = work else { return Ok(Step::Posted) };
        let (slot, lane, span) = (*slot, *lane, *span);
        let group = self.groups.at(slot);
        if HEADER + span.len <= self.link.pair.inline() {
            send_short(self.link, self.peer, group, lane, *tag, span)?;
            *self.open -= 1;
            self.groups.at_mut(slot).pending[lane as usize] -= 1;
            self.groups.unuse(slot, 1);
            return Ok(Step::Posted);
        }
        let (header, size) = header(group, lane, *tag, span).encode(BUFFER);
        self.link.credits -= 1;
        let owed = self.link.take_owed();
        let len = span.len.min(BUFFER - size);
        let last = len == span.len;
        let (number, signalled) = self.link.begin(if last { Done::Send { slot, lane } } else { Done::Nothing }, last);
        let head = self.link.stage(number, &header[..size]);
        self.link.pair.send(send_id(self.peer, number), signalled, owed, Some(head), body(group, span, len))?;
        (*at, *begun) = (len, true);
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// The next buffer of a message: payload alone.
    fn send_more(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Send { slot, lane, span, at, .. } = work else { return Ok(Step::Posted) };
        let len = (span.len - *at).min(BUFFER);
        let last = *at + len == span.len;
        let piece = self.groups.at(*slot).segment.piece(span.offset + *at, len);
        self.link.credits -= 1;
        let done = if last { Done::Send { slot: *slot, lane: *lane } } else { Done::Nothing };
        let (number, signalled) = self.link.begin(done, last);
        let owed = self.link.take_owed();
        self.link.pair.send(send_id(self.peer, number), signalled, owed, Some(piece), None)?;
        *at += len;
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// A put or a get, or the next part of one that is longer than the port's messages may be.
    fn access(&mut self, work: &mut Work) -> Result<Step> {
        let Work::Access { kind, slot, member, local, remote, at } = work else { return Ok(Step::Posted) };
        let (address, key) = self.key(*slot, *member);
        let len = (local.len - *at).min(self.max);
        let last = *at + len == local.len;
        let piece = self.piece(*slot, Span::new(local.offset + *at, len));
        let to = address + (*remote + *at) as u64;
        let done = if last { Done::Access { slot: *slot, member: *member } } else { Done::Nothing };
        access(self.link, self.peer, *kind, done, piece, (to, key))?;
        *at += len;
        Ok(if last { Step::Posted } else { Step::Part })
    }

    /// Tells of freed buffers, if there are many that no message told of.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        if self.link.owes_much() && self.link.has_room() { self.credit(false) } else { Ok(()) }
    }

    /// Tells of freed buffers, and of nothing else.
    fn credit(&mut self, signalled: bool) -> Result<()> {
        let owed = self.link.take_owed();
        let (number, signalled) = self.link.begin(Done::Nothing, signalled);
        self.link.pair.send(send_id(self.peer, number), signalled, owed, None, None)
    }

    fn say(&mut self, header: &Header) -> Result<()> {
        let ((bytes, size), owed) = (header.encode(BUFFER), self.link.take_owed());
        let (number, signalled) = self.link.begin(Done::Nothing, false);
        let id = send_id(self.peer, number);
        if size <= self.link.pair.inline() {
            return self.link.pair.send_inline(id, signalled, owed, &bytes[..size], None);
        }
        let head = self.link.stage(number, &bytes[..size]);
        self.link.pair.send(id, signalled, owed, Some(head), None)
    }

    fn piece(&self, slot: Slot, span: Span) -> Piece {
        self.groups.at(slot).segment.piece(span.offset, span.len)
    }

    /// Where the member's segment is: work that needs it waits elsewhere until it is known.
    fn key(&self, slot: Slot, member: u32) -> (u64, u32) {
        match self.groups.at(slot).members[member as usize].key {
            Key::Known { address, key } => (address, key),
            _ => unreachable!("work is queued once the key is known"),
        }
    }
}
