//! One rank's engine: its endpoint, its groups, all progress. Shared by the groups of a transport, so that any call of
//! any group serves all peers. Single-threaded; there is no progress thread.
//!
//! - Posting never waits for a peer: an operation that the provider turns away goes into its peer's queue and is posted
//!   when there is room, in order. One peer's queue does not hold up another's.
//! - Messages match in the provider, by sender and tag (see [`crate::tag`]); what comes before its receive, or before its
//!   group, waits in the provider too.
//! - A put is complete when the target has it. Where a provider cannot say so, a flush reads a byte back from the target
//!   once the puts have left, and waits for that: a read does not overtake the writes before it.

mod exchange;
mod groups;
mod operations;
mod progress;
mod queue;

use std::fmt;

use tailback_host::{Clock, WaitMode};
use tailback_transport::{Capabilities, Description, Error, Rank, Result, Span, Tag};

use self::groups::{GroupState, Groups, Slot};
use self::queue::{Queues, What, Work};
use crate::ffi::{Blocking, Endpoint, Failure, Kind, Posted, Remote, Ticket};
use crate::tag::{self, Tags};

/// See the module.
pub struct Engine {
    me: Rank,
    endpoint: Endpoint,
    tags: Tags,
    wait: WaitMode,
    groups: Groups,
    queues: Queues,
    /// Rounds of progress in a row that found nothing.
    fruitless: u32,
    clock: Clock,
    capabilities: Capabilities,
    description: Description,
}

impl Engine {
    /// The engine of rank `me` in a job of `ranks`, whose addresses the endpoint knows.
    pub(crate) fn new(me: Rank, ranks: usize, endpoint: Endpoint, tags: Tags, wait: WaitMode) -> Engine {
        let (groups, queues) = (Groups::new(ranks), Queues::new(ranks));
        Engine {
            me,
            endpoint,
            tags,
            wait,
            groups,
            queues,
            fruitless: 0,
            clock: Clock::start(),
            capabilities: Capabilities::all(),
            description: Description::default(),
        }
    }

    /// What it says of itself from now on.
    pub(crate) fn describe_as(&mut self, capabilities: Capabilities, description: Description) {
        (self.capabilities, self.description) = (capabilities, description);
    }

    pub(crate) fn blocking(&self) -> Blocking {
        self.endpoint.blocking()
    }

    pub(crate) fn room(&self) -> [usize; 2] {
        self.endpoint.room()
    }

    pub(crate) fn queue_entries(&self) -> usize {
        self.endpoint.completions()
    }

    #[inline(always)]
    pub(super) fn message(
        &mut self,
        slot: Slot,
        kind: Kind,
        lane: u8,
        member: Rank,
        tag: Tag,
        span: Span,
    ) -> Result<()> {
        let group = self.groups.at_mut(slot);
        let Some(partner) = group.members.get(member.index()) else {
            return Err(no_member(member, group.members.len()));
        };
        if span.len > self.endpoint.largest() {
            return Err(too_long(kind, span.len, self.endpoint.largest()));
        }
        let (peer, len) = (partner.rank.0, span.len);
        let ticket = Ticket { kind, lane, region: slot, member: member.0, peer, len, access: 0 };
        let of_group = if kind == Kind::Send { partner.outgoing } else { partner.incoming };
        let whole = tag::of_message(of_group, lane, tag);
        let send = kind == Kind::Send;
        // As `start`, without making work of it: most messages find nothing before them and room.
        let posted = if self.queues.all_empty() {
            let endpoint = &mut self.endpoint;
            if send { endpoint.send(ticket, span, whole) } else { endpoint.receive(ticket, span, whole) }
        } else {
            Ok(Posted::Busy)
        };
        match posted {
            Ok(Posted::Over) => return Ok(()),
            Ok(posted) => {
                group.begin(&ticket);
                if posted == Posted::InFlight {
                    return Ok(());
                }
            }
            Err(failure) => return Err(self.error(failure)),
        }
        let what = if kind == Kind::Send { What::Send(whole) } else { What::Recv(whole) };
        self.start(Work { ticket, span, what })
    }

    /// In pieces, where the provider's transfers have a limit.
    pub(super) fn one_sided(&mut self, slot: Slot, kind: Kind, member: Rank, local: Span, remote: usize) -> Result<()> {
        let group = self.groups.at(slot);
        group.ticket(slot, kind, 0, member, local.len)?;
        group.check(remote, local.len);
        let (card, largest) = (group.members[member.index()].card, self.endpoint.largest());
        let mut done = 0;
        while done < local.len {
            let span = Span::new(local.offset + done, (local.len - done).min(largest));
            let group = self.groups.at_mut(slot);
            let mut ticket = group.ticket(slot, kind, 0, member, span.len)?;
            let partner = &mut group.members[member.index()];
            ticket.access = partner.begin_access();
            partner.unconfirmed |= kind == Kind::Put && !self.endpoint.delivers();
            let there = Remote { card, offset: remote + done };
            let what = if kind == Kind::Put { What::Put(there) } else { What::Get(there) };
            self.start(Work { ticket, span, what })?;
            done += span.len;
        }
        Ok(())
    }

    /// Whether nothing one-sided with `member` is open; asks the member where that takes a read.
    pub(super) fn confirm(&mut self, slot: Slot, member: Rank) -> Result<bool> {
        let group = self.groups.at_mut(slot);
        let mut ticket = group.ticket(slot, Kind::Get, 0, member, 1)?;
        let (confirm, partner) = (group.confirm, &mut group.members[member.index()]);
        if partner.open > 0 {
            return Ok(false);
        }
        if !partner.unconfirmed {
            return Ok(true);
        }
        partner.unconfirmed = false;
        ticket.access = partner.begin_access();
        let there = Remote { card: partner.card, offset: confirm };
        self.start(Work { ticket, span: Span::new(confirm, 1), what: What::Get(there) })?;
        Ok(false)
    }

    /// Posts an operation, or lets it wait for its turn.
    fn start(&mut self, work: Work) -> Result<()> {
        if self.queues.is_empty(&work) {
            if self.issue(&work)? {
                return Ok(());
            }
            // What the provider waits for is often only that it is looked after.
            self.poll()?;
            if self.queues.is_empty(&work) && self.issue(&work)? {
                return Ok(());
            }
        }
        self.queues.push(work);
        Ok(())
    }

    /// Hands an operation to the provider; no if it has no room.
    fn issue(&mut self, work: &Work) -> Result<bool> {
        let posted = match work.what {
            What::Send(tag) => self.endpoint.send(work.ticket, work.span, tag),
            What::Recv(tag) => self.endpoint.receive(work.ticket, work.span, tag),
            What::Put(remote) => self.endpoint.put(work.ticket, work.span, remote),
            What::Get(remote) => self.endpoint.get(work.ticket, work.span, remote),
        };
        match posted.map_err(|failure| self.error(failure))? {
            Posted::InFlight => Ok(true),
            Posted::Over => {
                self.groups.complete(work.ticket);
                Ok(true)
            }
            Posted::Busy => Ok(false),
        }
    }

    /// An error that names the operation and the peer.
    #[cold]
    fn error(&self, failure: Failure) -> Error {
        let peer = failure.ticket.map(|ticket| Rank(ticket.peer));
        match peer {
            Some(peer) if means_lost(failure.code) => {
                Error::PeerLost { operation: failure.call, peer, detail: failure.message }
            }
            peer => Error::Library { call: failure.call, peer, code: failure.code, message: failure.message },
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("me", &self.me).field("wait", &self.wait).finish_non_exhaustive()
    }
}

/// Whether an error code says that the other side is no longer there.
fn means_lost(code: i64) -> bool {
    const GONE: [i32; 9] = [
        libc::ECONNRESET,
        libc::ECONNREFUSED,
        libc::ECONNABORTED,
        libc::ENOTCONN,
        libc::EPIPE,
        libc::ESHUTDOWN,
        libc::EHOSTUNREACH,
        libc::EHOSTDOWN,
        libc::ETIMEDOUT,
    ];
    GONE.iter().any(|&gone| i64::from(gone) == code)
}

#[cold]
fn too_long(kind: Kind, len: usize, largest: usize) -> Error {
    let operation = if kind == Kind::Send { "send" } else { "recv" };
    Error::Usage { operation, detail: format!("{len} bytes are more than this provider's longest message ({largest})") }
}

impl GroupState {
    /// Whose an operation is; refuses members that do not exist.
    #[inline]
    fn ticket(&self, slot: Slot, kind: Kind, lane: u8, member: Rank, len: usize) -> Result<Ticket> {
        match self.members.get(member.index()) {
            Some(partner) => {
                let peer = partner.rank.0;
                Ok(Ticket { kind, lane, region: slot, member: member.0, peer, len, access: 0 })
            }
            None => Err(no_member(member, self.members.len())),
        }
    }
}

#[cold]
fn no_member(member: Rank, size: usize) -> Error {
    Error::Usage { operation: "post", detail: format!("there is no member {member} in a group of {size}") }
}
