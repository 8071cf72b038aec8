//! What is open: per lane for those who wait, per member for memory that is still needed, per peer for the day it is lost.
//! And what is held, with its bound.
//!
//! Every count goes up in one place and down in one place. A group that is dropped takes its share with it; what is under
//! way at that time ends as if the group were still there.

use std::collections::VecDeque;
use std::fmt;

use tailback_transport::{Error, Rank, Result};

use super::groups::Groups;
use super::rails::Rails;
use super::types::{FlowControl, MessageRequest, Slot, WireTypes};
use crate::Lane;

/// A peer is told to pause while this many bytes of it wait for receives and no receive waits for it.
pub const HELD_LIMIT: usize = 1024 * 1024;

/// The most that a rank holds of all peers, whatever it waits for.
pub const HELD_MOST: usize = 1024 * 1024 * 1024;

/// What a held message costs besides its payload.
pub(super) const HELD_EACH: usize = 64;

/// How many buffers of held payloads are kept for the next ones, and how large they may be.
const SPARES: usize = 64;
const SPARE_LEN: usize = 256 * 1024;

/// What this rank and a peer have open.
#[derive(Debug, Default)]
struct Account {
    /// Operations of this rank that need the peer: receives, sends, puts, gets and what confirms them.
    open: usize,
    /// Receives among them that are the kernel's own.
    posted: usize,
    /// Bytes that arrived and that nothing asked for yet.
    held: usize,
    /// This rank told the peer to pause.
    pausing: bool,
    /// The peer told this rank to pause.
    paused: bool,
    /// Messages of the kernel's wait for their turn, or would have to.
    stopped: bool,
    /// Those messages.
    backlog: VecDeque<MessageRequest>,
}

/// See the module.
pub struct Ledger<K: WireTypes> {
    /// This rank.
    pub me: Rank,
    /// Its rails, by which peers are numbered.
    pub rails: Rails,
    /// The call under way, for errors.
    pub operation: &'static str,
    /// Its groups.
    pub groups: Groups<K>,
    accounts: Vec<Account>,
    /// Bytes held of all peers.
    held: usize,
    /// Buffers for payloads that come before they are wanted.
    spare: Vec<Vec<u8>>,
    /// What is to be said to whom.
    flow_control: Vec<(usize, FlowControl)>,
    /// Peers with a backlog.
    waiting: Vec<usize>,
    /// Whether `flow_control` or `waiting` has anything that can be done.
    pub(super) chores: bool,
    /// Sends, receives and accesses that were ended.
    pub(super) completions: u64,
    closing: bool,
}

impl<K: WireTypes> Ledger<K> {
    /// The ledger of rank `me` in a job of `ranks`, with these rails.
    #[must_use]
    pub fn new(me: Rank, ranks: usize, rails: Rails) -> Self {
        Ledger {
            me,
            rails,
            operation: "start-up",
            groups: Groups::over(rails),
            accounts: (0..rails.peers(ranks)).map(|_| Account::default()).collect(),
            held: 0,
            spare: Vec::new(),
            flow_control: Vec::new(),
            waiting: Vec::new(),
            chores: false,
            completions: 0,
            closing: false,
        }
    }

    /// How many ranks the job has.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.rails.rank(self.accounts.len())
    }

    /// Whether this rank has something open with `peer`.
    #[inline]
    #[must_use]
    pub fn needs(&self, peer: usize) -> bool {
        self.accounts[peer].open > 0 && !self.closing
    }

    /// The first peer that this rank has something open with on a rail.
    #[must_use]
    pub fn first_needed(&self, rail: usize) -> Option<usize> {
        (0..self.accounts.len()).find(|&peer| self.rails.rail(peer) == rail && self.needs(peer))
    }

    /// From now on nobody here waits for anyone.
    pub(super) fn close(&mut self) {
        self.operation = "close";
        self.closing = true;
    }

    /// A message that is not over when its post returns.
    #[inline]
    pub fn begin_send(&mut self, peer: usize, request: &MessageRequest) {
        let seat = self.rails.seat(request.member, peer);
        let group = self.groups.at_mut(request.slot);
        group.pending[request.lane as usize] += 1;
        group.members[seat].sending[request.lane as usize] += 1;
        group.hold();
        self.accounts[peer].open += 1;
    }

    /// Such a message no longer needs its memory.
    #[inline]
    pub fn end_send(&mut self, peer: usize, slot: Slot, member: u32, lane: Lane) {
        let seat = self.rails.seat(member, peer);
        let group = self.groups.at_mut(slot);
        group.pending[lane as usize] -= 1;
        group.members[seat].sending[lane as usize] -= 1;
        self.groups.unuse(slot);
        self.accounts[peer].open -= 1;
        self.completions += 1;
    }

    /// A receive waits for `peer`.
    #[inline]
    pub(super) fn begin_receive(&mut self, peer: usize, request: &MessageRequest) {
        let MessageRequest { slot, member, lane, tag, span } = *request;
        let seat = self.rails.seat(member, peer);
        let group = self.groups.at_mut(slot);
        group.members[seat].post(lane, tag, span);
        group.pending[lane as usize] += 1;
        if !self.is_me(peer) {
            let account = &mut self.accounts[peer];
            account.open += 1;
            account.posted += usize::from(lane == Lane::Data);
            if account.pausing {
                self.tell(peer, FlowControl::Resume);
            }
        }
    }

    /// A receive is complete.
    #[inline]
    pub(super) fn end_receive(&mut self, peer: usize, slot: Slot, lane: Lane) {
        self.groups.at_mut(slot).pending[lane as usize] -= 1;
        let account = &mut self.accounts[peer];
        account.open -= 1;
        account.posted -= usize::from(lane == Lane::Data);
        self.completions += 1;
    }

    /// Work on this rank's segment, or a request that refers to it, is under way with `peer`.
    #[inline]
    pub fn begin_access(&mut self, peer: usize, slot: Slot) {
        self.groups.at_mut(slot).hold();
        self.accounts[peer].open += 1;
    }

    /// It is over.
    #[inline]
    pub fn end_access(&mut self, peer: usize, slot: Slot) {
        self.groups.unuse(slot);
        self.accounts[peer].open -= 1;
        self.completions += 1;
    }

    /// Ends what a group gives up of its accesses: `forget` says how many with each member.
    pub(super) fn forget_accesses(&mut self, slot: Slot, forget: impl Fn(&mut K::RemoteSegment) -> usize) {
        let group = self.groups.at_mut(slot);
        let rails = self.rails;
        let open: Vec<_> = (group.members.iter_mut().enumerate())
            .map(|(seat, member)| {
                (rails.peer(group.ranks[rails.rank(seat)].index(), rails.rail(seat)), &mut member.remote)
            })
            .map(|(peer, remote)| (peer, forget(remote)))
            .collect();
        for (peer, count) in open {
            (0..count).for_each(|_| self.end_access(peer, slot));
        }
    }

    /// The peer's own work refers to this rank's segment.
    #[inline]
    pub fn lend(&mut self, slot: Slot) {
        self.groups.at_mut(slot).hold();
    }

    /// It no longer does.
    #[inline]
    pub fn unlend(&mut self, slot: Slot) {
        self.groups.unuse(slot);
    }

    /// Ends a group: its receives are forgotten, and what it holds.
    pub(super) fn drop_group(&mut self, slot: Slot) {
        let group = self.groups.at(slot);
        let rails = self.rails;
        let shares: Vec<_> = (group.members.iter().enumerate())
            .map(|(seat, member)| (rails.peer(group.ranks[rails.rank(seat)].index(), rails.rail(seat)), member))
            .filter(|&(peer, _)| !self.is_me(peer))
            .map(|(peer, member)| (peer, member.receives(), member.held().map(|len| HELD_EACH + len).sum::<usize>()))
            .collect();
        for (peer, (receives, posted), held) in shares {
            let account = &mut self.accounts[peer];
            account.open -= receives;
            account.posted -= posted;
            self.release(peer, held);
        }
        self.groups.drop_group(slot);
    }

    /// Bytes of `peer` that nothing asked for begin to arrive.
    pub(super) fn hold(&mut self, peer: usize, bytes: usize) -> Result<()> {
        self.held += bytes;
        let account = &mut self.accounts[peer];
        account.held += bytes;
        if account.held > HELD_LIMIT && account.posted == 0 && !account.pausing {
            self.tell(peer, FlowControl::Pause);
        }
        if self.held > HELD_MOST { Err(self.too_much(peer)) } else { Ok(()) }
    }

    /// They were taken, or are of no use to anyone.
    pub(super) fn release(&mut self, peer: usize, bytes: usize) {
        self.held -= bytes;
        let account = &mut self.accounts[peer];
        account.held -= bytes;
        if account.pausing && account.held < HELD_LIMIT / 2 {
            self.tell(peer, FlowControl::Resume);
        }
    }

    /// Whether the peer is this rank.
    #[inline]
    pub(super) fn is_me(&self, peer: usize) -> bool {
        self.rails.rank(peer) == self.me.index()
    }

    /// The peer's rank.
    #[must_use]
    pub fn rank(&self, peer: usize) -> Rank {
        Rank::from(self.rails.rank(peer))
    }

    /// Bytes held of `peer`.
    #[must_use]
    pub fn held(&self, peer: usize) -> usize {
        self.accounts[peer].held
    }

    #[cold]
    fn tell(&mut self, peer: usize, control: FlowControl) {
        self.accounts[peer].pausing = control == FlowControl::Pause;
        self.flow_control.push((peer, control));
        self.chores = true;
    }

    /// What is to be said next, in order.
    pub(super) fn take_flow_control(&mut self) -> Vec<(usize, FlowControl)> {
        std::mem::take(&mut self.flow_control)
    }

    /// `peer` said so about this rank's messages.
    pub fn on_flow_control(&mut self, peer: usize, control: FlowControl) {
        let account = &mut self.accounts[peer];
        account.paused = control == FlowControl::Pause;
        account.stopped = account.paused || !account.backlog.is_empty();
        self.chores |= !account.backlog.is_empty();
    }

    /// Whether a message of the kernel's to `peer` has to wait.
    #[inline]
    pub(super) fn is_stopped(&self, peer: usize) -> bool {
        self.accounts[peer].stopped
    }

    /// Lets a message wait for its turn.
    pub(super) fn put_off(&mut self, peer: usize, request: MessageRequest) {
        self.begin_send(peer, &request);
        let account = &mut self.accounts[peer];
        if account.backlog.is_empty() {
            self.waiting.push(peer);
        }
        account.stopped = true;
        account.backlog.push_back(request);
        self.chores = true;
    }

    /// The first message to `peer` that waits and need not; it is no longer in the ledger, but for its use of the segment.
    pub(super) fn take_off(&mut self, peer: usize) -> Option<MessageRequest> {
        let account = &mut self.accounts[peer];
        let request = if account.paused { None } else { account.backlog.pop_front() };
        account.stopped = account.paused || !account.backlog.is_empty();
        let request = request?;
        self.groups.at_mut(request.slot).hold();
        self.end_send(peer, request.slot, request.member, request.lane);
        Some(request)
    }

    /// Peers with a backlog.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// One of them.
    pub(super) fn waiting_at(&self, at: usize) -> usize {
        self.waiting[at]
    }

    /// Forgets those whose backlog is gone; whether one of the others could go on.
    pub(super) fn tidy(&mut self) -> bool {
        let accounts = &self.accounts;
        self.waiting.retain(|&peer| !accounts[peer].backlog.is_empty());
        self.waiting.iter().any(|&peer| !accounts[peer].paused)
    }

    /// An empty buffer for a payload.
    pub fn spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes such a buffer back, so that early messages need no allocation in the long run.
    pub fn recycle(&mut self, mut data: Vec<u8>) {
        if self.spare.len() < SPARES && data.capacity() <= SPARE_LEN {
            data.clear();
            self.spare.push(data);
        }
    }

    /// The error for an operation that needs a lost peer, and what is known about that.
    #[cold]
    pub fn lost(&self, peer: usize, detail: impl Into<String>) -> Error {
        Error::PeerLost { operation: self.operation, peer: self.rank(peer), detail: detail.into() }
    }

    /// The error for what no correct peer sends.
    #[cold]
    pub fn protocol(&self, peer: usize, detail: impl Into<String>) -> Error {
        Error::Protocol { operation: self.operation, peer: Some(self.rank(peer)), detail: detail.into() }
    }

    /// The error for arguments that mean nothing.
    #[cold]
    pub fn usage(&self, detail: impl Into<String>) -> Error {
        Error::Usage { operation: self.operation, detail: detail.into() }
    }

    #[cold]
    fn too_much(&self, peer: usize) -> Error {
        let detail = format!(
            "{} bytes of messages wait here for receives that are not posted: receive in the order of sending, or send \
             long messages by put or get",
            self.held
        );
        self.protocol(peer, detail)
    }
}

impl<K: WireTypes> fmt::Debug for Ledger<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("me", &self.me).field("held", &self.held).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tailback_transport::{Span, Tag};

    use super::super::types::Bare;
    use super::*;
    use crate::Segment;

    fn ledger() -> (Ledger<Bare>, Slot) {
        let mut ledger = Ledger::new(Rank(0), 2, Rails::default());
        let slot = ledger.groups.make(0, &[Rank(0), Rank(1)], Segment::plain(64).expect("memory"));
        (ledger, slot)
    }

    fn receive(slot: Slot, lane: Lane) -> MessageRequest {
        MessageRequest { slot, member: 1, lane, tag: Tag(0), span: Span::new(0, 8) }
    }

    #[test]
    fn a_peer_pauses_while_much_of_it_is_held_and_nothing_of_it_is_wanted() {
        let (mut ledger, slot) = ledger();
        ledger.hold(1, HELD_LIMIT).expect("room");
        assert!(ledger.take_flow_control().is_empty());
        ledger.hold(1, 1).expect("room");
        ledger.hold(1, 1).expect("room");
        assert_eq!(ledger.take_flow_control(), [(1, FlowControl::Pause)], "said once");
        ledger.begin_receive(1, &receive(slot, Lane::Data));
        assert_eq!(ledger.take_flow_control(), [(1, FlowControl::Resume)], "it is wanted");
        ledger.hold(1, HELD_LIMIT).expect("room");
        assert!(ledger.take_flow_control().is_empty(), "it still is");
        ledger.end_receive(1, slot, Lane::Data);
        ledger.hold(1, 1).expect("room");
        assert_eq!(ledger.take_flow_control(), [(1, FlowControl::Pause)]);
        ledger.release(1, HELD_LIMIT);
        assert!(ledger.take_flow_control().is_empty());
        ledger.release(1, HELD_LIMIT / 2 + 4);
        assert_eq!(ledger.take_flow_control(), [(1, FlowControl::Resume)], "most of it is taken");
    }

    #[test]
    fn other_lanes_do_not_count_as_wanting() {
        let (mut ledger, slot) = ledger();
        ledger.begin_receive(1, &receive(slot, Lane::Barrier));
        ledger.hold(1, HELD_LIMIT + 1).expect("room");
        assert_eq!(ledger.take_flow_control(), [(1, FlowControl::Pause)]);
        assert!(ledger.needs(1));
        ledger.drop_group(slot);
        assert!(!ledger.needs(1));
    }

    #[test]
    fn accesses_that_a_group_gives_up_are_over_and_others_are_not() {
        let (mut ledger, slot) = ledger();
        (0..3).for_each(|_| ledger.begin_access(1, slot));
        ledger.groups.at_mut(slot).members[1].remote = 2;
        ledger.forget_accesses(slot, std::mem::take);
        ledger.drop_group(slot);
        assert!(ledger.needs(1), "one is under way");
        ledger.end_access(1, slot);
        assert!(!ledger.needs(1));
    }

    #[test]
    fn what_is_held_has_an_end_whatever_is_wanted() {
        let (mut ledger, slot) = ledger();
        ledger.begin_receive(1, &receive(slot, Lane::Data));
        ledger.hold(1, HELD_MOST).expect("room");
        let error = ledger.hold(1, 1).expect_err("too much").to_string();
        assert!(error.contains("with rank 1") && error.contains("by put or get"), "{error}");
    }

    #[test]
    fn messages_to_a_peer_that_wants_a_pause_wait_in_order() {
        let (mut ledger, slot) = ledger();
        let request = |tag| MessageRequest { slot, member: 1, lane: Lane::Data, tag: Tag(tag), span: Span::new(0, 8) };
        ledger.on_flow_control(1, FlowControl::Pause);
        assert!(ledger.is_stopped(1));
        ledger.put_off(1, request(1));
        ledger.put_off(1, request(2));
        assert!(ledger.needs(1) && ledger.take_off(1).is_none() && !ledger.tidy());
        ledger.on_flow_control(1, FlowControl::Resume);
        assert!(ledger.is_stopped(1), "others are before it");
        for tag in [1, 2] {
            assert_eq!(ledger.take_off(1), Some(request(tag)));
            ledger.unlend(slot);
        }
        assert!(!ledger.is_stopped(1) && !ledger.needs(1) && !ledger.tidy() && ledger.waiting() == 0);
    }
}
