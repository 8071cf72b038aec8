//! Figures of a machine night after night: at which level they are, since when, how much they vary, and how the last night is beside
//! those before it.
//!
//! A history is of results that repeat each other ([`crate::analysis::compare::repeats`]): one plan, network and label. Its nights are
//! what is independent, and the test is over their order ([`change_points`]). All figures that are tested share the rate of false
//! alarms (Bonferroni).

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::added::{self, Times};
use super::compare::{Good, State, study_figures};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::{ResultFile, Run, Test};
use crate::stats::{
    FEWEST_OF_LEVEL, FEWEST_TO_SPLIT, Interval, Statistic, TestState, Variation, change_points, departure,
    fewest_to_show, level_shift, mean, median,
};

/// How often histories without a change have a false alarm, whenever they are looked at.
const ALARMS: f64 = 0.04;
/// How often the last night of a history without a change is said to be apart, over all its figures.
const APART: f64 = 0.05;

/// What a figure of every night is called, and how it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Name {
    /// As thresholds name it, `lat.time-p90.loaded`; of a study its group and its name.
    pub key: String,
    pub unit: String,
    pub more_is_worse: bool,
    /// Whether it is tested and shown without being asked for.
    pub primary: bool,
}

/// A figure of one night.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Value {
    pub value: f64,
    /// What a change is a part of, where that is not the figure itself: of an added time, the loaded one.
    pub whole: Option<f64>,
    /// Whether it may be reported.
    pub is_sound: bool,
}

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct Night {
    /// Its file's name.
    pub file: String,
    /// When it started, as the file says.
    pub started: String,
    /// Its figures.
    pub figures: Vec<(Name, Value)>,
}

/// What nights are called: the day on which one began; with the time of day where a day has several; the file where nobody knows.
fn names(nights: &[Night]) -> Vec<String> {
    let with = |letters: usize| {
        let name = |night: &Night| match night.started.split_once('T') {
            Some(_) => night.started.chars().take(letters).collect::<String>().replacen('T', " ", 1),
            None => night.file.clone(),
        };
        nights.iter().map(name).collect::<Vec<String>>()
    };
    let is_clear = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let [day, minute, second] = ["2026-11-19", "2026-11-19T02:00", "2026-11-19T02:00:00"].map(str::len);
    [day, minute].into_iter().map(with).find(is_clear).unwrap_or_else(|| with(second))
}

/// All figures of a run that nights can be compared by.
pub fn figures(file: &ResultFile, run: &Run) -> Vec<(Name, Value)> {
    let mut all = Vec::new();
    let idle = |test: &&Test| test.phase == LoadState::Isolated;
    run.tests.iter().filter(idle).for_each(|test| of_test(&mut all, run, test));
    for figure in study_figures(file, run).into_iter().filter(|figure| figure.good != Good::Neither) {
        let key = format!("{}: {}", figure.group, figure.name);
        let name = Name { key, unit: figure.unit.to_owned(), more_is_worse: figure.good == Good::Less, primary: true };
        all.push((name, Value { value: figure.value, whole: None, is_sound: true }));
    }
    all.retain(|(_, of)| of.value.is_finite() && of.whole.is_none_or(f64::is_finite));
    all
}

/// Every statistic of a canary in every state that it has.
fn of_test(all: &mut Vec<(Name, Value)>, run: &Run, test: &Test) {
    let kernel = test.kernel;
    let headline = kernel.headline();
    let first = match run.typical(kernel, LoadState::Isolated, headline) {
        Some(_) => headline,
        // All that other programs print.
        None => Statistic::Avg,
    };
    let judgement = run.judgement(kernel);
    for statistic in Statistic::ALL {
        for state in State::ALL {
            let Some((value, whole)) = value(run, kernel, state, statistic) else { continue };
            let against = match state {
                State::Isolated => judgement.clone().of_state(TestState::Idle),
                State::Loaded => judgement.clone().of_state(TestState::Loaded),
                State::Added | State::Impact => judgement.clone(),
            };
            let unit = match state {
                State::Added => added::unit(test),
                State::Impact => "x".to_owned(),
                _ => test.unit.clone(),
            };
            let is_of_rate = matches!(state, State::Isolated | State::Loaded);
            let name = Name {
                key: format!("{kernel}.{}.{}", statistic.key(), state.key()),
                unit,
                more_is_worse: !is_of_rate || test.direction == crate::stats::Direction::Latency,
                primary: statistic == first && state != State::Impact,
            };
            all.push((name, Value { value, whole, is_sound: against.is_reportable() }));
        }
    }
}

fn value(run: &Run, kernel: Canary, state: State, statistic: Statistic) -> Option<(f64, Option<f64>)> {
    match state {
        State::Isolated => Some((run.typical(kernel, LoadState::Isolated, statistic)?, None)),
        State::Loaded => Some((run.typical(kernel, LoadState::Loaded, statistic)?, None)),
        State::Impact => Some((run.impact(kernel, statistic)?.factor, None)),
        State::Added => {
            let times = Times::of(run, kernel, statistic)?;
            Some((mean(&times.added()), Some(mean(&times.loaded))))
        }
    }
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The first night of the new level, by its place among all nights.
    pub night: usize,
    /// What it is called.
    pub since: String,
    /// The medians of both levels.
    pub before: f64,
    /// The same after it.
    pub after: f64,
    /// The change as a part of the figure before; of an added time, of the loaded time before.
    pub part: f64,
    /// Its 95% interval.
    pub interval: Option<Interval>,
    /// How often nights in random order are as far apart.
    pub p_value: f64,
    /// Whether it is for the worse.
    pub is_worse: bool,
}

/// A figure over the nights that have it.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What it is.
    #[serde(flatten)]
    pub name: Name,
    /// The places of its nights among all, and its values.
    pub values: Vec<(usize, f64)>,
    /// The wholes that changes are parts of, where those are not the values.
    #[serde(skip)]
    wholes: Option<Vec<f64>>,
    /// Nights whose figure may not be reported; they are not among the values.
    pub left_out: Vec<usize>,
    /// How many nights there are, with this figure and without.
    #[serde(skip)]
    of_nights: usize,
    /// Changes of level, in order; empty where it was not tested.
    pub changes: Vec<Change>,
    /// How much nights of the last level vary; nothing for a figure that may be below 0.
    pub coefficient_of_variation: Option<f64>,
    /// Its 95% interval.
    pub variation_interval: Option<Interval>,
}

/// Nights that repeat each other.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// What they are of.
    pub title: String,
    /// Their names, in their order.
    pub nights: Vec<String>,
    /// Their files.
    pub files: Vec<String>,
    /// How many nights a change needs at least to be shown, with so many figures; nothing where they are too many.
    pub fewest_nights: Option<usize>,
    /// Figures in the order of the last night.
    pub series: Vec<Series>,
}

/// How much worse the last night is than those of its level before it, as a part: below 0 where it is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LastNight {
    /// The part.
    pub worse: f64,
    /// Its 95% interval.
    pub interval: Interval,
    /// How often one more night of that level is as far away.
    pub p_value: f64,
}

/// How much worse the present level is than the best one before it, as a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lasting {
    /// The part.
    pub worse: f64,
    /// Its 95% interval; nothing for levels of few nights.
    pub interval: Option<Interval>,
    /// Nights of both levels, the best first.
    pub nights: (usize, usize),
    /// The first night of the present level, by its place among all nights.
    pub since: usize,
}

impl History {
    /// Of nights in their order. Figures are tested where they are primary or named in `asked`.
    pub fn of(title: String, nights: &[Night], asked: &[String]) -> Self {
        let is_asked = |name: &Name| name.primary || asked.contains(&name.key);
        let mut known = BTreeSet::new();
        let figures = nights.iter().rev().flat_map(|night| &night.figures).map(|(name, _)| name);
        let names = figures.filter(|name| is_asked(name) && known.insert(name.key.as_str()));
        let mut series: Vec<Series> = names.map(|name| Series::of(name, nights)).collect();
        let tested = series.iter().filter(|series| series.values.len() >= FEWEST_TO_SPLIT).count();
        // Before there are enough of any, as if there were of all.
        let level = ALARMS / if tested > 0 { tested } else { series.len().max(1) } as f64;
        let names = self::names(nights);
        series.iter_mut().for_each(|series| series.look_for_changes(level, &names));
        let files = nights.iter().map(|night| night.file.clone()).collect();
        History { title, nights: names, files, fewest_nights: fewest_to_show(level), series }
    }

    /// Whether there are too few nights to tell of any figure: then that nothing is shown says nothing.
    pub fn has_too_few_nights(&self) -> bool {
        let most = self.series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        self.fewest_nights.is_none_or(|fewest| most < fewest)
    }

    /// Figures whose last night is apart from its level by more than nights differ, the farthest first. Figures share the rate
    /// (Bonferroni).
    pub fn last_night_apart(&self) -> Vec<(&Series, LastNight)> {
        let all: Vec<_> = self.series.iter().filter_map(|series| Some((series, series.departure()?))).collect();
        let level = APART / all.len().max(1) as f64;
        let mut apart: Vec<_> = all.into_iter().filter(|(_, of)| of.p_value < level).collect();
        apart.sort_by(|(_, a), (_, b)| b.worse.abs().total_cmp(&a.worse.abs()));
        apart
    }

    /// A figure by its key.
    pub fn series(&self, key: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name.key == key)
    }

    /// Changes with the figure that changed, those of the last night first, and of one night the largest.
    pub fn changes(&self) -> Vec<(&Series, &Change)> {
        let mut all: Vec<_> =
            self.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
        all.sort_by(|(_, a), (_, b)| (b.night, b.part.abs()).partial_cmp(&(a.night, a.part.abs())).expect("numbers"));
        all
    }
}

impl Series {
    fn of(name: &Name, nights: &[Night]) -> Self {
        let (mut values, mut wholes, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (at, night) in nights.iter().enumerate() {
            match night.figures.iter().find(|(of, _)| of.key == name.key) {
                Some((_, of)) if of.is_sound => {
                    values.push((at, of.value));
                    wholes.extend(of.whole);
                }
                Some(_) => left_out.push(at),
                None => {}
            }
        }
        let wholes = Some(wholes).filter(|wholes| !wholes.is_empty() && wholes.len() == values.len());
        Series {
            name: name.clone(),
            values,
            wholes,
            left_out,
            of_nights: nights.len(),
            changes: Vec::new(),
            coefficient_of_variation: None,
            variation_interval: None,
        }
    }

    /// Whether changes are factors: of figures above 0, which an added time need not be.
    fn is_of_factors(&self) -> bool {
        self.wholes.is_none() && self.values.iter().all(|(_, value)| *value > 0.0)
    }

    /// The values so that changes add up.
    fn scaled(&self) -> Vec<f64> {
        let is_of_factors = self.is_of_factors();
        self.values.iter().map(|(_, value)| if is_of_factors { value.ln() } else { *value }).collect()
    }

    /// What an additive change is a part of, over these places among the values.
    fn whole(&self, places: Range<usize>) -> f64 {
        let of = |at: usize| self.wholes.as_ref().map_or(self.values[at].1, |wholes| wholes[at]);
        median(&mut places.map(of).collect::<Vec<f64>>()).map_or(f64::NAN, f64::abs)
    }

    /// A change of the scaled values as a part of what it was before.
    fn part(&self, change: f64, whole: f64) -> f64 {
        if self.is_of_factors() { change.exp_m1() } else { change / whole }
    }

    /// The median of these places among the values.
    pub fn median_of(&self, places: Range<usize>) -> f64 {
        median(&mut self.values[places].iter().map(|(_, value)| *value).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    }

    fn look_for_changes(&mut self, level: f64, names: &[String]) {
        let found = change_points(&self.scaled(), level);
        let places: Vec<usize> = found.iter().map(|of| of.at).chain([self.values.len()]).collect();
        let mut from = 0;
        for (at, change) in found.iter().enumerate() {
            let (old, new) = (from..change.at, change.at..places[at + 1]);
            let whole = self.whole(old.clone());
            let night = self.values[change.at].0;
            self.changes.push(Change {
                night,
                since: names[night].clone(),
                before: self.median_of(old),
                after: self.median_of(new),
                part: self.part(change.shift, whole),
                interval: change
                    .interval
                    .map(|of| Interval { low: self.part(of.low, whole), high: self.part(of.high, whole) }),
                p_value: change.p_value,
                is_worse: (change.shift > 0.0) == self.name.more_is_worse,
            });
            from = change.at;
        }
        let last: Vec<f64> = self.last_level().map(|at| self.values[at].1).collect();
        let variation = Variation::of(&last).filter(|_| self.wholes.is_none());
        self.coefficient_of_variation = variation.map(|of| of.coefficient);
        self.variation_interval = variation.map(|of| of.interval);
    }

    /// The places of the values since the last change.
    fn last_level(&self) -> Range<usize> {
        let since = self.changes.last().map_or(0, |change| change.night);
        self.values.partition_point(|(night, _)| *night < since)..self.values.len()
    }

    /// The places of the values of every level, in order.
    pub fn levels(&self) -> Vec<Range<usize>> {
        let place = |night: usize| self.values.partition_point(|(at, _)| *at < night);
        let starts = std::iter::once(0).chain(self.changes.iter().map(|change| place(change.night)));
        let ends = self.changes.iter().map(|change| place(change.night)).chain([self.values.len()]);
        starts.zip(ends).map(|(from, to)| from..to).collect()
    }

    /// Nights since the last change.
    pub fn of_level(&self) -> usize {
        self.last_level().len()
    }

    /// The median since the last change.
    pub fn level(&self) -> f64 {
        self.median_of(self.last_level())
    }

    /// The figure of the last night; nothing where that night has none, or one that may not be reported.
    pub fn last(&self) -> Option<f64> {
        self.values.last().filter(|(night, _)| night + 1 == self.of_nights).map(|(_, value)| *value)
    }

    /// A change of the scaled values as how much worse it is: of a rate, how much more time the same bytes take.
    fn worse_by(&self, change: f64, whole: f64) -> f64 {
        self.part(if self.name.more_is_worse { change } else { -change }, whole)
    }

    /// The same of an interval.
    fn worse_within(&self, of: Interval, whole: f64) -> Interval {
        let (one, other) = (self.worse_by(of.low, whole), self.worse_by(of.high, whole));
        Interval { low: one.min(other), high: one.max(other) }
    }

    /// The present level beside the best one before it; nothing where the level never changed.
    pub fn lasting(&self) -> Option<Lasting> {
        let levels = self.levels();
        let (present, earlier) = levels.split_last()?;
        let sign = if self.name.more_is_worse { 1.0 } else { -1.0 };
        let cost = |level: &&Range<usize>| sign * self.median_of((*level).clone());
        let best = earlier.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let scaled = self.scaled();
        let (shift, interval) = level_shift(&scaled[best.clone()], &scaled[present.clone()]);
        let whole = self.whole(best.clone());
        Some(Lasting {
            worse: self.worse_by(shift, whole),
            interval: interval.map(|of| self.worse_within(of, whole)),
            nights: (best.len(), present.len()),
            since: self.values[present.start].0,
        })
    }

    /// The last night beside those of its level before it; nothing without its figure, or with fewer than three of those.
    pub fn departure(&self) -> Option<LastNight> {
        self.last()?;
        let level = self.last_level();
        let past = level.start..level.end.checked_sub(1)?;
        if past.len() < FEWEST_OF_LEVEL {
            return None;
        }
        let scaled = self.scaled();
        let of = departure(&scaled[past.clone()], scaled[past.end])?;
        let whole = self.whole(past);
        let (worse, interval) = (self.worse_by(of.apart, whole), self.worse_within(of.interval, whole));
        Some(LastNight { worse, interval, p_value: of.p_value })
    }

    /// The variation of the nights since the last change, where the figure has one.
    pub fn variation(&self) -> Option<Variation> {
        let figures: Vec<f64> = self.last_level().map(|at| self.values[at].1).collect();
        Variation::of(&figures).filter(|_| self.wholes.is_none())
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::assemble::synthetic;

    fn night(at: usize, value: f64) -> Night {
        let name = Name { key: "lat.avg.loaded".into(), unit: "us".into(), more_is_worse: true, primary: true };
        let started = format!("2026-{:02}-{:02}T00:00:00Z", at / 28 + 1, at % 28 + 1);
        let figure = Value { value, whole: None, is_sound: true };
        Night { file: format!("n{at}.json"), started, figures: vec![(name, figure)] }
    }

    fn history(values: &[f64]) -> History {
        let nights: Vec<Night> = values.iter().enumerate().map(|(at, value)| night(at, *value)).collect();
        History::of("test".into(), &nights, &[])
    }

    /// Nights with 5% noise.
    fn nights(random: &mut SmallRng, count: usize, step_at: usize, step: f64) -> Vec<f64> {
        // After Box and Muller.
        let mut normal = || {
            let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
            (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
        };
        (0..count).map(|at| 20.0 * (0.05 * normal()).exp() * if at >= step_at { step } else { 1.0 }).collect()
    }

    /// 200 machines whose 60 nights vary by 5%: a step of 10%, on a night that is drawn among all but the first and last ten, is
    /// found within five nights of where it was on at least nine of ten; and one of twenty has an alarm where nothing changed.
    #[test]
    fn steps_are_found_and_alarms_are_rare() {
        const MACHINES: usize = 200;
        let mut random = SmallRng::seed_from_u64(11);
        let (mut found, mut alarms, mut held) = (0, 0, 0);
        for _ in 0..MACHINES {
            let step_at = random.random_range(10..=50);
            let changed = history(&nights(&mut random, 60, step_at, 1.1));
            let near = changed.series[0].changes.iter().find(|of| of.night.abs_diff(step_at) <= 5 && of.is_worse);
            found += usize::from(near.is_some());
            held += usize::from(near.and_then(|of| of.interval).is_some_and(|of| of.low <= 0.1 && of.high >= 0.1));
            alarms += usize::from(!history(&nights(&mut random, 60, 0, 1.0)).series[0].changes.is_empty());
        }
        assert!(found >= MACHINES * 9 / 10, "{found} steps of {MACHINES} were found");
        assert!(alarms <= MACHINES / 20, "{alarms} alarms on {MACHINES} machines that did not change");
        assert!(held >= found * 85 / 100, "{held} of {found} intervals hold the truth");
    }

    #[test]
    fn figures_of_one_history_share_the_alarms() {
        let mut random = SmallRng::seed_from_u64(5);
        let mut alarms = 0;
        for _ in 0..100 {
            let figures: Vec<Vec<f64>> = (0..8).map(|_| nights(&mut random, 40, 0, 1.0)).collect();
            let night_of = |at: usize| {
                let mut all = night(at, figures[0][at]);
                let (name, value) = all.figures[0].clone();
                let more = (1..8).map(|number: usize| {
                    let key = format!("figure {number}");
                    (Name { key, ..name.clone() }, Value { value: figures[number][at], ..value })
                });
                all.figures.extend(more);
                all
            };
            let all = History::of(String::new(), &(0..40).map(night_of).collect::<Vec<_>>(), &[]);
            assert_eq!(all.series.len(), 8);
            alarms += usize::from(!all.changes().is_empty());
        }
        assert!(alarms <= 11, "4 of 100 are due: {alarms}");
    }

    #[test]
    fn the_last_night_is_held_against_its_level() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut values = nights(&mut random, 40, 20, 1.5);
        values.push(20.0 * 1.5 * 1.3);
        let series = &history(&values).series[0];
        assert_eq!(series.changes.len(), 1, "{:?}", series.changes);
        let change = &series.changes[0];
        assert!(change.night == 20 && (change.part - 0.5).abs() < 0.06 && change.since == "2026-01-21", "{change:?}");
        assert!((change.before - 20.0).abs() < 1.0 && (change.after - 30.0).abs() < 1.5, "{change:?}");
        let LastNight { worse, interval, .. } = series.departure().unwrap();
        assert!((worse - 0.3).abs() < 0.05 && interval.low > 0.1 && interval.high < 0.5, "{worse} {interval:?}");
        assert!(series.coefficient_of_variation.is_some_and(|of| (0.03..0.12).contains(&of)), "{series:?}");
        assert_eq!(history(&[1.0, 2.0, 3.0]).series[0].departure(), None, "two nights are no past");
    }

    #[test]
    fn a_change_that_lasts_is_held_against_the_best_level_before() {
        let mut random = SmallRng::seed_from_u64(3);
        let flat = history(&nights(&mut random, 30, 0, 1.0));
        assert!(flat.series[0].lasting().is_none() && flat.last_night_apart().is_empty());
        // Worse by half, then most of the way back: still worse than it was.
        let mut values = nights(&mut random, 60, 20, 1.5);
        values[40..].iter_mut().for_each(|of| *of *= 1.2 / 1.5);
        let all = history(&values);
        let series = &all.series[0];
        assert_eq!((series.changes.len(), series.levels()), (2, vec![0..20, 20..40, 40..60]), "{:?}", series.changes);
        let of = series.lasting().unwrap();
        assert!((of.worse - 0.2).abs() < 0.04 && (of.nights, of.since) == ((20, 20), 40), "{of:?}");
        assert!(of.interval.is_some_and(|of| of.low > 0.1 && of.high < 0.3), "{of:?}");
        // Of a rate the best level is the highest, and what is worse is the time.
        let mut rates: Vec<Night> = values.iter().enumerate().map(|(at, of)| night(at, 1.0 / of)).collect();
        rates.iter_mut().for_each(|night| night.figures[0].0.more_is_worse = false);
        let of = History::of(String::new(), &rates, &[]).series[0].lasting().unwrap();
        assert!((of.worse - 0.2).abs() < 0.04 && of.interval.is_some_and(|of| of.low > 0.1), "{of:?}");
    }

    #[test]
    fn the_first_nights_are_too_few_and_the_last_may_be_apart() {
        let mut random = SmallRng::seed_from_u64(4);
        let mut values = nights(&mut random, 7, 0, 1.0);
        values.push(20.0 * 1.85);
        let few = history(&values[..7]);
        assert_eq!((few.fewest_nights, few.has_too_few_nights()), (Some(8), true));
        let all = history(&values);
        assert!(!all.has_too_few_nights() && all.changes().is_empty());
        let apart = all.last_night_apart();
        assert!(apart.len() == 1 && (apart[0].1.worse - 0.85).abs() < 0.2, "{apart:?}");
        // A figure that the last night lacks is not the last night's.
        let mut nights: Vec<Night> = values.iter().enumerate().map(|(at, of)| night(at, *of)).collect();
        nights.push(Night { figures: Vec::new(), ..night(8, 1.0) });
        assert!(History::of(String::new(), &nights, &[]).last_night_apart().is_empty());
    }

    #[test]
    fn nights_of_one_day_have_their_times() {
        let named = |times: &[&str]| {
            let of = |(at, started): (usize, &&str)| Night { started: (*started).to_owned(), ..night(at, 1.0) };
            names(&times.iter().enumerate().map(of).collect::<Vec<_>>())
        };
        assert_eq!(named(&["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"]), ["2026-01-01", "2026-01-02"]);
        let (morning, evening) = ("2026-01-01T02:00:00Z", "2026-01-01T20:30:07Z");
        assert_eq!(named(&[morning, evening]), ["2026-01-01 02:00", "2026-01-01 20:30"]);
        let soon = "2026-01-01T20:30:41Z";
        assert_eq!(named(&[evening, soon, "unknown"]), ["2026-01-01 20:30:07", "2026-01-01 20:30:41", "n2.json"]);
    }

    #[test]
    fn results_have_figures_as_thresholds_name_them() {
        let file = synthetic::file("tcp", None, 3.0);
        let all = figures(&file, &file.runs[0]);
        let of = |key: &str| all.iter().find(|(name, _)| name.key == key).unwrap_or_else(|| panic!("{key}"));
        let (name, added) = of("lat.time-p90.added");
        assert!(name.primary && name.more_is_worse && name.unit == "us" && added.whole.unwrap() > added.value);
        let answer = file.runs[0].answer(Canary::Lat).unwrap();
        assert!((added.value / answer.added.unwrap().value - 1.0).abs() < 1e-9);
        let (name, rate) = of("bw-sync.avg.loaded");
        assert!(name.primary && !name.more_is_worse && rate.whole.is_none() && rate.is_sound);
        assert!(!of("lat.p99.idle").0.primary && !of("lat.time-p90.impact").0.primary);
        assert_eq!(all.iter().filter(|(name, _)| name.primary).count(), 9);
        // Of a rate that halves, the same bytes take twice the time.
        let night_of = |at: usize, rate: f64| {
            let mut night = night(at, rate);
            night.figures[0].0.more_is_worse = false;
            night
        };
        let nights: Vec<Night> =
            [10.0, 10.1, 9.9, 10.0, 5.0].iter().enumerate().map(|(at, of)| night_of(at, *of)).collect();
        let LastNight { worse, .. } = History::of(String::new(), &nights, &[]).series[0].departure().unwrap();
        assert!((worse - 1.0).abs() < 0.01, "{worse}");
    }

    #[test]
    fn disturbed_nights_are_left_out_and_an_added_time_may_be_below_0() {
        let mut nights: Vec<Night> =
            (0..20).map(|at| night(at, if at < 10 { -0.1 } else { 0.9 } + 0.01 * (at % 3) as f64)).collect();
        nights.iter_mut().for_each(|night| night.figures[0].1.whole = Some(2.0));
        nights[15].figures[0].1 = Value { value: 1e9, whole: Some(1e9), is_sound: false };
        let all = History::of(String::new(), &nights, &[]);
        let series = &all.series[0];
        assert_eq!((series.left_out.as_slice(), series.values.len()), (&[15][..], 19));
        assert!(series.changes.len() == 1 && series.changes[0].night == 10, "{series:?}");
        assert!((series.changes[0].part - 0.5).abs() < 0.01, "a part of the loaded time: {series:?}");
        assert_eq!((series.coefficient_of_variation, all.changes().len()), (None, 1));
    }
}
