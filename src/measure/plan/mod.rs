//! What is run: tests, sizes, counts, budget and mix, resolved from a preset, a plan file and the command line.
//!
//! The three layers share one form, [`Patch`]: the preset gives a whole [`Plan`], then the file's patch and the
//! command line's are applied in that order and the result is validated once. A `Plan` that exists is valid.

mod application;
mod burst;
mod part;
mod patch;
mod preset;
mod set;
mod sweep;
mod write;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::{Bytes, Nanos};

use crate::kernel::{Canary, Congestor, Info, Sizes};
use crate::layout::{Policy, Split};
use crate::stats::{Direction, TestState, Weight, fewest_iterations};
use crate::units;

pub use application::{Application, Better, Launcher, SECONDS};
pub use burst::Burst;
pub use part::{PROTOCOL, Part, TRANSPORT, protocol_named};
pub use patch::Patch;
pub use preset::{Preset, SIM_BYTES};
pub use set::Set;
pub use sweep::{BURST_OFF, BURST_ON, Point, Swept, SweptValue, name as point_name, values_of};

/// Why there is no plan. What a file holds may be quoted, and is any text.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum PlanError {
    #[error("cannot read plan {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error("plan {path}: {}", .detail.replace(char::is_control, " "))]
    Malformed { path: String, detail: String },
    #[error("{}", .0.replace(char::is_control, " "))]
    Invalid(String),
}

/// How often and how large: the counts of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Message size in bytes.
    pub bytes: usize,
    /// Messages outstanding per neighbour (bandwidth kernels).
    pub window: usize,
    /// Timed iterations in a pass.
    pub iterations: u32,
    /// Untimed iterations before them.
    pub warmup: u32,
    /// Random rings; a measurement visits each once.
    pub rings: u32,
    /// At most this many measurements.
    pub measurements: u32,
}

impl Counts {
    /// GPCNeT's counts.
    pub fn of(info: &Info) -> Self {
        let Info { bytes, window, iterations, warmup, rings, measurements, .. } = *info;
        Counts { bytes, window, iterations, warmup, rings, measurements }
    }

    /// The part that shapes the kernel.
    pub fn sizes(&self) -> Sizes {
        Sizes { bytes: self.bytes, window: self.window }
    }
}

/// One canary test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct CanaryTest {
    pub kernel: Canary,
    #[serde(flatten)]
    pub counts: Counts,
}

impl CanaryTest {
    /// What it is called wherever it is shown.
    pub fn title(&self) -> String {
        self.kernel.info().name(self.counts.bytes)
    }
}

/// One kind of congestor and its share of the congestor nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct CongestorTest {
    pub kernel: Congestor,
    /// Its share of the congestor nodes, relative to the other kinds.
    pub weight: f64,
    /// How much of what it reaches at full rate it is to deliver, from 0 to 1.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub rate: f64,
    #[serde(flatten)]
    pub counts: Counts,
}

impl CongestorTest {
    /// A lower rate would begin an iteration less than once in most blocks.
    const LEAST_RATE: f64 = 0.01;

    /// What it is called wherever it is shown.
    pub fn title(&self) -> String {
        self.kernel.info().name(self.counts.bytes)
    }
}

/// When latency canaries begin an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Loop {
    /// At random moments, however long the one before takes: what a message meets that comes at any time
    Open,
    /// One after the other, as GPCNeT: what a program feels whose ranks wait for each other
    #[default]
    Closed,
}

impl std::fmt::Display for Loop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Loop::Open => "open",
            Loop::Closed => "closed",
        })
    }
}

/// How far apart the iterations of an open loop begin, in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So far.
    Mean(Nanos),
    /// So far, or several times as far as an iteration takes that meets no load.
    InBursts(Nanos),
    /// Several times as far as an iteration takes that follows another.
    Auto,
}

/// A complete, valid plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The preset it started from.
    pub preset: Preset,
    /// Wall time that each canary may take in a state, over all placements and blocks, in the mean of both, in seconds.
    pub budget_s: f64,
    /// How many placements are measured.
    #[serde(default = "one")]
    pub placements: u32,
    /// How roles are placed on nodes.
    #[serde(default = "random")]
    pub placement: Policy,
    /// How often each canary is measured in each state, per placement: 1 = all isolated, then all loaded; 2 = isolated,
    /// loaded, loaded, isolated, or its mirror.
    #[serde(default = "one")]
    pub blocks: u32,
    /// Measure more placements until the headline's interval is this narrow (0.1 = +-10%), up to `longest_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// When latency canaries begin an iteration.
    #[serde(default, rename = "loop")]
    pub canary_loop: Loop,
    /// In an open loop, the mean distance in seconds; absent: several times as long as an iteration takes. Before there
    /// were open loops by name, a pace meant one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_s: Option<f64>,
    /// The longest that a run may go on for its precision, in seconds.
    #[serde(default = "ten_minutes")]
    pub longest_s: f64,
    /// Fraction of the nodes that measure.
    pub canary_fraction: f64,
    /// The part of the other nodes that load; the rest of them does nothing.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub load_fraction: f64,
    /// Several such parts, each a load of its own that takes turns with the others; `load_fraction` is then the largest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_fractions: Vec<f64>,
    /// How roles are dealt out.
    pub split: Split,
    /// Ranks on a virtual node; absent: nodes are hosts.
    pub ranks_per_node: Option<usize>,
    /// Whether every congestor is also measured alone.
    pub congestors_alone: bool,
    /// Whether every congestor is also run by itself, as a load of its own, on all congestor nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_congestor: bool,
    /// Whether it then has only the nodes that it has among all, and the others rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_own_share: bool,
    /// Whether the samples of each ring are also kept by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ring_histograms: bool,
    /// Message sizes that take turns, each in the place of every canary's own; empty where each canary has its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<usize>,
    /// What is measured, in order.
    pub canaries: Vec<CanaryTest>,
    /// What loads the network.
    pub congestors: Vec<CongestorTest>,
    /// The program that is measured, where one is: then it is the first of the canaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// The bursts that load comes in; absent where it is on all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// The keys that a sweep goes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Swept>,
    /// What a point of it uses of the job. Points are made anew of the keys, so files need not have it.
    #[serde(skip)]
    pub part: Part,
}

// What plans of results before these settings were.
fn one() -> u32 {
    1
}

fn random() -> Policy {
    Policy::Random
}

fn ten_minutes() -> f64 {
    600.0
}

fn all() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_all(fraction: &f64) -> bool {
    *fraction == 1.0
}

impl Plan {
    /// Of a study, which runs nothing of a plan.
    pub fn of_a_study() -> Self {
        Plan { canaries: Vec::new(), congestors: Vec::new(), ..Preset::Quick.plan() }
    }

    /// Wall time of one block: one canary in one state, once; in the mean of both states.
    pub fn block_s(&self) -> f64 {
        self.budget_s / f64::from(self.placements) / f64::from(self.blocks)
    }

    /// The part of [`budget_s`](Self::budget_s) that a state has. Where blocks take turns, three quarters of the time are
    /// under load: iterations are longer there, so there are fewer of them, and they differ more.
    pub fn share_of(&self, state: TestState) -> f64 {
        match state {
            TestState::Idle if self.blocks > 1 && !self.congestors.is_empty() => 0.5,
            TestState::Loaded if self.blocks > 1 => 1.5,
            TestState::Idle | TestState::Loaded => 1.0,
        }
    }

    /// The longest that one block of a canary takes: a program takes the time it takes, up to its limit.
    pub fn longest_block_s(&self, test: &CanaryTest) -> f64 {
        let limit = self.application.as_ref().filter(|_| test.kernel.is_application()).map(|of| of.limit_s);
        limit.unwrap_or_else(|| self.block_s())
    }

    /// So many iterations a block should have, for all blocks together to carry the canary's headline, with some to spare:
    /// iterations of unequal length count less. A test in one block keeps to its budget.
    pub fn fewest_of_block(&self, test: &CanaryTest) -> u64 {
        if self.blocks == 1 {
            return 0;
        }
        let all = 2.0 * fewest_iterations(test.kernel.headline());
        (all / f64::from(self.placements) / f64::from(self.blocks)).ceil() as u64
    }

    /// Whether a test in one block goes on beyond its budget until it has visited every ring once, as GPCNeT, which looks at
    /// the time between measurements only. Otherwise a loaded test might see few of the rings that an isolated one sees.
    pub fn finishes_a_measurement(&self) -> bool {
        self.preset == Preset::Gpcnet
    }

    /// What a canary is called wherever it is shown.
    pub fn title(&self, test: &CanaryTest) -> String {
        let named = self.application.as_ref().filter(|_| test.kernel.is_application());
        named.map_or_else(|| test.title(), Application::title)
    }

    /// When a canary begins iterations, in an open loop: bandwidths have none, nor has a program.
    pub fn pace_of(&self, test: &CanaryTest) -> Option<Pace> {
        let is_latency = test.kernel.info().direction == Direction::Latency && !test.kernel.is_application();
        match (self.pace_s, self.canary_loop) {
            _ if !is_latency => None,
            (Some(seconds), _) => Some(Pace::Mean(Nanos((1e9 * seconds) as u64))),
            (None, Loop::Open) => Some(self.pace_in_bursts().map_or(Pace::Auto, Pace::InBursts)),
            (None, Loop::Closed) => None,
        }
    }

    /// More iterations than this a canary with a pace of its own cannot begin in a state of a placement, however long that grows.
    pub fn most_slots(&self, test: &CanaryTest) -> Option<u64> {
        /// A state has at most its own share of the time, and twice what others leave.
        const MOST: f64 = 3.0;
        match self.pace_of(test)? {
            Pace::Mean(mean) => {
                Some((MOST * 1e9 * self.budget_s / f64::from(self.placements) / mean.0.max(1) as f64) as u64)
            }
            Pace::Auto | Pace::InBursts(_) => None,
        }
    }

    /// When latency canaries begin iterations, in words; nothing in a closed loop.
    pub fn open_loop(&self) -> Option<String> {
        match (self.pace_s, self.canary_loop) {
            (Some(seconds), _) => Some(format!("at random moments, {} ms apart in the mean", 1e3 * seconds)),
            (None, Loop::Open) => Some("at random moments, several iterations' time apart".into()),
            (None, Loop::Closed) => None,
        }
    }

    /// What a sample of a canary counts, by time.
    pub fn weight_of(&self, test: &CanaryTest) -> Weight {
        if self.pace_of(test).is_some() { Weight::Even } else { Weight::Length }
    }

    /// The plan after `patches`, each over the one before.
    pub fn resolve(preset: Preset, patches: &[Patch]) -> Result<Self, PlanError> {
        let preset = patches.iter().rev().find_map(|patch| patch.preset).unwrap_or(preset);
        preset.plan().patched(patches)
    }

    /// This plan after `patches`, each over the one before; presets that they name are passed over.
    pub fn patched(mut self, patches: &[Patch]) -> Result<Self, PlanError> {
        patches.iter().try_for_each(|patch| patch.apply(&mut self))?;
        self.validate()?;
        Ok(self)
    }

    /// The plan with messages of this size in all canaries.
    pub fn of_size(&self, bytes: usize) -> Self {
        let mut plan = self.clone();
        plan.canaries.iter_mut().for_each(|test| test.counts.bytes = bytes);
        plan
    }

    /// Names and weights of the congestors, as the layout wants them.
    pub fn weights(&self) -> Vec<(&'static str, f64)> {
        self.congestors.iter().map(|test| (test.kernel.info().key, test.weight)).collect()
    }

    fn validate(&self) -> Result<(), PlanError> {
        let invalid = |detail: String| Err(PlanError::Invalid(detail));
        let least = self.preset.shortest();
        if !(self.canary_fraction > 0.0 && self.canary_fraction <= 1.0) {
            return invalid(format!(
                "invalid canary fraction {}: expected above 0, up to 1 (20% is 0.2 or 20%)",
                self.canary_fraction
            ));
        }
        if self.canary_fraction == 1.0 && !self.congestors.is_empty() {
            return invalid(
                "canary fraction 100% leaves no node for congestors: lower it, or load nothing (--congestors none)"
                    .into(),
            );
        }
        let fractions = [self.load_fraction].into_iter().chain(self.load_fractions.iter().copied());
        if let Some(wrong) = fractions.into_iter().find(|of| !(*of > 0.0 && *of <= 1.0)) {
            return invalid(format!(
                "invalid load fraction {wrong}: expected above 0, up to 1 (20% is 0.2 or 20%; --congestors none loads nothing)"
            ));
        }
        if let Some(twice) =
            self.load_fractions.iter().enumerate().find(|(at, of)| self.load_fractions[..*at].contains(of))
        {
            return invalid(format!("load fraction {} is named twice", twice.1));
        }
        if self.load_fractions.len() > 1 && (self.each_congestor || self.congestors.is_empty()) {
            return invalid(
                "several load fractions are for all congestors together: leave out each, or name congestors".into(),
            );
        }
        if !(self.budget_s >= least.budget && self.budget_s <= 86_400.0) {
            let ms = 1e3 * least.budget;
            return invalid(format!("invalid budget {} s: expected {ms} ms to one day", self.budget_s));
        }
        if let Some(pace) = self.pace_s {
            if !(least.pace..=10.0).contains(&pace) {
                return invalid(format!("invalid pace {pace} s: expected {:.0} us to 10 s", 1e6 * least.pace));
            }
            if 4.0 * pace > self.block_s() {
                return invalid(format!(
                    "pace {} ms: a block of {:.0} ms has fewer than four iterations; raise --budget or lower --placements",
                    pace * 1e3,
                    self.block_s() * 1e3
                ));
            }
        }
        if self.placements == 0 || self.placements > 1000 {
            return invalid(format!("invalid number of placements {}: expected 1 to 1000", self.placements));
        }
        if !(self.blocks == 1 || self.blocks.is_multiple_of(2) && (2..=64).contains(&self.blocks)) {
            return invalid(format!(
                "invalid number of blocks {}: expected 1, or an even number up to 64",
                self.blocks
            ));
        }
        if self.block_s() < 0.98 * least.block {
            return invalid(format!(
                "budget {} s over {} placements and {} blocks leaves {:.1} ms a block: at least {} ms are needed",
                self.budget_s,
                self.placements,
                self.blocks,
                self.block_s() * 1e3,
                least.block * 1e3
            ));
        }
        if let Some(precision) = self.precision {
            if !(precision > 0.0 && precision < 1.0) {
                return invalid(format!("invalid precision {precision}: expected above 0, below 100%"));
            }
            if self.placements < 3 {
                return invalid("a precision needs at least 3 placements to start from".into());
            }
        }
        if !(self.longest_s > 0.0 && self.longest_s <= 604_800.0) {
            return invalid(format!("invalid time limit {} s: expected above 0 s, up to a week", self.longest_s));
        }
        if let Some(ranks) = self.ranks_per_node.filter(|ranks| !(1..=units::MOST).contains(ranks)) {
            return invalid(format!("invalid ranks per node {ranks}: expected 1 to {}", units::MOST));
        }
        if self.canaries.is_empty() {
            return invalid("a plan needs at least one canary".into());
        }
        if self.congestors.is_empty() && self.congestors_alone {
            return invalid("without congestors there are none to be measured alone".into());
        }
        // A name stands for one test in settings and in results.
        let canaries = self.canaries.iter().map(|test| ("canary", test.kernel.info().key));
        let congestors = self.congestors.iter().map(|test| ("congestor", test.kernel.info().key));
        let mut named = std::collections::HashSet::new();
        if let Some((role, key)) = canaries.chain(congestors).find(|test| !named.insert(*test)) {
            return invalid(format!("{role} '{key}' is named twice"));
        }
        if let Some(application) = &self.application {
            application.validate()?;
        } else if let Some(test) = self.canaries.iter().find(|test| test.kernel.is_application()) {
            return invalid(format!("{} is no kernel: `tailback app -- CMD` measures a program", test.kernel));
        }
        for test in &self.canaries {
            check_counts(&test.kernel.info(), &test.counts)?;
        }
        for (at, &bytes) in self.sizes.iter().enumerate() {
            if self.sizes[..at].contains(&bytes) {
                return invalid(format!("size {} is named twice", Bytes(bytes as u64)));
            }
            for test in &self.canaries {
                check_counts(&test.kernel.info(), &Counts { bytes, ..test.counts })
                    .map_err(|error| PlanError::Invalid(format!("invalid size '{bytes}': {error}")))?;
            }
        }
        for test in &self.congestors {
            let key = test.kernel.info().key;
            check_counts(&test.kernel.info(), &test.counts)?;
            if !(1e-9..=1e9).contains(&test.weight) {
                return invalid(format!(
                    "invalid weight {} of congestor {key}: expected above 0, up to 1e9",
                    test.weight
                ));
            }
            if !(CongestorTest::LEAST_RATE..=1.0).contains(&test.rate) {
                return invalid(format!("invalid rate {} of {key}: expected 1% to 100%", test.rate));
            }
        }
        self.check_burst().map_err(PlanError::Invalid)?;
        self.points().map(drop)
    }
}

fn check_counts(info: &Info, counts: &Counts) -> Result<(), PlanError> {
    const LARGEST: usize = 1 << 30;
    let problem = match counts {
        c if c.bytes > LARGEST => format!("bytes = {} is above 1 GiB", c.bytes),
        c if c.bytes == 0 => "bytes = 0: a message has at least one byte".into(),
        c if !c.bytes.is_multiple_of(info.multiple_of) => {
            format!("bytes = {} is not a multiple of {}", c.bytes, info.multiple_of)
        }
        c if c.window == 0 || c.window > 4096 => format!("window = {} is not 1 to 4096", c.window),
        c if c.bytes.saturating_mul(c.window) > LARGEST => "bytes x window is above 1 GiB".into(),
        c if c.iterations == 0 => "iterations must be at least 1".into(),
        c if c.rings == 0 || c.rings > 10_000 => format!("rings = {} is not 1 to 10000", c.rings),
        c if c.measurements == 0 => "measurements must be at least 1".into(),
        _ => return Ok(()),
    };
    Err(PlanError::Invalid(format!("{}: {problem}", info.key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(toml: &str) -> Result<Plan, PlanError> {
        Plan::resolve(Preset::Gpcnet, &[Patch::parse(toml, "test")?])
    }

    #[test]
    fn an_error_is_one_line_whatever_it_quotes() {
        for toml in
            [r#"budget = "a\nb""#, r#"canaries = ["la\nt"]"#, "[set]\n\"la\\nt.bytes\" = 1", r#"seed = "\u0007""#]
        {
            let error = resolve(toml).unwrap_err().to_string();
            assert!(!error.contains(char::is_control), "{toml}: {error:?}");
        }
    }

    #[test]
    fn gpcnets_load_test_is_a_preset() {
        let plan = resolve("").unwrap();
        let keys: Vec<&str> = plan.canaries.iter().map(|test| test.kernel.info().key).collect();
        assert_eq!(keys, ["lat", "bw-sync", "allreduce"]);
        assert_eq!(
            plan.weights().iter().map(|w| w.0).collect::<Vec<_>>(),
            ["a2a", "incast", "put-incast", "get-bcast"]
        );
        assert_eq!((plan.budget_s, plan.canary_fraction), (10.0, 0.2));
        assert_eq!(plan.canaries[0].counts.iterations, 200);
    }

    #[test]
    fn a_file_changes_what_it_names_and_nothing_else() {
        let plan = resolve(
            "budget = '2s'\ncanaries = ['lat', 'bw']\n[set]\n'lat.bytes' = 64\n'canary.bw.bytes' = '64KiB'\n[congestors]\nincast = 40\na2a = 60",
        )
        .unwrap();
        assert_eq!((plan.budget_s, plan.canaries.len()), (2.0, 2));
        assert_eq!((plan.canaries[0].counts.bytes, plan.canaries[1].counts.bytes), (64, 65536));
        assert_eq!(plan.canaries[0].counts.iterations, 200);
        assert_eq!(plan.weights(), [("a2a", 60.0), ("incast", 40.0)]);
    }

    #[test]
    fn sizes_are_checked_for_every_canary() {
        let of = |sizes: &[usize], canaries: &[Canary]| {
            let (sizes, canaries) = (Some(sizes.to_vec()), Some(canaries.to_vec()));
            Plan::resolve(Preset::Quick, &[Patch { sizes, canaries, ..Patch::default() }])
                .map_err(|error| error.to_string())
        };
        let plan = of(&[1, 64], &[Canary::Lat, Canary::Bw]).unwrap();
        let bytes: Vec<usize> = plan.of_size(64).canaries.iter().map(|test| test.counts.bytes).collect();
        assert_eq!((bytes, plan.canaries[1].counts.bytes), (vec![64, 64], 131_072));
        let refused = of(&[8, 12], &[Canary::Lat, Canary::Allreduce]).unwrap_err();
        assert_eq!(refused, "invalid size '12': allreduce: bytes = 12 is not a multiple of 8");
        assert_eq!(of(&[8, 64, 8], &[Canary::Lat]).unwrap_err(), "size 8 B is named twice");
    }

    #[test]
    fn mistakes_are_one_clear_line() {
        for (toml, expected) in [
            ("canaries = ['latency']", "unknown canary 'latency'"),
            ("bugdet = '2s'", "unknown field `bugdet`"),
            ("canary_fraction = 1.5", "invalid canary fraction 1.5: expected above 0"),
            ("canary_fraction = '120%'", "invalid canary fraction 1.2"),
            ("canary_fraction = '100%'", "canary fraction 100% leaves no node for congestors"),
            ("load_fraction = 0", "invalid load fraction 0: expected above 0, up to 1"),
            ("load_fraction = '110%'", "invalid load fraction 1.1: expected above 0, up to 1"),
            ("load_fraction = '50%,0'", "invalid load fraction 0: expected above 0, up to 1"),
            ("load_fraction = '50%,0.5'", "load fraction 0.5 is named twice"),
            ("load_fraction = '50%,much'", "invalid fraction 'much'"),
            (
                "load_fraction = '50%,100%'\neach_congestor = true",
                "several load fractions are for all congestors together",
            ),
            ("[set]\n'lat.bites' = 8", "unknown setting 'bites'"),
            ("[set]\n'a2a.bytes' = 0", "a message has at least one byte"),
            ("[set]\n'allreduce.bytes' = 12", "allreduce: bytes = 12 is not a multiple of 8"),
            ("[congestors]\nincast = 0", "invalid weight 0 of congestor incast: expected above 0"),
            ("ranks_per_node = 0", "invalid ranks per node 0: expected 1 to 1000000"),
            ("ranks_per_node = 4000000000", "invalid ranks per node 4000000000"),
            ("[congestors]\nincast = 1e300", "up to 1e9"),
            ("canaries = []", "at least one canary"),
            ("canaries = ['bw', 'lat', 'bw']", "canary 'bw' is named twice"),
            ("budget = '0s'", "budget 0 s"),
        ] {
            let message = resolve(toml).expect_err(toml).to_string();
            assert!(message.contains(expected), "{toml}: {message}");
            assert!(!message.contains('\n'), "{toml}: {message}");
        }
    }
}
