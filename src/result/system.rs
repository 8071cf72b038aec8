//! The machine, how the job was placed on it, and where each rank's data leaves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::PhaseId;
use crate::kernel::Congestor;

/// The machine and how the job was placed on it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Ranks of the job.
    pub ranks: usize,
    /// What started the ranks.
    pub launcher: String,
    /// Nodes in the order of their first rank, with their roles on the first placement.
    pub nodes: Vec<Node>,
    /// How many hosts the ranks are on, which virtual nodes have in common; absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<usize>,
    /// Rank 0's host.
    pub host: HostFacts,
    /// Environment variables that change how transports behave.
    pub environment: std::collections::BTreeMap<String, String>,
    /// Where each rank's data leaves, in rank order; empty where nothing was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<RankEnds>,
    /// The ports that connect each node to the network under test; absent where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<NodePorts>,
    /// How often ranks' watcher threads woke up meanwhile; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchRecord>,
    /// What the memory of messages was made of, and whether it was near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRecord>,
    /// What the machine did in each phase, in the order they ran: why a baseline may have been disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activity: Vec<HostActivity>,
}

/// Whether a variable changes how transports behave. Of Tailback's own those do that are options, too: the others are how its
/// processes find each other.
pub fn steers_transports(name: &str) -> bool {
    const OF_LIBRARIES: [&str; 7] = ["OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "UCX_", "FI_", "RDMAV_"];
    const OWN: [&str; 9] = [
        "TAILBACK_BOOTSTRAP_ADDR",
        "TAILBACK_BOOTSTRAP_IF",
        "TAILBACK_DATA_ADDR",
        "TAILBACK_DATA_IF",
        "TAILBACK_DEVICE",
        "TAILBACK_IDLE_SHIM",
        "TAILBACK_LIBFABRIC",
        "TAILBACK_MPI_THREAD",
        "TAILBACK_WAIT",
    ];
    OWN.contains(&name) || OF_LIBRARIES.iter().any(|prefix| name.starts_with(prefix))
}

/// What the machine did in one phase, over all ranks. What the kernel does not tell is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostActivity {
    /// The phase, with its placement.
    #[schemars(with = "String")]
    pub phase: PhaseId,
    /// How long it took, the longest of all ranks.
    pub seconds: f64,
    /// The lowest and the highest frequency of the ranks' cores before and after, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mhz: Option<[f64; 2]>,
    /// What decides on frequencies, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    /// The part of a host's processor time, from 0 to 1, that a hypervisor gave to others: the most of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Context switches of all ranks because they waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Context switches of all ranks because another had their core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
}

/// One node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Host name, or `virtualN`.
    pub name: String,
    /// Its ranks.
    pub ranks: Vec<u32>,
    /// What its ranks do; more than one entry when roles share the node.
    pub roles: Vec<NodeRole>,
}

/// A role, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum NodeRole {
    Canary,
    Congestor(Congestor),
    Idle,
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct HostFacts {
    pub name: String,
    pub kernel: String,
    pub cpu: Option<String>,
    /// Processors this process may use.
    pub cores: usize,
    pub memory_mib: Option<u64>,
}

/// One rank's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankEnds {
    /// Which rank.
    pub rank: u32,
    /// The cores it may use, as the kernel writes them: `0-3,8`; absent where it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cores: String,
    /// Its end on every network of the job.
    pub networks: Vec<NetworkEnd>,
    /// Where its watcher thread runs; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<WatcherEnd>,
}

/// The thread of a rank that notices when the job cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatcherEnd {
    /// The cores it may use, as the kernel writes them.
    pub cores: String,
    /// What was done to keep it off the cores that ranks spin on, or why nothing.
    pub why: String,
}

/// A rank's end on one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnd {
    /// The backend.
    pub over: String,
    /// The device with its port, the domain, or the interface; absent where the backend does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Its address: a GID, or one of the Internet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How the rank waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// Over several rails: the end on each of them, in order; the first is also told above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<RailEnd>,
}

impl NetworkEnd {
    /// Its devices: one per rail.
    pub fn devices(&self) -> impl Iterator<Item = &String> {
        let further = self.rails.iter().skip(1).map(|of| &of.device);
        std::iter::once(&self.device).chain(further).flatten()
    }
}

/// A rank's end on one rail of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RailEnd {
    /// As a network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// As a network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Ports of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePorts {
    /// How many each node has; the most where nodes differ.
    pub per_node: u32,
    /// Who says so.
    pub known_by: KnownBy,
}

/// How a number of ports is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// The user: `--ports-per-node`.
    User,
    /// The machine file of a simulated machine.
    Machine,
    /// The devices that the node's ranks use.
    Devices,
    /// The adapters of the node that are up, where the library does not say which it uses.
    Adapters,
}

impl KnownBy {
    /// How it is said.
    pub fn phrase(self) -> &'static str {
        match self {
            KnownBy::User => "as given",
            KnownBy::Machine => "as the machine has",
            KnownBy::Devices => "as its ranks use",
            KnownBy::Adapters => "as it has adapters",
        }
    }
}

/// All ranks' memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRecord {
    /// What was asked for with `--huge-pages`: `no`, `try` or `require`.
    pub huge_pages: String,
    /// Segments in usual pages. MPI's own memory is not counted here.
    pub usual_bytes: u64,
    /// Segments in huge pages that were reserved.
    pub reserved_huge_bytes: u64,
    /// Segments in huge pages that the kernel made.
    pub transparent_huge_bytes: u64,
    /// Why some rank's segment that should have had huge pages has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Memory of the processes that is near the core that the rank was on; absent where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_bytes: Option<u64>,
    /// The same in other NUMA nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_bytes: Option<u64>,
}

/// All ranks' watchers, from the first placement on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecord {
    /// Ranks that have one.
    pub watchers: u32,
    /// How often all of them woke up.
    pub wakeups: u64,
    /// How long that was.
    pub seconds: f64,
    /// The rank whose watcher woke up most.
    pub most_on_rank: u32,
    /// How often a second that one did.
    pub most_per_s: f64,
}
