//! What is to be said of a load test's figures because of how they came about.

use crate::result::{ResultFile, Run};

/// All that is to be said, for the result's notes.
pub(super) fn warnings(file: &ResultFile) -> Vec<String> {
    let mut warnings = overloaded(file);
    warnings.extend(overran(file));
    warnings
}

/// What is to be said of schedules that were not kept: their figures are of another load than was asked for.
fn overloaded(file: &ResultFile) -> Vec<String> {
    let several = file.runs.len() > 1;
    let mut notes = Vec::new();
    for run in &file.runs {
        for test in run.tests.iter().filter(|test| test.schedule.is_some_and(|kept| kept.is_overloaded())) {
            let over = if several { format!(" over {}", run.label()) } else { String::new() };
            let state = test.phase.word();
            notes.push(format!(
                "{} was overloaded by its schedule ({state}{over}): a longer --pace is needed",
                test.title
            ));
        }
    }
    notes
}

/// What is to be said of tests that took longer than they were given: an iteration is never cut.
fn overran(file: &ResultFile) -> Vec<String> {
    /// Beginning and ending blocks takes its time too.
    const TOLERATED: f64 = 1.5;
    const TOLERATED_S: f64 = 0.5;
    let plan = &file.plan;
    // More placements than were planned, for precision, have more time.
    let given_s = |run: &Run| plan.budget_s * run.placements.len().max(1) as f64 / f64::from(plan.placements);
    let tests = file.runs.iter().flat_map(|run| run.tests.iter().map(move |test| (test, given_s(run))));
    tests
        .filter(|(test, given_s)| !test.kernel.is_application() && test.wall_s > TOLERATED * given_s + TOLERATED_S)
        .map(|(test, given_s)| {
            let (title, state, took_s, key) = (&test.title, test.phase.word(), test.wall_s, test.kernel);
            format!(
                "{title} took {took_s:.1} s ({state}) and was given {given_s:.1} s: its iterations last longer than its blocks; \
                 smaller messages (--set {key}.bytes=N) or a longer --budget are needed"
            )
        })
        .collect()
}
