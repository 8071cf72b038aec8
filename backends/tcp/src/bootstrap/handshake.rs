//! The words before any message: who are you, prove it, and the initiator's side of them.
//!
//! Everything before the proof has a fixed, small size, so a stranger cannot make a rank read or hold much.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use tailback_transport::{Error, Rank};

use super::patience::Patience;
use crate::secret::{self, Handshake, NONCE_LEN, Nonce, PROOF_LEN, Plane, Proof, Role, Secret};

const MAGIC: [u8; 8] = *b"TAILBOOT";
/// Raised whenever ranks of different builds could misunderstand each other.
pub(super) const VERSION: u16 = 2;
pub(super) const HELLO_LEN: usize = 8 + 2 + 4 + 4 + NONCE_LEN;
const CHALLENGE_LEN: usize = 8 + 2 + NONCE_LEN;
const VERDICT_LEN: usize = 1 + PROOF_LEN;
/// The largest message while joining: a host name and an address or two.
pub(super) const SMALL_FRAME: usize = 64 << 10;

/// What an initiator opens with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hello {
    pub(super) version: u16,
    pub(super) rank: Rank,
    pub(super) wants: Rank,
    pub(super) nonce: Nonce,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.rank.0.to_be_bytes());
        bytes.extend(self.wants.0.to_be_bytes());
        bytes.extend(self.nonce);
        bytes
    }

    /// `None` for words that no tailback rank says.
    pub(super) fn decode(bytes: &[u8; HELLO_LEN]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (wants, nonce) = rest.split_first_chunk()?;
        (*magic == MAGIC).then_some(Hello {
            version: u16::from_be_bytes(*version),
            rank: Rank(u32::from_be_bytes(*rank)),
            wants: Rank(u32::from_be_bytes(*wants)),
            nonce: nonce.try_into().ok()?,
        })
    }

    pub(super) fn handshake(&self, acceptor_nonce: Nonce) -> Handshake {
        Handshake {
            plane: Plane::Bootstrap,
            initiator: self.rank,
            acceptor: self.wants,
            initiator_nonce: self.nonce,
            acceptor_nonce,
        }
    }
}

/// The acceptor's challenge. It carries the version, so that both sides can say what differs.
pub(super) fn challenge(nonce: &Nonce) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend(nonce);
    bytes
}

/// The acceptor's verdict on a proof: its own proof, or a refusal.
pub(super) fn verdict(proof: Option<Proof>) -> Vec<u8> {
    let mut bytes = vec![u8::from(proof.is_some())];
    bytes.extend(proof.unwrap_or_default());
    bytes
}

/// A message with its length in front.
pub(super) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).expect("small message").to_be_bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads one [`framed`] message while joining.
pub(super) fn read_framed(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > SMALL_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

/// Why a connection was not made.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// May be over the next moment: nobody listens yet, or a stranger holds the port.
    Passing(String),
    /// Will not change.
    Lasting(Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Obstacle::Passing(match error.kind() {
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// Connects to `peer` at `address`, as `rank`, and proves the secret both ways, each step with `patience`.
pub(super) fn connect(
    address: SocketAddr,
    rank: Rank,
    peer: Rank,
    secret: &Secret,
    patience: Patience<'_>,
) -> Result<TcpStream, Obstacle> {
    let mut stream = patience.connect(address)?;
    // A port in the system's ephemeral range that nobody listens on can end up connected to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(Obstacle::Passing("nobody listens there".into()));
    }
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience.limit))?;
    stream.set_write_timeout(Some(patience.limit))?;

    let nonce = secret::nonce().map_err(Obstacle::Lasting)?;
    let hello = Hello { version: VERSION, rank, wants: peer, nonce };
    stream.write_all(&hello.encode())?;
    let mut challenge = [0; CHALLENGE_LEN];
    patience.read_exact(&mut stream, &mut challenge)?;
    if challenge[..8] != MAGIC {
        return Err(Obstacle::Passing(format!("what listens there is not rank {peer} of a tailback job")));
    }
    let version = u16::from_be_bytes([challenge[8], challenge[9]]);
    if version != VERSION {
        return Err(Obstacle::Lasting(Error::Setup(format!(
            "rank {peer} at {address} speaks bootstrap protocol {version}, rank {rank} speaks {VERSION}: run the same tailback on all ranks"
        ))));
    }
    let acceptor_nonce = challenge[10..].try_into().expect("challenge holds a nonce");
    let handshake = hello.handshake(acceptor_nonce);
    stream.write_all(&handshake.prove(secret, Role::Initiator))?;

    let mut verdict = [0; VERDICT_LEN];
    patience.read_exact(&mut stream, &mut verdict)?;
    if verdict[0] == 0 {
        return Err(Obstacle::Lasting(Error::Setup(format!(
            "rank {peer} at {address} refused the job secret: check TAILBACK_SECRET is the same for all ranks"
        ))));
    }
    let proof: Proof = verdict[1..].try_into().expect("verdict holds a proof");
    if !handshake.verify(secret, Role::Acceptor, &proof) {
        return Err(Obstacle::Passing(format!("what listens there does not know the job secret of rank {peer}")));
    }
    Ok(stream)
}
