//! The engine of backends whose library matches messages by tags, written once: groups, tags, flushes, progress, over what the
//! library's endpoint does, a [`TagLibrary`]. Any call serves all peers. Single-threaded; there is no progress thread.
//!
//! - Posting never waits for a peer: an operation that the library turns away goes into its peer's queue and is posted
//!   when there is room, in order. One peer's queue does not hold up another's.
//! - Messages match in the library, by sender and tag (see `tag`); what comes before its receive, or before its
//!   group, waits in the library too.
//! - A put is complete when the target has it. Where a library cannot say so, a flush reads a byte back from the target
//!   once the puts have left, and waits for that: a read does not overtake the writes before it.

mod groups;
mod library;
mod queue;
mod regions;
mod tag;

use std::time::{Duration, Instant};
use std::{fmt, thread};

use tailback_host::{Clock, Idle, Rest, WaitMode};
use tailback_transport::{Capabilities, Description, Error, Nanos, Rank, Result, Span, Tag};

use crate::{Engine, Lane, Membership, position};
use groups::{GroupState, Groups, Member};
use queue::{Queues, What, Work};
use tag::{LANES, SETUP};

pub use library::{Blocking, Card, Done, Failure, Kind, Posted, RegionId, Remote, TagLibrary, Ticket};
pub use regions::Regions;
pub use tag::{LEAST_BITS, Tags};

/// The longest sleep in the queue: connections come up and peers make room without waking it.
const SLEEP_MS: i32 = 10;

/// The longest sleep while operations wait for room.
const SHORT_SLEEP_MS: i32 = 1;

/// Without a queue to sleep in, a blocking rank looks this often before it naps: a few microseconds.
const ROUNDS_BEFORE_NAP: u32 = 64;

/// The system adds its own slack, some 50 us. Napping beats yielding: on a busy host a core that was offered to others
/// comes back milliseconds later, while a sleeper is woken when its time is up.
const NAP: Duration = Duration::from_micros(20);

/// How long an engine that ends looks after what the provider accepted and may not have sent.
const LINGER: Duration = Duration::from_millis(20);

/// See the module.
pub struct Tagged<L: TagLibrary> {
    me: Rank,
    endpoint: L,
    tags: Tags,
    wait: WaitMode,
    groups: Groups<L::Card>,
    queues: Queues<L::Card>,
    /// Rounds of progress in a row that found nothing.
    fruitless: u32,
    clock: Clock,
    capabilities: Capabilities,
    description: Description,
}

impl<L: TagLibrary> Tagged<L> {
    /// The engine of rank `me` in a job of `ranks`, whose addresses the endpoint knows.
    pub fn new(
        me: Rank,
        ranks: usize,
        endpoint: L,
        tags: Tags,
        wait: WaitMode,
        capabilities: Capabilities,
        description: Description,
    ) -> Self {
        Tagged {
            me,
            endpoint,
            tags,
            wait,
            groups: Groups::new(ranks),
            queues: Queues::new(ranks),
            fruitless: 0,
            clock: Clock::start(),
            capabilities,
            description,
        }
    }

    #[inline(always)]
    fn message(&mut self, slot: RegionId, kind: Kind, lane: u8, member: Rank, tag: Tag, span: Span) -> Result<()> {
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
    fn one_sided(&mut self, slot: RegionId, kind: Kind, member: Rank, local: Span, remote: usize) -> Result<()> {
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
    fn confirm(&mut self, slot: RegionId, member: Rank) -> Result<bool> {
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
    fn start(&mut self, work: Work<L::Card>) -> Result<()> {
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
    fn issue(&mut self, work: &Work<L::Card>) -> Result<bool> {
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
            Some(peer) if L::means_lost(failure.code) => {
                Error::PeerLost { operation: failure.call, peer, detail: failure.message }
            }
            peer => Error::Library { call: failure.call, peer, code: failure.code, message: failure.message },
        }
    }
}

impl<L: TagLibrary> fmt::Debug for Tagged<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tagged").field("me", &self.me).field("wait", &self.wait).finish_non_exhaustive()
    }
}

#[cold]
fn too_long(kind: Kind, len: usize, largest: usize) -> Error {
    let operation = if kind == Kind::Send { "send" } else { "recv" };
    Error::Usage { operation, detail: format!("{len} bytes are more than this provider's longest message ({largest})") }
}

impl<C: Card> GroupState<C> {
    /// Whose an operation is; refuses members that do not exist.
    #[inline]
    fn ticket(&self, slot: RegionId, kind: Kind, lane: u8, member: Rank, len: usize) -> Result<Ticket> {
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

impl<L: TagLibrary> Engine for Tagged<L> {
    type Slot = RegionId;

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn make_group(&mut self, members: &[Rank], segment: usize) -> Result<Membership<RegionId>> {
        let slot = self.make(members, segment)?;
        Ok(Membership { slot, rank: self.groups.at(slot).rank, size: members.len() })
    }

    /// Operations under way keep its memory alive.
    fn drop_group(&mut self, slot: RegionId) {
        self.groups.remove(slot);
        self.queues.forget(slot);
        self.endpoint.give_up(slot);
    }

    fn read(&self, slot: RegionId, offset: usize, into: &mut [u8]) {
        self.groups.at(slot).check(offset, into.len());
        self.endpoint.read(slot, offset, into);
    }

    fn write(&mut self, slot: RegionId, offset: usize, from: &[u8]) {
        self.groups.at(slot).check(offset, from.len());
        self.endpoint.write(slot, offset, from);
    }

    fn add_words(&mut self, slot: RegionId, left: Span, right: usize, into: usize) {
        [left.offset, right, into].into_iter().for_each(|offset| self.groups.at(slot).check(offset, left.len));
        self.endpoint.add_words(slot, left, right, into);
    }

    #[inline]
    fn post_send(&mut self, slot: RegionId, lane: Lane, to: Rank, tag: Tag, span: Span) -> Result<()> {
        self.message(slot, Kind::Send, lane as u8, to, tag, span)
    }

    #[inline]
    fn post_recv(&mut self, slot: RegionId, lane: Lane, from: Rank, tag: Tag, span: Span) -> Result<()> {
        self.message(slot, Kind::Recv, lane as u8, from, tag, span)
    }

    fn put(&mut self, slot: RegionId, to: Rank, local: Span, remote: usize) -> Result<()> {
        self.one_sided(slot, Kind::Put, to, local, remote)
    }

    fn get(&mut self, slot: RegionId, from: Rank, local: Span, remote: usize) -> Result<()> {
        self.one_sided(slot, Kind::Get, from, local, remote)
    }

    #[inline]
    fn progress(&mut self, idle: Idle) -> Result<()> {
        self.advance(idle)
    }

    #[inline]
    fn is_complete(&mut self, slot: RegionId, lane: Lane) -> Result<bool> {
        Ok(self.groups.at(slot).is_complete(lane as u8))
    }

    fn is_sent(&mut self, slot: RegionId, lane: Lane, to: Rank) -> Result<bool> {
        Ok(self.groups.at(slot).members[to.index()].sending[lane as usize] == 0)
    }

    /// Asks the member where that takes a read.
    fn is_flushed(&mut self, slot: RegionId, peer: Rank) -> Result<bool> {
        self.confirm(slot, peer)
    }

    fn completions(&self) -> Option<u64> {
        Some(self.groups.completions)
    }

    fn accesses(&self, slot: RegionId, peer: Rank) -> u64 {
        self.groups.at(slot).members.get(peer.index()).map_or(0, |member| member.accesses)
    }

    /// One by one where the target's word comes with each put; where it has to be asked for, all together.
    fn are_flushed(&mut self, slot: RegionId, peer: Rank, count: u64) -> Result<bool> {
        if !self.endpoint.delivers() {
            return self.confirm(slot, peer);
        }
        Ok(self.groups.at(slot).members.get(peer.index()).is_none_or(|member| member.completed >= count))
    }

    #[inline]
    fn wait(&mut self, slot: RegionId, lane: Lane) -> Result<()> {
        self.wait_for(slot, lane as u8)
    }
}

impl<L: TagLibrary> Tagged<L> {
    /// Makes a group with a segment of `segment` bytes and waits until every member's memory is known.
    fn make(&mut self, members: &[Rank], segment: usize) -> Result<RegionId> {
        let position = position(self.me, self.groups.ranks(), members)?;
        let (confirm, cards) = GroupState::<L::Card>::layout(segment, members.len());
        let (slot, card) = self.endpoint.region(cards.end())?;
        let member = |&rank: &Rank| {
            let number = self.groups.number_with(rank);
            let (outgoing, incoming) = (self.tags.of_group(number, self.me), self.tags.of_group(number, rank));
            Member {
                rank,
                outgoing,
                incoming,
                card,
                sending: [0; LANES],
                accesses: 0,
                completed: 0,
                open: 0,
                unconfirmed: false,
            }
        };
        let members = members.iter().map(member).collect();
        let rank = Rank::from(position);
        self.groups.add(slot, GroupState { rank, members, segment, confirm, pending: [0; LANES], ahead: Vec::new() });
        if let Err(error) = self.exchange(slot, cards, card) {
            self.drop_group(slot);
            return Err(error);
        }
        Ok(slot)
    }

    fn exchange(&mut self, slot: RegionId, cards: Span, mine: L::Card) -> Result<()> {
        let (rank, size) = (self.groups.at(slot).rank, self.groups.at(slot).members.len());
        let (rank, at) = (rank.index(), |card: usize| cards.offset + card * L::Card::LEN);
        let mut bytes = vec![0; L::Card::LEN];
        mine.encode(&mut bytes);
        self.endpoint.write(slot, at(0), &bytes);
        let (mut have, mut step) = (1, 0);
        while have < size {
            let more = have.min(size - have);
            let (to, from) = (Rank::from((rank + size - have) % size), Rank::from((rank + have) % size));
            self.message(slot, Kind::Recv, SETUP, from, Tag(step), Span::new(at(have), more * L::Card::LEN))?;
            self.message(slot, Kind::Send, SETUP, to, Tag(step), Span::new(at(0), more * L::Card::LEN))?;
            self.wait_for(slot, SETUP)?;
            (have, step) = (have + more, step + 1);
        }
        for distance in 0..size {
            self.endpoint.read(slot, at(distance), &mut bytes);
            self.groups.at_mut(slot).members[(rank + distance) % size].card = L::Card::decode(&bytes);
        }
        Ok(())
    }
}

impl<L: TagLibrary> Tagged<L> {
    /// One round for every peer and every group.
    #[inline(always)]
    fn advance(&mut self, idle: Idle) -> Result<()> {
        if self.poll()? > 0 {
            self.fruitless = 0;
            return Ok(());
        }
        match self.wait.rest(idle) {
            // No pause instruction: it takes as long as a read of the queue, and adds to the latency.
            Rest::None => Ok(()),
            rest => self.pause(rest),
        }
    }

    /// Waits until everything posted on a lane is complete.
    #[inline]
    fn wait_for(&mut self, slot: RegionId, lane: u8) -> Result<()> {
        while !self.groups.at(slot).is_complete(lane) {
            self.advance(Idle::Wait)?;
        }
        Ok(())
    }

    /// Reads completions and posts what waited for room: how many completions there were.
    #[inline(always)]
    fn poll(&mut self) -> Result<usize> {
        let (groups, mut wrong) = (&mut self.groups, None);
        let count = self.endpoint.poll(|done| note(groups, &mut wrong, done));
        self.polled(count, wrong)
    }

    #[inline(always)]
    fn polled(&mut self, count: std::result::Result<usize, Failure>, wrong: Option<Done>) -> Result<usize> {
        let count = count.map_err(|failure| self.error(failure))?;
        if let Some(done) = wrong {
            return Err(wrong_length(done));
        }
        if !self.queues.all_empty() {
            self.retry()?;
        }
        Ok(count)
    }

    /// Posts what can be posted now, each line up to its first operation without room.
    #[cold]
    fn retry(&mut self) -> Result<()> {
        for at in 0..self.queues.busy() {
            while let Some(work) = self.queues.first(at) {
                if !self.issue(&work)? {
                    break;
                }
                self.queues.pop(at);
            }
        }
        self.queues.tidy();
        Ok(())
    }

    /// What the wait mode says.
    fn pause(&mut self, rest: Rest) -> Result<()> {
        self.fruitless = self.fruitless.saturating_add(1);
        match (rest, self.endpoint.blocking()) {
            (Rest::None, _) => {}
            (Rest::Yield, _) => thread::yield_now(),
            (Rest::Sleep, Blocking::Queue) => {
                let limit = if self.queues.all_empty() { SLEEP_MS } else { SHORT_SLEEP_MS };
                let (groups, mut wrong) = (&mut self.groups, None);
                let count = self.endpoint.sleep(limit, |done| note(groups, &mut wrong, done));
                self.polled(count, wrong)?;
            }
            (Rest::Sleep, Blocking::None) if self.fruitless < ROUNDS_BEFORE_NAP => {}
            (Rest::Sleep, Blocking::None) => thread::sleep(NAP),
        }
        Ok(())
    }
}

/// Takes note of a completion.
#[inline]
fn note<C: Card>(groups: &mut Groups<C>, wrong: &mut Option<Done>, done: Done) {
    groups.complete(done.ticket);
    if done.ticket.kind == Kind::Recv && done.len != done.ticket.len {
        *wrong = Some(done);
    }
}

#[cold]
fn wrong_length(done: Done) -> Error {
    let (expected, got) = (done.ticket.len, done.len);
    let detail = format!("a message of {got} bytes came where {expected} were expected");
    Error::Protocol { operation: "recv", peer: Some(Rank(done.ticket.peer)), detail }
}

impl<L: TagLibrary> Drop for Tagged<L> {
    /// Small messages are the provider's once they are posted, without a word when they have left; a peer may wait for
    /// the last of them.
    fn drop(&mut self) {
        let end = Instant::now() + LINGER;
        while Instant::now() < end {
            match self.poll() {
                Ok(_) => thread::yield_now(),
                Err(_) => break,
            }
        }
    }
}
