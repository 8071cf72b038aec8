//! How a greeting shows that it comes from a rank of the job: HMAC-SHA256 over what it says and over both ranks' addresses.
//!
//! Addresses are told over the bootstrap and have a number that is fresh for every job and port, so a greeting of another
//! job, to another rank or from another port is worth nothing. One that is said again is: greetings may come twice anyway.
//! Only greetings are sealed. Nothing that follows on a pair is: docs/security.md says what that means.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::config::JobKey;
use crate::header::Address;

/// Bytes of a seal.
pub(crate) const SEAL: usize = 32;

/// The seal of `said`, from the rank at one address to the rank at the other.
pub(crate) fn seal(key: &JobKey, said: &[u8], from: &Address, to: &Address) -> [u8; SEAL] {
    mac(key, said, from, to).finalize().into_bytes().into()
}

/// Whether that is its seal. Takes the same time wherever the first wrong byte is.
pub(crate) fn holds(key: &JobKey, said: &[u8], from: &Address, to: &Address, seal: &[u8]) -> bool {
    mac(key, said, from, to).verify_slice(seal).is_ok()
}

fn mac(key: &JobKey, said: &[u8], from: &Address, to: &Address) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
    mac.update(b"tailback greeting 1");
    mac.update(&from.encode());
    mac.update(&to.encode());
    mac.update(said);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_one_key_greeting_and_way_only() {
        let here = Address {
            gid: [7; 16],
            lid: 12,
            ethernet: true,
            mtu: 3,
            reads: 16,
            number: 0xabcdef,
            key: 1,
            buffer: 8192,
            credits: 256,
            nonce: [1; 16],
        };
        let there = Address { gid: [8; 16], nonce: [2; 16], ..here };
        let key = JobKey([5; 32]);
        let made = seal(&key, b"hello", &here, &there);
        assert!(holds(&key, b"hello", &here, &there, &made));
        assert!(!holds(&JobKey([6; 32]), b"hello", &here, &there, &made), "another job's key");
        assert!(!holds(&key, b"hallo", &here, &there, &made), "changed on its way");
        assert!(!holds(&key, b"hello", &there, &here, &made), "reflected");
        let changed = [
            Address { number: 1, ..here },
            Address { gid: [9; 16], ..here },
            Address { lid: 13, ..here },
            Address { nonce: [3; 16], ..here },
        ];
        assert!(changed.iter().all(|other| !holds(&key, b"hello", other, &there, &made)), "from another port or job");
        assert!(!holds(&key, b"hello", &here, &Address { nonce: [3; 16], ..there }, &made), "to another job");
        assert!(!holds(&key, b"hello", &here, &there, &made[..31]));
    }
}
