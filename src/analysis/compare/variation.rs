//! How much jobs of one system differ: coefficients of variation over repeated results.
//!
//! Results repeat each other when nothing differs between them but the draw of placements: the same plan on the same number of
//! nodes and ranks, over the same network, under the same label.

use serde::Serialize;

use super::State;
use super::compatible::{Aspect, differences};
use super::jobs::JobSet;
use super::sides::Side;
use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::stats::{Interval, Statistic, Variation};
use crate::text::{Table, in_percent, within};

/// A figure of a canary over repeated jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariationRow {
    /// What the jobs are called.
    pub jobs_of: String,
    /// The canary.
    pub kernel: Canary,
    /// Its row in the tables.
    pub title: String,
    /// In what state.
    pub state: State,
    /// Which figure it is.
    pub statistic: Statistic,
    /// How many jobs.
    pub jobs: usize,
    /// Standard deviation over mean.
    pub coefficient_of_variation: f64,
    /// Its 95% interval.
    pub interval: Interval,
}

/// What varies: an added time may be about 0, where a part of its mean says nothing.
const STATES: [State; 3] = [State::Isolated, State::Loaded, State::Impact];

/// The headline of every canary over every set of repeated jobs.
pub fn variation(sets: &[JobSet<'_>]) -> Vec<VariationRow> {
    let mut rows = Vec::new();
    for set in repeated(sets) {
        for kernel in set.kernels() {
            let test = set.jobs[0].run.tests.iter().find(|test| test.kernel == kernel);
            let title = test.map_or_else(String::new, |test| test.title.clone());
            for state in STATES {
                let statistic = kernel.headline();
                let Some(of) = variation_of(&set, kernel, state, statistic) else { continue };
                rows.push(VariationRow {
                    jobs_of: set.label.clone(),
                    kernel,
                    title: title.clone(),
                    state,
                    statistic,
                    jobs: of.count,
                    coefficient_of_variation: of.coefficient,
                    interval: of.interval,
                });
            }
        }
    }
    rows
}

/// The jobs that repeat each other, where they are enough to tell how much jobs differ. Sides of several jobs are told apart.
pub fn repeated<'a>(sets: &[JobSet<'a>]) -> Vec<JobSet<'a>> {
    let several = sets.iter().any(|set| set.jobs.len() > 1);
    let sides = sets.iter().enumerate().flat_map(|(at, set)| set.jobs.iter().map(move |job| (at, job)));
    let mut groups: Vec<(usize, Vec<Side<'a>>)> = Vec::new();
    for (at, job) in sides.filter(|(_, job)| !job.file.interrupted) {
        let is_of = |(of, group): &&mut (usize, Vec<Side<'a>>)| (!several || *of == at) && repeats(&group[0], job);
        match groups.iter_mut().find(is_of) {
            Some((_, group)) => group.push(job.clone()),
            None => groups.push((at, vec![job.clone()])),
        }
    }
    groups.retain(|(_, group)| group.len() >= Variation::FEWEST);
    groups.into_iter().map(|(_, group)| JobSet::of(group)).collect()
}

/// Whether nothing differs between two jobs but the draw of placements.
pub fn repeats(one: &Side<'_>, other: &Side<'_>) -> bool {
    const OF_A_SYSTEM: [&str; 3] = ["network", "emulated cluster", "CPU of rank 0's host"];
    let same = |job: &Side<'_>| (job.run.label(), job.file.label.clone(), job.file.is_wild());
    let is_other_system =
        |aspect: &Aspect| matches!(aspect, Aspect::Other(name) if OF_A_SYSTEM.contains(&name.as_str()));
    same(one) == same(other) && !differences(one, other).iter().any(|of| of.fatal || is_other_system(&of.aspect))
}

/// How much a figure differs between the jobs that have it.
pub fn variation_of(set: &JobSet<'_>, kernel: Canary, state: State, statistic: Statistic) -> Option<Variation> {
    let figure = |job: &Side<'_>| match state {
        State::Isolated => job.run.test(kernel, LoadState::Isolated)?.figure(statistic),
        State::Loaded => job.run.test(kernel, LoadState::Loaded)?.figure(statistic),
        State::Impact => Some(job.run.impact(kernel, statistic)?.factor),
        State::Added => None,
    };
    Variation::of(&set.jobs.iter().filter_map(figure).collect::<Vec<f64>>())
}

/// What their table says.
pub const VARIATION_TITLE: &str = "Variation between jobs: coefficient of variation with its 95% interval, %";

/// A row for each canary in each state.
pub fn variation_table(rows: &[VariationRow]) -> Table {
    let several = rows.iter().any(|row| row.jobs_of != rows[0].jobs_of);
    Table::of(rows)
        .column_if(several, "jobs of", |row| &row.jobs_of)
        .column("test", |row| &row.title)
        .column("state", |row| row.state.key())
        .column("figure", |row| row.statistic.key())
        .column("jobs", |row| row.jobs)
        .column("variation", |row| within(row.coefficient_of_variation, Some(row.interval), in_percent))
        .done()
}

#[cfg(test)]
mod tests {
    use super::super::sides::sides;
    use super::*;
    use crate::assemble::synthetic;
    use crate::result::ResultFile;

    fn sets(files: &[(std::path::PathBuf, ResultFile)]) -> Vec<JobSet<'_>> {
        sides(files).into_iter().map(JobSet::from).collect()
    }

    #[test]
    fn repeated_jobs_vary_as_their_figures_do() {
        // Loaded figures 4, 5 and 6: a standard deviation of 1 over a mean of 5. Idle ones are the same.
        let mut files = synthetic::named([4.0, 5.0, 6.0].map(|impact| synthetic::file("tcp", None, impact)));
        let rows = variation(&sets(&files));
        let of = |state| rows.iter().find(|row| row.kernel == Canary::Lat && row.state == state).unwrap();
        let loaded = of(State::Loaded);
        assert!((loaded.coefficient_of_variation - 0.2).abs() < 0.002 && loaded.jobs == 3, "{loaded:?}");
        assert!(loaded.interval.low > 0.08 && loaded.interval.high > 1.0, "three jobs tell little: {loaded:?}");
        assert!(of(State::Isolated).coefficient_of_variation < 1e-9);
        assert!((of(State::Impact).coefficient_of_variation - 0.2).abs() < 0.002);
        let shown = variation_table(&rows).text();
        assert!(shown.contains("20.") && !shown.contains("jobs of"), "{shown}");
        // Of another label it is another condition, and two are too few.
        files[2].1.label = Some("maintenance".into());
        assert_eq!(variation(&sets(&files)), []);
    }

    #[test]
    fn sides_of_several_jobs_vary_by_themselves() {
        let before = synthetic::named([4.0, 5.0, 6.0].map(|impact| synthetic::file("tcp", None, impact)));
        let after = synthetic::named([1.0, 1.0, 1.0].map(|impact| synthetic::file("tcp", None, impact)));
        let sets = [JobSet::of(sides(&before)), JobSet::of(sides(&after))];
        let rows = variation(&sets);
        let loaded: Vec<f64> = rows
            .iter()
            .filter(|row| row.kernel == Canary::Lat && row.state == State::Loaded)
            .map(|row| row.coefficient_of_variation)
            .collect();
        assert!(loaded.len() == 2 && loaded[0] > 0.19 && loaded[1] < 1e-9, "{rows:?}");
    }
}
