//! Payloads: bytes that tell which transfer they belong to, so that data from a wrong sender, an older message or a
//! wrong offset never looks right.

use tailback_transport::Rank;

/// A number for one transfer of one case.
pub(super) fn seed(case: &str, from: Rank, to: Rank, index: usize) -> u64 {
    let name = case.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
    mix(mix(name ^ (u64::from(from.0) << 32 | u64::from(to.0))) ^ index as u64)
}

/// The first `len` bytes of the payload named `seed`.
pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (index, chunk) in bytes.chunks_mut(8).enumerate() {
        let word = mix(seed.wrapping_add(index as u64)).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    bytes
}

/// A bijection of 64 bits that spreads each input bit over all output bits (multiply, fold down, twice).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_transfer_has_bytes_of_its_own() {
        let mut seen = HashSet::new();
        for case in ["ring", "pairs"] {
            for from in 0..20 {
                for to in 0..20 {
                    for index in 0..20 {
                        assert!(seen.insert(bytes(seed(case, Rank(from), Rank(to), index), 8)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_shorter_payload_is_a_prefix() {
        let long = bytes(7, 100);
        assert!((0..100).all(|len| bytes(7, len) == long[..len]));
        assert!(long[..50] != long[50..]);
    }
}
