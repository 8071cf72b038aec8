//! Holds thresholds against figures: of a run, of a comparison, of repeated jobs and of a history.
//!
//! There are four answers. A figure fails when all of its interval does, passes when none of it does, and is inconclusive
//! otherwise; then it is said how many placements or jobs would decide. Where the answer of a run may not be reported
//! ([`crate::stats::Judgement`]) it is inconclusive, and why is said. A figure of one state that has too few placements
//! for an interval is judged by itself. A figure that was not measured is neither passed nor failed; what a plan cannot
//! measure is refused before the run ([`Threshold::unmeasurable`]).

use super::{Of, Part, Threshold};
use crate::analysis::added::{self, Times};
use crate::analysis::checks::Check;
use crate::analysis::compare::{Comparison, JobSet, State, Verdict, variation_of};
use crate::analysis::history::{History, LastNight, Lasting, Series};
use crate::engine::LoadState;
use crate::plan::Plan;
use crate::result::{Run, Test};
use crate::stats::{Added, FEWEST_PLACEMENTS, Interval, Jobs, Outcome, Statistic, Variation, fewest_to_carry, needed};
use crate::text::{factor, figure, in_percent, percent, within};

/// A figure with what is known of it.
struct Found {
    value: f64,
    interval: Option<Interval>,
    /// How it is shown.
    form: fn(f64) -> String,
    unit: String,
    /// Whether its interval is symmetric on a logarithmic scale.
    is_log: bool,
    /// What the interval is over: their name, how many on a side, and on how many sides.
    over: (&'static str, usize, usize),
}

impl Found {
    /// The figure of a test as the first screen has it, by the mean of times over placements, and its interval; nothing with
    /// too few of them.
    fn over_placements(run: &Run, test: &Test, statistic: Statistic) -> Option<Self> {
        let times = run.placements.iter().map(|of| of.time_ns(test.kernel, test.phase, statistic));
        let times = times.collect::<Option<Vec<f64>>>().filter(|times| times.len() >= FEWEST_PLACEMENTS)?;
        let (count, times) = (times.len(), Added::of(&times)?);
        // A time is above zero, and so is all of its interval: the same width, as a factor.
        let interval = times.interval.map(|of| {
            let factor = ((of.high - of.low) / 2.0 / times.value).exp();
            let (one, other) = (test.figure_of(times.value / factor), test.figure_of(times.value * factor));
            Interval { low: one.min(other), high: one.max(other) }
        });
        let (value, unit) = (test.figure_of(times.value), test.unit.clone());
        Some(Found { value, interval, form: figure, unit, is_log: true, over: ("placements", count, 1) })
    }

    /// How many more placements or jobs would decide, in words.
    fn more(&self, limit: f64) -> String {
        let (name, count, sides) = self.over;
        // What is asked about one night no other can tell.
        if count == 1 && sides == 1 && name == "nights" {
            return "nights differ too much to tell of one".into();
        }
        let Some(Interval { low, high }) = self.interval else { return format!("more {name} are needed to tell") };
        let scale = |value: f64| if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (half, distance) = ((scale(high) - scale(low)) / 2.0, (scale(self.value) - scale(limit)).abs());
        match needed(count, sides, half, distance) {
            Some(number) => {
                let side = if sides > 1 { " a side" } else { "" };
                format!("by this spread about {} more {name}{side} decide", (number - count).max(1))
            }
            None => format!("too near the limit for any number of {name}"),
        }
    }
}

impl Threshold {
    /// A figure in the unit that the limit was given in; in its own where that has no digits for it.
    fn shown(&self, found: &Found) -> String {
        let is_near = |scale: f64| (0.01..1e6).contains(&(found.value / scale).abs());
        let given = self.unit.filter(|(unit, scale)| matches!(*unit, "x" | "%") || is_near(*scale));
        let scale = match given {
            Some((unit, scale)) if !matches!(unit, "x" | "%") => scale,
            _ => 1.0,
        };
        let form = |value: f64| match given {
            Some(("%", _)) if found.unit.is_empty() => in_percent(value),
            _ => (found.form)(value / scale),
        };
        let shown = match found.interval.filter(|of| of.low < of.high) {
            None => form(found.value),
            interval => within(found.value, interval, form),
        };
        match given {
            Some((unit, _)) if unit != "x" && (unit != "%" || found.unit.is_empty()) => {
                let of_rank = if found.unit.ends_with("/rank") { "/rank" } else { "" };
                format!("{shown} {unit}{of_rank}")
            }
            _ if found.unit.is_empty() => shown,
            _ => format!("{shown} {}", found.unit),
        }
    }

    /// Why this plan cannot answer it, where that is known before the run.
    pub fn unmeasurable(&self, plan: &Plan) -> Option<String> {
        let Some(test) = plan.canaries.iter().find(|test| test.kernel == self.kernel) else {
            let measured: Vec<&str> = plan.canaries.iter().map(|test| test.kernel.info().key).collect();
            return Some(format!("the plan does not measure {}, but {}", self.kernel, measured.join(", ")));
        };
        if self.needs_load() && plan.congestors.is_empty() {
            return Some("without congestors nothing is measured under load".into());
        }
        let key = self.statistic.key();
        let is_by_time = !Statistic::MESSAGES.contains(&self.statistic);
        if self.kernel.is_application() && is_by_time {
            return Some(format!("{key} is of messages in time; a program has avg and percentiles of repetitions"));
        }
        let counts = test.counts;
        let blocks = [counts.iterations, counts.rings, counts.measurements, plan.blocks].map(u64::from);
        let paced = plan.most_slots(test).unwrap_or(u64::MAX);
        let most = blocks.into_iter().fold(1, u64::saturating_mul).min(paced);
        if let Some(fewest) = self.fewest_iterations().filter(|fewest| most < *fewest) {
            return Some(format!("{key} needs {fewest} iterations of a placement, the plan has at most {most}"));
        }
        let placements = plan.placements as usize;
        let alone = placements == 1 && self.state == State::Impact && self.statistic == Statistic::Avg;
        let needs_several = matches!(self.state, State::Added | State::Impact) && !alone;
        (needs_several && placements < FEWEST_PLACEMENTS && plan.precision.is_none()).then(|| {
            format!("it has no interval with --placements {placements}: at least {FEWEST_PLACEMENTS} are needed")
        })
    }

    /// So many iterations a placement has to have for a percentile of messages.
    fn fewest_iterations(&self) -> Option<u64> {
        let is_of_messages = Statistic::MESSAGES.contains(&self.statistic) && !self.kernel.is_application();
        self.statistic.quantile().filter(|of| is_of_messages && *of > 0.5).map(fewest_to_carry)
    }

    /// Holds the threshold against a run called `name`. Ratios need a comparison: see [`Threshold::check_ratios`].
    pub fn check(&self, name: &str, run: &Run) -> Check {
        let against = self.state.why_not(run, self.kernel, self.statistic);
        let mut check = self.judge(name, self.found(run).as_ref(), against.as_deref());
        let is_there = run.test(self.kernel, LoadState::Isolated).is_some();
        if let (Outcome::NotMeasured, true, Some(fewest)) = (check.outcome, is_there, self.fewest_iterations()) {
            let key = self.statistic.key();
            check.found = format!(
                "was measured by too few iterations: {key} needs {fewest} of a placement; raise --budget or lower --placements"
            );
        }
        check
    }

    /// The figure of a run.
    pub fn value(&self, run: &Run) -> Option<f64> {
        self.found(run).map(|found| found.value)
    }

    fn found(&self, run: &Run) -> Option<Found> {
        let of_state = |phase| {
            let test = run.test(self.kernel, phase)?;
            Found::over_placements(run, test, self.statistic).or_else(|| {
                let value = run.typical(self.kernel, phase, self.statistic)?;
                // There is none to be had: judged by itself.
                let interval = Some(Interval { low: value, high: value });
                let unit = test.unit.clone();
                Some(Found { value, interval, form: figure, unit, is_log: true, over: ("placements", 1, 1) })
            })
        };
        match self.state {
            State::Isolated => of_state(LoadState::Isolated),
            State::Loaded => of_state(LoadState::Loaded),
            State::Added => Times::of(run, self.kernel, self.statistic).map(|times| {
                let (scale, placements) = (1.0, times.loaded.len());
                let jobs = Jobs { figures: vec![times.added()], scale, same_placements: false };
                let unit = run.test(self.kernel, LoadState::Loaded).map(added::unit).unwrap_or_default();
                let (value, interval) = (jobs.mean(), jobs.interval());
                Found { value, interval, form: figure, unit, is_log: false, over: ("placements", placements, 1) }
            }),
            State::Impact => run.impact(self.kernel, self.statistic).map(|of| {
                let over = ("placements", run.placements.len(), 1);
                Found { value: of.factor, interval: of.interval, form: factor, unit: String::new(), is_log: true, over }
            }),
        }
    }

    /// Holds a threshold of a coefficient of variation against every set of repeated jobs.
    pub fn check_variation(&self, repeated: &[JobSet<'_>]) -> Vec<Check> {
        if repeated.is_empty() {
            let found = format!("takes at least {} complete results of one system and plan", Variation::FEWEST);
            let (run, threshold) = ("variation between jobs".to_owned(), self.to_string());
            let required = self.required();
            return vec![Check { run, threshold, required, outcome: Outcome::NotMeasured, found }];
        }
        let check = |set: &JobSet<'_>| {
            let found = variation_of(set, self.kernel, self.state, self.statistic).map(|of| Found {
                value: of.coefficient,
                interval: Some(of.interval),
                form: figure,
                unit: String::new(),
                is_log: true,
                over: ("jobs", of.count, 1),
            });
            let against = set.why_not(self.state, self.kernel, self.statistic);
            self.judge(&set.label, found.as_ref(), against.as_deref())
        };
        repeated.iter().map(check).collect()
    }

    /// Holds a threshold of change, level or variation against a history.
    pub fn check_history(&self, history: &History) -> Check {
        let series = history.series(&self.key()).filter(|series| !series.values.is_empty());
        let Some(series) = series else { return self.judge(&history.title, None, None) };
        match self.of {
            Of::Variation => self.check_noise(history, series),
            Of::Level => self.check_level(history, series),
            _ => self.check_last_night(history, series),
        }
    }

    fn check_noise(&self, history: &History, series: &Series) -> Check {
        let found = series.variation().map(|of| Found {
            value: of.coefficient,
            interval: Some(of.interval),
            form: figure,
            unit: String::new(),
            is_log: true,
            over: ("nights", of.count, 1),
        });
        if found.is_none() {
            return self.answer(
                history,
                Outcome::Inconclusive,
                "has too few nights to tell: at least 3 of a level are needed",
            );
        }
        self.judge(&history.title, found.as_ref(), None)
    }

    fn check_last_night(&self, history: &History, series: &Series) -> Check {
        let last = history.nights.len().checked_sub(1);
        if last.is_some() && series.left_out.last().copied() == last {
            let why = "may not be reported for the last night: `tailback show` of its file says why";
            return self.answer(history, Outcome::Inconclusive, why);
        }
        if series.values.last().map(|(night, _)| *night) != last {
            return self.answer(history, Outcome::NotMeasured, "was not measured in the last night");
        }
        let Some(LastNight { worse, interval, .. }) = series.departure() else {
            let before = series.of_level() - 1;
            let why =
                format!("has too few nights to tell: {before} of its level before the last one, at least 3 are needed");
            return self.answer(history, Outcome::Inconclusive, &why);
        };
        let (interval, unit) = (Some(interval), "%".to_owned());
        let found = Found { value: worse, interval, form: percent, unit, is_log: false, over: ("nights", 1, 1) };
        self.judge(&history.title, Some(&found), None)
    }

    fn check_level(&self, history: &History, series: &Series) -> Check {
        let nights = series.values.len();
        let Some(Lasting { worse, interval, nights: (best, present), since }) = series.lasting() else {
            return match history.fewest_nights {
                Some(fewest) if nights >= fewest => {
                    let outcome = self.operator.judge(Some(Interval { low: 0.0, high: 0.0 }), self.number);
                    self.answer(history, outcome, &format!("shows no change of level in {nights} nights"))
                }
                Some(fewest) => {
                    let why = format!("has too few nights to tell: {nights}, at least {fewest} are needed");
                    self.answer(history, Outcome::Inconclusive, &why)
                }
                None => self.answer(history, Outcome::Inconclusive, "is one of too many figures to tell which changed"),
            };
        };
        let (over, unit) = (("nights", best.min(present), 2), format!("% since {}", history.nights[since]));
        let found = Found { value: worse, interval, form: percent, unit, is_log: false, over };
        self.judge(&history.title, Some(&found), None)
    }

    fn answer(&self, history: &History, outcome: Outcome, found: &str) -> Check {
        let (run, threshold, required) = (history.title.clone(), self.to_string(), self.required());
        Check { run, threshold, required, outcome, found: found.to_owned() }
    }

    /// Holds a ratio threshold against every side but the first.
    pub fn check_ratios(&self, comparison: &Comparison) -> Vec<Check> {
        let row = comparison
            .rows
            .iter()
            .find(|row| row.kernel == self.kernel && row.state == self.state && row.statistic == self.statistic);
        let jobs = comparison.jobs.iter().copied().min().unwrap_or(0);
        let ratio = |side: usize| {
            let of = row.and_then(|row| row.cells[side].ratio)?;
            let over = ("jobs", jobs, 2);
            Some(Found {
                value: of.factor,
                interval: of.interval,
                form: factor,
                unit: String::new(),
                is_log: true,
                over,
            })
        };
        let names = comparison.sides.iter().enumerate().skip(1);
        let against = |side: usize| {
            let verdict = row.and_then(|row| row.cells[side].verdict);
            (verdict == Some(Verdict::NotReportable)).then_some("see the comparison")
        };
        names.map(|(side, name)| self.judge(name, ratio(side).as_ref(), against(side))).collect()
    }

    /// The answer of what was found; inconclusive where something is `against` it.
    fn judge(&self, run: &str, found: Option<&Found>, against: Option<&str>) -> Check {
        let (run, threshold, required) = (run.to_owned(), self.to_string(), self.required());
        let Some(found) = found else {
            let found = "was not measured, or by too few iterations for this statistic".into();
            return Check { run, threshold, required, outcome: Outcome::NotMeasured, found };
        };
        // The end of an interval is a number like any other.
        let looked_at = found.interval.map(|of| match self.part {
            Part::Whole => of,
            Part::Low => Interval { high: of.low, ..of },
            Part::High => Interval { low: of.high, ..of },
        });
        let outcome = match against {
            Some(_) => Outcome::Inconclusive,
            None => self.operator.judge(looked_at, self.number),
        };
        let shown = self.shown(found);
        let none = if found.interval.is_none() { ", without an interval" } else { "" };
        let more = match (outcome, against) {
            (_, Some(why)) => format!("; not reportable: {why}"),
            (Outcome::Inconclusive, None) => format!("; {}", found.more(self.number)),
            _ => String::new(),
        };
        Check { run, threshold, required, outcome, found: format!("is {shown}{none}{more}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::{repeated, sides};
    use crate::assemble::synthetic;
    use crate::kernel::Canary;

    /// Nights of one figure: its value, and whether it may be reported; none where the night lacks it.
    fn history(nights: &[Option<(f64, bool)>]) -> History {
        use crate::analysis::history::{Name, Night, Value};
        let night = |(at, figure): (usize, &Option<(f64, bool)>)| {
            let name = Name { key: "lat.avg.loaded".into(), unit: "us".into(), more_is_worse: true, primary: true };
            let of = |&(value, is_sound): &(f64, bool)| (name.clone(), Value { value, whole: None, is_sound });
            let started = format!("2026-01-{:02}T02:00:00Z", at + 1);
            Night { file: format!("n{at}.json"), started, figures: figure.iter().map(of).collect() }
        };
        History::of("run".into(), &nights.iter().enumerate().map(night).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn conditions_of_a_history_speak_of_the_last_night_or_of_the_level() {
        let sound = |at: usize| Some((if at < 12 { 10.0 } else { 13.0 } + 0.1 * (at % 4) as f64, true));
        let nights: Vec<_> = (0..24).map(sound).collect();
        let check = |condition: &str, nights: &[Option<(f64, bool)>]| {
            let check = condition.parse::<Threshold>().unwrap().check_history(&history(nights));
            (check.outcome, check.found)
        };
        let (change, level) = ("lat.avg.loaded.change > 10%", "lat.avg.loaded.level > 10%");
        assert_eq!(check(change, &nights).0, Outcome::Pass, "the new level is what nights are like now");
        let (outcome, found) = check(level, &nights);
        assert!(
            outcome == Outcome::Fail && found.starts_with("is +29.") && found.ends_with("] % since 2026-01-13"),
            "{found}"
        );
        assert_eq!(check("lat.avg.loaded.level > 50%", &nights).0, Outcome::Pass);
        // Of a night that may not be reported no figure is told, not even another night's; of the level nights before still tell.
        let mut disturbed = nights.clone();
        disturbed[23] = Some((50.0, false));
        let (outcome, found) = check(change, &disturbed);
        assert!(
            outcome == Outcome::Inconclusive && found.starts_with("may not be reported for the last night"),
            "{found}"
        );
        assert_eq!(check(level, &disturbed).0, Outcome::Fail);
        disturbed[23] = None;
        assert_eq!(check(change, &disturbed), (Outcome::NotMeasured, "was not measured in the last night".into()));
        // Too few to tell is no pass.
        for (condition, count, expected) in [
            (change, 3, "has too few nights to tell: 2 of its level before the last one, at least 3"),
            (level, 7, "has too few nights to tell: 7, at least 8 are needed"),
            ("lat.avg.loaded.cv > 0.1", 2, "has too few nights to tell"),
        ] {
            let (outcome, found) = check(condition, &nights[..count]);
            assert!(
                outcome == Outcome::Inconclusive && found.starts_with(expected),
                "{condition}: {outcome:?} {found}"
            );
        }
        assert_eq!(check(level, &nights[..12]), (Outcome::Pass, "shows no change of level in 12 nights".into()));
        assert_eq!(check("bw.avg.loaded.level > 10%", &nights).0, Outcome::NotMeasured);
    }

    #[test]
    fn known_impacts_pass_fail_or_stay_open() {
        let file = synthetic::file("tcp", None, 5.0);
        let check = |text: &str| text.parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        assert_eq!(check("lat.time-p90.impact > 10").outcome, Outcome::Pass);
        assert_eq!(check("bw-sync.p99.impact > 10").outcome, Outcome::Pass);
        let failed = check("lat.p99.impact > 4");
        assert!(failed.outcome == Outcome::Fail && failed.found.starts_with("is 5.0"), "{failed:?}");
        assert_eq!(check("lat.time-p90.impact > 5").outcome, Outcome::Inconclusive);
        assert_eq!(check("lat.time-p90.impact.high > 5").outcome, Outcome::Fail);
        assert_eq!(check("lat.time-p90.impact.low > 5").outcome, Outcome::Pass);
        assert_eq!(check("lat.p50.isolated > 1").outcome, Outcome::Fail);
        let missing = check("a2a.p99.impact > 4");
        assert_eq!(
            (missing.outcome, missing.found.as_str()),
            (Outcome::NotMeasured, "was not measured, or by too few iterations for this statistic")
        );
    }

    #[test]
    fn what_is_required_is_said_and_the_figure_in_its_unit() {
        let file = synthetic::file("tcp", None, 5.0);
        let check = |text: &str| text.parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        let plain = check("bw-sync.avg.idle < 1");
        let value = |found: &str| found.trim_start_matches("is ").split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(plain.found.ends_with(" MiB/s/rank"), "{plain:?}");
        let gbit = check("bw-sync.avg.idle < 0.001 Gbit/s");
        assert_eq!((gbit.outcome, gbit.required.as_str()), (Outcome::Pass, "bw-sync.avg.idle >= 0.001 Gbit/s"));
        let ratio = value(&gbit.found) / (value(&plain.found) * 0.008_388_608);
        assert!(gbit.found.ends_with(" Gbit/s/rank") && (ratio - 1.0).abs() < 0.02, "{gbit:?}");
        let ms = check("lat.time-p90.added > 200ms");
        assert!(ms.found.ends_with(" ms") && ms.required == "lat.time-p90.added <= 200ms", "{ms:?}");
        let far = check("lat.time-p90.added > 200 s");
        assert!(far.found.ends_with(" us") && far.required.ends_with(" 200 s"), "{far:?}");
        let signs = ["lat.avg.idle >= 1", "lat.avg.idle <= 1"].map(|text| check(text).required);
        assert_eq!(signs, ["lat.avg.idle < 1", "lat.avg.idle > 1"]);
        assert!(check("lat.time-p90.impact > 2x").found.contains("x ["), "{:?}", check("lat.time-p90.impact > 2x"));
    }

    #[test]
    fn what_may_not_be_reported_is_inconclusive() {
        let mut file = synthetic::file("tcp", None, 5.0);
        let loaded = file.runs[0].tests.iter_mut().filter(|test| test.phase == LoadState::Loaded);
        loaded.for_each(|test| test.covered = Some(0.2));
        let check = |text: &str| text.parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        for figure in ["lat.time-p90.added > 1", "lat.time-p90.impact > 1000", "lat.time-p90.loaded > 1"] {
            let open = check(figure);
            assert_eq!(open.outcome, Outcome::Inconclusive, "{open:?}");
            assert!(open.found.contains("not reportable: loaded, samples cover 20% of the time"), "{open:?}");
        }
        assert_eq!(check("lat.time-p90.isolated > 1").outcome, Outcome::Fail, "of that state nothing is amiss");
    }

    #[test]
    fn added_times_and_figures_of_a_state_are_judged_by_their_intervals() {
        let file = synthetic::file("tcp", None, 5.0);
        let times = Times::of(&file.runs[0], Canary::Lat, Statistic::HEADLINE).unwrap();
        let check = |state: &str, limit: f64| {
            format!("lat.time-p90.{state} > {limit}").parse::<Threshold>().unwrap().check("a", &file.runs[0])
        };
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        for (state, value) in [("added", mean(&times.added())), ("loaded", mean(&times.loaded))] {
            assert_eq!(check(state, 0.8 * value).outcome, Outcome::Fail);
            assert_eq!(check(state, 1.2 * value).outcome, Outcome::Pass);
            let open = check(state, 1.02 * value);
            assert_eq!(open.outcome, Outcome::Inconclusive);
            // Placements differ by a standard deviation of 6%: 2% are told by some forty.
            let more: usize = open.found.split("about ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((20..80).contains(&more), "{open:?}");
        }
        assert!(check("added", 1.0).found.contains("] us"), "{:?}", check("added", 1.0));
    }

    #[test]
    fn a_coefficient_of_variation_is_of_repeated_jobs() {
        // Loaded figures of 9 to 11: 7.6% of their mean, by 9 jobs.
        let impacts = [9.0, 9.25, 9.5, 9.75, 10.0, 10.25, 10.5, 10.75, 11.0];
        let files = synthetic::named(impacts.map(|impact| synthetic::file("tcp", None, impact)));
        let sets: Vec<JobSet<'_>> = sides(&files).into_iter().map(JobSet::from).collect();
        let check = |text: &str| {
            let checks = text.parse::<Threshold>().unwrap().check_variation(&repeated(&sets));
            assert_eq!(checks.len(), 1);
            checks[0].clone()
        };
        let truth = (impacts.iter().map(|of| (of - 10.0f64).powi(2)).sum::<f64>() / 8.0).sqrt() / 10.0;
        let open = check(&format!("lat.avg.loaded.cv > {}", 1.2 * truth));
        assert_eq!(open.outcome, Outcome::Inconclusive);
        assert!(open.found.starts_with(&format!("is {truth:.3} [")) && open.found.contains("more jobs"), "{open:?}");
        assert_eq!(check("lat.avg.loaded.cv > 0.03").outcome, Outcome::Fail);
        assert_eq!(check("lat.avg.loaded.cv > 0.3").outcome, Outcome::Pass);
        assert_eq!(check("lat.avg.isolated.cv > 0.01").outcome, Outcome::Pass);
        let none = "lat.avg.loaded.cv > 1".parse::<Threshold>().unwrap().check_variation(&repeated(&sets[..2]));
        assert_eq!(none[0].outcome, Outcome::NotMeasured);
    }

    #[test]
    fn what_a_plan_cannot_measure_is_known_before_the_run() {
        let plan = crate::plan::Preset::Gpcnet.plan();
        let several = Plan { placements: 5, ..plan.clone() };
        let why = |text: &str, plan: &Plan| text.parse::<Threshold>().unwrap().unmeasurable(plan).unwrap_or_default();
        assert!(why("a2a.p99.impact > 1", &several).starts_with("the plan does not measure a2a, but lat,"));
        assert!(why("lat.time-p90.added > 1", &plan).starts_with("it has no interval with --placements 1: at least 3"));
        assert_eq!((why("lat.avg.impact > 1", &plan), why("lat.p99.loaded > 1", &plan)), Default::default());
        assert_eq!(why("lat.time-p90.added > 1", &several), "");
        let mut few = several.clone();
        few.canaries[0].counts.iterations = 1;
        few.canaries[0].counts.rings = 10;
        few.canaries[0].counts.measurements = 5;
        let most = 50 * u64::from(few.blocks);
        let expected = format!("p999 needs 10000 iterations of a placement, the plan has at most {most}");
        assert_eq!((why("lat.p999.loaded > 1", &few), why("lat.time-p90.loaded > 1", &few)), (expected, String::new()));
        // 30 s in 5 placements: at 50 ms no state of one has a thousand, however long it grows; at 10 ms it may.
        let paced = |pace_s| Plan {
            budget_s: 30.0,
            canary_loop: crate::plan::Loop::Open,
            pace_s: Some(pace_s),
            ..several.clone()
        };
        let most = "p99 needs 1000 iterations of a placement, the plan has at most 360";
        assert_eq!(
            (why("lat.p99.loaded > 1", &paced(0.05)), why("lat.p99.loaded > 1", &paced(0.01))),
            (most.into(), String::new())
        );
        let unloaded = Plan { congestors: Vec::new(), ..several };
        assert!(why("lat.avg.added > 1", &unloaded).starts_with("without congestors"));
        assert_eq!(why("lat.avg.isolated > 1", &unloaded), "");
    }

    #[test]
    fn an_impact_without_an_interval_is_inconclusive() {
        let mut file = synthetic::file("tcp", None, 5.0);
        file.runs[0].impacts.clear();
        let check = "lat.p99.impact > 4".parse::<Threshold>().unwrap().check("a", &file.runs[0]);
        assert_eq!(check.outcome, Outcome::Inconclusive);
        assert!(check.found.ends_with("without an interval; more placements are needed to tell"), "{check:?}");
    }
}
