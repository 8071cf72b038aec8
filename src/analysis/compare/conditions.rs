//! Jobs grouped by the conditions they measured in: quiet, in the wild, and under the load of congestors.
//!
//! A job without congestors is a wild one: whoever else used the machine was its load. Figures are of whole jobs, so what
//! is told of several is how jobs differ, which placements of one job cannot tell.

use serde::Serialize;

use super::sides::Side;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::stats::{Statistic, mean, variance};
use crate::text::{Table, factor, figure};

/// One canary in one condition, over the jobs that measured it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionRow {
    /// The canary.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// `quiet`, the label of wild jobs, or `loaded`.
    pub condition: String,
    /// Which figure it is.
    pub statistic: Statistic,
    /// How many jobs.
    pub jobs: usize,
    /// Median of the jobs' figures.
    pub median: f64,
    /// First and third quartile, from three jobs on.
    pub quartiles: Option<[f64; 2]>,
    /// Standard deviation over mean, from three jobs on.
    pub coefficient_of_variation: Option<f64>,
    /// How many times worse the median is than the quiet one.
    pub times_worse: Option<f64>,
    /// The unit of the figures.
    pub unit: String,
}

/// The conditions side by side; nothing unless some job is a wild one and some other is not.
pub(super) fn conditions(sides: &[Side<'_>]) -> Vec<ConditionRow> {
    let is_wild = |side: &Side<'_>| side.file.is_wild();
    if sides.iter().all(is_wild) || !sides.iter().any(is_wild) {
        return Vec::new();
    }
    let (wild, tame): (Vec<&Side<'_>>, Vec<&Side<'_>>) = sides.iter().partition(|side| is_wild(side));
    let mut labels: Vec<String> = wild.iter().map(|side| label(side)).collect();
    labels.sort();
    labels.dedup();
    let mut rows = Vec::new();
    for kernel in sides[0].kernels() {
        let statistic = kernel.headline();
        let quiet = figures(tame.iter().copied(), kernel, LoadState::Isolated, statistic);
        let quiet_median = quartile(&quiet, 0.5);
        let mut add = |condition: String, figures: &[f64]| {
            let test = sides.iter().flat_map(|side| &side.run.tests).find(|test| test.kernel == kernel);
            if let (Some(test), Some(median)) = (test, quartile(figures, 0.5)) {
                let (title, unit) = (test.title.clone(), test.unit.clone());
                let worse = quiet_median.map(|quiet| kernel.info().direction.factor(quiet, median));
                let several = figures.len() >= 3;
                let quartiles = quartile(figures, 0.25).zip(quartile(figures, 0.75)).map(|(low, high)| [low, high]);
                rows.push(ConditionRow {
                    kernel,
                    title,
                    condition,
                    statistic,
                    jobs: figures.len(),
                    median,
                    quartiles: quartiles.filter(|_| several),
                    coefficient_of_variation: variation(figures).filter(|_| several),
                    times_worse: worse.filter(|worse| worse.is_finite()),
                    unit,
                });
            }
        };
        add("quiet".into(), &quiet);
        for name in &labels {
            let named = wild.iter().copied().filter(|side| label(side) == *name);
            add(name.clone(), &figures(named, kernel, LoadState::Isolated, statistic));
        }
        add("loaded".into(), &figures(tame.iter().copied(), kernel, LoadState::Loaded, statistic));
    }
    rows
}

fn label(side: &Side<'_>) -> String {
    side.file.label.clone().unwrap_or_else(|| "wild".into())
}

fn figures<'s>(
    sides: impl Iterator<Item = &'s Side<'s>>,
    kernel: Canary,
    phase: LoadState,
    statistic: Statistic,
) -> Vec<f64> {
    sides.filter_map(|side| side.run.test(kernel, phase)?.figure(statistic)).collect()
}

/// A quantile between the values next to it.
fn quartile(values: &[f64], at: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = at * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[below] + (sorted[above] - sorted[below]) * place.fract())
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> Option<f64> {
    variance(values).map(|variance| variance.sqrt() / mean(values)).filter(|of| of.is_finite())
}

/// What their table says.
pub const CONDITIONS_TITLE: &str = "Quiet, in the wild and loaded: figures of whole jobs";

/// A row for each canary in each condition.
pub fn conditions_table(rows: &[ConditionRow]) -> Table {
    Table::of(rows)
        .column("test", |row| &row.title)
        .column("condition", |row| &row.condition)
        .column("figure", |row| row.statistic.key())
        .column("jobs", |row| row.jobs)
        .column("median", |row| row.median)
        .column("quartiles", |row| row.quartiles.map(|[low, high]| format!("{} - {}", figure(low), figure(high))))
        .column("variation", |row| row.coefficient_of_variation.map(|of| format!("{:.1}%", 100.0 * of)))
        .column("times worse", |row| row.times_worse.map(factor))
        .column("unit", |row| &row.unit)
        .done()
}

#[cfg(test)]
mod tests {
    use super::super::sides::sides;
    use super::*;
    use crate::assemble::synthetic;
    use crate::result::ResultFile;

    /// A job without congestors whose figures are `times` the quiet ones.
    fn wild(times: f64, label: Option<&str>) -> ResultFile {
        let mut file = synthetic::file("tcp", None, times);
        let run = &mut file.runs[0];
        run.tests.retain(|test| test.phase == LoadState::Loaded);
        run.tests.iter_mut().for_each(|test| test.phase = LoadState::Isolated);
        (run.impacts, run.placements) = (Vec::new(), Vec::new());
        file.plan.congestors.clear();
        file.label = label.map(str::to_owned);
        file
    }

    #[test]
    fn wild_jobs_stand_between_quiet_and_loaded() {
        let calm = synthetic::file("tcp", None, 8.0);
        let files = synthetic::named(vec![
            calm,
            wild(2.0, None),
            wild(3.0, None),
            wild(4.0, None),
            wild(1.0, Some("maintenance")),
        ]);
        let rows = conditions(&sides(&files));
        let of = |condition: &str| {
            let wanted = |row: &&ConditionRow| row.kernel == Canary::Lat && row.condition == condition;
            rows.iter().find(wanted).unwrap_or_else(|| panic!("{condition} in {rows:?}"))
        };
        let order: Vec<&str> =
            rows.iter().filter(|row| row.kernel == Canary::Lat).map(|row| row.condition.as_str()).collect();
        assert_eq!(order, ["quiet", "maintenance", "wild", "loaded"]);
        assert_eq!((of("quiet").jobs, of("wild").jobs, of("quiet").times_worse), (1, 3, Some(1.0)));
        let close = |found: Option<f64>, expected: f64| found.is_some_and(|of| (of / expected - 1.0).abs() < 0.05);
        assert!(close(of("wild").times_worse, 3.0) && close(of("loaded").times_worse, 8.0), "{rows:?}");
        assert!(of("quiet").quartiles.is_none() && of("wild").quartiles.is_some());
        assert!(close(of("wild").coefficient_of_variation, 1.0 / 3.0), "{:?}", of("wild"));
        assert!(
            rows.iter()
                .any(|row| row.kernel == Canary::BwSync && row.condition == "wild" && close(row.times_worse, 3.0))
        );
        let shown = conditions_table(&rows).text();
        assert!(shown.contains("33."), "{shown}");
    }

    #[test]
    fn without_a_wild_job_there_is_nothing_to_say() {
        let tame = synthetic::named(vec![synthetic::file("tcp", None, 8.0), synthetic::file("tcp", None, 2.0)]);
        assert_eq!(conditions(&sides(&tame)), []);
        let all_wild = synthetic::named(vec![wild(2.0, None), wild(3.0, None)]);
        assert_eq!(conditions(&sides(&all_wild)), []);
        assert!(conditions_table(&[]).is_empty());
    }

    #[test]
    fn quartiles_lie_between_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.25, 0.5, 0.75].map(|at| quartile(&values, at).unwrap()), [1.75, 2.5, 3.25]);
        assert_eq!(quartile(&[], 0.5), None);
        assert!((variation(&[9.0, 10.0, 11.0]).unwrap() - 0.1).abs() < 1e-12);
    }
}
