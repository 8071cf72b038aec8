//! What is to be posted, what requests complete, and what is known about a member's segment.

use tailback_engine::Lane;
use tailback_engine::matching::{Parcel, Slot};
use tailback_transport::Span;

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
    /// A put; or a get or a fence, which read.
    Access { slot: Slot, member: u32, reads: bool },
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
    /// Puts, gets and fences, and how many of the first of them are over: gets when they are complete, puts when something
    /// behind them has read.
    pub(super) accesses: u64,
    pub(super) over: u64,
    /// Those that are not known to be complete.
    pub(super) open: u32,
    /// Whether a put was made since the last fence.
    pub(super) unfenced: bool,
}

impl Far {
    /// A put, a get or a fence will be posted.
    pub(super) fn begin(&mut self) {
        self.accesses += 1;
        self.open += 1;
    }

    /// The first that is open is complete: requests of a pair complete in order.
    pub(super) fn end(&mut self, reads: bool) {
        self.open -= 1;
        if reads {
            self.over = self.accesses - u64::from(self.open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_are_over_with_a_read_behind_them() {
        let mut far = Far::default();
        (0..4).for_each(|_| far.begin()); // put, put, fence, put
        far.end(false);
        assert_eq!((far.over, far.open), (0, 3));
        far.end(false);
        far.end(true);
        assert_eq!((far.over, far.open), (3, 1), "the last put keeps the others from nothing");
        far.end(false);
        assert_eq!((far.over, far.open), (3, 0), "complete, and not known to be in memory");
        far.begin();
        far.end(true);
        assert_eq!((far.over, far.open), (5, 0));
    }
}
