//! What ranks say to each other outside collectives: joining, attaching to the tree, and watching over each other.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};

use tailback_transport::{Rank, Result};

use crate::codec::{Decoder, Encoder, malformed};

/// The largest message while joining: a host name and an address or two.
pub(crate) const SMALL_FRAME: usize = 64 << 10;

/// A message with its length in front.
pub(crate) fn framed(payload: &[u8]) -> Vec<u8> {
    Encoder::default().bytes(payload).0
}

/// Reads one [`framed`] message while joining.
pub(crate) fn read_framed(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > SMALL_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

/// A rank's first message to rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) size: u32,
    pub(crate) fan_out: u32,
    pub(crate) host: String,
    /// Where its children in the tree reach it; absent when it has none.
    pub(crate) listens: Option<SocketAddr>,
}

impl Join {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let listens = self.listens.map(|a| a.to_string());
        Encoder::default().u32(self.size).u32(self.fan_out).text(&self.host).optional(listens.as_deref()).0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(bytes);
        Ok(Join { size: d.u32()?, fan_out: d.u32()?, host: d.text()?, listens: d.optional_address()? })
    }
}

/// Rank 0's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Everybody is here; this is the rank's parent. Without an address it is rank 0, which the rank already knows.
    Welcome { parent: Option<SocketAddr>, parent_host: String },
    /// The rank itself is wrong and has to say so.
    Refused { reason: String },
    /// The job ends for a reason that rank 0 prints.
    Ended,
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let e = Encoder::default();
        match self {
            Answer::Welcome { parent, parent_host } => {
                e.u8(1).optional(parent.map(|a| a.to_string()).as_deref()).text(parent_host)
            }
            Answer::Refused { reason } => e.u8(2).text(reason),
            Answer::Ended => e.u8(3),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(bytes);
        match d.u8()? {
            1 => Ok(Answer::Welcome { parent: d.optional_address()?, parent_host: d.text()? }),
            2 => Ok(Answer::Refused { reason: d.text()? }),
            3 => Ok(Answer::Ended),
            other => Err(malformed(&format!("unknown answer {other} to a join"))),
        }
    }
}

/// What a connection in the tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    /// Collectives, by the rank's own thread.
    Data,
    /// Liveness, by its watcher.
    Watch,
}

impl Attach {
    pub(crate) fn encode(self, host: &str) -> Vec<u8> {
        Encoder::default().u8(if self == Attach::Data { 1 } else { 2 }).text(host).0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, String)> {
        let mut d = Decoder::new(bytes);
        let kind = match d.u8()? {
            1 => Attach::Data,
            2 => Attach::Watch,
            other => return Err(malformed(&format!("unknown connection kind {other}"))),
        };
        Ok((kind, d.text()?))
    }
}

/// What a rank is doing, as far as progress goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Its own work: ticks have to move.
    Busy = 0,
    /// Inside a bootstrap collective, where it is others that must make progress.
    Waiting = 1,
    /// Said goodbye.
    Done = 2,
}

impl State {
    fn decode(byte: u8) -> Result<Self> {
        [State::Busy, State::Waiting, State::Done]
            .into_iter()
            .find(|s| *s as u8 == byte)
            .ok_or_else(|| malformed("unknown state of a rank"))
    }
}

/// A rank's sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) rank: Rank,
    pub(crate) ticks: u64,
    /// Bootstrap collectives entered.
    pub(crate) collectives: u64,
    pub(crate) state: State,
    /// Only when it changed.
    pub(crate) phase: Option<String>,
}

/// Why the job has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// A rank is gone; its phase where its last sign of life told.
    Lost { rank: Rank, phase: Option<String>, detail: String },
    /// A rank gave up.
    Abort { rank: Rank, host: String, phase: String, reason: String },
}

/// What watchers send each other along the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Up: signs of life of a subtree, about once a second.
    Beats(Vec<Beat>),
    /// Up: the job has to end.
    Report(Report),
    /// Down: the parent is alive and in this phase.
    Pulse(String),
    /// Down: rank 0 has a report and will end the job.
    Noted,
    /// Down: end now; rank 0 has printed why.
    End,
    /// Both ways: nothing more comes, and that is all right.
    Goodbye,
}

impl Watch {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let e = Encoder::default();
        match self {
            Watch::Beats(beats) => beats.iter().fold(e.u8(1), |e, b| {
                e.u32(b.rank.0).u64(b.ticks).u64(b.collectives).u8(b.state as u8).optional(b.phase.as_deref())
            }),
            Watch::Report(Report::Lost { rank, phase, detail }) => {
                e.u8(2).u32(rank.0).optional(phase.as_deref()).text(detail)
            }
            Watch::Report(Report::Abort { rank, host, phase, reason }) => {
                e.u8(3).u32(rank.0).text(host).text(phase).text(reason)
            }
            Watch::Pulse(phase) => e.u8(4).text(phase),
            Watch::Noted => e.u8(5),
            Watch::End => e.u8(6),
            Watch::Goodbye => e.u8(7),
        }
        .0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(bytes);
        Ok(match d.u8()? {
            1 => Watch::Beats(decode_beats(&mut d)?),
            2 => Watch::Report(Report::Lost { rank: Rank(d.u32()?), phase: d.optional()?, detail: d.text()? }),
            3 => Watch::Report(Report::Abort {
                rank: Rank(d.u32()?),
                host: d.text()?,
                phase: d.text()?,
                reason: d.text()?,
            }),
            4 => Watch::Pulse(d.text()?),
            5 => Watch::Noted,
            6 => Watch::End,
            7 => Watch::Goodbye,
            other => return Err(malformed(&format!("unknown watch message {other}"))),
        })
    }
}

fn decode_beats(d: &mut Decoder<'_>) -> Result<Vec<Beat>> {
    let mut beats = Vec::new();
    while !d.is_empty() {
        beats.push(Beat {
            rank: Rank(d.u32()?),
            ticks: d.u64()?,
            collectives: d.u64()?,
            state: State::decode(d.u8()?)?,
            phase: d.optional()?,
        });
    }
    Ok(beats)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        let join = Join { size: 7, fan_out: 32, host: "node3".into(), listens: Some("127.0.0.1:9".parse().unwrap()) };
        assert_eq!(Join::decode(&join.encode()).unwrap(), join);
        for answer in [
            Answer::Welcome { parent: Some("[::1]:80".parse().unwrap()), parent_host: "a".into() },
            Answer::Welcome { parent: None, parent_host: String::new() },
            Answer::Refused { reason: "no".into() },
            Answer::Ended,
        ] {
            assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
        }
        for kind in [Attach::Data, Attach::Watch] {
            assert_eq!(Attach::decode(&kind.encode("h")).unwrap(), (kind, "h".to_owned()));
        }
        let beat =
            Beat { rank: Rank(1), ticks: u64::MAX, collectives: 2, state: State::Waiting, phase: Some("p".into()) };
        for watch in [
            Watch::Beats(vec![beat.clone(), Beat { phase: None, state: State::Done, ..beat }]),
            Watch::Report(Report::Lost { rank: Rank(3), phase: None, detail: "d".into() }),
            Watch::Report(Report::Abort { rank: Rank(3), host: "h".into(), phase: "p".into(), reason: "r".into() }),
            Watch::Pulse("loaded".into()),
            Watch::Noted,
            Watch::End,
            Watch::Goodbye,
        ] {
            assert_eq!(Watch::decode(&watch.encode()).unwrap(), watch);
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Join::decode(&bytes), Answer::decode(&bytes), Attach::decode(&bytes));
            if let Ok(watch) = Watch::decode(&bytes) {
                prop_assert!(watch.encode().len() <= bytes.len());
            }
        }
    }
}
