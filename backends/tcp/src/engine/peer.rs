//! One other rank of the job: the connection to it, what waits to be written, and how much is open with it.

use std::net::SocketAddr;

use socket2::Socket;

use tailback_transport::Lane;

use super::groups::Slot;
use super::outbox::Outbox;
use crate::wire::Header;

/// Bytes read at once when it is not known what comes next: small messages arrive many to a read.
pub const STAGE: usize = 8 * 1024;

/// Where the payload under way goes.
#[derive(Debug)]
pub enum Incoming {
    /// None is under way: a header is next.
    Header,
    /// Into a segment.
    Into { slot: Slot, offset: usize, left: usize, then: Then },
    /// Into a buffer, because no receive or no group waits for it yet; `data[..filled]` has arrived.
    Hold { header: Header, data: Vec<u8>, filled: usize },
    /// Nowhere: its group was dropped.
    Discard { left: usize },
}

/// What is complete when a payload has arrived in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A receive on this lane.
    Receive(Lane),
    /// A get from the member at this position.
    Get(u32),
    /// A peer's put, which only the peer waits for.
    Put,
}

/// An authenticated connection.
#[derive(Debug)]
pub struct Link {
    /// The connection. It would block: every call but the one that means to sleep says that it must not.
    pub socket: Socket,
    /// The payload being read.
    pub incoming: Incoming,
    /// Bytes read and not yet looked at are `stage[start..end]`.
    pub stage: Box<[u8]>,
    /// See `stage`.
    pub start: usize,
    /// See `stage`.
    pub end: usize,
    /// The last payload was long, so the next may be: little is staged, for it would have to be copied.
    pub long: bool,
    /// Whether the engine's list of readable connections has this one.
    pub ready: bool,
    /// The peer closed its side: read to the end rather than to the first short read.
    pub closing: bool,
    /// Whether the kernel takes more output.
    pub writable: bool,
}

impl Link {
    /// A fresh link over an authenticated socket.
    pub fn new(socket: Socket) -> Self {
        let stage = vec![0; STAGE].into_boxed_slice();
        Link {
            socket,
            incoming: Incoming::Header,
            stage,
            start: 0,
            end: 0,
            long: false,
            ready: false,
            closing: false,
            writable: true,
        }
    }
}

/// How a peer is reached.
#[derive(Debug)]
pub enum Route {
    /// Not yet.
    Idle,
    /// This rank's connection attempt, by its half-open slot.
    Connecting(usize),
    /// The peer's own attempt is to be used and has not arrived.
    Redirected,
    /// Connected.
    Up(Box<Link>),
    /// The connection ended, and how.
    Lost(String),
}

/// One other rank.
#[derive(Debug)]
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// How it is reached.
    pub route: Route,
    /// What waits to be written.
    pub out: Outbox,
    /// Whether small puts wait here for company.
    pub corked: bool,
    /// Operations of this rank that need this peer: receives, queued sends, gets, flushes.
    pub open: usize,
    /// Bytes that arrived and that nothing asked for yet.
    pub held: usize,
    /// Connection attempts that ended before a verdict.
    pub attempts: u32,
}

impl Peer {
    /// A peer not yet reached.
    pub fn new(address: SocketAddr) -> Self {
        Peer { address, route: Route::Idle, out: Outbox::default(), corked: false, open: 0, held: 0, attempts: 0 }
    }
}
