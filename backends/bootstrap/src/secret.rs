//! The job secret, and how two ranks prove to each other that they know it.
//!
//! The bootstrap and the data plane of sockets use it: whoever connects to a rank of the job proves the secret before it
//! is listened to, and is proven to in turn. Greetings over verbs are sealed with a key made of it. libfabric's endpoints
//! have no connections that could be proven: docs/security.md says what that means. The secret itself never travels. A
//! proof is HMAC-SHA256 over the plane, the prover's role, both ranks and a fresh nonce of each side, so that a
//! recorded, reflected or redirected proof is worth nothing.
//!
//! The order on the wire, which the planes frame in their own ways:
//! 1. initiator: its rank, the rank it wants to reach, its nonce;
//! 2. acceptor: its nonce and its proof, so that only a rank of the job can turn the initiator away for good;
//! 3. initiator: its proof; the acceptor hangs up when it is wrong;
//! 4. acceptor: that it goes on.
//!
//! Out of scope: secrecy and integrity of what follows. A job's network is trusted not to tamper with connections;
//! strangers who can reach a port are not.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tailback_transport::{Error, Rank, Result};

/// How many bytes a nonce has.
pub const NONCE_LEN: usize = 32;
/// How many bytes a proof has.
pub const PROOF_LEN: usize = 32;

/// A number used once, fresh for every connection and side.
pub type Nonce = [u8; NONCE_LEN];
/// Evidence that its maker knows the secret.
pub type Proof = [u8; PROOF_LEN];

/// What every rank of a job knows and nobody else does.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the system's random numbers.
    pub fn random() -> Result<Self> {
        random_bytes().map(Secret)
    }

    /// Reads 64 hexadecimal digits; white space around them is allowed. Errors do not repeat the text.
    pub fn from_hex(text: &str) -> Result<Self> {
        let digits = text.trim().as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(Error::Setup(format!("a job secret has 64 hexadecimal digits, this one has {}", digits.len())));
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16);
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(Error::Setup("a job secret has only hexadecimal digits (0-9, a-f)".into()));
            };
            *byte = (high << 4 | low) as u8;
        }
        Ok(Secret(bytes))
    }

    /// A secret that is known by other means, such as a test's.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// A key for another use, from which the secret cannot be told.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(b"tailback key for ");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// The secret as 64 hexadecimal digits. Goes into an environment or a private file, never on a command line.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A fresh nonce.
pub fn nonce() -> Result<Nonce> {
    random_bytes()
}

fn random_bytes() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| Error::Setup(format!("the system gave no random numbers: {e}")))?;
    Ok(bytes)
}

/// Which plane a connection belongs to: a proof for one is no proof for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Who is here.
    Bootstrap {
        /// The protocol that the acceptor speaks: an initiator believes it only if it is proven.
        version: u16,
    },
    /// The network under test.
    Data,
}

/// Who makes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that connected.
    Initiator,
    /// The side that accepted.
    Acceptor,
}

/// What both sides of a connection must agree on for a proof to hold.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// The connection's plane.
    pub plane: Plane,
    /// The rank that connected.
    pub initiator: Rank,
    /// The rank that accepted.
    pub acceptor: Rank,
    /// The nonce of the rank that connected.
    pub initiator_nonce: Nonce,
    /// The nonce of the rank that accepted.
    pub acceptor_nonce: Nonce,
}

impl Handshake {
    /// The proof that `role` sends.
    #[must_use]
    pub fn prove(&self, secret: &Secret, role: Role) -> Proof {
        self.mac(secret, role).finalize().into_bytes().into()
    }

    /// Whether `proof` is the one `role` has to send. Takes the same time wherever the first wrong byte is.
    #[must_use]
    pub fn verify(&self, secret: &Secret, role: Role, proof: &Proof) -> bool {
        self.mac(secret, role).verify_slice(proof).is_ok()
    }

    fn mac(&self, secret: &Secret, role: Role) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
        match self.plane {
            Plane::Bootstrap { version } => {
                mac.update(b"tailback bootstrap 1");
                mac.update(&version.to_be_bytes());
            }
            Plane::Data => mac.update(b"tailback data plane1"),
        }
        mac.update(match role {
            Role::Initiator => b"i",
            Role::Acceptor => b"a",
        });
        mac.update(&self.initiator.0.to_be_bytes());
        mac.update(&self.acceptor.0.to_be_bytes());
        mac.update(&self.initiator_nonce);
        mac.update(&self.acceptor_nonce);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake() -> Handshake {
        Handshake {
            plane: Plane::Bootstrap { version: 3 },
            initiator: Rank(3),
            acceptor: Rank(0),
            initiator_nonce: nonce().unwrap(),
            acceptor_nonce: nonce().unwrap(),
        }
    }

    #[test]
    fn hex_round_trip_and_refusals() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::from_hex(&format!(" {}\n", secret.to_hex().to_uppercase())).unwrap(), secret);
        assert!(Secret::from_hex("abc").unwrap_err().to_string().contains("64 hexadecimal digits, this one has 3"));
        assert!(Secret::from_hex(&"+f".repeat(32)).unwrap_err().to_string().contains("only hexadecimal"));
        assert_ne!(secret, Secret::random().unwrap());
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
    }

    #[test]
    fn derived_keys_differ_by_secret_and_purpose() {
        let (one, other) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
        assert_eq!(one.derive("verbs"), one.derive("verbs"));
        assert_ne!(one.derive("verbs"), one.derive("another"));
        assert_ne!(one.derive("verbs"), other.derive("verbs"));
        assert_ne!(one.derive("verbs"), one.0);
    }

    #[test]
    fn a_proof_holds_only_for_its_own_handshake() {
        let (secret, h) = (Secret::random().unwrap(), handshake());
        let proof = h.prove(&secret, Role::Initiator);
        assert!(h.verify(&secret, Role::Initiator, &proof));
        assert!(!h.verify(&secret, Role::Acceptor, &proof), "reflected");
        assert!(!h.verify(&Secret::random().unwrap(), Role::Initiator, &proof), "other secret");
        let changed = [
            Handshake { plane: Plane::Data, ..h },
            Handshake { plane: Plane::Bootstrap { version: 2 }, ..h },
            Handshake { initiator: Rank(4), ..h },
            Handshake { acceptor: Rank(1), ..h },
            Handshake { initiator_nonce: nonce().unwrap(), ..h },
            Handshake { acceptor_nonce: nonce().unwrap(), ..h },
        ];
        for other in changed {
            assert!(!other.verify(&secret, Role::Initiator, &proof), "{other:?}");
        }
    }
}
