//! What a result keeps of settings that took turns: how each was put in force, what was read back, and their ranking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Canary;
use crate::stats::RankedPair;

/// Settings that took turns on every placement. Each has a run of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningRecord {
    /// The settings, in the order given; one that was given again has a number.
    pub settings: Vec<String>,
    /// The command that put one in force.
    pub set_by: String,
    /// The command that read which was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<String>,
    /// Whether it was run once for the whole job, on its first node, rather than once on every node.
    pub once: bool,
    /// What was in force before the first change.
    pub former: Vec<FormerSetting>,
    /// Every change, in their order.
    pub changes: Vec<SettingChange>,
    /// Whether the former setting was put back; absent where the job ended before that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_back: Option<bool>,
    /// The settings ranked by the time that load adds to each test.
    pub ranking: Vec<TestRanking>,
}

/// A setting that nodes had before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct FormerSetting {
    pub setting: String,
    pub nodes: Vec<String>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// Before which placement, from 1.
    pub placement: u32,
    /// What was put in force.
    pub setting: String,
    /// How long that took on the slowest node, with reading it back.
    pub seconds: f64,
    /// What was read back, and on how many nodes; empty where nothing reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ReadBack>,
}

/// What a command printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ReadBack {
    pub text: String,
    pub nodes: usize,
}

/// The settings by one test: the less time load adds, the better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestRanking {
    /// The kernel.
    pub kernel: Canary,
    /// What it is called in tables and plots.
    #[serde(deserialize_with = "super::title")]
    pub title: String,
    /// The settings that were measured, in the order given.
    pub settings: Vec<RankedSetting>,
    /// How many placements all of them have in common.
    pub placements: usize,
    /// Every pair of settings, by their numbers in `settings`, from 0: in us, or us per MiB for a bandwidth.
    pub pairs: Vec<RankedPair>,
    /// Why there are no places; absent where there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// One setting by one test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankedSetting {
    /// Which.
    pub setting: String,
    /// 1, and 1 more for each setting with which load adds less time, significantly; those that cannot be told apart share a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
}
