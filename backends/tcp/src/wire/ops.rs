//! What the engine asks of the wire.

use std::time::{Duration, Instant};

use tailback_engine::Segment;
use tailback_engine::matching::{Found, Ledger, Parcel, Slot, Wire, Word};
use tailback_host::{Idle, WaitMode};
use tailback_transport::{Rank, Result, Span};

use super::outbox::Ends;
use super::peer::{Asked, Far, Incoming, Route};
use super::progress::LOOK_EVERY_BUSY;
use super::state::{Books, TcpWire};
use super::write::SMALL;
use crate::header::{Header, MAX_LENGTH, Message};

/// Beyond this many copied bytes in a queue, even small payloads wait in their segment.
const COPY_LIMIT: usize = 256 * 1024;

/// How long a rank that ends goes on writing answers that peers wait for.
const LINGER: Duration = Duration::from_secs(2);

impl Wire for TcpWire {
    const LONGEST: usize = MAX_LENGTH as usize;
    const MEMBERS: usize = u32::MAX as usize;

    fn segment(&mut self, len: usize) -> Result<Segment> {
        Segment::plain(len)
    }

    /// Queues a message and writes as much of it as the kernel takes.
    #[inline]
    fn send(&mut self, books: &mut Ledger<Self>, peer: usize, parcel: Parcel) -> Result<()> {
        self.reach(books, peer)?;
        let Parcel { slot, member, lane, tag, span } = parcel;
        self.queue(books, slot, peer, Message::Send { lane, tag }, span);
        self.peers[peer].out.end_with_last(Ends::Send { slot, member, lane });
        books.begin_send(peer, &parcel);
        self.pump(books, peer)
    }

    #[inline]
    fn waiting(&self, peer: usize) -> usize {
        self.peers[peer].out.waiting()
    }

    fn say(&mut self, books: &mut Ledger<Self>, peer: usize, word: Word) -> Result<()> {
        self.answer(books, peer, Header { message: Message::Word(word), from: 0, group: 0, length: 0 })
    }

    /// Queues a put; a small one may wait for company until progress is made.
    fn put(
        &mut self,
        books: &mut Ledger<Self>,
        peer: usize,
        (slot, to): (Slot, Rank),
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.reach(books, peer)?;
        let seat = books.rails.seat(to.0, peer);
        let far = &mut books.groups.at_mut(slot).members[seat].far;
        far.unflushed = true;
        far.accesses += 1;
        if self.queue(books, slot, peer, Message::Put { offset: remote as u64 }, local) {
            self.peers[peer].out.end_with_last(Ends::Loan { slot });
            books.lend(slot);
        }
        if local.len <= SMALL { self.cork(books, peer) } else { self.pump(books, peer) }
    }

    /// Asks for bytes of a peer's segment.
    fn get(
        &mut self,
        books: &mut Ledger<Self>,
        peer: usize,
        (slot, from): (Slot, Rank),
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.reach(books, peer)?;
        let seat = books.rails.seat(from.0, peer);
        let group = books.groups.at_mut(slot);
        let far = &mut group.members[seat].far;
        far.accesses += 1;
        far.asked.push_back(Asked::Get { into: local, over: far.accesses });
        let message = Message::Get { offset: remote as u64 };
        let header = Header { message, from: group.rank, group: group.id, length: local.len as u64 };
        books.begin_access(peer, slot);
        self.answer(books, peer, header)
    }

    /// Asks a member whether its segment has all puts, if one was made since it was last asked.
    fn ask_flush(&mut self, books: &mut Ledger<Self>, peer: usize, (slot, to): (Slot, Rank)) -> Result<()> {
        let seat = books.rails.seat(to.0, peer);
        let group = books.groups.at_mut(slot);
        let far = &mut group.members[seat].far;
        if !far.unflushed {
            return Ok(());
        }
        if matches!(self.peers[peer].route, Route::Lost(_)) {
            return Err(self.lost(books, peer));
        }
        far.unflushed = false;
        far.flushes += 1;
        far.asked.push_back(Asked::Flush { counter: far.flushes, over: far.accesses });
        let message = Message::Flush { counter: far.flushes };
        let header = Header { message, from: group.rank, group: group.id, length: 0 };
        books.begin_access(peer, slot);
        self.answer(books, peer, header)
    }

    fn accesses(far: &Far) -> u64 {
        far.accesses
    }

    fn over(far: &Far) -> u64 {
        far.over
    }

    #[inline]
    fn progress(&mut self, books: &mut Ledger<Self>, idle: Idle) -> Result<()> {
        self.advance(books, idle)
    }

    fn listen(&mut self, books: &mut Ledger<Self>, peer: usize) -> Result<()> {
        self.read_link(books, peer).map(drop)
    }

    #[inline]
    fn glance(&mut self, books: &mut Ledger<Self>) -> Result<()> {
        if !self.corked.is_empty() || self.rounds.is_multiple_of(LOOK_EVERY_BUSY) {
            return self.advance(books, Idle::Return);
        }
        self.rounds = self.rounds.wrapping_add(1);
        Ok(())
    }

    fn serve(
        &mut self,
        books: &mut Ledger<Self>,
        peer: usize,
        found: Found,
        header: Header,
        data: &[u8],
    ) -> Result<()> {
        self.serve_early(books, peer, found, header, data)
    }

    #[inline]
    fn loss(&self, peer: usize) -> Option<&str> {
        match &self.peers[peer].route {
            Route::Lost(detail) => Some(detail),
            _ => None,
        }
    }

    #[inline]
    fn wanted(&mut self, books: &mut Ledger<Self>, peer: usize) -> Result<()> {
        match &self.peers[peer].route {
            Route::Up(link) if matches!(link.incoming, Incoming::Hold { .. }) => self.reconsider(books, peer),
            _ => Ok(()),
        }
    }

    fn forget(far: &mut Far) -> usize {
        far.asked.drain(..).count()
    }

    /// Peers may wait for answers that the kernel had no room for: they get a last chance.
    fn close(&mut self, books: &mut Ledger<Self>) {
        let end = Instant::now() + LINGER;
        self.wait = WaitMode::Block;
        while Instant::now() < end && self.up.iter().any(|&p| !self.peers[p as usize].out.is_empty()) {
            if self.kick(books).is_err() || self.poll_events(books, Duration::from_millis(10)).is_err() {
                break;
            }
        }
    }
}

impl TcpWire {
    /// Makes sure that output for `peer` will go somewhere.
    #[inline]
    fn reach(&mut self, books: &mut Books, peer: usize) -> Result<()> {
        match self.peers[peer].route {
            Route::Up(_) | Route::Connecting(_) | Route::Redirected => Ok(()),
            Route::Idle | Route::Lost(_) => self.reach_anew(books, peer),
        }
    }

    #[cold]
    fn reach_anew(&mut self, books: &mut Books, peer: usize) -> Result<()> {
        if matches!(self.peers[peer].route, Route::Idle) {
            self.connect(books, peer)?;
        }
        if matches!(self.peers[peer].route, Route::Lost(_)) { Err(self.lost(books, peer)) } else { Ok(()) }
    }

    /// Queues a header and its payload: small ones as a copy, so that both leave in one slice. Whether what waits refers
    /// to the segment.
    #[inline]
    fn queue(&mut self, books: &Books, slot: Slot, peer: usize, message: Message, span: Span) -> bool {
        let group = books.groups.at(slot);
        let header = Header { message, from: group.rank, group: group.id, length: span.len as u64 };
        let out = &mut self.peers[peer].out;
        out.stage(&header.encode());
        if span.len <= SMALL && out.staged() < COPY_LIMIT {
            out.stage(&group.segment.bytes()[span.offset..span.end()]);
            false
        } else {
            if span.len > 0 {
                out.refer(slot, span.offset, span.len);
            }
            span.len > 0
        }
    }
}
