//! What a 64-bit tag of libfabric carries: the group, the lane and the message's own tag.
//!
//! The sender is not in it: receives are directed. Groups are numbered per pair of ranks: every rank makes the groups
//! it shares with another in the same order, so the number of groups two ranks made together names the newest to both,
//! exactly and without a word exchanged. Where a provider has fewer than 64 bits the numbers wrap around, which is safe
//! as long as no two ranks share more live groups than there are numbers (32 at the least).

use tailback_transport::Tag;

const MESSAGE_BITS: u32 = 32;
const LANE_BITS: u32 = 3;

/// The lane of messages that set a group up; the trait's own lanes are below.
pub(crate) const SETUP: u8 = 7;

/// How many lanes there are with that.
pub(crate) const LANES: usize = 8;

/// A provider with narrower tags cannot serve.
pub(crate) const LEAST_BITS: u32 = MESSAGE_BITS + LANE_BITS + 5;

/// How tags are made for a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    groups: u32,
}

impl Tags {
    /// For a provider whose tags have `bits` bits.
    pub(crate) fn new(bits: u32) -> Tags {
        debug_assert!((LEAST_BITS..=64).contains(&bits));
        Tags { groups: u32::MAX >> (32 - (bits - MESSAGE_BITS - LANE_BITS).min(32)) }
    }

    /// The part of the tag that is the same for all messages between two ranks of a group.
    pub(crate) fn of_group(self, number: u32) -> u64 {
        u64::from(number & self.groups) << (MESSAGE_BITS + LANE_BITS)
    }
}

/// The whole tag.
#[inline]
pub(crate) fn of_message(group: u64, lane: u8, tag: Tag) -> u64 {
    debug_assert!(usize::from(lane) < LANES);
    group | u64::from(lane) << MESSAGE_BITS | u64::from(tag.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tags_differ_in_group_lane_and_message() {
        for bits in [LEAST_BITS, 48, 64] {
            let tags = Tags::new(bits);
            let mut seen = BTreeSet::new();
            for number in 0..32 {
                for lane in 0..LANES as u8 {
                    for tag in [0, 1, u32::MAX - 1, u32::MAX] {
                        let whole = of_message(tags.of_group(number), lane, Tag(tag));
                        assert!(bits == 64 || whole >> bits == 0, "{whole:#x} has more than {bits} bits");
                        assert!(seen.insert(whole));
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_wrap_around_where_bits_are_few() {
        let tags = Tags::new(48);
        assert_eq!(tags.of_group(1 << 13), tags.of_group(0));
        assert_ne!(tags.of_group((1 << 13) - 1), tags.of_group(0));
    }
}
