//! The paper's balance: how much of everything there is for what HPL computes.

use super::Hpcc;

/// How a system's parts go together. After section 5.1 of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// HPL's rate of one rank, in 10^9 operations a second.
    pub hpl_gflops_per_rank: f64,
    /// Bytes that a rank has in random rings for 1000 operations of its own; none without that bandwidth.
    pub communication_byte_per_kflop: Option<f64>,
    /// The same without the links that stay on a node; none where nodes are not known.
    pub between_nodes_byte_per_kflop: Option<f64>,
}

/// Something for something, such as bytes of memory for an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Ratio {
    pub name: &'static str,
    pub unit: &'static str,
    pub value: f64,
}

impl Hpcc {
    /// How communication and computing go together, for so many ranks; none without HPL's rate.
    pub fn balance(&self, ranks: usize) -> Option<Balance> {
        let hpl = self.hpl_gflops()? / ranks.max(1) as f64;
        let ring = self.figure("RandomlyOrderedRingBandwidth_GBytes");
        let communication = ring.map(|ring| 1e3 * ring / hpl);
        let between = communication.zip(self.links_on_node).map(|(all, inside)| all * (1.0 - inside));
        Some(Balance {
            hpl_gflops_per_rank: hpl,
            communication_byte_per_kflop: communication,
            between_nodes_byte_per_kflop: between,
        })
    }
}

/// The balance and the ratios around it, of whatever was measured.
pub fn ratios(found: &Hpcc, ranks: usize) -> Vec<Ratio> {
    let mut all = Vec::new();
    let mut tell = |name, unit, value: Option<f64>| {
        all.extend(value.filter(|value| value.is_finite()).map(|value| Ratio { name, unit, value }));
    };
    let (of, ranks_f) = (|name: &str| found.figure(name), ranks.max(1) as f64);
    if let Some(balance) = found.balance(ranks) {
        let own = balance.hpl_gflops_per_rank;
        let whole = own * ranks_f;
        tell("random rings / HPL", "byte/kflop", balance.communication_byte_per_kflop);
        tell("random rings between nodes / HPL", "byte/kflop", balance.between_nodes_byte_per_kflop);
        tell("PTRANS / HPL", "byte/kflop", of("PTRANS_GBs").map(|rate| 1e3 * rate / whole));
        let triad = of("StarSTREAM_Triad").filter(|_| !found.stream_in_caches());
        tell("STREAM triad / HPL", "byte/kflop", triad.map(|rate| 1e3 * rate / own));
        tell("RandomAccess / HPL", "update/Mflop", of("MPIRandomAccess_GUPs").map(|rate| 1e6 * rate / whole));
        tell("FFT / HPL", "flop/kflop", of("MPIFFT_Gflops").map(|rate| 1e3 * rate / whole));
        tell("HPL / DGEMM", "", of("StarDGEMM_Gflops").map(|rate| own / rate));
    }
    let quotient = |above: &str, below: &str| of(above).zip(of(below)).map(|(above, below)| above / below);
    let latency = quotient("MaxPingPongLatency_usec", "RandomlyOrderedRingLatency_usec");
    tell("ping-pong / random rings, latency", "", latency);
    let [worst, natural, random] =
        ["MinPingPongBandwidth_GBytes", "NaturallyOrderedRingBandwidth_GBytes", "RandomlyOrderedRingBandwidth_GBytes"];
    tell("natural ring / ping-pong, bandwidth", "", quotient(natural, worst));
    tell("random rings / ping-pong, bandwidth", "", quotient(random, worst));
    tell("random rings / natural ring, bandwidth", "", quotient(random, natural));
    tell("random ring links that stay on a node", "", found.links_on_node);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Rows of the paper's table 1: ranks, GB/s in random rings, Gflop/s, and the balance it prints.
    const TABLE: [(usize, f64, f64, f64); 6] = [
        (256, 0.0046, 654.0, 1.8),
        (256, 0.032, 1030.0, 8.1),
        (128, 0.156, 413.0, 48.2),
        (128, 0.211, 639.0, 42.2),
        (32, 0.672, 268.0, 80.3),
        (64, 0.941, 522.0, 115.4),
    ];

    fn system(ring: f64, gflops: f64, links_on_node: Option<f64>) -> Hpcc {
        let figures = [("RandomlyOrderedRingBandwidth_GBytes", ring), ("HPL_Tflops", 1e-3 * gflops)];
        let figures: BTreeMap<String, f64> = figures.map(|(name, value)| (name.to_owned(), value)).into();
        Hpcc { figures, links_on_node, ..Hpcc::default() }
    }

    #[test]
    fn the_balance_is_the_papers() {
        for (ranks, ring, gflops, printed) in TABLE {
            let balance = system(ring, gflops, None).balance(ranks).unwrap();
            let found = balance.communication_byte_per_kflop.unwrap();
            // Printed of more digits than the table has.
            assert!((found / printed - 1.0).abs() < 0.02, "{ring} {gflops}: {found} and not {printed}");
            assert_eq!(balance.between_nodes_byte_per_kflop, None);
        }
        // "25% of the random ring connections involve only intra-node communications": 60.2.
        let between = system(0.672, 268.0, Some(0.25)).balance(32).unwrap().between_nodes_byte_per_kflop.unwrap();
        assert!((between - 60.2).abs() < 0.1, "{between}");
    }

    #[test]
    fn without_hpl_there_is_no_balance_but_ratios_of_the_network() {
        let mut found = system(1.0, 1.0, Some(0.0));
        found.figures.remove("HPL_Tflops");
        assert_eq!(found.balance(2), None);
        found.figures.insert("MinPingPongBandwidth_GBytes".into(), 4.0);
        found.figures.insert("MaxPingPongLatency_usec".into(), 3.0);
        found.figures.insert("RandomlyOrderedRingLatency_usec".into(), 12.0);
        let told: Vec<(&str, f64)> = ratios(&found, 2).iter().map(|ratio| (ratio.name, ratio.value)).collect();
        // As the paper has them: "the ratio ping-pong to random varies between 0.12 and 0.99".
        let expected = [
            ("ping-pong / random rings, latency", 0.25),
            ("random rings / ping-pong, bandwidth", 0.25),
            ("random ring links that stay on a node", 0.0),
        ];
        assert_eq!(told, expected);
    }
}
