//! Connections that others started and that have not proven the job secret yet: how many there may be, how long each
//! has, and which one goes when another waits.
//!
//! Nobody is refused for coming late: when all places are taken, the oldest connection of the address that has the
//! most goes, however far its handshake is, once it had [`GRACE`]. So a flood from one address puts out itself before
//! anyone else; where it shares its address with ranks, a rank still has [`GRACE`] for a handshake that takes a round
//! trip or two, and tries again if that was too little. Ranks that share a host may take all places, for as long as
//! nobody else wants them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// How many there may be at a time; the rest wait in the system's queue.
pub const LIMIT: usize = 512;

/// How long one may take for each step of proving itself. A rank that was too slow tries again.
pub const PROOF_LIMIT: Duration = Duration::from_secs(5);

/// How long one has for each step for sure, however many others wait. With [`LIMIT`] places, a full system queue of 4096
/// connections that greet and say no more is through in 3.2 s: less than a rank waits for an answer.
pub const GRACE: Duration = Duration::from_millis(200);

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Stranger {
    /// Its place in its owner's list.
    pub slot: usize,
    /// Where it comes from.
    pub address: IpAddr,
    /// Whether that is the address of a rank, as far as those are known.
    pub rank: bool,
    /// Since when it has to say something: it was accepted, or challenged.
    pub since: Instant,
}

impl Stranger {
    /// When it may be closed to make room.
    pub fn evictable_at(&self) -> Instant {
        self.since + GRACE
    }

    /// Whether it may be closed now.
    #[must_use]
    pub fn is_evictable(&mut self) -> bool {
        self.since.elapsed() >= GRACE
    }
}

/// In which order they make room for others, the first to go last: those at addresses of no rank, then the oldest of the
/// address that has the most.
pub fn eviction_order(strangers: impl Iterator<Item = Stranger>) -> Vec<Stranger> {
    let mut all: Vec<Stranger> = strangers.collect();
    all.sort_unstable_by_key(|of| Reverse(of.since));
    // Who has most others of its address behind it goes first.
    let mut crowds: HashMap<IpAddr, usize> = HashMap::new();
    let mut placed: Vec<(usize, Stranger)> = Vec::with_capacity(all.len());
    for stranger in all {
        let younger = crowds.entry(network(stranger.address)).or_default();
        placed.push((*younger, stranger));
        *younger += 1;
    }
    placed.sort_by_key(|(younger, of)| (!of.rank, *younger, Reverse(of.since)));
    placed.into_iter().map(|(_, of)| of).collect()
}

/// What counts as one address: of IPv6, all that one host can give itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strangers(of: &[(&str, u64)]) -> Vec<Stranger> {
        let start = Instant::now();
        let stranger = |(slot, (address, age)): (usize, &(&str, u64))| Stranger {
            slot,
            address: address.parse().unwrap(),
            rank: address.starts_with("10.0."),
            since: start - Duration::from_millis(*age),
        };
        of.iter().enumerate().map(stranger).collect()
    }

    fn out(of: &[(&str, u64)]) -> Option<usize> {
        eviction_order(strangers(of).into_iter()).last().map(|stranger| stranger.slot)
    }

    #[test]
    fn the_oldest_of_the_largest_crowd_goes() {
        assert_eq!(out(&[]), None);
        assert_eq!(out(&[("192.0.2.1", 9), ("192.0.2.1", 30), ("192.0.2.1", 20)]), Some(1));
        assert_eq!(out(&[("192.0.2.1", 90), ("192.0.2.2", 30), ("192.0.2.2", 40)]), Some(2), "a crowd puts out itself");
        assert_eq!(out(&[("192.0.2.1", 2), ("10.0.0.1", 30), ("10.0.0.1", 40)]), Some(0), "ranks stay longest");
        assert_eq!(out(&[("10.0.0.2", 2), ("10.0.0.1", 30), ("10.0.0.1", 40)]), Some(2));
        let one_host = [("2001:db8::1", 1), ("2001:db8::2", 2), ("192.0.2.7", 90)];
        assert_eq!(out(&one_host), Some(1), "a host has all of its network's addresses");
        assert_eq!(out(&[("::ffff:192.0.2.7", 1), ("192.0.2.7", 2), ("192.0.2.8", 3)]), Some(1));
    }

    #[test]
    fn crowds_shrink_to_one_size() {
        let all = [("192.0.2.1", 9), ("192.0.2.1", 8), ("192.0.2.1", 7), ("192.0.2.2", 6), ("192.0.2.2", 5)];
        let order: Vec<usize> = eviction_order(strangers(&all).into_iter()).iter().rev().map(|of| of.slot).collect();
        assert_eq!(order, [0, 1, 3, 2, 4]);
    }

    proptest! {
        /// Whoever floods from one address, a lone connection from another stays while the flood has more than one.
        #[test]
        fn a_flood_never_puts_out_another_address(flood in 2usize..40, ages in proptest::collection::vec(0u64..5000, 41)) {
            let mut all: Vec<(&str, u64)> = ages[..flood].iter().map(|&age| ("192.0.2.1", age)).collect();
            all.push(("192.0.2.2", ages[40]));
            let out = out(&all).unwrap();
            prop_assert_eq!(all[out].0, "192.0.2.1");
            prop_assert_eq!(all[out].1, *ages[..flood].iter().max().unwrap());
        }
    }
}
