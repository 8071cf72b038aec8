//! One other rank of the job on one rail: the connection to it, what waits to be written, and how much is open with it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use socket2::Socket;

use tailback_bootstrap::handshake::{AcceptorSide, InitiatorSide};
use tailback_engine::Lane;
use tailback_engine::matching::{Envelope, Slot};
use tailback_transport::Span;

use super::outbox::Outbox;
use crate::header::Header;

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
    Hold { what: Held, len: usize, data: Vec<u8>, filled: usize },
    /// Nowhere: its group was dropped.
    Discard { left: usize },
}

/// What a payload belongs to that nothing waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A message without a receive.
    Message(Envelope),
    /// A put into a segment that does not exist yet.
    Put(Header),
}

/// What is complete when a payload has arrived in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// A receive on this lane.
    Receive(Lane),
    /// A get from the member at this position, with which so many accesses to it are over.
    Get { member: u32, completed: u64 },
    /// A peer's put, which only the peer waits for.
    Put,
}

/// An authenticated connection.
#[derive(Debug)]
pub struct Connection {
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

impl Connection {
    /// A fresh link over an authenticated socket.
    pub fn new(socket: Socket) -> Self {
        let stage = vec![0; STAGE].into_boxed_slice();
        Connection {
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
    Up(Box<Connection>),
    /// The connection ended, and how.
    Lost(String),
}

/// One other rank on one rail.
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
    /// Connection attempts that ended before a verdict, and when the first of them began.
    pub attempts: (u32, Option<Instant>),
}

impl Peer {
    /// A peer not yet reached.
    pub fn new(address: SocketAddr) -> Self {
        Peer { address, route: Route::Idle, out: Outbox::default(), corked: false, attempts: (0, None) }
    }
}

/// What this rank has open with a member's segment.
#[derive(Debug, Default)]
pub struct RemoteSegment {
    /// Puts and gets made.
    pub accesses: u64,
    /// So many of the first of them are over.
    pub completed: u64,
    /// What was asked and whose answer has not begun to arrive. Answers come in that order.
    pub asked: VecDeque<Asked>,
    /// Whether a put was made since the last flush request.
    pub unflushed: bool,
    /// Flush requests sent.
    pub flushes: u64,
}

/// A question about a member's segment; when it is answered, so many of the first accesses are `over`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// For these bytes.
    Get { into: Span, completed: u64 },
    /// Whether it has all puts.
    Flush { counter: u64, completed: u64 },
}

/// A connection that is not yet trusted.
#[derive(Debug)]
pub struct Half {
    pub socket: Socket,
    /// The other end.
    pub address: IpAddr,
    pub stage: Stage,
    /// When it was made.
    pub begun: Instant,
}

impl Half {
    /// The peer, if this rank started it.
    pub fn ours(&self) -> Option<usize> {
        match self.stage {
            Stage::Connecting { to } | Stage::Ours { to, .. } => Some(to),
            Stage::Theirs { .. } => None,
        }
    }

    /// Since when another rank that started it has to say something.
    pub fn theirs_since(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Theirs { handshake, .. } => Some(handshake.since),
            _ => None,
        }
    }
}

/// How far it is.
#[derive(Debug)]
pub enum Stage {
    /// This rank's, and not established.
    Connecting { to: usize },
    /// This rank's, proving.
    Ours { to: usize, handshake: InitiatorSide },
    /// Another rank's, on this rail, proving.
    Theirs { rail: usize, handshake: AcceptorSide },
}
