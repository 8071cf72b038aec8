//! What is open: per lane for those who wait, per member for memory that is still needed, per peer for the day it is lost.
//! And what is held, with its bound.
//!
//! Every count goes up in one place and down in one place. A group that is dropped takes its share with it; what is under
//! way at that time ends as if the group were still there.

use std::collections::VecDeque;
use std::fmt;

use tailback_transport::{Error, Rank, Result, Span};

use super::groups::Groups;
use super::kinds::{Kinds, Parcel, Slot, Word};
use super::rails::Rails;
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
    wanted: usize,
    /// Bytes that arrived and that nothing asked for yet.
    held: usize,
    /// This rank told the peer to pause.
    hushed: bool,
    /// The peer told this rank to pause.
    paused: bool,
    /// Messages of the kernel's wait for their turn, or would have to.
    stopped: bool,
    /// Those messages.
    backlog: VecDeque<Parcel>,
}

/// See the module.
pub struct Ledger<K: Kinds> {
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
    words: Vec<(usize, Word)>,
    /// Peers with a backlog.
    waiting: Vec<usize>,
    /// Whether `words` or `waiting` has anything that can be done.
    pub(super) chores: bool,
    /// Sends, receives and accesses that were ended.
    pub(super) completions: u64,
    closing: bool,
}

impl<K: Kinds> Ledger<K> {
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
            words: Vec::new(),
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
    pub fn begin_send(&mut self, peer: usize, parcel: &Parcel) {
        let seat = self.rails.seat(parcel.member, peer);
        let group = self.groups.at_mut(parcel.slot);
        group.pending[parcel.lane as usize] += 1;
        group.members[seat].sending[parcel.lane as usize] += 1;
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
    pub(super) fn begin_receive(
        &mut self,
        peer: usize,
        slot: Slot,
        member: Rank,
        parcel: (Lane, tailback_transport::Tag, Span),
    ) {
        let (lane, tag, span) = parcel;
        let seat = self.rails.seat(member.0, peer);
        let group = self.groups.at_mut(slot);
        group.members[seat].post(lane, tag, span);
        group.pending[lane as usize] += 1;
        if !self.is_me(peer) {
            let account = &mut self.accounts[peer];
            account.open += 1;
            account.wanted += usize::from(lane == Lane::Data);
            if account.hushed {
                self.tell(peer, Word::Resume);
            }
        }
    }

    /// A receive is complete.
    #[inline]
    pub(super) fn end_receive(&mut self, peer: usize, slot: Slot, lane: Lane) {
        self.groups.at_mut(slot).pending[lane as usize] -= 1;
        let account = &mut self.accounts[peer];
        account.open -= 1;
        account.wanted -= usize::from(lane == Lane::Data);
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
    pub(super) fn forget_accesses(&mut self, slot: Slot, forget: impl Fn(&mut K::Far) -> usize) {
        let group = self.groups.at_mut(slot);
        let rails = self.rails;
        let open: Vec<_> = (group.members.iter_mut().enumerate())
            .map(|(seat, member)| {
                (rails.peer(group.ranks[rails.rank(seat)].index(), rails.rail(seat)), &mut member.far)
            })
            .map(|(peer, far)| (peer, forget(far)))
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
        for (peer, (receives, wanted), held) in shares {
            let account = &mut self.accounts[peer];
            account.open -= receives;
            account.wanted -= wanted;
            self.release(peer, held);
        }
        self.groups.drop_group(slot);
    }

    /// Bytes of `peer` that nothing asked for begin to arrive.
    pub(super) fn hold(&mut self, peer: usize, bytes: usize) -> Result<()> {
        self.held += bytes;
        let account = &mut self.accounts[peer];
        account.held += bytes;
        if account.held > HELD_LIMIT && account.wanted == 0 && !account.hushed {
            self.tell(peer, Word::Pause);
        }
        if self.held > HELD_MOST { Err(self.too_much(peer)) } else { Ok(()) }
    }

    /// They were taken, or are of no use to anyone.
    pub(super) fn release(&mut self, peer: usize, bytes: usize) {
        self.held -= bytes;
        let account = &mut self.accounts[peer];
        account.held -= bytes;
        if account.hushed && account.held < HELD_LIMIT / 2 {
            self.tell(peer, Word::Resume);
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
    fn tell(&mut self, peer: usize, word: Word) {
        self.accounts[peer].hushed = word == Word::Pause;
        self.words.push((peer, word));
        self.chores = true;
    }

    /// What is to be said next, in order.
    pub(super) fn take_words(&mut self) -> Vec<(usize, Word)> {
        std::mem::take(&mut self.words)
    }

    /// `peer` said so about this rank's messages.
    pub fn heard(&mut self, peer: usize, word: Word) {
        let account = &mut self.accounts[peer];
        account.paused = word == Word::Pause;
        account.stopped = account.paused || !account.backlog.is_empty();
        self.chores |= !account.backlog.is_empty();
    }

    /// Whether a message of the kernel's to `peer` has to wait.
    #[inline]
    pub(super) fn is_stopped(&self, peer: usize) -> bool {
        self.accounts[peer].stopped
    }

    /// Lets a message wait for its turn.
    pub(super) fn put_off(&mut self, peer: usize, parcel: Parcel) {
        self.begin_send(peer, &parcel);
        let account = &mut self.accounts[peer];
        if account.backlog.is_empty() {
            self.waiting.push(peer);
        }
        account.stopped = true;
        account.backlog.push_back(parcel);
        self.chores = true;
    }

    /// The first message to `peer` that waits and need not; it is no longer in the books, but for its use of the segment.
    pub(super) fn take_off(&mut self, peer: usize) -> Option<Parcel> {
        let account = &mut self.accounts[peer];
        let parcel = if account.paused { None } else { account.backlog.pop_front() };
        account.stopped = account.paused || !account.backlog.is_empty();
        let parcel = parcel?;
        self.groups.at_mut(parcel.slot).hold();
        self.end_send(peer, parcel.slot, parcel.member, parcel.lane);
        Some(parcel)
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

impl<K: Kinds> fmt::Debug for Ledger<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("me", &self.me).field("held", &self.held).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
