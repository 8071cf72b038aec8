//! What the README and the other pages tell users to type: every command is one, and those that need no cluster do what
//! they say, as printed.

use std::path::Path;
use std::process::Command;

use crate::common::{Job, tailback, words};
use clap::Parser as _;
use tailback::cli::Cli;

/// The commands in a page's blocks, without prompt and comment; one that goes on in the next line is one.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let text = text.replace(" \\\n", " ");
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned()).collect()
}

/// A shell's words, quotes taken away.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().expect("there is one").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What Tailback itself is told in a line, whoever starts it; nothing where it is another program's.
fn told(line: &str) -> Option<Vec<String>> {
    let words = shell_words(line);
    let at = words.iter().rposition(|word| word == "tailback" || word.ends_with("/tailback"));
    let cargo =
        || words.iter().position(|word| word == "--").filter(|_| words.starts_with(&["cargo".into(), "run".into()]));
    Some(words[at.or_else(cargo)? + 1..].to_vec()).filter(|words| !words.is_empty())
}

#[test]
fn every_command_of_the_pages_is_one() {
    let mut count = 0;
    for page in [
        "README.md",
        "docs/application.md",
        "docs/lab.md",
        "docs/simulation.md",
        "docs/verbs.md",
        "docs/models.md",
        "docs/methodology.md",
    ] {
        for line in commands(page) {
            let Some(told) = told(&line) else { continue };
            let parsed = Cli::try_parse_from([vec!["tailback".to_owned()], told].concat());
            assert!(parsed.is_ok(), "{page}: {line}: {}", parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 20, "only {count} commands were found: the pages are written differently now");
}

/// Runs a line as a user's shell would, with the binary in the search path.
fn type_in(folder: &Path, line: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_tailback"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path).env("TAILBACK_NO_LAB", "1");
    let outcome = Job::start(command).end();
    // A threshold may well fail or be inconclusive: that is a result.
    assert!(matches!(outcome.code(), Some(0 | 1 | 3)), "{line}\n{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.errors().is_empty(), "{line}: {outcome:?}");
}

#[test]
fn commands_that_need_no_cluster_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let make = |line: &str| {
        let outcome = Job::start({
            let mut command = tailback(words(line));
            command.current_dir(folder.path());
            command
        })
        .end();
        assert_eq!(outcome.code(), Some(0), "{line}\n{}", outcome.stderr);
        outcome.stdout
    };
    let sim = "run --transport sim --machine small -n 16 --placements 2 --budget 300us --quiet";
    make(&format!("{sim} --seed 1 --out before.json"));
    make(&format!("{sim} --seed 1 --congestors a2a --out a2a-only.json"));
    make(&format!("{sim} --seed 1 --congestors incast --out incast-only.json"));
    make(&format!("{sim} --seed 1 --protocol eager,put,get --out result.json"));
    for day in ["monday", "tuesday", "friday"] {
        make(&format!("{sim} --seed 1 --congestors none --label wild --out wild-{day}.json"));
    }
    let log = make("show before.json --format gpcnet");
    std::fs::write(folder.path().join("gpcnet.log"), log).unwrap();
    make(&format!("{sim} --seed 1 --out after.json"));
    for (seed, name) in [(1, "before-1"), (2, "before-2"), (3, "after-1"), (4, "after-2")] {
        make(&format!("{sim} --seed {seed} --out {name}.json"));
    }

    let typed: Vec<String> = commands("README.md")
        .into_iter()
        .filter(|line| {
            // Those that run anything take half a minute each.
            let views = ["machine", "compare", "report", "import", "show"];
            views.iter().any(|view| line.strip_prefix("tailback ").is_some_and(|rest| rest.starts_with(view)))
        })
        .collect();
    assert!(typed.len() >= 8, "{typed:?}");
    typed.iter().for_each(|line| type_in(folder.path(), line));
    for made in ["report.html", "plots", "gpcnet.json"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
}
