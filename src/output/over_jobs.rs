//! What several jobs of one plan say together: for each canary, the mean over jobs and how much jobs differ.

use std::path::PathBuf;

use crate::analysis::Conclusion;
use crate::analysis::compare::{self, JobSet, VARIATION_TITLE, sides, variation_table};
use crate::result::{ResultFile, Run};
use crate::stats::{mean, variance};
use crate::text::{Cell, Table, factor, figure, wrap};

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
                title: format!("{}{label}", answer.test.title.clone()),
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
        "{}Time that load adds and impact: mean and standard deviation (sd) from job to job\n{}",
        wrap(&verdicts(files), 80),
        table.text()
    );
    if !variation.is_empty() {
        out += &format!("\n{VARIATION_TITLE}\n{}", variation.text());
    }
    out
}

/// How many jobs came to which verdict.
fn verdicts(files: &[(PathBuf, ResultFile)]) -> String {
    let mut told: Vec<(String, usize)> = Vec::new();
    for (_, file) in files {
        let verdict = match file.conclusion() {
            Some(Conclusion::Shown { severity, .. }) => severity.word().to_owned(),
            Some(Conclusion::CannotSay { cause, .. }) => format!("CANNOT SAY ({cause})"),
            None => continue,
        };
        match told.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, count)) => *count += 1,
            None => told.push((verdict, 1)),
        }
    }
    told.iter()
        .map(|(verdict, count)| format!("{verdict} in {count} of {} jobs", files.len()))
        .collect::<Vec<_>>()
        .join("; ")
}

fn deviation(values: &[f64], shown: impl Fn(f64) -> String) -> Cell {
    variance(values).map_or(Cell::Unknown, |variance| Cell::number(variance.sqrt(), shown))
}
