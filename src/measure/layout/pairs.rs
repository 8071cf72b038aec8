//! Pairs of ranks for measurements that cannot afford all of them.

use tailback_transport::Rank;

use super::shuffle::{Stream, shuffle, stream};

/// At most `most` pairs of a job of `size` ranks, none twice: all of them when they fit, otherwise rounds of a tournament in
/// which everyone meets everyone, drawn with the seed, so that every rank is in as many pairs as any other (but for one).
pub fn sample_pairs(seed: u64, size: usize, most: usize) -> Vec<(Rank, Rank)> {
    let pair = |a: usize, b: usize| (Rank::from(a.min(b)), Rank::from(a.max(b)));
    if size * size.saturating_sub(1) / 2 <= most {
        return (0..size).flat_map(|a| (a + 1..size).map(move |b| pair(a, b))).collect();
    }
    let mut rng = stream(seed, Stream::Pairs);
    let mut order: Vec<usize> = (0..size).collect();
    shuffle(&mut order, &mut rng);
    // With an odd number, one sits out in each round: whoever meets the seat that nobody has.
    let seats = size.next_multiple_of(2);
    let mut rounds: Vec<usize> = (0..seats - 1).collect();
    shuffle(&mut rounds, &mut rng);
    let met = |round: usize| {
        let others = (1..seats / 2).map(move |at| ((round + at) % (seats - 1), (round + seats - 1 - at) % (seats - 1)));
        std::iter::once((round, seats - 1)).chain(others)
    };
    let all = rounds.into_iter().flat_map(met).filter(|&(a, b)| a < size && b < size);
    all.take(most).map(|(a, b)| pair(order[a], order[b])).collect()
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
        assert_ne!(pairs, sample_pairs(6, 100, 50));
    }

    #[test]
    fn no_pair_is_drawn_twice_and_ranks_have_their_turns() {
        for (size, most) in [(15, 100), (14, 60), (16, 119), (3, 2), (40, 300)] {
            let mut pairs = sample_pairs(9, size, most);
            let count = |rank: usize| pairs.iter().filter(|(a, b)| a.index() == rank || b.index() == rank).count();
            let counts: Vec<usize> = (0..size).map(count).collect();
            let (least, largest) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(largest - least <= 2, "{counts:?}");
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len(), most, "of {size}");
        }
    }
}
