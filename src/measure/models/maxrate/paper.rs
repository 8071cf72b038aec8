//! Every number that the paper prints and that follows from its formulas, with its place. What differs is in docs/models.md.

use super::*;

fn assert_near(what: &str, own: f64, printed: f64, part: f64) {
    assert!((own / printed - 1.0).abs() <= part, "{what}: {own}, printed {printed}");
}

fn values(latency: f64, first: f64, further: f64, node: Option<f64>) -> Values {
    Values { latency, first, further, node }
}

/// Section 2: α = 1.6e-6 and β = 1.7e-10 are "a sustained bandwidth of 5.9 GB/sec", where an exchange of 2048 doubles has 380 MB/s.
#[test]
fn section_2() {
    let postal = values(1.6e-6, 1.0 / 1.7e-10, 1.0 / 1.7e-10, None);
    assert_near("1/β", postal.first, 5.9e9, 0.005);
    // The latency included, messages of that size have less by the same model.
    let halo: Halo = "1x16384x1".parse().unwrap();
    let rate = halo.bytes_of_a_rank() / halo.seconds(Model::Postal, &postal, 1);
    assert_near("of 16 KiB", rate, 3.74e9, 0.005);
    // "Can be 10x what the postal model predicts".
    assert!((5.0..20.0).contains(&(rate / 380e6)), "{rate}");
}

/// Section 3: what (3), (4) and (5) become at their ends.
#[test]
fn section_3() {
    let (latency, rate, bytes) = (1e-5, 1e9, 1 << 20);
    let postal = |pairs| values(latency, rate, rate, None).seconds(Model::Postal, pairs, bytes);
    for pairs in 1..=16 {
        // "For large R_N, each of (3) and (4) reduces to T = α + n/R_C": (4) only where R_Ci = R_Cb.
        let wide = values(latency, rate, rate, Some(1e15));
        assert_near("(3)", wide.seconds(Model::MaxRate, pairs, bytes), postal(pairs), 1e-9);
        assert_near("(4)", wide.seconds(Model::Extended, pairs, bytes), postal(pairs), 1e-9);
        let apart = values(latency, rate, rate / 2.0, Some(1e15)).seconds(Model::Extended, pairs, bytes);
        assert!(pairs == 1 || apart > 1.3 * postal(pairs), "{pairs}: {apart}");
        // "If R_N = R_C, then T = α + kn/R_N".
        let narrow = values(latency, rate, rate, Some(rate));
        let full = pairs as f64 * bytes as f64 / rate;
        assert_near("R_N = R_C", narrow.seconds(Model::MaxRate, pairs, bytes), latency + full, 1e-9);
        // (5) as printed, and its ends: kn / min(R_N, k R_C) for large n, α + n/R_C for small n.
        let node = 4e9;
        let five = values(latency, rate, rate, Some(node));
        for bytes in [1usize, 1 << 10, 1 << 16, 1 << 20, 1 << 30] {
            let (all, alone) = (pairs as f64 * bytes as f64, latency + bytes as f64 / rate);
            let printed = all / f64::min(node, all / alone);
            assert_near("(5)", five.seconds(Model::HiddenLatency, pairs, bytes), printed, 1e-9);
        }
        let large = pairs as f64 * f64::from(1 << 30) / f64::min(node, pairs as f64 * rate);
        assert_near("(5), large n", five.seconds(Model::HiddenLatency, pairs, 1 << 30), large, 1e-4);
        assert_near("(5), small n", five.seconds(Model::HiddenLatency, pairs, 8), latency + 8e-9, 1e-9);
    }
}

/// Section 3.1: T = E(α + kN / min(R_N, k R_C)); for R_N similar to R_C the time is about k times the postal model's.
#[test]
fn section_3_1() {
    let halo: Halo = "6x1GiBx16".parse().unwrap();
    let (latency, rate) = (1e-6, 1e9);
    let new = halo.seconds(Model::MaxRate, &values(latency, rate, rate, Some(rate)), 16);
    let postal = halo.seconds(Model::Postal, &values(latency, rate, rate, None), 16);
    assert_near("ratio (6), β / (k / R_N)", postal / new, (1.0 / rate) / (16.0 / rate), 1e-6);
}

/// Table 1 (data/maxrate-table1.csv) and the sentences on it: R_N does not bind but in rendezvous, of which a few pairs have it all.
#[test]
fn table_1() {
    let rows = include_str!("../../../../data/maxrate-table1.csv").lines().skip(1);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        let (latency, node, first, further) = (number(3), Some(number(4)), number(5), number(6));
        let of = values(latency, first, further, node.filter(|node| node.is_finite()));
        let fills = of.saturating_pairs();
        assert_eq!(fills.is_some(), cells[1] == "rendezvous", "{row}");
        if let Some(pairs) = fills {
            assert_near("pairs that fill the node", pairs, 4.11, 1e-2);
            assert_eq!(of.rate(Model::Extended, 16), 5.5e9);
        }
        // Even the negative rate of short messages leaves 16 pairs one.
        assert!(of.rate(Model::Extended, 16) > 0.0, "{row}");
    }
}

/// Table 2 (data/maxrate-table2.csv): "uniformly the max-rate models more accurately describe", and (4) a little better than (3).
#[test]
fn table_2() {
    for row in include_str!("../../../../data/maxrate-table2.csv").lines().skip(1) {
        let sums: Vec<f64> = row.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
        assert!(sums[0] < sums[1] && sums[2..].iter().all(|postal| *postal > sums[1]), "{row}");
        assert!(sums[1] / sums[0] < 1.15, "{row}");
    }
}
