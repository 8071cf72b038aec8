//! Which runs of which files are compared, and what they are called.

use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;

use crate::engine::LoadState;
use crate::kernel::Canary;
use crate::result::{ResultFile, Run, System, Test, distinct};

/// What tells the runs of one file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The backend
    Transport,
    /// The protocol of two-sided messages
    Protocol,
    /// The congestors: those of one file with each other, or files that differ in them
    Congestor,
    /// The number of ranks: files that differ in it, and in the number of nodes
    Ranks,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            By::Transport => "transport",
            By::Protocol => "protocol",
            By::Congestor => "mix of congestors",
            By::Ranks => "number of ranks",
        }
    }

    /// What a side is told apart by.
    fn key(self, side: &Side<'_>) -> String {
        match self {
            By::Transport => side.run.transport.backend.clone(),
            By::Protocol => side.run.transport.protocol.clone().unwrap_or_else(|| "none".into()),
            By::Congestor => {
                let keys: Vec<&str> = side.file.plan.congestors.iter().map(|test| test.kernel.info().key).collect();
                keys.join("+")
            }
            By::Ranks => side.file.system.ranks.to_string(),
        }
    }

    /// Whether it sets files beside each other, rather than the runs of one.
    fn is_of_files(self) -> bool {
        matches!(self, By::Congestor | By::Ranks)
    }
}

/// One run of one file.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Side<'a> {
    pub label: String,
    pub file: &'a ResultFile,
    pub run: &'a Run,
}

impl<'a> Side<'a> {
    /// A kernel's tests that kept their samples, isolated and loaded.
    pub fn sampled(&self, kernel: Canary) -> Vec<(&'a Test, Histogram<u64>)> {
        let tests =
            [LoadState::Isolated, LoadState::Loaded].into_iter().filter_map(|phase| self.run.test(kernel, phase));
        tests.filter_map(|test| Some((test, test.samples()?))).collect()
    }

    /// The kernels it measured, in order.
    pub fn kernels(&self) -> Vec<Canary> {
        distinct(self.run.tests.iter().map(|test| test.kernel))
    }
}

/// The files' names without folder and end; the folder, or else a number, tells those of the same name apart.
pub fn file_names(files: &[(PathBuf, ResultFile)]) -> Vec<String> {
    let short: Vec<String> = files.iter().map(|(path, file)| file_name(path, file)).collect();
    let is_shared = |name: &String| short.iter().filter(|other| *other == name).count() > 1;
    // Runs are often kept in a folder each, under the same name.
    let named = |((path, _), name): (&(PathBuf, ResultFile), &String)| match path.parent().and_then(Path::file_name) {
        Some(folder) if is_shared(name) => format!("{}/{name}", folder.to_string_lossy()),
        _ => name.clone(),
    };
    numbered(files.iter().zip(&short).map(named).collect())
}

/// A name that says of a simulated network that it is one.
fn file_name(path: &Path, file: &ResultFile) -> String {
    let name = name(path);
    if file.machine.is_some() && !name.contains("simulated") { format!("{name} (simulated)") } else { name }
}

fn numbered(mut names: Vec<String>) -> Vec<String> {
    for at in 0..names.len() {
        let twins = (0..at).filter(|&before| names[before] == names[at]).count();
        // A later name may not end like the one made here: try on until it is new.
        let free = (twins + 1..).map(|n| format!("{} #{n}", names[at])).find(|made| !names.contains(made));
        if let Some(made) = free.filter(|_| twins > 0) {
            names[at] = made;
        }
    }
    names
}

/// Every run of every file, named so that no two are called the same.
pub fn sides(files: &[(PathBuf, ResultFile)]) -> Vec<Side<'_>> {
    let mut sides = Vec::new();
    for ((_, file), name) in files.iter().zip(file_names(files)) {
        for run in &file.runs {
            let label = match (files.len(), file.runs.len()) {
                (_, 1) => name.clone(),
                (1, _) => file.run_name(run),
                _ => format!("{name} ({})", file.run_name(run)),
            };
            sides.push(Side { label, file, run });
        }
    }
    let names = numbered(sides.iter().map(|side| side.label.clone()).collect());
    sides.iter_mut().zip(names).for_each(|(side, name)| side.label = name);
    sides
}

/// The runs of one file.
pub fn of_file(file: &ResultFile) -> Vec<Side<'_>> {
    let names = numbered(file.runs.iter().map(Run::label).collect());
    file.runs.iter().zip(names).map(|(run, label)| Side { label, file, run }).collect()
}

/// The runs to compare: by file, within one file by `by`, or files by their congestors.
pub fn chosen(files: &[(PathBuf, ResultFile)], by: Option<By>) -> Result<Vec<Side<'_>>, String> {
    let mut sides = sides(files);
    if let Some((path, _)) = files.iter().find(|(_, file)| file.is_by_size()) {
        return Err(format!(
            "{} has several message sizes, which are not compared with each other: measure one with --set KERNEL.bytes=SIZE",
            path.display()
        ));
    }
    if let Some(by) = by {
        if files.len() != 1 && !by.is_of_files() {
            return Err(format!("--by {} compares the runs of one file; {} were given", by.word(), files.len()));
        }
        let first = sides.first().map(|side| by.key(side));
        if sides.iter().all(|side| Some(by.key(side)) == first) {
            let these = files.first().map_or_else(String::new, |(path, _)| path.display().to_string());
            let has = if files.len() > 1 { "these files have".to_owned() } else { format!("{these} has") };
            return Err(format!("{has} runs of only one {}", by.word()));
        }
    }
    if sides.len() < 2 {
        return Err("nothing to compare: give two files, or one with runs over several transports".into());
    }
    // Equal keys stay in the file's order.
    if by == Some(By::Transport) {
        let order: Vec<String> = sides.iter().map(|side| side.run.transport.backend.clone()).collect();
        sides.sort_by_key(|side| order.iter().position(|name| *name == side.run.transport.backend));
    }
    if by == Some(By::Congestor) {
        let names = numbered(sides.iter().map(|side| By::Congestor.key(side)).collect());
        sides.iter_mut().zip(names).for_each(|(side, name)| side.label = name);
    }
    if by == Some(By::Ranks) {
        for side in &mut sides {
            let System { ranks, nodes, .. } = &side.file.system;
            let on = if nodes.is_empty() { String::new() } else { format!(" on {} nodes", nodes.len()) };
            side.label = format!("{}, {ranks} ranks{on}", side.label);
        }
    }
    Ok(sides)
}

fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}
