//! The small version: seconds, with the other tests.

use tailback::stats::{AllPairs, Samples, Spread, Statistic, Withheld, one_placement, paired, unpaired};

use super::process::{Draw, Process};
use super::study::{coverage, effects};
use super::{PLACEMENT_SD, bound, falls_short};

/// All figures of few runs together: they depend on each other, so the bound leaves room.
fn check(process: Process, sd: f64) {
    const RUNS: u64 = 20;
    let found = coverage(process, sd, RUNS, 150.0);
    let counted: Vec<f64> = found.iter().filter(|of| !falls_short(process, sd, of.figure)).map(|of| of.held).collect();
    let held = counted.iter().sum::<f64>() / counted.len() as f64;
    assert!(held >= bound(process) - 0.08, "{process:?}, sd {sd}: {found:?}");
}

#[test]
fn independent_latencies_are_covered() {
    check(Process::Independent, PLACEMENT_SD);
}

#[test]
fn autocorrelated_latencies_are_covered() {
    check(Process::Autocorrelated, PLACEMENT_SD);
}

#[test]
fn autocorrelated_latencies_are_covered_where_placements_are_alike() {
    check(Process::Autocorrelated, 0.0);
}

#[test]
fn bimodal_latencies_are_covered() {
    check(Process::LOADED[2], PLACEMENT_SD);
}

#[test]
fn heavy_tailed_latencies_are_covered() {
    check(Process::HeavyTail, PLACEMENT_SD);
}

/// The part of `runs` seeds for which `claim` holds.
fn part(runs: u64, claim: impl Fn(&mut Draw) -> bool) -> f64 {
    (0..runs).filter(|&seed| claim(&mut Draw::new(seed))).count() as f64 / runs as f64
}

fn near(found: f64, wanted: f64, runs: u64) -> bool {
    (found - wanted).abs() < 3.5 * (wanted * (1.0 - wanted) / runs as f64).sqrt()
}

fn factors(sd: f64, draw: &mut Draw) -> Vec<f64> {
    effects(sd, draw).iter().map(|log| log.exp()).collect()
}

#[test]
fn mean_and_next_placement_lie_where_they_are_said_to() {
    const RUNS: u64 = 4000;
    let mean = part(RUNS, |draw| !Spread::of(&factors(0.4, draw)).unwrap().interval.unwrap().excludes(1.0));
    assert!(near(mean, 0.95, RUNS), "{mean}");
    let next = part(RUNS, |draw| {
        let spread = Spread::of(&factors(0.4, draw)).unwrap();
        !spread.prediction.unwrap().excludes((0.4 * draw.normal()).exp())
    });
    assert!(near(next, 0.95, RUNS), "{next}");
}

#[test]
fn equal_runs_are_told_apart_in_one_of_twenty() {
    const RUNS: u64 = 4000;
    let pairs = part(RUNS, |draw| paired(&factors(0.4, draw), &factors(0.4, draw)).unwrap().p_value.unwrap() < 0.05);
    assert!(near(pairs, 0.05, RUNS), "{pairs}");
    // Welch's is a little under its nominal rate.
    let groups = part(RUNS, |draw| unpaired(&factors(0.4, draw), &factors(0.1, draw)).unwrap().p_value.unwrap() < 0.05);
    assert!(groups < 0.06 && groups > 0.03, "{groups}");
}

#[test]
fn of_equal_alternatives_at_most_one_in_twenty_is_named() {
    const RUNS: u64 = 2000;
    for alternatives in [3, 5] {
        let named = part(RUNS, |draw| {
            let common = effects(0.4, draw);
            let one =
                |draw: &mut Draw| effects(0.1, draw).iter().zip(&common).map(|(own, common)| own + common).collect();
            let found = AllPairs::of(&(0..alternatives).map(|_| one(draw)).collect::<Vec<_>>()).unwrap();
            found.least.or(found.greatest).is_some()
        });
        assert!(named <= 0.05, "{alternatives}: {named}");
    }
}

/// Coverage of one placement's own average, and how often it has an interval at all.
fn one_placement_of(process: Process) -> (f64, f64) {
    const RUNS: u64 = 200;
    let blocks = |seconds: f64, draw: &mut Draw| {
        let (mut isolated, mut loaded) = (Samples::new(), Samples::new());
        Process::Isolated.block(0.0, seconds * 1e9, draw, &mut isolated);
        process.block(0.0, seconds * 1e9, draw, &mut loaded);
        (isolated, loaded)
    };
    let mean = |samples: &Samples| samples.total().mean_ns();
    let long = blocks(100.0, &mut Draw::new(7));
    let truth = mean(&long.1) / mean(&long.0);
    let (mut given, mut held) = (0, 0);
    for seed in 0..RUNS {
        let (isolated, loaded) = blocks(0.8, &mut Draw::new(seed));
        match one_placement(Statistic::Avg, &isolated, &loaded) {
            Ok(found) => {
                given += 1;
                held += u32::from(!found.interval.excludes(truth));
            }
            Err(why) => assert!(matches!(why, Withheld::Autocorrelated { .. }), "{why}"),
        }
    }
    (f64::from(held) / f64::from(given), f64::from(given) / RUNS as f64)
}

#[test]
fn one_placement_covers_its_own_average_or_says_nothing() {
    let (held, given) = one_placement_of(Process::Independent);
    println!("independent: {:.1}% hold, {:.0}% given", 100.0 * held, 100.0 * given);
    assert!(held > 0.90 && given > 0.7, "{held} {given}");
    let (held, given) = one_placement_of(Process::Autocorrelated);
    println!("autocorrelated: {:.1}% hold, {:.0}% given", 100.0 * held, 100.0 * given);
    assert!(held > 0.80, "{held} {given}");
}
