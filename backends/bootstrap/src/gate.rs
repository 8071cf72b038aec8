//! The acceptor's side: lets ranks in and keeps strangers out, without waiting for any one of them.
//!
//! Every connection is a small state machine with a time limit; a stranger costs a few bytes of memory and at most
//! one line on stderr. Never blocks on a single peer, so a silent stranger holds nobody up; and however many there are,
//! whoever comes next gets its turn ([`strangers`]).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Socket, Type};
use tailback_transport::{Error, Rank, Result};

use crate::failure::say;
use crate::handshake::{ACCEPTED, HELLO_LEN, Hello, SMALL_FRAME, VERSION, challenge};
use crate::polling::poll_until;
use crate::secret::{self, Nonce, PROOF_LEN, Proof, Role, Secret};
use crate::strangers::{self, Stranger};

/// Why one was put out that others had to wait for.
const NO_TIME: &str = "it proved nothing while others waited";
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
pub(crate) struct Gate {
    listener: TcpListener,
    rank: Rank,
    secret: Secret,
    pending: Vec<Pending>,
    complaints: u32,
}

impl Gate {
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
        Ok(Gate { listener, rank, secret: secret.clone(), pending: Vec::new(), complaints: 0 })
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
            let progress = if ready { pending.advance(self.rank, &self.secret) } else { Ok(Progress::Waiting) };
            match progress {
                Ok(Progress::Waiting) if now < pending.deadline() => self.pending.push(pending),
                Ok(Progress::Waiting) => self.complain(pending.address, "it stays silent"),
                Ok(Progress::Admitted { rank, message }) => {
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
        let out = if self.room() == 0 { self.going_out().pop() } else { None };
        out.map_or_else(Instant::now, |out| out.ripe_at())
    }

    fn room(&self) -> usize {
        strangers::LIMIT.saturating_sub(self.strangers().count())
    }

    fn going_out(&self) -> Vec<Stranger> {
        strangers::going_out(self.strangers())
    }

    fn strangers(&self) -> impl Iterator<Item = Stranger> {
        let unproven = |(_, pending): &(usize, &Pending)| !matches!(pending.stage, Stage::Message(_));
        let stranger = |(slot, pending): (usize, &Pending)| {
            // From which addresses ranks will come is not known here.
            Stranger { slot, address: pending.address.ip(), rank: false, since: pending.since }
        };
        self.pending.iter().enumerate().filter(unproven).map(stranger)
    }

    fn accept(&mut self) {
        let mut room = self.room();
        let mut going_out = if room == 0 { self.going_out() } else { Vec::new() };
        loop {
            let out = if room == 0 { going_out.pop_if(Stranger::is_ripe) } else { None };
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
            let since = Instant::now();
            let pending = Pending { stream, address, since, received: Vec::new(), stage: Stage::Hello };
            match out {
                None => {
                    self.pending.push(pending);
                    room -= 1;
                }
                Some(out) => {
                    let gone = std::mem::replace(&mut self.pending[out.slot], pending);
                    self.complain(gone.address, NO_TIME);
                }
            }
        }
    }

    fn free_a_descriptor(&mut self) {
        match self.going_out().pop_if(Stranger::is_ripe) {
            Some(out) => {
                let gone = self.pending.swap_remove(out.slot);
                self.complain(gone.address, NO_TIME);
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

#[derive(Debug)]
struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    /// When it was accepted, challenged or let in: since when it has to say something.
    since: Instant,
    received: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Hello,
    Proof(Hello, Nonce),
    Message(Rank),
}

enum Progress {
    Waiting,
    Admitted { rank: Rank, message: Vec<u8> },
}

impl Pending {
    fn deadline(&self) -> Instant {
        self.since + strangers::PROOF_LIMIT
    }

    /// Goes as far as the bytes that are there allow. An error is the reason to refuse.
    fn advance(&mut self, me: Rank, secret: &Secret) -> std::result::Result<Progress, String> {
        loop {
            let wanted = match &self.stage {
                Stage::Hello => HELLO_LEN,
                Stage::Proof(..) => PROOF_LEN,
                Stage::Message(_) => 4 + self.announced()?,
            };
            if !self.receive(wanted)? {
                return Ok(Progress::Waiting);
            }
            match self.stage {
                // The header that was just completed may announce more.
                Stage::Message(rank) if wanted == 4 + self.announced()? => {
                    return Ok(Progress::Admitted { rank, message: self.received.split_off(4) });
                }
                Stage::Message(_) => {}
                _ => self.answer(me, secret)?,
            }
        }
    }

    /// The length of the message that a header announced, zero while the header is incomplete.
    fn announced(&self) -> std::result::Result<usize, String> {
        let Some(header) = self.received.first_chunk::<4>() else { return Ok(0) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > SMALL_FRAME { Err("its first message is too long".into()) } else { Ok(length) }
    }

    /// Answers a complete hello or proof.
    fn answer(&mut self, me: Rank, secret: &Secret) -> std::result::Result<(), String> {
        match std::mem::replace(&mut self.stage, Stage::Hello) {
            Stage::Hello => {
                let bytes = std::mem::take(&mut self.received);
                let bytes = bytes.as_slice().try_into().expect("hello is complete");
                let hello = Hello::decode(bytes).ok_or("it is not a tailback rank")?;
                if hello.wants != me {
                    return Err(format!("it looks for rank {}", hello.wants));
                }
                let nonce = secret::nonce().map_err(|e| e.to_string())?;
                self.send(&challenge(&hello, &nonce, secret))?;
                if hello.version != VERSION {
                    return Err(format!(
                        "it says it is rank {} and speaks bootstrap protocol {}, not {VERSION}: run the same tailback on all ranks",
                        hello.rank, hello.version
                    ));
                }
                self.since = Instant::now();
                self.stage = Stage::Proof(hello, nonce);
            }
            Stage::Proof(hello, nonce) => {
                let handshake = hello.handshake(nonce, VERSION);
                let bytes = std::mem::take(&mut self.received);
                let proof: Proof = bytes.as_slice().try_into().expect("proof is complete");
                if !handshake.verify(secret, Role::Initiator, &proof) {
                    return Err(format!("it says it is rank {} and has another job secret", hello.rank));
                }
                self.send(&ACCEPTED)?;
                self.since = Instant::now();
                self.stage = Stage::Message(hello.rank);
            }
            message @ Stage::Message(_) => self.stage = message,
        }
        Ok(())
    }

    /// Reads until `wanted` bytes are there; `false` if they are not yet. Never reads past them.
    fn receive(&mut self, wanted: usize) -> std::result::Result<bool, String> {
        while self.received.len() < wanted {
            let mut chunk = [0; 4096];
            let space = (wanted - self.received.len()).min(chunk.len());
            match self.stream.read(&mut chunk[..space]) {
                Ok(0) => return Err("it closed the connection before it proved the job secret".into()),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(true)
    }

    /// The answers are far smaller than a fresh socket's buffer: a short write is a peer not worth waiting for.
    fn send(&mut self, bytes: &[u8]) -> std::result::Result<(), String> {
        self.stream.write_all(bytes).map_err(|e| e.to_string())
    }
}
