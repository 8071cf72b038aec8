//! [`RendezvousGroup`]: hands short messages and everything else to the raw group, long messages to the machine, and
//! keeps all machines going wherever a call waits.

use std::cell::RefCell;
use std::rc::Rc;

use tailback_host::Idle;
use tailback_transport::{Nanos, Rank, Result, Span, Tag};

use super::machine::Machine;
use super::registry::Registry;
use crate::{Lane, RawGroup};

/// A raw group whose long messages follow a protocol.
#[derive(Debug)]
pub struct RendezvousGroup<G> {
    machine: Rc<RefCell<Machine<G>>>,
    registry: Rc<Registry<G>>,
    rank: Rank,
    size: usize,
}

impl<G: RawGroup> RendezvousGroup<G> {
    pub(super) fn new(machine: Rc<RefCell<Machine<G>>>, registry: Rc<Registry<G>>) -> Self {
        let (rank, size) = {
            let machine = machine.borrow();
            (machine.raw.rank(), machine.raw.size())
        };
        RendezvousGroup { machine, registry, rank, size }
    }

    /// Makes progress until `done`. Whatever moved may have made more possible that no event will tell of, so it sleeps
    /// only after a turn in which nothing did.
    fn until(&mut self, mut done: impl FnMut(&mut Machine<G>) -> Result<bool>) -> Result<()> {
        let mut machine = self.machine.borrow_mut();
        loop {
            let moved = self.registry.advance(&mut machine)?;
            if done(&mut machine)? {
                return Ok(());
            }
            machine.raw.progress(if moved { Idle::Return } else { Idle::Wait })?;
        }
    }
}

impl<G: RawGroup> RawGroup for RendezvousGroup<G> {
    #[inline]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.machine.borrow().raw.now()
    }

    fn pause(&mut self, left: Nanos) -> Result<()> {
        self.machine.borrow_mut().raw.pause(left)
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.machine.borrow().raw.read(offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.machine.borrow_mut().raw.write(offset, from);
    }

    #[inline]
    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        let mut machine = self.machine.borrow_mut();
        if machine.sends_directly(lane, span.len) {
            return machine.raw.post_send(lane, to, tag, span);
        }
        machine.post_send(to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        let mut machine = self.machine.borrow_mut();
        if machine.receives_directly(lane, span.len) {
            return machine.raw.post_recv(lane, from, tag, span);
        }
        machine.post_recv(from, tag, span)
    }

    #[inline]
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.machine.borrow_mut().raw.put(to, local, remote)
    }

    #[inline]
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.machine.borrow_mut().raw.get(from, local, remote)
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        let mut machine = self.machine.borrow_mut();
        if !self.registry.is_busy() {
            return machine.raw.progress(idle);
        }
        let moved = self.registry.advance(&mut machine)?;
        machine.raw.progress(if moved { Idle::Return } else { idle })?;
        self.registry.advance(&mut machine).map(drop)
    }

    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        let mut machine = self.machine.borrow_mut();
        if lane == Lane::Data && !machine.is_eager() { machine.is_complete() } else { machine.raw.is_complete(lane) }
    }

    fn is_sent(&mut self, lane: Lane, to: Rank) -> Result<bool> {
        let mut machine = self.machine.borrow_mut();
        let raw = machine.raw.is_sent(lane, to)?;
        Ok(raw && (lane != Lane::Data || machine.under_way() == 0))
    }

    fn is_flushed(&mut self, peer: Rank) -> Result<bool> {
        self.machine.borrow_mut().raw.is_flushed(peer)
    }

    fn accesses(&self, peer: Rank) -> u64 {
        self.machine.borrow().raw.accesses(peer)
    }

    fn are_flushed(&mut self, peer: Rank, count: u64) -> Result<bool> {
        self.machine.borrow_mut().raw.are_flushed(peer, count)
    }

    #[inline]
    fn wait(&mut self, lane: Lane) -> Result<()> {
        if !self.registry.is_busy() {
            let mut machine = self.machine.borrow_mut();
            machine.raw.wait(lane)?;
            // The last FINs may still be on their way out, and the group may go as soon as this returns.
            return if lane == Lane::Data && !machine.is_eager() { machine.raw.wait(Lane::Protocol) } else { Ok(()) };
        }
        self.until(|machine| if lane == Lane::Data { machine.is_complete() } else { machine.raw.is_complete(lane) })
    }

    #[inline]
    fn test(&mut self, lane: Lane) -> Result<bool> {
        let mut machine = self.machine.borrow_mut();
        machine.raw.progress(Idle::Return)?;
        if self.registry.is_busy() {
            self.registry.advance(&mut machine)?;
        }
        if lane == Lane::Data && !machine.is_eager() { machine.is_complete() } else { machine.raw.is_complete(lane) }
    }

    #[inline]
    fn flush(&mut self, peer: Rank) -> Result<()> {
        if !self.registry.is_busy() {
            return self.machine.borrow_mut().raw.flush(peer);
        }
        self.until(|machine| machine.raw.is_flushed(peer))
    }
}
