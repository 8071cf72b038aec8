//! A watcher's connection to a neighbour in the tree: framed messages over a socket that never blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::handshake::framed;
use crate::message::Watch;

/// The largest watch message: signs of life of a large subtree.
const FRAME_LIMIT: usize = 16 << 20;
/// Signs of life are dropped while this many bytes wait to leave; the neighbour does not read.
const BACKLOG_LIMIT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    received: Vec<u8>,
    outgoing: Vec<u8>,
}

/// What a read brought.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) messages: Vec<Watch>,
    /// Why nothing more will come, if so.
    pub(crate) closed: Option<String>,
}

impl Link {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Link { stream, received: Vec::new(), outgoing: Vec::new() })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
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

    /// Tells the neighbour that nothing more comes; it can still be read.
    pub(crate) fn close_sending(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
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
            let length = u32::from_be_bytes(*header) as usize;
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
