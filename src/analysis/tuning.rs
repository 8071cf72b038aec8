//! Settings that took turns on every placement, ranked by the time that load adds; and which of them is best, if one is.

use crate::kernel::Canary;
use crate::result::{RankedSetting, Run, TestRanking, TuningRecord, distinct};
use crate::stats::{FEWEST_PLACEMENTS, RankedPair, Ranking};

/// The settings of these runs by every test. All pairs of all tests are one family.
pub fn rank(runs: &[Run]) -> Vec<TestRanking> {
    let runs: Vec<(&str, &Run)> = runs.iter().filter_map(|run| Some((run.setting.as_deref()?, run))).collect();
    let kernels = distinct(runs.iter().flat_map(|(_, run)| run.answers().map(|answer| answer.test.kernel)));
    let tests: Vec<Test<'_>> = kernels.into_iter().filter_map(|kernel| Test::of(&runs, kernel)).collect();
    let values: Vec<Vec<Vec<f64>>> =
        tests.iter().map(|test| if test.why_not.is_some() { Vec::new() } else { test.added_us.clone() }).collect();
    tests.into_iter().zip(Ranking::of_all(&values)).map(|(test, ranking)| test.ranked(ranking)).collect()
}

/// One test with every setting.
struct Test<'a> {
    kernel: Canary,
    title: String,
    settings: Vec<&'a str>,
    /// What load adds with each setting on each placement that all have, in us.
    added_us: Vec<Vec<f64>>,
    why_not: Option<String>,
}

impl<'a> Test<'a> {
    fn of(runs: &[(&'a str, &'a Run)], kernel: Canary) -> Option<Self> {
        let title = runs.iter().find_map(|(_, run)| run.answer(kernel)).map(|answer| answer.test.title.clone())?;
        let added = |run: &Run, seed: u64| {
            let placement = run.placements.iter().find(|of| of.seed == seed)?;
            Some(1e-3 * placement.added_ns(kernel, kernel.headline())?)
        };
        let (_, first) = runs.first()?;
        let seeds = first.placements.iter().map(|of| of.seed);
        let common: Vec<u64> = seeds.filter(|&seed| runs.iter().all(|(_, run)| added(run, seed).is_some())).collect();
        let of_run = |run: &Run| common.iter().filter_map(|&seed| added(run, seed)).collect::<Vec<f64>>();
        let against =
            |(setting, run): &(&str, &Run)| Some(format!("with {setting}: {}", run.judgement(kernel).why_not()?));
        let why_not = match common.len() {
            _ if runs.len() < 2 => Some("one setting was measured".to_owned()),
            placements if placements < FEWEST_PLACEMENTS => {
                Some(format!("{placements} placements are too few: {FEWEST_PLACEMENTS} are needed"))
            }
            _ => runs.iter().find_map(against).map(|why| format!("not reportable {why}")),
        };
        let settings = runs.iter().map(|(setting, _)| *setting).collect();
        Some(Test { kernel, title, settings, added_us: runs.iter().map(|(_, run)| of_run(run)).collect(), why_not })
    }

    fn ranked(self, ranking: Option<Ranking>) -> TestRanking {
        let placements = self.added_us.first().map_or(0, Vec::len);
        let (places, pairs) = ranking.map(|of| (of.places, of.pairs)).unwrap_or_default();
        let ranked = |(at, setting): (usize, &str)| RankedSetting {
            setting: setting.to_owned(),
            place: places.get(at).copied(),
        };
        let settings = self.settings.into_iter().enumerate().map(ranked).collect();
        TestRanking { kernel: self.kernel, title: self.title, settings, placements, pairs, why_not: self.why_not }
    }
}

/// What a ranking comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice<'a> {
    /// With this setting load adds less than with every other by some test, and more than with none by any.
    Best(&'a str),
    /// Some differ, and none is better than all others.
    Mixed,
    /// No difference was shown.
    Alike,
    /// No test could be ranked, for this reason.
    CannotSay(&'a str),
}

/// Which setting is best by all tests together.
pub fn choice(record: &TuningRecord) -> Choice<'_> {
    let ranked: Vec<&TestRanking> = record.ranking.iter().filter(|of| of.why_not.is_none()).collect();
    let Some(first) = ranked.first() else {
        let why = record.ranking.iter().find_map(|of| of.why_not.as_deref());
        return Choice::CannotSay(why.unwrap_or("nothing was measured idle and under load with two settings"));
    };
    let orders: Vec<(usize, usize)> =
        ranked.iter().flat_map(|of| of.pairs.iter().filter_map(RankedPair::order)).collect();
    let is_best = |one: &usize| {
        let less = |other: usize| orders.contains(&(*one, other));
        let others = (0..first.settings.len()).filter(|other| other != one);
        others.into_iter().all(less) && orders.iter().all(|(_, greater)| greater != one)
    };
    match (0..first.settings.len()).find(is_best) {
        Some(best) => Choice::Best(&first.settings[best].setting),
        None if orders.is_empty() => Choice::Alike,
        None => Choice::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::synthetic;

    /// A run with each setting whose figures are so many times worse under load.
    fn runs(settings: &[(&str, f64, f64)]) -> Vec<Run> {
        let run = |(setting, lat, others): &(&str, f64, f64)| {
            let impact = |kernel: Canary| if kernel == Canary::Lat { *lat } else { *others };
            let run = synthetic::file_of("tcp", None, impact).runs.remove(0);
            Run { setting: Some((*setting).to_owned()), ..run }
        };
        settings.iter().map(run).collect()
    }

    fn record(runs: &[Run]) -> TuningRecord {
        TuningRecord { ranking: rank(runs), ..TuningRecord::default() }
    }

    fn places(of: &TestRanking) -> Vec<Option<usize>> {
        of.settings.iter().map(|of| of.place).collect()
    }

    #[test]
    fn a_setting_that_is_better_by_some_test_and_worse_by_none_is_best() {
        let runs = runs(&[("a", 5.0, 4.0), ("b", 2.0, 4.0), ("c", 9.0, 4.0)]);
        let found = record(&runs);
        assert_eq!(places(&found.ranking[0]), [Some(2), Some(1), Some(3)]);
        assert!(found.ranking[1..].iter().all(|of| places(of) == [Some(1); 3]), "{found:?}");
        assert_eq!(choice(&found), Choice::Best("b"));
        // 2 us idle: three times as much is 6 us more, on top of what the headline of the skewed samples makes of it.
        let pair = found.ranking[0].pairs[0];
        assert!((pair.first, pair.second) == (0, 1) && pair.difference < -5.0, "{pair:?}");
    }

    #[test]
    fn settings_that_are_better_by_different_tests_are_mixed() {
        assert_eq!(choice(&record(&runs(&[("a", 2.0, 9.0), ("b", 9.0, 2.0)]))), Choice::Mixed);
        assert_eq!(choice(&record(&runs(&[("a", 2.0, 2.0), ("b", 2.0, 2.0), ("c", 9.0, 9.0)]))), Choice::Mixed);
    }

    #[test]
    fn equal_settings_are_alike() {
        let found = record(&runs(&[("a", 4.0, 4.0), ("b", 4.0, 4.0)]));
        assert_eq!(choice(&found), Choice::Alike);
        assert!(found.ranking.iter().all(|of| places(of) == [Some(1); 2]));
    }

    #[test]
    fn placements_that_not_all_settings_have_are_left_out() {
        let mut runs = runs(&[("a", 5.0, 5.0), ("b", 2.0, 2.0)]);
        runs[1].placements.truncate(3);
        let found = record(&runs);
        assert_eq!((found.ranking[0].placements, choice(&found)), (3, Choice::Best("b")));
        runs[1].placements.truncate(2);
        let found = record(&runs);
        let Choice::CannotSay(why) = choice(&found) else { panic!("{found:?}") };
        assert!(why.contains("2 placements are too few"), "{why}");
        assert_eq!(choice(&record(&runs[..1])), Choice::CannotSay("one setting was measured"));
    }

    #[test]
    fn what_may_not_be_reported_is_not_ranked() {
        let mut runs = runs(&[("a", 5.0, 5.0), ("b", 2.0, 2.0)]);
        runs[1].tests.iter_mut().flat_map(|test| &mut test.load).for_each(|load| load.delivered_bytes = 0);
        let found = record(&runs);
        let Choice::CannotSay(why) = choice(&found) else { panic!("{found:?}") };
        assert!(why.starts_with("not reportable with b: "), "{why}");
    }
}
