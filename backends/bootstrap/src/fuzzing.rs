//! What reads a peer's bytes, for ci/fuzz: both planes' handshakes, and the bootstrap's messages.

use tailback_transport::Rank;

use crate::data_handshake as data;
use crate::handshake::{HELLO_LEN, Hello};
use crate::message::{Answer, Attach, Join, Watch};
use crate::secret::{NONCE_LEN, PROOF_LEN, Role, Secret};

/// Takes bytes for a message of every kind: each is one, and the same after another way over the wire, or refused.
pub fn messages(bytes: &[u8]) {
    if let Ok(join) = Join::decode(bytes) {
        assert_eq!(Join::decode(&join.encode()).ok(), Some(join));
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(Answer::decode(&answer.encode()).ok(), Some(answer));
    }
    if let Ok((attach, host)) = Attach::decode(bytes) {
        assert_eq!(Attach::decode(&attach.encode(&host)).ok(), Some((attach, host)));
    }
    if let Ok(watch) = Watch::decode(bytes) {
        assert_eq!(Watch::decode(&watch.encode()).ok(), Some(watch));
    }
}

/// Takes bytes for a hello, of the bootstrap and of the data plane, and what follows for the proof: the hello is what its bytes
/// say, or refused, and nothing is a proof for one who does not know the secret.
pub fn handshakes(bytes: &[u8]) {
    let (secret, nonce) = (Secret::from_bytes([1; 32]), [2; NONCE_LEN]);
    if let Some((first, rest)) = bytes.split_first_chunk::<HELLO_LEN>()
        && let Some(hello) = Hello::decode(first)
    {
        let Hello { version, rank, wants, nonce: theirs } = hello;
        let (bytes_of_version, numbers) =
            (version.to_be_bytes(), [rank, wants].map(|Rank(number)| number.to_be_bytes()));
        assert_eq!(first[8..], [&bytes_of_version[..], numbers.as_flattened(), &theirs].concat(), "{hello:?}");
        if let Some(proof) = rest.first_chunk::<PROOF_LEN>() {
            for role in [Role::Initiator, Role::Acceptor] {
                assert!(!hello.handshake(nonce, version).verify(&secret, role, proof), "{hello:?} got in");
            }
        }
    }
    if let Some((first, rest)) = bytes.split_at_checked(data::HELLO)
        && let Some(hello) = data::Hello::decode(first)
    {
        assert_eq!(hello.encode(), first, "{hello:?}");
        for role in [Role::Initiator, Role::Acceptor] {
            assert!(!hello.verify(&secret, role, &nonce, &rest[..rest.len().min(data::PROOF)]), "{hello:?} got in");
        }
    }
    if let Some(verdict) = bytes.first().copied().and_then(data::Verdict::decode) {
        assert_eq!(verdict.encode(), bytes[..1]);
    }
}
