//! What the engine asks of the wire.

use std::time::{Duration, Instant};

use tailback_engine::Segment;
use tailback_engine::matching::{Found, Ledger, Parcel, Slot, Wire, Word};
use tailback_host::Idle;
use tailback_transport::{Description, Rank, Result, Span};

use super::link::Route;
use super::state::{Books, VerbsWire};
use super::work::{AccessKind, Far, Key, Work};
use crate::ffi::{self, Regions};
use crate::header::{Header, Message, POSITIONS};

/// Calls with nothing to wait for serve peers once in so many.
const GLANCE_EVERY: u32 = 16;

/// How long a rank that ends waits for what it sent to arrive: long enough for the device to say it once more. A peer
/// that ended first does not answer at all.
const LINGER: Duration = Duration::from_millis(400);

impl Wire for VerbsWire {
    const LONGEST: usize = usize::MAX;
    const MEMBERS: usize = POSITIONS;

    fn describe(&self, description: &mut Description) {
        for (rail, endpoint) in self.endpoints.iter().enumerate() {
            let key = Description::rail_key(rail, "completion_queue_entries");
            description.details.insert(key, endpoint.queue_text());
        }
        description.details.insert("eager_windows".into(), self.windows_text());
    }

    fn segment(&mut self, len: usize) -> Result<Segment<Regions>> {
        ffi::shared(self.endpoints.iter().map(|of| &of.domain), len)
    }

    /// Queues a message and posts as much of it as goes.
    #[inline]
    fn send(&mut self, books: &mut Ledger<Self>, peer: usize, parcel: Parcel) -> Result<()> {
        if self.send_at_once(books, peer, &parcel)? {
            return Ok(());
        }
        self.reach(books, peer)?;
        books.begin_send(peer, &parcel);
        self.submit(books, peer, Work::Send { parcel, at: 0, begun: false })
    }

    #[inline]
    fn waiting(&self, peer: usize) -> usize {
        self.peers[peer].queued
    }

    fn say(&mut self, books: &mut Ledger<Self>, peer: usize, word: Word) -> Result<()> {
        self.submit(books, peer, Work::Say(Header { message: Message::Word(word), from: 0, group: 0, length: 0 }))
    }

    /// Queues an RDMA write.
    #[inline]
    fn put(
        &mut self,
        books: &mut Ledger<Self>,
        peer: usize,
        (slot, to): (Slot, Rank),
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.access(books, peer, (slot, to), AccessKind::Put, local, remote)?;
        let seat = books.rails.seat(to.0, peer);
        books.groups.at_mut(slot).members[seat].far.unfenced |= local.len > 0;
        Ok(())
    }

    /// Queues an RDMA read.
    #[inline]
    fn get(
        &mut self,
        books: &mut Ledger<Self>,
        peer: usize,
        far: (Slot, Rank),
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.access(books, peer, far, AccessKind::Get, local, remote)
    }

    /// Sends a fence if a put was made since the last.
    #[inline]
    fn ask_flush(&mut self, books: &mut Ledger<Self>, peer: usize, (slot, to): (Slot, Rank)) -> Result<()> {
        let seat = books.rails.seat(to.0, peer);
        if std::mem::take(&mut books.groups.at_mut(slot).members[seat].far.unfenced) {
            self.queue(books, peer, (slot, to), Work::Fence { slot, member: to.0 })?;
        }
        let lost = matches!(self.peers[peer].route, Route::Lost(_)) && books.needs(peer);
        if lost { Err(self.lost(books, peer)) } else { Ok(()) }
    }

    #[inline]
    fn accesses(far: &Far) -> u64 {
        far.accesses
    }

    #[inline]
    fn over(far: &Far) -> u64 {
        far.over
    }

    #[inline]
    fn progress(&mut self, books: &mut Ledger<Self>, idle: Idle) -> Result<()> {
        self.advance(books, idle)
    }

    fn listen(&mut self, books: &mut Ledger<Self>, peer: usize) -> Result<()> {
        self.poll(books, self.rails.rail(peer)).map(drop)
    }

    #[inline]
    fn glance(&mut self, books: &mut Ledger<Self>) -> Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(GLANCE_EVERY) {
            return self.advance(books, Idle::Return);
        }
        Ok(())
    }

    fn serve(&mut self, books: &mut Ledger<Self>, peer: usize, found: Found, request: Header, _: &[u8]) -> Result<()> {
        self.request(books, peer, found, request)?;
        self.pump(books, peer)
    }

    #[inline]
    fn loss(&self, peer: usize) -> Option<&str> {
        match &self.peers[peer].route {
            Route::Lost(detail) => Some(detail),
            _ => None,
        }
    }

    /// What is being held is a few buffers: it goes on being held until it is whole.
    #[inline]
    fn wanted(&mut self, _: &mut Ledger<Self>, _: usize) -> Result<()> {
        Ok(())
    }

    /// Only what waits for an answer: work that is queued already still needs to know where to go.
    fn forget(far: &mut Far) -> usize {
        match &mut far.key {
            Key::Asked(work) => work.drain(..).count(),
            Key::Known { .. } | Key::Unknown => 0,
        }
    }

    /// What this rank said last has to arrive, although nobody here waits for it any more.
    fn close(&mut self, books: &mut Ledger<Self>) {
        let limit = Instant::now() + LINGER;
        if (0..self.peers.len()).any(|peer| self.say_farewell(books, peer).is_err()) {
            return;
        }
        while self.has_under_way() && Instant::now() < limit {
            if self.advance(books, Idle::Wait).is_err() {
                return;
            }
        }
    }
}

impl VerbsWire {
    /// Queues a put or a get.
    #[inline]
    fn access(
        &mut self,
        books: &mut Books,
        peer: usize,
        (slot, member): (Slot, Rank),
        kind: AccessKind,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        if local.len > 0 && self.access_at_once(books, peer, (slot, member), kind, local, remote)? {
            return Ok(());
        }
        self.reach(books, peer)?;
        if local.len == 0 {
            return Ok(());
        }
        let work = Work::Access { kind, slot, member: member.0, local, remote, at: 0 };
        self.queue(books, peer, (slot, member), work)
    }

    /// Queues work on a member's segment, once it is known where that is.
    fn queue(&mut self, books: &mut Books, peer: usize, (slot, member): (Slot, Rank), work: Work) -> Result<()> {
        books.begin_access(peer, slot);
        let seat = books.rails.seat(member.0, peer);
        let group = books.groups.at_mut(slot);
        let (id, rank) = (group.id, group.rank);
        let far = &mut group.members[seat].far;
        far.begin();
        match &mut far.key {
            Key::Known { .. } => self.submit(books, peer, work),
            Key::Asked(waiting) => {
                waiting.push(work);
                Ok(())
            }
            Key::Unknown => {
                far.key = Key::Asked(vec![work]);
                let request = Header { message: Message::KeyRequest, from: rank, group: id, length: 0 };
                self.submit(books, peer, Work::Say(request))
            }
        }
    }
}
