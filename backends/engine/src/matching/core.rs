//! The operations of a group over a [`Wire`]: what they check, book and hand to the wire, and how they wait.

use std::fmt;

use tailback_host::{Clock, Idle};
use tailback_transport::{Description, Error, Nanos, Rank, Result, Span, Tag};

use super::arrival::wrong_length;
use super::groups::{Arrival, Early};
use super::ledger::{HELD_EACH, HELD_LIMIT, Ledger};
use super::marks::{Counts, of_home};
use super::rails::Rails;
use super::types::{GroupLookup, GroupMember, MessageRequest, Slot};
use super::wire::Wire;
use crate::Lane;
use crate::engine::{Engine, Membership, position};

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
    fn send(&mut self, peer: usize, request: MessageRequest) -> Result<()> {
        if request.lane == Lane::Data {
            let listens = self.unheard >= LISTEN_EVERY;
            if listens || self.ledger.is_stopped(peer) || !self.has_room(peer) {
                return self.send_patiently(peer, request);
            }
            self.unheard += request.span.len;
        }
        self.wire.send(&mut self.ledger, peer, request)
    }

    /// Posts a receive.
    #[inline]
    fn receive(&mut self, peer: usize, request: &MessageRequest) -> Result<()> {
        let MessageRequest { slot, member, lane, tag, span } = *request;
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
            self.ledger.begin_receive(peer, request);
            return Ok(());
        }
        if let Some(detail) = self.wire.loss(peer) {
            return Err(self.ledger.lost(peer, detail));
        }
        self.ledger.begin_receive(peer, request);
        self.wire.on_recv_posted(&mut self.ledger, peer)
    }

    /// A message of the kernel's that has to wait, or one before which this rank should listen.
    #[cold]
    fn send_patiently(&mut self, peer: usize, request: MessageRequest) -> Result<()> {
        if self.unheard >= LISTEN_EVERY {
            self.unheard = 0;
            self.wire.poll_peer(&mut self.ledger, peer)?;
        }
        if self.ledger.is_stopped(peer) || !self.has_room(peer) {
            if let Some(detail) = self.wire.loss(peer) {
                return Err(self.ledger.lost(peer, detail));
            }
            self.ledger.put_off(peer, request);
            return Ok(());
        }
        self.unheard += request.span.len;
        self.wire.send(&mut self.ledger, peer, request)
    }

    /// Says what is to be said, and hands on messages that waited; whether anything moved.
    #[cold]
    fn do_chores(&mut self) -> Result<bool> {
        let flow_control = self.ledger.take_flow_control();
        let mut moved = false;
        for (peer, control) in flow_control {
            // A lost peer sends nothing more, so nothing has to be said to it.
            if self.wire.loss(peer).is_none() {
                self.wire.send_flow_control(&mut self.ledger, peer, control)?;
            }
        }
        for at in 0..self.ledger.waiting() {
            let peer = self.ledger.waiting_at(at);
            while self.has_room(peer) {
                let Some(request) = self.ledger.take_off(peer) else { break };
                moved = true;
                let sent = self.wire.send(&mut self.ledger, peer, request);
                self.ledger.unlend(request.slot);
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

    fn poll_sometimes(&mut self) -> Result<()> {
        if self.ledger.chores {
            self.do_chores()?;
        }
        self.wire.poll_sometimes(&mut self.ledger)
    }

    fn send_to_self(&mut self, request: &MessageRequest) -> Result<()> {
        let MessageRequest { slot, member, lane, tag, span } = *request;
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
                self.wire.serve(&mut self.ledger, peer, GroupLookup::Here(slot), request, &data)?;
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

    fn add_words(&mut self, slot: Slot, left: Span, right: usize, into: usize) {
        self.ledger.groups.at_mut(slot).segment.add_words(left, right, into);
    }

    #[inline]
    fn post_send(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.ledger.operation = "send";
        let rank = self.check(slot, to, span)?;
        let request = MessageRequest { slot, member: to.0, lane, tag, span };
        if rank == self.ledger.me.index() {
            return self.send_to_self(&request);
        }
        if self.has_rails() {
            return self.over_rails(rank, span, |core, peer, span| core.send(peer, MessageRequest { span, ..request }));
        }
        self.send(rank, request)
    }

    #[inline]
    fn post_recv(&mut self, slot: Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.ledger.operation = "recv";
        let rank = self.check(slot, from, span)?;
        let request = MessageRequest { slot, member: from.0, lane, tag, span };
        if self.has_rails() {
            if rank == self.ledger.me.index() {
                return self.receive(self.myself(), &request);
            }
            return self
                .over_rails(rank, span, |core, peer, span| core.receive(peer, &MessageRequest { span, ..request }));
        }
        self.receive(rank, &request)
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
            return self.access_over_rails(GroupMember { slot, member: to }, rank, local, |core, peer, part| {
                core.wire.put(
                    &mut core.ledger,
                    peer,
                    GroupMember { slot, member: to },
                    part,
                    remote + (part.offset - local.offset),
                )
            });
        }
        self.wire.put(&mut self.ledger, rank, GroupMember { slot, member: to }, local, remote)
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
            return self.access_over_rails(GroupMember { slot, member: from }, rank, local, |core, peer, part| {
                core.wire.get(
                    &mut core.ledger,
                    peer,
                    GroupMember { slot, member: from },
                    part,
                    remote + (part.offset - local.offset),
                )
            });
        }
        self.wire.get(&mut self.ledger, rank, GroupMember { slot, member: from }, local, remote)
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
            return self.is_flushed_over_rails(GroupMember { slot, member }, rank);
        }
        self.is_completed(rank, GroupMember { slot, member })
    }

    fn completions(&self) -> Option<u64> {
        Some(self.ledger.completions)
    }

    fn accesses(&self, slot: Slot, member: Rank) -> u64 {
        let group = self.ledger.groups.at(slot);
        group.ranks.get(member.index()).map_or(0, |rank| {
            let seat = self.ledger.rails.peer(member.index(), self.home(rank.index()));
            W::accesses(&group.members[seat].remote)
        })
    }

    fn are_flushed(&mut self, slot: Slot, member: Rank, count: u64) -> Result<bool> {
        self.ledger.operation = "flush";
        let rank = self.check(slot, member, Span::default())?;
        if rank == self.ledger.me.index() {
            return Ok(true);
        }
        if self.has_rails() {
            return self.are_flushed_over_rails(GroupMember { slot, member }, rank, count);
        }
        self.are_completed(rank, GroupMember { slot, member }, count)
    }

    #[inline]
    fn wait(&mut self, slot: Slot, lane: Lane) -> Result<()> {
        self.ledger.operation = "wait";
        if self.has_completed(slot, lane) {
            return self.poll_sometimes();
        }
        while !self.has_completed(slot, lane) {
            self.make_progress(Idle::Wait)?;
        }
        Ok(())
    }

    #[inline]
    fn flush(&mut self, slot: Slot, member: Rank) -> Result<()> {
        if self.is_flushed(slot, member)? {
            return self.poll_sometimes();
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

impl<W: Wire> Core<W> {
    #[inline]
    fn has_rails(&self) -> bool {
        self.ledger.rails.count() > 1
    }

    /// The rail of what is short between this rank and another.
    #[inline]
    fn home(&self, rank: usize) -> usize {
        self.ledger.rails.home(self.ledger.me.index(), rank)
    }

    /// Does something to every part of a span, with the peer it goes to or comes from.
    fn over_rails(
        &mut self,
        rank: usize,
        span: Span,
        mut each: impl FnMut(&mut Self, usize, Span) -> Result<()>,
    ) -> Result<()> {
        let rails = self.ledger.rails;
        let mut taken = rails.taken(self.home(rank), span.len);
        taken.try_for_each(|rail| each(self, rails.peer(rank, rail), rails.part(rail, span)))
    }

    /// Likewise for a put or a get, which are counted on the home rail.
    fn access_over_rails(
        &mut self,
        GroupMember { slot, member }: GroupMember,
        rank: usize,
        local: Span,
        each: impl FnMut(&mut Self, usize, Span) -> Result<()>,
    ) -> Result<()> {
        self.over_rails(rank, local, each)?;
        let (rails, home) = (self.ledger.rails, self.home(rank));
        if rails.taken(home, local.len).len() > 1 {
            let members = &mut self.ledger.groups.at_mut(slot).members;
            let mut counts = Counts::default();
            for (rail, count) in counts.iter_mut().enumerate().take(rails.count()) {
                *count = W::accesses(&members[rails.peer(member.index(), rail)].remote);
            }
            members[rails.peer(member.index(), home)].marks.get_or_insert_default().add(counts);
        }
        Ok(())
    }
}

impl<W: Wire> Core<W> {
    /// Whether all puts and gets with the member over this peer's connection are over.
    #[inline]
    fn is_completed(&mut self, peer: usize, GroupMember { slot, member }: GroupMember) -> Result<bool> {
        self.wire.ask_flush(&mut self.ledger, peer, GroupMember { slot, member })?;
        let remote = self.remote(peer, GroupMember { slot, member });
        Ok(W::completed(remote) == W::accesses(remote))
    }

    /// Likewise of the first `count` of them: what was put since then is not asked for without need.
    fn are_completed(&mut self, peer: usize, GroupMember { slot, member }: GroupMember, count: u64) -> Result<bool> {
        if W::completed(self.remote(peer, GroupMember { slot, member })) >= count {
            return Ok(true);
        }
        self.wire.ask_flush(&mut self.ledger, peer, GroupMember { slot, member })?;
        Ok(W::completed(self.remote(peer, GroupMember { slot, member })) >= count)
    }

    #[inline]
    fn remote(&self, peer: usize, GroupMember { slot, member }: GroupMember) -> &W::RemoteSegment {
        let seat = self.ledger.rails.seat(member.0, peer);
        &self.ledger.groups.at(slot).members[seat].remote
    }

    /// Every rail is asked before one is waited for.
    fn is_flushed_over_rails(&mut self, GroupMember { slot, member }: GroupMember, rank: usize) -> Result<bool> {
        let (rails, home) = (self.ledger.rails, self.home(rank));
        let mut flushed = true;
        for rail in 0..rails.count() {
            flushed &= self.is_completed(rails.peer(rank, rail), GroupMember { slot, member })?;
        }
        if flushed {
            self.complete_marks(slot, rails.peer(member.index(), home), u64::MAX);
        }
        Ok(flushed)
    }

    /// Likewise.
    fn are_flushed_over_rails(
        &mut self,
        GroupMember { slot, member }: GroupMember,
        rank: usize,
        count: u64,
    ) -> Result<bool> {
        let (rails, home) = (self.ledger.rails, self.home(rank));
        let seat = rails.peer(member.index(), home);
        let marks = self.ledger.groups.at(slot).members[seat].marks.as_deref();
        let counts = marks.map_or_else(|| of_home(home, count), |marks| marks.of_first(home, count));
        let mut flushed = true;
        for (rail, &count) in counts.iter().enumerate().take(rails.count()).filter(|(_, count)| **count > 0) {
            flushed &= self.are_completed(rails.peer(rank, rail), GroupMember { slot, member }, count)?;
        }
        if flushed {
            self.complete_marks(slot, seat, count);
        }
        Ok(flushed)
    }

    fn complete_marks(&mut self, slot: Slot, seat: usize, count: u64) {
        let home = self.ledger.rails.rail(seat);
        if let Some(marks) = &mut self.ledger.groups.at_mut(slot).members[seat].marks {
            marks.are_completed(home, count);
        }
    }
}
