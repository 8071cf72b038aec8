//! Barrier, allreduce and agreement, written once over [`RawGroup`](crate::RawGroup): the same known algorithms on
//! every backend without collectives of its own.
//!
//! - Barriers and agreements: dissemination, ceil(log2 n) rounds.
//! - Allreduce: recursive doubling, with one step before and one after for sizes that are no power of two.
//!
//! Invariants:
//! - The raw segment is the user's segment followed by private scratch. Every span and offset of the user is checked
//!   against the user's length, so scratch is out of reach for this rank's user and for its peers' users.
//! - Each background activity has its lane, its scratch and its sequence of tags: none waits for another.
//! - No call of a group allocates once the group is made.
//! - A refused call ([`Error::Usage`](tailback_transport::Error::Usage)) changes nothing.
//!
//! Background operations advance in their own polls and waits only. A member that waits for one must therefore not
//! withhold data that another member waits for.

use tailback_transport::{Capabilities, Description, Operation, Rank, Result, Support, Transport};

mod allreduce;
mod dissemination;
mod group;
mod scratch;

use crate::RawTransport;

pub use group::CollectiveGroup;

/// A raw transport with collectives.
#[derive(Clone, Debug)]
pub struct Collective<T> {
    /// The transport under it.
    pub raw: T,
}

impl<T: RawTransport> Collective<T> {
    /// Adds collectives to `raw`.
    pub fn new(raw: T) -> Self {
        Collective { raw }
    }
}

impl<T: RawTransport> Transport for Collective<T> {
    type Group = CollectiveGroup<T::Group>;

    fn capabilities(&self) -> Capabilities {
        let raw = self.raw.capabilities();
        match raw.of(Operation::TwoSided) {
            Support::Yes => raw,
            Support::No(reason) => raw.without(Operation::Allreduce, format!("it is made of send/recv: {reason}")),
        }
    }

    fn describe(&self) -> Description {
        self.raw.describe()
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group> {
        CollectiveGroup::make(&mut self.raw, members, segment)
    }
}
