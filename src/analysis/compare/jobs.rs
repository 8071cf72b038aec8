//! The jobs of one side, and how one of their figures differs from the first side's.
//!
//! Jobs are what is independent (see [`crate::stats::Jobs`]). Placements stand in for them in two cases only, where sides
//! are one job each: runs of one job, which took turns on every placement, and simulated networks, where a job is what
//! its seed draws and nothing else.

use super::sides::Side;
use super::verdict::same_placements;
use super::{State, Verdict};
use crate::analysis::added::{self, Times};
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::Test;
use crate::stats::{self, Components, Difference, Direction, JobVariance, Statistic, mean, paired_difference};

/// One side of a comparison: a job, or several of the same kind.
#[derive(Clone, Debug)]
pub struct JobSet<'a> {
    /// What tables call it.
    pub label: String,
    /// Its jobs.
    pub jobs: Vec<Side<'a>>,
}

impl<'a> From<Side<'a>> for JobSet<'a> {
    fn from(job: Side<'a>) -> Self {
        JobSet { label: job.label.clone(), jobs: vec![job] }
    }
}

impl<'a> JobSet<'a> {
    /// Jobs under what their names begin with in common, and their number.
    pub fn of(jobs: Vec<Side<'a>>) -> Self {
        let first = jobs.first().map_or("", |job| job.label.as_str());
        let shared = |name: &str| first.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        let length = jobs.iter().map(|job| shared(&job.label)).min().unwrap_or(0);
        let common: String = first.chars().take(length).collect();
        // Half a number is none.
        let next = first.chars().nth(length).is_some_and(|next| next.is_ascii_digit());
        let common = if next { common.trim_end_matches(|last: char| last.is_ascii_digit()) } else { &common };
        let common = common.trim_end_matches(|last: char| !last.is_alphanumeric());
        let name = if common.is_empty() { first } else { common };
        let label = if jobs.len() == 1 { first.to_owned() } else { format!("{name} ({} jobs)", jobs.len()) };
        JobSet { label, jobs }
    }

    /// The kernels that all of its jobs measured, in the order of the first.
    pub(super) fn kernels(&self) -> Vec<Canary> {
        let mut kernels = self.jobs[0].kernels();
        kernels.retain(|kernel| self.jobs.iter().all(|job| job.kernels().contains(kernel)));
        kernels
    }

    /// What is against a figure of a canary in any of its jobs.
    pub fn why_not(&self, state: State, kernel: Canary, statistic: Statistic) -> Option<String> {
        self.jobs.iter().find_map(|job| Some(format!("{}: {}", job.label, state.why_not(job.run, kernel, statistic)?)))
    }

    /// Without jobs whose answer may not be reported.
    pub(super) fn reportable(&self, kernel: Canary) -> JobSet<'a> {
        let jobs = self.jobs.iter().filter(|job| job.run.judgement(kernel).is_reportable());
        JobSet { label: self.label.clone(), jobs: jobs.cloned().collect() }
    }

    /// The same where enough of them are left to show how they differ; else all.
    pub(super) fn sound(&self, kernel: Canary) -> JobSet<'a> {
        let sound = self.reportable(kernel);
        if sound.jobs.len() > 1 { sound } else { JobSet { label: self.label.clone(), jobs: self.jobs.clone() } }
    }

    /// Whether two of its jobs have the same placements.
    fn repeats_placements(&self) -> bool {
        let pairs = self.jobs.iter().enumerate().flat_map(|(at, one)| self.jobs[..at].iter().map(move |of| (one, of)));
        pairs.into_iter().any(|(one, other)| same_placements(one, other))
    }
}

/// Whether the placements of two sides are as independent as jobs.
pub(super) fn by_placement(one: &JobSet<'_>, other: &JobSet<'_>) -> bool {
    let ([one], [other]) = (&one.jobs[..], &other.jobs[..]) else { return false };
    std::ptr::eq(one.file, other.file) || (one.file.machine.is_some() && other.file.machine.is_some())
}

/// A kernel on one side.
pub(super) struct Measured<'a> {
    side: &'a JobSet<'a>,
    kernel: Canary,
}

impl<'a> Measured<'a> {
    pub(super) fn of(side: &'a JobSet<'a>, kernel: Canary) -> Self {
        Measured { side, kernel }
    }

    /// The figure over all placements and jobs: the mean of added times, the geometric mean of the others.
    pub(super) fn value(&self, state: State, statistic: Statistic) -> Option<f64> {
        if state == State::Added {
            return Some(self.jobs(state, statistic)?.mean());
        }
        let logs: Option<Vec<f64>> =
            self.side.jobs.iter().map(|job| Some(value(job, self.kernel, state, statistic)?.ln())).collect();
        match &logs?[..] {
            // As it is in the file, to the last digit.
            [_] => value(&self.side.jobs[0], self.kernel, state, statistic),
            logs => Some(mean(logs).exp()),
        }
    }

    /// Each job's figure on each of its placements, so that more is worse: added times, or logarithms.
    pub(super) fn jobs(&self, state: State, statistic: Statistic) -> Option<stats::Jobs> {
        let side = self.side;
        let figures = |job: &Side<'_>| match state {
            State::Added => Some(Times::of(job.run, self.kernel, statistic)?.added()),
            _ => logarithms(job, self.kernel, state, statistic),
        };
        let figures: Vec<Vec<f64>> = side.jobs.iter().map(figures).collect::<Option<_>>()?;
        let scale = if state == State::Added { self.loaded(statistic)? } else { 1.0 };
        Some(stats::Jobs { figures, scale, same_placements: side.repeats_placements() })
    }

    /// The loaded time in us, mean over jobs and placements.
    pub(super) fn loaded(&self, statistic: Statistic) -> Option<f64> {
        let of = |job: &Side<'_>| Some(mean(&Times::of(job.run, self.kernel, statistic)?.loaded));
        Some(mean(&self.side.jobs.iter().map(of).collect::<Option<Vec<f64>>>()?))
    }

    /// How it differs from `base`, and what to say where there is no test.
    pub(super) fn beside(
        &self,
        base: &Self,
        state: State,
        statistic: Statistic,
        history: &[JobSet<'_>],
    ) -> (Option<Difference>, Verdict) {
        let both = base.jobs(state, statistic).zip(self.jobs(state, statistic));
        let Some((before, after)) = both else { return (None, Verdict::Unknown) };
        let all = || base.side.jobs.iter().chain(&self.side.jobs);
        let same = all().all(|job| same_placements(&base.side.jobs[0], job));
        if by_placement(base.side, self.side) {
            let found = match same {
                true => paired_difference(&before.figures[0], &after.figures[0]),
                false => over_placements(&before, &after),
            };
            return (found, Verdict::Unknown);
        }
        let known: Vec<stats::Jobs> =
            history.iter().filter_map(|set| Measured::of(set, self.kernel).jobs(state, statistic)).collect();
        let known = JobVariance::pooled(&known);
        // A log of another program has one figure in all, whose spread is not known.
        let printed = all().any(|job| job.run.placements.is_empty());
        let found = stats::difference(&before, &after, same, known.as_ref());
        match printed {
            true => (found.map(|of| Difference::untested(of.value)), Verdict::Unknown),
            false => (found, Verdict::OneJob),
        }
    }
}

/// Placements that have nothing to do with each other, each as independent as a job.
fn over_placements(before: &stats::Jobs, after: &stats::Jobs) -> Option<Difference> {
    let each = |of: &stats::Jobs| stats::Jobs {
        figures: of.figures[0].iter().map(|figure| vec![*figure]).collect(),
        scale: of.scale,
        same_placements: false,
    };
    let (before, after) = (each(before), each(after));
    let found = stats::difference(&before, &after, false, None)?;
    let few = before.figures.len().min(after.figures.len()) < stats::FEWEST_PLACEMENTS;
    Some(if few { Difference::untested(found.value) } else { found })
}

/// A job's figure over all placements: their geometric mean, which ratios are of; of one placement, and of another program's
/// results, what the test has.
fn value(job: &Side<'_>, kernel: Canary, state: State, statistic: Statistic) -> Option<f64> {
    let of = |phase| match job.run.figures(kernel, phase, statistic).as_deref() {
        None | Some([_]) => job.run.test(kernel, phase)?.figure(statistic),
        Some(each) => Some(mean(&each.iter().map(|figure| figure.ln()).collect::<Vec<f64>>()).exp()),
    };
    match state {
        State::Isolated => of(LoadState::Isolated),
        State::Loaded => of(LoadState::Loaded),
        State::Added => None,
        State::Impact => job.run.impact(kernel, statistic).map(|of| of.factor),
    }
}

/// The logarithms of a job's figure, placement by placement or in all, with a sign that makes more worse.
fn logarithms(job: &Side<'_>, kernel: Canary, state: State, statistic: Statistic) -> Option<Vec<f64>> {
    let each = match state {
        State::Isolated => job.run.figures(kernel, LoadState::Isolated, statistic),
        State::Loaded => job.run.figures(kernel, LoadState::Loaded, statistic),
        State::Added => None,
        State::Impact => job.run.factors(kernel, statistic),
    };
    let each = each.or_else(|| Some(vec![value(job, kernel, state, statistic)?]))?;
    let falls = state != State::Impact && kernel.info().direction == Direction::Bandwidth;
    let logs: Vec<f64> = each.iter().map(|figure| if falls { -figure.ln() } else { figure.ln() }).collect();
    logs.iter().all(|log| log.is_finite()).then_some(logs)
}

/// What the variance of a canary's added time is made of.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ComponentRow {
    /// The canary.
    pub title: String,
    /// As parts of the loaded time.
    #[serde(flatten)]
    pub components: Components,
    /// The standard deviation of single messages under load, likewise; absent where samples were not kept.
    pub message: Option<f64>,
}

/// Of all sides and the history together.
pub(super) fn components(sets: &[&JobSet<'_>], kernel: Canary, title: &str) -> Option<ComponentRow> {
    let statistic = kernel.headline();
    let (mut jobs, mut blocks, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for set in sets {
        let Some(of) = Measured::of(set, kernel).jobs(State::Added, statistic) else { continue };
        for job in &set.jobs {
            let scaled = |block: Vec<f64>| block.into_iter().map(|added| added / of.scale).collect::<Vec<f64>>();
            blocks.extend(added::blocks(job.run, kernel).into_iter().map(scaled));
            let samples = job.run.test(kernel, LoadState::Loaded).and_then(Test::samples);
            messages.extend(samples.map(|samples| samples.stdev() / 1e3 / of.scale));
        }
        jobs.push(of);
    }
    let message = (!messages.is_empty()).then(|| mean(&messages));
    let found = ComponentRow { title: title.to_owned(), components: Components::of(&jobs, &blocks), message };
    (!jobs.is_empty()).then_some(found)
}
