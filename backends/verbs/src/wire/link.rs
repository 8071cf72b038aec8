//! One other rank of the job: the pair that connects to it, and what waits to be posted.
//!
//! Flow control: a rank has [`CREDITS`] buffers for each connected peer, and the peer sends no more than it knows to be
//! free. Freed buffers go back to the device some at a time; from then on the next message tells of them, or one of its
//! own once half of them are untold. Such a message needs no credit: at most two of them can be under way, for the peer
//! must have used half of its credits for each, and [`SPARE`] buffers are there for them. So a receive queue never runs
//! dry.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use tailback_transport::matching::{Envelope, Slot};
use tailback_transport::{Lane, Rank, Result};

use super::ids;
use super::work::{Done, Work};
use crate::ffi::{self, Access, Completions, Depths, Domain, Handle, Memory, Pair, Path, Piece};
use crate::header::{Address, LONG_HEADER};

/// Buffers for a peer's messages.
pub(super) const CREDITS: u32 = 32;
/// Buffers for its messages without credit. These go back to the device at once.
const SPARE: u32 = 4;
/// So many buffers go back to the device together. What is held back until then is less than half of the credits, so a
/// peer that has used all of them is told of the others.
const FREED: usize = 8;
/// Bytes of a buffer.
pub(super) const BUFFER: usize = 8192;
/// Requests that may be under way to a peer.
pub(super) const SENDS: u32 = 128;
/// At least every so many requests, one tells of its completion.
const SIGNAL_EVERY: u32 = 32;
/// Bytes that a request should be able to carry in itself.
const INLINE: u32 = 220;
/// Completions that one peer can cause at a time.
pub(super) const COMPLETIONS: u32 = CREDITS + SPARE + SENDS;

/// Where a link's memory has what: buffers, then a header for each request under way, then a place for fences.
const HEADERS: usize = (CREDITS + SPARE) as usize * BUFFER;
const LANDING: usize = HEADERS + SENDS as usize * LONG_HEADER;
const MEMORY: usize = LANDING + 8;

/// Where the payload under way goes.
#[derive(Debug)]
pub(super) enum Incoming {
    /// None is under way: a header is next.
    Header,
    /// Into a segment, as the receive on this lane asks.
    Into { slot: Slot, offset: usize, left: usize, lane: Lane },
    /// Into a buffer, because no receive or no group waits for it yet.
    Hold { envelope: Envelope, data: Vec<u8> },
    /// Nowhere: its group was dropped.
    Discard { left: usize },
}

impl Incoming {
    /// Bytes of payload that are still to come.
    pub(super) fn left(&self) -> usize {
        match self {
            Incoming::Header => 0,
            Incoming::Into { left, .. } | Incoming::Discard { left } => *left,
            Incoming::Hold { envelope, data } => envelope.len - data.len(),
        }
    }
}

/// A pair and what belongs to it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) pair: Pair,
    pub(super) handle: Handle,
    pub(super) memory: Memory,
    /// The number of the first packet this rank sends.
    pub(super) first: u32,
    /// This end is connected.
    pub(super) connected: bool,
    /// The peer's end is: only then is anything posted, since what an unconnected end gets is lost.
    pub(super) heard: bool,
    /// Since when this rank tries to connect, and when it last said so.
    pub(super) since: Instant,
    pub(super) greeted: Option<Instant>,
    pub(super) greetings: u32,
    /// What the requests under way complete, in order.
    under_way: VecDeque<Done>,
    /// The numbers of the next request, and of the next one to complete.
    next: u32,
    first_open: u32,
    unsignalled: u32,
    /// Buffers of the peer's known to be free.
    pub(super) credits: u32,
    /// Buffers of this rank's that were freed and are not yet the device's.
    freed: Vec<u32>,
    /// Buffers of this rank's that were given back and not yet told.
    pub(super) owed: u32,
    pub(super) incoming: Incoming,
}

impl Link {
    /// A pair with its buffers posted, not connected yet.
    pub(super) fn new(
        domain: &Rc<Domain>,
        completions: &Rc<Completions>,
        path: &Path,
        first: u32,
        rank: Rank,
    ) -> Result<Link> {
        let depths = Depths { sends: SENDS, receives: CREDITS + SPARE, inline: INLINE };
        let link = Link {
            pair: Pair::new(domain, completions, depths, path.port, rank)?,
            handle: Handle::new(domain, path, rank)?,
            memory: ffi::memory(domain, MEMORY, Access::Own)?,
            first,
            connected: false,
            heard: false,
            since: Instant::now(),
            greeted: None,
            greetings: 0,
            under_way: VecDeque::with_capacity(SENDS as usize),
            next: 0,
            first_open: 0,
            unsignalled: 0,
            credits: CREDITS,
            freed: Vec::with_capacity(FREED),
            owed: 0,
            incoming: Incoming::Header,
        };
        (0..CREDITS + SPARE).try_for_each(|buffer| link.repost(rank, buffer))?;
        Ok(link)
    }

    /// The payload of a buffer was taken: it goes back to the device with others.
    #[inline]
    pub(super) fn free(&mut self, rank: Rank, buffer: u32) -> Result<()> {
        self.freed.push(buffer);
        if self.freed.len() < FREED {
            return Ok(());
        }
        self.freed.iter().try_for_each(|&buffer| self.repost(rank, buffer))?;
        self.freed.clear();
        self.owed += FREED as u32;
        Ok(())
    }

    /// Gives a buffer back to the device.
    pub(super) fn repost(&self, rank: Rank, buffer: u32) -> Result<()> {
        let piece = ffi::piece(&self.memory, buffer as usize * BUFFER, BUFFER);
        self.pair.receive(ids::receive(rank, buffer), piece)
    }

    /// Whether another request can be posted.
    pub(super) fn has_room(&self) -> bool {
        self.heard && self.under_way.len() < SENDS as usize
    }

    /// Whether all requests are known to be complete.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Notes a request that is about to be posted, and gives its number and whether it tells of its completion.
    pub(super) fn begin(&mut self, done: Done, signalled: bool) -> (u32, bool) {
        self.under_way.push_back(done);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.unsignalled += 1;
        let signalled = signalled || self.unsignalled >= SIGNAL_EVERY;
        if signalled {
            self.unsignalled = 0;
        }
        (number, signalled)
    }

    /// The oldest request up to `number`, which is complete with it: requests of a pair complete in order.
    pub(super) fn complete_up_to(&mut self, number: u32) -> Option<Done> {
        // Distances instead of an order, since numbers begin again.
        if number.wrapping_sub(self.first_open) >= SENDS {
            return None;
        }
        self.first_open = self.first_open.wrapping_add(1);
        self.under_way.pop_front()
    }

    /// The header's place for the request with this number: free, since there are no more requests than places.
    pub(super) fn stage(&mut self, number: u32, header: &[u8]) -> Piece {
        let place = HEADERS + (number % SENDS) as usize * LONG_HEADER;
        self.memory.write(place, header);
        ffi::piece(&self.memory, place, header.len())
    }

    /// Where a fence's byte goes.
    pub(super) fn landing(&self) -> Piece {
        ffi::piece(&self.memory, LANDING, 1)
    }

    /// Takes the freed buffers to tell the peer of.
    pub(super) fn take_owed(&mut self) -> u32 {
        std::mem::take(&mut self.owed)
    }

    /// Whether the peer should be told even without a message.
    pub(super) fn owes_much(&self) -> bool {
        self.owed >= CREDITS / 2
    }
}

/// How a peer is reached.
#[derive(Debug)]
pub(super) enum Route {
    /// Not yet.
    Idle,
    /// By a pair that is connected or will be.
    Linked(Box<Link>),
    /// No more, and why.
    Lost(String),
}

/// One other rank.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: Address,
    pub(super) route: Route,
    /// What waits to be posted.
    pub(super) out: VecDeque<Work>,
    /// Bytes of messages among that.
    pub(super) queued: usize,
}

impl Peer {
    /// A peer not yet reached.
    pub(super) fn new(address: Address) -> Peer {
        Peer { address, route: Route::Idle, out: VecDeque::new(), queued: 0 }
    }

    /// Whether there is anything to post: work, or a word about freed buffers.
    #[inline]
    pub(super) fn wants_pump(&self) -> bool {
        !self.out.is_empty() || matches!(&self.route, Route::Linked(link) if link.owes_much())
    }
}
