//! `tailback locate`: which node, cable or link is to blame for slow pairs, by a map of its own or those of files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::models::{StudyOptions, begin};
use crate::analysis::locate::Demands;
use crate::job::{Checks, GroupsFrom, LocateSelection, MapStudy, Request, Study, StudySelection, SuspectsLimit};
use crate::models::map;
use crate::output::{self, Format};
use crate::result::ResultFile;
use crate::stats::{FALSE_ALARMS, LEAST};

/// Options that say how something is measured or kept: none of them is for files.
const MEASURING: [&str; 20] = [
    "bytes",
    "messages",
    "round_trips",
    "slices",
    "step",
    "rounds",
    "all_pairs",
    "dry_run",
    "groups",
    "ranks_per_node",
    "seed",
    "ranks",
    "transport",
    "machine",
    "out",
    "csv",
    "metrics",
    "label",
    "protocol",
    "no_probes",
];

/// Options of `tailback locate`.
#[derive(Clone, Debug, Args)]
pub struct LocateOptions {
    /// Results of `tailback map` or of this command, to be read instead of measuring; of several, which are of the same nodes at
    /// different times, only what all show is suspected
    #[arg(value_name = "FILE", conflicts_with_all = MEASURING)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    settings: map::Settings,

    /// Measure a map and nothing after it: suspects are not measured again alone
    #[arg(long)]
    no_probes: bool,

    /// Say what would be measured and how long it takes, and measure nothing
    #[arg(long)]
    dry_run: bool,

    /// Switch or rack of each host: a file (`host group` lines, topology.conf, `ibnetdiscover`), or name:PATTERN, whose only
    /// group finds it in the host's name, e.g. 'name:^r([0-9]+)'; else as the environment says, else inferred
    #[arg(long, value_name = "FILE|name:PATTERN", help_heading = "Topology")]
    groups: Option<GroupsFrom>,

    /// How often a system without faults may have any suspect
    #[arg(long, value_name = "PERCENT", default_value_t = Part(FALSE_ALARMS), help_heading = "Verdict")]
    false_alarms: Part,

    /// Suspect only what is slower by at least this
    #[arg(long, value_name = "PERCENT", default_value_t = Part(LEAST), help_heading = "Verdict")]
    least: Part,

    /// Write the nodes that are suspects, one per line; the command with which Slurm would drain them is printed, and not run
    #[arg(long, value_name = "OUT", help_heading = "Verdict")]
    drain_list: Option<PathBuf>,

    /// Exit with code 1 if this holds, e.g. 'suspects > 0'
    #[arg(long = "fail-if", value_name = "CONDITION", help_heading = "Verdict")]
    fails_if: Vec<SuspectsLimit>,

    /// Write the outcome of every threshold as a JUnit file
    #[arg(long, value_name = "FILE", requires = "fails_if", help_heading = "Verdict")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    study: StudyOptions,
}

impl LocateOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let LocateOptions {
            files,
            settings,
            no_probes,
            dry_run,
            groups,
            false_alarms,
            least,
            drain_list,
            fails_if,
            junit,
            study,
        } = self;
        let demands = Demands { false_alarms: false_alarms.0, least: least.0 };
        let locate = LocateSelection { demands, drain_list, fail_if: fails_if, junit };
        if !files.is_empty() {
            return read(&files, &locate, study.format());
        }
        if dry_run && study.keeps() {
            return Err("--out keeps measurements, and --dry-run makes none: keep what it prints".into());
        }
        let map = MapStudy { settings, known: None, locates: true, probes: !no_probes };
        let request = study.request(Study::Map(map))?;
        let study = request.study.map(|of| StudySelection { locate: Some(locate), ..of });
        begin(Request { study, dry_run, groups, ..request })
    }
}

fn read(paths: &[PathBuf], locate: &LocateSelection, (format, verbose): (Format, bool)) -> Result<u8, String> {
    if let Some(list) = locate.drain_list.as_ref().filter(|list| paths.contains(list)) {
        return Err(format!("{} is a map: give another file with --drain-list", list.display()));
    }
    if format == Format::Gpcnet {
        return Err("--format gpcnet: GPCNeT has no table for suspects".into());
    }
    let files = super::compare::read(paths)?;
    let files: Vec<(&Path, &ResultFile)> = files.iter().map(|(path, file)| (path.as_path(), file)).collect();
    let located = locate.located(&files)?;
    output::print(&LocateSelection::text(&located, format, verbose))?;
    let checks = locate.checks(&located, &files)?;
    Checks { junit: locate.junit.clone(), ..Checks::default() }.conclude(&checks)
}

/// `5%` or `5`, as a part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part(f64);

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
        let part = number.map(|percent| percent / 100.0).filter(|part| *part > 0.0 && *part < 1.0);
        part.map(Part)
            .ok_or_else(|| format!("invalid part '{text}': expected a percentage above 0 and below 100, e.g. 5%"))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", 100.0 * self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_percentages() {
        assert_eq!(["5%", "5", "0.1%"].map(|text| text.parse::<Part>().unwrap().to_string()), ["5%", "5%", "0.1%"]);
        for text in ["0", "100%", "-1", "x"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
