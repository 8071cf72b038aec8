//! How a greeting shows that it comes from a rank of the job: HMAC-SHA256 with the job's secret over what it says and over both ranks' addresses.
//!
//! Addresses are told over the bootstrap and have a number that is fresh for every job and port, so a greeting of another
//! job, to another rank or from another port is worth nothing. One that is said again is: greetings may come twice anyway.
//! Only greetings are sealed. Nothing that follows on a pair is: docs/security.md says what that means.

use tailback_bootstrap::Secret;

use crate::header::Address;

/// Bytes of a seal.
pub(crate) const SEAL: usize = 32;

/// What a seal is for.
const PURPOSE: &[u8] = b"tailback greeting 2";

/// The seal of `said`, from the rank at one address to the rank at the other.
pub(crate) fn seal(secret: &Secret, said: &[u8], from: &Address, to: &Address) -> [u8; SEAL] {
    secret.seal(&[PURPOSE, &from.encode(), &to.encode(), said])
}

/// Whether that is its seal.
pub(crate) fn holds(secret: &Secret, said: &[u8], from: &Address, to: &Address, seal: &[u8]) -> bool {
    secret.verify(&[PURPOSE, &from.encode(), &to.encode(), said], seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_one_secret_greeting_and_way_only() {
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
        let secret = Secret::from_bytes([5; 32]);
        let made = seal(&secret, b"hello", &here, &there);
        assert!(holds(&secret, b"hello", &here, &there, &made));
        assert!(!holds(&Secret::from_bytes([6; 32]), b"hello", &here, &there, &made), "another job's secret");
        assert!(!holds(&secret, b"hallo", &here, &there, &made), "changed on its way");
        assert!(!holds(&secret, b"hello", &there, &here, &made), "reflected");
        let changed = [
            Address { number: 1, ..here },
            Address { gid: [9; 16], ..here },
            Address { lid: 13, ..here },
            Address { nonce: [3; 16], ..here },
        ];
        assert!(
            changed.iter().all(|other| !holds(&secret, b"hello", other, &there, &made)),
            "from another port or job"
        );
        assert!(!holds(&secret, b"hello", &here, &Address { nonce: [3; 16], ..there }, &made), "to another job");
        assert!(!holds(&secret, b"hello", &here, &there, &made[..31]));
    }
}
