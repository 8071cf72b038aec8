//! The load test on a simulated machine and on alternatives to it, side by side.

use std::path::PathBuf;
use std::sync::Arc;

use super::start;
use crate::analysis::compare;
use crate::backend::simulator::machine::Machine;
use crate::job::{Request, Scratch};
use crate::output;
use crate::result;
use crate::stats::Statistic;

/// Runs `request` on every machine, the first being what the others are compared with, and prints the comparison. The
/// results go into the folder `keep`, if one is given, under the machines' labels.
pub fn what_if(request: &Request, machines: &[(String, Arc<Machine>)], keep: Option<PathBuf>) -> Result<u8, String> {
    // Kept as long as the files in it are read.
    let scratch = Scratch::new()?;
    let folder = match keep {
        Some(folder) => {
            let problem = |error| format!("cannot make {}: {error}", folder.display());
            std::fs::create_dir_all(&folder).map_err(problem)?;
            folder
        }
        None => scratch.path(""),
    };
    let mut files = Vec::new();
    for (at, (label, machine)) in machines.iter().enumerate() {
        request.say(&format!("{} of {}: {label}", at + 1, machines.len()));
        let path = folder.join(format!("{}.json", plain(label)));
        let mut alternative = request.clone();
        alternative.settings.machine = Some(Arc::clone(machine));
        alternative.output.out = Some(path.clone());
        alternative.output.silent = true;
        let code = start(&alternative)?;
        if code != 0 {
            return Ok(code);
        }
        let file = result::read(&path).map_err(|error| error.to_string())?;
        files.push((path, file));
    }
    let verbose = request.output.verbose;
    let statistics: &[Statistic] = if verbose { &Statistic::ALL } else { &compare::SHOWN };
    let sides = compare::sides(&files);
    let comparison = compare::compare(&sides, statistics);
    let tables = if verbose { compare::render(&comparison) + "\n" } else { String::new() };
    output::print(&(tables + &output::alternatives(&sides, &comparison)))
}

/// A label as part of a file's name.
fn plain(label: &str) -> String {
    label.chars().map(|c| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '_' }).collect()
}
