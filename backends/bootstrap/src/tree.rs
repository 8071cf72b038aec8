//! The tree and the collectives on it.
//!
//! Rank r's parent is (r - 1) / fan-out. Every edge has one blocking connection for collectives; messages are taken
//! from children in rank order, one child at a time, so a node of a reduction holds its own bytes and one child's. The
//! system's flow control makes the other children wait. Liveness is the watcher's business: a dead neighbour shows
//! here as an error, never as a hang.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use tailback_transport::{Error, Merge, Rank, Result};

use crate::codec::{Decoder, Encoder, malformed};

/// The largest message between two ranks.
const FRAME_LIMIT: usize = 256 << 20;

/// The rank above, in a tree with this fan-out.
pub(crate) fn parent(rank: Rank, fan_out: usize) -> Option<Rank> {
    rank.index().checked_sub(1).map(|r| Rank::from(r / fan_out))
}

/// The ranks below.
pub(crate) fn children(rank: Rank, size: usize, fan_out: usize) -> std::ops::Range<usize> {
    let first = rank.index().saturating_mul(fan_out).saturating_add(1);
    first.min(size)..first.saturating_add(fan_out).min(size)
}

/// A neighbour in the tree.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) rank: Rank,
    pub(crate) stream: TcpStream,
}

/// Which collective a message belongs to; ranks that call them in different orders are told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Barrier = 1,
    Broadcast = 2,
    Reduce = 3,
    Gather = 4,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Barrier => "bootstrap barrier",
            Step::Broadcast => "bootstrap broadcast",
            Step::Reduce => "bootstrap reduce",
            Step::Gather => "bootstrap allgather",
        }
    }
}

/// One rank's place in the tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) rank: Rank,
    pub(crate) size: usize,
    pub(crate) parent: Option<Edge>,
    /// In rank order.
    pub(crate) children: Vec<Edge>,
}

impl Tree {
    pub(crate) fn barrier(&mut self) -> Result<()> {
        for child in &mut self.children {
            child.receive(Step::Barrier)?;
        }
        if let Some(parent) = &mut self.parent {
            parent.send(Step::Barrier, &[])?;
        }
        self.down(Step::Barrier, Vec::new()).map(drop)
    }

    pub(crate) fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.down(Step::Broadcast, bytes)
    }

    pub(crate) fn reduce(&mut self, mut mine: Vec<u8>, merge: Merge<'_>) -> Result<Option<Vec<u8>>> {
        for child in &mut self.children {
            let theirs = child.receive(Step::Reduce)?;
            merge(&mut mine, &theirs)?;
        }
        match &mut self.parent {
            None => Ok(Some(mine)),
            Some(parent) => parent.send(Step::Reduce, &mine).map(|()| None),
        }
    }

    pub(crate) fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut subtree = Encoder::default().u32(self.rank.0).bytes(mine).0;
        for child in &mut self.children {
            subtree.extend(child.receive(Step::Gather)?);
        }
        if let Some(parent) = &mut self.parent {
            parent.send(Step::Gather, &subtree)?;
        }
        let all = self.down(Step::Gather, subtree)?;
        self.in_rank_order(&all)
    }

    /// Rank 0's bytes to every rank.
    fn down(&mut self, step: Step, mine: Vec<u8>) -> Result<Vec<u8>> {
        let bytes = match &mut self.parent {
            None => mine,
            Some(parent) => parent.receive(step)?,
        };
        for child in &mut self.children {
            child.send(step, &bytes)?;
        }
        Ok(bytes)
    }

    fn in_rank_order(&self, all: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut by_rank = vec![None; self.size];
        let mut decoder = Decoder::new(all);
        while !decoder.is_empty() {
            let rank = decoder.u32()? as usize;
            let slot = by_rank.get_mut(rank).ok_or_else(|| malformed("an allgather holds a rank out of range"))?;
            *slot = Some(decoder.bytes()?.to_vec());
        }
        by_rank.into_iter().collect::<Option<_>>().ok_or_else(|| malformed("an allgather lacks a rank"))
    }
}

impl Edge {
    fn send(&mut self, step: Step, bytes: &[u8]) -> Result<()> {
        if bytes.len() > FRAME_LIMIT {
            let detail = format!("{} bytes are more than a message may have ({FRAME_LIMIT})", bytes.len());
            return Err(Error::Usage { operation: step.name(), detail });
        }
        let mut header = [0; 9];
        header[0] = step as u8;
        header[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        // One write for small messages: fewer packets, no wait for an acknowledgement between them.
        let sent = if bytes.len() <= 4096 {
            self.stream.write_all(&[&header, bytes].concat())
        } else {
            self.stream.write_all(&header).and_then(|()| self.stream.write_all(bytes))
        };
        sent.map_err(|e| self.error(step, &e))
    }

    fn receive(&mut self, step: Step) -> Result<Vec<u8>> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header).map_err(|e| self.error(step, &e))?;
        let length = u64::from_le_bytes(header[1..].try_into().expect("eight bytes"));
        let refuse = |detail: String| Error::Protocol { operation: step.name(), peer: Some(self.rank), detail };
        if header[0] != step as u8 {
            return Err(refuse(format!("it is in another collective (kind {})", header[0])));
        }
        let length = usize::try_from(length).ok().filter(|l| *l <= FRAME_LIMIT);
        let length = length.ok_or_else(|| refuse("its message is too long".into()))?;
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).map_err(|e| self.error(step, &e))?;
        Ok(bytes)
    }

    fn error(&self, step: Step, error: &io::Error) -> Error {
        let detail = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                "connection closed".to_owned()
            }
            _ => error.to_string(),
        };
        Error::PeerLost { operation: step.name(), peer: self.rank, detail }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parents_and_children_agree(size in 1usize..500, fan_out in 1usize..40) {
            let mut seen = vec![0; size];
            for rank in 0..size {
                for child in children(Rank::from(rank), size, fan_out) {
                    prop_assert_eq!(parent(Rank::from(child), fan_out), Some(Rank::from(rank)));
                    seen[child] += 1;
                }
            }
            prop_assert_eq!(parent(Rank(0), fan_out), None);
            prop_assert!(seen[1..].iter().all(|count| *count == 1) && seen[0] == 0);
        }
    }
}
