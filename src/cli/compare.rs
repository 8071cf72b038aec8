//! `tailback compare`: results side by side, and whether they differ.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::analysis::compare::{self, By, Comparison, JobSet, Side, sides};
use crate::analysis::threshold::Of;
use crate::job::Checks;
use crate::output;
use crate::result::{self, ResultFile};
use crate::stats::Statistic;
use crate::text::section;

/// Options of `tailback compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Result files; the first is what the others are compared with. With --with: the repeated jobs of the first side
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The repeated jobs of the second side, e.g. `compare before-*.json --with after-*.json`. Differences between jobs are
    /// then part of the test; with one job a side nothing is marked
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "by")]
    with: Vec<PathBuf>,

    /// A folder of earlier results of the same plan: how much they differ tells how much equal jobs differ, for sides of a
    /// single job. Results of the same --label are taken as repeated
    #[arg(long, value_name = "DIR", conflicts_with = "by")]
    history: Option<PathBuf>,

    /// Whether the added times are the same within this part of the first side's loaded time (idle plus added), e.g. 5%.
    /// The answer is same, different or cannot tell: exit code 0, 1 or 3
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    within: Option<f64>,

    /// What the comparison is about: the runs of one file by transport or protocol, its congestors, or files that differ in
    /// their congestors or in their number of ranks. A difference that is asked for is no obstacle
    #[arg(long, value_enum)]
    by: Option<By>,

    /// Compare results of different plans, ranks or nodes all the same
    #[arg(long)]
    force: bool,

    /// All tables: every statistic, counters, the components of variance, and the tests behind the verdicts
    #[arg(short, long)]
    verbose: bool,

    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    checks: Checks,
}

impl CompareOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let files = read(&self.files)?;
        if let ([(path, file)], Some(By::Congestor)) = (&files[..], self.by) {
            return self.congestors(path, file);
        }
        // Sweeps stand beside each other point by point; what is asked of a comparison is asked of all of their runs.
        let is_asked = self.json || self.by.is_some() || self.within.is_some() || !self.checks.fail_if.is_empty();
        if !is_asked && self.with.is_empty() {
            let named = sides::file_names(&files).into_iter().zip(files.iter().map(|(_, file)| file));
            if let Some(text) = output::sweeps(&named.collect::<Vec<_>>()) {
                return output::print(&text);
            }
        }
        let after = read(&self.with)?;
        let sets = self.sets(&files, &after)?;
        let earlier = self.history.as_deref().map(earlier).transpose()?.unwrap_or_default();
        let history = self.repeated(&sets, &earlier);
        let statistics: &[Statistic] = if self.verbose { &Statistic::ALL } else { &compare::SHOWN };
        let mut comparison = compare::compare_jobs(&sets, statistics, &history, self.within);
        if let Some(by) = self.by {
            comparison.differences.iter_mut().filter(|of| of.is_asked_for(by)).for_each(|of| of.fatal = false);
        }
        let fatal: Vec<String> =
            comparison.differences.iter().filter(|d| d.fatal).map(|d| format!("{}: {}", d.side, d.what)).collect();
        if !fatal.is_empty() && !self.force {
            let list = fatal.join("\n  ");
            return Err(format!("these results are not comparable (--force compares them all the same):\n  {list}"));
        }
        if comparison.rows.is_empty() && comparison.figures.is_empty() {
            return Err("these results have no test in common".into());
        }
        if self.within.is_some() && !comparison.rows.iter().any(|row| row.primary) {
            return Err("--within is for added times: these results have none in common".into());
        }
        self.print(&comparison)?;
        let code = comparison.exit_code();
        let all = match self.checks.has_ratios() {
            true => compare::compare_jobs(&sets, &Statistic::ALL, &history, None),
            false => comparison,
        };
        let mut checks = Vec::new();
        for threshold in &self.checks.fail_if {
            match threshold.of {
                Of::Ratio => checks.extend(threshold.check_ratios(&all)),
                Of::Variation => checks.extend(threshold.check_variation(&compare::repeated(&sets))),
                Of::Change | Of::Level => {
                    return Err(format!("'{threshold}': changes from night to night are for `tailback history`"));
                }
                Of::Job => {
                    let jobs = sets.iter().flat_map(|set| &set.jobs);
                    checks.extend(jobs.map(|job| threshold.check(&job.label, job.run)));
                }
            }
        }
        // Failed, then not measured, then cannot tell: the least that is not 0.
        let codes = [self.checks.conclude(&checks)?, code];
        Ok(codes.into_iter().filter(|code| *code > 0).min().unwrap_or(0))
    }

    /// The sides: each run its own, or with --with the files before it and those behind it.
    fn sets<'a>(&self, files: &'a [Named], after: &'a [Named]) -> Result<Vec<JobSet<'a>>, String> {
        if after.is_empty() {
            return Ok(sides::chosen(files, self.by)?.into_iter().map(JobSet::from).collect());
        }
        [files, after].into_iter().map(one_side).collect()
    }

    /// Repeated jobs among earlier results: of the same plan and network as the sides, and none of their own.
    fn repeated<'a>(&self, sets: &[JobSet<'_>], earlier: &'a [Named]) -> Vec<JobSet<'a>> {
        let compared = || sets.iter().flat_map(|set| &set.jobs);
        let alike = |job: &Side<'a>| {
            let same_run = compared().any(|side| side.run.label() == job.run.label());
            let fatal = compare::differences(&sets[0].jobs[0], job).iter().any(|of| of.fatal);
            same_run && !fatal && !compared().any(|side| is_same_job(side.file, job.file))
        };
        let mut sets: Vec<JobSet<'a>> = Vec::new();
        for job in sides(earlier).into_iter().filter(alike) {
            let kind = |job: &Side<'_>| (job.file.label.clone(), job.run.label());
            match sets.iter_mut().find(|set| kind(&set.jobs[0]) == kind(&job)) {
                Some(set) => set.jobs.push(job),
                None => sets.push(JobSet::from(job)),
            }
        }
        sets.retain(|set| set.jobs.len() > 1);
        if let Some(folder) = &self.history {
            let jobs: usize = sets.iter().map(|set| set.jobs.len()).sum();
            let folder = folder.display();
            match jobs {
                0 => eprintln!(
                    "tailback: note: {folder} has no two earlier results of this plan and network yet: without them one job \
                     per side cannot be tested"
                ),
                _ => eprintln!("tailback: note: {jobs} earlier results in {folder} tell how much equal jobs differ"),
            }
        }
        sets
    }

    fn print(&self, comparison: &Comparison) -> Result<u8, String> {
        output::print(&if self.json {
            serde_json::to_string_pretty(comparison).expect("plain data") + "\n"
        } else {
            let mut out = String::new();
            if self.verbose {
                out += &compare::render(comparison);
                out += &section(compare::COMPONENTS_TITLE, &comparison.components_table());
            }
            // What has no first screen is all tables.
            if out.is_empty() || comparison.rows.iter().any(|row| row.primary) {
                out += &output::compared(comparison);
            }
            out
        })
    }

    /// The congestors of one file.
    fn congestors(&self, path: &Path, file: &ResultFile) -> Result<u8, String> {
        let thresholds = &self.checks;
        if thresholds.fail_if.iter().any(|threshold| threshold.of != Of::Job) {
            return Err(
                "ratios, changes and coefficients of variation are of files: congestors of one file have none to be checked"
                    .into(),
            );
        }
        let comparison = compare::compare_congestors(file)
            .ok_or_else(|| format!("{} has loads of fewer than two congestors", path.display()))?;
        self.print(&comparison)?;
        thresholds.check_all([file])
    }
}

type Named = (PathBuf, ResultFile);

/// The jobs of one side.
fn one_side(files: &[Named]) -> Result<JobSet<'_>, String> {
    for (at, (path, file)) in files.iter().enumerate() {
        if file.runs.len() != 1 {
            return Err(format!(
                "{} has {} runs: sides of several jobs take one each",
                path.display(),
                file.runs.len()
            ));
        }
        if let Some((twin, _)) = files[..at].iter().find(|(_, other)| is_same_job(file, other)) {
            let (path, twin) = (path.display(), twin.display());
            return Err(format!("{twin} and {path} are the same job: one job twice does not show how jobs differ"));
        }
    }
    Ok(JobSet::of(sides(files)))
}

fn is_same_job(one: &ResultFile, other: &ResultFile) -> bool {
    (&one.started, one.seed, one.duration_s) == (&other.started, other.seed, other.duration_s)
}

/// The results in a folder, by name. What is no result is passed over, and said.
fn earlier(folder: &Path) -> Result<Vec<Named>, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let paths: Result<Vec<PathBuf>, std::io::Error> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(cannot)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        match result::read(&path) {
            Ok(file) => files.push((path, file)),
            Err(error) => eprintln!("tailback: note: passed over: {error}"),
        }
    }
    Ok(files)
}

/// `5%` or `5`, as a part of one.
fn margin(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let part = number.map(|percent| percent / 100.0).filter(|part| *part > 0.0 && *part < 1.0);
    part.ok_or_else(|| format!("invalid margin '{text}': expected a percentage above 0 and below 100, e.g. 5%"))
}

/// Reads result files, in order.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, ResultFile)>, String> {
    let read = |path: &PathBuf| result::read(path).map(|file| (path.clone(), file)).map_err(|error| error.to_string());
    paths.iter().map(read).collect()
}
