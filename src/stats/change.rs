//! Change points: where figures in the order of time have moved to another level.
//!
//! The test is a scan over all splits of the mean of normal scores (van der Waerden's) before and after. Scores depend on ranks
//! alone, so a single outlier, however far out, counts no more than the largest value must, and the figures need no distribution;
//! and the p-value is that of random orders of the same figures, so the rate of false alarms holds for any figures that are alike
//! but for their order. Both sides of a change are looked at again, each at half the level.
//!
//! Out of scope: figures that depend on those before them. A slow wave is a change to this test.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Interval, median, t95, two_sided_p, variance};

/// Fewer figures than this on a side are outliers, and no level.
pub const FEWEST_OF_LEVEL: usize = 3;
/// Of fewer figures no order is rare enough.
pub const FEWEST_TO_SPLIT: usize = 8;
/// Random orders that a p-value is made of, at most.
const ORDERS: u32 = 9_999;
/// So many that are as far apart decide that nothing is shown, long before (Besag and Clifford 1991).
const ENOUGH: u32 = 50;
/// How far from a change its size is looked at: a year of nights.
const NEAR: usize = 365;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first figure of the new level.
    pub at: usize,
    /// The new level less the old one: the median of all differences (Hodges and Lehmann).
    pub shift: f64,
    /// Its 95% interval (Moses), for a change at that place; absent for too few figures.
    pub interval: Option<Interval>,
    /// How often figures in random order are as far apart at any split.
    pub p_value: f64,
}

/// The changes of level of `figures`, in order. Of figures without any, one is found at most as often as `level` says.
pub fn change_points(figures: &[f64], level: f64) -> Vec<ChangePoint> {
    let mut places = Vec::new();
    split(figures, 0, level, &mut places);
    places.sort_by_key(|(at, _)| *at);
    let bounds: Vec<usize> = places.iter().map(|(at, _)| *at).chain([figures.len()]).collect();
    let before = |place: usize| if place == 0 { 0 } else { bounds[place - 1] };
    let change = |(place, &(at, p_value)): (usize, &(usize, f64))| {
        let (shift, interval) = level_shift(&figures[before(place)..at], &figures[at..bounds[place + 1]]);
        ChangePoint { at, shift, interval, p_value }
    };
    places.iter().enumerate().map(change).collect()
}

/// How many figures a change needs at least to be shown at this level: a step in the middle, without noise. Nothing where no number
/// of random orders that is tried could be rare enough.
pub fn fewest_to_show(level: f64) -> Option<usize> {
    /// Of so many figures a step is as rare as random orders can tell.
    const MOST: usize = 32;
    let shows = |count: &usize| {
        let step: Vec<f64> = (0..*count).map(|at| at as f64).collect();
        strongest(&step).is_some_and(|(_, p_value)| p_value < level)
    };
    (FEWEST_TO_SPLIT..=MOST).find(shows)
}

fn split(figures: &[f64], from: usize, level: f64, found: &mut Vec<(usize, f64)>) {
    let Some((at, p_value)) = strongest(figures).filter(|(_, p_value)| *p_value < level) else { return };
    found.push((from + at, p_value));
    let (before, after) = figures.split_at(at);
    split(before, from, level / 2.0, found);
    split(after, from + at, level / 2.0, found);
}

/// The split at which both sides differ most, and its p-value; nothing for too few figures, or where all are equal.
fn strongest(figures: &[f64]) -> Option<(usize, f64)> {
    if figures.len() < FEWEST_TO_SPLIT || figures.iter().any(|of| of.is_nan()) {
        return None;
    }
    let mut scores = scores(figures);
    let count = scores.len();
    let weights: Vec<f64> = (1..count).map(|before| 1.0 / (before * (count - before)) as f64).collect();
    let (at, seen) = scan(&scores, &weights);
    if seen <= 0.0 {
        return None;
    }
    let mut random = SmallRng::seed_from_u64(count as u64);
    let mut as_far = 0;
    for order in 1..=ORDERS {
        for last in (1..count).rev() {
            scores.swap(last, random.random_range(0..=last));
        }
        // Sums in another order differ in their last digits.
        as_far += u32::from(scan(&scores, &weights).1 >= seen * (1.0 - 1e-9));
        if as_far == ENOUGH {
            return Some((at, f64::from(as_far) / f64::from(order)));
        }
    }
    Some((at, f64::from(as_far + 1) / f64::from(ORDERS + 1)))
}

/// The split with the largest squared difference of means by its variance, up to a factor that all orders share.
fn scan(scores: &[f64], weights: &[f64]) -> (usize, f64) {
    let (mut sum, mut best) = (scores[..FEWEST_OF_LEVEL - 1].iter().sum::<f64>(), (0, 0.0));
    for before in FEWEST_OF_LEVEL..=scores.len() - FEWEST_OF_LEVEL {
        sum += scores[before - 1];
        let apart = sum * sum * weights[before - 1];
        if apart > best.1 {
            best = (before, apart);
        }
    }
    best
}

/// What each would be, were they drawn from a normal distribution; of mean 0. Equal ones have equal scores.
fn scores(figures: &[f64]) -> Vec<f64> {
    let count = figures.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| figures[*a].total_cmp(&figures[*b]));
    let mut scores = vec![0.0; count];
    for equal in order.chunk_by(|a, b| figures[*a] == figures[*b]) {
        let first = order.partition_point(|of| figures[*of].total_cmp(&figures[equal[0]]).is_lt());
        let rank = first as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|at| scores[*at] = normal_quantile(rank / (count + 1) as f64));
    }
    let mean = super::mean(&scores);
    scores.iter_mut().for_each(|of| *of -= mean);
    scores
}

/// Tukey's approximation: off by less than 0.01 up to 2.5, and any increasing function would do.
fn normal_quantile(probability: f64) -> f64 {
    4.91 * (probability.powf(0.14) - (1.0 - probability).powf(0.14))
}

/// How far one level is from another: the median of all differences, and the differences that hold its 95% interval.
pub fn level_shift(before: &[f64], after: &[f64]) -> (f64, Option<Interval>) {
    let (before, after) = (&before[before.len().saturating_sub(NEAR)..], &after[..after.len().min(NEAR)]);
    let mut apart: Vec<f64> = after.iter().flat_map(|new| before.iter().map(move |old| new - old)).collect();
    apart.sort_by(f64::total_cmp);
    let (old, new, pairs) = (before.len() as f64, after.len() as f64, apart.len());
    let outside = (old * new / 2.0 - 1.96 * (old * new * (old + new + 1.0) / 12.0).sqrt()).floor();
    let interval = (outside >= 1.0).then(|| {
        let outside = outside as usize;
        Interval { low: apart[outside - 1], high: apart[pairs - outside] }
    });
    (median(&mut apart).unwrap_or(0.0), interval)
}

/// How far a figure is from those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// Its distance to their mean.
    pub apart: f64,
    /// What that distance stands for, by their spread (95%, Student's t).
    pub interval: Interval,
    /// How often one more figure of theirs is as far away.
    pub p_value: f64,
}

/// The last figure beside those before it; nothing with fewer than three before.
pub fn departure(past: &[f64], last: f64) -> Option<Departure> {
    let spread = variance(past).filter(|_| past.len() >= FEWEST_OF_LEVEL)?;
    let (apart, count) = (last - super::mean(past), past.len() as f64);
    let error = (spread * (1.0 + 1.0 / count)).sqrt();
    let half = t95(count - 1.0) * error;
    let p_value = if apart == 0.0 { 1.0 } else { two_sided_p(apart / error, count - 1.0) };
    Some(Departure { apart, interval: Interval { low: apart - half, high: apart + half }, p_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut random = SmallRng::seed_from_u64(seed);
        // After Box and Muller.
        move || {
            let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
            (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
        }
    }

    #[test]
    fn levels_are_told_apart_and_measured() {
        let mut noise = noise(3);
        let level = |night: usize| [1.0, 2.0, 1.5][usize::from(night >= 40) + usize::from(night >= 70)];
        let figures: Vec<f64> = (0..100).map(|night| level(night) + 0.1 * noise()).collect();
        let found = change_points(&figures, 0.05);
        assert_eq!(found.iter().map(|of| of.at).collect::<Vec<_>>(), [40, 70], "{found:?}");
        for (change, shift) in found.iter().zip([1.0, -0.5]) {
            let interval = change.interval.unwrap();
            assert!((change.shift - shift).abs() < 0.05 && change.p_value < 0.025, "{change:?}");
            assert!(interval.low < shift && shift < interval.high && interval.high - interval.low < 0.2, "{change:?}");
        }
    }

    #[test]
    fn outliers_equal_figures_and_few_of_them_are_no_change() {
        let mut noise = noise(5);
        let mut figures: Vec<f64> = (0..60).map(|_| 1.0 + 0.05 * noise()).collect();
        assert_eq!(change_points(&figures, 0.05), []);
        figures[30] = 1e6;
        figures[31] = 1e6;
        assert_eq!(change_points(&figures, 0.05), [], "two nights are no level");
        assert_eq!(change_points(&[5.0; 40], 0.05), []);
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0], 0.05), []);
        let found = change_points(&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0], 0.05);
        assert!(found.len() == 1 && found[0].at == 5, "{found:?}");
        assert_eq!(change_points(&[f64::NAN; 20], 0.05), []);
        assert_eq!(
            (change_points(&[1.0, 2.0], 0.5), change_points(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 0.5)),
            (vec![], vec![])
        );
        let mut step = [[1.0; 20], [2.0; 20]].concat();
        assert_eq!(change_points(&step, 0.05).len(), 1);
        step[7] = f64::NAN;
        assert_eq!(change_points(&step, 0.05), []);
        // Whatever the scale: ranks are all that counts.
        let steps: Vec<f64> = (0..40).map(|night| f64::from(u8::from(night >= 25)) + 0.3 * noise()).collect();
        let squeezed: Vec<f64> = steps.iter().map(|of| of.exp()).collect();
        let places = |figures: &[f64]| change_points(figures, 0.05).iter().map(|of| of.at).collect::<Vec<_>>();
        assert_eq!(places(&steps), places(&squeezed));
    }

    #[test]
    fn a_split_is_weighed_by_how_many_are_on_each_side() {
        // Five low ones, then others of which the first dozen are below the middle by a little.
        let figures = [
            0, 1, 2, 3, 4, 24, 5, 22, 6, 20, 8, 18, 10, 15, 7, 13, 9, 29, 11, 28, 12, 27, 14, 26, 16, 25, 17, 23, 19,
            21,
        ]
        .map(f64::from);
        // The sum is the largest after 17, the difference of means for its variance after 5.
        assert_eq!(strongest(&figures).unwrap().0, 5);
    }

    /// Eight rising figures are as rare as 2 in 70: shown at 4%, not at 2%.
    #[test]
    fn both_sides_of_a_change_are_looked_at_at_half_the_level() {
        let rising: Vec<f64> = (1..=8).map(f64::from).collect();
        let places = |figures: &[f64], level| change_points(figures, level).iter().map(|of| of.at).collect::<Vec<_>>();
        assert_eq!(places(&rising, 0.04), [4]);
        assert_eq!(places(&rising, strongest(&rising).unwrap().1), [0; 0], "no rarer than the level");
        let (before, after) = ([&rising[..], &[100.0; 24]].concat(), [&[-100.0; 24][..], &rising].concat());
        assert_eq!([places(&before, 0.04), places(&after, 0.04)], [[8], [24]]);
        assert_eq!([places(&before, 0.08), places(&after, 0.08)], [[4, 8], [24, 28]]);
    }

    /// Of six and six figures five of the 36 differences lie outside on either side: 18 - 1.96 sqrt(39) is 5.8.
    #[test]
    fn a_shift_has_the_interval_of_ranked_differences() {
        let (before, after) = ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 6.0, 12.0, 18.0, 24.0, 30.0]);
        // Every whole number from -5 to 30 once.
        assert_eq!(level_shift(&before, &after), (12.5, Some(Interval { low: -1.0, high: 26.0 })));
        assert_eq!(level_shift(&before[..3], &after[..3]), (5.0, None));
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_near() {
        for (probability, quantile) in [(0.5, 0.0), (0.841_345, 1.0), (0.977_25, 2.0), (0.022_75, -2.0)] {
            assert!((normal_quantile(probability) - quantile).abs() < 0.01, "{probability}");
        }
    }

    /// At most as many as the level says, also of figures that are far from normal.
    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        const DRAWS: usize = 400;
        let mut noise = noise(7);
        let alarms = |draw: &mut dyn FnMut() -> f64, nights: usize| {
            let flat = || (0..nights).map(|_| draw()).collect::<Vec<f64>>();
            std::iter::repeat_with(flat).take(DRAWS).filter(|of| !change_points(of, 0.05).is_empty()).count()
        };
        // 20 are due; three standard deviations are 13.
        for nights in [12, 60] {
            let normal = alarms(&mut || noise(), nights);
            assert!((7..=33).contains(&normal), "{nights} nights: {normal} of {DRAWS}");
        }
        let heavy = alarms(&mut || noise() / noise(), 60);
        assert!((7..=33).contains(&heavy), "heavy tails: {heavy} of {DRAWS}");
    }

    #[test]
    fn the_last_figure_is_held_against_those_before() {
        let of = departure(&[9.0, 10.0, 11.0], 14.0).unwrap();
        let half = 4.302_652_73 * (4.0f64 / 3.0).sqrt();
        assert!((of.apart - 4.0).abs() < 1e-12 && (of.interval.low - (4.0 - half)).abs() < 1e-6, "{of:?}");
        // Student's t of 3.4641 with two degrees of freedom.
        assert!((of.p_value - 0.074_18).abs() < 1e-5, "{of:?}");
        assert_eq!(departure(&[1.0, 2.0], 3.0), None);
        // Of equal figures an equal one is no departure, and any other is.
        assert_eq!(departure(&[5.0; 4], 5.0).unwrap().p_value, 1.0);
        assert_eq!(departure(&[5.0; 4], 5.1).unwrap().p_value, 0.0);
    }

    /// The rarest order of n figures is one of two (of four, where n is odd) among all ways to choose half of them.
    #[test]
    fn too_few_figures_can_show_nothing() {
        let of = |figures: f64| fewest_to_show(0.04 / figures);
        assert_eq!([of(1.0), of(9.0), of(40.0)], [Some(8), Some(12), Some(14)]);
        assert_eq!(fewest_to_show(5e-5), None, "rarer than random orders can tell");
        let step = |count: usize| (0..count).map(|at| if at < count / 2 { 1.0 } else { 2.0 }).collect::<Vec<f64>>();
        assert!(change_points(&step(11), 0.04 / 9.0).is_empty() && !change_points(&step(12), 0.04 / 9.0).is_empty());
    }
}
