//! How ranks come together: everyone meets at rank 0, learns its parent, and the tree is built from there.
//!
//! A rank connects to its parent before it accepts its children, so the tree grows level by level from rank 0 and no
//! two ranks wait for each other. What anybody but a rank of the job answers is temporary: it is tried again until the
//! time to join is up.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::{Error, Rank, START_UP};

use crate::acceptor::{Acceptor, Admitted};
use crate::config::JoinConfig;
use crate::failure::{Ranks, lost_message, say};
use crate::handshake::{HandshakeError, InitiatorSide, Plane, VERSION, Verdict};
use crate::limits;
use crate::message::{Answer, Attach, Join, framed, read_framed};
use crate::neighbour::Neighbour;
use crate::polling::{CancellableWait, poll_until};
use crate::tree::{self, Edge, Tree};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How often ranks that have joined are checked while others are waited for.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Why joining failed.
#[derive(Debug)]
pub(crate) enum JoinError {
    /// This rank has to say so.
    Reported(Error),
    /// Another rank says so.
    Silent,
}

impl From<Error> for JoinError {
    fn from(error: Error) -> Self {
        JoinError::Reported(error)
    }
}

impl JoinError {
    fn setup(text: impl Into<String>) -> Self {
        JoinError::Reported(Error::Setup(text.into()))
    }
}

type JoinResult<T> = Result<T, JoinError>;

/// A rank that has joined.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) tree: Tree,
    /// The watchers' connections.
    pub(crate) parent: Option<Neighbour>,
    pub(crate) children: Vec<Neighbour>,
    /// Every rank's host, on rank 0.
    pub(crate) hosts: Vec<String>,
    /// Connections to rank 0; closed once the tree is complete.
    pub(crate) temporary: Vec<TcpStream>,
    /// The tree below is incomplete: the job has to end, and the watcher can say so.
    pub(crate) broken: Option<Error>,
}

pub(crate) fn join(config: &JoinConfig) -> JoinResult<Joined> {
    let deadline = Instant::now() + config.join_timeout;
    limits::raise_files();
    limits::require_files(&format!("rank {} of {}", config.rank, config.size), connections(config))?;
    if config.rank.0 == 0 { as_root(config, deadline) } else { as_member(config, deadline) }
}

fn as_root(config: &JoinConfig, deadline: Instant) -> JoinResult<Joined> {
    let joined = |below: Vec<(Edge, Neighbour)>, hosts, temporary| {
        let (edges, children) = below.into_iter().unzip();
        let tree = Tree { rank: config.rank, size: config.size, parent: None, children: edges };
        Joined { tree, parent: None, children, hosts, temporary, broken: None }
    };
    if config.size == 1 {
        return Ok(joined(Vec::new(), vec![config.host.clone()], Vec::new()));
    }
    let address = SocketAddr::new(config.listen.unwrap_or(config.root.ip()), config.root.port());
    let mut acceptor = Acceptor::open(address, config.root_reserved, config.rank, &config.secret)?;
    let mut roster = Roster::new(config);
    let attached = roster.fill(&mut acceptor, deadline).and_then(|()| {
        roster.welcome();
        accept_children(&mut acceptor, config, deadline, || roster.check())
    });
    match attached {
        Ok(below) => {
            let mut hosts = vec![config.host.clone()];
            let mut streams = Vec::new();
            for entry in roster.entries.into_iter().flatten() {
                hosts.push(entry.host);
                streams.push(entry.stream);
            }
            Ok(joined(below, hosts, streams))
        }
        Err(error) => {
            (1..config.size).for_each(|rank| roster.tell(rank, &Answer::Ended));
            Err(error)
        }
    }
}

fn as_member(config: &JoinConfig, deadline: Instant) -> JoinResult<Joined> {
    let mut root = reach(config, Rank(0), config.root, deadline)?;
    let local = root.local_addr().map_err(|source| io_error("joining", source))?;
    let mut acceptor = None;
    if !tree::children(config.rank, config.size, config.fan_out).is_empty() {
        let address = SocketAddr::new(config.listen.unwrap_or(local.ip()), 0);
        acceptor = Some(Acceptor::open(address, false, config.rank, &config.secret)?);
    }
    let listens = acceptor.as_ref().and_then(|a| a.address().ok());
    let join = Join { size: config.size as u32, fan_out: config.fan_out as u32, host: config.host.clone(), listens };
    root.write_all(&framed(&join.encode())).map_err(|source| io_error("joining", source))?;
    let (parent_address, host) = await_welcome(config, &mut root, deadline)?;

    let parent = tree::parent(config.rank, config.fan_out).expect("rank 0 is not a member");
    let address = parent_address.unwrap_or(config.root);
    let edge = Edge { rank: parent, stream: attach(config, parent, address, Attach::Data, deadline)? };
    let watched = attach(config, parent, address, Attach::Watch, deadline)?;
    let parent = Neighbour::new(parent, host, watched).map_err(|source| io_error("joining", source))?;
    let below = match &mut acceptor {
        None => Ok(Vec::new()),
        Some(acceptor) => accept_children(acceptor, config, deadline, || still_wanted(config, &root)),
    };
    let (below, broken) = match below {
        Ok(below) => (below, None),
        Err(JoinError::Reported(error)) => (Vec::new(), Some(error)),
        Err(JoinError::Silent) => return Err(JoinError::Silent),
    };
    let (edges, children) = below.into_iter().unzip();
    let tree = Tree { rank: config.rank, size: config.size, parent: Some(edge), children: edges };
    Ok(Joined { tree, parent: Some(parent), children, hosts: Vec::new(), temporary: vec![root], broken })
}

/// Why a connection was not made.
enum Obstacle {
    /// May be over the next moment: nobody listens yet, or a stranger holds the port.
    Temporary(String),
    /// Likewise, but it looks as if the job was started wrongly: the user should know before the time is up.
    Suspect(String),
    /// Will not change: a rank of the job says so.
    Permanent(String),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Obstacle::Temporary(match error.kind() {
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// Connects to `peer` at `address` and proves the secret both ways.
fn connect(
    config: &JoinConfig,
    peer: Rank,
    address: SocketAddr,
    wait: CancellableWait<'_>,
) -> Result<TcpStream, Obstacle> {
    let (rank, secret) = (config.rank, &config.secret);
    let stream = wait.connect(address)?;
    // A port in the system's ephemeral range that nobody listens on can end up connected to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(Obstacle::Temporary("nobody listens there".into()));
    }
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(wait.limit))?;
    stream.set_write_timeout(Some(wait.limit))?;
    let mut handshake = InitiatorSide::start(Plane::Bootstrap, rank, peer, &stream)?;
    loop {
        return Err(match handshake.advance(&stream, secret) {
            Ok(None) => {
                wait.wait(&stream, PollFlags::IN)?;
                continue;
            }
            Ok(Some(Verdict::Accept)) => return Ok(stream),
            // It may have been closed in the meantime, to make room.
            Err(HandshakeError::Io(error)) => error.into(),
            Ok(Some(Verdict::Redirect)) | Err(HandshakeError::NotARank) => {
                Obstacle::Temporary(format!("what listens there is not rank {peer} of a tailback job"))
            }
            Err(HandshakeError::OtherVersion { version, proven }) => {
                let text = format!(
                    "rank {peer} at {address} speaks bootstrap protocol {version}, rank {rank} speaks {VERSION}: run the same tailback on all ranks"
                );
                if proven { Obstacle::Permanent(text) } else { Obstacle::Suspect(text) }
            }
            Err(HandshakeError::OtherSecret) => Obstacle::Suspect(format!(
                "what listens at {address} does not know the job secret of rank {rank}: check TAILBACK_SECRET is the same for all ranks"
            )),
        });
    }
}

/// Connects to a rank, trying again until `deadline`.
fn reach(config: &JoinConfig, peer: Rank, address: SocketAddr, deadline: Instant) -> JoinResult<TcpStream> {
    let mut pause = Duration::from_millis(10);
    let mut warned = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        let wait = CancellableWait { limit: left.min(CONNECT_LIMIT), is_cancelled: &|| config.is_abandoned() };
        let obstacle = match connect(config, peer, address, wait) {
            Ok(stream) => return Ok(stream),
            Err(Obstacle::Permanent(text)) => return Err(JoinError::setup(text)),
            Err(Obstacle::Temporary(text)) => text,
            Err(Obstacle::Suspect(text)) => {
                if !std::mem::replace(&mut warned, true) {
                    say("warning", &format!("{text} (trying again until the time to join is up)"));
                }
                text
            }
        };
        if config.is_abandoned() {
            return Err(JoinError::Silent);
        }
        if Instant::now() + pause >= deadline {
            return Err(JoinError::setup(format!(
                "rank {} (host {}) could not reach rank {peer} at {address} within {} s: {obstacle}",
                config.rank,
                config.host,
                config.join_timeout.as_secs_f64()
            )));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(300));
    }
}

fn attach(
    config: &JoinConfig,
    peer: Rank,
    address: SocketAddr,
    kind: Attach,
    deadline: Instant,
) -> JoinResult<TcpStream> {
    let mut stream = reach(config, peer, address, deadline)?;
    let set_up = |stream: &mut TcpStream| {
        stream.write_all(&framed(&kind.encode(&config.host)))?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)
    };
    set_up(&mut stream).map_err(|source| io_error("attaching to the tree", source))?;
    Ok(stream)
}

/// Waits for rank 0's answer: the parent's address (absent when that is rank 0 itself) and host.
fn await_welcome(
    config: &JoinConfig,
    root: &mut TcpStream,
    deadline: Instant,
) -> JoinResult<(Option<SocketAddr>, String)> {
    // Rank 0 started its own clock at another moment, and it is the one to say who is missing.
    let deadline = deadline + Duration::from_secs(5) + config.join_timeout;
    while !is_readable(root, CHECK_INTERVAL) {
        if config.is_abandoned() {
            return Err(JoinError::Silent);
        }
        if Instant::now() >= deadline {
            return Err(JoinError::setup(format!("rank 0 at {} does not go on", config.root)));
        }
    }
    let Ok(bytes) = read_framed(root) else { return Err(root_lost(config)) };
    match Answer::decode(&bytes)? {
        Answer::Welcome { parent, parent_host } => Ok((parent, parent_host)),
        Answer::Refused { reason } => Err(JoinError::setup(reason)),
        Answer::Ended => Err(JoinError::Silent),
    }
}

/// Rank 0 is gone, so rank 1 speaks for everybody.
fn root_lost(config: &JoinConfig) -> JoinError {
    if config.rank.0 != 1 {
        return JoinError::Silent;
    }
    // Its name was not told yet; its address is known to everybody.
    let host = config.root.ip().to_string();
    JoinError::setup(lost_message(Rank(0), &host, START_UP, "connection closed"))
}

fn still_wanted(config: &JoinConfig, root: &TcpStream) -> JoinResult<()> {
    if config.is_abandoned() {
        return Err(JoinError::Silent);
    }
    // After its welcome rank 0 says only that the job ends, by word or by closing.
    if is_readable(root, Duration::ZERO) { Err(JoinError::Silent) } else { Ok(()) }
}

fn is_readable(stream: &TcpStream, within: Duration) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    poll_until(&mut fds, Instant::now() + within).is_ok() && !fds[0].revents().is_empty()
}

/// Waits for both connections of every child; `check` says now and then whether it is still worth it.
fn accept_children(
    acceptor: &mut Acceptor,
    config: &JoinConfig,
    deadline: Instant,
    check: impl Fn() -> JoinResult<()>,
) -> JoinResult<Vec<(Edge, Neighbour)>> {
    let expected = tree::children(config.rank, config.size, config.fan_out);
    let mut halves: Vec<(Option<Edge>, Option<Neighbour>)> = expected.clone().map(|_| (None, None)).collect();
    let mut missing = 2 * halves.len();
    while missing > 0 {
        if Instant::now() >= deadline {
            let late: Vec<Rank> = expected
                .zip(&halves)
                .filter(|(_, (edge, neighbour))| edge.is_none() || neighbour.is_none())
                .map(|(rank, _)| Rank::from(rank))
                .collect();
            let text = format!("{} joined but did not connect to rank {} in time", Ranks(&late), config.rank);
            return Err(JoinError::setup(text));
        }
        for admitted in acceptor.step(deadline.min(Instant::now() + CHECK_INTERVAL))? {
            let (kind, host) = Attach::decode(&admitted.message)?;
            let (rank, stream) = (admitted.rank, admitted.stream);
            let half = rank.index().checked_sub(expected.start).and_then(|i| halves.get_mut(i));
            let fresh = match (kind, half) {
                (Attach::Data, Some((slot, _))) => slot.replace(Edge { rank, stream }).is_none(),
                (Attach::Watch, Some((_, slot))) => {
                    let neighbour = Neighbour::new(rank, host, stream).map_err(|source| io_error("joining", source))?;
                    slot.replace(neighbour).is_none()
                }
                (_, None) => false,
            };
            if !fresh {
                let text = format!("rank {rank} connected to rank {}, where it does not belong", config.rank);
                return Err(JoinError::setup(text));
            }
            missing -= 1;
        }
        check()?;
    }
    Ok(halves.into_iter().filter_map(|(edge, neighbour)| edge.zip(neighbour)).collect())
}

/// A rank that has joined; the connection stays open until the tree is complete, to notice its loss.
#[derive(Debug)]
struct Entry {
    stream: TcpStream,
    host: String,
    listens: Option<SocketAddr>,
}

#[derive(Debug)]
pub(crate) struct Roster<'a> {
    config: &'a JoinConfig,
    /// By rank; rank 0's own entry stays empty.
    entries: Vec<Option<Entry>>,
}

impl<'a> Roster<'a> {
    pub(crate) fn new(config: &'a JoinConfig) -> Self {
        Roster { config, entries: (0..config.size).map(|_| None).collect() }
    }

    /// Waits for every rank.
    pub(crate) fn fill(&mut self, acceptor: &mut Acceptor, deadline: Instant) -> JoinResult<()> {
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        let mut missing = self.config.size - 1;
        while missing > 0 {
            if Instant::now() >= deadline {
                return Err(self.too_late());
            }
            for admitted in acceptor.step(deadline.min(next_check))? {
                self.enter(admitted)?;
                missing -= 1;
            }
            if Instant::now() >= next_check {
                self.check()?;
                next_check = Instant::now() + CHECK_INTERVAL;
            }
        }
        Ok(())
    }

    fn enter(&mut self, admitted: Admitted) -> JoinResult<()> {
        let Admitted { mut stream, address, rank, message } = admitted;
        let checked = Join::decode(&message)
            .map_err(|e| e.to_string())
            .and_then(|join| self.objection(rank, &join, address).map_or(Ok(join), Err));
        match checked {
            Ok(Join { host, listens, .. }) => {
                self.entries[rank.index()] = Some(Entry { stream, host, listens });
                Ok(())
            }
            Err(reason) => {
                let _ = stream.write_all(&framed(&Answer::Refused { reason: reason.clone() }.encode()));
                Err(JoinError::setup(reason))
            }
        }
    }

    /// Why a rank that knows the secret still cannot be part of this job: the job was started wrongly.
    fn objection(&self, rank: Rank, join: &Join, address: SocketAddr) -> Option<String> {
        let (host, size) = (&join.host, self.config.size);
        if join.size as usize != size {
            return Some(format!(
                "rank {rank} (host {host}) was told that the job has {} ranks, rank 0 that it has {size}: \
                 check TAILBACK_SIZE is the same for all ranks",
                join.size
            ));
        }
        if rank.index() >= size {
            return Some(format!("rank {rank} (host {host}) is out of range: the job has ranks 0 to {}", size - 1));
        }
        let earlier =
            if rank.0 == 0 { Some(&self.config.host) } else { self.entries[rank.index()].as_ref().map(|e| &e.host) };
        if let Some(earlier) = earlier {
            return Some(format!(
                "two processes say they are rank {rank} (hosts {earlier} and {host}, the second from {address}): \
                 check TAILBACK_RANK is different for all ranks"
            ));
        }
        (join.fan_out as usize != self.config.fan_out).then(|| {
            format!(
                "rank {rank} (host {host}) has a tree with fan-out {}, rank 0 {}",
                join.fan_out, self.config.fan_out
            )
        })
    }

    fn too_late(&self) -> JoinError {
        let missing: Vec<Rank> = (1..self.config.size).filter(|r| self.entries[*r].is_none()).map(Rank::from).collect();
        JoinError::setup(format!(
            "{} did not join within {} s",
            Ranks(&missing),
            self.config.join_timeout.as_secs_f64()
        ))
    }

    /// Notices ranks, and the launcher, that went away while others are waited for, and a user who wants the end.
    pub(crate) fn check(&self) -> JoinResult<()> {
        if self.config.is_abandoned() {
            return Err(JoinError::Silent);
        }
        let here: Vec<(usize, &Entry)> =
            self.entries.iter().enumerate().filter_map(|(r, e)| Some((r, e.as_ref()?))).collect();
        let mut fds: Vec<PollFd<'_>> = here.iter().map(|(_, e)| PollFd::new(&e.stream, PollFlags::IN)).collect();
        poll_until(&mut fds, Instant::now()).map_err(|source| {
            JoinError::Reported(Error::Io { operation: "waiting for ranks to join", peer: None, source })
        })?;
        // A rank that has joined says nothing until it is answered, so anything to read is the end of it.
        match fds.iter().position(|fd| !fd.revents().is_empty()) {
            None => Ok(()),
            Some(at) => {
                let (rank, entry) = here[at];
                let text = lost_message(Rank::from(rank), &entry.host, START_UP, "connection closed");
                Err(JoinError::setup(text))
            }
        }
    }

    /// Tells every rank its parent in the tree.
    pub(crate) fn welcome(&mut self) {
        for rank in 1..self.config.size {
            let parent = tree::parent(Rank::from(rank), self.config.fan_out).expect("only rank 0 has no parent");
            let above = self.entries[parent.index()].as_ref();
            let answer = Answer::Welcome {
                parent: above.and_then(|e| e.listens),
                parent_host: above.map_or(&self.config.host, |e| &e.host).clone(),
            };
            self.tell(rank, &answer);
        }
    }

    fn tell(&mut self, rank: usize, answer: &Answer) {
        if let Some(entry) = &mut self.entries[rank] {
            // A rank that cannot be told is lost, which the next check sees.
            let _ = entry.stream.set_write_timeout(Some(Duration::from_secs(1)));
            let _ = entry.stream.write_all(&framed(&answer.encode()));
        }
    }
}

fn io_error(operation: &'static str, source: io::Error) -> Error {
    Error::Io { operation, peer: Some(Rank(0)), source }
}

/// How many connections this rank has open at most: rank 0 one to everybody until the tree stands, each rank two to a
/// neighbour in the tree, one of which the watcher holds once more.
fn connections(config: &JoinConfig) -> usize {
    let neighbours = tree::children(config.rank, config.size, config.fan_out).len() + 1;
    let joining = if config.rank.0 == 0 { config.size - 1 } else { 1 };
    joining + 3 * neighbours
}
