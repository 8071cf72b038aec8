//! What is fitted of repeated measurements.

use std::collections::BTreeMap;

use tailback_stats::median;

use super::Observation;

/// The median of every (k, n), by ascending k and n.
pub fn medians(observations: &[Observation]) -> Vec<Observation> {
    let mut cells: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for seen in observations {
        cells.entry((seen.pairs, seen.bytes)).or_default().push(seen.seconds);
    }
    let middle = |((pairs, bytes), mut seconds): ((usize, usize), Vec<f64>)| Observation {
        pairs,
        bytes,
        seconds: median(&mut seconds).unwrap_or_default(),
    };
    cells.into_iter().map(middle).collect()
}
