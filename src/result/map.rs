//! What `tailback map` found between pairs of nodes, and what is known of the nodes' places.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::map::Settings;
pub use crate::models::map::{MapFigure, MapHost, MapPair};

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
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
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
    /// What was measured again, of `tailback locate`; absent in a map by itself, and where the map was not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<MapProbes>,
}

/// Suspects of a map measured again, and healthy parts beside them, each while nothing else of the job loads the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapProbes {
    /// Rounds that were planned: one pair each, or several pairs of the same groups.
    pub rounds: u32,
    /// Those that were complete.
    pub complete_rounds: u32,
    /// One for each part.
    pub probes: Vec<MapProbe>,
    /// What nodes measured of themselves at the beginning of the probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<MapHost>,
}

/// A part of the system that was measured by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapProbe {
    /// Which. A node is in pairs with several partners, one at a time; of groups several pairs are measured at once.
    pub place: MapPlace,
    /// Nothing was suspected of it: it is there to be compared with.
    #[serde(default)]
    pub is_control: bool,
    /// Two entries for each pair, one for each direction; the same pair may be there again, of another round.
    pub pairs: Vec<MapPair>,
}

impl MapResult {
    /// What the types do not say: numbers are of nodes and groups that there are.
    pub(super) fn check(&self) -> Result<(), String> {
        let (nodes, groups) = (self.nodes.len(), self.nodes.len().max(self.group_names.len()));
        let hosts = self.hosts.iter().chain(self.probes.iter().flat_map(|of| &of.hosts));
        let named = self.pairs.iter().flat_map(|of| [of.from, of.to]).chain(hosts.map(|of| of.node));
        if let Some(bad) = named.into_iter().find(|node| *node as usize >= nodes) {
            return Err(format!("a map of {nodes} nodes has a node {bad}"));
        }
        for probe in self.probes.iter().flat_map(|of| &of.probes) {
            let is_group = |group: u32| (group as usize) < groups;
            let is_there = match probe.place {
                MapPlace::Node(node) => (node as usize) < nodes,
                MapPlace::Group(group) => is_group(group),
                MapPlace::Between(from, to) => is_group(from) && is_group(to),
            };
            let is_node = |node: u32| (node as usize) < nodes;
            if !is_there || !probe.pairs.iter().all(|pair| is_node(pair.from) && is_node(pair.to)) {
                return Err(format!("a map of {nodes} nodes has a probe of others"));
            }
        }
        if let Some(of_nodes) = &self.groups {
            if of_nodes.len() != nodes {
                return Err(format!("a map of {nodes} nodes has groups of {}", of_nodes.len()));
            }
            if let Some(bad) = of_nodes.iter().find(|group| **group as usize >= groups) {
                return Err(format!("a map of {nodes} nodes has a group {bad}"));
            }
        }
        Ok(())
    }
}

/// A part of a system, by the numbers of nodes and groups that a map has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapPlace {
    /// A node, its cable and its adapter.
    Node(u32),
    /// A group's links to all others.
    Group(u32),
    /// The links from one group to another.
    Between(u32, u32),
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
