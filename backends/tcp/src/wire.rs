//! The wire under the engine: every connection, bytes out, bytes in. Serves all peers in any call.
//!
//! - `peer`, `outbox`: one other rank. These hold state and do no I/O.
//! - `connect`: connections and their handshake. `write`, `read`: bytes out, bytes in and what they mean. `progress`: when
//!   to do which.
//!
//! Links are registered with epoll once, edge-triggered: a connection is on the ready list from the
//! event until a read finds it dry, so that waiting costs one system call and interest never has to be changed.

mod connect;
mod outbox;
mod peer;
mod progress;
mod read;
mod write;

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::event::epoll;
use socket2::Socket;

use tailback_bootstrap::Secret;
use tailback_engine::Segment;
use tailback_engine::matching::{
    FlowControl, GroupLookup, GroupMember, Ledger, MessageRequest, Rails, Slot, Wire, WireTypes,
};
use tailback_host::{Idle, WaitMode};
use tailback_transport::{Error, Rank, Result, Span};

use self::outbox::Ends;
use self::peer::{Asked, Half, Incoming, Peer, RemoteSegment, Route, Then};
use crate::header::{Header, MAX_LENGTH, Message};

pub use self::connect::set_traffic_class;

/// Payloads up to this size are copied next to their header; puts up to this size may wait for company.
const SMALL: usize = 8 * 1024;

/// Rounds between looks at the listener while a connection is being proven.
const LOOK_EVERY_BUSY: u32 = 16;

/// The epoll tokens of listeners: `LISTENER` plus their rail. Peers have their number, half-open connections `HALF` plus their
/// slot.
const LISTENER: u64 = 1 << 63;
const HALF: u64 = 1 << 32;

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
struct Listener {
    socket: Socket,
    /// Whether somebody may have.
    ready: bool,
}

/// See the module.
pub struct TcpWire {
    secret: Secret,
    wait: WaitMode,
    rails: Rails,
    /// One per rail, as the listeners.
    local: Vec<LocalEnd>,
    listeners: Vec<Listener>,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    peers: Vec<Peer>,
    /// Where ranks connect from, as they told.
    sources: HashSet<IpAddr>,
    /// Peers with a link.
    up: Vec<u32>,
    /// Peers whose link has something to read.
    ready: Vec<u32>,
    /// Peers whose outbox holds small puts back.
    corked: Vec<u32>,
    halves: Vec<Option<Half>>,
    /// How many of `halves` this rank started.
    connecting: usize,
    /// How many of `halves` others started.
    strangers: usize,
    rounds: u32,
}

impl WireTypes for TcpWire {
    type Registration = ();
    type RemoteSegment = RemoteSegment;
    type Request = Header;
}

/// The ledger of a rank that talks over sockets.
type TcpLedger = Ledger<TcpWire>;

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
    fn lose(&mut self, ledger: &mut TcpLedger, peer: usize, detail: impl Into<String>) -> Result<()> {
        let number = peer as u32;
        self.up.retain(|&of| of != number);
        self.ready.retain(|&of| of != number);
        let lost = Route::Lost(detail.into() + &self.rail_text(peer));
        let route = std::mem::replace(&mut self.peers[peer].route, lost);
        if let Route::Up(link) = route
            && let Incoming::Into { slot, then: Then::Put, .. } = link.incoming
        {
            ledger.unlend(slot);
        }
        self.forget_output(ledger, peer);
        if ledger.needs(peer) { Err(self.lost(ledger, peer)) } else { Ok(()) }
    }

    /// Empties an outbox that will never be written; open operations stay open, so that they are reported.
    fn forget_output(&mut self, ledger: &mut TcpLedger, peer: usize) {
        let mut all = usize::MAX;
        while let Some(ends) = self.peers[peer].out.take(&mut all) {
            if let Some(ends) = ends {
                ledger.unlend(ends.slot());
            }
        }
    }

    /// The peer's rank.
    fn rank(&self, peer: usize) -> Rank {
        Rank::from(self.rails.rank(peer))
    }

    /// This rank's end on the peer's rail.
    fn local(&self, peer: usize) -> &LocalEnd {
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
    fn lost(&self, ledger: &TcpLedger, peer: usize) -> Error {
        let detail = match &self.peers[peer].route {
            Route::Lost(detail) => detail.clone(),
            _ => "connection closed".into(),
        };
        ledger.lost(peer, detail)
    }
}

impl fmt::Debug for TcpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpWire").field("connected", &self.up.len()).finish_non_exhaustive()
    }
}

fn failed(operation: &'static str, peer: Option<Rank>, source: impl Into<io::Error>) -> Error {
    Error::Io { operation, peer, source: source.into() }
}

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
    fn send(&mut self, ledger: &mut Ledger<Self>, peer: usize, request: MessageRequest) -> Result<()> {
        self.reach(ledger, peer)?;
        let MessageRequest { slot, member, lane, tag, span } = request;
        self.queue(ledger, slot, peer, Message::Send { lane, tag }, span);
        self.peers[peer].out.end_with_last(Ends::Send { slot, member, lane });
        ledger.begin_send(peer, &request);
        self.pump(ledger, peer)
    }

    #[inline]
    fn waiting(&self, peer: usize) -> usize {
        self.peers[peer].out.waiting()
    }

    fn send_flow_control(&mut self, ledger: &mut Ledger<Self>, peer: usize, control: FlowControl) -> Result<()> {
        self.answer(ledger, peer, Header { message: Message::FlowControl(control), from: 0, group: 0, length: 0 })
    }

    /// Queues a put; a small one may wait for company until progress is made.
    fn put(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        GroupMember { slot, member: to }: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.reach(ledger, peer)?;
        let seat = ledger.rails.seat(to.0, peer);
        let there = &mut ledger.groups.at_mut(slot).members[seat].remote;
        there.unflushed = true;
        there.accesses += 1;
        if self.queue(ledger, slot, peer, Message::Put { offset: remote as u64 }, local) {
            self.peers[peer].out.end_with_last(Ends::Loan { slot });
            ledger.lend(slot);
        }
        if local.len <= SMALL { self.cork(ledger, peer) } else { self.pump(ledger, peer) }
    }

    /// Asks for bytes of a peer's segment.
    fn get(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        GroupMember { slot, member: from }: GroupMember,
        local: Span,
        remote: usize,
    ) -> Result<()> {
        self.reach(ledger, peer)?;
        let seat = ledger.rails.seat(from.0, peer);
        let group = ledger.groups.at_mut(slot);
        let there = &mut group.members[seat].remote;
        there.accesses += 1;
        there.asked.push_back(Asked::Get { into: local, completed: there.accesses });
        let message = Message::Get { offset: remote as u64 };
        let header = Header { message, from: group.rank, group: group.id, length: local.len as u64 };
        ledger.begin_access(peer, slot);
        self.answer(ledger, peer, header)
    }

    /// Asks a member whether its segment has all puts, if one was made since it was last asked.
    fn ask_flush(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        GroupMember { slot, member: to }: GroupMember,
    ) -> Result<()> {
        let seat = ledger.rails.seat(to.0, peer);
        let group = ledger.groups.at_mut(slot);
        let there = &mut group.members[seat].remote;
        if !there.unflushed {
            return Ok(());
        }
        if matches!(self.peers[peer].route, Route::Lost(_)) {
            return Err(self.lost(ledger, peer));
        }
        there.unflushed = false;
        there.flushes += 1;
        there.asked.push_back(Asked::Flush { counter: there.flushes, completed: there.accesses });
        let message = Message::Flush { counter: there.flushes };
        let header = Header { message, from: group.rank, group: group.id, length: 0 };
        ledger.begin_access(peer, slot);
        self.answer(ledger, peer, header)
    }

    fn accesses(there: &RemoteSegment) -> u64 {
        there.accesses
    }

    fn completed(there: &RemoteSegment) -> u64 {
        there.completed
    }

    #[inline]
    fn progress(&mut self, ledger: &mut Ledger<Self>, idle: Idle) -> Result<()> {
        self.advance(ledger, idle)
    }

    fn poll_peer(&mut self, ledger: &mut Ledger<Self>, peer: usize) -> Result<()> {
        self.read_link(ledger, peer).map(drop)
    }

    #[inline]
    fn poll_sometimes(&mut self, ledger: &mut Ledger<Self>) -> Result<()> {
        if !self.corked.is_empty() || self.rounds.is_multiple_of(LOOK_EVERY_BUSY) {
            return self.advance(ledger, Idle::Return);
        }
        self.rounds = self.rounds.wrapping_add(1);
        Ok(())
    }

    fn serve(
        &mut self,
        ledger: &mut Ledger<Self>,
        peer: usize,
        found: GroupLookup,
        header: Header,
        data: &[u8],
    ) -> Result<()> {
        self.serve_early(ledger, peer, found, header, data)
    }

    #[inline]
    fn loss(&self, peer: usize) -> Option<&str> {
        match &self.peers[peer].route {
            Route::Lost(detail) => Some(detail),
            _ => None,
        }
    }

    #[inline]
    fn on_recv_posted(&mut self, ledger: &mut Ledger<Self>, peer: usize) -> Result<()> {
        match &self.peers[peer].route {
            Route::Up(link) if matches!(link.incoming, Incoming::Hold { .. }) => self.reconsider(ledger, peer),
            _ => Ok(()),
        }
    }

    fn forget(there: &mut RemoteSegment) -> usize {
        there.asked.drain(..).count()
    }

    /// Peers may wait for answers that the kernel had no room for: they get a last chance.
    fn close(&mut self, ledger: &mut Ledger<Self>) {
        let end = Instant::now() + LINGER;
        self.wait = WaitMode::Block;
        while Instant::now() < end && self.up.iter().any(|&p| !self.peers[p as usize].out.is_empty()) {
            if self.kick(ledger).is_err() || self.poll_events(ledger, Duration::from_millis(10)).is_err() {
                break;
            }
        }
    }
}

impl TcpWire {
    /// Makes sure that output for `peer` will go somewhere.
    #[inline]
    fn reach(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        match self.peers[peer].route {
            Route::Up(_) | Route::Connecting(_) | Route::Redirected => Ok(()),
            Route::Idle | Route::Lost(_) => self.reach_anew(ledger, peer),
        }
    }

    #[cold]
    fn reach_anew(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        if matches!(self.peers[peer].route, Route::Idle) {
            self.connect(ledger, peer)?;
        }
        if matches!(self.peers[peer].route, Route::Lost(_)) { Err(self.lost(ledger, peer)) } else { Ok(()) }
    }

    /// Queues a header and its payload: small ones as a copy, so that both leave in one slice. Whether what waits refers
    /// to the segment.
    #[inline]
    fn queue(&mut self, ledger: &TcpLedger, slot: Slot, peer: usize, message: Message, span: Span) -> bool {
        let group = ledger.groups.at(slot);
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
