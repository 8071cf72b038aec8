//! `tailback history`: what a folder of results says of its machine night after night.

mod index;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::analysis::checks::Check;
use crate::analysis::history::{History, Night};
use crate::analysis::threshold::Of;
use crate::job::Checks;
use crate::output;
use crate::report;
use crate::result;

use index::{Index, Job};

/// Options of `tailback history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryOptions {
    /// A folder of result files (*.json): of runs, of studies, imported. Results of one plan, network and label are one history
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Only results of this label
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Only results of this day or time (UTC) and later, e.g. 2026-11-19 or 2026-11-19T02:00: what was before a change that is meant to
    /// stay is no past any more
    #[arg(long, value_name = "DATE")]
    since: Option<Since>,

    /// Follow this figure too, e.g. lat.p99.loaded; repeatable [default: the first figure of every test, idle, loaded and added]
    #[arg(long, value_name = "FIGURE")]
    figure: Vec<String>,

    /// Read every file, and keep no index of them in the folder
    #[arg(long)]
    no_index: bool,

    /// A table of every night
    #[arg(short, long)]
    verbose: bool,

    /// Print the histories as JSON
    #[arg(long)]
    json: bool,

    /// Also write a page with a plot of every figure here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    checks: Checks,
}

/// A day, or a time of one, in the letters of a result's own.
#[derive(Clone, Debug)]
struct Since(String);

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "0000-00-00T00:00:00Z";
        let fits = |(of, form): (char, char)| if form == '0' { of.is_ascii_digit() } else { of == form };
        let is_whole = matches!(text.len(), 10 | 16 | 19 | 20) && text.chars().zip(FORM.chars()).all(fits);
        if is_whole { Ok(Since(text.to_owned())) } else { Err("expected a day or a time, e.g. 2026-11-19") }
    }
}

impl HistoryOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        if let Some(of) = self.checks.fail_if.iter().find(|of| of.of == Of::Ratio) {
            return Err(format!("'{of}': ratios are for `tailback compare`; a history has .change"));
        }
        let index = Index::of(&self.folder, !self.no_index)?;
        for (file, why) in index.refused() {
            eprintln!("tailback: note: passed over: {}", crate::text::printable(&format!("{file}: {why}")));
        }
        let jobs: Vec<Job> = index.jobs().into_iter().filter(|job| self.takes(job)).collect();
        let complete = || jobs.iter().filter(|job| !job.cut_short);
        let (whole, cut_short) = (complete().count(), jobs.len() - complete().count());
        if whole == 0 {
            return Err(format!("{} has no complete result{}", self.folder.display(), self.of_which()));
        }
        if cut_short > 0 {
            eprintln!("tailback: note: left out, as they failed or were interrupted: {cut_short}");
        }
        let mut asked = self.figure.clone();
        asked.extend(self.checks.fail_if.iter().map(crate::analysis::threshold::Threshold::key));
        let histories: Vec<(usize, History)> = index
            .groups()
            .map(|group| (group, nights(complete().filter(|job| job.group == group))))
            .filter(|(_, nights)| !nights.is_empty())
            .map(|(group, nights)| (group, History::of(index.title(group), &nights, &asked)))
            .collect();
        if let Some(unknown) = self.figure.iter().find(|key| histories.iter().all(|(_, of)| of.series(key).is_none())) {
            return Err(format!("invalid figure '{unknown}': no result here has it; expected e.g. lat.p99.loaded"));
        }
        // The longest history first.
        let mut shown: Vec<&History> = histories.iter().map(|(_, of)| of).collect();
        shown.sort_by_key(|of| std::cmp::Reverse(of.nights.len()));
        self.print(&shown)?;
        if let Some(path) = &self.html {
            result::write_text(path, &report::history(&shown)).map_err(|error| error.to_string())?;
            eprintln!("tailback: wrote {}: open it in a browser", path.display());
        }
        self.check(&jobs, &histories)
    }

    fn takes(&self, job: &Job) -> bool {
        // Times as files have them are in the order of their letters.
        let is_later = self.since.as_ref().is_none_or(|since| job.started_s.is_some() && job.started >= since.0);
        is_later && (self.label.is_none() || job.label == self.label)
    }

    fn of_which(&self) -> String {
        let label = self.label.as_ref().map(|label| format!(" of the label '{label}'")).unwrap_or_default();
        let since = self.since.as_ref().map(|since| format!(" since {}", since.0)).unwrap_or_default();
        label + &since
    }

    fn print(&self, histories: &[&History]) -> Result<u8, String> {
        if self.json {
            return output::print(&(serde_json::to_string_pretty(histories).expect("plain data") + "\n"));
        }
        let shown: Vec<String> = histories.iter().map(|of| output::history(of, self.verbose)).collect();
        output::print(&shown.join("\n"))
    }

    /// Thresholds are held against the newest job, in each history that it is part of.
    fn check(&self, jobs: &[Job], histories: &[(usize, History)]) -> Result<u8, String> {
        let Some(newest) = jobs.iter().max_by_key(|job| job.order()).filter(|_| !self.checks.fail_if.is_empty()) else {
            return Ok(0);
        };
        let path = self.folder.join(&newest.file);
        let file = result::read(&path).map_err(|error| error.to_string())?;
        let mut checks = Vec::new();
        for job in jobs.iter().filter(|job| job.file == newest.file) {
            let mine = histories.iter().find(|(group, of)| *group == job.group && of.files.last() == Some(&job.file));
            for threshold in &self.checks.fail_if {
                match (threshold.of, mine) {
                    (Of::Job, _) => checks.extend(file.runs.get(job.run).map(|run| threshold.check(&job.file, run))),
                    (_, Some((_, history))) => checks.push(threshold.check_history(history)),
                    // Of a job that was cut short nothing is compared; that it was is told below.
                    (_, None) => {}
                }
            }
        }
        checks.extend(Check::incomplete(&file));
        self.checks.conclude(&checks)
    }
}

/// Nights in the order of time. Where one does not say when it was, in that of the files' names, in which n2 comes before n10. A
/// job that is there twice counts once.
fn nights<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<Night> {
    let mut jobs: Vec<&Job> = jobs.collect();
    let has_times = jobs.iter().all(|job| job.started_s.is_some());
    jobs.sort_by_key(|job| (if has_times { job.started_s } else { None }, index::natural(&job.file)));
    if has_times {
        jobs.dedup_by(|one, other| one.is_same_as(other));
    }
    let night =
        |job: &&Job| Night { file: job.file.clone(), started: job.started.clone(), figures: job.figures.clone() };
    jobs.iter().map(night).collect()
}
