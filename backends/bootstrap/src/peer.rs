//! A neighbour in the tree, as a watcher sees it.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::Rank;

use crate::join::Neighbour;
use crate::link::Link;
use crate::message::Watch;
use crate::polling::poll_until;

/// How long last words may take to reach the neighbours.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) rank: Rank,
    pub(crate) host: String,
    pub(crate) link: Link,
    pub(crate) heard: Instant,
    /// Where its last sign of life came from.
    pub(crate) phase: Option<String>,
    /// Said goodbye.
    pub(crate) done: bool,
    /// Nothing more comes from it.
    pub(crate) closed: bool,
}

impl Peer {
    pub(crate) fn new(neighbour: Neighbour) -> io::Result<Self> {
        let Neighbour { rank, host, stream } = neighbour;
        let link = Link::new(stream)?;
        Ok(Peer { rank, host, link, heard: Instant::now(), phase: None, done: false, closed: false })
    }
}

/// Sends a message to `peers` and waits a moment until they hang up or say goodbye, so that nothing they still send
/// can make the system throw the message away.
pub(crate) fn last_words<'a>(peers: impl Iterator<Item = &'a mut Peer>, message: &Watch) {
    let deadline = Instant::now() + LINGER;
    let mut peers: Vec<&mut Peer> = peers.filter(|p| !p.closed).collect();
    peers.iter_mut().for_each(|p| p.link.send(message));
    while Instant::now() < deadline {
        for peer in &mut peers {
            peer.link.flush();
            if !peer.link.has_outgoing() {
                peer.link.close_sending();
            }
            let inbox = peer.link.receive();
            peer.closed = inbox.closed.is_some() || inbox.messages.contains(&Watch::Goodbye);
        }
        peers.retain(|p| !p.closed);
        if peers.is_empty() {
            return;
        }
        let wanted =
            |p: &&mut Peer| PollFlags::IN | if p.link.has_outgoing() { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds: Vec<PollFd<'_>> = peers.iter().map(|p| PollFd::new(p.link.stream(), wanted(p))).collect();
        if poll_until(&mut fds, deadline).is_err() {
            return;
        }
    }
}
