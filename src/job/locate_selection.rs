//! What is made of maps by `tailback locate`: suspects in the form that was asked for, lists of nodes, thresholds.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::analysis::checks::Check;
use crate::analysis::locate::{Demands, Located};
use crate::output::{self, Format};
use crate::result::{self, MapResult, ResultFile};
use crate::stats::{FailsIf, Outcome};

/// How sure suspects have to be, and what is done with them.
#[derive(Clone, Debug)]
pub struct LocateSelection {
    /// How sure a verdict has to be.
    pub demands: Demands,
    /// Where the nodes go that are suspects.
    pub drain_list: Option<PathBuf>,
    /// When the exit code is 1.
    pub fail_if: Vec<SuspectsLimit>,
    /// Where the outcome of these goes.
    pub junit: Option<PathBuf>,
}

impl LocateSelection {
    /// What the maps of these files show.
    ///
    /// # Errors
    /// A file that has no map, or maps that show nothing.
    pub fn located(&self, files: &[(&Path, &ResultFile)]) -> Result<Located, String> {
        let maps: Result<Vec<&MapResult>, String> = files.iter().map(|(path, file)| map_of(path, file)).collect();
        Located::of_all(&maps?, self.demands)
    }

    /// As it is printed.
    pub fn text(located: &Located, format: Format, verbose: bool) -> String {
        match format {
            Format::Json => serde_json::to_string_pretty(located).expect("plain data") + "\n",
            Format::Csv => output::located_csv(located),
            Format::Summary => output::located(located, verbose),
            Format::Table | Format::Gpcnet => output::located(located, true),
        }
    }

    /// Writes the list of nodes, and says what thresholds came to.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn checks(&self, located: &Located, files: &[(&Path, &ResultFile)]) -> Result<Vec<Check>, String> {
        if let (Some(list), Some((path, file))) = (&self.drain_list, files.first()) {
            write_list(list, &located.nodes_to_drain(map_of(path, file)?))?;
        }
        let run = files.first().map_or("locate", |(_, file)| file.command.word());
        let mut checks: Vec<Check> = self.fail_if.iter().map(|limit| limit.check(run, located)).collect();
        if !checks.is_empty() {
            checks.extend(files.iter().filter_map(|(_, file)| Check::incomplete(file)));
        }
        Ok(checks)
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

/// `suspects > 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspectsLimit {
    fails: FailsIf,
    limit: f64,
    given: String,
}

impl FromStr for SuspectsLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid condition '{text}': expected 'suspects OP NUMBER', e.g. 'suspects > 0'");
        let rest = text.trim().strip_prefix("suspects").ok_or_else(wrong)?.trim_start();
        let fails = FailsIf::ALL.into_iter().find(|fails| rest.starts_with(fails.sign())).ok_or_else(wrong)?;
        let limit: u32 = rest[fails.sign().len()..].trim().parse().map_err(|_| wrong())?;
        Ok(SuspectsLimit { fails, limit: f64::from(limit), given: text.trim().to_owned() })
    }
}

impl SuspectsLimit {
    fn check(&self, run: &str, located: &Located) -> Check {
        let count = located.suspects.len();
        let outcome = if self.fails.holds(count as f64, self.limit) { Outcome::Fail } else { Outcome::Pass };
        let names: Vec<&str> = located.suspects.iter().map(|of| of.name.as_str()).take(5).collect();
        let found = if count == 0 { "is 0".into() } else { format!("is {count}: {}", names.join(", ")) };
        let required = format!("suspects {} {}", self.fails.opposite().sign(), self.limit);
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
}
