//! All connections of a rank.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use socket2::Socket;

use tailback_engine::matching::{Kinds, Ledger, Rails};
use tailback_host::WaitMode;
use tailback_transport::{Error, Rank, Result};

use super::peer::{Far, Half, Incoming, Peer, Route, Then};
use crate::header::Header;
use tailback_bootstrap::Secret;

/// The epoll tokens of listeners: `LISTENER` plus their rail. Peers have their number, half-open connections `HALF` plus their
/// slot.
pub(super) const LISTENER: u64 = 1 << 63;
pub(super) const HALF: u64 = 1 << 32;

/// This rank's end of its connections on one rail.
#[derive(Clone, Debug)]
pub struct LocalEnd {
    /// Where they start.
    pub address: IpAddr,
    /// The interface that has that address.
    pub interface: String,
    /// The traffic class byte of what it sends; 0 leaves it to the system.
    pub traffic_class: u8,
    /// How it reacts to congestion; `None` leaves it to the system.
    pub congestion_control: Option<String>,
    /// The interface by which everything leaves for other hosts; `None` leaves it to the system's routes.
    pub device: Option<String>,
}

/// Where others knock on one rail.
pub(super) struct Listener {
    pub(super) socket: Socket,
    /// Whether somebody may have.
    pub(super) ready: bool,
}

/// See [`super`].
pub struct TcpWire {
    pub(super) secret: Secret,
    pub(super) wait: WaitMode,
    pub(super) rails: Rails,
    /// One per rail, as the listeners.
    pub(super) local: Vec<LocalEnd>,
    pub(super) listeners: Vec<Listener>,
    pub(super) epoll: OwnedFd,
    pub(super) events: Vec<epoll::Event>,
    pub(super) peers: Vec<Peer>,
    /// Where ranks connect from, as they told.
    pub(super) sources: HashSet<IpAddr>,
    /// Peers with a link.
    pub(super) up: Vec<u32>,
    /// Peers whose link has something to read.
    pub(super) ready: Vec<u32>,
    /// Peers whose outbox holds small puts back.
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
    /// The wire of a rank with these ends and their listeners, one per rail; `addresses` has every rank's, in rank order.
    pub fn new(
        ends: Vec<(Socket, LocalEnd)>,
        addresses: &[Vec<SocketAddr>],
        secret: Secret,
        wait: WaitMode,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed("epoll_create", None, e))?;
        let interest = epoll::EventFlags::IN | epoll::EventFlags::ET;
        for (rail, (listener, _)) in ends.iter().enumerate() {
            epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER + rail as u64), interest)
                .map_err(|e| failed("epoll_ctl", None, e))?;
        }
        let rails = Rails::new(ends.len());
        let (listeners, local) = ends.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        // A number that is nobody's has an address that nobody asks for.
        let address = |peer: usize| addresses[rails.rank(peer)][rails.rail(peer).min(local.len() - 1)];
        Ok(TcpWire {
            secret,
            wait,
            rails,
            listeners: listeners.into_iter().map(|socket| Listener { socket, ready: true }).collect(),
            epoll,
            events: Vec::with_capacity(64),
            peers: (0..rails.peers(addresses.len())).map(|peer| Peer::new(address(peer))).collect(),
            sources: addresses.iter().flatten().map(|address| address.ip().to_canonical()).collect(),
            local,
            up: Vec::new(),
            ready: Vec::new(),
            corked: Vec::new(),
            halves: Vec::new(),
            connecting: 0,
            strangers: 0,
            rounds: 0,
        })
    }

    /// Where this rank listens, on its first rail.
    ///
    /// # Panics
    /// If the system does not say.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        let address = self.listeners[0].socket.local_addr().expect("a listener's address");
        address.as_socket().expect("an address of IP")
    }

    /// The connection to `peer` ended: an error if anything still needs it, else noted for whoever will.
    pub(super) fn lose(&mut self, books: &mut Books, peer: usize, detail: impl Into<String>) -> Result<()> {
        let number = peer as u32;
        self.up.retain(|&of| of != number);
        self.ready.retain(|&of| of != number);
        let lost = Route::Lost(detail.into() + &self.rail_text(peer));
        let route = std::mem::replace(&mut self.peers[peer].route, lost);
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

    /// The peer's rank.
    pub(super) fn rank(&self, peer: usize) -> Rank {
        Rank::from(self.rails.rank(peer))
    }

    /// This rank's end on the peer's rail.
    pub(super) fn local(&self, peer: usize) -> &LocalEnd {
        &self.local[self.rails.rail(peer)]
    }

    /// Which rail a connection was on, where there are several.
    fn rail_text(&self, peer: usize) -> String {
        let LocalEnd { address, interface, .. } = self.local(peer);
        match self.rails.count() {
            1 => String::new(),
            _ => format!("; rail {}, {address} on {interface}", self.rails.rail(peer)),
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
