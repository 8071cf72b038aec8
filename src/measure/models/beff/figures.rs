//! From the times of repetitions to HPCC's figures with their intervals.

use std::collections::BTreeMap;

use super::{Beff, Settings, Spread};
use crate::models::measure::geometric_mean;
use crate::stats::{self, Took};

/// A pair, or a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Pair(usize),
    Natural,
    Random(usize),
}

/// Of which of the two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Latency = 0,
    Bandwidth = 1,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) what: What,
    pub(super) size: Size,
}

/// A measurement and its time: one way for a pair, an exchange for a ring.
pub(super) struct Timed {
    pub(super) step: Step,
    pub(super) seconds: f64,
}

/// HPCC's figures. Each is the geometric mean over repetitions, with Student's t on logarithms: of rings too, since those
/// of one repetition share what the machine did meanwhile.
pub(super) fn figures(settings: &Settings, pairs: usize, took: [Took; 2], repetitions: &[Vec<Timed>]) -> Beff {
    let bytes = settings.bandwidth_bytes as f64;
    // An exchange moves two messages each way past a process: half its time is one message's.
    let figure = |timed: &Timed| {
        let messages = if matches!(timed.step.what, What::Pair(_)) { 1.0 } else { 2.0 };
        match timed.step.size {
            Size::Latency => timed.seconds / messages * 1e6,
            Size::Bandwidth => bytes * messages / timed.seconds * 1e-9,
        }
    };
    let of = |repetition: &[Timed], size: Size, wanted: fn(What) -> bool| -> Vec<f64> {
        repetition.iter().filter(|timed| timed.step.size == size && wanted(timed.step.what)).map(figure).collect()
    };
    let mut intervals = BTreeMap::new();
    let mut mean = |name: &str, values: &[f64]| {
        let interval = stats::Spread::of(values).and_then(|spread| spread.interval);
        intervals.extend(interval.map(|interval| (name.to_owned(), interval)));
        geometric_mean(values.iter().copied())
    };
    let mut spread = |size: Size, names: [&str; 3]| {
        let each = |of_pairs: fn(&[f64]) -> f64| -> Vec<f64> {
            repetitions.iter().map(|all| of_pairs(&of(all, size, |what| matches!(what, What::Pair(_))))).collect()
        };
        Spread {
            min: mean(names[0], &each(|pairs| pairs.iter().copied().fold(f64::INFINITY, f64::min))),
            avg: mean(names[1], &each(|pairs| pairs.iter().sum::<f64>() / pairs.len() as f64)),
            max: mean(names[2], &each(|pairs| pairs.iter().copied().fold(0.0, f64::max))),
        }
    };
    let ping_pong_latency_us =
        spread(Size::Latency, ["MinPingPongLatency_usec", "AvgPingPongLatency_usec", "MaxPingPongLatency_usec"]);
    let ping_pong_bandwidth_gb_per_s = spread(
        Size::Bandwidth,
        ["MinPingPongBandwidth_GBytes", "AvgPingPongBandwidth_GBytes", "MaxPingPongBandwidth_GBytes"],
    );
    // A repetition's geometric mean; with fewer random rings than repetitions, some have none.
    let rings = |size: Size, wanted: fn(What) -> bool| -> Vec<f64> {
        let each = repetitions.iter().map(|repetition| of(repetition, size, wanted));
        each.filter(|rings| !rings.is_empty()).map(|rings| geometric_mean(rings.into_iter())).collect()
    };
    let natural = |size| rings(size, |what| what == What::Natural);
    let is_random: fn(What) -> bool = |what| matches!(what, What::Random(_));
    let random = |size| rings(size, is_random);
    let random_rings = repetitions.iter().map(|repetition| of(repetition, Size::Latency, is_random).len()).sum();
    Beff {
        settings: settings.clone(),
        pairs,
        complete_repetitions: Some(repetitions.len()),
        random_rings: Some(random_rings),
        latency_took: Some(took[Size::Latency as usize]),
        bandwidth_took: Some(took[Size::Bandwidth as usize]),
        ping_pong_latency_us,
        ping_pong_bandwidth_gb_per_s,
        natural_ring_latency_us: mean("NaturallyOrderedRingLatency_usec", &natural(Size::Latency)),
        natural_ring_bandwidth_gb_per_s: mean("NaturallyOrderedRingBandwidth_GBytes", &natural(Size::Bandwidth)),
        random_ring_latency_us: mean("RandomlyOrderedRingLatency_usec", &random(Size::Latency)),
        random_ring_bandwidth_gb_per_s: mean("RandomlyOrderedRingBandwidth_GBytes", &random(Size::Bandwidth)),
        intervals,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pairs, of which the second takes 4/3 of the time, the natural ring, and one random ring.
    fn repetition(slower: f64) -> Vec<Timed> {
        let all = [(What::Pair(0), 3e-6), (What::Pair(1), 4e-6), (What::Natural, 8e-6), (What::Random(0), 16e-6)];
        let timed = |(what, seconds): (What, f64), size| Timed { step: Step { what, size }, seconds: seconds * slower };
        all.into_iter().flat_map(|of| [timed(of, Size::Latency), timed(of, Size::Bandwidth)]).collect()
    }

    fn settings() -> Settings {
        Settings { bandwidth_bytes: 6000, rings: 3, pairs: 2, ..Settings::brief() }
    }

    #[test]
    fn figures_are_geometric_means_over_repetitions() {
        let found = figures(&settings(), 2, [Took::default(); 2], &[repetition(1.0), repetition(2.0), repetition(0.5)]);
        let close = |left: f64, right: f64| (left / right - 1.0).abs() < 1e-9;
        let latency = found.ping_pong_latency_us;
        assert!(close(latency.min, 3.0) && close(latency.avg, 3.5) && close(latency.max, 4.0), "{latency:?}");
        assert!(close(found.ping_pong_bandwidth_gb_per_s.min, 1.5), "{found:?}");
        // Half of an exchange.
        assert!(close(found.natural_ring_latency_us, 4.0) && close(found.random_ring_latency_us, 8.0));
        assert!(close(found.natural_ring_bandwidth_gb_per_s, 1.5) && close(found.random_ring_bandwidth_gb_per_s, 0.75));
        // Standard deviation ln 2, three of them: t is 4.302653.
        let half = 4.302_652_73 * 2f64.ln() / 3f64.sqrt();
        for figure in found.figures() {
            let interval = figure.interval.unwrap_or_else(|| panic!("{}", figure.theirs));
            assert!(((interval.high / figure.value).ln() / half - 1.0).abs() < 1e-6, "{figure:?}");
        }
    }

    #[test]
    fn rings_of_one_repetition_are_one_look_at_it() {
        // Four rings a repetition, all alike: what differs is between repetitions.
        let many = |slower: f64| {
            let mut all = repetition(slower);
            let ring =
                |at| Timed { step: Step { what: What::Random(at), size: Size::Latency }, seconds: 16e-6 * slower };
            all.extend((1..4).map(ring));
            all
        };
        let found = figures(&settings(), 2, [Took::default(); 2], &[many(1.0), many(2.0), many(0.5)]);
        let half = 4.302_652_73 * 2f64.ln() / 3f64.sqrt();
        let interval = found.intervals["RandomlyOrderedRingLatency_usec"];
        assert!(((interval.high / 8.0).ln() / half - 1.0).abs() < 1e-6, "{interval:?}");
        assert_eq!(found.random_rings, Some(12));
    }

    #[test]
    fn one_repetition_has_figures_and_no_interval() {
        let found = figures(&settings(), 2, [Took::default(); 2], &[repetition(1.0)]);
        assert!(found.intervals.is_empty() && found.figures().iter().all(|figure| figure.interval.is_none()));
    }
}
