//! Rendezvous protocols for two-sided messages, written once: between a raw backend and its
//! collectives, so that put and get can be told apart on every network.
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
//! - Once warm, a message allocates nothing. With [`Protocol::Eager`] every call is the engine's after one branch.
//!
//! Messages to oneself, and those too short to hold an RTS ([`SHORTEST`]), are always eager.

mod machine;
mod protocol;
mod sending;
mod slots;

use std::fmt;

use tailback_host::Idle;
use tailback_transport::{Bytes, Capabilities, Description, Nanos, Operation, Rank, Result, Span, Support, Tag};

use crate::{Engine, Lane, Membership};
use machine::Machine;
use protocol::Rules;

pub use protocol::Protocol;
pub use slots::SHORTEST;

/// The eager threshold of put and get when the user names none: below the 4 KiB of GPCNeT's congestors, so that choosing a
/// protocol changes them, and above what latencies are measured with.
pub const DEFAULT_THRESHOLD: Bytes = Bytes(1024);

/// An engine whose long messages follow a protocol.
pub struct Rendezvous<E: Engine> {
    engine: E,
    protocol: Protocol,
    threshold: Bytes,
    /// Of the groups that announce messages, in the order in which they were made.
    machines: Vec<Option<Box<Machine<E>>>>,
    /// Messages under way in all groups. Nothing is walked while there are none.
    open: usize,
}

/// A group of [`Rendezvous`].
#[derive(Clone, Copy, Debug)]
pub struct RendezvousSlot<S> {
    slot: S,
    /// Its machine's index; none where every message is eager.
    machine: Option<u32>,
}

impl<E: Engine> Rendezvous<E> {
    /// Sends messages of at most `threshold` bytes eagerly over `engine`, longer ones by `protocol`. Every rank of the job
    /// has to pass the same two. [`Protocol::Eager`] has no threshold.
    pub fn new(engine: E, protocol: Protocol, threshold: Bytes) -> Self {
        Rendezvous { engine, protocol, threshold, machines: Vec::new(), open: 0 }
    }

    /// `engine` without a protocol of its own.
    pub fn eager(engine: E) -> Self {
        Self::new(engine, Protocol::Eager, DEFAULT_THRESHOLD)
    }

    /// Why the engine cannot do what the protocol needs.
    fn refusal(&self) -> Option<String> {
        let needed = self.protocol.moves_by()?;
        match self.engine.capabilities().of(needed) {
            Support::Yes => None,
            Support::No(reason) => Some(format!("the {} protocol needs {needed}: {reason}", self.protocol)),
        }
    }

    fn machine(&self, at: u32) -> &Machine<E> {
        self.machines[at as usize].as_deref().expect("a machine lives as long as its group")
    }

    /// Does something with a machine, and counts what it has under way since.
    fn with<R>(&mut self, at: u32, act: impl FnOnce(&mut Machine<E>, &mut E) -> Result<R>) -> Result<R> {
        let machine = self.machines[at as usize].as_deref_mut().expect("a machine lives as long as its group");
        let before = machine.under_way();
        let done = act(machine, &mut self.engine);
        self.open = self.open + machine.under_way() - before;
        done
    }

    /// Goes on with every message that can, those of group `own` first; says whether one did.
    fn advance(&mut self, own: Option<u32>) -> Result<bool> {
        let (mut moved, mut under_way) = (false, 0);
        if let Some(at) = own {
            moved = self.with(at, Machine::advance)?;
            under_way = self.machine(at).under_way();
        }
        if self.open == under_way {
            return Ok(moved);
        }
        for at in (0..self.machines.len() as u32).filter(|at| Some(*at) != own) {
            if self.machines[at as usize].is_some() {
                moved |= self.with(at, Machine::advance)?;
            }
        }
        Ok(moved)
    }

    /// Makes progress until `done`. Whatever moved may have made more possible that no event will tell of, so it sleeps
    /// only after a turn in which nothing did.
    fn until(&mut self, own: Option<u32>, mut done: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        loop {
            let moved = self.advance(own)?;
            if done(self)? {
                return Ok(());
            }
            self.engine.progress(if moved { Idle::Return } else { Idle::Wait })?;
        }
    }
}

impl<E: Engine> Engine for Rendezvous<E> {
    type Slot = RendezvousSlot<E::Slot>;

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.engine.capabilities();
        match self.refusal() {
            None => capabilities,
            Some(reason) => capabilities.without(Operation::TwoSided, reason),
        }
    }

    fn describe(&self) -> Description {
        let mut description = self.engine.describe();
        description.details.insert("protocol".into(), self.protocol.to_string());
        if self.protocol.moves_by().is_some() {
            description.details.insert("eager threshold".into(), self.threshold.to_string());
        }
        description
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.engine.now()
    }

    fn pause(&mut self, left: Nanos) -> Result<()> {
        self.engine.pause(left)
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<Self::Slot>> {
        let threshold = usize::try_from(self.threshold.0).unwrap_or(usize::MAX);
        let rules = Rules::new(self.protocol, threshold, self.refusal()).within(segment);
        let slots = rules.slots(segment, members.len());
        let group = self.engine.make_group(members, slots.end())?;
        let machine = (rules.protocol != Protocol::Eager).then(|| {
            let machine = Machine::new(&mut self.engine, group, members, rules, slots);
            self.machines.push(Some(Box::new(machine)));
            self.machines.len() as u32 - 1
        });
        Ok(Membership { slot: RendezvousSlot { slot: group.slot, machine }, rank: group.rank, size: group.size })
    }

    fn drop_group(&mut self, slot: Self::Slot) {
        if let Some(at) = slot.machine {
            self.open -= self.machine(at).under_way();
            self.machines[at as usize] = None;
            while self.machines.pop_if(|last| last.is_none()).is_some() {}
        }
        self.engine.drop_group(slot.slot);
    }

    fn read(&self, slot: Self::Slot, offset: usize, into: &mut [u8]) {
        self.engine.read(slot.slot, offset, into);
    }

    fn write(&mut self, slot: Self::Slot, offset: usize, from: &[u8]) {
        self.engine.write(slot.slot, offset, from);
    }

    fn add_words(&mut self, slot: Self::Slot, left: Span, right: usize, into: usize) {
        self.engine.add_words(slot.slot, left, right, into);
    }

    #[inline]
    fn post_send(&mut self, slot: Self::Slot, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        match slot.machine {
            Some(at) if lane == Lane::Data && !self.machine(at).sends_directly(span.len) => {
                self.with(at, |machine, engine| machine.post_send(engine, to, tag, span))
            }
            _ => self.engine.post_send(slot.slot, lane, to, tag, span),
        }
    }

    #[inline]
    fn post_recv(&mut self, slot: Self::Slot, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        match slot.machine {
            Some(at) if lane == Lane::Data && !self.machine(at).receives_directly(span.len) => {
                self.with(at, |machine, engine| machine.post_recv(engine, from, tag, span))
            }
            _ => self.engine.post_recv(slot.slot, lane, from, tag, span),
        }
    }

    #[inline]
    fn put(&mut self, slot: Self::Slot, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.put(slot.slot, to, local, remote)
    }

    #[inline]
    fn get(&mut self, slot: Self::Slot, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.engine.get(slot.slot, from, local, remote)
    }

    fn progress(&mut self, idle: Idle) -> Result<()> {
        if self.open == 0 {
            return self.engine.progress(idle);
        }
        let moved = self.advance(None)?;
        self.engine.progress(if moved { Idle::Return } else { idle })?;
        self.advance(None).map(drop)
    }

    fn is_complete(&mut self, slot: Self::Slot, lane: Lane) -> Result<bool> {
        match slot.machine {
            Some(at) if lane == Lane::Data => self.with(at, Machine::is_complete),
            _ => self.engine.is_complete(slot.slot, lane),
        }
    }

    fn is_sent(&mut self, slot: Self::Slot, lane: Lane, to: Rank) -> Result<bool> {
        let sent = self.engine.is_sent(slot.slot, lane, to)?;
        Ok(sent && (lane != Lane::Data || slot.machine.is_none_or(|at| self.machine(at).under_way() == 0)))
    }

    fn is_flushed(&mut self, slot: Self::Slot, peer: Rank) -> Result<bool> {
        self.engine.is_flushed(slot.slot, peer)
    }

    fn accesses(&self, slot: Self::Slot, peer: Rank) -> u64 {
        self.engine.accesses(slot.slot, peer)
    }

    fn are_flushed(&mut self, slot: Self::Slot, peer: Rank, count: u64) -> Result<bool> {
        self.engine.are_flushed(slot.slot, peer, count)
    }

    #[inline]
    fn wait(&mut self, slot: Self::Slot, lane: Lane) -> Result<()> {
        if self.open > 0 {
            return self.until(slot.machine, |all| all.is_complete(slot, lane));
        }
        self.engine.wait(slot.slot, lane)?;
        // The last FINs may still be on their way out, and the group may go as soon as this returns.
        let speaks = lane == Lane::Data && slot.machine.is_some();
        if speaks { self.engine.wait(slot.slot, Lane::Protocol) } else { Ok(()) }
    }

    #[inline]
    fn test(&mut self, slot: Self::Slot, lane: Lane) -> Result<bool> {
        self.engine.progress(Idle::Return)?;
        if self.open > 0 {
            self.advance(slot.machine)?;
        }
        self.is_complete(slot, lane)
    }

    #[inline]
    fn flush(&mut self, slot: Self::Slot, peer: Rank) -> Result<()> {
        if self.open > 0 {
            return self.until(slot.machine, |all| all.is_flushed(slot, peer));
        }
        self.engine.flush(slot.slot, peer)
    }
}

impl<E: Engine> fmt::Debug for Rendezvous<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (protocol, open) = (&self.protocol, &self.open);
        f.debug_struct("Rendezvous").field("protocol", protocol).field("open", open).finish_non_exhaustive()
    }
}
