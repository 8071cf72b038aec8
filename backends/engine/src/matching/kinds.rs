//! What passes between the engine and a wire.

use tailback_transport::{Span, Tag};

use crate::{Lane, Registration};

/// A group's index in [`Groups`](super::Groups).
pub type Slot = usize;

/// The types that a wire brings along.
pub trait Kinds {
    /// What it does to a group's memory before its network can use it.
    type Registration: Registration;
    /// What it knows about a member's segment, and has open there.
    type Far: Default;
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
pub struct Parcel {
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

/// What engines say to each other about all messages of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// I hold enough of your messages that I did not ask for.
    Pause,
    /// Go on.
    Resume,
}

/// Where the group is that a peer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Here, and the peer is a member.
    Here(Slot),
    /// Not made yet.
    Early,
    /// Made and dropped.
    Dropped,
}
