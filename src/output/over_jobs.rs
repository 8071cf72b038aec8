//! What several jobs of one plan say together: for each canary, the mean over jobs and how much jobs differ.

use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::{PlacementRecord, ResultFile, Run};
use crate::stats::{Direction, Statistic, mean, variance};
use crate::text::{Cell, Table, factor, figure};

/// A canary over jobs: the time that load adds, and the impact, each once for each job that has it.
struct OverJobs {
    title: String,
    statistic: &'static str,
    unit: &'static str,
    added: Vec<f64>,
    impact: Vec<f64>,
}

/// A line for each canary of each run.
pub fn over_jobs(files: &[ResultFile]) -> String {
    let Some(first) = files.first() else { return String::new() };
    let mut rows = Vec::new();
    for run in &first.runs {
        let label = if first.runs.len() > 1 { format!(", {}", run.label()) } else { String::new() };
        let twins: Vec<&Run> =
            files.iter().filter_map(|file| file.runs.iter().find(|of| of.label() == run.label())).collect();
        for (test, headline) in run.impacts.iter().filter_map(|of| Some((of, of.headline.as_ref()?))) {
            let direction = test.kernel.info().direction;
            let of_jobs = |figure: &dyn Fn(&Run) -> Option<f64>| twins.iter().filter_map(|run| figure(run)).collect();
            rows.push(OverJobs {
                title: format!("{}{label}", test.title),
                statistic: headline.statistic.title(),
                unit: if direction == Direction::Latency { "us" } else { "us/MiB" },
                added: of_jobs(&|run| added(run, test.kernel, headline.statistic)),
                impact: of_jobs(&|run| Some(run.headline(test.kernel)?.spread.factor)),
            });
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let table = Table::of(rows)
        .column("canary", |of| of.title.clone())
        .column("by", |of| of.statistic)
        .column("added", |of| Cell::number(mean(&of.added), figure))
        .column("sd", |of| deviation(&of.added, figure))
        .column("unit", |of| of.unit)
        .column("impact", |of| Cell::number(mean(&of.impact), factor))
        .column("sd", |of| deviation(&of.impact, factor))
        .done();
    format!(
        "Over {} jobs: time that load adds and impact, mean and standard deviation from job to job\n{}",
        files.len(),
        table.text()
    )
}

/// The time that load adds to a figure in one job, mean over its placements: in us, or us for a MiB.
fn added(run: &Run, kernel: Canary, statistic: Statistic) -> Option<f64> {
    let us = |figure: f64| match kernel.info().direction {
        Direction::Latency => figure,
        Direction::Bandwidth => 1e6 / figure,
    };
    let on = |placement: &PlacementRecord| {
        let of = |state| placement.test(kernel, state)?.summary.as_ref()?.get(statistic).map(us);
        Some(of(LoadState::Loaded)? - of(LoadState::Isolated)?)
    };
    let each: Vec<f64> = run.placements.iter().filter_map(on).filter(|added| added.is_finite()).collect();
    (!each.is_empty()).then(|| mean(&each))
}

fn deviation(values: &[f64], shown: impl Fn(f64) -> String) -> Cell {
    variance(values).map_or(Cell::Unknown, |variance| Cell::number(variance.sqrt(), shown))
}
