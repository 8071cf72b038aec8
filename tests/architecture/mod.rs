//! The house keeps its order: layers of `src` use only those below them, and no circle joins files of any crate.
//!
//! Read from the text of `use` declarations and paths, so it needs no compiler and sees every feature's files. Test code
//! is left out: a test may use anything. A module's file and the files of its children are files like any others: what both
//! need stands in a child. Handing a child's name on (`pub use`) is not yet a use of it; another's is.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use source::Crate;

/// The folders and files at the top of `src` and `src/measure`, from the top down. Each uses only what stands below it.
const LAYERS: [&str; 23] = [
    "cli",
    "launch",
    "body",
    "job",
    "report",
    "output",
    "calibration",
    "analysis",
    "text",
    "import",
    "assemble",
    "result",
    "lab",
    "counters",
    "backend",
    "engine",
    "models",
    "plan",
    "kernel",
    "layout",
    "input",
    "stats",
    "lib",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The source folders whose files may not form circles: of the binary, and of every backend there is.
fn crates() -> Vec<String> {
    let backends = fs::read_dir(root().join("backends")).expect("the folder of backends");
    let names = backends.map(|entry| entry.expect("a folder's entry").file_name().to_string_lossy().into_owned());
    let mut crates: Vec<String> = names.map(|name| format!("backends/{name}/src")).collect();
    crates.sort();
    assert!(crates.iter().any(|name| name == "backends/transport/src"), "no backends in {crates:?}");
    crates.insert(0, "src".to_owned());
    crates
}

/// File to the files it takes names from.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn layer_of(file: &str) -> usize {
    let top = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
    LAYERS.iter().position(|layer| *layer == top).unwrap_or_else(|| {
        panic!("src/{top} has no place in the order of layers: add it to LAYERS in tests/architecture/mod.rs")
    })
}

/// Arrows that run back up, in words.
fn violations(arrows: &Arrows) -> Vec<String> {
    let mut found = Vec::new();
    for (from, targets) in arrows {
        for to in targets {
            if layer_of(to) < layer_of(from) {
                found.push(format!("{from} uses {to}, which stands above it"));
            }
        }
    }
    found
}

/// The files of some circle, if there is one.
fn circle(arrows: &Arrows) -> Option<Vec<String>> {
    fn visit<'a>(file: &'a str, arrows: &'a Arrows, way: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> bool {
        if let Some(at) = way.iter().position(|seen| *seen == file) {
            way.drain(..at);
            return true;
        }
        if !done.insert(file) {
            return false;
        }
        way.push(file);
        if arrows.get(file).is_some_and(|targets| targets.iter().any(|to| visit(to, arrows, way, done))) {
            return true;
        }
        way.pop();
        false
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    let found = arrows.keys().any(|file| visit(file, arrows, &mut way, &mut done));
    found.then(|| way.into_iter().map(str::to_owned).collect())
}

#[test]
fn layers_use_only_what_is_below_them() {
    let found = violations(&Crate::read(&root().join("src")).arrows());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_circle_joins_files() {
    for folder in crates() {
        let arrows = Crate::read(&root().join(&folder)).arrows();
        assert!(arrows.values().any(|targets| !targets.is_empty()), "{folder}: no arrow was read");
        let found = circle(&arrows);
        assert!(found.is_none(), "{folder}: a circle: {}", found.unwrap_or_default().join(" -> "));
    }
}

/// Integration tests are found by name, not by folder: one that nobody names would never run, and nobody would notice.
#[test]
fn every_file_of_tests_is_named_where_tests_are_named() {
    for package in crates().iter().map(|source| root().join(source)) {
        let package = package.parent().expect("src is in a package");
        let Ok(entries) = fs::read_dir(package.join("tests")) else { continue };
        let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
        if !manifest.contains("autotests = false") {
            continue;
        }
        let modules = fs::read_to_string(package.join("tests/main.rs")).expect("what names the modules");
        for path in entries.map(|entry| entry.expect("a folder's entry").path()) {
            let name = path.file_stem().expect("has a name").to_string_lossy().into_owned();
            let is_module = path.extension().is_some_and(|end| end == "rs") && name != "main";
            if (is_module || path.join("mod.rs").is_file())
                && !modules.lines().any(|line| line == format!("mod {name};"))
            {
                panic!("{} is no module of tests/main.rs", path.display());
            }
            let own = format!("path = \"tests/{name}/main.rs\"");
            assert!(!path.join("main.rs").is_file() || manifest.contains(&own), "{}: no [[test]]", path.display());
        }
    }
}

#[test]
fn every_layer_is_there() {
    for layer in LAYERS {
        let mut places = ["src", "src/measure"].map(|folder| root().join(folder)).into_iter();
        let is_there = places.any(|at| at.join(layer).is_dir() || at.join(format!("{layer}.rs")).is_file());
        assert!(is_there, "src/{layer} is gone: mend LAYERS");
    }
}

/// The test would see what it is for.
#[test]
fn a_use_of_the_command_line_in_a_backend_is_found() {
    let source = Crate::read(&root().join("src"));
    assert!(violations(&source.arrows()).is_empty());
    let lines = [
        "use crate::cli;",
        "use crate::cli::*;",
        "use crate::cli::Cli;",
        "pub use crate::cli::Cli;",
        "fn f() { crate::cli::call(); }",
    ];
    for line in lines {
        let mut source = source.clone();
        source.insert("backend/tcp.rs", line);
        let arrows = source.arrows();
        let found = violations(&arrows);
        assert_eq!(found, ["backend/tcp.rs uses cli/mod.rs, which stands above it"], "{line}");
        assert!(circle(&arrows).is_some(), "cli uses backend too, so this is a circle");
    }
}

#[test]
fn names_are_followed_to_where_they_are_made() {
    let source = Crate::of(&[
        ("lib.rs", "pub mod a;\npub mod b;"),
        ("a/mod.rs", "mod inner;\nmod other;\npub use inner::{One, Two as Second};\nfn f() { other::call(); }"),
        ("a/inner.rs", "pub struct One; pub struct Two; // use crate::b;\nconst S: &str = \"use crate::b::text\";"),
        ("a/other.rs", "use super::One;\npub fn call() {}\n#[cfg(test)]\nmod tests { use crate::b::Thing; }"),
        ("b.rs", "use crate::a::{self, Second};\npub struct Thing;\nfn g() -> a::One { a::One }"),
    ]);
    let arrows = source.arrows();
    let to = |file: &str| arrows[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(to("a/mod.rs"), ["a/other.rs"]);
    assert_eq!(to("a/other.rs"), ["a/inner.rs"]);
    assert_eq!(to("b.rs"), ["a/inner.rs"]);
    assert!(to("a/inner.rs").is_empty(), "comments and strings are no code");
    assert!(circle(&arrows).is_none());
}

#[test]
fn circles_are_found() {
    let source = Crate::of(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "fn f() { crate::c::call(); } pub struct B;"),
        ("c.rs", "use super::a::A;"),
    ]);
    assert_eq!(circle(&source.arrows()).unwrap(), ["a.rs", "b.rs", "c.rs"]);
}
