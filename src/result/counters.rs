//! What a result keeps of what the nodes' own devices counted, phase by phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::PhaseId;

/// Whose the sum of devices is that are not kept one by one.
pub(crate) const OTHERS: &str = "the others";

/// What the devices of the job's nodes counted: adapters, interfaces, TCP, and a command of the user's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountersRecord {
    /// In the order in which phases first ran; a phase is the sum of its blocks and placements.
    pub phases: Vec<CountedPhase>,
}

/// What was counted in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct CountedPhase {
    #[schemars(with = "String")]
    pub phase: PhaseId,
    pub devices: Vec<DeviceCounters>,
}

/// What one device counted in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCounters {
    /// Its host.
    pub node: String,
    /// What kind of counters: `infiniband`, `net`, `cxi`, `tcp` or `command`.
    pub source: String,
    /// Its name; empty for what a host has once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Time between the readings, which stand around each block.
    pub seconds: f64,
    /// By the names they have there, in the units they have there. What did not move is left out, unless it would tell of
    /// congestion.
    pub counters: BTreeMap<String, f64>,
}

impl DeviceCounters {
    /// Its node and its own name.
    pub fn name(&self) -> String {
        format!("{} {}", self.node, self.device).trim_end().to_owned()
    }
}
