//! What is to be posted, what requests complete, and what is known about a member's segment.

use tailback_transport::matching::{Parcel, Slot};
use tailback_transport::{Lane, Span};

use crate::header::Header;

/// What is done to a member's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Put,
    Get,
}

/// Something to post on the pair, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// A message; `at` bytes of it are posted.
    Send { parcel: Parcel, at: usize, begun: bool },
    /// A header alone.
    Say(Header),
    /// An RDMA write to `remote` (an offset) of the member's segment, or a read from there; `at` bytes are posted.
    Access { kind: AccessKind, slot: Slot, member: u32, local: Span, remote: usize, at: usize },
    /// A read of one byte behind puts: its completion proves that they are in the member's memory, for the device
    /// there serves requests in order and a read is not answered from before an earlier write.
    Fence { slot: Slot, member: u32 },
}

impl Work {
    /// Bytes of a message of the user's.
    pub(super) fn message_len(&self) -> usize {
        match self {
            Work::Send { parcel, .. } => parcel.span.len,
            _ => 0,
        }
    }
}

/// What a request completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// Nothing that anyone waits for.
    Nothing,
    /// A send on this lane.
    Send { slot: Slot, member: u32, lane: Lane },
    /// A put, a get or a fence.
    Access { slot: Slot, member: u32 },
}

/// Where a member's segment is.
#[derive(Debug, Default)]
pub(super) enum Key {
    /// Nobody asked yet.
    #[default]
    Unknown,
    /// The member was asked; this work waits for its answer.
    Asked(Vec<Work>),
    Known {
        address: u64,
        key: u32,
    },
}

/// What is known about a member's segment, and what is open there.
#[derive(Debug, Default)]
pub struct Far {
    pub(super) key: Key,
    /// Puts, gets and fences that are not known to be complete.
    pub(super) accesses: usize,
    /// Whether a put was made since the last fence.
    pub(super) unfenced: bool,
}
