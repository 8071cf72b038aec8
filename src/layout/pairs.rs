//! Pairs of ranks for measurements that cannot afford all of them.

use tailback_transport::Rank;

use super::shuffle::{Stream, shuffle, stream};

/// At most `most` pairs of a job of `size` ranks: all of them when they fit, otherwise drawn from shuffled pairings, so
/// that every rank is in as many pairs as any other (but for one).
pub fn sample_pairs(seed: u64, size: usize, most: usize) -> Vec<(Rank, Rank)> {
    let pair = |a: usize, b: usize| (Rank::from(a.min(b)), Rank::from(a.max(b)));
    if size * size.saturating_sub(1) / 2 <= most {
        return (0..size).flat_map(|a| (a + 1..size).map(move |b| pair(a, b))).collect();
    }
    let mut rng = stream(seed, Stream::Pairs);
    let mut order: Vec<usize> = (0..size).collect();
    let mut out = Vec::with_capacity(most);
    while out.len() < most {
        shuffle(&mut order, &mut rng);
        let left = most - out.len();
        out.extend(order.chunks_exact(2).take(left).map(|two| pair(two[0], two[1])));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_when_they_fit() {
        assert_eq!(sample_pairs(1, 3, 9), [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (Rank(a), Rank(b))));
        assert!(sample_pairs(1, 1, 9).is_empty());
    }

    #[test]
    fn otherwise_a_sample_that_visits_all_ranks() {
        let pairs = sample_pairs(5, 100, 50);
        let mut seen: Vec<Rank> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((pairs.len(), seen.len()), (50, 100));
        assert!(pairs.iter().all(|(a, b)| a < b));
    }
}
