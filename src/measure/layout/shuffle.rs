//! A shuffle whose result for a given seed never changes, so that a seed in an old result file stays meaningful.
//!
//! Library shuffles may change with their version; this is Fisher-Yates over `ChaCha8` with Lemire's bounded draw.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Independent streams of one seed, so that no draw depends on how many another part of the layout made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Roles,
    Pairs,
    /// The order of measurements; each draw of it has a number.
    Order(u64),
    Ring {
        slice: u32,
        ring: u32,
    },
}

pub(super) fn stream(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(match stream {
        Stream::Roles => 0,
        Stream::Pairs => 1,
        Stream::Order(number) => (1 << 62) | (number & ((1 << 62) - 1)),
        Stream::Ring { slice, ring } => (1 << 63) | (u64::from(slice) << 31) | u64::from(ring),
    });
    rng
}

pub(super) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let bound = u32::try_from(last + 1).expect("fewer than 2^32 items");
        items.swap(last, below(rng, bound) as usize);
    }
}

/// The numbers below `count` in an order that `seed` and the `number` of the draw decide: the same on every rank.
pub fn order(seed: u64, number: u64, count: usize) -> Vec<usize> {
    let mut items: Vec<usize> = (0..count).collect();
    shuffle(&mut items, &mut stream(seed, Stream::Order(number)));
    items
}

/// A uniform draw from 0..bound, without modulo bias.
fn below(rng: &mut ChaCha8Rng, bound: u32) -> u32 {
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        let low = product as u32;
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_keeps_its_meaning() {
        let mut items: Vec<u32> = (0..10).collect();
        shuffle(&mut items, &mut stream(42, Stream::Roles));
        assert_eq!(items, [0, 5, 3, 7, 9, 4, 8, 1, 6, 2], "changing this breaks the seeds in users' result files");
    }

    #[test]
    fn orders_hold_every_number_and_differ_by_seed_and_draw() {
        let mut sorted = order(1, 0, 50);
        assert_eq!(order(1, 0, 10), [3, 2, 7, 5, 8, 9, 4, 6, 0, 1], "seeds in result files keep their meaning");
        assert_ne!(sorted, order(2, 0, 50));
        assert_ne!(sorted, order(1, 1, 50));
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        assert!(order(1, 0, 0).is_empty());
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut seen = std::collections::HashMap::new();
        let mut rng = stream(7, Stream::Ring { slice: 3, ring: 5 });
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut items, &mut rng);
            *seen.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 24);
        // 1000 expected each, standard deviation about 31.
        assert!(seen.values().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
