//! How two ranks prove to each other that they belong to the job, before anything else of a connection is read.
//!
//! ```text
//! initiator                                 acceptor
//! HELLO  plane, version, from, to, nonce ->
//!                                        <- CHALLENGE  plane, version, nonce, proof
//! PROOF  proof                           ->
//!                                        <- VERDICT    accept or redirect
//! ```
//! A proof is HMAC-SHA256 with the job's secret over the plane, the acceptor's version, the prover's role, both ranks and
//! a fresh nonce of each side: a recorded, reflected or redirected proof is worth nothing, nor is one for the other plane.
//! The acceptor proves the secret first, so that only a rank of the job can turn an initiator away for good. Everything
//! before the proof has a fixed, small size, so a stranger cannot make a rank read or hold much. Neither side blocks here:
//! [`crate::strangers`] has the limits of those that stay silent.
//!
//! The places of the version, the ranks and the nonces, and what a proof covers, are the same in every version from 3 on,
//! so that ranks of different builds can tell each other what differs.
//!
//! Out of scope: secrecy and integrity of what follows. A job's network is trusted not to tamper with connections;
//! strangers who can reach a port are not.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tailback_transport::Rank;

use crate::codec::{Decoder, Encoder};
use crate::secret::{Secret, random_bytes};

/// Raised whenever ranks of different builds could misunderstand each other.
pub const VERSION: u8 = 4;

type Nonce = [u8; 32];
/// Evidence that its maker knows the secret.
type Proof = [u8; 32];

/// Bytes of a hello.
pub const HELLO_LEN: usize = 9 + 1 + 4 + 4 + 32;
const CHALLENGE_LEN: usize = 9 + 1 + 32 + 32;

/// Which plane a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The control plane.
    Bootstrap,
    /// The network under test.
    Data,
}

impl Plane {
    /// What hello and challenge begin with.
    fn magic(self) -> &'static [u8; 9] {
        match self {
            Plane::Bootstrap => b"TAILBOOT\0",
            Plane::Data => b"TAILDATA\0",
        }
    }

    /// What a proof begins with, both of one length.
    fn label(self) -> &'static [u8; 20] {
        match self {
            Plane::Bootstrap => b"tailback bootstrap 1",
            Plane::Data => b"tailback data plane1",
        }
    }
}

/// Who makes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that connected.
    Initiator,
    /// The side that accepted.
    Acceptor,
}

/// The acceptor's last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The connection is used.
    Accept = 1,
    /// Another connection of the same pair is: drop this one.
    Redirect = 2,
}

impl Verdict {
    /// Tells the initiator.
    pub fn send(self, socket: &impl AsFd) -> io::Result<()> {
        send(socket, &[self as u8])
    }

    /// The verdict that a byte stands for.
    #[must_use]
    pub fn decode(byte: u8) -> Option<Verdict> {
        [Verdict::Accept, Verdict::Redirect].into_iter().find(|verdict| *verdict as u8 == byte)
    }
}

/// The initiator's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The connection's plane.
    pub plane: Plane,
    /// The initiator's protocol.
    pub version: u8,
    /// The initiator.
    pub from: Rank,
    /// The rank it wants to reach.
    pub to: Rank,
    /// The initiator's nonce.
    pub nonce: Nonce,
}

impl Hello {
    /// Its bytes on the wire.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = Encoder::default().raw(self.plane.magic()).u8(self.version);
        head.u32(self.from.0).u32(self.to.0).raw(&self.nonce).0
    }

    /// `None` for bytes that no rank sends on this plane.
    #[must_use]
    pub fn decode(plane: Plane, bytes: &[u8; HELLO_LEN]) -> Option<Hello> {
        let mut d = Decoder::new(bytes.strip_prefix(plane.magic())?);
        let (version, from, to) = (d.u8().ok()?, Rank(d.u32().ok()?), Rank(d.u32().ok()?));
        Some(Hello { plane, version, from, to, nonce: d.array().ok()? })
    }

    /// The acceptor's challenge, if it speaks `version`, with its proof of the secret.
    #[must_use]
    pub fn challenge(&self, secret: &Secret, version: u8, nonce: &Nonce) -> Vec<u8> {
        let proof = self.prove(secret, Role::Acceptor, version, nonce);
        Encoder::default().raw(self.plane.magic()).u8(version).raw(nonce).raw(&proof).0
    }

    /// The proof that `role` sends, with an acceptor of this version and nonce.
    #[must_use]
    pub fn prove(&self, secret: &Secret, role: Role, version: u8, nonce: &Nonce) -> Proof {
        self.covered(role, version, nonce, |parts| secret.seal(parts))
    }

    /// Whether `proof` is the one that `role` has to send. Takes the same time wherever the first wrong byte is.
    #[must_use]
    pub fn verify(&self, secret: &Secret, role: Role, version: u8, nonce: &Nonce, proof: &[u8]) -> bool {
        self.covered(role, version, nonce, |parts| secret.verify(parts, proof))
    }

    /// What a proof covers.
    fn covered<T>(&self, role: Role, version: u8, nonce: &Nonce, run: impl FnOnce(&[&[u8]]) -> T) -> T {
        let kind = [0, version, if role == Role::Initiator { b'i' } else { b'a' }];
        let ranks = [self.from.0.to_le_bytes(), self.to.0.to_le_bytes()];
        run(&[self.plane.label(), &kind, ranks.as_flattened(), &self.nonce, nonce])
    }
}

/// Why an initiator was not let in.
#[derive(Debug)]
pub enum HandshakeError {
    /// The connection failed or was closed.
    Io(io::Error),
    /// What listens there does not speak this protocol.
    NotARank,
    /// It speaks another version; whether it is a rank of the job.
    OtherVersion {
        /// The version that it speaks.
        version: u8,
        /// Whether it proved the secret.
        proven: bool,
    },
    /// It does not know the job's secret.
    OtherSecret,
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        HandshakeError::Io(error)
    }
}

/// The initiator's side of a connection that is established.
#[derive(Debug)]
pub struct InitiatorSide {
    hello: Hello,
    input: Input,
    has_answered: bool,
}

impl InitiatorSide {
    /// Says hello on `plane`, as `from` to `to`.
    pub fn start(plane: Plane, from: Rank, to: Rank, socket: &impl AsFd) -> io::Result<Self> {
        let nonce = random_bytes().map_err(io::Error::other)?;
        let hello = Hello { plane, version: VERSION, from, to, nonce };
        send(socket, &hello.encode())?;
        Ok(InitiatorSide { hello, input: Input::default(), has_answered: false })
    }

    /// Goes as far as the bytes that are there allow: to the verdict, or `None` while it is waited for.
    pub fn advance(&mut self, socket: &impl AsFd, secret: &Secret) -> Result<Option<Verdict>, HandshakeError> {
        if !self.has_answered {
            let Some(challenge) = self.input.read::<CHALLENGE_LEN>(socket)? else { return Ok(None) };
            self.answer(&challenge, socket, secret)?;
            self.has_answered = true;
        }
        let Some([verdict]) = self.input.read(socket)? else { return Ok(None) };
        Verdict::decode(verdict).map(Some).ok_or(HandshakeError::NotARank)
    }

    fn answer(
        &self,
        challenge: &[u8; CHALLENGE_LEN],
        socket: &impl AsFd,
        secret: &Secret,
    ) -> Result<(), HandshakeError> {
        let Hello { plane, .. } = self.hello;
        let rest = challenge.strip_prefix(plane.magic()).ok_or(HandshakeError::NotARank)?;
        let (&[version], rest) = rest.split_first_chunk().expect("a challenge has a version");
        let (nonce, proof) = rest.split_first_chunk().expect("a challenge has a nonce");
        let proven = self.hello.verify(secret, Role::Acceptor, version, nonce, proof);
        if version != VERSION {
            return Err(HandshakeError::OtherVersion { version, proven });
        }
        // Where ranks meet it is said in any case, so that a rank with another secret can warn of this one.
        if proven || plane == Plane::Bootstrap {
            send(socket, &self.hello.prove(secret, Role::Initiator, VERSION, nonce))?;
        }
        if proven { Ok(()) } else { Err(HandshakeError::OtherSecret) }
    }
}

/// The acceptor's side, until the initiator has proven the secret; then a [`Verdict`] is due.
#[derive(Debug)]
pub struct AcceptorSide {
    input: Input,
    /// The hello that was answered, with the nonce of the answer.
    challenged: Option<(Hello, Nonce)>,
    /// When it was accepted, or challenged: since when the initiator has to say something.
    pub since: Instant,
}

impl Default for AcceptorSide {
    fn default() -> Self {
        AcceptorSide { input: Input::default(), challenged: None, since: Instant::now() }
    }
}

impl AcceptorSide {
    /// Goes as far as the bytes that are there allow: to the rank that has proven the secret, or `None` while the initiator
    /// is waited for. Who looks for another rank than `me`, or is not `expected`, gets no challenge.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub fn advance(
        &mut self,
        socket: &impl AsFd,
        (plane, me): (Plane, Rank),
        secret: &Secret,
        expected: impl Fn(Rank) -> bool,
    ) -> Result<Option<Rank>, String> {
        let closed = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it closed the connection before it proved the job secret".to_owned(),
            _ => error.to_string(),
        };
        if self.challenged.is_none() {
            let Some(bytes) = self.input.read(socket).map_err(closed)? else { return Ok(None) };
            let hello = Hello::decode(plane, &bytes).ok_or("it is not a tailback rank")?;
            if hello.to != me || !expected(hello.from) {
                return Err(format!("it looks for rank {}", hello.to));
            }
            let nonce = random_bytes().map_err(|e| e.to_string())?;
            send(socket, &hello.challenge(secret, VERSION, &nonce)).map_err(|e| e.to_string())?;
            if hello.version != VERSION {
                return Err(format!(
                    "it says it is rank {} and speaks bootstrap protocol {}, not {VERSION}: run the same tailback on all ranks",
                    hello.from, hello.version
                ));
            }
            (self.challenged, self.since) = (Some((hello, nonce)), Instant::now());
        }
        let (hello, nonce) = self.challenged.as_ref().expect("it was challenged");
        let Some(proof) = self.input.read::<32>(socket).map_err(closed)? else { return Ok(None) };
        if !hello.verify(secret, Role::Initiator, VERSION, nonce, &proof) {
            return Err(format!("it says it is rank {} and has another job secret", hello.from));
        }
        Ok(Some(hello.from))
    }
}

/// The next message of the other side, as far as it has arrived.
#[derive(Debug)]
struct Input {
    bytes: [u8; CHALLENGE_LEN],
    count: usize,
}

impl Default for Input {
    fn default() -> Self {
        Input { bytes: [0; CHALLENGE_LEN], count: 0 }
    }
}

impl Input {
    /// The message once all of its `N` bytes are there. Never reads past them.
    fn read<const N: usize>(&mut self, socket: &impl AsFd) -> io::Result<Option<[u8; N]>> {
        while self.count < N {
            match rustix::net::recv(socket, &mut self.bytes[self.count..N], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((count, _)) => self.count += count,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.count = 0;
        Ok(self.bytes.first_chunk().copied())
    }
}

/// A fresh socket's buffer takes any of these messages whole: a short write is a peer not worth waiting for.
fn send(socket: &impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let sent = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn hello() -> Hello {
        Hello { plane: Plane::Bootstrap, version: VERSION, from: Rank(3), to: Rank(1), nonce: [7; 32] }
    }

    #[test]
    fn a_proof_holds_only_for_its_own_handshake() {
        let (secret, theirs) = (Secret::from_bytes([1; 32]), [9; 32]);
        let proof = hello().prove(&secret, Role::Initiator, VERSION, &theirs);
        assert!(hello().verify(&secret, Role::Initiator, VERSION, &theirs, &proof));
        assert!(!hello().verify(&secret, Role::Acceptor, VERSION, &theirs, &proof), "reflected");
        let other = Secret::from_bytes([2; 32]);
        assert!(!hello().verify(&other, Role::Initiator, VERSION, &theirs, &proof), "other secret");
        assert!(!hello().verify(&secret, Role::Initiator, VERSION - 1, &theirs, &proof), "other version");
        assert!(!hello().verify(&secret, Role::Initiator, VERSION, &[8; 32], &proof), "other nonce");
        assert!(!hello().verify(&secret, Role::Initiator, VERSION, &theirs, &proof[..31]), "cut short");
        let changed = [
            Hello { plane: Plane::Data, ..hello() },
            Hello { from: Rank(4), ..hello() },
            Hello { to: Rank(0), ..hello() },
            Hello { nonce: [6; 32], ..hello() },
        ];
        for other in changed {
            assert!(!other.verify(&secret, Role::Initiator, VERSION, &theirs, &proof), "{other:?}");
        }
    }

    #[test]
    fn a_hello_is_read_back_on_its_plane_and_strangers_are_not_understood() {
        for plane in [Plane::Bootstrap, Plane::Data] {
            let hello = Hello { plane, ..hello() };
            let bytes = hello.encode().try_into().expect("of the right length");
            assert_eq!(Hello::decode(plane, &bytes), Some(hello));
            let other = if plane == Plane::Data { Plane::Bootstrap } else { Plane::Data };
            assert_eq!(Hello::decode(other, &bytes), None);
            assert_eq!(Hello::decode(plane, b"GET / HTTP/1.1\r\nHost: a-stranger.example.org\r\n\r\n.."), None);
        }
        assert_eq!((Verdict::decode(1), Verdict::decode(0)), (Some(Verdict::Accept), None));
    }

    /// Lets both sides talk until one of them is through.
    fn talk(ours: &Secret, theirs: &Secret) -> (Result<Option<Rank>, String>, Result<Option<Verdict>, HandshakeError>) {
        let (here, there) = UnixStream::pair().unwrap();
        let mut initiator = InitiatorSide::start(Plane::Data, Rank(2), Rank(5), &here).unwrap();
        let mut acceptor = AcceptorSide::default();
        let mut accept = || acceptor.advance(&there, (Plane::Data, Rank(5)), theirs, |from| from == Rank(2));
        assert_eq!(accept(), Ok(None));
        let answered = initiator.advance(&here, ours);
        let accepted = accept();
        if accepted.as_ref().is_ok_and(Option::is_some) {
            Verdict::Redirect.send(&there).unwrap();
            return (accepted, initiator.advance(&here, ours));
        }
        (accepted, answered)
    }

    #[test]
    fn both_sides_need_the_secret() {
        let (secret, other) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
        let (accepted, verdict) = talk(&secret, &secret);
        assert_eq!((accepted, verdict.unwrap()), (Ok(Some(Rank(2))), Some(Verdict::Redirect)));
        let (accepted, verdict) = talk(&secret, &other);
        assert!(matches!((accepted, verdict), (Ok(None), Err(HandshakeError::OtherSecret))), "nothing is proven to it");
    }
}
