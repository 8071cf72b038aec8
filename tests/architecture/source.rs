//! A crate's files as modules, and which names each takes from which other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Files by path within the crate's source folder, without comments, strings and tests.
#[derive(Clone)]
pub struct Crate {
    files: BTreeMap<String, Source>,
}

/// A file's `use` declarations, and its text without them.
#[derive(Clone)]
struct Source {
    uses: Vec<Use>,
    body: String,
}

/// A path as written, with the name it gets.
#[derive(Clone)]
struct Use {
    path: Vec<String>,
    name: String,
    exported: bool,
}

/// What a path leads to.
enum Target {
    Module(String),
    Item(String),
    Outside,
}

impl Crate {
    pub fn read(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(folder, folder, &mut files);
        // A crate whose modules stand beside the others': they are handed on under their own names.
        files.remove("measure/mod.rs");
        let files = files.into_iter().map(|(file, text)| match file.strip_prefix("measure/") {
            Some(name) => (name.to_owned(), text),
            None => (file, text),
        });
        Crate::without_tests(files.collect())
    }

    pub fn of(files: &[(&str, &str)]) -> Self {
        Crate::without_tests(files.iter().map(|(file, text)| ((*file).to_owned(), plain(text))).collect())
    }

    pub fn insert(&mut self, file: &str, line: &str) {
        let source = self.files.get_mut(file).unwrap_or_else(|| panic!("there is no {file}"));
        let added = split(line);
        source.uses.extend(added.uses);
        source.body += &added.body;
    }

    /// Files that are modules of tests only are left out.
    fn without_tests(mut files: BTreeMap<String, String>) -> Self {
        let of_tests: Vec<String> = files
            .iter()
            .flat_map(|(file, text)| {
                let folder = folder_of(file);
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                let marked = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").map(|pair| pair[1].to_owned());
                marked
                    .filter_map(|line| Some(line.strip_suffix(';')?.split_once("mod ")?.1.to_owned()))
                    .map(move |name| format!("{folder}{name}"))
                    .collect::<Vec<_>>()
            })
            .collect();
        files.retain(|file, _| {
            let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
            file != "main.rs" && !of_tests.iter().any(|test| module == test || module.starts_with(&format!("{test}/")))
        });
        let code = |text: &str| split(text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]));
        Crate { files: files.iter().map(|(file, text)| (file.clone(), code(text))).collect() }
    }

    /// The file of a module, given its path; the root is empty.
    fn file(&self, module: &[String]) -> Option<&String> {
        let path = module.join("/");
        let names = if path.is_empty() {
            vec!["lib.rs".to_owned()]
        } else {
            vec![format!("{path}.rs"), format!("{path}/mod.rs")]
        };
        names.iter().find_map(|name| self.files.get_key_value(name)).map(|(file, _)| file)
    }

    /// From each file to the files it takes names from.
    pub fn arrows(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.files.keys().map(|file| (file.clone(), self.targets(file))).collect()
    }

    fn targets(&self, file: &str) -> BTreeSet<String> {
        let (module, Source { uses, body }) = (module_of(file), &self.files[file]);
        let mut found = BTreeSet::new();
        let mut take = |target: Target| {
            if let Target::Item(to) = target
                && to != file
            {
                found.insert(to);
            }
        };
        let body_paths = paths(body);
        // Children are named without a prefix.
        let mut modules: Vec<(String, Vec<String>)> = Vec::new();
        for name in declared(body) {
            modules.push((name.clone(), [module.clone(), vec![name]].concat()));
        }
        for using in uses {
            let target = self.resolve(&module, &using.path, 0);
            let below = |of: &String| module_of(of).starts_with(&module);
            if using.exported && matches!(&target, Target::Module(of) | Target::Item(of) if below(of)) {
                continue;
            }
            match target {
                Target::Module(of) if body_paths.iter().any(|path| path[0] == using.name) => {
                    modules.push((using.name.clone(), module_of(&of)));
                }
                // Nothing is taken from it by name, so the use is of the module itself.
                Target::Module(of) => take(Target::Item(of)),
                target => take(target),
            }
        }
        for path in body_paths {
            let full = match modules.iter().find(|(name, _)| *name == path[0]) {
                Some((_, of)) => {
                    let rest = path[1..].iter().cloned();
                    ["crate".to_owned()].into_iter().chain(of.iter().cloned()).chain(rest).collect()
                }
                None if ["crate", "self", "super"].contains(&path[0].as_str()) => path,
                None => continue,
            };
            take(self.resolve(&module, &full, 0));
        }
        found
    }

    /// Follows a path from a module through re-exports to the file that holds what it names.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Target {
        let mut at = from.to_vec();
        let mut names = path.iter().peekable();
        let first = path.first().map_or("", String::as_str);
        match first {
            "crate" => {
                at.clear();
                names.next();
            }
            "self" => {
                names.next();
            }
            "super" => {}
            _ if self.file(&[from, &path[..1]].concat()).is_some() => {}
            _ => return Target::Outside,
        }
        while names.next_if(|name| *name == "super").is_some() {
            at.pop();
        }
        let rest: Vec<String> = names.cloned().collect();
        for (index, name) in rest.iter().enumerate() {
            let deeper = [at.clone(), vec![name.clone()]].concat();
            if self.file(&deeper).is_some() {
                at = deeper;
                continue;
            }
            let Some(file) = self.file(&at) else { return Target::Outside };
            let exported = self.files[file].uses.iter().find(|using| using.exported && using.name == *name);
            return match exported {
                Some(using) if depth < 8 => {
                    let path: Vec<String> = using.path.iter().chain(&rest[index + 1..]).cloned().collect();
                    match self.resolve(&at, &path, depth + 1) {
                        Target::Outside => Target::Item(file.clone()),
                        target => target,
                    }
                }
                _ => Target::Item(file.clone()),
            };
        }
        self.file(&at).map_or(Target::Outside, |file| Target::Module(file.clone()))
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder's entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            files.insert(name, plain(&fs::read_to_string(&path).expect("a source file")));
        }
    }
}

fn folder_of(file: &str) -> String {
    let module = module_of(file);
    if module.is_empty() { String::new() } else { module.join("/") + "/" }
}

fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// The text without comments and what stands in quotes.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if quoted => {
                    characters.next();
                }
                '"' => quoted = !quoted,
                '/' if !quoted && characters.peek() == Some(&'/') => break,
                _ if quoted => {}
                _ => out.push(character),
            }
        }
        out.push('\n');
    }
    out
}

fn split(text: &str) -> Source {
    let (mut uses, mut body, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = find_use(rest) {
        let line = rest[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let exported = rest[line..at].trim_start().starts_with("pub");
        body += &rest[..line];
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        let tree = rest[at + 4..end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand(&tree, &[], exported, &mut uses);
        rest = rest.get(end + 1..).unwrap_or("");
    }
    Source { uses, body: body + rest }
}

fn find_use(text: &str) -> Option<usize> {
    text.match_indices("use ").map(|(at, _)| at).find(|&at| {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[line..at].trim();
        before.is_empty() || (before.starts_with("pub") && !before.contains(' ') || before.starts_with("pub(in "))
    })
}

fn expand(tree: &str, before: &[String], exported: bool, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let head = head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
        let before: Vec<String> = before.iter().cloned().chain(head).collect();
        let inner = &group[..group.rfind('}').unwrap_or(group.len())];
        let (mut depth, mut start) = (0, 0);
        for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inner[start..at], &before, exported, uses);
                    start = (at + 1).min(inner.len());
                }
                _ => {}
            }
        }
        return;
    }
    if tree.is_empty() {
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path: Vec<String> = before.iter().cloned().chain(path.split("::").map(|p| p.trim().to_owned())).collect();
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let name = alias.map_or_else(|| path[path.len() - 1].clone(), str::to_owned);
    uses.push(Use { path, name, exported });
}

/// Modules declared in a file of their own.
fn declared(body: &str) -> Vec<String> {
    let line = |line: &str| Some(line.trim().strip_suffix(';')?.rsplit_once("mod ")?.1.to_owned());
    body.lines().filter_map(line).collect()
}

/// Paths of at least two names in code.
fn paths(body: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let word = |character: char| character.is_alphanumeric() || character == '_';
    for part in body.split(|character: char| !(word(character) || character == ':')) {
        let names: Vec<&str> = part.split("::").collect();
        if names.len() > 1 && names.iter().all(|name| !name.is_empty() && name.chars().all(word)) {
            found.push(names.into_iter().map(str::to_owned).collect());
        }
    }
    found
}
