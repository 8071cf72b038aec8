//! Observations, the models of them, and what the data say of the models: plain functions that need no network.

#![forbid(unsafe_code)]

mod covariance;
mod fit;
mod hidden;
mod linear;
mod regime;
#[cfg(test)]
mod synthetic;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailback_stats::median;

pub use fit::{Fit, Parameter, fit, fit_subset};
pub use regime::{Line, given_regimes, regimes};

/// One measurement: the slowest pair's one-way time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Pairs that talked at once.
    pub pairs: usize,
    /// Message size.
    pub bytes: usize,
    /// One-way time of the slowest pair.
    pub seconds: f64,
}

impl Observation {
    /// The rate of all pairs together, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.pairs as f64 * self.bytes as f64 / self.seconds
    }
}

/// Which formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Latency and one rate, whatever the number of pairs
    Postal,
    /// A rate per pair, limited by the node's
    MaxRate,
    /// The same, but a full node hides the latency of its messages (the paper's formula 5)
    HiddenLatency,
    /// A rate for the first pair, another for each further one, limited by the node's
    Extended,
}

impl Model {
    /// All of them, from the simplest.
    pub const ALL: [Model; 4] = [Model::Postal, Model::MaxRate, Model::HiddenLatency, Model::Extended];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Model::Postal => "postal",
            Model::MaxRate => "max-rate",
            Model::HiddenLatency => "hidden latency",
            Model::Extended => "extended max-rate",
        }
    }
}

/// How much each observation counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// By 1/bytes, as the paper does: large messages decide
    #[default]
    InverseSize,
    /// By 1/time²: relative errors count alike, the better choice when noise grows with the time
    Relative,
}

impl Weighting {
    /// The weight of an observation.
    fn of(self, seen: &Observation) -> f64 {
        match self {
            Weighting::InverseSize => 1.0 / seen.bytes.max(1) as f64,
            Weighting::Relative => 1.0 / (seen.seconds * seen.seconds),
        }
    }
}

/// How models are fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// How much each observation counts.
    pub weighting: Weighting,
    /// Whether latencies and rates of further pairs may come out below zero, as in the paper's table 1, rather than be held
    /// at what they can be.
    pub signed: bool,
}

impl From<Weighting> for Method {
    fn from(weighting: Weighting) -> Self {
        Method { weighting, signed: false }
    }
}

/// What a model says once its parameters are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// Latency in seconds.
    pub latency: f64,
    /// Rate of the first pair, bytes per second.
    pub first: f64,
    /// Rate that each further pair adds, bytes per second; the first's in the plain max-rate model.
    pub further: f64,
    /// The node's rate, bytes per second; none when it never binds.
    pub node: Option<f64>,
}

impl Values {
    /// The rate of `pairs` pairs together by `model`, for messages of any length but for the latency.
    pub fn rate(&self, model: Model, pairs: usize) -> f64 {
        let (pairs, node) = (pairs as f64, self.node.unwrap_or(f64::INFINITY));
        match model {
            Model::Postal => pairs * self.first,
            Model::MaxRate | Model::HiddenLatency => node.min(pairs * self.first),
            Model::Extended => node.min(self.first + (pairs - 1.0) * self.further),
        }
    }

    /// The time of a message by `model`.
    pub fn seconds(&self, model: Model, pairs: usize, bytes: usize) -> f64 {
        let all = pairs as f64 * bytes as f64;
        match model {
            Model::HiddenLatency => {
                (self.latency + bytes as f64 / self.first).max(self.node.map_or(0.0, |node| all / node))
            }
            Model::Postal | Model::MaxRate | Model::Extended => self.latency + all / self.rate(model, pairs),
        }
    }

    /// Whether the node's rate is what decides the time of such messages.
    fn is_full(&self, model: Model, pairs: usize, bytes: usize) -> bool {
        let Some(node) = self.node else { return false };
        match model {
            Model::Postal => false,
            Model::MaxRate | Model::Extended => self.rate(model, pairs) == node,
            Model::HiddenLatency => pairs as f64 * bytes as f64 / node >= self.latency + bytes as f64 / self.first,
        }
    }

    /// How many pairs fill the node: more only share what there is. None when the node's rate never binds.
    pub fn saturating_pairs(&self) -> Option<f64> {
        Some((1.0 + (self.node? - self.first) / self.further).max(1.0))
    }
}

/// Criteria closer than this are alike: the evidence is "not worth more than a bare mention" (R. E. Kass, A. E. Raftery, 1995).
pub const ALIKE: f64 = 2.0;

/// Of models with their information criteria, the one to take: the simplest of those that the best is not clearly ahead of.
pub fn choose(criteria: &[(Model, f64)]) -> Option<Model> {
    let best = criteria.iter().map(|(_, criterion)| *criterion).min_by(f64::total_cmp)?;
    let near = |model: &&Model| criteria.iter().any(|(of, criterion)| of == *model && *criterion <= best + ALIKE);
    Model::ALL.iter().find(near).copied()
}

/// The median of every (k, n), by ascending k and n.
pub fn medians(observations: &[Observation]) -> Vec<Observation> {
    let mut cells: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for seen in observations {
        cells.entry((seen.pairs, seen.bytes)).or_default().push(seen.seconds);
    }
    let middle = |((pairs, bytes), mut seconds): ((usize, usize), Vec<f64>)| Observation {
        pairs,
        bytes,
        seconds: median(&mut seconds).unwrap_or_default(),
    };
    cells.into_iter().map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_of_the_best_is_taken() {
        assert_eq!(choose(&[]), None);
        let of = |postal, plain, hidden, extended| {
            let criteria = [postal, plain, hidden, extended];
            choose(&Model::ALL.into_iter().zip(criteria).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(of(-100.0, -300.0, -320.0, -310.0), Model::HiddenLatency);
        assert_eq!(of(-100.0, -319.0, -320.0, -310.0), Model::MaxRate);
        assert_eq!(of(-100.0, -300.0, -310.0, -320.0), Model::Extended);
        assert_eq!(of(-320.0, -320.0, -320.0, -320.0), Model::Postal);
    }
}
