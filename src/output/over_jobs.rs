//! What several jobs of one plan say together: for each canary, the mean over jobs and how much jobs differ.

use std::path::PathBuf;

use crate::analysis::compare::{self, JobSet, VARIATION_TITLE, sides, variation_table};
use crate::result::{ResultFile, Run};
use crate::stats::{mean, variance};
use crate::text::{Cell, Table, factor, figure};

/// A canary over jobs: the time that load adds, and the impact, each once for each job that has it.
struct OverJobs {
    title: String,
    statistic: &'static str,
    unit: String,
    added: Vec<f64>,
    impact: Vec<f64>,
}

/// A line for each canary of each run.
pub fn over_jobs(files: &[(PathBuf, ResultFile)]) -> String {
    let Some((_, first)) = files.first() else { return String::new() };
    let mut rows = Vec::new();
    for run in &first.runs {
        let label = if first.runs.len() > 1 { format!(", {}", run.label()) } else { String::new() };
        let twins: Vec<&Run> =
            files.iter().filter_map(|(_, file)| file.runs.iter().find(|of| of.label() == run.label())).collect();
        for (test, headline) in run.impacts.iter().filter_map(|of| Some((of, of.headline.as_ref()?))) {
            let Some(answer) = run.answer(test.kernel) else { continue };
            let of_jobs = |figure: &dyn Fn(&Run) -> Option<f64>| twins.iter().filter_map(|run| figure(run)).collect();
            rows.push(OverJobs {
                title: format!("{}{label}", test.title),
                statistic: headline.statistic.title(),
                unit: answer.added_unit().to_owned(),
                added: of_jobs(&|run| Some(run.answer(test.kernel)?.added?.value)),
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
        .column("unit", |of| of.unit.clone())
        .column("impact", |of| Cell::number(mean(&of.impact), factor))
        .column("sd", |of| deviation(&of.impact, factor))
        .done();
    let sets: Vec<JobSet<'_>> = sides(files).into_iter().map(JobSet::from).collect();
    let variation = variation_table(&compare::variation(&sets));
    let mut out = format!(
        "Over {} jobs: time that load adds and impact, mean and standard deviation from job to job\n{}",
        files.len(),
        table.text()
    );
    if !variation.is_empty() {
        out += &format!("\n{VARIATION_TITLE}\n{}", variation.text());
    }
    out
}

fn deviation(values: &[f64], shown: impl Fn(f64) -> String) -> Cell {
    variance(values).map_or(Cell::Unknown, |variance| Cell::number(variance.sqrt(), shown))
}
