//! The engine of raw backends, written once: which message meets which receive, what waits for what, and how much of it.
//!
//! A backend whose network moves bytes and matches nothing is a [`Wire`]. [`Core`] makes an [`Engine`](crate::Engine) of it:
//! - *groups*: ids that all members count alike, slots that live while anything refers to their segment, ids of dropped
//!   groups, so that what comes late is told from what comes early;
//! - *matching* by (sender, lane, tag), in order; messages to oneself;
//! - *holding*: what comes before its receive, or before its group is made here;
//! - *the ledger* of what is open, per lane, member and peer, so that a lost peer is an error for those who need it and
//!   for nobody else.
//!
//! How much is held has a bound. When more than [`HELD_LIMIT`] bytes of a peer wait for receives and none of this rank's
//! receives waits for that peer, it is told to pause: it sends no more of the kernel's messages ([`Lane::Data`](crate::Lane::Data))
//! until it is told to resume, because this rank wants one or has taken most of what it holds. Nothing else pauses, so
//! puts, gets, collectives and the protocols' own messages go on. A sender hands a wire so much at a time only, and listens
//! now and then while it posts, so that what is already under way is bounded too. A receive that waits may be for what
//! comes behind all that is held: then a rank reads on, until it holds [`HELD_MOST`] in all, which is an error that says so.
//!
//! A rank may use several of its local ends at once: then it has every other rank as a peer once per *rail*, see [`Rails`].
//!
//! `types`, `rails`, `member`, `groups`, `ledger` hold state and do no I/O; `wire` is what a backend adds; `core` has the
//! operations. All of it is generic over the wire and monomorphised; once warm, a message allocates nothing.

mod arrival;
mod core;
mod groups;
mod ledger;
mod marks;
mod member;
mod rails;
mod types;
mod wire;

pub use self::arrival::Place;
pub use self::core::Core;
pub use self::groups::{Group, Groups};
pub use self::ledger::{HELD_LIMIT, HELD_MOST, Ledger};
pub use self::member::Member;
pub use self::rails::{MOST_RAILS, Rails, STRIPED_ABOVE};
pub use self::types::{Envelope, FlowControl, GroupLookup, GroupMember, MessageRequest, Slot, WireTypes};
pub use self::wire::Wire;
