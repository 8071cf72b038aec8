//! A group's handle: every operation is the engine's.

use std::cell::RefCell;
use std::rc::Rc;

use tailback_transport::{Clock, Idle, Lane, Nanos, Rank, RawGroup, Result, Span, Tag};

use crate::engine::{Engine, Slot, number};

/// A group of ranks that talk over [`crate::LibfabricTransport`]. Dropping it ends its segment.
#[derive(Debug)]
pub struct LibfabricGroup {
    engine: Rc<RefCell<Engine>>,
    slot: Slot,
    clock: Clock,
    rank: Rank,
    size: usize,
}

impl LibfabricGroup {
    pub(crate) fn new(engine: Rc<RefCell<Engine>>, slot: Slot, clock: Clock) -> Self {
        let (rank, size) = engine.borrow().shape(slot);
        LibfabricGroup { engine, slot, clock, rank, size }
    }
}

impl Drop for LibfabricGroup {
    fn drop(&mut self) {
        // While a panic inside the engine unwinds, the engine is still borrowed, and goes away as a whole.
        if let Ok(mut engine) = self.engine.try_borrow_mut() {
            engine.drop_group(self.slot);
        }
    }
}

impl RawGroup for LibfabricGroup {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.engine.borrow().read(self.slot, offset, into);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        self.engine.borrow_mut().write(self.slot, offset, from);
    }

    #[inline]
    fn post_send(&mut self, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.engine.borrow_mut().post_send(self.slot, number(lane), to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.engine.borrow_mut().post_recv(self.slot, number(lane), from, tag, span)
    }

    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.borrow_mut().put(self.slot, to, local, remote)
    }

    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.borrow_mut().get(self.slot, from, local, remote)
    }

    #[inline]
    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.engine.borrow_mut().progress(idle)
    }

    #[inline]
    fn is_complete(&mut self, lane: Lane) -> Result<bool> {
        Ok(self.engine.borrow().is_complete(self.slot, number(lane)))
    }

    fn is_flushed(&mut self, peer: Rank) -> Result<bool> {
        self.engine.borrow_mut().is_flushed(self.slot, peer)
    }

    #[inline]
    fn wait(&mut self, lane: Lane) -> Result<()> {
        self.engine.borrow_mut().wait(self.slot, number(lane))
    }
}
