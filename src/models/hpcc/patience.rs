//! How long a test of one rank may take on a slow core. For so long its rank, and those that wait for it, show no progress,
//! and nobody is to call them stuck: with the memory of a large node a test takes many minutes.

use std::time::Duration;

use tailback_hpcc::Sizes;

/// What the slowest core gives that anybody runs this on: operations of a product and of a transform, bytes of a vector and
/// words at random, each a second.
const PRODUCT: f64 = 1e9;
const TRANSFORM: f64 = 1e8;
const BYTES: f64 = 5e8;
const WORDS: f64 = 2e6;

/// The product, with all that is done to check it.
pub(super) fn dgemm(sizes: &Sizes) -> Duration {
    seconds(2.0 * (sizes.dgemm_order as f64).powi(3) / PRODUCT)
}

/// Ten passes of four loops over two or three vectors.
pub(super) fn stream(sizes: &Sizes) -> Duration {
    seconds(10.0 * 10.0 * 8.0 * sizes.stream_words as f64 / BYTES)
}

/// Four updates of every word, and four to take them back.
pub(super) fn random_access(sizes: &Sizes) -> Duration {
    seconds(8.0 * sizes.table_words as f64 / WORDS)
}

/// So many transforms and back.
pub(super) fn fft(sizes: &Sizes, passes: usize) -> Duration {
    let points = sizes.fft_points as f64;
    seconds(2.0 * passes as f64 * 5.0 * points * points.log2() / TRANSFORM)
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use tailback_hpcc::Grid;

    use super::*;

    #[test]
    fn patience_grows_with_the_memory_of_a_rank() {
        let of = |gib: f64| {
            let sizes = Sizes::of(Sizes::order_for(gib * f64::from(1 << 30), 128), 128, Grid::of(1));
            [dgemm(&sizes), stream(&sizes), random_access(&sizes), fft(&sizes, 2)]
        };
        // What nobody waits for needs no more than the usual limit; nobody sits before a table of 16 GiB for a day.
        assert!(of(0.03).iter().all(|longest| *longest < Duration::from_secs(60)), "{:?}", of(0.03));
        for longest in of(16.0) {
            assert!((120.0..86_400.0).contains(&longest.as_secs_f64()), "{:?}", of(16.0));
        }
    }
}
