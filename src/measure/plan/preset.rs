//! The plans that come with Tailback.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CanaryTest, CongestorTest, Counts, Loop, Part, Plan};
use crate::kernel::{Canary, Congestor};
use crate::layout::{Policy, Split};

/// A named plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// GPCNeT 1.3's kernels, sizes, counts, 10 s per test and its one random placement
    Gpcnet,
    /// The same kernels over five placements, a smaller Allreduce congestor and 2 s per test
    Quick,
    /// quick, with a mix that fills the queues of the emulated cluster: large all-to-all and incast, 25% canaries
    Lab,
    /// quick on virtual time, for simulated networks: a test has the time in which a node's link carries 128 MiB
    Sim,
}

impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Preset::Gpcnet => "gpcnet",
            Preset::Quick => "quick",
            Preset::Lab => "lab",
            Preset::Sim => "sim",
        })
    }
}

/// What a node's link carries in a test of [`Preset::Sim`]: enough for a dozen iterations of every canary in each block.
pub const SIM_BYTES: u64 = 134_217_728;

/// On slow networks and on virtual time: of a large vector, and of what a stage of a pipeline hands on.
const VECTOR: usize = 256 << 10;
const STAGE: usize = 16 << 10;

/// The shortest times that a plan may have, in seconds.
pub(super) struct Shortest {
    pub budget: f64,
    pub block: f64,
    pub pace: f64,
}

impl Preset {
    /// What is too short to measure: in real time because of the scheduler, on virtual time of the clock.
    pub(super) fn shortest(self) -> Shortest {
        match self {
            Preset::Sim => Shortest { budget: 1e-5, block: 5e-6, pace: 1e-6 },
            _ => Shortest { budget: 0.05, block: 0.005, pace: 1e-5 },
        }
    }

    /// The preset's plan for a load test.
    pub fn plan(self) -> Plan {
        let canaries = [Canary::Lat, Canary::BwSync, Canary::Allreduce];
        let congestors: &[Congestor] = match self {
            Preset::Lab => &[Congestor::AllToAll, Congestor::Incast],
            _ => &[Congestor::AllToAll, Congestor::Incast, Congestor::PutIncast, Congestor::GetBcast],
        };
        Plan {
            preset: self,
            budget_s: match self {
                Preset::Gpcnet => 10.0,
                Preset::Quick => 2.0,
                Preset::Lab => 3.6,
                // For links of 200 Gbit/s; whoever knows the machine knows better.
                Preset::Sim => 0.005,
            },
            placements: if self == Preset::Gpcnet { 1 } else { 5 },
            placement: if self == Preset::Gpcnet { Policy::Random } else { Policy::Balanced },
            blocks: if self == Preset::Gpcnet { 1 } else { 2 },
            precision: None,
            canary_loop: if self == Preset::Gpcnet { Loop::Closed } else { Loop::Open },
            pace_s: None,
            // On virtual time: ten times as many placements as without a precision, or so.
            longest_s: if self == Preset::Sim { 1.0 } else { 600.0 },
            canary_fraction: if self == Preset::Lab { 0.25 } else { 0.2 },
            load_fraction: 1.0,
            load_fractions: Vec::new(),
            split: Split::Auto,
            ranks_per_node: None,
            congestors_alone: false,
            each_congestor: false,
            each_own_share: false,
            ring_histograms: false,
            sizes: Vec::new(),
            canaries: canaries.map(|kernel| self.canary(kernel)).into(),
            congestors: congestors.iter().map(|&kernel| self.congestor(kernel)).collect(),
            application: None,
            burst: None,
            sweep: Vec::new(),
            part: Part::default(),
        }
    }

    /// The preset's plan for the network test: all canaries of GPCNeT.
    pub fn all_canaries(self) -> Vec<CanaryTest> {
        Canary::GPCNETS.iter().map(|&kernel| self.canary(kernel)).collect()
    }

    /// A canary with this preset's counts.
    pub fn canary(self, kernel: Canary) -> CanaryTest {
        let mut counts = Counts::of(&kernel.info());
        if self != Preset::Gpcnet {
            // Short passes, so that a slow network still visits enough rings for a confidence interval.
            counts.iterations = counts.iterations.min(40);
            counts.warmup = counts.warmup.min(5);
        }
        if self == Preset::Lab && counts.window > 1 {
            // Eight messages of 128 KiB each way take 84 ms at 200 Mbit/s: a block would hold one or two iterations.
            counts.window = 2;
        }
        match (self, kernel) {
            // Else a block holds an iteration or two.
            (Preset::Lab | Preset::Sim, Canary::RingAllreduce | Canary::ReduceScatter | Canary::Allgather) => {
                counts.bytes = VECTOR;
            }
            (Preset::Lab | Preset::Sim, Canary::Pipeline) => counts.bytes = STAGE,
            _ => {}
        }
        CanaryTest { kernel, counts }
    }

    /// A congestor with this preset's counts and an equal share.
    pub fn congestor(self, kernel: Congestor) -> CongestorTest {
        let mut counts = Counts::of(&kernel.info());
        // Small messages wait for each other on a slow network; large ones keep its queues full.
        match (self, kernel) {
            (Preset::Lab, Congestor::AllToAll) => counts.bytes = 64 << 10,
            (Preset::Lab, Congestor::Incast) => counts.bytes = 128 << 10,
            // A sum cannot be left half way: of GPCNeT's size it takes seconds on a slow network, more than a phase.
            (Preset::Lab | Preset::Quick | Preset::Sim, Congestor::Allreduce) => counts.bytes = 256 << 10,
            (Preset::Lab | Preset::Sim, Congestor::RingAllreduce | Congestor::ReduceScatter | Congestor::Allgather) => {
                counts.bytes = VECTOR;
            }
            (Preset::Lab | Preset::Sim, Congestor::Pipeline) => counts.bytes = STAGE,
            // A burst and its pause are to be shorter than a slice of the load.
            (Preset::Lab | Preset::Sim, Congestor::Storage) => counts.bytes = 8 << 10,
            _ => {}
        }
        CongestorTest { kernel, weight: 1.0, rate: 1.0, counts }
    }
}
