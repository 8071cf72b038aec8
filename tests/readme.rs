//! What the README and the other pages tell users to type: every command is one, those of the pages that are read first do what
//! they say, and what needs a cluster is said to. Scripts are scripts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Job;
use clap::Parser as _;
use clap::error::ErrorKind;
use tailback::cli::Cli;

/// Every page; of the first four the commands are run.
const PAGES: [&str; 17] = [
    "README.md",
    "docs/tutorial.md",
    "docs/questions.md",
    "docs/cluster.md",
    "docs/README.md",
    "docs/reference.md",
    "docs/glossary.md",
    "docs/application.md",
    "docs/lab.md",
    "docs/simulation.md",
    "docs/locate.md",
    "docs/map.md",
    "docs/verbs.md",
    "docs/models.md",
    "docs/methodology.md",
    "docs/security.md",
    "docs/packaging.md",
];

/// What a page has between prose.
struct Block {
    language: String,
    text: String,
    /// Whether the paragraph before it says so, or that it needs a build with MPI: then it is read and not run.
    needs_a_cluster: bool,
}

impl Block {
    /// The commands, without prompt and comment; one that goes on in the next line is one.
    fn commands(&self) -> Vec<String> {
        let text = self.text.replace(" \\\n", " ");
        let lines = text.lines().filter_map(|line| match self.language.as_str() {
            "bash" => Some(line).filter(|line| !line.starts_with('#')),
            _ => line.strip_prefix("$ "),
        });
        lines.map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned()).collect()
    }
}

/// A page's blocks, and its prose.
fn read(page: &str) -> (Vec<Block>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (mut blocks, mut prose, mut paragraph) = (Vec::new(), String::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            let needs_a_cluster =
                ["needs a cluster", "needs a build with MPI"].iter().any(|said| paragraph.contains(said));
            blocks.push(Block { language: language.to_owned(), text, needs_a_cluster });
            continue;
        }
        // Blocks may follow each other.
        if !line.is_empty() && prose.ends_with("\n\n") {
            paragraph.clear();
        }
        paragraph += &format!("{line} ");
        prose += &format!("{line}\n");
    }
    (blocks, prose)
}

/// A shell's words, quotes taken away; what goes to other commands or files is cut off.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (end, Some(begun)) if end == begun => quote = None,
            (' ', None) => words.push(String::new()),
            (other, _) => words.last_mut().expect("there is one").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What Tailback itself is told in a line, whoever starts it; nothing where it is another program's.
fn told(line: &str) -> Option<Vec<String>> {
    let words = shell_words(line);
    let at = words.iter().rposition(|word| word == "tailback" || word.ends_with("/tailback"))?;
    let rest = words[at + 1..].iter().take_while(|word| !["|", "||", "&&", ">", "<", "&"].contains(&word.as_str()));
    Some(rest.cloned().collect()).filter(|words: &Vec<String>| !words.is_empty())
}

/// What clap says of words that are no command; those that ask for help are one.
fn mistake(told: &[String]) -> Option<clap::Error> {
    let words = std::iter::once("tailback").chain(told.iter().map(String::as_str));
    let asks_for_help =
        |error: &clap::Error| matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    Cli::try_parse_from(words).err().filter(|error| !asks_for_help(error))
}

#[test]
fn every_command_of_the_pages_is_one() {
    let mut count = 0;
    for page in PAGES {
        let (blocks, prose) = read(page);
        for line in blocks.iter().flat_map(Block::commands) {
            let Some(told) = told(&line) else { continue };
            assert!(mistake(&told).is_none(), "{page}: {line}: {}", mistake(&told).unwrap());
            count += 1;
        }
        // In running text, where a command may only be named.
        let prose = prose.replace('\n', " ");
        for code in prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("tailback ")) {
            if !["COMMAND", "MACHINE", "...", "{"].iter().any(|stands_for| code.contains(stands_for)) {
                let named = [ErrorKind::MissingRequiredArgument, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
                let mistake = mistake(&shell_words(code)[1..]).filter(|error| !named.contains(&error.kind()));
                assert!(mistake.is_none(), "{page}: {code}: {}", mistake.unwrap());
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} commands were found: the pages are written differently now");
}

#[test]
fn what_needs_a_cluster_is_said_to() {
    let launchers = ["srun", "mpirun", "mpiexec", "salloc", "sbatch", "flux", "jsrun", "bsub"];
    for page in PAGES {
        for block in read(page).0.iter().filter(|block| block.language == "console" && !block.needs_a_cluster) {
            for line in block.commands() {
                let first = line.split(' ').next().unwrap_or_default();
                assert!(
                    !launchers.contains(&first),
                    "{page}: {line}: the text before it does not say 'needs a cluster'"
                );
            }
        }
    }
}

#[test]
fn scripts_are_scripts() {
    let mut count = 0;
    for block in read("docs/cluster.md").0.iter().filter(|block| block.language == "bash") {
        assert!(block.text.starts_with("#!/usr/bin/env bash\n"), "{}", block.text);
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().expect("bash is there");
        bash.stdin.take().expect("it is a pipe").write_all(block.text.as_bytes()).expect("bash reads");
        assert!(bash.wait().expect("it ends").success(), "{}", block.text);
        count += 1;
    }
    assert!(count > 10, "{count}");
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_lead_to_pages_and_headings_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for page in PAGES {
        let (_, prose) = read(page);
        let folder = Path::new(page).parent().expect("a page is in a folder");
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.into() } else { folder.join(file) };
            assert!(root.join(&target).exists(), "{page}: {link}: there is no such file");
            count += 1;
            if !heading.is_empty() {
                let (_, prose) = read(target.to_str().expect("names are text"));
                let has = prose
                    .lines()
                    .filter_map(|line| line.strip_prefix('#'))
                    .any(|of| anchor(of.trim_start_matches('#')) == heading);
                assert!(has, "{page}: {link}: there is no such heading");
            }
        }
    }
    assert!(count > 50, "only {count} links were found");
}

/// Runs a line as a user's shell would, with the binary in the search path.
fn type_in(folder: &Path, line: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_tailback"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path);
    // Settings of the emulated cluster need one.
    if !line.contains("--lab-settings") {
        command.env("TAILBACK_NO_LAB", "1");
    }
    let outcome = Job::start(command).end();
    // A threshold may well fail or be inconclusive: that is a result.
    assert!(matches!(outcome.code(), Some(0 | 1 | 3)), "{line}\n{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.errors().is_empty(), "{line}: {outcome:?}");
}

/// The line with what makes it short: the last of an option counts. Ranks are plain local ones.
fn short(line: &str, told: &[String]) -> String {
    let is_simulated = told.iter().any(|word| word == "sim" || word == "simulate");
    let more = match told[0].as_str() {
        "run" | "simulate" if is_simulated => " --placements 2 --budget 300us --ranks 16",
        "run" => " --placements 3 --budget 50ms --launches 2",
        "launch" => " --placements 3 --budget 50ms",
        "tune" => " --placements 3 --budget 200ms --canaries lat --ranks 6",
        "sweep" if is_simulated => " --placements 3 --budget 300us --ranks 16 --canaries lat",
        "sweep" => " --placements 3 --budget 50ms --canaries lat --ranks 6",
        "burst" if is_simulated => " --placements 2 --budget 8ms",
        "burst" => " --placements 1 --budget 1200ms --ranks 6",
        "locate" => " --ranks 6",
        "maxrate" => " --repetitions 2 --iterations 4 --ranks 4",
        _ => "",
    };
    let launches = told.iter().any(|word| word == "--launches");
    let more = if launches { more.to_owned() } else { more.replace(" --launches 2", "") };
    format!("{}{more}", line.replace("--largest 64KiB", "--largest 1KiB"))
}

/// Types a page from its beginning to its end, in a folder of its own.
fn type_page(page: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for block in read(page).0.iter().filter(|block| block.language == "console" && !block.needs_a_cluster) {
        for line in block.commands() {
            // The last `tailback` of a line may be one that another starts.
            let Some(told) = line.strip_prefix("tailback ").map(shell_words) else { continue };
            type_in(folder.path(), &short(&line, &told));
            count += 1;
        }
    }
    assert!(count > 0, "{page}: no command was found: it is written differently now");
}

/// A test for each page, so that they run beside each other.
mod commands_that_need_no_cluster_do_what_they_say {
    use super::type_page;

    #[test]
    fn readme() {
        type_page("README.md");
    }

    #[test]
    fn tutorial() {
        type_page("docs/tutorial.md");
    }

    #[test]
    fn questions() {
        type_page("docs/questions.md");
    }

    #[test]
    fn cluster() {
        type_page("docs/cluster.md");
    }
}
