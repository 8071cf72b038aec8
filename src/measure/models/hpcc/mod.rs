//! The HPC Challenge suite: seven tests in the forms that HPCC has, over any transport, and the balance they give.
//!
//! Figures are kept under HPCC's own names, so that files of this program and of the original are one kind of thing. The
//! kernels and their checks are in `tailback_hpcc`; here is which of them run, in which form, on what sizes.

mod balance;
mod data_size;
mod expected;
mod names;

// Results of the suite are read by every build; who can run it asks for its feature here.
#[cfg(not(feature = "hpcc"))]
#[path = "suite_absent.rs"]
mod suite;
#[cfg(feature = "hpcc")]
mod suite;

use std::collections::BTreeMap;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_transport::arranged::Grid;

pub use balance::{Balance, Ratio, ratios};
pub use data_size::DataSize;
pub use expected::{Expected, Phase};
pub use names::{Good, NAMES, Name, name};
pub use suite::{check, estimate, measure};

use super::beff::Beff;
use crate::units;

/// The largest machines solve systems of some ten millions.
const LARGEST_ORDER: usize = 100_000_000;
/// No node has more.
const MOST_THREADS: usize = 4096;

/// What is run, how large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Settings {
    /// Tests to run: hpl, dgemm, stream, ptrans, random-access, fft, beff [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    pub tests: Vec<Test>,
    /// Memory of HPL's matrix, as a part of the memory of all nodes; all other sizes follow from it as in HPCC, and a test
    /// takes up to 1.5 times as much [default: 32 MiB a rank, which is quick]
    #[arg(long, value_name = "PART", value_parser = memory, conflicts_with = "order")]
    pub memory: Option<f64>,
    /// Order of HPL's matrix instead
    #[arg(long, value_name = "N", value_parser = units::up_to(LARGEST_ORDER))]
    pub order: Option<usize>,
    /// Rows and columns of a block of HPL and PTRANS
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 128)]
    pub block: usize,
    /// Ranks of HPL and PTRANS as rows x columns, such as 2x4 [default: the squarest, no taller than wide]
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    pub grid: Option<[usize; 2]>,
    /// RandomAccess of all ranks ends after so long; what it did until then is its figure
    #[arg(long = "update-time", value_name = "TIME", value_parser = seconds, default_value = "10s")]
    pub update_time_s: f64,
    /// Threads of a rank that compute: DGEMM, STREAM, RandomAccess of one rank, and HPL's updates; messages, transforms and
    /// PTRANS are the rank's own thread's
    #[arg(long, value_name = "N", value_parser = units::up_to(MOST_THREADS), default_value_t = 1)]
    #[serde(default = "one")]
    pub threads: usize,
    /// HPL's rate in Gflop/s where it was run elsewhere, for the balance
    #[arg(long, value_name = "GFLOPS", value_parser = positive)]
    pub hpl_gflops: Option<f64>,
}

/// As files of earlier versions had it.
fn one() -> usize {
    1
}

impl Settings {
    /// The tests to run on so many ranks: all of them, unless some were named. Pairs and rings need two.
    pub fn asked(&self, ranks: usize) -> Vec<Test> {
        let named =
            |test: &Test| self.tests.contains(test) || (self.tests.is_empty() && !(ranks < 2 && *test == Test::Beff));
        let elsewhere = |test: &Test| *test == Test::Hpl && self.hpl_gflops.is_some() && self.tests.is_empty();
        Test::ALL.into_iter().filter(named).filter(|test| !elsewhere(test)).collect()
    }
}

/// Which of HPCC's two kinds of run it was, by the rules of the paper's sections 3 and 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// Kernels for any processor; products of matrices may be a library's.
    Base,
    /// Transforms written for one kind of processor too.
    Optimised,
}

impl RunKind {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            RunKind::Base => "base",
            RunKind::Optimised => "optimised",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hpcc {
    /// What was asked for; absent in results of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// What computed; absent in results of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libraries: Option<String>,
    /// Base or optimised; absent in results of the original, which do not say, and of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunKind>,
    /// How much of the machine the data filled; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSize>,
    /// Figures and sizes by HPCC's names, whose ends say the unit where they have one.
    pub figures: BTreeMap<String, f64>,
    /// Every check of a result, in the order they were made; absent in results of the original.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Part of the links of a random ring that stay on a node, on average; null where the nodes are not known.
    pub links_on_node: Option<f64>,
    /// Latency and bandwidth with their intervals; absent in results of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beff: Option<Beff>,
}

/// A number that says whether a result is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The test, by HPCC's name with its form: `StarDGEMM`, `HPL`.
    pub test: String,
    /// What the number is.
    pub quantity: String,
    /// The number; null when it came out as none, which fails.
    pub value: Option<f64>,
    /// What it must not be above.
    pub limit: f64,
}

impl Check {
    /// A check of a number that may be none, or beyond all that a result holds.
    pub fn new(test: &str, quantity: &str, value: f64, limit: f64) -> Self {
        let (test, quantity) = (test.to_owned(), quantity.to_owned());
        Check { test, quantity, value: (value.abs() < 1e30).then_some(value), limit }
    }

    /// Whether the result is right.
    pub fn passed(&self) -> bool {
        self.value.is_some_and(|value| value <= self.limit)
    }
}

impl Hpcc {
    /// A figure by HPCC's name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().filter(|value| value.is_finite())
    }

    /// Checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed())
    }

    /// Why these figures are not to be published: what was too small for HPCC's rules.
    pub fn too_small(&self) -> Vec<String> {
        self.data.map(|data| data.too_small()).unwrap_or_default()
    }

    /// Whether STREAM's vectors lay in caches, so that its rates are not those of memory.
    pub fn stream_in_caches(&self) -> bool {
        self.data.is_some_and(|data| data.is_in_caches())
    }

    /// HPL's rate of all ranks, in 10^9 operations a second: its own, or the one that was given.
    pub fn hpl_gflops(&self) -> Option<f64> {
        let given = self.settings.as_ref().and_then(|settings| settings.hpl_gflops);
        given.or_else(|| self.figure("HPL_Tflops").map(|tera| 1e3 * tera))
    }
}

fn memory(text: &str) -> Result<f64, String> {
    let part = units::fraction(text)?;
    let fits = part > 0.0 && part <= 0.6;
    fits.then_some(part)
        .ok_or_else(|| format!("invalid part '{text}' of the memory for HPL's matrix: expected above 0, up to 60%"))
}

fn grid(text: &str) -> Result<[usize; 2], String> {
    let grid: Grid = text.parse()?;
    let sides = [grid.rows, grid.columns];
    let fits = sides.iter().all(|side| (1..=units::MOST).contains(side));
    fits.then_some(sides).ok_or_else(|| format!("invalid grid '{text}': expected sides of 1 to {}", units::MOST))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = units::duration(text)?.as_secs_f64();
    (seconds > 0.0).then_some(seconds).ok_or_else(|| "a time above 0 is needed".into())
}

fn positive(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate < 1e15);
    rate.ok_or_else(|| format!("invalid rate '{text}': expected Gflop/s, a number above 0"))
}

/// One of HPCC's tests, in all of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Test {
    Ptrans,
    Hpl,
    Dgemm,
    Stream,
    RandomAccess,
    Fft,
    Beff,
}

impl Test {
    /// All of them, in the order they run.
    pub const ALL: [Test; 7] =
        [Test::Ptrans, Test::Hpl, Test::Dgemm, Test::Stream, Test::RandomAccess, Test::Fft, Test::Beff];

    /// As the user types it.
    pub fn word(self) -> &'static str {
        match self {
            Test::Ptrans => "ptrans",
            Test::Hpl => "hpl",
            Test::Dgemm => "dgemm",
            Test::Stream => "stream",
            Test::RandomAccess => "random-access",
            Test::Fft => "fft",
            Test::Beff => "beff",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_or_too_large_fails() {
        let check = |value| Check::new("HPL", "scaled residual", value, 16.0).passed();
        assert!(check(0.0) && check(16.0));
        assert!(!check(16.1) && !check(1e99) && !check(f64::NAN) && !check(f64::INFINITY));
    }

    #[test]
    fn options_are_read_as_people_write_them() {
        assert_eq!((memory("10%"), grid("2x3")), (Ok(0.1), Ok([2, 3])));
        for wrong in ["0", "90%", "much"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        assert!(grid("4000000000x4000000000000").unwrap_err().contains("expected sides of 1 to 1000000"));
        assert!(grid("2").is_err() && positive("-1").is_err() && seconds("0s").is_err());
    }
}
