//! Rails: the local ends that a rank uses at once, and the connections to a peer, one for each of them.
//!
//! Over rails a rank has every other rank as a peer so many times, once per rail, and each of these has an account, a
//! connection and an order of its own: whatever is true of a peer is true of each. A message of more than [`STRIPED_ABOVE`]
//! bytes is cut into as many parts as there are rails, which travel, match and complete each on its own. Both ends cut alike,
//! because a message is as long as its receive. Shorter ones keep to the pair's home rail, so that messages of one tag keep
//! their order; pairs have different homes, so that the rails of a rank with many peers share what is short.
//!
//! With one rail, the number of a peer is its rank.

use std::ops::Range;

use tailback_transport::{Description, Error, Result, Span};

/// Longer messages, puts and gets are cut into a part for every rail.
pub const STRIPED_ABOVE: usize = 64 * 1024;

/// The most rails that there can be.
pub const MOST_RAILS: usize = 8;

/// Parts begin at multiples of this: a line of the cache.
const LINE: usize = 64;

/// How many rails there are, and which peer is whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    count: usize,
    /// The low bits of a peer's number, which say the rail.
    bits: u32,
}

impl Default for Rails {
    fn default() -> Self {
        Rails::new(1)
    }
}

impl Rails {
    /// So many.
    ///
    /// # Panics
    /// If there are none, or more than [`MOST_RAILS`].
    #[must_use]
    pub fn new(count: usize) -> Self {
        assert!((1..=MOST_RAILS).contains(&count), "{count} rails");
        Rails { count, bits: count.next_power_of_two().trailing_zeros() }
    }

    /// So many, if there can be.
    ///
    /// # Errors
    /// If there cannot.
    pub fn checked(count: usize) -> Result<Self> {
        if (1..=MOST_RAILS).contains(&count) {
            return Ok(Rails::new(count));
        }
        Err(Error::Setup(format!("{count} rails: there can be 1 to {MOST_RAILS}")))
    }

    /// Tells of them in a transport's description, where there is more than one.
    pub fn tell(self, description: &mut Description) {
        if self.count > 1 {
            description.details.insert("rails".into(), self.count.to_string());
            description.details.insert("striped_above_bytes".into(), STRIPED_ABOVE.to_string());
        }
    }

    /// How many.
    #[inline]
    #[must_use]
    pub fn count(self) -> usize {
        self.count
    }

    /// The numbers that peers of so many ranks can have are below this; some of them are nobody's.
    #[must_use]
    pub fn peers(self, ranks: usize) -> usize {
        ranks << self.bits
    }

    /// A rank on a rail.
    #[inline]
    #[must_use]
    pub fn peer(self, rank: usize, rail: usize) -> usize {
        rank << self.bits | rail
    }

    /// Whose number it is.
    #[inline]
    #[must_use]
    pub fn rank(self, peer: usize) -> usize {
        peer >> self.bits
    }

    /// On which rail.
    #[inline]
    #[must_use]
    pub fn rail(self, peer: usize) -> usize {
        peer & ((1 << self.bits) - 1)
    }

    /// Where a group keeps what it has open with the member at this position on the peer's rail.
    #[inline]
    #[must_use]
    pub fn seat(self, member: u32, peer: usize) -> usize {
        self.peer(member as usize, self.rail(peer))
    }

    /// The rail of what is short between two ranks: the same at both ends.
    #[inline]
    #[must_use]
    pub fn home(self, one: usize, other: usize) -> usize {
        if self.count == 1 { 0 } else { (one + other) % self.count }
    }

    /// The rails that so many bytes take between ranks whose home is `home`.
    #[inline]
    #[must_use]
    pub fn taken(self, home: usize, len: usize) -> Range<usize> {
        if len > STRIPED_ABOVE { 0..self.count } else { home..home + 1 }
    }

    /// What of a span goes over a rail that it takes.
    #[inline]
    #[must_use]
    pub fn part(self, rail: usize, span: Span) -> Span {
        if span.len <= STRIPED_ABOVE {
            return span;
        }
        let each = span.len.div_ceil(self.count).next_multiple_of(LINE);
        let begin = rail * each;
        Span::new(span.offset + begin, each.min(span.len - begin))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn with_one_rail_a_peer_is_its_rank() {
        let one = Rails::default();
        assert_eq!((one.peers(5), one.peer(3, 0), one.rank(3), one.rail(3), one.seat(2, 3)), (5, 3, 3, 0, 2));
        let span = Span::new(8, 1 << 30);
        assert_eq!((one.taken(one.home(4, 3), span.len), one.part(0, span)), (0..1, span));
    }

    #[test]
    fn what_is_short_keeps_to_one_rail() {
        let rails = Rails::new(3);
        let home = rails.home(1, 4);
        assert_eq!((home, rails.home(4, 1)), (2, 2));
        assert_eq!(rails.taken(home, STRIPED_ABOVE), 2..3);
        assert_eq!(rails.part(2, Span::new(5, STRIPED_ABOVE)), Span::new(5, STRIPED_ABOVE));
        assert_eq!(rails.taken(home, STRIPED_ABOVE + 1), 0..3);
    }

    #[test]
    fn a_description_has_them_where_there_are_several() {
        let mut description = Description::default();
        Rails::default().tell(&mut description);
        assert!(description.details.is_empty());
        Rails::checked(2).expect("two").tell(&mut description);
        assert_eq!((description.rails(), description.details["striped_above_bytes"].as_str()), (2, "65536"));
        for wrong in [0, MOST_RAILS + 1] {
            let told = Rails::checked(wrong).expect_err("no such number").to_string();
            assert!(told.contains(&format!("{wrong} rails: there can be 1 to 8")), "{told}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_taken_apart_as_they_were_put_together(
            count in 1..=MOST_RAILS, rank in 0..1usize << 20, rail in 0..MOST_RAILS, member: u32,
        ) {
            let (rails, rail) = (Rails::new(count), rail % count);
            let peer = rails.peer(rank, rail);
            prop_assert_eq!((rails.rank(peer), rails.rail(peer)), (rank, rail));
            prop_assert!(peer < rails.peers(rank + 1));
            prop_assert_eq!(rails.seat(member, peer), rails.peer(member as usize, rail));
        }

        #[test]
        fn parts_follow_each_other_and_none_is_empty(
            count in 1..=MOST_RAILS, offset in 0..1000usize, len in STRIPED_ABOVE + 1..1 << 24,
        ) {
            let (rails, span) = (Rails::new(count), Span::new(offset, len));
            let mut end = offset;
            for rail in rails.taken(0, len) {
                let part = rails.part(rail, span);
                prop_assert_eq!(part.offset, end);
                prop_assert!(part.len > 0);
                end = part.end();
            }
            prop_assert_eq!(end, span.end());
        }
    }
}
