//! How large every problem is: all follow from the order of HPL's matrix, as in HPCC.

use tailback_transport::arranged::Grid;

/// Sizes of all problems of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Order of HPL's matrix.
    pub hpl_order: usize,
    /// Order of PTRANS' matrices: half of it.
    pub ptrans_order: usize,
    /// Columns of a block of both.
    pub block: usize,
    /// Ranks as rows by columns, of both.
    pub grid: Grid,
    /// Order of DGEMM's three matrices.
    pub dgemm_order: usize,
    /// Words of each of STREAM's three vectors.
    pub stream_words: usize,
    /// Words of a rank's own table.
    pub table_words: usize,
    /// Words of the table of all ranks.
    pub global_table_words: usize,
    /// Points of a rank's own transform.
    pub fft_points: usize,
    /// The transform of all ranks, as a matrix of points.
    pub global_fft_shape: (usize, usize),
}

impl Sizes {
    /// The order of a matrix that fills so many bytes, in whole blocks; at least one.
    #[must_use]
    pub fn order_for(bytes: f64, block: usize) -> usize {
        let order = (bytes / 8.0).max(1.0).sqrt() as usize;
        (order / block * block).max(block)
    }

    /// The sizes that go with an order of HPL's matrix.
    #[must_use]
    pub fn of(order: usize, block: usize, grid: Grid) -> Self {
        let ranks = grid.ranks();
        let words = (order as u128).pow(2) as f64;
        let own = words / ranks as f64;
        let points = words / 2.0;
        Sizes {
            hpl_order: order,
            ptrans_order: (order / 2).max(1),
            block,
            grid,
            dgemm_order: (((own / 3.0 + 0.25).sqrt() - 0.5) as usize).max(1),
            stream_words: ((own / 3.0) as usize).max(1),
            table_words: power_below(own),
            global_table_words: power_below(words),
            fft_points: power_below(points / 3.0 / ranks as f64).max(2),
            global_fft_shape: fft_shape(points / 4.0, ranks),
        }
    }
}

/// The largest power of two that is not above `most`; at least 1.
fn power_below(most: f64) -> usize {
    1 << (most.max(1.0) as u64).ilog2()
}

/// As many points as fit, in rows and columns that are the ranks times powers of two.
fn fft_shape(most: f64, ranks: usize) -> (usize, usize) {
    let doublings = power_below(most / (ranks as f64).powi(2)).trailing_zeros();
    (ranks << doublings.div_ceil(2), ranks << (doublings / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_hpccs() {
        // What the original says for this order on two processes.
        let sizes = Sizes::of(1000, 80, Grid::of(2));
        assert_eq!((sizes.ptrans_order, sizes.dgemm_order, sizes.stream_words), (500, 407, 166_666));
        assert_eq!((sizes.table_words, sizes.global_table_words, sizes.fft_points), (262_144, 524_288, 65_536));
        let (rows, columns) = sizes.global_fft_shape;
        assert_eq!(rows * columns, 65_536);
    }

    #[test]
    fn any_number_of_ranks_has_a_transform_that_fits() {
        for ranks in 1..70 {
            let (rows, columns) = fft_shape(1e6, ranks);
            assert!(
                rows.is_multiple_of(ranks) && columns.is_multiple_of(ranks) && rows * columns <= 1_000_000,
                "{ranks}"
            );
            assert!(rows * columns > 250_000 || ranks > 22, "{ranks}: {rows} x {columns}");
        }
        assert_eq!(fft_shape(1.0, 4), (4, 4));
        assert_eq!(Sizes::of(1, 80, Grid::of(3)).global_fft_shape, (3, 3));
    }

    #[test]
    fn orders_are_whole_blocks() {
        assert_eq!(Sizes::order_for(8e6, 80), 960);
        assert_eq!(Sizes::order_for(0.0, 80), 80);
    }
}
