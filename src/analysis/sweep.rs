//! A sweep's curves: where the impact of load begins, where a curve bends, and where it crosses a limit.
//!
//! A point shows an impact where its mean over placements (of logarithms, by Student's t) is above 1.1, under which a load test
//! is said to have no congestion, significantly at 5% with all points of all curves taken together (Holm). The onset is the
//! least value of a key of loads that shows one: where nothing has an impact, an onset is claimed in at most one of twenty
//! sweeps, however many points there are and in whatever order.
//!
//! The knee is the point farthest below the straight line between the ends of the curve of added time, at least a tenth of the
//! curve's height: below it more load costs little, above it much.

use crate::analysis::Severity;
use crate::analysis::threshold::Threshold;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::plan::{PROTOCOL, Swept, SweptValue, TRANSPORT, values_of};
use crate::result::{Answer, Crossing, CurvePoint, Landmark, Run, SweepCurve, SweepRecord, distinct};
use crate::stats::{FAMILY_ERROR, FEWEST_PLACEMENTS, holm, monotonic, paired};

/// Fewer points have no knee.
const FEWEST_OF_KNEE: usize = 5;
/// A curve that is nowhere so much of its height below a straight line has no knee.
const STRAIGHT: f64 = 0.1;

/// The curves of a sweep's runs.
pub fn record(runs: &[Run], sweep: &[Swept], crosses: &[Threshold]) -> Option<SweepRecord> {
    let first = sweep.first()?;
    let runs: Vec<&Run> = runs.iter().filter(|run| !run.point.is_empty()).collect();
    let families = distinct(runs.iter().map(|run| (network_of(run, sweep), run.point.get(1).cloned())));
    let mut curves: Vec<(Vec<&Run>, SweepCurve)> = Vec::new();
    for (network, under) in families {
        let of = |run: &&&Run| network_of(run, sweep) == network && run.point.get(1) == under.as_ref();
        let mut own: Vec<&Run> = runs.iter().filter(of).copied().collect();
        own.sort_by(|one, other| number(one).partial_cmp(&number(other)).unwrap_or(std::cmp::Ordering::Equal));
        for kernel in distinct(own.iter().flat_map(|run| run.answers().map(|answer| answer.test.kernel))) {
            let known: Vec<&Run> = own.iter().copied().filter(|run| run.answer(kernel).is_some()).collect();
            let points = known.iter().filter_map(|run| point(run, &run.answer(kernel)?)).collect();
            let none = || Landmark::None(String::new());
            let (network, under) = (network.clone(), under.clone());
            let curve =
                SweepCurve { network, under, kernel, points, onset: none(), knee: none(), crossings: Vec::new() };
            curves.push((known, curve));
        }
    }
    judge(&mut curves);
    for (runs, curve) in &mut curves {
        curve.onset = onset(first, &curve.points);
        curve.knee = knee(first, curve);
        let own = crosses.iter().filter(|condition| condition.kernel == curve.kernel);
        curve.crossings = own.map(|condition| crossing(condition, runs, &curve.points)).collect();
    }
    Some(SweepRecord { curves: curves.into_iter().map(|(_, curve)| curve).collect() })
}

/// What the points of a curve go over: the run's network, as far as it is not swept.
fn network_of(run: &Run, sweep: &[Swept]) -> String {
    match (values_of(sweep, TRANSPORT), values_of(sweep, PROTOCOL)) {
        (Some(all), _) => all.join(", "),
        (None, Some(_)) => {
            let under = run.congestors_over.as_ref().map(|of| format!(" under {}", of.network())).unwrap_or_default();
            format!("{}{under}", run.transport.network())
        }
        (None, None) => run.network(),
    }
}

fn number(run: &Run) -> Option<f64> {
    run.point.first()?.number
}

fn point(run: &Run, answer: &Answer<'_>) -> Option<CurvePoint> {
    let loads = run.test(answer.test.kernel, LoadState::Loaded).into_iter().flat_map(|test| &test.load);
    Some(CurvePoint {
        value: run.point.first()?.clone(),
        load_mib_per_s: loads.map(|load| load.delivered_mib_per_s).sum(),
        idle: answer.idle,
        loaded: answer.loaded,
        added_us: run.added_ns(answer.test.kernel, answer.statistic).map(|of| of.scaled(1e-3)),
        impact: answer.impact,
        p_value: None,
        shows_impact: false,
    })
}

/// Gives every point its p-value, adjusted for all points of all curves.
fn judge(curves: &mut [(Vec<&Run>, SweepCurve)]) {
    let of_curve = |(runs, curve): &(Vec<&Run>, SweepCurve)| -> Vec<Option<f64>> {
        runs.iter().map(|run| own_p_value(run, curve.kernel)).collect()
    };
    let all: Vec<Vec<Option<f64>>> = curves.iter().map(of_curve).collect();
    let adjusted = adjusted(&all);
    let points = curves.iter_mut().flat_map(|(_, curve)| &mut curve.points);
    for (point, p_value) in points.zip(adjusted.into_iter().flatten()) {
        // Files hold nothing that is next to 0.
        point.p_value = p_value.map(|of| if of < 1e-30 { 0.0 } else { of });
        point.shows_impact = p_value.is_some_and(|of| of < FAMILY_ERROR);
    }
}

/// The p-value of one point by itself; nothing where it may not be reported.
fn own_p_value(run: &Run, kernel: Canary) -> Option<f64> {
    let factors = run.factors(kernel, kernel.headline()).filter(|_| run.judgement(kernel).is_reportable())?;
    p_value(&factors)
}

/// How likely such factors of placements are where the impact is at most what is called none.
pub fn p_value(factors: &[f64]) -> Option<f64> {
    let none = vec![Severity::Mild.from_factor(); factors.len()];
    let found = paired(&none, factors)?;
    let p_value = found.p_value?;
    Some(if found.ratio > 1.0 { p_value / 2.0 } else { 1.0 - p_value / 2.0 })
}

/// The p-values of all points of all curves, corrected for all of them together.
pub fn adjusted(curves: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let all: Vec<f64> = curves.iter().flatten().filter_map(|of| *of).collect();
    let mut corrected = holm(&all).into_iter();
    let mut next = |of: &Option<f64>| of.and_then(|_| corrected.next());
    curves.iter().map(|curve| curve.iter().map(&mut next).collect()).collect()
}

/// The first point that shows an impact, of a key whose greater values are more load.
fn onset(swept: &Swept, points: &[CurvePoint]) -> Landmark {
    let none = |why: &str| Landmark::None(why.to_owned());
    if !swept.is_load() {
        return Landmark::None(format!("more of {} is not more load", swept.key));
    }
    match points.iter().position(|point| point.shows_impact) {
        Some(at) => Landmark::Point(at),
        None if points.iter().all(|point| point.p_value.is_none()) => {
            Landmark::None(format!("nothing is reportable with {FEWEST_PLACEMENTS} placements or more"))
        }
        None => none("no value shows an impact"),
    }
}

/// The point farthest below the line between the ends of the curve.
fn knee(swept: &Swept, curve: &SweepCurve) -> Landmark {
    let none = |why: &str| Landmark::None(why.to_owned());
    if curve.onset.point().is_none() {
        return none("without an onset there is none");
    }
    let known = |point: &CurvePoint| Some((point.value.number?, point.added_us?.value));
    let Some(line) = curve.points.iter().map(known).collect::<Option<Vec<(f64, f64)>>>() else {
        return Landmark::None(format!("some values of {} are no numbers, or have no added time", swept.key));
    };
    if line.len() < FEWEST_OF_KNEE {
        return Landmark::None(format!("{} points are too few: {FEWEST_OF_KNEE} are needed", line.len()));
    }
    farthest_below(&line).map_or_else(|| none("the curve is straight, or bends down"), Landmark::Point)
}

/// Of points from left to right, the one that is farthest below the line from the first to the last, if it is far enough.
pub fn farthest_below(points: &[(f64, f64)]) -> Option<usize> {
    let (&(left, start), &(right, end)) = (points.first()?, points.last()?);
    let low = points.iter().map(|of| of.1).fold(f64::INFINITY, f64::min);
    let height = points.iter().map(|of| of.1).fold(f64::NEG_INFINITY, f64::max) - low;
    let below = |(x, y): (f64, f64)| (start + (end - start) * (x - left) / (right - left) - y) / height;
    let (at, depth) = points.iter().map(|&of| below(of)).enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    (depth >= STRAIGHT && end > start).then_some(at)
}

/// Where a condition begins to hold, along the curve as far as it only rises or falls.
fn crossing(condition: &Threshold, runs: &[&Run], points: &[CurvePoint]) -> Crossing {
    let known = points.iter().zip(runs).enumerate();
    let values: Vec<(usize, f64)> = known.filter_map(|(at, (_, run))| Some((at, condition.value(run)?))).collect();
    let rises = condition.holds(f64::INFINITY);
    let smooth = monotonic(&values.iter().map(|of| of.1).collect::<Vec<_>>(), rises);
    let holds: Vec<bool> = smooth.iter().map(|value| condition.holds(*value)).collect();
    let first = holds.iter().position(|holds| *holds).filter(|at| *at > 0);
    let between = first.map(|at| [values[at - 1].0, values[at].0]);
    let at = first.and_then(|at| {
        let [before, after] = [at - 1, at].map(|of| (points[values[of].0].value.number, smooth[of]));
        let share = (condition.limit() - before.1) / (after.1 - before.1);
        Some(before.0? + share * (after.0? - before.0?)).filter(|of| of.is_finite())
    });
    let holds_at_last = holds.last().copied().unwrap_or(false);
    Crossing { condition: condition.to_string(), between, at, holds_at_last }
}

/// The curve whose onset is the least, with that point.
pub fn first_onset(record: &SweepRecord) -> Option<(&SweepCurve, &CurvePoint)> {
    let all = record.curves.iter().filter_map(|curve| Some((curve, &curve.points[curve.onset.point()?])));
    let order = |point: &CurvePoint| (point.value.number.unwrap_or(0.0), -point.impact.map_or(0.0, |of| of.factor));
    all.min_by(|(_, one), (_, other)| order(one).partial_cmp(&order(other)).unwrap_or(std::cmp::Ordering::Equal))
}

/// The values of the first key, in the order of the curves.
pub fn values(record: &SweepRecord) -> Vec<SweptValue> {
    distinct(record.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.value.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    /// A run at each rate whose figures are so many times worse under load.
    fn runs(points: &[(&str, f64)]) -> Vec<Run> {
        let run = |(rate, impact): &(&str, f64)| {
            let mut run = synthetic::file_of("tcp", None, |_| *impact).runs.remove(0);
            let swept = swept();
            let number = swept.number(rate);
            run.point = vec![SweptValue { key: swept.key, value: (*rate).to_owned(), number }];
            run
        };
        points.iter().map(run).collect()
    }

    fn swept() -> Swept {
        "congestor.rate=1%,100%".parse().unwrap()
    }

    fn curve(points: &[(&str, f64)], crosses: &[&str]) -> SweepCurve {
        let crosses: Vec<Threshold> = crosses.iter().map(|of| of.parse().unwrap()).collect();
        record(&runs(points), &[swept()], &crosses).unwrap().curves.remove(0)
    }

    const RISING: [(&str, f64); 6] =
        [("10%", 1.0), ("25%", 1.0), ("40%", 1.05), ("60%", 1.6), ("80%", 5.0), ("100%", 9.0)];

    #[test]
    fn the_onset_is_the_least_load_that_is_shown_to_have_an_impact() {
        let found = curve(&RISING, &[]);
        assert_eq!((found.kernel, found.onset.point()), (Canary::Lat, Some(3)), "{found:?}");
        let shows: Vec<bool> = found.points.iter().map(|point| point.shows_impact).collect();
        assert_eq!(shows, [false, false, false, true, true, true]);
        assert_eq!(found.knee.point(), Some(3), "{:?}", found.knee);
        // In whatever order they are given.
        let mut turned = RISING;
        turned.reverse();
        assert_eq!(curve(&turned, &[]).points[3].value.value, "60%");
    }

    #[test]
    fn points_over_several_networks_are_one_curve() {
        let run = |key: &str, value: &str, transport: &str, protocol: Option<&str>| {
            let mut run = synthetic::file_of(transport, protocol, |_| 3.0).runs.remove(0);
            run.point = vec![SweptValue { key: key.into(), value: value.into(), number: None }];
            run
        };
        let protocols = [run(PROTOCOL, "put", "tcp", Some("put")), run(PROTOCOL, "get", "tcp", Some("get"))];
        let transports = [run(TRANSPORT, "mpi", "mpi", None), run(TRANSPORT, "tcp", "tcp", Some("eager"))];
        for (runs, swept, network) in
            [(protocols, "protocol=put,get", "tcp"), (transports, "transport=mpi,tcp", "mpi, tcp")]
        {
            let swept: Swept = swept.parse().unwrap();
            let found = record(&runs, std::slice::from_ref(&swept), &[]).unwrap().curves.remove(0);
            let values: Vec<&str> = found.points.iter().map(|point| point.value.value.as_str()).collect();
            let all: Vec<&str> = swept.values.iter().map(String::as_str).collect();
            assert_eq!((found.network.as_str(), values), (network, all));
            assert_eq!(found.onset, Landmark::None(format!("more of {} is not more load", swept.key)));
        }
    }

    #[test]
    fn what_has_no_onset_says_why() {
        let flat = curve(&[("50%", 1.0), ("100%", 1.0)], &[]);
        assert_eq!(flat.onset, Landmark::None("no value shows an impact".into()));
        assert_eq!(flat.knee, Landmark::None("without an onset there is none".into()));
        let short = curve(&[("50%", 1.0), ("100%", 9.0)], &[]);
        assert_eq!(short.knee, Landmark::None("2 points are too few: 5 are needed".into()));
        let mut weak = runs(&[("50%", 9.0), ("100%", 9.0)]);
        weak.iter_mut().for_each(|run| run.placements.truncate(2));
        let found = record(&weak, &[swept()], &[]).unwrap().curves.remove(0);
        assert!(matches!(&found.onset, Landmark::None(why) if why.starts_with("nothing is reportable")), "{found:?}");
    }

    #[test]
    fn crossings_lie_between_the_points_beside_them() {
        let found = curve(&RISING, &["lat.time-p90.impact > 3", "lat.time-p90.impact > 50", "bw.avg.impact > 2"]);
        assert_eq!(found.crossings.len(), 2, "of this canary");
        let [first, never] = &found.crossings[..] else { unreachable!() };
        assert!(first.between == Some([3, 4]) && first.holds_at_last, "{first:?}");
        assert!(first.at.is_some_and(|at| at > 0.6 && at < 0.8), "{first:?}");
        assert_eq!((never.between, never.at, never.holds_at_last), (None, None, false));
    }

    #[test]
    fn a_knee_is_where_a_curve_bends_up() {
        let bent = [(0.0, 0.0), (1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (4.0, 5.0)];
        assert_eq!(farthest_below(&bent), Some(3));
        let straight = [0.0, 1.0, 2.0, 3.0, 4.0].map(|x| (x, x));
        assert_eq!(farthest_below(&straight), None);
        let down = [(0.0, 0.0), (1.0, 4.0), (2.0, 4.5), (3.0, 4.8), (4.0, 5.0)];
        assert_eq!(farthest_below(&down), None);
    }

    /// Numbers from a fixed generator, nearly normal.
    fn noise(state: &mut u64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (*state >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum - 6.0
    }

    /// How many of so many sweeps claim an onset: 8 points, 3 canaries, 6 placements that share what placements share.
    fn claims(sweeps: u64, impact: impl Fn(usize) -> f64) -> usize {
        let claims = |seed: &u64| {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut curve = || -> Vec<Option<f64>> {
                let placements: Vec<f64> = (0..6).map(|_| 0.2 * noise(&mut state)).collect();
                let mut factor = |at: usize, own: &f64| (impact(at).ln() + own + 0.2 * noise(&mut state)).exp();
                let mut point = |at| placements.iter().map(|own| factor(at, own)).collect::<Vec<f64>>();
                (0..8).map(|at| p_value(&point(at))).collect()
            };
            let curves: Vec<Vec<Option<f64>>> = (0..3).map(|_| curve()).collect();
            adjusted(&curves).iter().flatten().any(|of| of.is_some_and(|of| of < FAMILY_ERROR))
        };
        (1..=sweeps).filter(claims).count()
    }

    #[test]
    fn a_key_that_does_nothing_has_an_onset_in_at_most_one_of_twenty_sweeps() {
        // At the very limit of what is called none, too.
        for impact in [1.0, Severity::Mild.from_factor()] {
            let claimed = claims(200, |_| impact);
            assert!(claimed <= 10, "{claimed} of 200 sweeps with an impact of {impact}");
        }
        assert!(claims(20, |at| if at < 4 { 1.0 } else { 4.0 }) == 20, "and an impact is found");
    }
}
