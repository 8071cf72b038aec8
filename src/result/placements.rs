//! What a result keeps of each placement, and what all of them say together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestorLoad, EncodedHistogram, NodeRole};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::stats::{Direction, Spread, Statistic, Summary, Took};

/// One placement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRecord {
    /// The seed of what was drawn for it.
    pub seed: u64,
    /// What kind it is, by what is known of the topology: factors of unlike kinds answer different questions.
    pub kind: String,
    /// What each node did, in the order of the system's nodes; several where roles share a node.
    pub roles: Vec<Vec<NodeRole>>,
    /// What was measured on it.
    pub tests: Vec<PlacementTest>,
}

impl PlacementRecord {
    /// The test of a kernel in a state.
    pub fn test(&self, kernel: Canary, phase: LoadState) -> Option<&PlacementTest> {
        self.tests.iter().find(|test| test.kernel == kernel && test.phase == phase)
    }

    /// How many times worse a figure is under load here.
    pub fn factor(&self, kernel: Canary, statistic: Statistic) -> Option<f64> {
        let of = |phase| self.test(kernel, phase)?.summary.as_ref()?.get(statistic);
        let factor = kernel.info().direction.factor(of(LoadState::Isolated)?, of(LoadState::Loaded)?);
        (factor.is_finite() && factor > 0.0).then_some(factor)
    }

    /// A figure as a time in ns (ns per MiB for a bandwidth), so that more is worse.
    pub fn time_ns(&self, kernel: Canary, phase: LoadState, statistic: Statistic) -> Option<f64> {
        time_ns(kernel, self.test(kernel, phase)?.summary.as_ref()?.get(statistic)?)
    }

    /// The time that load adds to a figure here, in ns (ns per MiB for a bandwidth).
    pub fn added_ns(&self, kernel: Canary, statistic: Statistic) -> Option<f64> {
        let of = |phase| self.time_ns(kernel, phase, statistic);
        Some(of(LoadState::Loaded)? - of(LoadState::Isolated)?)
    }
}

/// A figure as a time in ns, or of a rate the time of its unit. An application's figure is taken to be in seconds.
pub(super) fn time_ns(kernel: Canary, figure: f64) -> Option<f64> {
    let time = match kernel.info().direction {
        Direction::Latency if kernel.is_application() => figure * 1e9,
        direction => direction.sample_ns(figure),
    };
    time.is_finite().then_some(time)
}

/// One canary in one state on one placement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlacementTest {
    /// In what state.
    pub phase: LoadState,
    /// The kernel.
    pub kernel: Canary,
    /// The figures of all its blocks together.
    pub summary: Option<Summary>,
    /// Its blocks, in the order they were measured.
    pub blocks: Vec<BlockRecord>,
    /// The samples on each of the placement's rings, over all ranks and blocks; empty unless that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<EncodedHistogram>,
    /// What the congestors delivered meanwhile, over all blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<CongestorLoad>,
}

/// One block: a canary in one state, once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlockRecord {
    /// When, among the blocks of this canary on this placement, from 0.
    pub place: usize,
    /// Wall time in seconds, the slowest rank's.
    pub wall_s: f64,
    /// How long the canary ran untimed before it, until it was steady or the load before it was no longer felt, in seconds.
    pub settled_s: f64,
    /// How many iterations that took, ring by ring; absent in files of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Took>,
    /// The headline's figure in this block, in the test's unit.
    pub headline: Option<f64>,
    /// The median by message.
    pub p50: Option<f64>,
}

/// The part of the time, from 0 to 1, in which the canary took more than twice its isolated median by time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeCongested {
    /// In the isolated state: noise of the machine.
    pub isolated: f64,
    /// Under load.
    pub loaded: f64,
}

/// What is claimed first about a canary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Which figure it is.
    pub statistic: Statistic,
    /// The factor over all placements: geometric mean, interval, range, and what one more placement may show.
    #[serde(flatten)]
    pub spread: Spread,
    /// The share of time in which the canary was congested.
    pub congested: Option<TimeCongested>,
    /// The same by kind of placement, where there are several kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindSpread>,
}

/// The factor over placements of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct KindSpread {
    pub kind: String,
    #[serde(flatten)]
    pub spread: Spread,
}
