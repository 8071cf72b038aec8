//! The operations of a group: what they queue, and how they wait.

use std::collections::HashSet;

use tailback_transport::{Idle, Lane, Rank, Result, Span, Tag};

use super::arrive::wrong_length;
use super::groups::{GroupState, Slot};
use super::peer::{Incoming, Route, Then};
use super::{Engine, write::SMALL};
use crate::wire::{HEADER, Header, MAX_LENGTH, Message};

/// Beyond this many copied bytes in a queue, even small payloads wait in their segment.
const COPY_LIMIT: usize = 256 * 1024;

impl Engine {
    /// Makes a group and serves what arrived for it before.
    pub fn make_group(&mut self, ranks: &[Rank], segment: usize) -> Result<Slot> {
        self.operation = "group";
        let distinct: HashSet<Rank> = ranks.iter().copied().collect();
        if distinct.len() != ranks.len() || ranks.iter().any(|r| r.index() >= self.peers.len()) {
            return Err(self.usage("members are distinct ranks of the job"));
        }
        let Some(rank) = ranks.iter().position(|&r| r == self.me) else {
            return Err(self.usage("this rank is not among the members"));
        };
        let (slot, early) = self.groups.make(rank as u32, ranks, segment);
        early.into_iter().try_for_each(|early| self.replay(early))?;
        let id = self.groups.at(slot).id;
        ranks.iter().try_for_each(|rank| self.reconsider(rank.index(), |header| header.group == id))?;
        Ok(slot)
    }

    /// Ends a group: what it had open is forgotten, what still arrives for it is discarded.
    pub fn drop_group(&mut self, slot: Slot) {
        let group = self.groups.at(slot);
        for (rank, member) in group.ranks.iter().zip(&group.members) {
            if *rank == self.me {
                continue;
            }
            let peer = &mut self.peers[rank.index()];
            let (messages, bytes) = member.waiting();
            peer.open -= member.open();
            peer.held -= messages * HEADER + bytes;
            let Route::Up(link) = &mut peer.route else { continue };
            let left = match &link.incoming {
                Incoming::Into { slot: s, left, then, .. } if *s == slot => {
                    peer.open -= usize::from(matches!(then, Then::Receive(_)));
                    *left
                }
                Incoming::Hold { header, filled, .. } if header.group == group.id => {
                    peer.held -= HEADER + header.payload();
                    header.payload() - filled
                }
                _ => continue,
            };
            link.incoming = if left == 0 { Incoming::Header } else { Incoming::Discard { left } };
        }
        self.groups.drop_group(slot);
    }

    /// The group in `slot`.
    pub fn group(&self, slot: Slot) -> &GroupState {
        self.groups.at(slot)
    }

    /// See [`Engine::group`].
    pub fn group_mut(&mut self, slot: Slot) -> &mut GroupState {
        self.groups.at_mut(slot)
    }

    /// Queues a message and writes as much of it as the kernel takes.
    pub fn post_send(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.operation = "send";
        let peer = self.check(slot, to, span)?;
        if peer == self.me.index() {
            return self.send_to_self(slot, lane, to, tag, span);
        }
        self.reach(peer)?;
        self.queue(slot, peer, Message::Send { lane, tag }, span);
        let state = &mut self.peers[peer];
        state.out.complete_with_last(slot, lane);
        state.open += 1;
        let group = self.groups.at_mut(slot);
        group.pending[lane as usize] += 1;
        self.pump(peer)
    }

    /// Receives a message that is there already, or lets the receive wait for it.
    pub fn post_recv(&mut self, slot: Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.operation = "recv";
        let peer = self.check(slot, from, span)?;
        let group = self.groups.at_mut(slot);
        if let Some(data) = group.members[from.index()].take_unexpected(lane, tag) {
            if data.len() != span.len {
                return Err(self.protocol(peer, wrong_length(data.len(), span.len)));
            }
            group.segment[span.offset..span.end()].copy_from_slice(&data);
            if peer != self.me.index() {
                self.peers[peer].held -= HEADER + data.len();
            }
            self.recycle(data);
            return Ok(());
        }
        group.members[from.index()].post(lane, tag, span);
        group.pending[lane as usize] += 1;
        if peer == self.me.index() {
            return Ok(());
        }
        self.peers[peer].open += 1;
        if matches!(self.peers[peer].route, Route::Lost(_)) {
            return Err(self.lost(peer));
        }
        let (id, message) = (group.id, Message::Send { lane, tag });
        self.reconsider(peer, |header| header.group == id && header.message == message)
    }

    /// Waits until everything posted on `lane` is complete.
    pub fn wait(&mut self, slot: Slot, lane: Lane) -> Result<()> {
        self.operation = "wait";
        if self.groups.at(slot).pending[lane as usize] == 0 {
            return self.glance();
        }
        while self.groups.at(slot).pending[lane as usize] > 0 {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Whether everything posted on `lane` is complete.
    pub fn is_complete(&self, slot: Slot, lane: Lane) -> bool {
        self.groups.at(slot).pending[lane as usize] == 0
    }

    /// Queues a put; a small one may wait for company until progress is made.
    pub fn put(&mut self, slot: Slot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.operation = "put";
        let peer = self.check(slot, to, local)?;
        self.check(slot, to, Span::new(remote, local.len))?;
        if peer == self.me.index() {
            self.groups.at_mut(slot).segment.copy_within(local.offset..local.end(), remote);
            return Ok(());
        }
        self.reach(peer)?;
        self.groups.at_mut(slot).members[to.index()].unflushed = true;
        self.queue(slot, peer, Message::Put { offset: remote as u64 }, local);
        if local.len <= SMALL { self.cork(peer) } else { self.pump(peer) }
    }

    /// Asks for bytes of a peer's segment.
    pub fn get(&mut self, slot: Slot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.operation = "get";
        let peer = self.check(slot, from, local)?;
        self.check(slot, from, Span::new(remote, local.len))?;
        if peer == self.me.index() {
            self.groups.at_mut(slot).segment.copy_within(remote..remote + local.len, local.offset);
            return Ok(());
        }
        self.reach(peer)?;
        let group = self.groups.at_mut(slot);
        let member = &mut group.members[from.index()];
        member.gets.push_back(local);
        member.gets_open += 1;
        self.peers[peer].open += 1;
        let message = Message::Get { offset: remote as u64 };
        let header = Header { message, from: group.rank, group: group.id, length: local.len as u64 };
        self.answer(peer, header)
    }

    /// Waits until the puts to `to` are in its segment and the gets from it have arrived.
    pub fn flush(&mut self, slot: Slot, to: Rank) -> Result<()> {
        if self.is_flushed(slot, to)? {
            return self.glance();
        }
        while !self.is_flushed(slot, to)? {
            self.progress(Idle::Wait)?;
        }
        Ok(())
    }

    /// Whether they are; asks the peer if nobody has since the last put.
    pub fn is_flushed(&mut self, slot: Slot, to: Rank) -> Result<bool> {
        self.operation = "flush";
        let peer = self.check(slot, to, Span::default())?;
        let group = self.groups.at_mut(slot);
        let member = &mut group.members[to.index()];
        if member.unflushed {
            member.unflushed = false;
            member.flushes += 1;
            let message = Message::Flush { counter: member.flushes };
            let header = Header { message, from: group.rank, group: group.id, length: 0 };
            self.peers[peer].open += 1;
            if matches!(self.peers[peer].route, Route::Lost(_)) {
                return Err(self.lost(peer));
            }
            self.answer(peer, header)?;
        }
        let member = &self.groups.at(slot).members[to.index()];
        Ok(member.gets_open == 0 && member.flushes == member.flushes_acked)
    }

    /// The member's rank in the job, if it and the span exist.
    fn check(&self, slot: Slot, member: Rank, span: Span) -> Result<usize> {
        let group = self.groups.at(slot);
        let Some(rank) = group.ranks.get(member.index()) else {
            return Err(self.usage(format!("no member {member} in a group of {}", group.ranks.len())));
        };
        let fits = span.offset.checked_add(span.len).is_some_and(|end| end <= group.segment.len());
        if !fits || span.len as u64 > MAX_LENGTH {
            let (offset, len, size) = (span.offset, span.len, group.segment.len());
            return Err(self.usage(format!("{len} bytes from {offset} are not in a segment of {size}")));
        }
        Ok(rank.index())
    }

    /// Makes sure that output for `peer` will go somewhere.
    fn reach(&mut self, peer: usize) -> Result<()> {
        match self.peers[peer].route {
            Route::Idle => {
                let open = &mut self.peers[peer].open;
                *open += 1;
                let connected = self.connect(peer);
                self.peers[peer].open -= 1;
                connected
            }
            Route::Lost(_) => Err(self.lost(peer)),
            _ => Ok(()),
        }
    }

    /// Queues a header and its payload: small ones as a copy, so that both leave in one slice.
    fn queue(&mut self, slot: Slot, peer: usize, message: Message, span: Span) {
        let group = self.groups.at_mut(slot);
        let header = Header { message, from: group.rank, group: group.id, length: span.len as u64 };
        let out = &mut self.peers[peer].out;
        out.stage(&header.encode());
        let ends_send = matches!(message, Message::Send { .. });
        if span.len <= SMALL && out.staged() < COPY_LIMIT {
            out.stage(&group.segment[span.offset..span.end()]);
            group.queued += usize::from(ends_send);
        } else if span.len > 0 {
            out.refer(slot, span.offset, span.len);
            group.queued += 1;
        } else {
            group.queued += usize::from(ends_send);
        }
    }

    fn send_to_self(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        let me = self.me.index();
        let group = self.groups.at_mut(slot);
        match group.members[to.index()].take_posted(lane, tag) {
            Some(posted) if posted.len == span.len => {
                group.segment.copy_within(span.offset..span.end(), posted.offset);
                group.pending[lane as usize] -= 1;
                Ok(())
            }
            Some(posted) => Err(self.protocol(me, wrong_length(span.len, posted.len))),
            None => {
                let mut data = self.spare.pop().unwrap_or_default();
                data.extend_from_slice(&group.segment[span.offset..span.end()]);
                group.members[to.index()].keep(lane, tag, data);
                Ok(())
            }
        }
    }
}
