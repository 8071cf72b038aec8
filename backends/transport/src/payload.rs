//! What kernels send: bytes that tell their sender and their place, so that what arrived can be checked.

use crate::Rank;

/// The byte that `sender` puts at `index` of everything it sends.
fn byte(sender: Rank, index: usize) -> u8 {
    (sender.0 as usize).wrapping_mul(131).wrapping_add(index.wrapping_mul(7)).wrapping_add(index >> 8) as u8
}

/// Makes `block` what `sender` sends from `start` on.
pub fn fill(sender: Rank, start: usize, block: &mut [u8]) {
    for (at, place) in block.iter_mut().enumerate() {
        *place = byte(sender, start + at);
    }
}

/// The first place of `block` that is not what `sender` sends from `start` on, and what should be there.
#[must_use]
pub fn difference(sender: Rank, start: usize, block: &[u8]) -> Option<(usize, u8)> {
    let at = block.iter().enumerate().position(|(at, &found)| found != byte(sender, start + at))?;
    Some((at, byte(sender, start + at)))
}

/// Adds words of 64 bits that wrap around, little end first; a last part of a word is left as it was.
pub fn add_words(left: &[u8], right: &[u8], into: &mut [u8]) {
    let (left, right, into) = (left.as_chunks().0, right.as_chunks().0, into.as_chunks_mut().0);
    for ((left, right), into) in left.iter().zip(right).zip(into) {
        *into = u64::from_le_bytes(*left).wrapping_add(u64::from_le_bytes(*right)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found_where_it_is() {
        let mut block = [0; 1000];
        fill(Rank(3), 4096, &mut block);
        assert_eq!(difference(Rank(3), 4096, &block), None);
        for at in [0, 7, 999] {
            let right = block[at];
            block[at] ^= 0x10;
            assert_eq!(difference(Rank(3), 4096, &block), Some((at, right)));
            block[at] = right;
        }
    }

    #[test]
    fn another_sender_or_another_place_is_a_difference() {
        let mut block = [0; 64];
        fill(Rank(1), 0, &mut block);
        assert!(difference(Rank(2), 0, &block).is_some());
        assert!(difference(Rank(1), 1, &block).is_some());
        assert!(difference(Rank(1), 4096, &block).is_some());
    }

    #[test]
    fn words_are_added_and_wrap_around() {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut sums = [7; 19];
        add_words(&bytes(&[1, u64::MAX, 5]), &bytes(&[0xff, 2, 5]), &mut sums);
        assert_eq!(sums, [&bytes(&[0x100, 1])[..], &[7, 7, 7]].concat()[..]);
    }
}
