//! A neighbour in the tree, as a watcher sees it: framed messages over a socket that never blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use tailback_transport::Rank;

use crate::message::{Watch, framed};
use crate::polling::poll_until;

/// The largest watch message: heartbeats of a large subtree.
const FRAME_LIMIT: usize = 16 << 20;
/// Heartbeats are dropped while this many bytes wait to leave; the neighbour does not read.
const BACKLOG_LIMIT: usize = 1 << 20;
/// How long a last message may take to reach the neighbours.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) rank: Rank,
    pub(crate) host: String,
    stream: TcpStream,
    received: Vec<u8>,
    outgoing: Vec<u8>,
    pub(crate) heard: Instant,
    /// The phase of its last heartbeat.
    pub(crate) phase: Option<String>,
    /// Said goodbye.
    pub(crate) done: bool,
    /// Nothing more comes from it.
    pub(crate) closed: bool,
}

/// What a read brought.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) messages: Vec<Watch>,
    /// Why nothing more will come, if so.
    pub(crate) closed: Option<String>,
}

impl Neighbour {
    pub(crate) fn new(rank: Rank, host: String, stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (received, outgoing, heard) = (Vec::new(), Vec::new(), Instant::now());
        Ok(Neighbour { rank, host, stream, received, outgoing, heard, phase: None, done: false, closed: false })
    }

    /// Waits for what it sends, and for room if something is to be sent.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        let out = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&self.stream, PollFlags::IN | out)
    }

    /// Sends what fits now and keeps the rest. A dead connection shows when it is read.
    pub(crate) fn send(&mut self, message: &Watch) {
        let expendable = matches!(message, Watch::Beats(_) | Watch::Pulse(_));
        if expendable && self.outgoing.len() > BACKLOG_LIMIT {
            return;
        }
        self.outgoing.extend(framed(&message.encode()));
        self.flush();
    }

    pub(crate) fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// Everything that has arrived.
    pub(crate) fn receive(&mut self) -> Inbox {
        let mut inbox = Inbox::default();
        let mut chunk = [0; 16 << 10];
        // Bounded, so that a flood from one neighbour does not keep the watcher from the others.
        for _ in 0..64 {
            match self.stream.read(&mut chunk) {
                Ok(0) => inbox.closed = Some("connection closed".into()),
                Ok(count) => {
                    self.received.extend_from_slice(&chunk[..count]);
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => {
                    inbox.closed = Some("connection closed".into());
                }
                Err(e) => inbox.closed = Some(e.to_string()),
            }
            break;
        }
        self.take_messages(&mut inbox);
        inbox
    }

    fn take_messages(&mut self, inbox: &mut Inbox) {
        let mut rest = self.received.as_slice();
        while let Some((header, tail)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*header) as usize;
            if length > FRAME_LIMIT {
                inbox.closed = Some("it sent a message that is too long".into());
                break;
            }
            let Some((payload, tail)) = tail.split_at_checked(length) else { break };
            match Watch::decode(payload) {
                Ok(message) => inbox.messages.push(message),
                Err(e) => {
                    inbox.closed = Some(e.to_string());
                    break;
                }
            }
            rest = tail;
        }
        let used = self.received.len() - rest.len();
        self.received.drain(..used);
    }
}

/// Sends a last message and waits a moment until the neighbours hang up or say goodbye, so that nothing they still send
/// can make the system throw the message away.
pub(crate) fn send_last<'a>(neighbours: impl Iterator<Item = &'a mut Neighbour>, message: &Watch) {
    let deadline = Instant::now() + LINGER;
    let mut open: Vec<&mut Neighbour> = neighbours.filter(|n| !n.closed).collect();
    open.iter_mut().for_each(|n| n.send(message));
    while Instant::now() < deadline {
        for neighbour in &mut open {
            neighbour.flush();
            if neighbour.outgoing.is_empty() {
                // It can still be read.
                let _ = neighbour.stream.shutdown(Shutdown::Write);
            }
            let inbox = neighbour.receive();
            neighbour.closed = inbox.closed.is_some() || inbox.messages.contains(&Watch::Goodbye);
        }
        open.retain(|n| !n.closed);
        let mut fds: Vec<PollFd<'_>> = open.iter().map(|n| n.poll_fd()).collect();
        if fds.is_empty() || poll_until(&mut fds, deadline).is_err() {
            return;
        }
    }
}
