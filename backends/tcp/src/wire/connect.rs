//! Connections before they carry data: made by the first message to a peer, one per pair and rail, each end proven.
//!
//! When two ranks connect to each other at once, the attempt of the lower rank wins: the lower rank redirects the
//! other's, the higher rank gives up its own. A stranger (garbage, silence, wrong proof) is dropped without a word and
//! makes room when others wait ([`tailback_bootstrap::strangers`]), before all others if it comes from an address that no rank told of.
//! It is not refused for that: address translation may change what a rank told. A rank whose attempt was dropped before
//! the verdict, because the other end was too busy, tries again a bounded number of times.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};

use tailback_bootstrap::handshake::{AcceptorSide, HandshakeError, InitiatorSide, Plane, Verdict};
use tailback_bootstrap::strangers::{self, PROOF_LIMIT, Stranger};
use tailback_transport::{Rank, Result};

use super::peer::{Connection, Half, Route, Stage};
use super::{HALF, TcpLedger, TcpWire, failed};

/// Attempts before a peer that accepts connections but never answers counts as lost.
const MAX_ATTEMPTS: u32 = 16;

/// How long a peer that no way leads to is tried: a way may come up a moment later than the ranks.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(5);

/// Marks what a socket to, or of, `address` sends.
pub fn set_traffic_class(socket: &Socket, address: SocketAddr, class: u8) -> io::Result<()> {
    match (class, address) {
        (0, _) => Ok(()),
        (_, SocketAddr::V4(_)) => Ok(sockopt::set_ip_tos(socket, class)?),
        (_, SocketAddr::V6(_)) => Ok(sockopt::set_ipv6_tclass(socket, class.into())?),
    }
}

impl TcpWire {
    /// Starts to connect to a peer that is not reached yet.
    pub(super) fn connect(&mut self, ledger: &mut TcpLedger, peer: usize) -> Result<()> {
        let address = self.peers[peer].address;
        let rank = self.rank(peer);
        let report = |e: io::Error| failed("connect", Some(rank), e);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(report)?;
        socket.set_nonblocking(true).map_err(report)?;
        let local = self.local(peer);
        set_traffic_class(&socket, address, local.traffic_class).map_err(report)?;
        self.bind_to_device(&socket, peer).map_err(report)?;
        socket.bind(&SocketAddr::new(local.address, 0).into()).map_err(report)?;
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(e)
                if e.kind() == ErrorKind::WouldBlock || e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
            Err(e) => return self.lose(ledger, peer, format!("connect to {address}: {e}")),
        }
        let slot = self.add_half(socket, Some(address), Stage::Connecting { to: peer })?;
        self.peers[peer].route = Route::Connecting(slot);
        self.drive(ledger, slot)
    }

    /// Keeps what a socket sends to another host on the interface that was asked for: routes go by destination, and of two
    /// interfaces in one network they know only the first. What stays on this host goes by no interface.
    fn bind_to_device(&self, socket: &Socket, peer: usize) -> io::Result<()> {
        let local = self.local(peer);
        match &local.device {
            Some(device) if self.peers[peer].address.ip() != local.address => {
                socket.bind_device(Some(device.as_bytes()))
            }
            _ => Ok(()),
        }
    }

    /// Takes new connections from a rail's listener while there is room for strangers.
    pub(super) fn accept(&mut self, ledger: &mut TcpLedger, rail: usize) -> Result<()> {
        let full = self.strangers >= strangers::LIMIT;
        let mut eviction_order = if full { self.eviction_order() } else { Vec::new() };
        while self.listeners[rail].ready {
            let mut out = None;
            while self.strangers >= strangers::LIMIT && out.is_none() {
                let Some(of) = eviction_order.pop_if(Stranger::is_evictable) else { return Ok(()) };
                // This rank may have been busy elsewhere since it said what it had to.
                self.drive(ledger, of.slot)?;
                let half = self.halves[of.slot].as_ref();
                out = half.filter(|half| half.theirs_since() == Some(of.since)).map(|_| of.slot);
            }
            match self.listeners[rail].socket.accept() {
                Ok((socket, address)) => {
                    if let Some(slot) = out {
                        self.remove_half(slot);
                    }
                    if socket.set_nonblocking(true).is_ok() {
                        let slot = self.add_half(
                            socket,
                            address.as_socket(),
                            Stage::Theirs { rail, handshake: AcceptorSide::default() },
                        )?;
                        self.drive(ledger, slot)?;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.listeners[rail].ready = false,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Out of descriptors or memory: whoever knocks waits in the kernel until there are some.
                Err(_) => {
                    if let Some(out) = self.eviction_order().pop_if(Stranger::is_evictable) {
                        self.remove_half(out.slot);
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Drops strangers whose time is up.
    pub(super) fn expire(&mut self) -> Result<()> {
        for slot in 0..self.halves.len() {
            let Some(half) = &self.halves[slot] else { continue };
            if half.theirs_since().is_some_and(|since| since.elapsed() > PROOF_LIMIT) {
                self.remove_half(slot);
            }
        }
        Ok(())
    }

    /// Moves a half-open connection on as far as it goes.
    pub(super) fn drive(&mut self, ledger: &mut TcpLedger, slot: usize) -> Result<()> {
        let (me, ranks) = (ledger.me, ledger.ranks());
        let Some(Half { socket, stage, .. }) = self.halves.get_mut(slot).and_then(Option::as_mut) else {
            return Ok(());
        };
        if let &mut Stage::Connecting { to } = stage {
            match is_established(socket) {
                Ok(false) => return Ok(()),
                Ok(true) => {}
                Err(error) => return self.half_failed(ledger, slot, &error),
            }
            match InitiatorSide::start(Plane::Data, me, ledger.rank(to), socket) {
                Ok(handshake) => *stage = Stage::Ours { to, handshake },
                Err(error) => return self.half_failed(ledger, slot, &error),
            }
        }
        match stage {
            Stage::Connecting { .. } => Ok(()),
            Stage::Ours { to, handshake } => {
                let to = *to;
                match handshake.advance(socket, &self.secret) {
                    Ok(None) => Ok(()),
                    Ok(Some(Verdict::Accept)) => self.promote(ledger, slot, to),
                    Ok(Some(Verdict::Redirect)) => {
                        self.remove_half(slot);
                        if matches!(self.peers[to].route, Route::Connecting(_)) {
                            self.peers[to].route = Route::Redirected;
                        }
                        Ok(())
                    }
                    Err(HandshakeError::Io(error)) => self.half_failed(ledger, slot, &error),
                    Err(_) => Err(ledger.protocol(to, "what listens there does not know the job's secret")),
                }
            }
            Stage::Theirs { rail, handshake } => {
                let expected = |from: Rank| from != me && from.index() < ranks;
                match handshake.advance(socket, (Plane::Data, me), &self.secret, expected) {
                    Ok(None) => Ok(()),
                    Ok(Some(from)) => {
                        let rail = *rail;
                        self.decide(ledger, slot, from, rail)
                    }
                    // A stranger is dropped without a word.
                    Err(_) => {
                        self.remove_half(slot);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Which of a pair's connections is kept; see the module.
    fn decide(&mut self, ledger: &mut TcpLedger, slot: usize, from: Rank, rail: usize) -> Result<()> {
        let peer = self.rails.peer(from.index(), rail);
        let verdict = match self.peers[peer].route {
            Route::Idle | Route::Redirected => Some(Verdict::Accept),
            Route::Connecting(own) if from < ledger.me => {
                self.remove_half(own);
                Some(Verdict::Accept)
            }
            Route::Connecting(_) | Route::Up(_) => Some(Verdict::Redirect),
            Route::Lost(_) => None,
        };
        let half = self.halves[slot].as_ref();
        let told = half.zip(verdict).is_some_and(|(half, verdict)| verdict.send(&half.socket).is_ok());
        if told && verdict == Some(Verdict::Accept) {
            return self.promote(ledger, slot, peer);
        }
        self.remove_half(slot);
        Ok(())
    }

    /// A proven connection starts to carry data.
    fn promote(&mut self, ledger: &mut TcpLedger, slot: usize, peer: usize) -> Result<()> {
        let Some(half) = self.remove_half(slot) else { return Ok(()) };
        let rank = self.rank(peer);
        let report = |e: io::Error| failed("connect", Some(rank), e);
        half.socket.set_tcp_nodelay(true).map_err(report)?;
        self.bind_to_device(&half.socket, peer).map_err(report)?;
        // Not earlier: a route may have a congestion control too, which replaces what the socket had before it connected.
        if let Some(name) = &self.local(peer).congestion_control {
            sockopt::set_tcp_congestion(&half.socket, name).map_err(|e| report(e.into()))?;
        }
        half.socket.set_nonblocking(false).map_err(report)?;
        epoll::modify(&self.epoll, &half.socket, EventData::new_u64(peer as u64), interest())
            .map_err(|e| report(e.into()))?;
        self.peers[peer].route = Route::Up(Box::new(Connection::new(half.socket)));
        self.up.push(peer as u32);
        // Below some number of links a spinning rank reads them all; every link is looked at once when that changes.
        for at in 0..self.up.len() {
            self.mark_ready(self.up[at] as usize);
        }
        self.pump(ledger, peer)
    }

    fn half_failed(&mut self, ledger: &mut TcpLedger, slot: usize, error: &io::Error) -> Result<()> {
        let Some(half) = self.remove_half(slot) else { return Ok(()) };
        let Some(peer) = half.ours() else { return Ok(()) };
        let address = self.peers[peer].address;
        let (attempts, first) = &mut self.peers[peer].attempts;
        *attempts += 1;
        let since = *first.get_or_insert(half.begun);
        let unreachable = matches!(error.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable);
        let hopeless = match error.kind() {
            ErrorKind::ConnectionRefused => true,
            _ if unreachable => since.elapsed() >= UNREACHABLE_LIMIT,
            _ => *attempts >= MAX_ATTEMPTS,
        };
        if hopeless {
            return self.lose(ledger, peer, format!("connect to {address}: {error}"));
        }
        self.connect(ledger, peer)
    }

    fn add_half(&mut self, socket: Socket, address: Option<SocketAddr>, stage: Stage) -> Result<usize> {
        let address = address.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |address| address.ip().to_canonical());
        let slot = self.halves.iter().position(Option::is_none).unwrap_or(self.halves.len());
        if slot == self.halves.len() {
            self.halves.push(None);
        }
        let half = Half { socket, address, stage, begun: Instant::now() };
        epoll::add(&self.epoll, &half.socket, EventData::new_u64(HALF + slot as u64), interest())
            .map_err(|e| failed("epoll_ctl", half.ours().map(|peer| self.rank(peer)), e))?;
        *if half.ours().is_some() { &mut self.connecting } else { &mut self.strangers } += 1;
        self.halves[slot] = Some(half);
        Ok(slot)
    }

    fn remove_half(&mut self, slot: usize) -> Option<Half> {
        let half = self.halves[slot].take()?;
        *if half.ours().is_some() { &mut self.connecting } else { &mut self.strangers } -= 1;
        Some(half)
    }

    /// Who makes room for strangers that wait, last first; nobody while all still have their time.
    fn eviction_order(&self) -> Vec<Stranger> {
        let stranger = |(slot, half): (usize, &Option<Half>)| {
            let half = half.as_ref()?;
            let (address, since) = (half.address, half.theirs_since()?);
            Some(Stranger { slot, address, rank: self.sources.contains(&address), since })
        };
        let strangers = self.halves.iter().enumerate().filter_map(stranger);
        // Looked at first, for this is asked with every look at the sockets while all places are taken.
        if !strangers.clone().any(|mut of| of.is_evictable()) {
            return Vec::new();
        }
        strangers::eviction_order(strangers)
    }
}

/// Whether a connection that this rank began is there.
fn is_established(socket: &Socket) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}

fn interest() -> EventFlags {
    EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_listener_accepts_has_its_class() {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let (listener, dialler) = (socket(), socket());
        set_traffic_class(&listener, address, 0xb8).unwrap();
        set_traffic_class(&dialler, address, 0).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(1).unwrap();
        dialler.connect(&listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let class = |of: &Socket| sockopt::ip_tos(of).unwrap();
        assert_eq!([class(&accepted), class(&dialler)], [0xb8, 0]);
    }
}
