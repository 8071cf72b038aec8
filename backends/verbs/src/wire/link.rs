//! One other rank of the job on one rail: the pair that connects to it, and what waits to be posted. Its buffers and credits are
//! [`super::window`]'s.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use tailback_engine::Lane;
use tailback_engine::matching::{Envelope, Slot};
use tailback_transport::{Rank, Result};

use super::buffers::Buffers;
use super::endpoint::{Endpoint, first_packet};
use super::ids;
use super::window::Window;
use super::work::{Done, Work};
use crate::ffi::{self, Depths, Domain, Handle, Pair, Piece};
use crate::header::{Address, LONG_HEADER};

/// At least every so many requests, one tells of its completion.
const SIGNAL_EVERY: u32 = 32;
/// Bytes that a request should be able to carry in itself.
const INLINE: u32 = 220;
/// Bytes for fences.
const LANDING: usize = 8;

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
pub(super) struct Connection {
    pub(super) pair: Pair,
    pub(super) handle: Handle,
    pub(super) buffers: Buffers,
    pub(super) window: Window,
    /// The peer's number, and the rail that is part of it.
    peer: usize,
    pub(super) rail: usize,
    /// Bytes of a buffer of the peer's.
    pub(super) piece_len: usize,
    /// The longest message of this rank's port.
    pub(super) longest: usize,
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
    /// Requests that may be under way.
    sends: u32,
    /// Where a header for each of them is, in the first memory of the buffers; behind that, a place for fences.
    headers: usize,
    /// Buffers of this rank's that were freed and are not yet the device's.
    freed: Vec<u32>,
    pub(super) incoming: Incoming,
}

impl Connection {
    /// A pair on this end with the rank of a peer, whose address that is: its buffers posted, not connected yet.
    pub(super) fn new(endpoint: &Endpoint, address: &Address, peer: usize, rank: Rank) -> Result<Connection> {
        let Endpoint { domain, completions, sizes, .. } = endpoint;
        let path = endpoint.path(address);
        let depths = Depths { sends: sizes.sends, receives: sizes.most + sizes.spare, inline: INLINE };
        let count = sizes.first + sizes.spare;
        let behind = sizes.sends as usize * LONG_HEADER + LANDING;
        let link = Connection {
            pair: Pair::new(domain, completions, depths, path.port, rank)?,
            handle: Handle::new(domain, &path, rank)?,
            buffers: Buffers::new(domain, sizes.buffer, count, behind)?,
            window: Window::new(sizes, address.credits),
            peer,
            rail: endpoint.rail,
            piece_len: address.buffer as usize,
            longest: endpoint.choice.port.max_message as usize,
            first: first_packet(),
            connected: false,
            heard: false,
            since: Instant::now(),
            greeted: None,
            greetings: 0,
            under_way: VecDeque::with_capacity(sizes.sends as usize),
            next: 0,
            first_open: 0,
            unsignalled: 0,
            sends: sizes.sends,
            headers: count as usize * sizes.buffer,
            freed: Vec::new(),
            incoming: Incoming::Header,
        };
        (0..count).try_for_each(|buffer| link.repost(buffer))?;
        Ok(link)
    }

    /// The payload of a buffer was taken: it goes back to the device with others.
    #[inline]
    pub(super) fn free(&mut self, buffer: u32) -> Result<()> {
        self.freed.push(buffer);
        if self.freed.len() < self.window.batch() {
            return Ok(());
        }
        self.freed.iter().try_for_each(|&buffer| self.repost(buffer))?;
        self.window.give(self.freed.len() as u32);
        self.freed.clear();
        Ok(())
    }

    /// Gives a buffer back to the device.
    pub(super) fn repost(&self, buffer: u32) -> Result<()> {
        self.pair.receive(ids::receive(self.peer, buffer), self.buffers.piece(buffer))
    }

    /// More buffers for the peer.
    pub(super) fn grow(&mut self, domain: &Rc<Domain>, by: u32) -> Result<()> {
        let added = self.buffers.add(domain, by)?;
        added.into_iter().try_for_each(|buffer| self.repost(buffer))?;
        self.window.grow(by);
        Ok(())
    }

    /// Whether another request can be posted.
    pub(super) fn has_room(&self) -> bool {
        self.heard && self.under_way.len() < self.sends as usize
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
        if number.wrapping_sub(self.first_open) >= self.sends {
            return None;
        }
        self.first_open = self.first_open.wrapping_add(1);
        self.under_way.pop_front()
    }

    /// The header's place for the request with this number: free, since there are no more requests than places.
    pub(super) fn stage(&mut self, number: u32, header: &[u8]) -> Piece {
        let place = self.headers + (number & (self.sends - 1)) as usize * LONG_HEADER;
        let memory = self.buffers.first_mut();
        memory.write(place, header);
        ffi::piece(memory, place, header.len())
    }

    /// Where a fence's byte goes.
    pub(super) fn landing(&self) -> Piece {
        ffi::piece(self.buffers.first(), self.headers + self.sends as usize * LONG_HEADER, 1)
    }
}

/// How a peer is reached.
#[derive(Debug)]
pub(super) enum Route {
    /// Not yet.
    Idle,
    /// By a pair that is connected or will be.
    Linked(Box<Connection>),
    /// No more, and why.
    Lost(String),
}

/// One other rank on one rail.
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
        !self.out.is_empty() || matches!(&self.route, Route::Linked(link) if link.window.owes_much())
    }
}
