//! Latencies folded over bursts of load: how a message fares by the time since the last burst began.
//!
//! Every sample is counted by its part of the period (a burst with its pause), by its length, and by the stretch of bursts in a
//! row that it was taken in. Figures read off all of them have an interval from leaving out one stretch at a time.
//!
//! Between its greatest value and the ends a curve is taken to rise first and to fall then (least squares among such curves), so
//! that one odd part neither begins nor ends what a burst does.

use std::collections::BTreeMap;

use crate::{FAMILY_ERROR, Interval, SamplesError, t95};

/// Parts of a period that are told apart. It has many divisors: parts are joined until each has enough samples.
const PARTS: u16 = 192;
/// Parts of a period that are shown at least.
const FEWEST_PARTS: u16 = 12;
/// A part that is shown has so many samples, where there are enough: they carry a 99th percentile.
const ENOUGH: u64 = 100;
/// Lengths are told apart by this part of a doubling, about 1%.
const STEPS: f64 = 64.0;
/// Back is within this part of the idle figure.
pub const WITHIN: f64 = 0.1;
/// Fewer stretches have no interval.
const FEWEST_STRETCHES: usize = 4;

/// Where a sample is counted: its stretch of bursts, its part of the period, its length.
type Place = (u16, u16, u16);

/// Samples by the time since the last burst began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    counts: BTreeMap<Place, u64>,
    /// Bursts that were seen.
    bursts: u64,
}

/// A part of the period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldedPart {
    /// Its middle, as a part of the period.
    pub at: f64,
    /// Samples in it.
    pub samples: u64,
    /// The median in ns; absent without samples.
    pub p50_ns: Option<f64>,
    /// The 99th percentile in ns; absent with fewer than 100 samples.
    pub p99_ns: Option<f64>,
}

/// A figure with its 95% interval over bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverBursts {
    /// The figure of all bursts.
    pub value: f64,
    /// Absent with too few stretches, and where some of them had no such figure.
    pub interval: Option<Interval>,
}

/// What a burst does to a percentile; times are parts of the period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BurstResponse {
    /// The largest, in ns.
    pub peak_ns: Option<OverBursts>,
    /// Whether it is more than a tenth above idle, significantly at 5% with all parts looked at.
    pub is_felt: bool,
    /// From the onset until it is more than a tenth above idle.
    pub felt: Option<OverBursts>,
    /// From the end of the burst until it is back within a tenth of idle.
    pub recovery: Option<OverBursts>,
}

/// One curve's landmarks.
#[derive(Clone, Copy, Default)]
struct Landmarks {
    /// The part with the peak, and its value in ns.
    peak: Option<(usize, f64)>,
    felt: Option<f64>,
    recovery: Option<f64>,
}

impl Folded {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sample of this length, taken so long after a burst's onset, in a stretch of bursts.
    pub fn record(&mut self, stretch: u16, since_ns: u64, period_ns: u64, length_ns: u64) {
        let part = u128::from(since_ns) * u128::from(PARTS) / u128::from(period_ns.max(1));
        let length = (STEPS * (length_ns.max(1) as f64).log2()) as u16;
        *self.counts.entry((stretch, (part as u16).min(PARTS - 1), length)).or_default() += 1;
    }

    /// So many bursts were seen by whoever saw most of them.
    pub fn saw(&mut self, bursts: u64) {
        self.bursts = self.bursts.max(bursts);
    }

    /// How many bursts there were.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// Samples in all.
    pub fn samples(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds what another rank saw of the same bursts.
    pub fn merge(&mut self, other: &Folded) {
        self.bursts = self.bursts.max(other.bursts);
        other.counts.iter().for_each(|(place, count)| *self.counts.entry(*place).or_default() += count);
    }

    /// Adds other bursts, whose stretches are others than these.
    pub fn follow(&mut self, later: &Folded) {
        self.bursts = self.bursts.saturating_add(later.bursts);
        let first = self.counts.keys().next_back().map_or(0, |last| last.0.saturating_add(1));
        for ((stretch, part, length), count) in &later.counts {
            *self.counts.entry((first.saturating_add(*stretch), *part, *length)).or_default() += count;
        }
    }

    /// Bytes for another rank.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.bursts.to_le_bytes().to_vec();
        for ((stretch, part, length), count) in &self.counts {
            [*stretch, *part, *length].iter().for_each(|word| out.extend(word.to_le_bytes()));
            out.extend(count.to_le_bytes());
        }
        out
    }

    /// What [`Folded::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, SamplesError> {
        let broken = || SamplesError("folded samples".into());
        let (bursts, rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
        let (entries, []) = rest.as_chunks::<14>() else { return Err(broken()) };
        let mut counts = BTreeMap::new();
        for entry in entries {
            let word = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
            let count = u64::from_le_bytes(entry[6..].try_into().map_err(|_| broken())?);
            let place = (word(0), word(2), word(4));
            if place.1 >= PARTS || count == 0 || counts.insert(place, count).is_some() {
                return Err(broken());
            }
        }
        Ok(Folded { counts, bursts: u64::from_le_bytes(*bursts) })
    }

    /// The curve, in as many parts as have enough samples each.
    pub fn curve(&self) -> Vec<FoldedPart> {
        self.parts(self.width(), None)
    }

    /// What a burst that takes the part `on` of the period does to the median and to the 99th percentile, which are so many ns
    /// when idle.
    pub fn responses(&self, on: f64, [p50_ns, p99_ns]: [f64; 2]) -> [BurstResponse; 2] {
        let width = self.width();
        let mut stretches: Vec<u16> = self.counts.keys().map(|place| place.0).collect();
        stretches.dedup();
        let all = self.parts(width, None);
        let parts: Vec<Vec<FoldedPart>> = stretches.iter().map(|stretch| self.parts(width, Some(*stretch))).collect();
        let response = |idle: f64, quantile: f64, of: fn(&FoldedPart) -> Option<f64>| {
            let found = landmarks(&all, of, on, idle);
            let left_out: Vec<Landmarks> = parts.iter().map(|parts| landmarks(parts, of, on, idle)).collect();
            let figure = |of: fn(&Landmarks) -> Option<f64>| Some(over_bursts(of(&found)?, left_out.iter().map(of)));
            let is_felt = found.peak.is_some_and(|(at, peak)| {
                let there: Option<Vec<f64>> = parts.iter().map(|parts| of(&parts[at])).collect();
                let noise = there.filter(|of| of.len() >= FEWEST_STRETCHES);
                let noise = noise.map_or(0.0, |of| t95(of.len() as f64 - 1.0) * spread(&of));
                // Of all parts the largest is the peak by chance, too.
                let limit = (1.0 + WITHIN) * idle;
                peak - noise > limit && self.chance(at, width, limit, quantile) < FAMILY_ERROR / all.len() as f64
            });
            let times = |of: fn(&Landmarks) -> Option<f64>| figure(of).filter(|_| is_felt);
            BurstResponse {
                peak_ns: figure(|of| Some(of.peak?.1)),
                is_felt,
                felt: times(|of| of.felt),
                recovery: times(|of| of.recovery),
            }
        };
        [response(p50_ns, 0.5, |part| part.p50_ns), response(p99_ns, 0.99, |part| part.p99_ns)]
    }

    /// A bound (Chernoff's) on how likely a part has so many samples above a limit where its quantile is at most that.
    fn chance(&self, at: usize, width: u16, limit: f64, quantile: f64) -> f64 {
        let (mut above, mut all) = (0.0, 0.0);
        for ((_, part, length), count) in &self.counts {
            if usize::from(part / width) == at {
                all += *count as f64;
                above += if (f64::from(*length) / STEPS).exp2() >= limit { *count as f64 } else { 0.0 };
            }
        }
        let (found, usual) = (above / all, 1.0 - quantile);
        if found <= usual {
            return 1.0;
        }
        let rest = if found < 1.0 { (1.0 - found) * ((1.0 - found) / quantile).ln() } else { 0.0 };
        (-all * (found * (found / usual).ln() + rest)).exp()
    }

    /// How many of the parts are joined.
    fn width(&self) -> u16 {
        let mut counts = [0; PARTS as usize];
        self.counts.iter().for_each(|(place, count)| counts[usize::from(place.1)] += count);
        let fits = |width: &u16| {
            let joined = counts.chunks(usize::from(*width)).map(|of| of.iter().sum::<u64>());
            PARTS.is_multiple_of(*width) && joined.min() >= Some(ENOUGH)
        };
        (1..=PARTS / FEWEST_PARTS).find(fits).unwrap_or(PARTS / FEWEST_PARTS)
    }

    /// The curve without one of the stretches.
    fn parts(&self, width: u16, without: Option<u16>) -> Vec<FoldedPart> {
        let mut lengths: Vec<BTreeMap<u16, u64>> = vec![BTreeMap::new(); usize::from(PARTS / width)];
        for ((stretch, part, length), count) in &self.counts {
            if Some(*stretch) != without {
                *lengths[usize::from(part / width)].entry(*length).or_default() += count;
            }
        }
        let part = |(number, lengths): (usize, &BTreeMap<u16, u64>)| {
            let samples = lengths.values().sum();
            // Without one of the stretches there is a little less than enough.
            let carries = samples >= ENOUGH || (without.is_some() && samples >= ENOUGH / 2);
            FoldedPart {
                at: (number as f64 + 0.5) * f64::from(width) / f64::from(PARTS),
                samples,
                p50_ns: quantile(lengths, 0.5),
                p99_ns: quantile(lengths, 0.99).filter(|_| carries),
            }
        };
        lengths.iter().enumerate().map(part).collect()
    }
}

/// A quantile in ns, between the bounds of the step that it falls into.
fn quantile(lengths: &BTreeMap<u16, u64>, quantile: f64) -> Option<f64> {
    let total: u64 = lengths.values().sum();
    let wanted = quantile * total as f64;
    let mut below = 0.0;
    for (length, count) in lengths {
        let count = *count as f64;
        if below + count >= wanted {
            let inside = (wanted - below) / count;
            return Some(((f64::from(*length) + inside) / STEPS).exp2());
        }
        below += count;
    }
    None
}

/// Where a curve has its peak, leaves idle, and is back.
fn landmarks(parts: &[FoldedPart], of: fn(&FoldedPart) -> Option<f64>, on: f64, idle: f64) -> Landmarks {
    let Some(values) = parts.iter().map(of).collect::<Option<Vec<f64>>>() else { return Landmarks::default() };
    let Some(peak) = (0..values.len()).max_by(|one, other| values[*one].total_cmp(&values[*other])) else {
        return Landmarks::default();
    };
    let limit = (1.0 + WITHIN) * idle;
    let found = Landmarks { peak: Some((peak, values[peak])), ..Landmarks::default() };
    if values[peak] <= limit {
        return found;
    }
    let at = |part: usize| parts[part].at;
    let risen = monotonic(&values[..=peak], true);
    let first = risen.iter().position(|value| *value > limit).unwrap_or(peak);
    let rise = if first == 0 { at(0) } else { f64::midpoint(at(first - 1), at(first)) };
    let fallen = monotonic(&values[peak..], false);
    let back = fallen.iter().position(|value| *value <= limit).map(|back| {
        let high = |before: usize| Some((at(peak + back.checked_sub(before)?), fallen[back - before]));
        reached([high(2), high(1)], at(peak + back), limit)
    });
    // What is slow all the time is so from the burst before: then nobody can tell when this one is felt.
    let felt = back.map(|_| rise);
    Landmarks { felt, recovery: back.map(|at| (at - on).max(0.0)), ..found }
}

/// Where the line through the last two points above a limit reaches it, before the next point, which is below: a queue drains
/// at an even rate. Where it does not, as behind an edge, in the middle.
fn reached(above: [Option<(f64, f64)>; 2], below: f64, limit: f64) -> f64 {
    let [before, Some(last)] = above else { return below };
    let slope = before.map(|before| (last.1 - before.1) / (last.0 - before.0));
    let at = slope.map(|slope| last.0 + (limit - last.1) / slope);
    at.filter(|at| (last.0..below).contains(at)).unwrap_or(f64::midpoint(last.0, below))
}

/// A figure with the interval that leaving out one stretch at a time gives.
fn over_bursts(value: f64, left_out: impl Iterator<Item = Option<f64>>) -> OverBursts {
    let left_out: Option<Vec<f64>> = left_out.collect();
    let interval = left_out.filter(|of| of.len() >= FEWEST_STRETCHES).map(|of| {
        let half = t95(of.len() as f64 - 1.0) * spread(&of);
        Interval { low: (value - half).max(0.0), high: value + half }
    });
    OverBursts { value, interval }
}

/// The standard error by the figures that are left with one stretch out.
fn spread(left_out: &[f64]) -> f64 {
    let count = left_out.len() as f64;
    let mean = left_out.iter().sum::<f64>() / count;
    ((count - 1.0) / count * left_out.iter().map(|one| (one - mean).powi(2)).sum::<f64>()).sqrt()
}

/// The nearest values by least squares that never fall, or never rise: neighbours in the wrong order share their mean.
pub fn monotonic(values: &[f64], rises: bool) -> Vec<f64> {
    let sign = if rises { 1.0 } else { -1.0 };
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let mut block = (sign * value, 1);
        while let Some(before) = blocks.pop_if(|before| before.0 > block.0) {
            let count = before.1 + block.1;
            block = ((before.0 * before.1 as f64 + block.0 * block.1 as f64) / count as f64, count);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(value, count)| std::iter::repeat_n(sign * value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period of 10 ms, 2 ms of it a burst.
    const PERIOD: u64 = 10_000_000;
    const ON: f64 = 0.2;
    const IDLE_NS: f64 = 100_000.0;

    /// So many bursts, each with a sample at equal distances whose length is given by the time since the onset.
    fn folded(bursts: u64, length: impl Fn(u64, f64) -> f64) -> Folded {
        const SAMPLES: u64 = 400;
        let mut folded = Folded::new();
        for burst in 0..bursts {
            for sample in 0..SAMPLES {
                let since = (sample * PERIOD + burst * 7919 % PERIOD) / SAMPLES;
                let ns = length(burst, since as f64 / PERIOD as f64);
                folded.record((10 * burst / bursts) as u16, since, PERIOD, ns as u64);
            }
        }
        folded.saw(bursts);
        folded
    }

    fn value(of: Option<OverBursts>) -> f64 {
        of.expect("a figure").value
    }

    #[test]
    fn a_square_wave_is_found_as_it_is() {
        // Felt after 0.5 ms, back 1.5 ms after the end of the burst.
        let wave = |_: u64, at: f64| if (0.05..0.35).contains(&at) { 4_000_000.0 } else { IDLE_NS };
        let folded = folded(100, wave);
        assert_eq!((folded.bursts(), folded.samples()), (100, 40_000));
        let curve = folded.curve();
        assert_eq!(curve.len(), 192);
        for part in &curve {
            let high = (0.05 + 0.003..0.35 - 0.003).contains(&part.at);
            let low = !(0.05 - 0.003..0.35 + 0.003).contains(&part.at);
            let near =
                |wanted: f64| [part.p50_ns, part.p99_ns].iter().all(|of| (of.unwrap() / wanted - 1.0).abs() < 0.02);
            assert!((!high || near(4_000_000.0)) && (!low || near(IDLE_NS)), "{part:?}");
        }
        for response in folded.responses(ON, [IDLE_NS; 2]) {
            // An edge lies somewhere in a part, or between the middles of two.
            let near = |found: f64, wanted: f64| (found - wanted).abs() <= 1.5 / 192.0;
            assert!(near(value(response.felt), 0.05), "{response:?}");
            assert!(near(value(response.recovery), 0.15), "{response:?}");
            assert!((value(response.peak_ns) / 4_000_000.0 - 1.0).abs() < 0.02, "{response:?}");
            assert!(response.recovery.unwrap().interval.is_some_and(|of| of.high - of.low < 1e-9), "{response:?}");
        }
    }

    #[test]
    fn a_queue_that_drains_is_back_when_it_is_empty() {
        // It fills from the onset on and is 3 ms long at the end of the burst; it drains in those 3 ms.
        let queue = |_: u64, at: f64| {
            let ms = 10.0 * at;
            let waits = if ms < 2.0 { 1.5 * ms } else { (3.0 - (ms - 2.0)).max(0.0) };
            IDLE_NS + 1e6 * waits
        };
        let [median, tail] = folded(100, queue).responses(ON, [IDLE_NS; 2]);
        for response in [median, tail] {
            assert!((value(response.recovery) / 0.3 - 1.0).abs() < 0.02, "{response:?}");
            assert!(value(response.felt) < 0.01, "{response:?}");
        }
    }

    #[test]
    fn bursts_that_differ_have_an_interval_around_their_figure() {
        let state = std::cell::Cell::new(1u64);
        let uniform = || {
            state.set(state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
            (state.get() >> 11) as f64 / (1u64 << 53) as f64
        };
        // Each burst is back after 2 to 4 ms.
        let ends: Vec<f64> = (0..200).map(|_| 0.4 + 0.2 * uniform()).collect();
        let wave = |burst: u64, at: f64| if at < ends[burst as usize] { 4_000_000.0 } else { IDLE_NS };
        let [median, tail] = folded(200, wave).responses(ON, [IDLE_NS; 2]);
        let interval = median.recovery.unwrap().interval.expect("an interval");
        assert!(interval.low < 0.3 && interval.high > 0.3 && interval.high - interval.low < 0.08, "{median:?}");
        assert!(value(tail.recovery) > 0.38, "the slowest bursts: {tail:?}");
    }

    #[test]
    fn what_is_not_felt_or_never_back_has_no_times() {
        let [flat, _] = folded(50, |_, _| 1.05 * IDLE_NS).responses(ON, [IDLE_NS; 2]);
        assert!(flat.peak_ns.is_some() && flat.felt.is_none() && flat.recovery.is_none(), "{flat:?}");
        assert!(!flat.is_felt, "5% above idle");
        let [slow, _] = folded(50, |_, _| 3.0 * IDLE_NS).responses(ON, [IDLE_NS; 2]);
        assert!(slow.is_felt && slow.felt.is_none() && slow.recovery.is_none(), "{slow:?}");
        assert_eq!(Folded::new().responses(ON, [IDLE_NS; 2]), [BurstResponse::default(); 2]);
        // Back before the burst is over.
        let [short, _] = folded(50, |_, at| if at < 0.1 { 9.0 * IDLE_NS } else { IDLE_NS }).responses(ON, [IDLE_NS; 2]);
        assert_eq!(value(short.recovery), 0.0);
    }

    /// Stretches of 1.2 and of 1.3 times idle in turns: without one of them the median is the other kind's, so that the peak of 1.2
    /// is uncertain by t(9) = 2.26 times 3 halves of 0.1.
    #[test]
    fn a_peak_that_may_be_idle_is_not_felt() {
        let of = |other: f64| {
            let slow = move |burst: u64| if (burst / 5).is_multiple_of(2) { 1.2 } else { other };
            let wave = move |burst: u64, at: f64| IDLE_NS * if at < 0.1 { slow(burst) } else { 1.0 };
            folded(50, wave).responses(ON, [IDLE_NS; 2])[0]
        };
        assert!(of(1.2).is_felt && !of(1.3).is_felt, "{:?} {:?}", of(1.2), of(1.3));
    }

    /// Chernoff's bound on 100 samples of which 75 are above a median: (2/3)^75 2^25, and for all of them 2^-100.
    #[test]
    fn the_chance_of_samples_above_a_quantile_is_as_in_the_textbook() {
        let chance = |above: u64, quantile: f64| {
            let mut folded = Folded::new();
            // Others are in other parts.
            [(0, 100 - above, 1000), (0, above, 2000), (1, 999, 2000)]
                .iter()
                .for_each(|&(since, count, ns)| (0..count).for_each(|_| folded.record(0, since, 192, ns)));
            folded.chance(0, 1, 1500.0, quantile)
        };
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-9, "{found} is not {wanted}");
        close(chance(75, 0.5), (2f64 / 3.0).powi(75) * 2f64.powi(25));
        close(chance(100, 0.5), 0.5f64.powi(100));
        close(chance(10, 0.99), 0.1f64.powi(10) * (0.99f64 / 0.9).powi(90));
        assert_eq!([chance(50, 0.5), chance(0, 0.5), chance(1, 0.99)], [1.0; 3]);
    }

    #[test]
    fn a_curve_reaches_a_limit_where_the_line_through_its_last_points_does() {
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
        // 1000 lower every unit: from 200 at 0.2 to 110 takes 0.09 more.
        let line = [Some((0.1, 300.0)), Some((0.2, 200.0))];
        close(reached(line, 0.35, 110.0), 0.29);
        // The next point is below it already, or the line rises, or there is none.
        close(reached(line, 0.25, 110.0), 0.225);
        close(reached([Some((0.1, 100.0)), line[1]], 0.3, 110.0), 0.25);
        close(reached([None, line[1]], 0.3, 110.0), 0.25);
        close(reached([None, None], 0.3, 110.0), 0.3);
    }

    #[test]
    fn figures_without_one_stretch_each_give_the_jackknifes_interval() {
        // Deviations -1.5, -0.5, 0.5, 1.5: 3/4 of their squares 5, and t(3) = 3.182446.
        let half = 3.182_446_3 * 3.75f64.sqrt();
        let interval = |value, left_out: &[Option<f64>]| over_bursts(value, left_out.iter().copied()).interval;
        let four = [1.0, 2.0, 3.0, 4.0].map(Some);
        let found = interval(10.0, &four).unwrap();
        assert!((found.low - (10.0 - half)).abs() < 1e-6 && (found.high - (10.0 + half)).abs() < 1e-6, "{found:?}");
        assert_eq!(interval(1.0, &four).unwrap().low, 0.0, "no time is less than none");
        assert_eq!((interval(10.0, &four[..3]), interval(10.0, &[four[0], four[1], four[2], None])), (None, None));
    }

    #[test]
    fn noise_is_not_felt() {
        let mut state = 7u64;
        let claimed = (0..40).filter(|_| {
            let mut folded = Folded::new();
            for sample in 0..40_000u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let uniform = ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
                folded.record(
                    (sample / 4_000) as u16,
                    sample * 7919 % PERIOD,
                    PERIOD,
                    (IDLE_NS * (1.0 - 0.5 * uniform.ln())) as u64,
                );
            }
            let idle = [0.5f64, 0.99].map(|of| IDLE_NS * (1.0 - 0.5 * (1.0 - of).ln()));
            folded.responses(ON, idle).iter().any(|of| of.is_felt)
        });
        let claimed = claimed.count();
        assert!(claimed <= 2, "{claimed} of 40");
    }

    #[test]
    fn few_samples_have_wide_parts_and_no_99th_percentile() {
        let curve = folded(1, |_, _| IDLE_NS).curve();
        assert_eq!(curve.len(), usize::from(FEWEST_PARTS));
        assert!(curve.iter().all(|part| part.p50_ns.is_some() && part.p99_ns.is_none()), "{curve:?}");
        let middles = curve.iter().enumerate().map(|(number, part)| part.at - (number as f64 + 0.5) / 12.0);
        assert!(middles.into_iter().all(|off| off.abs() < 1e-12), "{curve:?}");
        // A burst has 33 in every twelfth: four of them carry one, and two only where they are what a stretch of three left.
        let carries = |bursts: u64, without: Option<u16>| {
            let parts = folded(bursts, |_, _| IDLE_NS).parts(PARTS / FEWEST_PARTS, without);
            let found = parts.iter().filter(|part| part.p99_ns.is_some()).count();
            assert!([0, parts.len()].contains(&found), "{parts:?}");
            found > 0
        };
        assert!(carries(4, None) && carries(3, Some(0)) && !carries(2, None) && !carries(2, Some(0)));
    }

    #[test]
    fn what_ranks_send_each_other_is_what_they_had() {
        let one = folded(20, |burst, at| IDLE_NS * (1.0 + at + burst as f64));
        assert_eq!(Folded::decode(&one.encode()).unwrap(), one);
        assert_eq!(Folded::decode(&Folded::new().encode()).unwrap(), Folded::new());
        for cut in [1, 7, 9, one.encode().len() - 1] {
            assert!(Folded::decode(&one.encode()[..cut]).is_err());
        }
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!((sum.samples(), sum.bursts()), (2 * one.samples(), 20));
        sum.follow(&one);
        assert_eq!((sum.samples(), sum.bursts()), (3 * one.samples(), 40));
        assert_eq!(sum.counts.keys().next_back().unwrap().0, 19, "stretches of their own");
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let decoded = |entries: &[(u16, u64)]| {
            let entry = |&(part, count): &(u16, u64)| {
                [&[7, 0], &part.to_le_bytes()[..], &[9, 0], &count.to_le_bytes()].concat()
            };
            Folded::decode(&[&3u64.to_le_bytes()[..], &entries.iter().flat_map(entry).collect::<Vec<u8>>()].concat())
        };
        assert_eq!(decoded(&[(0, 5), (PARTS - 1, 6)]).unwrap().samples(), 11);
        assert!(decoded(&[(PARTS, 5)]).is_err(), "no part of a period");
        let mut late = Folded::new();
        late.record(0, 3 * PERIOD, PERIOD, 1000);
        assert_eq!(Folded::decode(&late.encode()).unwrap(), late, "a burst that comes late has none either");
        assert!(decoded(&[(0, 0)]).is_err(), "no samples");
        assert!(decoded(&[(0, 5), (0, 6)]).is_err(), "counted twice");
    }

    #[test]
    fn neighbours_in_the_wrong_order_share_their_mean() {
        assert_eq!(monotonic(&[1.0, 3.0, 2.0, 4.0], true), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(monotonic(&[4.0, 5.0, 1.0], false), [4.5, 4.5, 1.0]);
        assert_eq!(monotonic(&[], true), [0.0; 0]);
    }
}
