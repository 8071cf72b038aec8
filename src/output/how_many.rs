//! The answer to a max-rate study's question: by the model where that fits, and by what was measured where it does not.

use tailback_stats::median;
use tailback_transport::Bytes;

use crate::models::maxrate::{Model, Observation, medians};
use crate::result::{FitResult, MaxRateResult, RegimeResult};
use crate::text::figure;

/// A model of which half of the times are off by more than this concludes nothing.
const FITS: f64 = 0.25;
/// Rates that differ by no more are the same.
const SAME: f64 = 0.05;

/// How many ranks per node should talk at once, for the largest messages that have a model of their own.
pub(crate) fn answer(result: &MaxRateResult) -> String {
    let question = "How many ranks per node should talk at once";
    let Some(regime) = result.regimes.last() else {
        return format!("{question}: the data do not determine the model.\n");
    };
    let (smallest, largest) = (Bytes(regime.smallest_bytes as u64), Bytes(regime.largest_bytes as u64));
    let question = format!("{question}, for messages from {smallest} to {largest}");
    let seen = of_regime(result, regime);
    let said = match regime.fit(Model::MaxRate) {
        None => format!("the data do not determine the model; {}", measured(&seen)),
        Some(fit) if typical_error(fit, &seen).is_infinite() => "max-rate says nothing of what was measured".into(),
        Some(fit) if typical_error(fit, &seen) > FITS => format!(
            "max-rate does not fit, half of its times are off by more than {:.0}%; {}",
            100.0 * typical_error(fit, &seen),
            measured(&seen)
        ),
        Some(FitResult { saturating_pairs: Some(pairs), .. }) if *pairs <= 1.0 => {
            "1; a single pair fills the node".into()
        }
        Some(FitResult { saturating_pairs: Some(pairs), .. }) => format!(
            "{:.0} (R_N / R_C = {pairs:.2}); more share the same rate",
            // 4.05 is 4 with some noise, not 5.
            (pairs - 0.1).ceil().max(1.0)
        ),
        Some(_) => format!("all {} measured; they did not fill the node", most_pairs(&seen)),
    };
    format!("{question}: {said}.\n")
}

/// What a ping-pong test would have promised (the paper's ratio 6).
pub(crate) fn ratio(result: &MaxRateResult, most: usize) -> String {
    let Some(ratio) = result.postal_over_max_rate(most) else { return String::new() };
    let fit = result.regimes.last().and_then(|regime| Some((regime, regime.fit(Model::MaxRate)?)));
    if fit.is_none_or(|(regime, fit)| typical_error(fit, &of_regime(result, regime)) > FITS) {
        return String::new();
    }
    let largest =
        medians(&result.observations).into_iter().filter(|seen| seen.pairs == most).max_by_key(|seen| seen.bytes);
    let postal = result.regimes.last().and_then(|regime| regime.postal_of_one_pair.as_ref());
    let measured = postal.zip(largest).map(|(postal, seen)| 1.0 + postal.error(&seen));
    let measured = measured.map_or_else(String::new, |part| format!("; measured {}", figure(part)));
    format!(
        "With {most} pairs, a ping-pong's postal model tells {} of a long message's time (R_N / (k R_C){measured}).\n",
        figure(ratio)
    )
}

fn of_regime(result: &MaxRateResult, regime: &RegimeResult) -> Vec<Observation> {
    let sizes = regime.smallest_bytes..=regime.largest_bytes;
    medians(&result.observations).into_iter().filter(|seen| sizes.contains(&seen.bytes)).collect()
}

/// By how much half of the modelled times are off; infinite where it has none of these times.
fn typical_error(fit: &FitResult, seen: &[Observation]) -> f64 {
    let errors = seen.iter().map(|seen| fit.error(seen).abs());
    median(&mut errors.collect::<Vec<_>>()).filter(|error| error.is_finite()).unwrap_or(f64::INFINITY)
}

fn most_pairs(seen: &[Observation]) -> usize {
    seen.iter().map(|seen| seen.pairs).max().unwrap_or(0)
}

/// The fewest pairs that no number of pairs beats, with the largest messages.
fn measured(seen: &[Observation]) -> String {
    let rate = |seen: &Observation| seen.pairs as f64 * seen.bytes as f64 / seen.seconds;
    let largest = seen.iter().map(|seen| seen.bytes).max().unwrap_or(0);
    let of_largest = || seen.iter().filter(|seen| seen.bytes == largest);
    let best = of_largest().map(rate).fold(0.0, f64::max);
    let fewest = of_largest().filter(|seen| rate(seen) * (1.0 + SAME) >= best).min_by_key(|seen| seen.pairs);
    fewest.map_or_else(String::new, |fewest| {
        let (size, rate, beyond) = (Bytes(largest as u64), figure(rate(fewest) * 1e-6), 100.0 * SAME);
        format!("measured with {size}, {} reached {rate} MB/s, and no number {beyond:.0}% more", fewest.pairs)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::models::maxrate::{Settings, Values, Weighting};

    /// Four pairs of 1 GB/s, of which two fill the node; times are `off` by this part, more for even numbers of pairs and less
    /// for odd ones.
    pub(in crate::output) fn study(off: f64) -> MaxRateResult {
        let truth = Values { latency: 1e-5, first: 1e9, further: 1e9, node: Some(2e9) };
        let cell = |pairs: usize, bytes: usize| {
            let wrong = if pairs.is_multiple_of(2) { 1.0 + off } else { 1.0 / (1.0 + off) };
            Observation { pairs, bytes, seconds: wrong * truth.seconds(Model::MaxRate, pairs, bytes) }
        };
        let sizes: Vec<usize> = (10..=20).map(|power| 1 << power).collect();
        let observations: Vec<Observation> =
            (1..=4).flat_map(|pairs| sizes.iter().map(move |&bytes| cell(pairs, bytes))).collect();
        let regimes = vec![RegimeResult::fitted(&observations, &sizes, Weighting::InverseSize).unwrap()];
        let settings = Settings { repetitions: 1, ..Settings::default() };
        MaxRateResult { settings, observations, took: None, regimes, between: Vec::new() }
    }

    #[test]
    fn a_model_that_fits_answers() {
        let said = answer(&study(0.0));
        assert!(said.contains("for messages from 1 KiB to 1 MiB: 2 (R_N / R_C = 2.0"), "{said}");
        assert!(ratio(&study(0.0), 4).contains("tells 0.5"), "{}", ratio(&study(0.0), 4));
    }

    #[test]
    fn a_model_that_does_not_fit_concludes_nothing() {
        let said = answer(&study(1.0));
        assert!(said.contains("max-rate does not fit, half of its times are off by more than "), "{said}");
        // 3 pairs in half of the time of 2 GB/s.
        assert!(said.contains("measured with 1 MiB, 3 reached 39") && said.contains("no number 5% more"), "{said}");
        assert_eq!(ratio(&study(1.0), 4), "");
    }

    #[test]
    fn without_a_model_there_is_what_was_measured() {
        let mut result = study(0.0);
        result.regimes[0].fits.clear();
        let said = answer(&result);
        assert!(said.contains("do not determine the model; measured with 1 MiB, 2 reached 19"), "{said}");
        result.regimes.clear();
        assert_eq!(
            answer(&result),
            "How many ranks per node should talk at once: the data do not determine the model.\n"
        );
    }
}
