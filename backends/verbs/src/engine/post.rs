//! The operations of a group: what they queue, and how they wait.

use std::collections::HashSet;

use tailback_transport::{Error, Idle, Lane, Rank, Result, Span, Tag};

use super::Engine;
use super::arrive::wrong_length;
use super::groups::{Key, Slot};
use super::peer::{AccessKind, Route, Work};
use crate::ffi::{Access, Memory};
use crate::wire::{Header, Message, POSITIONS};

/// Calls with nothing to wait for serve peers once in so many.
const GLANCE_EVERY: u32 = 16;

impl Engine {
    /// Makes a group and serves what arrived for it before.
    pub(crate) fn make_group(&mut self, ranks: &[Rank], segment: usize) -> Result<Slot> {
        self.operation = "group";
        if ranks.len() > POSITIONS {
            return Err(self.usage(format!("a group has at most {POSITIONS} members")));
        }
        let distinct: HashSet<Rank> = ranks.iter().copied().collect();
        if distinct.len() != ranks.len() || ranks.iter().any(|rank| rank.index() >= self.peers.len()) {
            return Err(self.usage("members are distinct ranks of the job"));
        }
        let Some(rank) = ranks.iter().position(|&rank| rank == self.me) else {
            return Err(self.usage("this rank is not among the members"));
        };
        let memory = Memory::new(&self.endpoint.domain, segment, Access::Peers)?;
        let id = self.groups.next_id(ranks);
        let (slot, early) = self.groups.make(id, rank, ranks, memory);
        early.into_iter().try_for_each(|early| self.replay(early))?;
        Ok(slot)
    }

    /// Ends a group: what it had open is forgotten, what still arrives for it is discarded.
    pub(crate) fn drop_group(&mut self, slot: Slot) {
        let group = self.groups.at_mut(slot);
        let mut unused = 0;
        for (rank, member) in group.ranks.iter().zip(&mut group.members) {
            if *rank == self.me {
                continue;
            }
            let open = &mut self.peers[rank.index()].open;
            *open -= member.receives();
            // Only what waits for an answer: work that is queued already still needs to know where to go.
            if let Key::Asked(work) = &mut member.key {
                unused += work.len();
                *open -= work.len();
                work.clear();
            }
        }
        self.groups.unuse(slot, unused);
        self.groups.drop_group(slot);
    }

    /// This rank's position in the group, and the group's size.
    pub(crate) fn shape(&self, slot: Slot) -> (Rank, usize) {
        let group = self.groups.at(slot);
        (Rank(group.rank), group.ranks.len())
    }

    pub(crate) fn segment(&self, slot: Slot) -> &Memory {
        &self.groups.at(slot).segment
    }

    pub(crate) fn segment_mut(&mut self, slot: Slot) -> &mut Memory {
        &mut self.groups.at_mut(slot).segment
    }

    /// Queues a message and posts as much of it as goes.
    #[inline]
    pub(crate) fn post_send(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.operation = "send";
        let peer = self.check(slot, to, span)?;
        if peer == self.me.index() {
            return self.send_to_self(slot, lane, to, tag, span);
        }
        if self.send_at_once(peer, slot, lane, tag, span)? {
            return Ok(());
        }
        self.reach(peer)?;
        let group = self.groups.at_mut(slot);
        group.pending[lane as usize] += 1;
        group.used += 1;
        self.peers[peer].open += 1;
        self.submit(peer, Work::Send { slot, lane, tag, span, at: 0, begun: false })
    }

    /// Receives a message that is there already, or lets the receive wait for it.
    #[inline]
    pub(crate) fn post_recv(&mut self, slot: Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.operation = "recv";
        let peer = self.check(slot, from, span)?;
        let group = self.groups.at_mut(slot);
        if let Some(data) = group.members[from.index()].take_unexpected(lane, tag) {
            if data.len() != span.len {
                return Err(self.protocol(peer, wrong_length(data.len(), span.len)));
            }
            group.segment.write(span.offset, &data);
            self.recycle(data);
            return Ok(());
        }
        if peer != self.me.index() {
            if matches!(self.peers[peer].route, Route::Lost(_)) {
                return Err(self.lost(peer));
            }
            self.peers[peer].open += 1;
        }
        group.members[from.index()].post(lane, tag, span);
        group.pending[lane as usize] += 1;
        Ok(())
    }

    /// Waits until everything posted on `lane` is complete.
    #[inline]
    pub(crate) fn wait(&mut self, slot: Slot, lane: Lane) -> Result<()> {
        self.operation = "wait";
        if self.is_complete(slot, lane) {
            return self.glance();
        }
        while !self.is_complete(slot, lane) {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Whether everything posted on `lane` is complete.
    #[inline]
    pub(crate) fn is_complete(&self, slot: Slot, lane: Lane) -> bool {
        self.groups.at(slot).pending[lane as usize] == 0
    }

    /// Queues an RDMA write.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.operation = "put";
        let peer = self.check(slot, to, local)?;
        self.check(slot, to, Span::new(remote, local.len))?;
        if peer == self.me.index() {
            self.groups.at_mut(slot).segment.copy_within(local.offset, remote, local.len);
            return Ok(());
        }
        self.access(peer, (slot, to), AccessKind::Put, local, remote)?;
        self.groups.at_mut(slot).members[to.index()].unfenced |= local.len > 0;
        Ok(())
    }

    /// Queues an RDMA read.
    #[inline]
    pub(crate) fn get(&mut self, slot: Slot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.operation = "get";
        let peer = self.check(slot, from, local)?;
        self.check(slot, from, Span::new(remote, local.len))?;
        if peer == self.me.index() {
            self.groups.at_mut(slot).segment.copy_within(remote, local.offset, local.len);
            return Ok(());
        }
        self.access(peer, (slot, from), AccessKind::Get, local, remote)
    }

    /// Queues a put or a get.
    #[inline]
    fn access(
        &mut self,
        peer: usize,
        (slot, member): (Slot, Rank),
        kind: AccessKind,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        if local.len > 0 && self.access_at_once(peer, (slot, member), kind, local, remote)? {
            return Ok(());
        }
        self.reach(peer)?;
        if local.len == 0 {
            return Ok(());
        }
        let work = Work::Access { kind, slot, member: member.0, local, remote, at: 0 };
        self.queue(peer, slot, member, work)
    }

    /// Waits until the puts to `to` are in its segment and the gets from it have arrived.
    #[inline]
    pub(crate) fn flush(&mut self, slot: Slot, to: Rank) -> Result<()> {
        if self.is_flushed(slot, to)? {
            return self.glance();
        }
        // The fence is on its way, and a peer that is lost makes progress fail.
        while self.groups.at(slot).members[to.index()].accesses > 0 {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Whether they are; sends a fence after puts.
    #[inline]
    pub(crate) fn is_flushed(&mut self, slot: Slot, to: Rank) -> Result<bool> {
        self.operation = "flush";
        let peer = self.check(slot, to, Span::default())?;
        let member = &mut self.groups.at_mut(slot).members[to.index()];
        if std::mem::take(&mut member.unfenced) {
            self.queue(peer, slot, to, Work::Fence { slot, member: to.0 })?;
        }
        if matches!(self.peers[peer].route, Route::Lost(_)) && self.peers[peer].open > 0 {
            return Err(self.lost(peer));
        }
        Ok(self.groups.at(slot).members[to.index()].accesses == 0)
    }

    /// Queues work on a member's segment, once it is known where that is.
    fn queue(&mut self, peer: usize, slot: Slot, member: Rank, work: Work) -> Result<()> {
        let group = self.groups.at_mut(slot);
        let (id, rank) = (group.id, group.rank);
        group.used += 1;
        let state = &mut self.peers[peer];
        state.open += 1;
        let member = &mut group.members[member.index()];
        member.accesses += 1;
        match &mut member.key {
            Key::Known { .. } => self.submit(peer, work),
            Key::Asked(waiting) => {
                waiting.push(work);
                Ok(())
            }
            Key::Unknown => {
                member.key = Key::Asked(vec![work]);
                let request = Header { message: Message::KeyRequest, from: rank, group: id, length: 0 };
                self.submit(peer, Work::Say(request))
            }
        }
    }

    /// The rounds of a call that had nothing to wait for: peers are served now and then all the same.
    fn glance(&mut self) -> Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(GLANCE_EVERY) {
            return self.progress(Idle::Return);
        }
        Ok(())
    }

    /// The member's rank in the job, if it and the span exist.
    #[inline]
    fn check(&self, slot: Slot, member: Rank, span: Span) -> Result<usize> {
        let group = self.groups.at(slot);
        let size = group.segment.len();
        match group.ranks.get(member.index()) {
            Some(rank) if span.len <= size && span.offset <= size - span.len => Ok(rank.index()),
            _ => Err(self.refused(slot, member, span)),
        }
    }

    /// Why [`Engine::check`] says no.
    #[cold]
    fn refused(&self, slot: Slot, member: Rank, span: Span) -> Error {
        let group = self.groups.at(slot);
        if member.index() >= group.ranks.len() {
            return self.usage(format!("no member {member} in a group of {}", group.ranks.len()));
        }
        let (offset, len, size) = (span.offset, span.len, group.segment.len());
        self.usage(format!("{len} bytes from {offset} are not in a segment of {size}"))
    }

    fn send_to_self(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        let me = self.me.index();
        let group = self.groups.at_mut(slot);
        match group.members[to.index()].take_posted(lane, tag) {
            Some(posted) if posted.len == span.len => {
                group.segment.copy_within(span.offset, posted.offset, span.len);
                group.pending[lane as usize] -= 1;
                Ok(())
            }
            Some(posted) => Err(self.protocol(me, wrong_length(span.len, posted.len))),
            None => {
                let mut data = self.spare.pop().unwrap_or_default();
                data.resize(span.len, 0);
                group.segment.read(span.offset, &mut data);
                group.members[to.index()].keep(lane, tag, data);
                Ok(())
            }
        }
    }
}
