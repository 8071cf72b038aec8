//! The words before any message: who are you, prove it, and the initiator's side of them.
//!
//! Everything before the proof has a fixed, small size, so a stranger cannot make a rank read or hold much. The acceptor
//! proves the secret first, so an initiator knows whose words it hears: only a rank of the job can end it with a reason.
//! What anybody else says is a passing obstacle, and the initiator tries again until its time is up.
//!
//! The hello, the challenge and what its proof covers are the same in every version from 3 on, so that ranks of
//! different builds can tell each other what differs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use tailback_transport::{Error, Rank};

use crate::patience::Patience;
use crate::secret::{self, Handshake, NONCE_LEN, Nonce, Plane, Proof, Role, Secret};

const MAGIC: [u8; 8] = *b"TAILBOOT";
/// Raised whenever ranks of different builds could misunderstand each other.
pub(crate) const VERSION: u16 = 3;
/// The first version whose challenge ends with a proof.
const FIRST_PROVEN: u16 = 3;
pub(crate) const HELLO_LEN: usize = 8 + 2 + 4 + 4 + NONCE_LEN;
const CHALLENGE_LEN: usize = 8 + 2 + NONCE_LEN;
/// What the acceptor says of a proof that holds; it hangs up on any other.
pub(crate) const ACCEPTED: [u8; 1] = [1];
/// The largest message while joining: a host name and an address or two.
pub(crate) const SMALL_FRAME: usize = 64 << 10;

/// What an initiator opens with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    pub(crate) rank: Rank,
    pub(crate) wants: Rank,
    pub(crate) nonce: Nonce,
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
    pub(crate) fn decode(bytes: &[u8; HELLO_LEN]) -> Option<Self> {
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

    /// What both sides prove, with an acceptor of this version.
    pub(crate) fn handshake(&self, acceptor_nonce: Nonce, version: u16) -> Handshake {
        Handshake {
            plane: Plane::Bootstrap { version },
            initiator: self.rank,
            acceptor: self.wants,
            initiator_nonce: self.nonce,
            acceptor_nonce,
        }
    }
}

/// The acceptor's challenge, and its proof of the secret. It carries the version, so that both sides can say what differs.
pub(crate) fn challenge(hello: &Hello, nonce: &Nonce, secret: &Secret) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend(nonce);
    bytes.extend(hello.handshake(*nonce, VERSION).prove(secret, Role::Acceptor));
    bytes
}

/// A message with its length in front.
pub(crate) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).expect("small message").to_be_bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads one [`framed`] message while joining.
pub(crate) fn read_framed(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
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
pub(crate) enum Obstacle {
    /// May be over the next moment: nobody listens yet, or a stranger holds the port.
    Passing(String),
    /// Likewise, but it looks as if the job was started wrongly: the user should know before the time is up.
    Suspect(String),
    /// Will not change: a rank of the job says so.
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
pub(crate) fn connect(
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
    let acceptor_nonce = challenge[10..].try_into().expect("challenge holds a nonce");
    let handshake = hello.handshake(acceptor_nonce, version);
    let mut proof = Proof::default();
    let proven = version >= FIRST_PROVEN
        && patience.read_exact(&mut stream, &mut proof).is_ok()
        && handshake.verify(secret, Role::Acceptor, &proof);
    if version != VERSION {
        let text = format!(
            "rank {peer} at {address} speaks bootstrap protocol {version}, rank {rank} speaks {VERSION}: run the same tailback on all ranks"
        );
        return Err(if proven { Obstacle::Lasting(Error::Setup(text)) } else { Obstacle::Suspect(text) });
    }
    // Said in any case, so that a rank with another secret can warn of this one.
    stream.write_all(&handshake.prove(secret, Role::Initiator))?;
    if !proven {
        return Err(Obstacle::Suspect(format!(
            "what listens at {address} does not know the job secret of rank {rank}: check TAILBACK_SECRET is the same for all ranks"
        )));
    }
    // It may have been put out in the meantime, to make room.
    let mut verdict = [0; ACCEPTED.len()];
    patience.read_exact(&mut stream, &mut verdict)?;
    if verdict == ACCEPTED { Ok(stream) } else { Err(Obstacle::Passing("its answer is not understood".into())) }
}
