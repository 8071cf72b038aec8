//! HPC Challenge's network part: ping-pong over pairs, the natural ring and random rings, for 8 B and 2,000,000 B.
//!
//! Figures carry HPCC's own names beside ours, so that results can be set side by side. Data is checked after every
//! timed loop. After P. Luszczek et al., "Introduction to the HPC Challenge Benchmark Suite", sections 4 and 5.

mod figures;
mod measure;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use measure::measure;

use crate::stats::{Interval, Took};
use crate::units;

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Message size of latencies
    #[arg(long, value_name = "BYTES", value_parser = units::message, default_value_t = 8)]
    pub latency_bytes: usize,
    /// Message size of bandwidths
    #[arg(long, value_name = "BYTES", value_parser = units::message, default_value_t = 2_000_000)]
    pub bandwidth_bytes: usize,
    /// Random rings, dealt to the repetitions
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 30)]
    pub rings: usize,
    /// At most so many pairs for ping-pong, drawn with the seed when there are more
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 100)]
    pub pairs: usize,
    /// Measurements of every pair and of the natural ring; with three or more, figures have intervals
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 5)]
    #[serde(default = "once")]
    pub repetitions: usize,
    /// At least so many timed round trips of a pair, and exchanges of a ring, for latencies: they are repeated until
    /// their rate is steady
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 50)]
    pub latency_iterations: usize,
    /// The same for bandwidths
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 4)]
    pub bandwidth_iterations: usize,
}

/// As files of version 0.1 had it.
fn once() -> usize {
    1
}

impl Settings {
    /// The paper's sizes and ten rings, as often as intervals take: for when more than this is measured.
    pub fn brief() -> Self {
        Settings {
            latency_bytes: 8,
            bandwidth_bytes: 2_000_000,
            rings: 10,
            pairs: 30,
            repetitions: 3,
            latency_iterations: 50,
            bandwidth_iterations: 4,
        }
    }

    /// How often everything is measured: at least once.
    pub fn repetitions(&self) -> usize {
        self.repetitions.max(1)
    }
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
    /// Repetitions that were complete; absent in files of version 0.1, which have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_repetitions: Option<usize>,
    /// Random rings that were measured in them; absent likewise, where it is as many as asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_rings: Option<usize>,
    /// Round trips of pairs and exchanges of rings that latencies took; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_took: Option<Took>,
    /// The same of bandwidths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_took: Option<Took>,
    pub ping_pong_latency_us: Spread,
    pub ping_pong_bandwidth_gb_per_s: Spread,
    pub natural_ring_latency_us: f64,
    pub natural_ring_bandwidth_gb_per_s: f64,
    /// Geometric means over the random rings.
    pub random_ring_latency_us: f64,
    pub random_ring_bandwidth_gb_per_s: f64,
    /// 95% intervals of figures by HPCC's names: over the repetitions. Absent for
    /// fewer than three.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
}

/// One of HPCC's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Our name, which ends with the unit.
    pub ours: &'static str,
    /// HPCC's name.
    pub theirs: &'static str,
    /// In microseconds or GB/s.
    pub value: f64,
    /// Its 95% interval, where there is one.
    pub interval: Option<Interval>,
}

impl Beff {
    /// In HPCC's order.
    pub fn figures(&self) -> [Figure; 10] {
        let (latency, bandwidth) = (self.ping_pong_latency_us, self.ping_pong_bandwidth_gb_per_s);
        let (natural, random) = (self.natural_ring_bandwidth_gb_per_s, self.random_ring_bandwidth_gb_per_s);
        [
            ("ping-pong latency, worst pair, us", "MaxPingPongLatency_usec", latency.max),
            ("random rings latency, us", "RandomlyOrderedRingLatency_usec", self.random_ring_latency_us),
            ("ping-pong bandwidth, worst pair, GB/s", "MinPingPongBandwidth_GBytes", bandwidth.min),
            ("natural ring bandwidth, GB/s", "NaturallyOrderedRingBandwidth_GBytes", natural),
            ("random rings bandwidth, GB/s", "RandomlyOrderedRingBandwidth_GBytes", random),
            ("ping-pong latency, best pair, us", "MinPingPongLatency_usec", latency.min),
            ("ping-pong latency, mean, us", "AvgPingPongLatency_usec", latency.avg),
            ("ping-pong bandwidth, best pair, GB/s", "MaxPingPongBandwidth_GBytes", bandwidth.max),
            ("ping-pong bandwidth, mean, GB/s", "AvgPingPongBandwidth_GBytes", bandwidth.avg),
            ("natural ring latency, us", "NaturallyOrderedRingLatency_usec", self.natural_ring_latency_us),
        ]
        .map(|(ours, theirs, value)| Figure {
            ours,
            theirs,
            value,
            interval: self.intervals.get(theirs).copied(),
        })
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
