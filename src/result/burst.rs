//! What a result keeps of a canary under load that came in bursts: its latencies by the time since the last burst began.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Congestor;
use crate::plan::Burst;
use crate::stats::{Interval, WITHIN};

/// A canary in bursts of load, over all placements and blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstRecord {
    /// How long load was on and off.
    #[serde(flatten)]
    pub burst: Burst,
    /// How many bursts were seen.
    pub bursts: u64,
    /// The most that the clock of a rank was off from the first one's: by its comparisons before and behind each block, and by how
    /// far it moved between them.
    pub clock_error_us: f64,
    /// What each congestor did in a burst.
    pub loads: Vec<BurstLoad>,
    /// Latencies by the time since the onset of the last burst.
    pub curve: Vec<BurstPoint>,
    /// What a burst does to the median.
    pub p50: BurstEffect,
    /// What a burst does to the 99th percentile.
    pub p99: BurstEffect,
}

/// A congestor in bursts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLoad {
    /// The kernel.
    pub kernel: Congestor,
    /// Iterations of a rank in a burst, in the mean: below 1 an iteration is longer than the burst.
    pub iterations_per_burst: f64,
    /// MiB that all its ranks moved in a burst, in the mean.
    pub mib_per_burst: f64,
}

/// A part of the time from onset to onset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstPoint {
    /// Its middle: the time since the onset.
    pub since_us: f64,
    /// Samples in it.
    pub samples: u64,
    /// The median; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// The 99th percentile; absent with fewer than 100 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
}

/// What a burst does to a percentile of the latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstEffect {
    /// The percentile without load.
    pub idle_us: f64,
    /// The largest in any part; absent where some part had too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_us: Option<BurstFigure>,
    /// Whether bursts are felt: the peak is more than a tenth above idle, significantly at 5% over bursts with all parts looked
    /// at.
    pub is_felt: bool,
    /// From the onset until it is more than a tenth above idle; absent where it never is, or always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub felt_us: Option<BurstFigure>,
    /// From the end of the burst until it is back within a tenth of idle; 0 where it is before the end, absent where it never is
    /// in the pause, and where nothing is felt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_us: Option<BurstFigure>,
}

/// A figure with its 95% interval over bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFigure {
    /// The figure.
    pub value: f64,
    /// Its interval; absent with too few bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

impl BurstEffect {
    /// What there is to say of it.
    pub fn outcome(&self) -> BurstOutcome {
        match (self.peak_us, self.recovery_us) {
            (None, _) => BurstOutcome::Unknown,
            (Some(_), Some(recovery)) => BurstOutcome::Back(recovery),
            (Some(_), None) if self.is_felt => BurstOutcome::NotBack,
            (Some(peak), None) if peak.value > (1.0 + WITHIN) * self.idle_us => BurstOutcome::NotShown,
            (Some(_), None) => BurstOutcome::NotFelt,
        }
    }
}

/// How a burst ends for a canary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BurstOutcome {
    /// Latency is back so long after the burst's end.
    Back(BurstFigure),
    /// Latency is high until the next burst.
    NotBack,
    /// Its peak is more than a tenth above idle, as it may be by chance.
    NotShown,
    /// It is never more than a tenth above idle.
    NotFelt,
    /// There are too few samples.
    Unknown,
}
