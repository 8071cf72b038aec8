//! What holds for all groups of a transport: which messages are announced, and for how many there is room.

use super::protocol::Protocol;
use super::slots::{SHORTEST, Slots};

/// The most and the fewest RTSs that may be leaving for one peer, or answers arriving, at a time. Few in large groups:
/// their slots are registered memory. The most is what a mask of 64 bits holds.
const WINDOW: (usize, usize) = (8, 64);

/// Sender's slots of a group, where the window's limits allow it.
const SENDER_SLOTS: usize = 1024;

/// Messages that may be granted at a time at least, one per member in larger groups; or FINs that may be leaving.
const RECEIVER_SLOTS: usize = 256;

/// What was chosen for all groups of a transport.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) protocol: Protocol,
    /// Messages shorter than this are eager; none is where the protocol is refused, so that each is told so.
    pub(super) below: usize,
    pub(super) refusal: Option<String>,
}

impl Rules {
    pub(super) fn new(protocol: Protocol, threshold: usize, refusal: Option<String>) -> Self {
        let below = match (protocol, &refusal) {
            (Protocol::Eager, _) => usize::MAX,
            (_, Some(_)) => 0,
            (_, None) => threshold.saturating_add(1).max(SHORTEST),
        };
        Rules { protocol, below, refusal }
    }

    /// The layout of the segment of a group of `size` members.
    pub(super) fn slots(&self, user: usize, size: usize) -> Slots {
        match self.protocol {
            Protocol::Eager => Slots::none(user),
            Protocol::Put => Slots::behind(user, size * window(size), RECEIVER_SLOTS.max(size)),
            Protocol::Get => Slots::behind(user, size * window(size), RECEIVER_SLOTS),
        }
    }
}

/// How many RTSs may be leaving for one peer at a time, and how many answers arriving.
pub(super) fn window(size: usize) -> usize {
    (SENDER_SLOTS / size.max(1)).clamp(WINDOW.0, WINDOW.1)
}
