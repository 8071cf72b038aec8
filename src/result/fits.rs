//! Max-rate's models as result files keep them: fitted in every protocol regime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::maxrate;

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
    /// Every model fitted to the medians of these sizes, which ascend.
    pub fn fitted(
        medians: &[maxrate::Observation],
        sizes: &[usize],
        method: impl Into<maxrate::Method>,
    ) -> Option<RegimeResult> {
        let method = method.into();
        let within = |seen: &&maxrate::Observation| sizes.binary_search(&seen.bytes).is_ok();
        let seen: Vec<maxrate::Observation> = medians.iter().filter(within).copied().collect();
        let result = |fit: maxrate::Fit| FitResult::from(&fit);
        let fits = maxrate::Model::ALL.iter().filter_map(|&model| maxrate::fit(model, method, &seen));
        let postal_of = |pairs: usize| {
            let some: Vec<maxrate::Observation> = seen.iter().filter(|of| of.pairs == pairs).copied().collect();
            maxrate::fit_subset(maxrate::Model::Postal, method, &some, &seen).map(result)
        };
        let most = seen.iter().map(|of| of.pairs).max()?;
        Some(RegimeResult {
            smallest_bytes: *sizes.first()?,
            largest_bytes: *sizes.last()?,
            fits: fits.map(result).collect(),
            postal_of_one_pair: postal_of(1),
            postal_of_most_pairs: if most > 1 { postal_of(most) } else { None },
        })
    }

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
    pub fn error(&self, seen: &maxrate::Observation) -> f64 {
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

impl From<maxrate::Parameter> for Estimate {
    fn from(parameter: maxrate::Parameter) -> Self {
        Estimate { value: parameter.value, low: parameter.low, high: parameter.high }
    }
}

impl From<&maxrate::Fit> for FitResult {
    fn from(fit: &maxrate::Fit) -> Self {
        FitResult {
            model: fit.model,
            latency_s: fit.latency.into(),
            pair_bytes_per_s: fit.first.into(),
            further_pair_bytes_per_s: fit.further.map(Into::into),
            node_bytes_per_s: fit.node.map(Into::into),
            saturating_pairs: fit.values.saturating_pairs(),
            error_sum: fit.error_sum,
            criterion: Some(fit.criterion),
        }
    }
}
