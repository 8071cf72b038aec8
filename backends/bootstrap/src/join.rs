//! How ranks come together: everyone meets at rank 0, learns its parent, and the tree is built from there.
//!
//! A rank connects to its parent before it accepts its children, so the tree grows level by level from rank 0 and no
//! two ranks wait for each other.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::{Error, Rank, START_UP};

use crate::config::JoinConfig;
use crate::failure::{Ranks, say};
use crate::files;
use crate::gate::Gate;
use crate::handshake::{Obstacle, connect, framed, read_framed};
use crate::judge::lost_message;
use crate::message::{Answer, Attach, Join};
use crate::patience::Patience;
use crate::polling::poll_until;
use crate::roster::Roster;
use crate::setback::{CHECK_INTERVAL, JoinResult, Setback};
use crate::tree::{self, Edge, Tree};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A neighbour as the watcher sees it.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) rank: Rank,
    pub(crate) host: String,
    pub(crate) stream: TcpStream,
}

/// A rank's place in the job.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) tree: Tree,
    pub(crate) watch_parent: Option<Neighbour>,
    pub(crate) watch_children: Vec<Neighbour>,
    /// Every rank's host, on rank 0.
    pub(crate) hosts: Vec<String>,
    /// Connections from joining; closed once the tree stands.
    pub(crate) scaffold: Vec<TcpStream>,
    /// The tree below is incomplete: the job has to end, and the watcher can say so.
    pub(crate) broken: Option<Error>,
}

pub(crate) fn join(config: &JoinConfig) -> JoinResult<Place> {
    let deadline = Instant::now() + config.join_timeout;
    files::raise_limit();
    files::make_room(&format!("rank {} of {}", config.rank, config.size), connections(config))?;
    if config.rank.0 == 0 { as_root(config, deadline) } else { as_member(config, deadline) }
}

fn as_root(config: &JoinConfig, deadline: Instant) -> JoinResult<Place> {
    if config.size == 1 {
        return Ok(place(config, None, Vec::new(), vec![config.host.clone()], Vec::new(), None));
    }
    let address = SocketAddr::new(config.listen.unwrap_or(config.root.ip()), config.root.port());
    let mut gate = Gate::open(address, config.root_reserved, config.rank, &config.secret)?;
    let mut roster = Roster::new(config);
    let attached = roster.fill(&mut gate, deadline).and_then(|()| {
        roster.welcome();
        accept_children(&mut gate, config, deadline, || roster.check())
    });
    match attached {
        Ok(below) => {
            let (hosts, scaffold) = roster.into_hosts();
            Ok(place(config, None, below, hosts, scaffold, None))
        }
        Err(setback) => {
            roster.dismiss();
            Err(setback)
        }
    }
}

fn as_member(config: &JoinConfig, deadline: Instant) -> JoinResult<Place> {
    let mut root = reach(config, Rank(0), config.root, deadline)?;
    let local = root.local_addr().map_err(|source| io_error("joining", source))?;
    let mut gate = None;
    if !tree::children(config.rank, config.size, config.fan_out).is_empty() {
        let address = SocketAddr::new(config.listen.unwrap_or(local.ip()), 0);
        gate = Some(Gate::open(address, false, config.rank, &config.secret)?);
    }
    let listens = gate.as_ref().and_then(|g| g.address().ok());
    let join = Join { size: config.size as u32, fan_out: config.fan_out as u32, host: config.host.clone(), listens };
    root.write_all(&framed(&join.encode())).map_err(|source| io_error("joining", source))?;
    let (parent_address, host) = await_welcome(config, &mut root, deadline)?;

    let rank = tree::parent(config.rank, config.fan_out).expect("rank 0 is not a member");
    let address = parent_address.unwrap_or(config.root);
    let data = attach(config, rank, address, Attach::Data, deadline)?;
    let stream = attach(config, rank, address, Attach::Watch, deadline)?;
    let above = (Edge { rank, stream: data }, Neighbour { rank, host, stream });
    let below = match &mut gate {
        None => Ok(Vec::new()),
        Some(gate) => accept_children(gate, config, deadline, || still_wanted(config, &root)),
    };
    match below {
        Ok(below) => Ok(place(config, Some(above), below, Vec::new(), vec![root], None)),
        Err(Setback::Mine(error)) => Ok(place(config, Some(above), Vec::new(), Vec::new(), vec![root], Some(error))),
        Err(Setback::Theirs) => Err(Setback::Theirs),
    }
}

fn place(
    config: &JoinConfig,
    above: Option<(Edge, Neighbour)>,
    below: Vec<(Edge, Neighbour)>,
    hosts: Vec<String>,
    scaffold: Vec<TcpStream>,
    broken: Option<Error>,
) -> Place {
    let (parent, watch_parent) = above.unzip();
    let (children, watch_children) = below.into_iter().unzip();
    let tree = Tree { rank: config.rank, size: config.size, parent, children };
    Place { tree, watch_parent, watch_children, hosts, scaffold, broken }
}

/// Connects to a rank, trying again until `deadline`.
fn reach(config: &JoinConfig, peer: Rank, address: SocketAddr, deadline: Instant) -> JoinResult<TcpStream> {
    let mut pause = Duration::from_millis(10);
    let mut warned = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        let patience = Patience { limit: left.min(CONNECT_LIMIT), is_over: &|| config.is_abandoned() };
        let obstacle = match connect(address, config.rank, peer, &config.secret, patience) {
            Ok(stream) => return Ok(stream),
            Err(Obstacle::Lasting(error)) => return Err(error.into()),
            Err(Obstacle::Passing(text)) => text,
            Err(Obstacle::Suspect(text)) => {
                if !std::mem::replace(&mut warned, true) {
                    say("warning", &format!("{text} (trying again until the time to join is up)"));
                }
                text
            }
        };
        if config.is_abandoned() {
            return Err(Setback::Theirs);
        }
        if Instant::now() + pause >= deadline {
            return Err(Setback::Mine(Error::Setup(format!(
                "rank {} (host {}) could not reach rank {peer} at {address} within {} s: {obstacle}",
                config.rank,
                config.host,
                config.join_timeout.as_secs_f64()
            ))));
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
            return Err(Setback::Theirs);
        }
        if Instant::now() >= deadline {
            return Err(Setback::Mine(Error::Setup(format!("rank 0 at {} does not go on", config.root))));
        }
    }
    let Ok(bytes) = read_framed(root) else { return Err(root_lost(config)) };
    match Answer::decode(&bytes)? {
        Answer::Welcome { parent, parent_host } => Ok((parent, parent_host)),
        Answer::Refused { reason } => Err(Setback::Mine(Error::Setup(reason))),
        Answer::Ended => Err(Setback::Theirs),
    }
}

/// Rank 0 is gone, so rank 1 speaks for everybody.
fn root_lost(config: &JoinConfig) -> Setback {
    if config.rank.0 != 1 {
        return Setback::Theirs;
    }
    // Its name was not told yet; its address is known to everybody.
    let host = config.root.ip().to_string();
    Setback::Mine(Error::Setup(lost_message(Rank(0), &host, START_UP, "connection closed")))
}

fn still_wanted(config: &JoinConfig, root: &TcpStream) -> JoinResult<()> {
    if config.is_abandoned() {
        return Err(Setback::Theirs);
    }
    // After its welcome rank 0 says only that the job ends, by word or by closing.
    if is_readable(root, Duration::ZERO) { Err(Setback::Theirs) } else { Ok(()) }
}

fn is_readable(stream: &TcpStream, within: Duration) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    poll_until(&mut fds, Instant::now() + within).is_ok() && !fds[0].revents().is_empty()
}

/// Waits for both connections of every child; `check` says now and then whether it is still worth it.
fn accept_children(
    gate: &mut Gate,
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
            return Err(Setback::Mine(Error::Setup(text)));
        }
        for admitted in gate.step(deadline.min(Instant::now() + CHECK_INTERVAL))? {
            let (kind, host) = Attach::decode(&admitted.message)?;
            let (rank, stream) = (admitted.rank, admitted.stream);
            let half = rank.index().checked_sub(expected.start).and_then(|i| halves.get_mut(i));
            let fresh = match (kind, half) {
                (Attach::Data, Some((slot, _))) => slot.replace(Edge { rank, stream }).is_none(),
                (Attach::Watch, Some((_, slot))) => slot.replace(Neighbour { rank, host, stream }).is_none(),
                (_, None) => false,
            };
            if !fresh {
                let text = format!("rank {rank} connected to rank {}, where it does not belong", config.rank);
                return Err(Setback::Mine(Error::Setup(text)));
            }
            missing -= 1;
        }
        check()?;
    }
    Ok(halves.into_iter().filter_map(|(edge, neighbour)| edge.zip(neighbour)).collect())
}

fn io_error(operation: &'static str, source: std::io::Error) -> Error {
    Error::Io { operation, peer: Some(Rank(0)), source }
}

/// How many connections this rank has open at most: rank 0 one to everybody until the tree stands, each rank two to a
/// neighbour in the tree, one of which the watcher holds once more.
fn connections(config: &JoinConfig) -> usize {
    let neighbours = tree::children(config.rank, config.size, config.fan_out).len() + 1;
    let joining = if config.rank.0 == 0 { config.size - 1 } else { 1 };
    joining + 3 * neighbours
}
