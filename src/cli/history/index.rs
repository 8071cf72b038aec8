//! The results of a folder, as far as a history needs them: read from the files, or from an index that an earlier look at the same
//! files left beside them.
//!
//! What is in the index is believed of files that have kept time and size, if this very build wrote it. An index that cannot be read is
//! made anew, and one that cannot be written is done without: it only saves time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::analysis::compare::{Side, repeats};
use crate::analysis::history::{Name, Value, figures};
use crate::input::Limit;
use crate::result::{self, Build, ResultFile, Run};

/// Hidden, and not called .json: no other command takes it for a result.
const FILE: &str = ".tailback-history";

/// The index as it is kept.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Index {
    build: String,
    /// What figures are called; figures are numbers of these.
    names: Vec<Name>,
    /// What each history is of.
    titles: Vec<String>,
    files: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    modified_ns: u64,
    size: u64,
    content: Content,
}

#[derive(Serialize, Deserialize)]
enum Content {
    /// Why it is no result.
    Refused(String),
    Result(Facts),
}

#[derive(Serialize, Deserialize)]
struct Facts {
    started: String,
    started_s: Option<u64>,
    seed: u64,
    duration_s: f64,
    label: Option<String>,
    cut_short: bool,
    /// For each run its history, and its figures.
    runs: Vec<(usize, Vec<Numbered>)>,
}

/// The number of its name, its value, what changes are a part of, and whether it is sound.
type Numbered = (usize, f64, Option<f64>, bool);

/// One run of one file.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub file: String,
    pub run: usize,
    pub group: usize,
    pub started: String,
    pub started_s: Option<u64>,
    pub label: Option<String>,
    pub cut_short: bool,
    pub figures: Vec<(Name, Value)>,
    seed: u64,
    duration_s: f64,
}

impl Job {
    /// The newest is the last by this.
    pub(super) fn order(&self) -> (Option<u64>, Vec<Part>) {
        (self.started_s, natural(&self.file))
    }

    pub(super) fn is_same_as(&self, other: &Job) -> bool {
        (self.started_s, self.seed, self.duration_s) == (other.started_s, other.seed, other.duration_s)
    }
}

/// A piece of a name: a number, or what is between numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Number(u64),
    Text(String),
}

/// What names are ordered by.
pub(super) fn natural(name: &str) -> Vec<Part> {
    let characters: Vec<char> = name.chars().collect();
    let parts = characters.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let part = |part: &[char]| {
        let text: String = part.iter().collect();
        text.parse().map_or(Part::Text(text), Part::Number)
    };
    parts.map(part).collect()
}

/// A job of each history that was read in full, to hold new ones against.
#[derive(Default)]
struct Examples(BTreeMap<usize, (ResultFile, usize)>);

impl Index {
    /// Of the results in `folder`; with the help of a kept index, and kept, where that is wanted.
    pub(super) fn of(folder: &Path, is_kept: bool) -> Result<Self, String> {
        let build = build();
        let kept = folder.join(FILE);
        let former = is_kept.then(|| Limit::RESULT.read(&kept).ok()).flatten();
        let former: Option<Index> = former.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut index = former.filter(|index| index.build == build && index.is_whole()).unwrap_or_default();
        index.build = build;
        let found = results(folder)?;
        let before = index.files.len();
        index
            .files
            .retain(|name, entry| found.get(name).is_some_and(|(.., facts)| *facts == (entry.modified_ns, entry.size)));
        let mut is_changed = index.files.len() != before;
        let mut examples = Examples::default();
        for (name, (path, (modified_ns, size))) in found {
            if !index.files.contains_key(&name) {
                let content = index.read(folder, &path, &mut examples);
                index.files.insert(name, Entry { modified_ns, size, content });
                is_changed = true;
            }
        }
        if is_kept && is_changed {
            let text = serde_json::to_string(&index).expect("plain data");
            // A folder that is only read works too.
            let _ = result::write_text(&kept, &text);
        }
        Ok(index)
    }

    /// Whether every number is one of a name or a history.
    fn is_whole(&self) -> bool {
        let runs = self.facts().flat_map(|(_, facts)| &facts.runs);
        let mut fits = runs.map(|(group, figures)| {
            *group < self.titles.len() && figures.iter().all(|(name, ..)| *name < self.names.len())
        });
        fits.all(|fits| fits)
    }

    fn facts(&self) -> impl Iterator<Item = (&String, &Facts)> {
        self.files.iter().filter_map(|(name, entry)| match &entry.content {
            Content::Result(facts) => Some((name, facts)),
            Content::Refused(_) => None,
        })
    }

    fn read(&mut self, folder: &Path, path: &Path, examples: &mut Examples) -> Content {
        let file = match result::read(path) {
            Ok(file) => file,
            Err(error) => {
                // The file is named by who asks.
                let text = error.to_string();
                let shown = format!("{}", path.display());
                return Content::Refused(text.replace(&shown, "it"));
            }
        };
        let mut runs = Vec::new();
        for (at, run) in file.runs.iter().enumerate() {
            let group = self.group(folder, &file, run, examples).unwrap_or_else(|| {
                self.titles.push(title(&file, run));
                examples.0.insert(self.titles.len() - 1, (file.clone(), at));
                self.titles.len() - 1
            });
            let figures = figures(&file, run);
            let numbered = figures.into_iter().map(|(name, of)| (self.number(name), of.value, of.whole, of.is_sound));
            runs.push((group, numbered.collect()));
        }
        Content::Result(Facts {
            started_s: file.started_s(),
            seed: file.seed,
            duration_s: file.duration_s,
            cut_short: file.cut_short().is_some(),
            started: file.started,
            label: file.label,
            runs,
        })
    }

    fn number(&mut self, name: Name) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// The history that a run goes on with.
    fn group(&self, folder: &Path, file: &ResultFile, run: &Run, examples: &mut Examples) -> Option<usize> {
        // The last ones first: nights follow each other.
        (0..self.titles.len()).rev().find(|group| {
            if !examples.0.contains_key(group) {
                let member = self
                    .facts()
                    .find_map(|(name, facts)| Some((name, facts.runs.iter().position(|(of, _)| of == group)?)));
                let example = member.and_then(|(name, at)| Some((result::read(&folder.join(name)).ok()?, at)));
                examples.0.extend(example.map(|example| (*group, example)));
            }
            let example = examples.0.get(group).and_then(|(file, at)| Some((file, file.runs.get(*at)?)));
            example.is_some_and(|(other, its)| repeats(&side(other, its), &side(file, run)))
        })
    }

    /// Files that are no results, and why.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&String, &String)> {
        self.files.iter().filter_map(|(name, entry)| match &entry.content {
            Content::Refused(why) => Some((name, why)),
            Content::Result(_) => None,
        })
    }

    pub(super) fn groups(&self) -> std::ops::Range<usize> {
        0..self.titles.len()
    }

    pub(super) fn title(&self, group: usize) -> String {
        self.titles[group].clone()
    }

    /// Every run of every result.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (file, facts) in self.facts() {
            for (run, (group, figures)) in facts.runs.iter().enumerate() {
                let figure = |&(name, value, whole, is_sound): &Numbered| {
                    (self.names[name].clone(), Value { value, whole, is_sound })
                };
                jobs.push(Job {
                    file: file.clone(),
                    run,
                    group: *group,
                    started: facts.started.clone(),
                    started_s: facts.started_s,
                    label: facts.label.clone(),
                    cut_short: facts.cut_short,
                    figures: figures.iter().map(figure).collect(),
                    seed: facts.seed,
                    duration_s: facts.duration_s,
                });
            }
        }
        jobs
    }
}

fn side<'a>(file: &'a ResultFile, run: &'a Run) -> Side<'a> {
    Side { label: String::new(), file, run }
}

/// Another build may read other figures from the same file.
fn build() -> String {
    let Build { version, git, .. } = Build::this();
    format!("1 {version} {}", git.unwrap_or_default())
}

/// What a history is of.
fn title(file: &ResultFile, run: &Run) -> String {
    let label = file.label.as_ref().map(|label| format!(", label {label}")).unwrap_or_default();
    let from = file.imported.as_ref().map(|from| format!(" ({from})")).unwrap_or_default();
    let (ranks, nodes) = (file.system.ranks, file.system.nodes.len());
    format!("{} over {}{from}, {ranks} ranks on {nodes} nodes{label}", file.command.word(), run.label())
}

/// When a file was changed, in ns since 1970, and its size.
type Stamp = (u64, u64);

/// The files of results by name.
fn results(folder: &Path) -> Result<BTreeMap<String, (PathBuf, Stamp)>, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if name.starts_with('.') || !name.ends_with(".json") {
            continue;
        }
        // A link's file, and none that went away meanwhile.
        let Ok(facts) = std::fs::metadata(&path) else { continue };
        let modified = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified_ns = modified.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        found.insert(name, (path, (modified_ns, facts.len())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::assemble::synthetic;

    fn keep(folder: &Path, name: &str, change: impl Fn(&mut ResultFile)) {
        let mut file = synthetic::file("tcp", None, 3.0);
        change(&mut file);
        result::write(&folder.join(name), &file).unwrap();
    }

    fn seen(index: &Index) -> Vec<(String, usize, usize)> {
        index.jobs().into_iter().map(|job| (job.file, job.group, job.figures.len())).collect()
    }

    #[test]
    fn what_was_read_is_not_read_again_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        keep(folder, "a.json", |_| {});
        keep(folder, "b.json", |file| file.seed = 2);
        keep(folder, "other.json", |file| file.label = Some("other".into()));
        std::fs::write(folder.join("notes.json"), "{}").unwrap();
        std::fs::write(folder.join("notes.txt"), "no result").unwrap();
        let first = Index::of(folder, true).unwrap();
        let found = seen(&first);
        let groups: Vec<usize> = found.iter().map(|of| of.1).collect();
        assert_eq!((groups, first.refused().count()), (vec![0, 0, 1], 1), "{found:?}");
        assert!(found.iter().all(|of| of.2 > 50) && first.title(1).ends_with("10 ranks on 10 nodes, label other"));
        // Files that can no longer be read are still known, as long as they look the same.
        let stamp = |name: &str| std::fs::metadata(folder.join(name)).unwrap();
        let (modified, size) = (stamp("b.json").modified().unwrap(), stamp("b.json").len());
        let damaged = File::create(folder.join("b.json")).unwrap();
        damaged.set_len(size).unwrap();
        damaged.set_modified(modified).unwrap();
        assert_eq!(seen(&Index::of(folder, true).unwrap()), found);
        assert_eq!(seen(&Index::of(folder, false).unwrap()).len(), 2, "without an index every file is read");
        damaged.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(Index::of(folder, true).unwrap().refused().count(), 2, "it is newer than the index knows");
        // One more night is held against one of its history, which is read again for that.
        std::fs::remove_file(folder.join("b.json")).unwrap();
        keep(folder, "c.json", |file| file.seed = 3);
        let grown = seen(&Index::of(folder, true).unwrap());
        assert_eq!(
            grown.iter().map(|of| (of.0.as_str(), of.1)).collect::<Vec<_>>(),
            [("a.json", 0), ("c.json", 0), ("other.json", 1)]
        );
    }

    #[test]
    fn an_index_that_is_damaged_foreign_or_impossible_is_done_without() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        keep(folder, "a.json", |_| {});
        let found = seen(&Index::of(folder, true).unwrap());
        let kept = folder.join(FILE);
        let whole = std::fs::read_to_string(&kept).unwrap();
        let out_of_range = whole.replacen("\"runs\":[[0,", "\"runs\":[[7,", 1);
        assert_ne!(out_of_range, whole);
        for bad in [whole[..whole.len() / 2].to_owned(), String::new(), "[]".into(), out_of_range] {
            std::fs::write(&kept, bad).unwrap();
            assert_eq!(seen(&Index::of(folder, true).unwrap()), found);
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), whole, "it is made anew");
        }
        // What nobody can write over.
        std::fs::remove_file(&kept).unwrap();
        std::fs::create_dir(&kept).unwrap();
        assert_eq!(seen(&Index::of(folder, true).unwrap()), found);
        assert!(Index::of(&folder.join("none"), true).err().unwrap().starts_with("cannot read "));
    }

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["n10.json", "n2.json", "n1-3.json", "n1.json", "m.json"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["m.json", "n1-3.json", "n1.json", "n2.json", "n10.json"]);
    }
}
