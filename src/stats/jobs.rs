//! Jobs as a level of variance: two sets of jobs against each other, and what a figure's variance is made of.
//!
//! Everything that a job measures shares what the job met: which cores it got, what else used the network, the state of
//! the nodes. Placements of one job do not show that, so a test over placements marks equal jobs as different. Here the
//! independent observations are jobs: a job's figure is the mean over its placements, and two sets of them are compared by
//! Welch's test, with Satterthwaite's degrees of freedom.
//!
//! That is right for equal and for new placements alike. Where every job draws its own placements, their spread is part
//! of the spread of the jobs' means. Where all jobs of both sides have the same ones, what placements contribute is the
//! same in all means and cancels in the difference. In between, where the jobs of one side repeat placements that the
//! other side does not have, it does neither, and the variance of placements is added.
//!
//! A side of a single job has no spread of its own. It borrows that of repeated jobs elsewhere ([`JobVariance`]), in
//! proportion to its scale; where there are none, a difference has no error, and nothing may be claimed of it.

use super::spread::{FEWEST_PLACEMENTS, Interval, mean, variance, welch};
use super::student::{two_sided_p, two_sided_t, upper_p};

/// A figure of the jobs of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// Each job's figure on each of its placements.
    pub figures: Vec<Vec<f64>>,
    /// What the spread of jobs is in proportion to: for added times the loaded figure, on a logarithmic scale 1.
    pub scale: f64,
    /// Whether two of the jobs have the same placements.
    pub same_placements: bool,
}

/// The variance of a job's mean over its placements, known from repeated jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobVariance {
    /// Over the square of the scale.
    relative: f64,
    freedom: f64,
    /// How many placements a job had.
    placements: f64,
    /// Whether the jobs repeated their placements, so that these are no part of it.
    same_placements: bool,
}

impl JobVariance {
    /// Pooled over sets of repeated jobs; nothing without two jobs in any of them.
    pub fn pooled(sets: &[Jobs]) -> Option<Self> {
        let repeated = || sets.iter().filter_map(|set| Some((set, variance(&set.means())?, set.freedom())));
        let sum = |of: &dyn Fn(&Jobs, f64) -> f64| repeated().map(|(set, var, free)| free * of(set, var)).sum::<f64>();
        let freedom = sum(&|_, _| 1.0);
        (freedom > 0.0).then(|| JobVariance {
            relative: sum(&|set, variance| variance / set.scale.powi(2)) / freedom,
            freedom,
            placements: sum(&|set, _| set.placements()) / freedom,
            same_placements: repeated().any(|(set, ..)| set.same_placements),
        })
    }

    /// The variance of the mean of a single job. Fewer placements than the known jobs had make it larger, by their
    /// number at most.
    fn of_one(&self, job: &Jobs) -> f64 {
        self.relative * job.scale.powi(2) * (self.placements / job.placements()).max(1.0)
    }
}

impl Jobs {
    /// Each job's mean over its placements.
    pub fn means(&self) -> Vec<f64> {
        self.figures.iter().map(|job| mean(job)).collect()
    }

    /// Their mean, all jobs counting the same.
    pub fn mean(&self) -> f64 {
        mean(&self.means())
    }

    /// The 95% interval of that mean: over jobs where there are two or more, over the placements of a single one, which
    /// is of this job only; none for fewer than three of these.
    pub fn interval(&self) -> Option<Interval> {
        let parts = match variance(&self.means()) {
            Some(between) => {
                let jobs = (between / self.number(), self.freedom());
                [Some(jobs), self.of_placements().filter(|_| self.same_placements)]
            }
            None => [self.of_placements().filter(|(_, freedom)| *freedom >= 2.0), None],
        };
        let parts: Vec<(f64, f64)> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| Difference::new(self.mean(), &parts).interval(0.05)).flatten()
    }

    fn number(&self) -> f64 {
        self.figures.len() as f64
    }

    fn freedom(&self) -> f64 {
        self.number() - 1.0
    }

    /// How many placements a job has on average.
    fn placements(&self) -> f64 {
        self.figures.iter().map(Vec::len).sum::<usize>() as f64 / self.number()
    }

    /// What placements contribute to the variance of the mean when all jobs have the same, with its degrees of freedom.
    fn of_placements(&self) -> Option<(f64, f64)> {
        let fewest = self.figures.iter().map(Vec::len).min()?;
        let at = |placement: usize| self.figures.iter().map(|job| job[placement]).sum::<f64>() / self.number();
        let means: Vec<f64> = (0..fewest).map(at).collect();
        Some((variance(&means)? / fewest as f64, fewest as f64 - 1.0))
    }
}

/// A difference with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// What it is.
    pub value: f64,
    /// Standard error and degrees of freedom; absent where no job variance is known.
    error: Option<(f64, f64)>,
}

/// `after` minus `before`. `same_placements` says that all jobs of both sides have the same ones; `known` is the variance
/// of repeated jobs elsewhere, which sides of a single job take. Nothing where a side has no figure.
pub fn difference(
    before: &Jobs,
    after: &Jobs,
    same_placements: bool,
    known: Option<&JobVariance>,
) -> Option<Difference> {
    let sides = [before, after];
    if sides.iter().any(|side| side.figures.is_empty() || side.figures.iter().any(Vec::is_empty)) {
        return None;
    }
    let value = after.mean() - before.mean();
    if !value.is_finite() {
        return None;
    }
    // One estimate that serves both sides is one part: as two it would pretend to more degrees of freedom.
    let (repeated, single): (Vec<&Jobs>, Vec<&Jobs>) = sides.into_iter().partition(|side| side.figures.len() > 1);
    let own = |side: &Jobs| variance(&side.means()).unwrap_or_default() / side.number();
    let mut parts: Vec<(f64, f64)> = repeated.iter().map(|side| (own(side), side.freedom())).collect();
    let mut without_placements: Vec<&Jobs> = repeated.iter().copied().filter(|side| side.same_placements).collect();
    if !single.is_empty() {
        let others: Vec<Jobs> = repeated.iter().copied().cloned().collect();
        let Some(borrowed) = known.copied().or_else(|| JobVariance::pooled(&others)) else {
            return Some(Difference::untested(value));
        };
        let squares: f64 = single.iter().map(|side| borrowed.of_one(side)).sum();
        match parts.first_mut().filter(|_| known.is_none()) {
            Some(lender) => lender.0 += squares,
            None => parts.push((squares, borrowed.freedom)),
        }
        without_placements.extend(single.iter().filter(|_| borrowed.same_placements));
    }
    if !same_placements {
        parts.extend(without_placements.into_iter().filter_map(Jobs::of_placements));
    }
    Some(Difference::new(value, &parts))
}

/// `after` minus `before`, placement by placement of one job, in which both were measured in turns: what the job met is in
/// both. Nothing when they differ in number; without an error for fewer than three.
pub fn paired_difference(before: &[f64], after: &[f64]) -> Option<Difference> {
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let value = mean(&differences);
    let count = differences.len() as f64;
    if before.len() != after.len() || before.is_empty() || !value.is_finite() {
        return None;
    }
    let square = variance(&differences).filter(|_| differences.len() >= FEWEST_PLACEMENTS);
    Some(match square {
        Some(square) => Difference::new(value, &[(square / count, count - 1.0)]),
        None => Difference::untested(value),
    })
}

impl Difference {
    /// One of which nothing may be claimed.
    pub fn untested(value: f64) -> Self {
        Difference { value, error: None }
    }

    fn new(value: f64, parts: &[(f64, f64)]) -> Self {
        let square: f64 = parts.iter().map(|(square, _)| square).sum();
        Difference { value, error: Some((square.sqrt(), welch(parts))) }
    }

    /// The interval that misses the truth with probability `alpha`.
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        let (error, freedom) = self.error?;
        let half = two_sided_t(alpha, freedom) * error;
        Some(Interval { low: self.value - half, high: self.value + half })
    }

    /// How likely a difference as far from 0 is, two-sided, when there is none.
    pub fn p_value(&self) -> Option<f64> {
        let (error, freedom) = self.error?;
        Some(two_sided_p(self.value / error, freedom))
    }

    /// How likely it is to seem as far inside of `margin`, either way, when the true difference lies outside: the greater
    /// p-value of two one-sided tests.
    pub fn p_beyond(&self, margin: f64) -> Option<f64> {
        let (error, freedom) = self.error?;
        Some(upper_p((margin - self.value.abs()) / error, freedom))
    }

    /// The least true difference that a test at `alpha` finds in four of five such comparisons.
    pub fn detectable(&self, alpha: f64) -> Option<f64> {
        let (error, freedom) = self.error?;
        // One-sided 20% is two-sided 40%.
        Some((two_sided_t(alpha, freedom) + two_sided_t(0.4, freedom)) * error)
    }
}

/// What the variance of a figure is made of, each part as a standard deviation over the scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Components {
    /// Between jobs, beyond what their placements explain; absent without repeated jobs.
    pub job: Option<f64>,
    /// Between the placements of a job, beyond what their blocks explain; absent with one placement.
    pub placement: Option<f64>,
    /// Between the blocks of a placement; absent with one block for each state.
    pub block: Option<f64>,
}

impl Components {
    /// Of sets of jobs, pooled; `blocks` are the figures of each placement's blocks over the scale.
    pub fn of(sets: &[Jobs], blocks: &[Vec<f64>]) -> Self {
        let block = pooled(blocks);
        let number = mean(&blocks.iter().map(|of| of.len() as f64).collect::<Vec<f64>>()).max(1.0);
        let scaled = |set: &Jobs, values: &[f64]| values.iter().map(|of| of / set.scale).collect::<Vec<f64>>();
        let jobs: Vec<Vec<f64>> = sets.iter().flat_map(|set| set.figures.iter().map(|job| scaled(set, job))).collect();
        let within = pooled(&jobs);
        let between = pooled(&sets.iter().map(|set| scaled(set, &set.means())).collect::<Vec<_>>());
        // Of a job's mean over its placements: all of their spread, or where jobs repeat them what is left beside that.
        let rests: Vec<f64> = sets.iter().filter_map(Jobs::rest).collect();
        let explained = if rests.is_empty() {
            let placements = mean(&sets.iter().map(Jobs::placements).collect::<Vec<f64>>()).max(1.0);
            within.unwrap_or_default() / placements
        } else {
            mean(&rests)
        };
        let sd = |variance: f64| variance.max(0.0).sqrt();
        Components {
            job: between.map(|between| sd(between - explained)),
            placement: within.map(|within| sd(within - block.unwrap_or_default() / number)),
            block: block.map(sd),
        }
    }
}

impl Jobs {
    /// For jobs that repeat their placements: the variance of a job's mean by what neither job nor placement explains,
    /// over the square of the scale.
    fn rest(&self) -> Option<f64> {
        let placements = self.figures.first()?.len();
        let crossed = self.same_placements && self.figures.iter().all(|job| job.len() == placements);
        if !crossed || self.figures.len() < 2 || placements < 2 {
            return None;
        }
        let (means, all) = (self.means(), self.mean());
        let at = |placement: usize| self.figures.iter().map(|job| job[placement]).sum::<f64>() / self.number();
        let squares: f64 = (0..placements)
            .flat_map(|place| self.figures.iter().zip(&means).map(move |(job, mean)| (place, job[place] - mean)))
            .map(|(place, off)| (off - at(place) + all).powi(2))
            .sum();
        let freedom = self.freedom() * (placements as f64 - 1.0);
        Some(squares / freedom / placements as f64 / self.scale.powi(2))
    }
}

/// The variance within groups, each weighted by its degrees of freedom.
fn pooled(groups: &[Vec<f64>]) -> Option<f64> {
    let parts = groups.iter().filter_map(|group| Some((group.len() as f64 - 1.0, variance(group)?)));
    let (freedom, squares) =
        parts.fold((0.0, 0.0), |(f, s), (freedom, variance)| (f + freedom, s + freedom * variance));
    (freedom > 0.0).then(|| squares / freedom)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::{FAMILY_ERROR, holm, t95};

    fn jobs(figures: &[&[f64]]) -> Jobs {
        Jobs { figures: figures.iter().map(|job| job.to_vec()).collect(), scale: 1.0, same_placements: false }
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9 * right.abs().max(1.0)
    }

    #[test]
    fn welch_on_the_means_of_jobs_is_as_in_the_textbook() {
        // Means 1, 2, 3, 4 and 2, 4, 6, whatever the placements: squared errors 5/12 and 4/3.
        let before = jobs(&[&[0.0, 2.0], &[2.0], &[3.0, 3.0], &[1.0, 7.0]]);
        let after = jobs(&[&[2.0], &[3.0, 5.0], &[6.0]]);
        let found = difference(&before, &after, false, None).unwrap();
        let error = (5.0f64 / 12.0 + 4.0 / 3.0).sqrt();
        let freedom = error.powi(4) / ((5.0f64 / 12.0).powi(2) / 3.0 + (4.0f64 / 3.0).powi(2) / 2.0);
        assert!(close(found.value, 1.5) && close(found.p_value().unwrap(), two_sided_p(1.5 / error, freedom)));
        assert!(close(found.interval(0.05).unwrap().low, 1.5 - t95(freedom) * error));
        let seen = found.detectable(0.05).unwrap();
        assert!(close(seen, (t95(freedom) + two_sided_t(0.4, freedom)) * error));
    }

    #[test]
    fn pairs_cancel_what_placements_have_in_common() {
        // Differences 1, 2, 3: mean 2, variance 1, over three placements.
        let found = paired_difference(&[5.0, 50.0, 500.0], &[6.0, 52.0, 503.0]).unwrap();
        assert_eq!(found.value, 2.0);
        assert!(close(found.p_value().unwrap(), two_sided_p(2.0 * 3f64.sqrt(), 2.0)), "{found:?}");
        assert_eq!(paired_difference(&[5.0, 50.0], &[6.0, 52.0]).unwrap().p_value(), None);
        assert_eq!(paired_difference(&[5.0, 50.0], &[6.0]), None);
        assert_eq!(paired_difference(&[], &[]), None);
    }

    #[test]
    fn two_one_sided_tests_have_their_p_values() {
        let found = Difference { value: -1.0, error: Some((0.5, 2.0)) };
        // t = (3 - 1) / 0.5 = 4 with two degrees of freedom: (1 - 4 / sqrt(18)) / 2 beyond it.
        assert!(close(found.p_beyond(3.0).unwrap(), (1.0 - 4.0 / 18f64.sqrt()) / 2.0));
        assert!(found.p_beyond(0.5).unwrap() > 0.5 && close(found.p_beyond(1.0).unwrap(), 0.5));
    }

    #[test]
    fn a_single_job_borrows_the_variance_of_repeated_ones() {
        let before = Jobs { scale: 10.0, ..jobs(&[&[9.0], &[10.0], &[11.0]]) };
        let after = Jobs { scale: 20.0, ..jobs(&[&[20.0]]) };
        // A variance of 1 at a scale of 10 is 4 at 20; both have the two degrees of freedom of the three jobs.
        let found = difference(&before, &after, false, None).unwrap();
        let has = |found: Difference, square: f64| {
            let (error, freedom) = found.error.unwrap();
            close(error.powi(2), square) && close(freedom, 2.0)
        };
        assert!(has(found, 1.0 / 3.0 + 4.0), "{found:?}");
        let known = JobVariance::pooled(std::slice::from_ref(&before)).unwrap();
        let two = [Jobs { scale: 10.0, ..jobs(&[&[10.0]]) }, after.clone()];
        let found = difference(&two[0], &two[1], false, Some(&known)).unwrap();
        assert!(has(found, 5.0), "{found:?}");
        assert_eq!(difference(&two[0], &two[1], true, None).unwrap().error, None);
        assert_eq!(JobVariance::pooled(&two), None);
    }

    #[test]
    fn fewer_placements_than_the_known_jobs_had_make_the_variance_larger() {
        let known = JobVariance::pooled(&[jobs(&[&[8.0, 10.0], &[10.0, 12.0]])]).unwrap();
        assert!(close(known.of_one(&jobs(&[&[5.0]])), 2.0 * known.of_one(&jobs(&[&[5.0, 5.0, 5.0]]))));
    }

    #[test]
    fn placements_that_only_one_side_repeats_are_part_of_the_error() {
        let repeat =
            |off: f64| Jobs { same_placements: true, ..jobs(&[&[1.0 + off, 5.0 + off], &[1.1 + off, 5.1 + off]]) };
        let same = difference(&repeat(0.0), &repeat(1.0), true, None).unwrap();
        let other = difference(&repeat(0.0), &repeat(1.0), false, None).unwrap();
        // The means differ by 0.1, the placements by 4: a variance of 8 over two of them on each side.
        assert!(close(same.error.unwrap().0.powi(2), 0.005), "{same:?}");
        assert!(close(other.error.unwrap().0.powi(2), 0.005 + 8.0), "{other:?}");
        let freedom = welch(&[(0.0025, 1.0), (4.0, 1.0)]);
        assert!(close(repeat(0.0).interval().unwrap().high - 3.05, t95(freedom) * 4.0025f64.sqrt()));
    }

    #[test]
    fn what_has_no_figure_has_no_difference() {
        let some = jobs(&[&[1.0], &[2.0]]);
        for bad in [jobs(&[]), jobs(&[&[1.0], &[]]), jobs(&[&[f64::NAN]])] {
            assert_eq!(difference(&some, &bad, true, None), None);
            assert_eq!(difference(&bad, &some, false, None), None);
        }
        assert_eq!((jobs(&[&[1.0, 2.0]]).interval(), jobs(&[]).interval()), (None, None));
    }

    /// Jobs drawn from a process: added time 1000, whose logarithm has a part of each job, of each placement and a rest.
    struct Process {
        job: f64,
        placement: f64,
        rest: f64,
        /// Whether all jobs have the same placements.
        same: bool,
    }

    struct Draw(SmallRng);

    impl Draw {
        fn normal(&mut self) -> f64 {
            let [u, v] = [self.0.random::<f64>(), self.0.random::<f64>()];
            (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }
    }

    impl Process {
        /// Two sides of so many jobs on five placements each, the second `times` as slow.
        fn draw(&self, draw: &mut Draw, number: usize, times: f64) -> [Jobs; 2] {
            let places = |draw: &mut Draw| [(); 5].map(|()| self.placement * draw.normal());
            let common = places(draw);
            [1.0, times].map(|times| {
                let job = |draw: &mut Draw| {
                    let places = if self.same { common } else { places(draw) };
                    let own = self.job * draw.normal();
                    places
                        .iter()
                        .map(|place| 1000.0 * times * (own + place + self.rest * draw.normal()).exp())
                        .collect()
                };
                let figures: Vec<Vec<f64>> = (0..number).map(|_| job(draw)).collect();
                let mut side = Jobs { figures, scale: 1.0, same_placements: self.same };
                side.scale = 20.0 + side.mean();
                side
            })
        }

        /// The mean of what is drawn: of a lognormal variable.
        fn truth(&self) -> f64 {
            1000.0 * ((self.job.powi(2) + self.placement.powi(2) + self.rest.powi(2)) / 2.0).exp()
        }
    }

    /// The part of 2000 draws in which something holds.
    fn part(seed: u64, mut holds: impl FnMut(&mut Draw) -> bool) -> f64 {
        let mut draw = Draw(SmallRng::seed_from_u64(seed));
        (0..2000).filter(|_| holds(&mut draw)).count() as f64 / 2000.0
    }

    #[test]
    fn intervals_hold_the_truth_whatever_jobs_differ_by() {
        for (job, same) in [(0.0, false), (0.1, false), (0.4, false), (0.0, true), (0.1, true), (0.4, true)] {
            // Placements that all jobs share move the true difference with them, so they are all alike there.
            let process = Process { job, placement: if same { 0.0 } else { 0.2 }, rest: 0.05, same };
            let truth = 0.3 * process.truth();
            let held = part(30, |draw| {
                let [before, after] = process.draw(draw, 5, 1.3);
                let found = difference(&before, &after, same, None).unwrap();
                !found.interval(0.05).unwrap().excludes(truth)
            });
            assert!(held >= 0.92, "{job}, {same}: {held}");
        }
    }

    /// Whether any of three canaries' differences is marked.
    fn marks(process: &Process, draw: &mut Draw, number: usize, times: f64) -> Option<bool> {
        let p_value = |draw: &mut Draw| {
            let [before, after] = process.draw(draw, number, times);
            difference(&before, &after, process.same, None)?.p_value()
        };
        let p_values: Option<Vec<f64>> = (0..3).map(|_| p_value(draw)).collect();
        Some(holm(&p_values?).into_iter().any(|p_value| p_value < FAMILY_ERROR))
    }

    #[test]
    fn equal_jobs_are_marked_in_one_of_twenty_comparisons_at_most() {
        for (job, same) in [(0.0, false), (0.1, false), (0.4, false), (0.0, true), (0.1, true), (0.4, true)] {
            let process = Process { job, placement: 0.2, rest: 0.05, same };
            let marked = part(31, |draw| marks(&process, draw, 3, 1.0).unwrap());
            assert!(marked <= 0.05, "{job}, {same}: {marked}");
        }
    }

    #[test]
    fn a_fifth_more_is_told_apart_by_three_jobs_a_side() {
        for same in [true, false] {
            let process = Process { job: 0.03, placement: if same { 0.2 } else { 0.03 }, rest: 0.03, same };
            let found = part(32, |draw| {
                let [before, after] = process.draw(draw, 3, 1.2);
                difference(&before, &after, same, None).unwrap().p_value().unwrap() < 0.05
            });
            assert!(found >= 0.9, "{same}: {found}");
        }
    }

    #[test]
    fn one_job_a_side_marks_nothing() {
        let process = Process { job: 0.0, placement: 0.01, rest: 0.001, same: true };
        assert_eq!(part(33, |draw| marks(&process, draw, 1, 10.0).is_some()), 0.0);
    }

    #[test]
    fn the_same_within_a_margin_is_said_of_what_lies_on_it_in_one_of_twenty_at_most() {
        let process = Process { job: 0.03, placement: 0.1, rest: 0.02, same: true };
        let same = |number, times: f64, seed| {
            part(seed, |draw| {
                let [before, after] = process.draw(draw, number, times);
                let margin = 0.1 * before.mean();
                difference(&before, &after, true, None).unwrap().p_beyond(margin).unwrap() < 0.05
            })
        };
        let (at_the_margin, equal) = (same(5, 1.1, 34), same(5, 1.0, 35));
        assert!(at_the_margin <= 0.06 && equal >= 0.9, "{at_the_margin} {equal}");
    }

    #[test]
    fn what_jobs_and_placements_leave_is_as_in_the_textbook() {
        let crossed = |figures: &[&[f64]]| Jobs { same_placements: true, ..jobs(figures) };
        // Residuals of +-0.5: squares 1 with one degree of freedom; half of that for a mean over two placements.
        assert!(close(crossed(&[&[1.0, 3.0], &[2.0, 6.0]]).rest().unwrap(), 0.5));
        // Four residuals of one: squares 4 with four degrees of freedom, over three placements; the scale squared.
        let three = crossed(&[&[2.0, 2.0, 2.0], &[3.0, 4.0, 5.0], &[4.0, 6.0, 8.0]]);
        assert!(close(Jobs { scale: 2.0, ..three }.rest().unwrap(), 4.0 / 4.0 / 3.0 / 4.0));
        assert_eq!(crossed(&[&[1.0, 3.0]]).rest(), None, "one job");
        assert_eq!(crossed(&[&[1.0], &[2.0]]).rest(), None, "one placement");
        assert_eq!(crossed(&[&[1.0, 3.0], &[2.0]]).rest(), None, "not crossed");
        assert_eq!(jobs(&[&[1.0, 3.0], &[2.0, 6.0]]).rest(), None, "other placements");
    }

    #[test]
    fn variances_are_pooled_by_their_degrees_of_freedom() {
        // Variances 2 and 9 with one and two degrees of freedom; nothing is known of a single value.
        assert!(close(pooled(&[vec![1.0, 3.0], vec![0.0, 3.0, 6.0], vec![50.0]]).unwrap(), 20.0 / 3.0));
        assert_eq!(pooled(&[vec![50.0]]), None);
    }

    #[test]
    fn components_are_those_of_the_process() {
        for same in [true, false] {
            let process = Process { job: 0.05, placement: 0.15, rest: 0.03, same };
            let mut draw = Draw(SmallRng::seed_from_u64(36));
            let sets: Vec<Jobs> = (0..200).flat_map(|_| process.draw(&mut draw, 5, 1.0)).collect();
            let found = Components::of(&sets, &[]);
            let (job, placement) = (found.job.unwrap(), found.placement.unwrap());
            assert!((job / 0.05 - 1.0).abs() < 0.15 && (placement / 0.153 - 1.0).abs() < 0.1, "{same}: {found:?}");
        }
        let blocks = [vec![0.9, 1.1], vec![1.9, 2.1]];
        let one = Components::of(&[jobs(&[&[1.0, 2.0]])], &blocks);
        assert!(one.job.is_none() && close(one.block.unwrap(), 0.02f64.sqrt()));
        assert!(close(one.placement.unwrap(), (0.5f64 - 0.01).sqrt()), "{one:?}");
        assert_eq!(Components::of(&[jobs(&[&[1.0]])], &[]), Components::default());
    }
}
