//! The protocols, and what one means for a group: which messages are announced, and for how many there is room.

use std::fmt;
use std::str::FromStr;

use tailback_transport::{Error, Operation};

use super::slots::{SHORTEST, Slots};

/// How a message's bytes travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// At once, as the backend's own message, however long.
    #[default]
    Eager,
    /// Announced; the sender writes them when the receiver says where (RTS, CTS, put, FIN).
    Put,
    /// Announced; the receiver reads them (RTS, get, FIN).
    Get,
}

impl Protocol {
    /// All of them, in the order they are listed to users.
    pub const ALL: [Protocol; 3] = [Protocol::Eager, Protocol::Put, Protocol::Get];

    /// The one-sided operation that moves the bytes of an announced message.
    #[must_use]
    pub fn moves_by(self) -> Option<Operation> {
        match self {
            Protocol::Eager => None,
            Protocol::Put => Some(Operation::Put),
            Protocol::Get => Some(Operation::Get),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Protocol::Eager => "eager",
            Protocol::Put => "put",
            Protocol::Get => "get",
        })
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.to_string() == name)
            .ok_or_else(|| Error::Setup(format!("unknown protocol \"{name}\": use eager, put or get")))
    }
}

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

    /// The rules of a group with a segment of `user` bytes. One that no announced message fits, as that of all ranks, is
    /// eager, and so has no slots: they are registered memory, and the more of it the larger the group.
    pub(super) fn within(self, user: usize) -> Self {
        if user >= self.below {
            return self;
        }
        Rules { protocol: Protocol::Eager, below: usize::MAX, refusal: None }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_without_room_for_a_long_message_have_no_slots() {
        let end = |user, threshold| {
            let rules = Rules::new(Protocol::Put, threshold, None).within(user);
            (rules.protocol, rules.slots(user, 8192).end())
        };
        assert_eq!(end(80, 1024), (Protocol::Eager, 80));
        assert_eq!(end(1024, 1024), (Protocol::Eager, 1024));
        assert_eq!(end(1025, 1024).0, Protocol::Put);
        assert!(end(80, 0).1 > 1 << 20, "80 bytes can be announced where everything is");
        let refused = Rules::new(Protocol::Get, 1024, Some("no gets".into())).within(80);
        assert!(refused.refusal.is_some(), "what is refused stays refused");
    }

    #[test]
    fn names_are_read_back() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse::<Protocol>().expect("a protocol's own name"), protocol);
        }
        let error = "rendezvous".parse::<Protocol>().unwrap_err().to_string();
        assert_eq!(error, "unknown protocol \"rendezvous\": use eager, put or get");
    }
}
