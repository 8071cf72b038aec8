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
}
