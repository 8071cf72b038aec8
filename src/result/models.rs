//! What the studies of `tailback::models` found, as result files keep it. Absent in files of other commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MapResult;
use crate::models::maxrate::{Direction, Observation};
use crate::models::{beff, contention, hpcc, maxrate};
use crate::stats::{Interval, Took};

/// At most one of them is present: the command's own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ModelResults {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxrate: Option<MaxRateResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beff: Option<beff::Beff>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpcc: Option<hpcc::Hpcc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapResult>,
}

/// `tailback maxrate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MaxRateResult {
    /// What was asked for.
    pub settings: maxrate::Settings,
    /// What was measured, in that order: repetition by repetition, each in an order that the seed decided. Where there were
    /// several pairs of nodes or directions, the medians over them in each repetition, by pairs and bytes.
    pub observations: Vec<Observation>,
    /// How many round trips the measurements took; absent in files of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// Protocol regimes, by ascending message size.
    pub regimes: Vec<RegimeResult>,
    /// Each two nodes and each direction by itself, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<BetweenResult>,
    /// Where each regime ends and the next begins, as far as bisection could tell; empty where they were given, or not looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<maxrate::Threshold>,
    /// Exchanges with neighbours that were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub halos: Vec<maxrate::HaloSeen>,
}

impl MaxRateResult {
    /// The regime that a message of any size is sent in: by the thresholds, or by the sizes that were measured.
    pub fn regime_of_any(&self, bytes: usize) -> Option<&RegimeResult> {
        let known = self.thresholds.len() + 1 == self.regimes.len();
        let largest = |at: usize| match self.thresholds.get(at).filter(|_| known) {
            Some(threshold) => threshold.largest_bytes,
            None => self.regimes[at].largest_bytes,
        };
        (0..self.regimes.len()).find(|at| bytes <= largest(*at)).map(|at| &self.regimes[at]).or(self.regimes.last())
    }

    /// The regime of a message size.
    pub fn regime(&self, bytes: usize) -> Option<&RegimeResult> {
        self.regimes.iter().find(|regime| (regime.smallest_bytes..=regime.largest_bytes).contains(&bytes))
    }

    /// How much of the max-rate model's time a ping-pong's postal model tells for long messages of so many pairs: the paper's
    /// ratio (6), β / (k / R_N). None when that many pairs do not fill the node.
    pub fn postal_over_max_rate(&self, pairs: usize) -> Option<f64> {
        let regime = self.regimes.last()?;
        let (postal, node) =
            (regime.postal_of_one_pair.as_ref()?, regime.fit(maxrate::Model::MaxRate)?.node_bytes_per_s?);
        let ratio = node.value / (pairs as f64 * postal.pair_bytes_per_s.value);
        (ratio < 1.0).then_some(ratio)
    }

    /// Message sizes, ascending.
    pub fn sizes(&self) -> Vec<usize> {
        distinct(self.observations.iter().map(|seen| seen.bytes))
    }

    /// Numbers of pairs, ascending.
    pub fn pairs(&self) -> Vec<usize> {
        distinct(self.observations.iter().map(|seen| seen.pairs))
    }
}

/// Two nodes, and one direction where each was measured by itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BetweenResult {
    /// The first node and the second.
    pub nodes: [String; 2],
    /// Which way messages went; absent when they went to and fro.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Everything measured, in that order.
    pub observations: Vec<Observation>,
    /// Protocol regimes, by ascending message size.
    pub regimes: Vec<RegimeResult>,
}

impl BetweenResult {
    /// The nodes, with the direction as an arrow.
    pub fn name(&self) -> String {
        let [first, second] = &self.nodes;
        match self.direction {
            None => format!("{first} - {second}"),
            Some(Direction::There) => format!("{first} > {second}"),
            Some(Direction::Back) => format!("{second} > {first}"),
            Some(Direction::Both) => format!("{first} <> {second}"),
        }
    }

    /// Whether messages went both ways at once: rates are then those of one way, while the other is loaded alike.
    pub fn is_both(&self) -> bool {
        self.direction == Some(Direction::Both)
    }
}

/// One protocol regime.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct RegimeResult {
    pub smallest_bytes: usize,
    pub largest_bytes: usize,
    /// One for each model that the data determine.
    pub fits: Vec<FitResult>,
    /// The postal model of one pair, which is what a ping-pong test gives; its errors are those on all data. Absent in files
    /// of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_of_one_pair: Option<FitResult>,
    /// The postal model of the most pairs, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_of_most_pairs: Option<FitResult>,
}

impl RegimeResult {
    /// The fit of a model, if the data determine it.
    pub fn fit(&self, model: maxrate::Model) -> Option<&FitResult> {
        self.fits.iter().find(|fit| fit.model == model)
    }

    /// The fit that the data speak for: by the information criterion, or the smallest sum of errors in files that have none.
    pub fn best_fit(&self) -> Option<&FitResult> {
        let criteria: Option<Vec<_>> = self.fits.iter().map(|fit| Some((fit.model, fit.criterion?))).collect();
        match criteria.as_deref().and_then(maxrate::choose) {
            Some(model) => self.fit(model),
            None => self.fits.iter().min_by(|a, b| a.error_sum.total_cmp(&b.error_sum)),
        }
    }

    /// Every fit that tables show, with its name: postal models of one and of the most pairs (`most`) are not among the
    /// candidates.
    pub fn shown(&self, most: usize) -> Vec<(String, Option<&FitResult>)> {
        let mut all: Vec<(String, Option<&FitResult>)> = Vec::new();
        all.extend(self.postal_of_one_pair.iter().map(|fit| ("postal, 1 pair".to_owned(), Some(fit))));
        all.extend(self.postal_of_most_pairs.iter().map(|fit| (format!("postal, {most} pairs"), Some(fit))));
        // Files that know no criterion know nothing of formula (5) either.
        let knows =
            |model: &maxrate::Model| *model != maxrate::Model::HiddenLatency || self.postal_of_one_pair.is_some();
        let models = maxrate::Model::ALL.into_iter().filter(|model| knows(model) || self.fit(*model).is_some());
        all.extend(models.map(|model| (model.name().to_owned(), self.fit(model))));
        all
    }
}

/// A fitted model. Intervals are 95%.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FitResult {
    /// Which formula.
    pub model: maxrate::Model,
    /// Latency.
    pub latency_s: Estimate,
    /// Rate of a pair (R_C), or of the first one (R_Cb).
    pub pair_bytes_per_s: Estimate,
    /// Rate that each further pair adds (R_Ci), of the extended model.
    pub further_pair_bytes_per_s: Option<Estimate>,
    /// The node's rate (R_N); null when it never binds, that is infinite, and in the postal model.
    pub node_bytes_per_s: Option<Estimate>,
    /// Pairs that fill the node; null when none do.
    pub saturating_pairs: Option<f64>,
    /// Sum of relative errors over all (k, n).
    pub error_sum: f64,
    /// Bayesian information criterion of these errors: the smaller, the more the data speak for the model. Absent in files of
    /// version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<f64>,
}

impl FitResult {
    /// The parameters as numbers.
    pub fn values(&self) -> maxrate::Values {
        maxrate::Values {
            latency: self.latency_s.value,
            first: self.pair_bytes_per_s.value,
            further: self.further_pair_bytes_per_s.unwrap_or(self.pair_bytes_per_s).value,
            node: self.node_bytes_per_s.map(|node| node.value),
        }
    }

    /// Relative error of the modelled time: positive when it says longer than measured.
    pub fn error(&self, seen: &Observation) -> f64 {
        self.values().seconds(self.model, seen.pairs, seen.bytes) / seen.seconds - 1.0
    }
}

/// A value with its 95% interval, null where the data cannot tell.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Estimate {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let all: std::collections::BTreeSet<usize> = values.collect();
    all.into_iter().collect()
}

/// `tailback contention`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContentionResult {
    /// Message size.
    pub bytes: u64,
    /// Which reading of the penalty rules made the predictions.
    pub model: contention::Model,
    /// Where measured penalties came from that went before the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<String>,
    /// The graphs, in the order asked for; the seed decided in which they were measured.
    pub graphs: Vec<GraphResult>,
}

/// One contention graph.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphResult {
    /// Where it comes from: a file, a shape or a seed.
    pub name: String,
    /// Time of one message without contention.
    pub reference_s: f64,
    /// Its 95% interval over the repetitions; absent when there are fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_interval: Option<Interval>,
    /// How many messages of an edge the measurements took; absent when nothing was measured, and in files of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// Its messages.
    pub edges: Vec<EdgeResult>,
    /// Which part of the penalties in its steps was looked up in earlier measurements; the rest is by rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_up: Option<f64>,
}

/// One message of a graph.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EdgeResult {
    /// The sending node.
    pub source: String,
    /// The receiving node.
    pub destination: String,
    /// Its size and start, in a graph whose messages are not alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<contention::Message>,
    /// Predicted penalties, step by step until it arrives.
    pub penalties: Vec<f64>,
    /// Predicted time in multiples of the contention-free time.
    pub predicted: f64,
    /// Measured time in seconds; absent when nothing was measured.
    pub measured_s: Option<f64>,
    /// 95% interval of the measured time in multiples of the contention-free time, over the repetitions; absent when
    /// there are fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple_interval: Option<Interval>,
    /// Penalty of the first step solved back from measured times; absent where they cannot tell.
    pub measured_penalty: Option<f64>,
    /// Its 95% interval, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty_interval: Option<Interval>,
}

impl ContentionResult {
    /// Graphs whose messages' penalties were all measured, with these: what can be learned from it.
    pub fn measured_penalties(&self) -> Vec<(contention::Graph, Vec<f64>)> {
        let measured = |graph: &GraphResult| {
            let pairs: Vec<(&str, &str)> = graph.edges.iter().map(|edge| (&*edge.source, &*edge.destination)).collect();
            let penalties: Option<Vec<f64>> = graph.edges.iter().map(|edge| edge.measured_penalty).collect();
            Some((contention::Graph::new(&pairs).ok()?, penalties?))
        };
        self.graphs.iter().filter_map(measured).collect()
    }
}

impl EdgeResult {
    /// Relative error of the prediction: positive when it says longer than measured.
    pub fn error(&self, reference_s: f64) -> Option<f64> {
        self.measured_s.map(|measured| self.predicted * reference_s / measured - 1.0)
    }

    /// The 95% interval of that error.
    pub fn error_interval(&self) -> Option<Interval> {
        let Interval { low, high } = self.multiple_interval.filter(|of| of.low > 0.0)?;
        Some(Interval { low: self.predicted / high - 1.0, high: self.predicted / low - 1.0 })
    }
}
