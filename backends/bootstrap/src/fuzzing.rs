//! What reads a peer's bytes, for ci/fuzz: both planes' handshakes, and the bootstrap's messages.

use crate::handshake::{HELLO_LEN, Hello, Plane, Role};
use crate::message::{Answer, Attach, Join, Watch};
use crate::secret::Secret;

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

/// Takes bytes for a hello on each plane and what follows for the proof: the hello is what its bytes say, or refused, and
/// nothing is a proof for one who does not know the secret.
pub fn handshakes(bytes: &[u8]) {
    let (secret, nonce) = (Secret::from_bytes([1; 32]), [2; 32]);
    let Some((first, rest)) = bytes.split_first_chunk::<HELLO_LEN>() else { return };
    for plane in [Plane::Bootstrap, Plane::Data] {
        let Some(hello) = Hello::decode(plane, first) else { continue };
        assert_eq!(hello.encode(), first, "{hello:?}");
        for role in [Role::Initiator, Role::Acceptor] {
            let proof = &rest[..rest.len().min(32)];
            assert!(!hello.verify(&secret, role, hello.version, &nonce, proof), "{hello:?} got in");
        }
    }
}
