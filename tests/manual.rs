//! Manual pages and completions: of every command that the help has, of no other, and taken by the programs that read them.

use std::collections::BTreeSet;
use std::process::Command;

use clap::CommandFactory as _;
use tailback::cli::Cli;

use crate::common::{Folder, run, succeed};

/// The pages of a command and of those below it that users may see.
fn expected(command: &clap::Command, name: &str) -> BTreeSet<String> {
    let below = command.get_subcommands().filter(|of| !of.is_hide_set() && of.get_name() != "help");
    let pages = below.flat_map(|of| expected(of, &format!("{name}-{}", of.get_name())));
    pages.chain([format!("{name}.1")]).collect()
}

#[test]
fn every_command_has_a_page() {
    let folder = Folder::new();
    let said = succeed(&format!("man {}", folder.path("new/man1"))).stdout;
    let expected = expected(&Cli::command(), "tailback");
    assert!(said.starts_with(&format!("{} pages in ", expected.len())), "{said}");
    let files = std::fs::read_dir(folder.path("new/man1")).expect("it was made");
    let written: BTreeSet<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(written, expected);
    for name in &written {
        let page = folder.text(&format!("new/man1/{name}"));
        let title = name.trim_end_matches(".1").replace('-', "\\-");
        assert!(page.contains(".SH NAME\n"), "{name}");
        assert!(page.lines().any(|line| line.starts_with(&format!("{title} \\- "))), "{name}: {page}");
    }
    let run = folder.text("new/man1/tailback-run.1");
    for part in [".SH PLAN", "\\-\\-fail\\-if", "GPCNeT 1.3\\*(Aqs kernels"] {
        assert!(run.contains(part), "{part}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    assert!(run("man /dev/null/pages").refusal().contains("/dev/null/pages: Not a directory"));
}

/// What bash offers for the last of some words.
fn offered(script: &str, words: &[&str]) -> String {
    let last = words.len() - 1;
    let typed = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let line = format!(
        "source '{script}' && COMP_WORDS=({typed}) COMP_CWORD={last} && _tailback tailback '{}' '{}' && echo \"${{COMPREPLY[*]}}\"",
        words[last],
        words[last - 1],
    );
    let done = Command::new("bash").args(["--norc", "-c", &line]).output().expect("bash is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

#[test]
fn bash_completes() {
    let folder = Folder::new();
    let script = folder.write("tailback.bash", succeed("completions bash").stdout);
    let checked = Command::new("bash").args(["-n", &script]).status().expect("bash is there");
    assert!(checked.success());
    assert_eq!(offered(&script, &["tailback", "ru"]), "run");
    assert_eq!(offered(&script, &["tailback", "run", "--tran"]), "--transport");
    assert_eq!(offered(&script, &["tailback", "run", "--preset", ""]), "gpcnet quick lab sim");
    assert_eq!(offered(&script, &["tailback", "lab", "u"]), "up");
    let all = offered(&script, &["tailback", ""]);
    let words: BTreeSet<&str> = all.split(' ').collect();
    let listed = Cli::command();
    for command in listed.get_subcommands() {
        assert_eq!(words.contains(command.get_name()), !command.is_hide_set(), "{}: {all}", command.get_name());
    }
}

/// zsh and fish read theirs, where they are installed; ci/package asks both.
#[test]
fn other_shells_read_theirs() {
    let folder = Folder::new();
    for shell in ["zsh", "fish"] {
        let script = folder.write(shell, succeed(&format!("completions {shell}")).stdout);
        assert!(folder.text(shell).contains("congestors"), "{shell}");
        if let Ok(checked) = Command::new(shell).args(["-n", &script]).status() {
            assert!(checked.success(), "{shell}");
        }
    }
    assert!(run("completions tcsh").refusal().contains("invalid value 'tcsh' for '<SHELL>'"));
}
