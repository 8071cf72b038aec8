//! Rendezvous protocols for two-sided messages, written once over [`RawGroup`](crate::RawGroup): between a raw backend
//! and its collectives, so that put and get can be told apart on every network.
//!
//! A message above the eager threshold is announced, and its bytes then move one-sidedly:
//! - put: sender RTS, receiver CTS (where to), sender put, sender FIN once the put is visible;
//! - get: sender RTS (where from), receiver get, receiver FIN once the bytes are here.
//!
//! Invariants:
//! - Both sides know the length, so both know without asking whether a message is announced. The RTS is a message of
//!   the kernel's own lane and tag: announced and eager messages of one tag keep their order. It carries the length,
//!   which the receiver compares.
//! - The RTS arrives in the memory of its own receive, so receives never wait for room. Any number of messages may be
//!   announced: what a sender needs per peer is a window of places that RTSs leave from, each free again as soon as they
//!   have left, and a window of places that answers arrive in, each free again as soon as it was read. An answer says
//!   which message it is about. So a receiver may take the last message first. While there is no place, further
//!   messages to that peer queue in order, whatever their length. CTS and FIN always find room or find it again
//!   without the user's help.
//! - Nothing blocks in here. A call that waits, in any group, goes on with the rendezvous of every group.
//! - Once warm, a message allocates nothing. With [`Protocol::Eager`] every call is the raw group's after one branch.
//!
//! Messages to oneself, and those too short to hold an RTS ([`SHORTEST`]), are always eager.

mod group;
mod machine;
mod protocol;
mod registry;
mod rules;
mod sending;
mod slots;

use std::cell::RefCell;
use std::rc::Rc;

use tailback_transport::{Bytes, Capabilities, Description, Operation, Rank, Result, Support};

use crate::RawTransport;
use machine::Machine;
use registry::Registry;
use rules::Rules;

pub use group::RendezvousGroup;
pub use protocol::Protocol;
pub use slots::SHORTEST;

/// The eager threshold of put and get when the user names none: below the 4 KiB of GPCNeT's congestors, so that choosing a
/// protocol changes them, and above what latencies are measured with.
pub const DEFAULT_THRESHOLD: Bytes = Bytes(1024);

/// A raw transport whose long messages follow a protocol.
#[derive(Debug)]
pub struct Rendezvous<T: RawTransport> {
    raw: T,
    protocol: Protocol,
    threshold: Bytes,
    registry: Rc<Registry<T::Group>>,
}

impl<T: RawTransport> Rendezvous<T> {
    /// Sends messages of at most `threshold` bytes eagerly over `raw`, longer ones by `protocol`. Every rank of the job
    /// has to pass the same two. [`Protocol::Eager`] has no threshold.
    pub fn new(raw: T, protocol: Protocol, threshold: Bytes) -> Self {
        Rendezvous { raw, protocol, threshold, registry: Rc::default() }
    }

    /// `raw` without a protocol of its own.
    pub fn eager(raw: T) -> Self {
        Self::new(raw, Protocol::Eager, DEFAULT_THRESHOLD)
    }

    /// Why `raw` cannot do what the protocol needs.
    fn refusal(&self) -> Option<String> {
        let needed = self.protocol.moves_by()?;
        match self.raw.capabilities().of(needed) {
            Support::Yes => None,
            Support::No(reason) => Some(format!("the {} protocol needs {needed}: {reason}", self.protocol)),
        }
    }
}

impl<T: RawTransport> RawTransport for Rendezvous<T> {
    type Group = RendezvousGroup<T::Group>;

    fn capabilities(&self) -> Capabilities {
        let raw = self.raw.capabilities();
        match self.refusal() {
            None => raw,
            Some(reason) => raw.without(Operation::TwoSided, reason),
        }
    }

    fn describe(&self) -> Description {
        let mut description = self.raw.describe();
        description.details.insert("protocol".into(), self.protocol.to_string());
        if self.protocol.moves_by().is_some() {
            description.details.insert("eager threshold".into(), self.threshold.to_string());
        }
        description
    }

    fn group(&mut self, members: &[Rank], segment: usize) -> Result<Self::Group> {
        let threshold = usize::try_from(self.threshold.0).unwrap_or(usize::MAX);
        let rules = Rules::new(self.protocol, threshold, self.refusal()).within(segment);
        let slots = rules.slots(segment, members.len());
        let raw = self.raw.group(members, slots.end())?;
        let machine = Machine::new(raw, members, rules, slots, self.registry.open());
        let machine = Rc::new(RefCell::new(machine));
        self.registry.add(&machine);
        Ok(RendezvousGroup::new(machine, Rc::clone(&self.registry)))
    }
}
