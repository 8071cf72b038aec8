//! What `tailback map` found between pairs of nodes, and what is known of the nodes' places.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `tailback map`. Nodes are numbers: their places in `nodes`, which are in the order of their first rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapResult {
    /// The host of each node.
    pub nodes: Vec<String>,
    /// The group of each node: a number from 0. Absent where nobody said and figures show none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// What the groups are called, by their numbers; empty where they were inferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_names: Vec<String>,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_known_by: Option<GroupsKnownBy>,
    /// Length of the messages that bandwidths are of.
    pub bytes: u64,
    /// Whether every two nodes were to be measured; else a sample, in which every node is in as many pairs.
    pub all_pairs: bool,
    /// Rounds of disjoint pairs that were asked for.
    pub rounds: u32,
    /// Those that were complete: the first ones, in the order that the seed decides.
    pub complete_rounds: u32,
    /// Two entries for each pair that was measured, one for each direction.
    pub pairs: Vec<MapPair>,
    /// One for each node that told of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<MapHost>,
}

/// How groups are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupsKnownBy {
    /// A file that the user named: groups, or the topology as a fabric manager or Slurm prints it.
    File,
    /// The user's pattern of host names.
    Names,
    /// The environment of the ranks: Slurm's topology, the lab, or the simulated machine.
    Environment,
    /// Nobody: nodes with like figures are taken for a group.
    Inferred,
}

/// What was measured from one node to another. All pairs of a round are measured at the same time, each node in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPair {
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Half a round trip of 8 bytes, in seconds. It is of both directions, and stands where `from` is less than `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<MapFigure>,
    /// Bytes per second while nothing goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_bytes_per_s: Option<MapFigure>,
    /// Bytes per second in this direction, while as much goes the other way.
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
    /// Copying memory: the median over slices, in bytes copied per second. Slow here too, the host is slow rather than its link.
    pub copy_bytes_per_s: f64,
    /// The slowest slice's.
    pub copy_worst_bytes_per_s: f64,
}
