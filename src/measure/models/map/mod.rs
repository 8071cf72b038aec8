//! Latency and bandwidth between pairs of nodes, in rounds of disjoint pairs.
//!
//! Every node has one rank that measures, its first. In a round every node is in one pair (with an odd number one rests), and all
//! pairs do the same at the same time: round trips of 8 bytes, then messages one way, the other way, and both ways. Each of these
//! steps is a row of slices: their median is the pair's figure, and the worst one shows what is slow at times only. Rounds are
//! complete or not at all; which nodes meet in which is a [`Design`].
//!
//! After LinkTest and mpiGraph, which measure all pairs; what is slow is for the reader of the figures to say.

mod design;
mod measure;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use design::Design;
pub use measure::{Progress, Task, measure};

use crate::units;

/// Length of the messages that latencies are of.
pub const LATENCY_BYTES: usize = 8;
/// Steps of a round.
pub const STEPS: usize = 4;
/// More nodes than this are sampled, unless the user wants all pairs.
pub const MOST_NODES_OF_ALL_PAIRS: usize = 256;
/// Rounds of a sample, at least.
const ROUNDS: usize = 64;
/// Over a simulated network, where every packet costs the same real time.
const SIMULATED_BYTES: usize = 64 << 10;
const BYTES: usize = 256 << 10;

/// What is measured, how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Message size of bandwidths [default: 256KiB; 64KiB with sim]
    #[arg(long, value_name = "BYTES", value_parser = units::message)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// So many messages in a row, all under way at once, are a slice of a bandwidth
    #[arg(long, value_name = "N", value_parser = units::up_to(1024), default_value_t = 4)]
    pub messages: usize,
    /// So many round trips of 8 B in a row are a slice of a latency
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 10)]
    pub round_trips: usize,
    /// At most so many slices of each figure of a pair: the median is told, and the worst
    #[arg(long, value_name = "N", value_parser = units::up_to(1000), default_value_t = 5)]
    pub slices: usize,
    /// After so long a step of a round ends, with three slices at least
    #[arg(long, value_name = "TIME", value_parser = units::milliseconds, default_value = "20ms")]
    #[serde(rename = "step_ms")]
    pub step: u64,
    /// Measure so many rounds of pairs, drawn with the seed: every node is in as many pairs, and every two groups meet as often
    /// as their sizes allow [default: all pairs of up to 256 nodes; of more, 64 rounds or a little more]
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "all_pairs")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Measure all pairs, however many nodes there are
    #[arg(long)]
    #[serde(default)]
    pub all_pairs: bool,
}

impl Settings {
    /// The length of messages over a simulated network or a real one.
    pub fn message_bytes(&self, is_simulated: bool) -> usize {
        self.bytes.unwrap_or(if is_simulated { SIMULATED_BYTES } else { BYTES })
    }

    /// The most that a step takes where links are not far slower than a message in that time.
    pub fn step_time(&self) -> Duration {
        Duration::from_millis(self.step)
    }

    /// The most that so many rounds take, beside agreeing on each.
    pub fn longest(&self, rounds: usize) -> Duration {
        self.step_time() * (STEPS * rounds) as u32
    }

    /// Rounds of a sample of so many nodes in so many groups; nothing where all pairs are wanted.
    fn sampled_rounds(&self, nodes: usize, groups: usize) -> Option<usize> {
        let all = nodes.next_multiple_of(2).saturating_sub(1);
        let asked = match self.rounds {
            Some(rounds) => rounds,
            None if self.all_pairs || nodes <= MOST_NODES_OF_ALL_PAIRS => return None,
            // Every two groups have met equally often after a cycle of as many rounds as there are groups.
            None if groups <= 2 * ROUNDS => ROUNDS.next_multiple_of(groups.max(1)),
            None => ROUNDS,
        };
        (asked < all).then_some(asked)
    }
}

/// What was measured from one node to another. All pairs of a round are measured at the same time, each node in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPair {
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Half a round trip of 8 bytes, in seconds. It is of both directions, and stands where `from` is less than `to`; of a pair
    /// that was probed, where its first node sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<MapFigure>,
    /// Bytes per second while nothing goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_bytes_per_s: Option<MapFigure>,
    /// Bytes per second each way, while as much goes the other way, by the clock of the sending node: a transfer ends when both
    /// of its directions have, so that both are as slow as the slower one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_ways_bytes_per_s: Option<MapFigure>,
    /// Segments that TCP of the sending node sent again during the round; absent where nothing counts them, and where several
    /// nodes share a host's counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<u64>,
}

/// A figure of a pair over its slices: short stretches of the same work, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapFigure {
    /// The middle slice.
    pub median: f64,
    /// The worst one: longest time, lowest bandwidth. Far from the median, the pair is slow at times.
    pub worst: f64,
    /// How many slices there were.
    pub count: u32,
}

/// What a node measured of itself, without any network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapHost {
    /// Which node.
    pub node: u32,
    /// Copying memory: the quickest slice, in bytes copied per second; who waits for a processor is late in others. Slow here
    /// too, the host is slow rather than its link.
    pub copy_bytes_per_s: f64,
    /// The slowest slice's.
    pub copy_worst_bytes_per_s: f64,
}
