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
use rustix::net::{RecvFlags, SendFlags, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use tailback_bootstrap::data_handshake::{CHALLENGE, HELLO, Hello, LONGEST, PROOF, Role, Verdict, nonce};
use tailback_bootstrap::strangers::{self, PROOF_LIMIT, Stranger};
use tailback_transport::{Rank, Result};

use super::peer::{Half, Link, Route, Stage};
use super::{HALF, TcpLedger, TcpWire, failed};

/// Attempts before a peer that accepts connections but never answers counts as lost.
const MAX_ATTEMPTS: u32 = 16;

/// How long a peer that no way leads to is tried: a way may come up a moment later than the ranks.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(5);

/// What became of a half-open connection.
enum Next {
    Wait,
    Again,
    Drop,
    Up(usize),
    Redirected(usize),
}

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
        let mut going_out = if full { self.going_out() } else { Vec::new() };
        while self.listeners[rail].ready {
            let mut out = None;
            while self.strangers >= strangers::LIMIT && out.is_none() {
                let Some(of) = going_out.pop_if(Stranger::is_ripe) else { return Ok(()) };
                // This rank may have been busy elsewhere since it said what it had to.
                self.drive(ledger, of.slot)?;
                out = self.halves[of.slot].as_ref().filter(|half| half.since == of.since).map(|_| of.slot);
            }
            match self.listeners[rail].socket.accept() {
                Ok((socket, address)) => {
                    if let Some(slot) = out {
                        self.remove_half(slot);
                    }
                    if socket.set_nonblocking(true).is_ok() {
                        let slot = self.add_half(socket, address.as_socket(), Stage::Hello { rail })?;
                        self.drive(ledger, slot)?;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.listeners[rail].ready = false,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Out of descriptors or memory: whoever knocks waits in the kernel until there are some.
                Err(_) => {
                    if let Some(out) = self.going_out().pop_if(Stranger::is_ripe) {
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
            if half.stage.ours().is_none() && half.since.elapsed() > PROOF_LIMIT {
                self.remove_half(slot);
            }
        }
        Ok(())
    }

    /// Moves a half-open connection on as remote as it goes.
    pub(super) fn drive(&mut self, ledger: &mut TcpLedger, slot: usize) -> Result<()> {
        loop {
            let Some(half) = self.halves.get_mut(slot).and_then(Option::as_mut) else { return Ok(()) };
            let next = match fill(half) {
                Ok(true) => self.step(ledger, slot)?,
                Ok(false) => Next::Wait,
                Err(error) => return self.half_failed(ledger, slot, &error),
            };
            match next {
                Next::Wait => return Ok(()),
                Next::Again => {}
                Next::Drop => {
                    let error = io::Error::new(ErrorKind::InvalidData, "not understood");
                    return self.half_failed(ledger, slot, &error);
                }
                Next::Up(peer) => return self.promote(ledger, slot, peer),
                Next::Redirected(peer) => {
                    self.remove_half(slot);
                    if matches!(self.peers[peer].route, Route::Connecting(_)) {
                        self.peers[peer].route = Route::Redirected;
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Acts on a complete message of the handshake.
    fn step(&mut self, ledger: &mut TcpLedger, slot: usize) -> Result<Next> {
        let (me, secret) = (ledger.me, self.secret.clone());
        let Some(half) = self.halves[slot].as_mut() else { return Ok(Next::Wait) };
        let bytes = half.bytes;
        half.got = 0;
        match &half.stage {
            &Stage::Connecting { to } => {
                let hello = Hello { from: me, to: ledger.rank(to), nonce: nonce()? };
                half.stage = Stage::Challenge { to, hello };
                Ok(half.say(&hello.encode()))
            }
            &Stage::Challenge { to, hello } => {
                let (theirs, proof) = bytes[..CHALLENGE].split_first_chunk().expect("a challenge starts with a nonce");
                if !hello.verify(&secret, Role::Acceptor, theirs, proof) {
                    return Err(ledger.protocol(to, "what listens there does not know the job's secret"));
                }
                let proof = hello.prove(&secret, Role::Initiator, theirs);
                half.stage = Stage::Verdict { to };
                Ok(half.say(&proof))
            }
            &Stage::Verdict { to } => Ok(match Verdict::decode(bytes[0]) {
                Some(Verdict::Accept) => Next::Up(to),
                Some(Verdict::Redirect) => Next::Redirected(to),
                None => Next::Drop,
            }),
            &Stage::Hello { rail } => {
                let Some(hello) = Hello::decode(&bytes[..HELLO]) else { return Ok(Next::Drop) };
                if hello.to != me || hello.from == me || hello.from.index() >= ledger.ranks() {
                    return Ok(Next::Drop);
                }
                let nonce = nonce()?;
                let mut challenge = [0; CHALLENGE];
                challenge[..nonce.len()].copy_from_slice(&nonce);
                challenge[nonce.len()..].copy_from_slice(&hello.prove(&secret, Role::Acceptor, &nonce));
                half.stage = Stage::Proof { rail, hello, nonce };
                half.since = Instant::now();
                Ok(half.say(&challenge))
            }
            Stage::Proof { rail, hello, nonce } => {
                if !hello.verify(&secret, Role::Initiator, nonce, &bytes[..PROOF]) {
                    return Ok(Next::Drop);
                }
                let (from, rail) = (hello.from, *rail);
                Ok(self.judge(slot, ledger.me, from, rail))
            }
        }
    }

    /// Which of a pair's connections is kept; see the module.
    fn judge(&mut self, slot: usize, me: Rank, from: Rank, rail: usize) -> Next {
        let peer = self.rails.peer(from.index(), rail);
        let verdict = match self.peers[peer].route {
            Route::Idle | Route::Redirected => Verdict::Accept,
            Route::Connecting(own) if from < me => {
                self.remove_half(own);
                Verdict::Accept
            }
            Route::Connecting(_) | Route::Up(_) => Verdict::Redirect,
            Route::Lost(_) => return Next::Drop,
        };
        let Some(half) = self.halves[slot].as_mut() else { return Next::Wait };
        match (half.say(&verdict.encode()), verdict) {
            (Next::Drop, _) | (_, Verdict::Redirect) => Next::Drop,
            (_, Verdict::Accept) => Next::Up(peer),
        }
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
        self.peers[peer].route = Route::Up(Box::new(Link::new(half.socket)));
        self.up.push(peer as u32);
        // Below some number of links a spinning rank reads them all; every link is looked at once when that changes.
        for at in 0..self.up.len() {
            self.mark_ready(self.up[at] as usize);
        }
        self.pump(ledger, peer)
    }

    fn half_failed(&mut self, ledger: &mut TcpLedger, slot: usize, error: &io::Error) -> Result<()> {
        let Some(half) = self.remove_half(slot) else { return Ok(()) };
        let Some(peer) = half.stage.ours() else { return Ok(()) };
        let address = self.peers[peer].address;
        let (attempts, first) = &mut self.peers[peer].attempts;
        *attempts += 1;
        let since = *first.get_or_insert(half.since);
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
        epoll::add(&self.epoll, &socket, EventData::new_u64(HALF + slot as u64), interest())
            .map_err(|e| failed("epoll_ctl", stage.ours().map(|peer| self.rank(peer)), e))?;
        *if stage.ours().is_some() { &mut self.connecting } else { &mut self.strangers } += 1;
        self.halves[slot] = Some(Half { socket, address, stage, bytes: [0; LONGEST], got: 0, since: Instant::now() });
        Ok(slot)
    }

    fn remove_half(&mut self, slot: usize) -> Option<Half> {
        let half = self.halves[slot].take()?;
        *if half.stage.ours().is_some() { &mut self.connecting } else { &mut self.strangers } -= 1;
        Some(half)
    }

    /// Who makes room for strangers that wait, last first; nobody while all still have their time.
    fn going_out(&self) -> Vec<Stranger> {
        let stranger = |(slot, half): (usize, &Option<Half>)| {
            let half = half.as_ref().filter(|half| half.stage.ours().is_none())?;
            let Half { address, since, .. } = *half;
            Some(Stranger { slot, address, rank: self.sources.contains(&address), since })
        };
        let strangers = self.halves.iter().enumerate().filter_map(stranger);
        // Looked at first, for this is asked with every look at the sockets while all places are taken.
        if !strangers.clone().any(|mut of| of.is_ripe()) {
            return Vec::new();
        }
        strangers::going_out(strangers)
    }
}

impl Half {
    /// Sends a message of the handshake: on a fresh connection the kernel takes it whole.
    fn say(&mut self, bytes: &[u8]) -> Next {
        match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(n) if n == bytes.len() => Next::Again,
            _ => Next::Drop,
        }
    }
}

/// Reads exactly what the stage wants; says whether it is complete.
fn fill(half: &mut Half) -> io::Result<bool> {
    let wants = half.stage.wants();
    if wants == 0 {
        if let Some(error) = half.socket.take_error()? {
            return Err(error);
        }
        return match half.socket.peer_addr() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(e),
        };
    }
    while half.got < wants {
        match rustix::net::recv(&half.socket, &mut half.bytes[half.got..wants], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((n, _)) => half.got += n,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
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
