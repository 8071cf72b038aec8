//! What passes between the engine and a wire.

use tailback_transport::{Rank, Span, Tag};

use crate::{Lane, Registration};

/// A group's index in [`Groups`](super::Groups).
pub type Slot = usize;

/// The types that a wire brings along.
pub trait WireTypes {
    /// What it does to a group's memory before its network can use it.
    type Registration: Registration;
    /// What it knows about a member's segment, and has open there.
    type RemoteSegment: Default;
    /// What a peer may ask of this rank's segment, besides sending messages.
    type Request;
}

/// What a message says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The group's id.
    pub group: u64,
    /// The sender's position in the group.
    pub from: u32,
    /// See [`crate::Engine::post_send`].
    pub lane: Lane,
    /// See [`crate::Engine::post_send`].
    pub tag: Tag,
    /// Bytes of payload.
    pub len: usize,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRequest {
    /// The group.
    pub slot: Slot,
    /// The receiver's position in the group.
    pub member: u32,
    /// See [`crate::Engine::post_send`].
    pub lane: Lane,
    /// See [`crate::Engine::post_send`].
    pub tag: Tag,
    /// The payload.
    pub span: Span,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The group.
    pub slot: Slot,
    /// Its position there.
    pub member: Rank,
}

/// What engines say to each other about all messages of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// I hold enough of your messages that I did not ask for.
    Pause,
    /// Go on.
    Resume,
}

/// Where the group is that a peer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupLookup {
    /// Here, and the peer is a member.
    Here(Slot),
    /// Not made yet.
    Early,
    /// Made and dropped.
    Dropped,
}

/// For tests: a wire's types without a wire.
#[cfg(test)]
pub(super) struct Bare;

#[cfg(test)]
impl WireTypes for Bare {
    type Registration = ();
    /// Accesses that are open.
    type RemoteSegment = usize;
    type Request = ();
}
