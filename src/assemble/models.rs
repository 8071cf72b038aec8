//! Max-rate's models, fitted in a protocol regime.

use crate::models::maxrate;
use crate::result::{Estimate, FitResult, RegimeResult};

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
