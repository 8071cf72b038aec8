//! Barrier, allreduce and agreement, written once over [`Engine`]: the same known algorithms on
//! every backend without collectives of its own.
//!
//! - Barriers and agreements: dissemination, ceil(log2 n) rounds.
//! - Allreduce: recursive doubling, with one step before and one after for sizes that are no power of two.
//!
//! Invariants:
//! - The engine's segment is the user's segment followed by private scratch. Every span and offset of the user is checked
//!   against the user's length, so scratch is out of reach for this rank's user and for its peers' users.
//! - Each background activity has its lane, its scratch and its sequence of tags: none waits for another.
//! - No call of a group allocates once the group is made.
//! - A refused call ([`Error::Usage`]) changes nothing.
//!
//! Background operations advance in their own polls and waits only. A member that waits for one must therefore not
//! withhold data that another member waits for.

mod allreduce;
mod dissemination;
mod scratch;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use tailback_host::Idle;
use tailback_transport::{
    Capabilities, Description, Error, Group, Nanos, Operation, Proposal, Rank, Result, Span, Support, Tag, Transport,
};

use self::allreduce::Allreduce;
use self::dissemination::Dissemination;
use self::scratch::{Scratch, Sequence};
use crate::{Engine, Lane, Membership};

/// An engine with collectives.
#[derive(Debug)]
pub struct Collective<E> {
    engine: Rc<RefCell<E>>,
}

impl<E: Engine> Collective<E> {
    /// Adds collectives to `engine`.
    pub fn new(engine: E) -> Self {
        Collective { engine: Rc::new(RefCell::new(engine)) }
    }
}

impl<E: Engine> Transport for Collective<E> {
    type Group = CollectiveGroup<E>;

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.engine.borrow().capabilities();
        match capabilities.of(Operation::TwoSided) {
            Support::Yes => capabilities,
            Support::No(reason) => {
                capabilities.without(Operation::Allreduce, format!("it is made of send/recv: {reason}"))
            }
        }
    }

    fn describe(&self) -> Description {
        self.engine.borrow().describe()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group> {
        CollectiveGroup::make(&self.engine, members, segment)
    }
}

/// A group of ranks that talk through an engine, with collectives. Dropping it ends its segment.
pub struct CollectiveGroup<E: Engine> {
    engine: Rc<RefCell<E>>,
    group: Membership<E::Slot>,
    /// Length of the user's part of the segment.
    user: usize,
    /// One sequence for all blocking collectives: every member calls them in the same order.
    blocking: Sequence,
    background_barriers: Sequence,
    agreements: Sequence,
    barrier: Dissemination,
    background_barrier: Dissemination,
    agreement: Dissemination,
    allreduce: Allreduce,
}

impl<E: Engine> CollectiveGroup<E> {
    /// Makes the engine's group with scratch behind the user's segment and waits until every member has.
    fn make(engine: &Rc<RefCell<E>>, members: &[Rank], segment: usize) -> Result<Self> {
        let scratch = Scratch::behind(segment);
        let group = engine.borrow_mut().make_group(members, scratch.end())?;
        let mut group = CollectiveGroup {
            engine: Rc::clone(engine),
            group,
            user: segment,
            blocking: Sequence::default(),
            background_barriers: Sequence::default(),
            agreements: Sequence::default(),
            barrier: Dissemination::bare(Lane::Collective),
            background_barrier: Dissemination::bare(Lane::Barrier),
            agreement: Dissemination::carrying(Lane::Agreement, scratch.outgoing(), scratch.incoming()),
            allreduce: Allreduce::new(group.rank.index(), group.size, scratch),
        };
        group.barrier()?;
        Ok(group)
    }

    #[inline]
    fn check(&self, operation: &'static str, peer: Rank, span: Span) -> Result<()> {
        if peer.index() >= self.group.size {
            return Err(no_member(operation, peer, self.group.size));
        }
        self.check_range(operation, span.offset, span.len)
    }

    #[inline]
    fn check_range(&self, operation: &'static str, offset: usize, len: usize) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.user => Ok(()),
            _ => Err(outside(operation, offset, len, self.user)),
        }
    }
}

impl<E: Engine> Group for CollectiveGroup<E> {
    fn rank(&self) -> Rank {
        self.group.rank
    }

    fn size(&self) -> usize {
        self.group.size
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.engine.borrow().now()
    }

    fn wait_until(&mut self, at: Nanos) -> Result<()> {
        let mut engine = self.engine.borrow_mut();
        loop {
            engine.progress(Idle::Return)?;
            let now = engine.now();
            if now.0 >= at.0 {
                return Ok(());
            }
            engine.pause(at.since(now))?;
        }
    }

    /// # Panics
    /// If the range is not in the segment.
    fn read(&self, offset: usize, into: &mut [u8]) {
        if let Err(error) = self.check_range("read", offset, into.len()) {
            panic!("{error}");
        }
        self.engine.borrow().read(self.group.slot, offset, into);
    }

    /// # Panics
    /// If the range is not in the segment.
    fn write(&mut self, offset: usize, from: &[u8]) {
        if let Err(error) = self.check_range("write", offset, from.len()) {
            panic!("{error}");
        }
        self.engine.borrow_mut().write(self.group.slot, offset, from);
    }

    /// # Panics
    /// If a range is not in the segment.
    fn add_words(&mut self, left: Span, right: usize, into: usize) {
        for offset in [left.offset, right, into] {
            if let Err(error) = self.check_range("add_words", offset, left.len) {
                panic!("{error}");
            }
        }
        self.engine.borrow_mut().add_words(self.group.slot, left, right, into);
    }

    #[inline]
    fn post_send(&mut self, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("send", to, span)?;
        self.engine.borrow_mut().post_send(self.group.slot, Lane::Data, to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.check("recv", from, span)?;
        self.engine.borrow_mut().post_recv(self.group.slot, Lane::Data, from, tag, span)
    }

    #[inline]
    fn wait_all(&mut self) -> Result<()> {
        self.engine.borrow_mut().wait(self.group.slot, Lane::Data)
    }

    #[inline]
    fn put(&mut self, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.check("put", to, local)?;
        self.check_range("put", remote, local.len)?;
        self.engine.borrow_mut().put(self.group.slot, to, local, remote)
    }

    #[inline]
    fn get(&mut self, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.check("get", from, local)?;
        self.check_range("get", remote, local.len)?;
        self.engine.borrow_mut().get(self.group.slot, from, local, remote)
    }

    #[inline]
    fn flush(&mut self, peer: Rank) -> Result<()> {
        self.check("flush", peer, Span::default())?;
        self.engine.borrow_mut().flush(self.group.slot, peer)
    }

    fn barrier(&mut self) -> Result<()> {
        self.barrier.start(&mut *self.engine.borrow_mut(), self.group, self.blocking.advance(), Proposal::default())?;
        self.barrier.wait(&mut *self.engine.borrow_mut(), self.group)?;
        Ok(())
    }

    fn allreduce(&mut self, values: Span) -> Result<()> {
        self.check_range("allreduce", values.offset, values.len)?;
        if !values.len.is_multiple_of(8) {
            return Err(usage("allreduce", format!("{} bytes are no whole number of doubles", values.len)));
        }
        self.allreduce.run(&mut *self.engine.borrow_mut(), self.group.slot, self.blocking.advance(), values)
    }

    fn start_barrier(&mut self) -> Result<()> {
        if self.background_barrier.is_under_way() {
            return Err(usage("start_barrier", "a barrier is under way already".into()));
        }
        self.background_barrier.start(
            &mut *self.engine.borrow_mut(),
            self.group,
            self.background_barriers.advance(),
            Proposal::default(),
        )
    }

    fn poll_barrier(&mut self) -> Result<bool> {
        if !self.background_barrier.is_under_way() {
            return Err(usage("poll_barrier", "no barrier is under way".into()));
        }
        Ok(self.background_barrier.poll(&mut *self.engine.borrow_mut(), self.group)?.is_some())
    }

    fn start_agreement(&mut self, mine: Proposal) -> Result<()> {
        if self.agreement.is_under_way() {
            return Err(usage("start_agreement", "an agreement is under way already".into()));
        }
        self.agreement.start(&mut *self.engine.borrow_mut(), self.group, self.agreements.advance(), mine)
    }

    fn poll_agreement(&mut self) -> Result<Option<Proposal>> {
        if !self.agreement.is_under_way() {
            return Err(usage("poll_agreement", "no agreement is under way".into()));
        }
        self.agreement.poll(&mut *self.engine.borrow_mut(), self.group)
    }

    fn wait_agreement(&mut self) -> Result<Proposal> {
        if !self.agreement.is_under_way() {
            return Err(usage("wait_agreement", "no agreement is under way".into()));
        }
        self.agreement.wait(&mut *self.engine.borrow_mut(), self.group)
    }
}

impl<E: Engine> Drop for CollectiveGroup<E> {
    fn drop(&mut self) {
        // While a panic inside the engine unwinds, the engine is still borrowed, and goes away as a whole.
        if let Ok(mut engine) = self.engine.try_borrow_mut() {
            engine.drop_group(self.group.slot);
        }
    }
}

impl<E: Engine> fmt::Debug for CollectiveGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectiveGroup").field("group", &self.group).finish_non_exhaustive()
    }
}

fn usage(operation: &'static str, detail: String) -> Error {
    Error::Usage { operation, detail }
}

#[cold]
fn no_member(operation: &'static str, peer: Rank, size: usize) -> Error {
    usage(operation, format!("there is no member {peer} in a group of {size}"))
}

#[cold]
fn outside(operation: &'static str, offset: usize, len: usize, user: usize) -> Error {
    usage(operation, format!("{len} bytes at offset {offset} are not inside the segment of {user} bytes"))
}
