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
//! - A refused call ([`Error::Usage`](tailback_transport::Error::Usage)) changes nothing.
//!
//! Background operations advance in their own polls and waits only. A member that waits for one must therefore not
//! withhold data that another member waits for.

mod allreduce;
mod dissemination;
mod group;
mod scratch;

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use tailback_transport::{Capabilities, Description, Operation, Rank, Result, Support, Transport};

use crate::Engine;

pub use group::CollectiveGroup;

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

    /// The engine under it.
    pub fn engine(&self) -> Ref<'_, E> {
        self.engine.borrow()
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
