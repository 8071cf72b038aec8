//! What a tag of up to 64 bits carries: the group, the lane and the message's own tag.
//!
//! The sender is in it only where a provider's receives cannot name their sender. Groups are numbered per pair of ranks: every rank makes the groups
//! it shares with another in the same order, so the number of groups two ranks made together names the newest to both,
//! exactly and without a word exchanged. Where a provider has fewer than 64 bits the numbers wrap around, which is safe
//! as long as no two ranks share more live groups than there are numbers (32 at the least).

use tailback_transport::{Error, Rank, Result, Tag};

const MESSAGE_BITS: u32 = 32;
const LANE_BITS: u32 = 3;
const LEAST_GROUP_BITS: u32 = 5;

/// The lane of messages that set a group up; the trait's own lanes are below.
pub(super) const SETUP: u8 = 7;

/// How many lanes there are with that.
pub(super) const LANES: usize = 8;

/// A provider with narrower tags cannot serve.
pub const LEAST_BITS: u32 = MESSAGE_BITS + LANE_BITS + LEAST_GROUP_BITS;

/// How tags are made for a provider.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    /// Bits for the sender's rank: none where receives are directed.
    sender_bits: u32,
    groups: u64,
}

impl Tags {
    /// For a library, by what errors call it, whose tags have `bits` bits, with the sender in them if there are `senders` to be told apart.
    pub fn new(library: &str, bits: u32, senders: Option<usize>) -> Result<Tags> {
        let sender_bits = senders.map_or(0, |ranks| usize::BITS - ranks.saturating_sub(1).leading_zeros());
        let group_bits = bits.saturating_sub(MESSAGE_BITS + LANE_BITS + sender_bits);
        if group_bits < LEAST_GROUP_BITS {
            return Err(Error::Setup(format!(
                "this {library}'s tags of {bits} bits are too few for a job of so many ranks"
            )));
        }
        Ok(Tags { sender_bits, groups: (1 << group_bits) - 1 })
    }

    /// The part of the tag that is the same for all messages of `sender` to one rank of a group.
    pub(super) fn of_group(self, number: u32, sender: Rank) -> u64 {
        let sender = if self.sender_bits == 0 { 0 } else { u64::from(sender.0) };
        ((u64::from(number) & self.groups) << self.sender_bits | sender) << (MESSAGE_BITS + LANE_BITS)
    }
}

/// The whole tag.
#[inline]
pub(super) fn of_message(group: u64, lane: u8, tag: Tag) -> u64 {
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
            let tags = Tags::new("library", bits, None).expect("enough bits");
            let mut seen = BTreeSet::new();
            for number in 0..32 {
                for lane in 0..LANES as u8 {
                    for tag in [0, 1, u32::MAX - 1, u32::MAX] {
                        let whole = of_message(tags.of_group(number, Rank(7)), lane, Tag(tag));
                        assert!(bits == 64 || whole >> bits == 0, "{whole:#x} has more than {bits} bits");
                        assert!(seen.insert(whole));
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_wrap_around_where_bits_are_few() {
        let tags = Tags::new("library", 48, None).expect("enough bits");
        let of = |number| tags.of_group(number, Rank(0));
        assert_eq!(of(1 << 13), of(0));
        assert_ne!(of((1 << 13) - 1), of(0));
    }

    #[test]
    fn senders_are_told_apart_where_receives_are_not_directed() {
        let tags = Tags::new("library", 64, Some(1000)).expect("enough bits");
        let mut seen = BTreeSet::new();
        for number in 0..100 {
            assert!((0..1000).all(|sender| seen.insert(tags.of_group(number, Rank(sender)))));
        }
        assert!(Tags::new("library", 48, Some(1 << 20)).is_err());
        assert_eq!(Tags::new("library", 64, Some(1)).expect("enough bits").sender_bits, 0);
    }
}
