//! The result file: everything needed to repeat a run and to compare it.
//!
//! One JSON document with a versioned schema (`tailback schema` prints it). Every view (tables, GPCNeT's tables, CSV,
//! reports) is made from this structure, never from the engine's own. Keys carry their unit; a value that does not
//! exist is absent or null, never a sentinel.

mod burst;
mod calibration;
mod counters;
mod file;
mod judge;
mod lab;
mod machine;
mod map;
mod models;
mod pace;
mod placements;
mod possible;
mod query;
mod read;
mod sweep;
mod system;
mod tuning;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::engine::LoadState;
use crate::kernel::{Canary, Congestor, plain_name};
use crate::plan::{Plan, SweptValue};
use crate::stats::{Added, Direction, Impact, Interval, NotReportable, Summary};

pub use crate::stats::EncodedHistogram;
pub use burst::{BurstEffect, BurstFigure, BurstLoad, BurstOutcome, BurstPoint, BurstRecord};
pub use calibration::{CalibrationRecord, CalibrationRun, Comparison, PartFound, Share, ShareFound};
pub(crate) use counters::OTHERS;
pub use counters::{CountedPhase, CountersRecord, DeviceCounters};
pub use file::{
    ResultError, SCHEMA, check_distinct, check_writable, is_stdout, write, write_bytes, write_draft, write_draft_text,
    write_text,
};
pub(crate) use file::{is_replaced, numbered};
pub use judge::Answer;
pub(crate) use lab::WORTH_EXPLAINING;
pub use lab::{Cause, ControlKind, ControlRecord, LabRecord, PhaseCounters, PlacementRates, Verdict};
pub use machine::{CrowdedPort, Feeder, MachineRecord, QueueLook, QueueRecord, WorstMoment, held_up};
pub use map::{GroupsKnownBy, MapFigure, MapHost, MapPair, MapPlace, MapProbe, MapProbes, MapResult};
pub use models::{
    BetweenResult, ContentionResult, EdgeResult, Estimate, FitResult, GraphResult, MaxRateResult, ModelResults,
    RegimeResult,
};
pub use placements::{BlockRecord, Headline, KindSpread, PlacementRecord, PlacementTest, TimeCongested};
pub(crate) use possible::is_possible;
pub use query::CutShort;
pub(crate) use query::{at_point, distinct};
pub(crate) use read::LARGEST_FIGURE;
pub use read::{parse, read};
pub use sweep::{Crossing, CurvePoint, Landmark, SweepCurve, SweepRecord};
pub use system::{
    HostActivity, HostFacts, KnownBy, MemoryRecord, NetworkEnd, Node, NodePorts, NodeRole, RailEnd, RankEnds, System,
    WatchRecord, WatcherEnd, steers_transports,
};
pub use tuning::{FormerSetting, RankedSetting, ReadBack, SettingChange, TestRanking, TuningRecord};

/// Changes when a reader of the old form would misread the new one. Version 1 had one placement and no figures by time;
/// its files are still read.
pub const SCHEMA_VERSION: u32 = 2;

/// What a test or a load is called; files before 0.3 have the titles of GPCNeT's rows.
fn title<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(plain_name)
}

/// A whole result file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Tailback result")]
pub struct ResultFile {
    /// Version of this schema.
    pub schema_version: u32,
    /// The program that wrote it.
    pub build: Build,
    /// What was asked for: `run`, `app`, `tune`, `sweep`, `burst`, `network`, `congest`, `calibrate`, or a study: `maxrate`, `contention`, `beff`, `hpcc`,
    /// `map`.
    pub command: Command,
    /// What the user calls the conditions it ran in, such as `wild`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the run started, UTC, RFC 3339.
    pub started: String,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// The seed of placements and rings; the same seed on the same nodes gives the same of both.
    pub seed: u64,
    /// What was run; without tests for a study.
    pub plan: Plan,
    /// Where it was run.
    pub system: System,
    /// One entry for each transport and protocol the plan was run over, and for each message size that took its turn.
    pub runs: Vec<Run>,
    /// The emulated cluster it ran on, if it did.
    pub lab: Option<LabRecord>,
    /// The simulated machine it ran on; absent where the network was real or emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// What the nodes' own devices counted; absent where nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CountersRecord>,
    /// What a study found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelResults>,
    /// The search that this run was part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationRecord>,
    /// The settings that took turns, and their ranking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TuningRecord>,
    /// The curves of a sweep, whose points took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRecord>,
    /// What the user was told while it ran: choices made, limits met.
    pub notes: Vec<String>,
    /// Whether the user ended it before its plan was complete.
    pub interrupted: bool,
    /// What ended it before its plan was complete, where that was not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The program whose output this was imported from; absent in Tailback's own results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
}

/// The program that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Build {
    pub version: String,
    /// Commit it was built from, with `+` when the tree had changes; absent outside a checkout.
    pub git: Option<String>,
    /// Backends compiled in, beside tcp.
    pub features: Vec<String>,
    pub rustc: String,
    /// `release` or `debug`: figures of a debug build are not worth comparing.
    pub profile: String,
}

/// The command that made a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Command {
    Run,
    App,
    Tune,
    Sweep,
    Burst,
    Network,
    Congest,
    Calibrate,
    Maxrate,
    Contention,
    Beff,
    Hpcc,
    Map,
    Locate,
}

impl Command {
    /// Whether it measures canaries beside congestors, over several placements.
    pub fn is_load_test(self) -> bool {
        matches!(
            self,
            Command::Run | Command::App | Command::Tune | Command::Sweep | Command::Burst | Command::Calibrate
        )
    }

    /// As the user types it.
    pub fn word(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::App => "app",
            Command::Tune => "tune",
            Command::Sweep => "sweep",
            Command::Burst => "burst",
            Command::Network => "network",
            Command::Congest => "congest",
            Command::Calibrate => "calibrate",
            Command::Maxrate => "maxrate",
            Command::Contention => "contention",
            Command::Beff => "beff",
            Command::Hpcc => "hpcc",
            Command::Map => "map",
            Command::Locate => "locate",
        }
    }
}

/// The plan over one transport.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The network under test.
    pub transport: TransportFacts,
    /// The congestors' network, where it is another than the canaries'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestors_over: Option<TransportFacts>,
    /// The congestors of this run, where each was also run by itself: one of them, or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The message size of its tests, where several took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<usize>,
    /// The setting that was in force, where several took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The values that swept keys had, where it is a point of a sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point: Vec<SweptValue>,
    /// Canary tests, isolated and loaded, in the order they ran.
    pub tests: Vec<Test>,
    /// Congestors measured alone.
    pub congestors: Vec<CongestorLoad>,
    /// Impact of the load on each canary that ran in both states, over all placements.
    pub impacts: Vec<TestImpact>,
    /// Nodes that were slower than their peers whether there was load or not, the slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_nodes: Vec<SlowNode>,
    /// What other guests of the hosts took of their processor time; absent where no kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<Stolen>,
    /// What each placement gave, in the order they were measured. Comparisons pair them.
    #[serde(default)]
    pub placements: Vec<PlacementRecord>,
    /// What a study found over this network, where it went over several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelResults>,
}

impl Run {
    /// A run over this network of which nothing is known yet: what studies have, and what imports begin with.
    pub fn bare(transport: TransportFacts) -> Self {
        Run {
            transport,
            congestors_over: None,
            beside: None,
            size_bytes: None,
            setting: None,
            point: Vec::new(),
            tests: Vec::new(),
            congestors: Vec::new(),
            impacts: Vec::new(),
            slow_nodes: Vec::new(),
            stolen: None,
            placements: Vec::new(),
            models: None,
        }
    }
}

/// A node whose quickest messages to and from other canary nodes take longer than theirs among each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowNode {
    /// The node.
    pub name: String,
    /// In which test.
    pub kernel: Canary,
    /// Without load.
    pub idle: Slower,
    /// Under load.
    pub loaded: Slower,
}

/// How much longer than its peers something takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slower {
    /// The part of the time that is added: 0.3 is 30% longer.
    pub part: f64,
    /// Its 95% interval.
    pub interval: Interval,
    /// Corrected for all nodes of this state.
    pub p_value: f64,
}

/// Shares of processor time, from 0 to 1: of the host with the most in each phase, over all phases of a state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Stolen {
    pub idle: f64,
    pub loaded: f64,
}

/// What a transport says about itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TransportFacts {
    /// `tcp`, `mpi`, `libfabric`, `verbs` or `sim`.
    pub backend: String,
    /// Library and version under it.
    pub library: String,
    /// Protocol of two-sided messages, where the user can choose it: `eager`, `put` or `get`.
    pub protocol: Option<String>,
    /// Messages of at most this size are eager whatever the protocol; absent where the protocol has no threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager_threshold_bytes: Option<u64>,
    /// Device, provider, addresses, wait mode and so on.
    pub details: std::collections::BTreeMap<String, String>,
}

/// One canary test in one state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Test {
    /// In what state.
    pub phase: LoadState,
    /// The kernel.
    pub kernel: Canary,
    /// What it is called in tables and plots.
    #[serde(deserialize_with = "title")]
    pub title: String,
    /// Message size in bytes.
    pub bytes: usize,
    /// What the figures are.
    pub direction: Direction,
    /// The unit of every figure in `summary`.
    pub unit: String,
    /// Wall time of the test in seconds, the slowest rank's.
    pub wall_s: f64,
    /// The figures; absent when no sample was taken.
    pub summary: Option<Summary>,
    /// The share of its time that was inside timed iterations, from 0 to 1; absent where iterations had a schedule, and in
    /// results before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<f64>,
    /// How an open loop kept its schedule; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What it met in bursts of load; absent where load was on all the time, and when isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstRecord>,
    /// All samples: ns for latencies, ns/MiB for bandwidths. Absent in results of programs that keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogram>,
    /// The figures another program printed, when they are all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<Printed>,
    /// Its bandwidths as a collective's are told, by its mean; absent where that is not the custom, and where teams differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collective: Option<CollectiveBandwidth>,
    /// Its parts: one for each placement, or consecutive passes where there is only one.
    pub batches: Vec<BatchRecord>,
    /// What the congestors delivered meanwhile; empty when isolated.
    pub load: Vec<CongestorLoad>,
}

/// How iterations that were to begin at given times did so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Iterations, over all ranks.
    pub iterations: u64,
    /// Those that began late because the one before was not over.
    pub late: u64,
    /// Those that were not timed, as their time had come while canaries agreed on how to go on.
    #[serde(default)]
    pub lost: u64,
    /// The longest that one began too late, in seconds.
    pub worst_s: f64,
}

impl Schedule {
    /// With more of its iterations late or lost than this, a canary measures its own queue.
    const OVERLOAD: f64 = 0.1;

    /// The part of the iterations that began late.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.iterations.max(1) as f64
    }

    /// Whether iterations came faster than the network carried them.
    pub fn is_overloaded(&self) -> bool {
        (self.late + self.lost) as f64 > Self::OVERLOAD * self.iterations as f64
    }
}

/// Bandwidths of a collective, as NCCL's tests define them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveBandwidth {
    /// How many ranks take part in it.
    pub ranks: usize,
    /// The length of the vector over the time, in MiB/s.
    pub algorithm_mib_per_s: f64,
    /// What each rank sends over the time, in MiB/s, which its link bounds.
    pub bus_mib_per_s: f64,
}

/// What another program's tables say of a test, rounded as it printed them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Printed {
    pub avg: f64,
    pub p99: f64,
    pub p999: Option<f64>,
    /// Smallest and largest figure, whatever is better.
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// A batch of consecutive passes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BatchRecord {
    /// Mean over passes and ranks, in the test's unit.
    pub avg: Option<f64>,
    /// Its samples.
    pub histogram: EncodedHistogram,
}

/// What one kind of congestor did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CongestorLoad {
    /// The kernel.
    pub kernel: Congestor,
    /// What it is called in tables and plots.
    #[serde(deserialize_with = "title")]
    pub title: String,
    /// Ranks that ran it.
    pub ranks: u64,
    /// Payload bytes they moved while the canaries measured (or while it ran alone).
    pub delivered_bytes: u64,
    /// Seconds this took, averaged over the ranks.
    pub seconds: f64,
    /// Delivered bytes over time, over all its ranks together.
    pub delivered_mib_per_s: f64,
    /// The least that was delivered in any whole slice of that time; absent when it was shorter than a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_mib_per_s: Option<f64>,
    /// How long a slice is, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_s: Option<f64>,
    /// Whether the load had come up when the canaries were released. Absent where no canary waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// Bandwidth of single iterations, MiB/s per rank that moves payload.
    pub summary: Option<Summary>,
}

/// The impact of the load on one canary.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestImpact {
    /// The kernel.
    pub kernel: Canary,
    /// What it is called in tables and plots.
    #[serde(deserialize_with = "title")]
    pub title: String,
    /// The time that load adds to the headline's figure, in us, or us per MiB for a bandwidth; absent in results before
    /// this was kept, and where the figure of an application is no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_us: Option<Added>,
    /// Why added time and impact are not to be reported; empty if they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reportable: Vec<NotReportable>,
    /// Factors with confidence intervals.
    pub impact: Impact,
    /// What is claimed first, with all that tells how far to trust it. Absent in results before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
}
