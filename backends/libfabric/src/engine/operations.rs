//! What a group asks of the engine.

use tailback_engine::{Engine as Operations, Lane, Membership};
use tailback_host::Idle;
use tailback_transport::{Capabilities, Description, Nanos, Rank, Result, Span, Tag};

use super::Engine;
use super::groups::Slot;
use crate::ffi::Kind;

impl Operations for Engine {
    type Slot = Slot;

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<Slot>> {
        let slot = self.make(members, segment)?;
        Ok(Membership { slot, rank: self.groups.at(slot).rank, size: members.len() })
    }

    /// Operations under way keep its memory alive.
    fn drop_group(&mut self, slot: Slot) {
        self.groups.remove(slot);
        self.queues.forget(slot);
        self.endpoint.give_up(slot);
    }

    fn read(&self, slot: Slot, offset: usize, into: &mut [u8]) {
        self.groups.at(slot).check(offset, into.len());
        self.endpoint.read(slot, offset, into);
    }

    fn write(&mut self, slot: Slot, offset: usize, from: &[u8]) {
        self.groups.at(slot).check(offset, from.len());
        self.endpoint.write(slot, offset, from);
    }

    #[inline]
    fn post_send(&mut self, slot: Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.message(slot, Kind::Send, lane as u8, to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, slot: Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.message(slot, Kind::Recv, lane as u8, from, tag, span)
    }

    fn put(&mut self, slot: Slot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.one_sided(slot, Kind::Put, to, local, remote)
    }

    fn get(&mut self, slot: Slot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.one_sided(slot, Kind::Get, from, local, remote)
    }

    #[inline]
    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.advance(idle)
    }

    #[inline]
    fn is_complete(&mut self, slot: Slot, lane: Lane) -> Result<bool> {
        Ok(self.groups.at(slot).is_complete(lane as u8))
    }

    fn is_sent(&mut self, slot: Slot, lane: Lane, to: Rank) -> Result<bool> {
        Ok(self.groups.at(slot).members[to.index()].sending[lane as usize] == 0)
    }

    /// Asks the member where that takes a read.
    fn is_flushed(&mut self, slot: Slot, peer: Rank) -> Result<bool> {
        self.confirm(slot, peer)
    }

    fn completions(&self) -> Option<u64> {
        Some(self.groups.completions)
    }

    fn accesses(&self, slot: Slot, peer: Rank) -> u64 {
        self.groups.at(slot).members.get(peer.index()).map_or(0, |member| member.accesses)
    }

    /// One by one where the target's word comes with each put; where it has to be asked for, all together.
    fn are_flushed(&mut self, slot: Slot, peer: Rank, count: u64) -> Result<bool> {
        if !self.endpoint.delivers() {
            return self.confirm(slot, peer);
        }
        Ok(self.groups.at(slot).members.get(peer.index()).is_none_or(|member| member.over >= count))
    }

    #[inline]
    fn wait(&mut self, slot: Slot, lane: Lane) -> Result<()> {
        self.wait_for(slot, lane as u8)
    }
}
