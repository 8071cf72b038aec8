//! How two ends prove to each other that they belong to the job, before any header is read.
//!
//! ```text
//! initiator                             acceptor
//! HELLO   magic, from, to, nonce   ->
//!                                  <-   CHALLENGE  nonce, proof over both nonces
//! PROOF   proof over both nonces   ->
//!                                  <-   VERDICT    accept | redirect
//! ```
//! Proofs are those of [`crate::secret`]. What follows is not encrypted: the secret keeps
//! strangers out of the measurement, it does not hide the benchmark's traffic.

use tailback_transport::Rank;

use crate::secret::{Handshake, Plane, Proof, Secret};
pub use crate::secret::{NONCE_LEN as NONCE, Nonce, PROOF_LEN as PROOF, Role, nonce};

const MAGIC: [u8; 8] = *b"TAILBCK1";

/// Length of [`Hello`] on the wire.
pub const HELLO: usize = 8 + 4 + 4 + NONCE;
/// Length of the acceptor's nonce and proof.
pub const CHALLENGE: usize = NONCE + PROOF;
/// Length of the verdict.
pub const VERDICT: usize = 1;
/// The longest of the four.
pub const LONGEST: usize = CHALLENGE;

/// The acceptor's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This connection carries the pair's traffic.
    Accept,
    /// Another connection of the same pair does: drop this one.
    Redirect,
}

impl Verdict {
    /// Its byte on the wire.
    pub fn encode(self) -> [u8; VERDICT] {
        match self {
            Verdict::Accept => [b'A'],
            Verdict::Redirect => [b'R'],
        }
    }

    /// The verdict a byte stands for.
    pub fn decode(byte: u8) -> Option<Verdict> {
        [Verdict::Accept, Verdict::Redirect].into_iter().find(|verdict| verdict.encode() == [byte])
    }
}

/// The initiator's first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The initiator.
    pub from: Rank,
    /// The rank it means to reach.
    pub to: Rank,
    /// The initiator's nonce.
    pub nonce: Nonce,
}

impl Hello {
    /// Its bytes on the wire.
    pub fn encode(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.to.0.to_le_bytes());
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Parses [`HELLO`] bytes; `None` for anything that no rank sends.
    pub fn decode(bytes: &[u8]) -> Option<Hello> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (from, rest) = rest.split_first_chunk::<4>()?;
        let (to, rest) = rest.split_first_chunk::<4>()?;
        Some(Hello {
            from: Rank(u32::from_le_bytes(*from)),
            to: Rank(u32::from_le_bytes(*to)),
            nonce: rest.try_into().ok()?,
        })
    }

    /// The proof by `role` that it knows `secret`, for this hello and the acceptor's nonce.
    pub fn prove(&self, secret: &Secret, role: Role, theirs: &Nonce) -> Proof {
        self.handshake(theirs).prove(secret, role)
    }

    /// Whether `proof` is that proof.
    pub fn verify(&self, secret: &Secret, role: Role, theirs: &Nonce, proof: &[u8]) -> bool {
        proof.try_into().is_ok_and(|proof| self.handshake(theirs).verify(secret, role, proof))
    }

    fn handshake(&self, theirs: &Nonce) -> Handshake {
        Handshake {
            plane: Plane::Data,
            initiator: self.from,
            acceptor: self.to,
            initiator_nonce: self.nonce,
            acceptor_nonce: *theirs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_role_secret_and_pair_of_nonces_only() {
        let hello = Hello { from: Rank(3), to: Rank(1), nonce: [7; NONCE] };
        let (secret, theirs) = (Secret::from_bytes([1; 32]), [9; NONCE]);
        let proof = hello.prove(&secret, Role::Initiator, &theirs);
        assert!(hello.verify(&secret, Role::Initiator, &theirs, &proof));
        assert!(!hello.verify(&secret, Role::Acceptor, &theirs, &proof));
        assert!(!hello.verify(&Secret::from_bytes([2; 32]), Role::Initiator, &theirs, &proof));
        assert!(!hello.verify(&secret, Role::Initiator, &[8; NONCE], &proof));
        assert!(!Hello { from: Rank(2), ..hello }.verify(&secret, Role::Initiator, &theirs, &proof));
        assert!(!hello.verify(&secret, Role::Initiator, &theirs, &proof[..31]));
    }

    #[test]
    fn hello_survives_the_wire_and_strangers_are_not_understood() {
        let hello = Hello { from: Rank(3), to: Rank(1), nonce: [7; NONCE] };
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        assert_eq!(Hello::decode(&hello.encode()[..HELLO - 1]), None);
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\nHost: a-stranger.example\r\n\r\n....."), None);
        assert_eq!(Verdict::decode(b'A'), Some(Verdict::Accept));
        assert_eq!(Verdict::decode(b'x'), None);
    }
}
