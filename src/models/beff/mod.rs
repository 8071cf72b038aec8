//! HPC Challenge's network part: ping-pong over pairs, the natural ring and random rings, for 8 B and 2,000,000 B.
//!
//! Figures carry HPCC's own names beside ours, so that results can be set side by side. Data is checked after every
//! timed loop. After P. Luszczek et al., "Introduction to the HPC Challenge Benchmark Suite", sections 4 and 5.

mod measure;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use measure::measure;

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Message size of latencies
    #[arg(long, value_name = "BYTES", default_value_t = 8)]
    pub latency_bytes: usize,
    /// Message size of bandwidths
    #[arg(long, value_name = "BYTES", default_value_t = 2_000_000)]
    pub bandwidth_bytes: usize,
    /// Random rings
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub rings: usize,
    /// At most so many pairs for ping-pong, drawn with the seed when there are more
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub pairs: usize,
    /// Timed round trips of a pair, and exchanges of a ring, for latencies
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub latency_iterations: usize,
    /// The same for bandwidths
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub bandwidth_iterations: usize,
}

/// Smallest, mean and largest over pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Spread {
    pub min: f64,
    pub avg: f64,
    pub max: f64,
}

/// The figures. Latencies in microseconds, bandwidths in 10^9 bytes per second and process, as HPCC has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Beff {
    pub settings: Settings,
    /// Pairs that played ping-pong.
    pub pairs: usize,
    pub ping_pong_latency_us: Spread,
    pub ping_pong_bandwidth_gb_per_s: Spread,
    pub natural_ring_latency_us: f64,
    pub natural_ring_bandwidth_gb_per_s: f64,
    /// Geometric means over the random rings.
    pub random_ring_latency_us: f64,
    pub random_ring_bandwidth_gb_per_s: f64,
}

impl Beff {
    /// (our name, HPCC's name, value), in HPCC's order.
    pub fn figures(&self) -> [(&'static str, &'static str, f64); 10] {
        let (latency, bandwidth) = (self.ping_pong_latency_us, self.ping_pong_bandwidth_gb_per_s);
        [
            ("ping-pong latency, worst pair, us", "MaxPingPongLatency_usec", latency.max),
            ("random rings latency, us", "RandomlyOrderedRingLatency_usec", self.random_ring_latency_us),
            ("ping-pong bandwidth, worst pair, GB/s", "MinPingPongBandwidth_GBytes", bandwidth.min),
            (
                "natural ring bandwidth, GB/s",
                "NaturallyOrderedRingBandwidth_GBytes",
                self.natural_ring_bandwidth_gb_per_s,
            ),
            (
                "random rings bandwidth, GB/s",
                "RandomlyOrderedRingBandwidth_GBytes",
                self.random_ring_bandwidth_gb_per_s,
            ),
            ("ping-pong latency, best pair, us", "MinPingPongLatency_usec", latency.min),
            ("ping-pong latency, mean, us", "AvgPingPongLatency_usec", latency.avg),
            ("ping-pong bandwidth, best pair, GB/s", "MaxPingPongBandwidth_GBytes", bandwidth.max),
            ("ping-pong bandwidth, mean, GB/s", "AvgPingPongBandwidth_GBytes", bandwidth.avg),
            ("natural ring latency, us", "NaturallyOrderedRingLatency_usec", self.natural_ring_latency_us),
        ]
    }

    /// The paper's ratios of bandwidths: natural ring, random rings to the worst ping-pong; random to natural.
    pub fn ratios(&self) -> [(&'static str, f64); 3] {
        let (worst, natural) = (self.ping_pong_bandwidth_gb_per_s.min, self.natural_ring_bandwidth_gb_per_s);
        let random = self.random_ring_bandwidth_gb_per_s;
        [
            ("natural ring / ping-pong", natural / worst),
            ("random rings / ping-pong", random / worst),
            ("random rings / natural ring", random / natural),
        ]
    }
}
