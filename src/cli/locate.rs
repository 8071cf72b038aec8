//! `tailback locate`: which node, cable or link is to blame for the slow pairs of a map.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::analysis::checks::Check;
use crate::analysis::locate::{Demands, FALSE_ALARMS, LEAST, Located};
use crate::job::Checks;
use crate::output;
use crate::result::{self, MapResult, ResultFile};
use crate::stats::{FailsIf, Outcome};

/// Options of `tailback locate`.
#[derive(Clone, Debug, Args)]
pub struct LocateOptions {
    /// A result of `tailback map`; of several, which are of the same nodes at different times, only what all show is suspected
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How often a system without faults may have any suspect
    #[arg(long, value_name = "PERCENT", default_value_t = Part(FALSE_ALARMS))]
    false_alarms: Part,

    /// Suspect only what is slower by at least this
    #[arg(long, value_name = "PERCENT", default_value_t = Part(LEAST))]
    least: Part,

    /// How suspects are printed
    #[arg(long, value_enum, default_value = "summary", default_value_if("json", "true", "json"))]
    format: LocateFormat,

    /// Print them as JSON: the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// All suspects, and every figure that shows them
    #[arg(short, long)]
    verbose: bool,

    /// Write the nodes that are suspects, one per line, and print the command with which Slurm would drain them; it is not run
    #[arg(long, value_name = "OUT")]
    drain_list: Option<PathBuf>,

    /// Exit with code 1 if this holds, e.g. 'suspects > 0'
    #[arg(long, value_name = "CONDITION", help_heading = "Thresholds")]
    fail_if: Vec<SuspectsLimit>,

    /// Write the outcome of every threshold as a JUnit file
    #[arg(long, value_name = "FILE", requires = "fail_if", help_heading = "Thresholds")]
    junit: Option<PathBuf>,
}

/// How suspects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LocateFormat {
    /// The verdict and a row for each of the worst, in a dozen lines
    Summary,
    /// One line for each figure of each suspect
    Csv,
    /// All there is
    Json,
}

impl LocateOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        if let Some(list) = self.drain_list.as_ref().filter(|list| self.files.contains(list)) {
            return Err(format!("{} is a map: give another file with --drain-list", list.display()));
        }
        let files = super::compare::read(&self.files)?;
        let maps: Result<Vec<&MapResult>, String> = files.iter().map(|(path, file)| map_of(path, file)).collect();
        let maps = maps?;
        let demands = Demands { false_alarms: self.false_alarms.0, least: self.least.0 };
        let located = Located::of_all(&maps, demands)?;
        output::print(&match self.format {
            LocateFormat::Json => serde_json::to_string_pretty(&located).expect("plain data") + "\n",
            LocateFormat::Csv => output::located_csv(&located),
            LocateFormat::Summary => output::located(&located, self.verbose),
        })?;
        if let Some(path) = &self.drain_list {
            write_list(path, &located.nodes_to_drain(maps[0]))?;
        }
        let run = files[0].1.command.word();
        let mut checks: Vec<Check> = self.fail_if.iter().map(|limit| limit.check(run, &located)).collect();
        if !checks.is_empty() {
            checks.extend(files.iter().filter_map(|(_, file)| Check::incomplete(file)));
        }
        Checks { junit: self.junit, ..Checks::default() }.conclude(&checks)
    }
}

/// The map that a file has.
fn map_of<'a>(path: &Path, file: &'a ResultFile) -> Result<&'a MapResult, String> {
    let maps: Vec<&MapResult> = file.studies().into_iter().filter_map(|(_, models)| models.map.as_ref()).collect();
    match maps[..] {
        [map] => Ok(map),
        [] => Err(format!("{} is no result of tailback map", path.display())),
        _ => Err(format!("{} has {} maps: expected one in a file", path.display(), maps.len())),
    }
}

/// Writes the nodes, and tells how Slurm would drain them. Both are made to be given to programs that act on nodes, so a file's
/// names are names of hosts and nothing that a shell would take for more.
fn write_list(path: &Path, nodes: &[&str]) -> Result<(), String> {
    let of_a_host = |name: &&&str| {
        !name.is_empty()
            && !name.starts_with('-')
            && name.bytes().all(|at| at.is_ascii_alphanumeric() || b".-_".contains(&at))
    };
    if let Some(name) = nodes.iter().find(|name| !of_a_host(name)) {
        let name = crate::text::printable(name).into_owned();
        return Err(format!("no list of nodes to drain: the map has a node '{name}', expected the name of a host"));
    }
    let text: String = nodes.iter().map(|node| format!("{node}\n")).collect();
    result::write_text(path, &text).map_err(|error| error.to_string())?;
    if !nodes.is_empty() {
        let list = nodes.join(",");
        eprintln!("tailback: to drain them: scontrol update NodeName={list} State=DRAIN Reason=tailback-locate");
    }
    Ok(())
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

/// `suspects > 0`.
#[derive(Clone, Debug, PartialEq)]
struct SuspectsLimit {
    fails: FailsIf,
    limit: f64,
    given: String,
}

impl FromStr for SuspectsLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SIGNS: [(&str, FailsIf); 4] =
            [(">=", FailsIf::AtLeast), ("<=", FailsIf::AtMost), (">", FailsIf::Above), ("<", FailsIf::Below)];
        let wrong = || format!("invalid condition '{text}': expected 'suspects OP NUMBER', e.g. 'suspects > 0'");
        let rest = text.trim().strip_prefix("suspects").ok_or_else(wrong)?.trim_start();
        let (sign, fails) = SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(wrong)?;
        let limit: u32 = rest[sign.len()..].trim().parse().map_err(|_| wrong())?;
        Ok(SuspectsLimit { fails, limit: f64::from(limit), given: text.trim().to_owned() })
    }
}

impl SuspectsLimit {
    fn check(&self, run: &str, located: &Located) -> Check {
        let count = located.suspects.len();
        let outcome = if self.fails.holds(count as f64, self.limit) { Outcome::Fail } else { Outcome::Pass };
        let names: Vec<&str> = located.suspects.iter().map(|of| of.name.as_str()).take(5).collect();
        let found = if count == 0 { "is 0".into() } else { format!("is {count}: {}", names.join(", ")) };
        let sign = match self.fails {
            FailsIf::Above => "<=",
            FailsIf::AtLeast => "<",
            FailsIf::Below => ">=",
            FailsIf::AtMost => ">",
        };
        let required = format!("suspects {sign} {}", self.limit);
        Check { run: run.to_owned(), threshold: self.given.clone(), required, outcome, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        for (text, fails, limit) in [
            ("suspects > 0", FailsIf::Above, 0.0),
            ("suspects>=2", FailsIf::AtLeast, 2.0),
            (" suspects < 1 ", FailsIf::Below, 1.0),
        ] {
            let read: SuspectsLimit = text.parse().unwrap();
            assert_eq!((read.fails, read.limit), (fails, limit));
        }
        for text in
            ["suspects", "suspects > x", "suspects = 0", "lat.p99.loaded > 3", "suspects > -1", "suspects > 0.5"]
        {
            let error = text.parse::<SuspectsLimit>().unwrap_err();
            assert!(error.contains("'suspects OP NUMBER'"), "{error}");
        }
    }

    #[test]
    fn parts_are_percentages() {
        assert_eq!(["5%", "5", "0.1%"].map(|text| text.parse::<Part>().unwrap().to_string()), ["5%", "5%", "0.1%"]);
        for text in ["0", "100%", "-1", "x"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
