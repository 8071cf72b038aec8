//! What a result keeps of the emulated cluster it came from: its shape, what its ports did, and the control.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::engine::PhaseId;
use crate::kernel::Canary;
use crate::lab::{Host, LabSpec, PortCounters};
use crate::stats::Interval;

/// An emulated cluster.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LabRecord {
    /// Its shape.
    pub spec: LabSpec,
    /// Whether it ran as root or in a user namespace.
    pub mode: String,
    /// Its hosts, by whose names nodes are known. Where Tailback started the ranks of a load test itself, rank i ran on
    /// the i-th.
    pub hosts: Vec<Host>,
    /// What its ports did in each phase; empty where that could not be read, and then a note says why.
    pub phases: Vec<PhaseCounters>,
    /// The same plan with canaries that meet no queue.
    pub control: Option<ControlRecord>,
}

/// What the ports did in one phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PhaseCounters {
    #[schemars(with = "String")]
    pub phase: PhaseId,
    /// From the first reading to the last of each of its blocks, in all; absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    pub ports: Vec<PortCounters>,
    /// The same by placement, in order; absent in results before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<PlacementRates>,
}

/// What ports did on one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRates {
    /// Which placement, from 1.
    pub placement: u32,
    /// How long they were counted.
    pub seconds: f64,
    /// For each kind of ports and what they count, the ports' rates a second, ascending.
    pub per_s: BTreeMap<String, Vec<f64>>,
}

/// What keeps canaries out of the queues in a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ControlKind {
    /// The canaries' packets bypass the queue of every port; congestors have the rates and queues they had, so the
    /// processor has the same to do
    #[serde(alias = "express")]
    #[value(alias = "express")]
    Bypass,
    /// Links without rates and queues for everyone; congestors then move more, and the processor has more to do
    #[default]
    Unshaped,
}

impl ControlKind {
    /// As the user types it, and as a column is called.
    pub fn word(self) -> &'static str {
        match self {
            ControlKind::Bypass => "bypass",
            ControlKind::Unshaped => "unshaped",
        }
    }

    /// What it is, for whoever reads its table.
    pub fn title(self) -> &'static str {
        match self {
            ControlKind::Bypass => {
                "Control: placements again under the same load, with canaries whose packets bypass the queues"
            }
            ControlKind::Unshaped => {
                "Control: placements again with unshaped links, where only the processor is the limit"
            }
        }
    }
}

/// Some of the placements again, with canaries that meet no queue: what load still adds is the processor's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ControlRecord {
    #[serde(default)]
    pub kind: ControlKind,
    /// The first run again, or the only one.
    pub run: Run,
    /// The others, where there are several, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_runs: Vec<Run>,
    pub phases: Vec<PhaseCounters>,
    pub verdicts: Vec<Verdict>,
}

impl ControlRecord {
    /// All of its runs.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.run).chain(&self.more_runs)
    }
}

/// What a canary's impact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The shaped network: the control shows less than half of the time that load adds.
    Network,
    /// The processor: the control shows more than half of it.
    Cpu,
    /// The impact is below 1.5: too small to be explained.
    NoImpact,
    /// The placements do not tell.
    Undecided,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cause::Network => "network",
            Cause::Cpu => "CPU",
            Cause::NoImpact => "below 1.5x",
            Cause::Undecided => "undecided",
        })
    }
}

/// A canary in the run and in the control, side by side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The kernel.
    pub kernel: Canary,
    /// What it is called in tables and plots.
    #[serde(deserialize_with = "super::title")]
    pub title: String,
    /// Which run, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The impact, by the headline, in the run.
    pub shaped: f64,
    /// The same in the control.
    #[serde(alias = "unshaped")]
    pub control: f64,
    /// The time that load adds to the headline's figure in the run, mean over the placements of both: ns, or for
    /// bandwidths ns/MiB.
    #[serde(default)]
    pub added_ns: Option<f64>,
    /// The same in the control.
    #[serde(default)]
    pub control_added_ns: Option<f64>,
    /// The part of the added time that needs no queue: mean of the placements' parts.
    #[serde(default)]
    pub control_share: Option<f64>,
    /// Its 95% interval over placements; absent where they do not bound it.
    #[serde(default)]
    pub control_share_interval: Option<Interval>,
    /// What follows.
    pub cause: Cause,
}

/// Below this factor there is no impact worth explaining.
pub(crate) const WORTH_EXPLAINING: f64 = 1.5;
