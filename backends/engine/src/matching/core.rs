//! The operations of a group over a [`Wire`]: what they check, book and hand to the wire, and how they wait.

use std::fmt;

use tailback_host::{Clock, Idle};
use tailback_transport::{Description, Error, Nanos, Rank, Result, Span, Tag};

use super::arrive::wrong_length;
use super::groups::{Arrival, Early};
use super::kinds::{Found, Parcel, Slot};
use super::ledger::{HELD_EACH, HELD_LIMIT, Ledger};
use super::rails::Rails;
use super::wire::Wire;
use crate::Lane;
use crate::engine::{Engine, Membership, position};

mod flush;
mod striped;

/// A rank that posts this many bytes without looking for what arrives does so then: a peer may want it to pause.
const LISTEN_EVERY: usize = HELD_LIMIT;

/// Beyond this many bytes that wait to go to a peer, further messages wait in the ledger for their turn.
const QUEUE_LIMIT: usize = 256 * 1024;

/// One rank's engine over a wire.
pub struct Core<W: Wire> {
    ledger: Ledger<W>,
    wire: W,
    clock: Clock,
    description: Description,
    /// Bytes posted since this rank last looked for what arrives.
    unheard: usize,
}

impl<W: Wire> Core<W> {
    /// The engine of rank `me` in a job of `ranks`, over a wire with these rails, which `description` says the rest of.
    pub fn new(me: Rank, ranks: usize, rails: Rails, wire: W, mut description: Description) -> Self {
        rails.tell(&mut description);
        let (ledger, clock) = (Ledger::new(me, ranks, rails), Clock::start());
        Core { ledger, wire, clock, description, unheard: 0 }
    }

    /// Bytes of messages from `peer` that wait here for receives.
    #[must_use]
    pub fn held(&self, peer: Rank) -> usize {
        let rails = self.ledger.rails;
        (0..rails.count()).map(|rail| self.ledger.held(rails.peer(peer.index(), rail))).sum()
    }

    /// The wire, for reports.
    pub fn wire(&self) -> &W {
        &self.wire
    }

    /// The member's rank in the job, if it and the span exist.
    #[inline]
    fn check(&self, slot: Slot, member: Rank, span: Span) -> Result<usize> {
        let group = self.ledger.groups.at(slot);
        let size = group.segment.len();
        match group.ranks.get(member.index()) {
            Some(rank) if span.len <= size && span.offset <= size - span.len && span.len <= W::LONGEST => {
                Ok(rank.index())
            }
            _ => Err(self.refused(slot, member, span)),
        }
    }

    /// Why [`Core::check`] says no.
    #[cold]
    fn refused(&self, slot: Slot, member: Rank, span: Span) -> Error {
        let group = self.ledger.groups.at(slot);
        if member.index() >= group.ranks.len() {
            return self.ledger.usage(format!("no member {member} in a group of {}", group.ranks.len()));
        }
        let (offset, len, size) = (span.offset, span.len, group.segment.len());
        let most = if len > W::LONGEST { format!(", or more than {}", W::LONGEST) } else { String::new() };
        self.ledger.usage(format!("{len} bytes from {offset} are not in a segment of {size}{most}"))
    }

    /// Whether a message posted now would go soon.
    #[inline]
    fn has_room(&self, peer: usize) -> bool {
        self.wire.waiting(peer) < QUEUE_LIMIT
    }

    /// This rank, as a peer.
    #[inline]
    fn myself(&self) -> usize {
        self.ledger.rails.peer(self.ledger.me.index(), 0)
    }

    /// Posts a message to another rank.
    #[inline]
    fn send(&mut self, peer: usize, parcel: Parcel) -> Result<()> {
        if parcel.lane == Lane::Data {
            let listens = self.unheard >= LISTEN_EVERY;
            if listens || self.ledger.is_stopped(peer) || !self.has_room(peer) {
                return self.send_patiently(peer, parcel);
            }
            self.unheard += parcel.span.len;
        }
        self.wire.send(&mut self.ledger, peer, parcel)
    }

    /// Posts a receive.
    #[inline]
    fn receive(&mut self, peer: usize, parcel: &Parcel) -> Result<()> {
        let Parcel { slot, member, lane, tag, span } = *parcel;
        let seat = self.ledger.rails.seat(member, peer);
        let group = self.ledger.groups.at_mut(slot);
        if let Some(data) = group.members[seat].take_held(lane, tag) {
            if data.len() != span.len {
                return Err(self.ledger.protocol(peer, wrong_length(data.len(), span.len)));
            }
            group.segment.write(span.offset, &data);
            if !self.ledger.is_me(peer) {
                self.ledger.release(peer, HELD_EACH + data.len());
            }
            self.ledger.recycle(data);
            return Ok(());
        }
        if self.ledger.is_me(peer) {
            self.ledger.begin_receive(peer, slot, Rank(member), (lane, tag, span));
            return Ok(());
        }
        if let Some(detail) = self.wire.loss(peer) {
            return Err(self.ledger.lost(peer, detail));
        }
        self.ledger.begin_receive(peer, slot, Rank(member), (lane, tag, span));
        self.wire.wanted(&mut self.ledger, peer)
    }

    /// A message of the kernel's that has to wait, or one before which this rank should listen.
    #[cold]
    fn send_patiently(&mut self, peer: usize, parcel: Parcel) -> Result<()> {
        if self.unheard >= LISTEN_EVERY {
            self.unheard = 0;
            self.wire.listen(&mut self.ledger, peer)?;
        }
        if self.ledger.is_stopped(peer) || !self.has_room(peer) {
            if let Some(detail) = self.wire.loss(peer) {
                return Err(self.ledger.lost(peer, detail));
            }
            self.ledger.put_off(peer, parcel);
            return Ok(());
        }
        self.unheard += parcel.span.len;
        self.wire.send(&mut self.ledger, peer, parcel)
    }

    /// Says what is to be said, and hands on messages that waited; whether anything moved.
    #[cold]
    fn do_chores(&mut self) -> Result<bool> {
        let words = self.ledger.take_words();
        let mut moved = false;
        for (peer, word) in words {
            // A lost peer sends nothing more, so nothing has to be said to it.
            if self.wire.loss(peer).is_none() {
                self.wire.say(&mut self.ledger, peer, word)?;
            }
        }
        for at in 0..self.ledger.waiting() {
            let peer = self.ledger.waiting_at(at);
            while self.has_room(peer) {
                let Some(parcel) = self.ledger.take_off(peer) else { break };
                moved = true;
                let sent = self.wire.send(&mut self.ledger, peer, parcel);
                self.ledger.unlend(parcel.slot);
                sent?;
            }
        }
        // Those without room go on when there is some, which the wire's own progress makes.
        self.ledger.chores = self.ledger.tidy();
        Ok(moved)
    }

    #[inline]
    fn make_progress(&mut self, idle: Idle) -> Result<()> {
        self.unheard = 0;
        let moved = self.ledger.chores && self.do_chores()?;
        self.wire.progress(&mut self.ledger, if moved { Idle::Return } else { idle })
    }

    fn glance(&mut self) -> Result<()> {
        if self.ledger.chores {
            self.do_chores()?;
        }
        self.wire.glance(&mut self.ledger)
    }

    fn send_to_self(&mut self, parcel: &Parcel) -> Result<()> {
        let Parcel { slot, member, lane, tag, span } = *parcel;
        let seat = self.ledger.rails.peer(member as usize, 0);
        let group = self.ledger.groups.at_mut(slot);
        match group.members[seat].take_posted(lane, tag) {
            Some(posted) if posted.len == span.len => {
                group.segment.copy_within(span.offset, posted.offset, span.len);
                group.pending[lane as usize] -= 1;
                Ok(())
            }
            Some(posted) => Err(self.ledger.protocol(self.myself(), wrong_length(span.len, posted.len))),
            None => {
                let mut data = self.ledger.spare();
                data.resize(span.len, 0);
                let group = self.ledger.groups.at_mut(slot);
                group.segment.read(span.offset, &mut data);
                group.members[seat].keep(lane, tag, data);
                Ok(())
            }
        }
    }

    /// Serves what arrived before its group was made.
    fn replay(&mut self, slot: Slot, early: Early<W::Request>) -> Result<()> {
        let Early { peer, what, data } = early;
        match what {
            // No receive can be posted yet, so it goes on being held.
            Arrival::Message(envelope) => self.ledger.keep(peer, envelope, data),
            Arrival::Request(request) => {
                self.ledger.release(peer, HELD_EACH + data.len());
                self.wire.serve(&mut self.ledger, peer, Found::Here(slot), request, &data)?;
                self.ledger.recycle(data);
                Ok(())
            }
        }
    }

    #[inline]
    fn has_completed(&self, slot: Slot, lane: Lane) -> bool {
        self.ledger.groups.at(slot).pending[lane as usize] == 0
    }

    /// Both ends of a put or a get, if they exist.
    #[inline]
    fn check_access(&self, slot: Slot, member: Rank, local: Span, remote: usize) -> Result<usize> {
        self.check(slot, member, local)?;
        self.check(slot, member, Span::new(remote, local.len))
    }
}

impl<W: Wire> Engine for Core<W> {
    type Slot = Slot;

    fn describe(&self) -> Description {
        let mut description = self.description.clone();
        self.wire.describe(&mut description);
        description
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn make_group(&mut self, ranks: &[Rank], segment: usize) -> Result<Membership<Slot>> {
        self.ledger.operation = "group";
        let rank = position(self.ledger.me, self.ledger.ranks(), ranks)?;
        if ranks.len() > W::MEMBERS {
            return Err(self.ledger.usage(format!("a group has at most {} members", W::MEMBERS)));
        }
        let segment = self.wire.segment(segment)?;
        let slot = self.ledger.groups.make(rank, ranks, segment);
        let early = self.ledger.groups.take_early(slot);
        early.into_iter().try_for_each(|early| self.replay(slot, early))?;
        Ok(Membership { slot, rank: Rank::from(rank), size: ranks.len() })
    }

    fn drop_group(&mut self, slot: Slot) {
        self.ledger.forget_accesses(slot, W::forget);
        self.ledger.drop_group(slot);
    }

    #[inline]
    fn read(&self, slot: Slot, offset: usize, into: &mut [u8]) {
        self.ledger.groups.at(slot).segment.read(offset, into);
    }

    #[inline]
    fn write(&mut self, slot: Slot, offset: usize, from: &[u8]) {
        self.ledger.groups.at_mut(slot).segment.write(offset, from);
    }

    #[inline]
    fn post_send(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.ledger.operation = "send";
        let rank = self.check(slot, to, span)?;
        let parcel = Parcel { slot, member: to.0, lane, tag, span };
        if rank == self.ledger.me.index() {
            return self.send_to_self(&parcel);
        }
        if self.has_rails() {
            return self.over_rails(rank, span, |core, peer, span| core.send(peer, Parcel { span, ..parcel }));
        }
        self.send(rank, parcel)
    }

    #[inline]
    fn post_recv(&mut self, slot: Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.ledger.operation = "recv";
        let rank = self.check(slot, from, span)?;
        let parcel = Parcel { slot, member: from.0, lane, tag, span };
        if self.has_rails() {
            if rank == self.ledger.me.index() {
                return self.receive(self.myself(), &parcel);
            }
            return self.over_rails(rank, span, |core, peer, span| core.receive(peer, &Parcel { span, ..parcel }));
        }
        self.receive(rank, &parcel)
    }

    #[inline]
    fn put(&mut self, slot: Slot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.ledger.operation = "put";
        let rank = self.check_access(slot, to, local, remote)?;
        if rank == self.ledger.me.index() {
            self.ledger.groups.at_mut(slot).segment.copy_within(local.offset, remote, local.len);
            return Ok(());
        }
        if self.has_rails() {
            return self.access_over_rails((slot, to), rank, local, |core, peer, part| {
                core.wire.put(&mut core.ledger, peer, (slot, to), part, remote + (part.offset - local.offset))
            });
        }
        self.wire.put(&mut self.ledger, rank, (slot, to), local, remote)
    }

    #[inline]
    fn get(&mut self, slot: Slot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.ledger.operation = "get";
        let rank = self.check_access(slot, from, local, remote)?;
        if rank == self.ledger.me.index() {
            self.ledger.groups.at_mut(slot).segment.copy_within(remote, local.offset, local.len);
            return Ok(());
        }
        if self.has_rails() {
            return self.access_over_rails((slot, from), rank, local, |core, peer, part| {
                core.wire.get(&mut core.ledger, peer, (slot, from), part, remote + (part.offset - local.offset))
            });
        }
        self.wire.get(&mut self.ledger, rank, (slot, from), local, remote)
    }

    #[inline]
    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.make_progress(idle)
    }

    #[inline]
    fn is_complete(&mut self, slot: Slot, lane: Lane) -> Result<bool> {
        Ok(self.has_completed(slot, lane))
    }

    fn is_sent(&mut self, slot: Slot, lane: Lane, to: Rank) -> Result<bool> {
        let (rails, members) = (self.ledger.rails, &self.ledger.groups.at(slot).members);
        Ok((0..rails.count()).all(|rail| members[rails.peer(to.index(), rail)].sending[lane as usize] == 0))
    }

    #[inline]
    fn is_flushed(&mut self, slot: Slot, member: Rank) -> Result<bool> {
        self.ledger.operation = "flush";
        let rank = self.check(slot, member, Span::default())?;
        // Puts and gets on itself are over when they return.
        if rank == self.ledger.me.index() {
            return Ok(true);
        }
        if self.has_rails() {
            return self.is_flushed_over_rails((slot, member), rank);
        }
        self.is_over(rank, (slot, member))
    }

    fn completions(&self) -> Option<u64> {
        Some(self.ledger.completions)
    }

    fn accesses(&self, slot: Slot, member: Rank) -> u64 {
        let group = self.ledger.groups.at(slot);
        group.ranks.get(member.index()).map_or(0, |rank| {
            let seat = self.ledger.rails.peer(member.index(), self.home(rank.index()));
            W::accesses(&group.members[seat].far)
        })
    }

    fn are_flushed(&mut self, slot: Slot, member: Rank, count: u64) -> Result<bool> {
        self.ledger.operation = "flush";
        let rank = self.check(slot, member, Span::default())?;
        if rank == self.ledger.me.index() {
            return Ok(true);
        }
        if self.has_rails() {
            return self.are_flushed_over_rails((slot, member), rank, count);
        }
        self.are_over(rank, (slot, member), count)
    }

    #[inline]
    fn wait(&mut self, slot: Slot, lane: Lane) -> Result<()> {
        self.ledger.operation = "wait";
        if self.has_completed(slot, lane) {
            return self.glance();
        }
        while !self.has_completed(slot, lane) {
            self.make_progress(Idle::Wait)?;
        }
        Ok(())
    }

    #[inline]
    fn flush(&mut self, slot: Slot, member: Rank) -> Result<()> {
        if self.is_flushed(slot, member)? {
            return self.glance();
        }
        while !self.is_flushed(slot, member)? {
            self.make_progress(Idle::Wait)?;
        }
        Ok(())
    }
}

impl<W: Wire> Drop for Core<W> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ledger.close();
            self.wire.close(&mut self.ledger);
        }
    }
}

impl<W: Wire> fmt::Debug for Core<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}
