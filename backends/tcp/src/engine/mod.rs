//! One rank's engine: every connection, every group's segment, all progress. Shared by the groups of a transport, so
//! that any call of any group serves all peers. Single-threaded; there is no progress thread.
//!
//! - `groups`: segments, matching. `peer`, `outbox`: one other rank. These hold state and do no I/O.
//! - `connect`: connections and their handshake. `write`, `read`: bytes out, bytes in. `arrive`: what headers mean.
//!   `progress`: when to do which.
//! - `post`: the operations that [`crate::TcpGroup`] offers.
//!
//! Links are registered with epoll once, edge-triggered: a connection is on the ready list from the
//! event until a read finds it dry, so that waiting costs one system call and interest never has to be changed.

mod arrive;
mod connect;
mod groups;
mod outbox;
mod peer;
mod post;
mod progress;
mod read;
mod write;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use socket2::Socket;

use tailback_transport::{Error, Rank, Result, WaitMode};

use self::connect::Half;
use self::groups::Groups;
use self::peer::{Peer, Route};
use crate::secret::Secret;

pub use self::groups::Slot;

/// The epoll token of the listener; peers have their rank, half-open connections `HALF` plus their slot.
const LISTENER: u64 = u64::MAX;
const HALF: u64 = 1 << 32;

/// How long a rank that ends goes on writing answers that peers wait for.
const LINGER: Duration = Duration::from_secs(2);

/// See the module.
pub struct Engine {
    me: Rank,
    secret: Secret,
    wait: WaitMode,
    source: IpAddr,
    listener: Socket,
    listener_ready: bool,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    peers: Vec<Peer>,
    /// Ranks with a link.
    up: Vec<u32>,
    /// Ranks whose link has something to read.
    ready: Vec<u32>,
    /// Ranks whose outbox holds small puts back.
    corked: Vec<u32>,
    halves: Vec<Option<Half>>,
    /// How many of `halves` this rank started.
    connecting: usize,
    /// How many of `halves` others started.
    strangers: usize,
    groups: Groups,
    /// Buffers for payloads that come before they are wanted.
    spare: Vec<Vec<u8>>,
    rounds: u32,
    /// The call under way, for errors.
    operation: &'static str,
}

impl Engine {
    /// The engine of rank `me`, which listens on `listener`; `addresses` has every rank's, in rank order.
    pub fn new(
        me: Rank,
        listener: Socket,
        source: IpAddr,
        addresses: &[SocketAddr],
        secret: Secret,
        wait: WaitMode,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed("epoll_create", None, e))?;
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), interest)
            .map_err(|e| failed("epoll_ctl", None, e))?;
        Ok(Engine {
            me,
            secret,
            wait,
            source,
            listener,
            listener_ready: true,
            epoll,
            events: Vec::with_capacity(64),
            peers: addresses.iter().map(|&address| Peer::new(address)).collect(),
            up: Vec::new(),
            ready: Vec::new(),
            corked: Vec::new(),
            halves: Vec::new(),
            connecting: 0,
            strangers: 0,
            groups: Groups::default(),
            spare: Vec::new(),
            rounds: 0,
            operation: "start-up",
        })
    }

    /// The connection to `peer` ended: an error if anything still needs it, else noted for whoever will.
    fn lose(&mut self, peer: usize, detail: impl Into<String>) -> Result<()> {
        let rank = peer as u32;
        self.up.retain(|&r| r != rank);
        self.ready.retain(|&r| r != rank);
        self.peers[peer].route = Route::Lost(detail.into());
        self.forget_output(peer);
        if self.peers[peer].open > 0 { Err(self.lost(peer)) } else { Ok(()) }
    }

    /// The error for an operation that needs a lost peer.
    fn lost(&self, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "connection closed".into(),
        };
        Error::PeerLost { operation: self.operation, peer: Rank::from(peer), detail }
    }

    fn protocol(&self, peer: usize, detail: impl Into<String>) -> Error {
        Error::Protocol { operation: self.operation, peer: Some(Rank::from(peer)), detail: detail.into() }
    }

    fn usage(&self, detail: impl Into<String>) -> Error {
        Error::Usage { operation: self.operation, detail: detail.into() }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connected = self.up.len();
        f.debug_struct("Engine").field("me", &self.me).field("connected", &connected).finish_non_exhaustive()
    }
}

impl Drop for Engine {
    /// Peers may wait for answers that the kernel had no room for: they get a last chance, within a time limit.
    fn drop(&mut self) {
        let end = Instant::now() + LINGER;
        self.wait = WaitMode::Block;
        self.operation = "close";
        while Instant::now() < end && self.up.iter().any(|&p| !self.peers[p as usize].out.is_empty()) {
            if self.kick().is_err() || self.poll_events(Duration::from_millis(10)).is_err() {
                break;
            }
        }
    }
}

fn failed(operation: &'static str, peer: Option<Rank>, source: impl Into<io::Error>) -> Error {
    Error::Io { operation, peer, source: source.into() }
}
