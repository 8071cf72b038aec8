//! Where ranks connect to: lets ranks of the job in and keeps strangers out, without waiting for any one of them.
//!
//! Every connection is a small state machine with a time limit; a stranger costs a few bytes of memory and at most
//! one line on stderr. Never blocks on a single peer, so a silent stranger delays nobody; and however many there are,
//! the next connection gets its turn ([`strangers`]).

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Socket, Type};
use tailback_transport::{Error, Rank, Result};

use crate::failure::say;
use crate::handshake::{AcceptorSide, Plane, Verdict};
use crate::message::SMALL_FRAME;
use crate::polling::poll_until;
use crate::secret::Secret;
use crate::strangers::{self, Stranger};

/// Why one was closed to make room for others.
const EVICTED: &str = "it proved nothing while others waited";
/// Lines on stderr about strangers, per job.
const COMPLAINT_LIMIT: u32 = 5;

/// A connection that proved the secret, with its first message.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
    pub(crate) rank: Rank,
    pub(crate) message: Vec<u8>,
}

/// A listening socket that lets only ranks of the job in.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: TcpListener,
    rank: Rank,
    secret: Secret,
    pending: Vec<Pending>,
    complaints: u32,
}

impl Acceptor {
    /// Listens on `address` for connections to `rank`. A `shared` port is one that the launcher holds for it.
    pub(crate) fn open(address: SocketAddr, shared: bool, rank: Rank, secret: &Secret) -> Result<Self> {
        let listen = || -> io::Result<TcpListener> {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            // Lets a job follow another on the same port at once; two listeners still exclude each other.
            socket.set_reuse_address(true)?;
            if shared {
                socket.set_reuse_port(true)?;
            }
            socket.bind(&address.into())?;
            socket.listen(4096)?;
            socket.set_nonblocking(true)?;
            Ok(socket.into())
        };
        let listener = listen().map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::AddrInUse => ": another job or program uses this port, choose another",
                io::ErrorKind::AddrNotAvailable => ": no interface of this host has that address",
                _ => "",
            };
            Error::Setup(format!("rank {rank} cannot listen on {address}: {e}{hint}"))
        })?;
        Ok(Acceptor { listener, rank, secret: secret.clone(), pending: Vec::new(), complaints: 0 })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits until something happens, at most until `deadline`, and gives whoever was let in.
    pub(crate) fn step(&mut self, deadline: Instant) -> Result<Vec<Admitted>> {
        let expiry = self.pending.iter().map(Pending::deadline).min().unwrap_or(deadline);
        let room = self.room_at();
        let mut fds: Vec<PollFd<'_>> = self.pending.iter().map(|p| PollFd::new(&p.stream, PollFlags::IN)).collect();
        if room <= Instant::now() {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let wake = if fds.len() == self.pending.len() { expiry.min(room) } else { expiry };
        poll_until(&mut fds, deadline.min(wake)).map_err(|source| Error::Io {
            operation: "waiting for ranks to join",
            peer: None,
            source,
        })?;
        // Only who has something to say is read: a thousand ranks that join at once would else be read a thousand times.
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);

        let (mut admitted, now) = (Vec::new(), Instant::now());
        for (mut pending, ready) in std::mem::take(&mut self.pending).into_iter().zip(ready) {
            let progress = if ready { pending.advance(self.rank, &self.secret) } else { Ok(None) };
            match progress {
                Ok(None) if now < pending.deadline() => self.pending.push(pending),
                Ok(None) => self.complain(pending.address, "it stays silent"),
                Ok(Some((rank, message))) => {
                    let Pending { stream, address, .. } = pending;
                    if stream.set_nonblocking(false).is_ok() {
                        admitted.push(Admitted { stream, address, rank, message });
                    }
                }
                Err(reason) => self.complain(pending.address, &reason),
            }
        }
        self.accept();
        Ok(admitted)
    }

    /// When one more connection can be accepted: at once, or when one of the others has had its time.
    fn room_at(&self) -> Instant {
        let out = if self.room() == 0 { self.eviction_order().pop() } else { None };
        out.map_or_else(Instant::now, |out| out.evictable_at())
    }

    fn room(&self) -> usize {
        strangers::LIMIT.saturating_sub(self.strangers().count())
    }

    fn eviction_order(&self) -> Vec<Stranger> {
        strangers::eviction_order(self.strangers())
    }

    fn strangers(&self) -> impl Iterator<Item = Stranger> {
        let unproven = |(_, pending): &(usize, &Pending)| pending.proven.is_none();
        let stranger = |(slot, pending): (usize, &Pending)| {
            // From which addresses ranks will come is not known here.
            Stranger { slot, address: pending.address.ip(), rank: false, since: pending.handshake.since }
        };
        self.pending.iter().enumerate().filter(unproven).map(stranger)
    }

    fn accept(&mut self) {
        let mut room = self.room();
        let mut eviction_order = if room == 0 { self.eviction_order() } else { Vec::new() };
        loop {
            let out = if room == 0 { eviction_order.pop_if(Stranger::is_evictable) } else { None };
            if room == 0 && out.is_none() {
                return;
            }
            let (stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // Concerns the one connection, or lasts until descriptors are free again: never ends the job.
                Err(_) => return self.free_a_descriptor(),
            };
            if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_err() {
                continue;
            }
            let handshake = AcceptorSide::default();
            let pending = Pending { stream, address, handshake, proven: None, received: Vec::new() };
            match out {
                None => {
                    self.pending.push(pending);
                    room -= 1;
                }
                Some(out) => {
                    let gone = std::mem::replace(&mut self.pending[out.slot], pending);
                    self.complain(gone.address, EVICTED);
                }
            }
        }
    }

    fn free_a_descriptor(&mut self) {
        match self.eviction_order().pop_if(Stranger::is_evictable) {
            Some(out) => {
                let gone = self.pending.swap_remove(out.slot);
                self.complain(gone.address, EVICTED);
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }

    fn complain(&mut self, address: SocketAddr, reason: &str) {
        self.complaints += 1;
        if self.complaints <= COMPLAINT_LIMIT {
            let last = if self.complaints == COMPLAINT_LIMIT { " (no more such lines)" } else { "" };
            say("warning", &format!("rank {} refused a connection from {address}: {reason}{last}", self.rank));
        }
    }
}

/// A connection that was accepted and not let in yet.
#[derive(Debug)]
struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    handshake: AcceptorSide,
    /// The rank that has proven the secret; its first message is read.
    proven: Option<Rank>,
    received: Vec<u8>,
}

impl Pending {
    fn deadline(&self) -> Instant {
        self.handshake.since + strangers::PROOF_LIMIT
    }

    /// Goes as far as the bytes that are there allow: to the rank and its first message. An error is the reason to refuse.
    fn advance(&mut self, me: Rank, secret: &Secret) -> std::result::Result<Option<(Rank, Vec<u8>)>, String> {
        let rank = match self.proven {
            Some(rank) => rank,
            None => {
                let proven = self.handshake.advance(&self.stream, (Plane::Bootstrap, me), secret, |_| true)?;
                let Some(rank) = proven else { return Ok(None) };
                Verdict::Accept.send(&self.stream).map_err(|e| e.to_string())?;
                (self.proven, self.handshake.since) = (Some(rank), Instant::now());
                rank
            }
        };
        // Never reads past the message: what follows is read elsewhere.
        loop {
            let length = match self.received.first_chunk() {
                Some(header) => 4 + u32::from_le_bytes(*header) as usize,
                None => 4,
            };
            if length > 4 + SMALL_FRAME {
                return Err("its first message is too long".into());
            }
            if self.received.len() == length {
                return Ok(Some((rank, self.received.split_off(4))));
            }
            let mut chunk = [0; 4096];
            let space = (length - self.received.len()).min(chunk.len());
            match self.stream.read(&mut chunk[..space]) {
                Ok(0) => return Err("it closed the connection before its first message".into()),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}
