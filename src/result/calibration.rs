//! What a result keeps of a search for the mix of congestors that does what another result shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Congestor;

/// A search. The result that has it is that of the run that came closest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationRecord {
    /// The recorded result's file, and what it calls its conditions.
    pub like: String,
    /// Nodes that do not measure: what shares are parts of.
    pub nodes: usize,
    /// What was compared: canaries and counters.
    pub compared: Vec<Comparison>,
    /// The runs, in their order. The first is what the plan had, before the search.
    pub runs: Vec<CalibrationRun>,
    /// Which of them was found, from 0.
    pub found: usize,
    /// The shares that were found, with those that the runs do not rule out.
    pub shares: Vec<ShareFound>,
    /// The same of nodes that do nothing.
    pub resting: PartFound,
    /// Sizes of messages that the runs do not rule out, in bytes; empty where each congestor had its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible_bytes: Vec<usize>,
    /// Congestors that could not be told apart: the first of each stands for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<Vec<Congestor>>,
}

/// One run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationRun {
    /// What loaded the network; nothing in a quiet run.
    pub congestors: Vec<Share>,
    /// How far it is from the recorded result: 1 is as far as two runs under the same load.
    pub distance: f64,
}

/// A congestor's part in a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Share {
    pub kernel: Congestor,
    /// Its part of the nodes that do not measure.
    pub share: f64,
    /// Its messages, in bytes.
    pub bytes: usize,
}

/// A part of the nodes, and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PartFound {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

/// What was found of one congestor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ShareFound {
    pub kernel: Congestor,
    #[serde(flatten)]
    pub part: PartFound,
}

/// A canary or a counter: how far the run before the search and the found one are from the recorded result in it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Comparison {
    pub name: String,
    pub before: f64,
    pub after: f64,
}

impl CalibrationRecord {
    /// The distance before the search and after it.
    pub fn distances(&self) -> Option<(f64, f64)> {
        Some((self.runs.first()?.distance, self.runs.get(self.found)?.distance))
    }
}
