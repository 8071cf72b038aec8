//! All connections of a rank.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use socket2::Socket;

use tailback_transport::matching::{Kinds, Ledger};
use tailback_transport::{Error, Rank, Result, WaitMode};

use super::peer::{Far, Half, Incoming, Peer, Route, Then};
use crate::header::Header;
use crate::secret::Secret;

/// The epoll token of the listener; peers have their rank, half-open connections `HALF` plus their slot.
pub(super) const LISTENER: u64 = u64::MAX;
pub(super) const HALF: u64 = 1 << 32;

/// This rank's end of its connections.
#[derive(Clone, Debug)]
pub struct LocalEnd {
    /// Where they start.
    pub address: IpAddr,
    /// The traffic class byte of what it sends; 0 leaves it to the system.
    pub traffic_class: u8,
    /// How it reacts to congestion; `None` leaves it to the system.
    pub congestion_control: Option<String>,
    /// The interface by which everything leaves for other hosts; `None` leaves it to the system's routes.
    pub device: Option<String>,
}

/// See [`super`].
pub struct TcpWire {
    pub(super) secret: Secret,
    pub(super) wait: WaitMode,
    pub(super) local: LocalEnd,
    pub(super) listener: Socket,
    pub(super) listener_ready: bool,
    pub(super) epoll: OwnedFd,
    pub(super) events: Vec<epoll::Event>,
    pub(super) peers: Vec<Peer>,
    /// Ranks with a link.
    pub(super) up: Vec<u32>,
    /// Ranks whose link has something to read.
    pub(super) ready: Vec<u32>,
    /// Ranks whose outbox holds small puts back.
    pub(super) corked: Vec<u32>,
    pub(super) halves: Vec<Option<Half>>,
    /// How many of `halves` this rank started.
    pub(super) connecting: usize,
    /// How many of `halves` others started.
    pub(super) strangers: usize,
    pub(super) rounds: u32,
}

impl Kinds for TcpWire {
    type Registration = ();
    type Far = Far;
    type Request = Header;
}

/// The books of a rank that talks over sockets.
pub(super) type Books = Ledger<TcpWire>;

impl TcpWire {
    /// The wire of a rank that listens on `listener`; `addresses` has every rank's, in rank order.
    pub fn new(
        listener: Socket,
        local: LocalEnd,
        addresses: &[SocketAddr],
        secret: Secret,
        wait: WaitMode,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed("epoll_create", None, e))?;
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), interest)
            .map_err(|e| failed("epoll_ctl", None, e))?;
        Ok(TcpWire {
            secret,
            wait,
            local,
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
            rounds: 0,
        })
    }

    /// The connection to `peer` ended: an error if anything still needs it, else noted for whoever will.
    pub(super) fn lose(&mut self, books: &mut Books, peer: usize, detail: impl Into<String>) -> Result<()> {
        let rank = peer as u32;
        self.up.retain(|&r| r != rank);
        self.ready.retain(|&r| r != rank);
        let route = std::mem::replace(&mut self.peers[peer].route, Route::Lost(detail.into()));
        if let Route::Up(link) = route
            && let Incoming::Into { slot, then: Then::Put, .. } = link.incoming
        {
            books.unlend(slot);
        }
        self.forget_output(books, peer);
        if books.needs(peer) { Err(self.lost(books, peer)) } else { Ok(()) }
    }

    /// Empties an outbox that will never be written; open operations stay open, so that they are reported.
    pub(super) fn forget_output(&mut self, books: &mut Books, peer: usize) {
        let mut all = usize::MAX;
        while let Some(ends) = self.peers[peer].out.take(&mut all) {
            if let Some(ends) = ends {
                books.unlend(ends.slot());
            }
        }
    }

    /// The error for an operation that needs a lost peer.
    pub(super) fn lost(&self, books: &Books, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "connection closed".into(),
        };
        books.lost(peer, detail)
    }
}

impl fmt::Debug for TcpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpWire").field("connected", &self.up.len()).finish_non_exhaustive()
    }
}

pub(super) fn failed(operation: &'static str, peer: Option<Rank>, source: impl Into<io::Error>) -> Error {
    Error::Io { operation, peer, source: source.into() }
}
