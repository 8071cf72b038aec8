//! Help texts, as users see them: a change is a change of the product and is looked at.

use std::collections::HashMap;

use tailback::kernel::{Canary, Congestor};

use crate::common::{run, succeed, tailback};

const COMMANDS: [&str; 33] = [
    "",
    "run",
    "app",
    "tune",
    "sweep",
    "burst",
    "network",
    "congest",
    "calibrate",
    "show",
    "compare",
    "history",
    "report",
    "export",
    "import",
    "maxrate",
    "contention",
    "beff",
    "hpcc",
    "map",
    "locate",
    "launch",
    "lab",
    "lab run",
    "simulate",
    "machine",
    "machine check",
    "info",
    "terms",
    "schema",
    "secret",
    "completions",
    "man",
];

/// Every option is told once, by the first command that has it; the others only name it.
#[test]
fn help_texts() {
    let mut known = HashMap::new();
    for command in COMMANDS {
        let help = succeed(&format!("{command} --help")).stdout;
        let told: Vec<String> = options(&help).map(|option| once(&option, command, &mut known)).collect();
        let name = if command.is_empty() { "tailback".to_owned() } else { command.replace(' ', "_") };
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("help__{name}"), told.concat());
        });
    }
}

/// A help text in pieces: each option with its description, and what stands between them.
fn options(help: &str) -> impl Iterator<Item = String> {
    let mut pieces = vec![String::new()];
    for line in help.lines() {
        if line.trim_start().starts_with('-') && line.starts_with("  ") && !line.starts_with("          ")
            || line.ends_with(':') && !line.starts_with(' ')
        {
            pieces.push(String::new());
        }
        pieces.last_mut().expect("one").push_str(&format!("{line}\n"));
    }
    pieces.into_iter()
}

fn once(option: &str, command: &str, known: &mut HashMap<String, String>) -> String {
    let option = kernels_apart(option);
    let name = option.lines().next().unwrap_or_default().to_owned();
    if !name.trim_start().starts_with('-') {
        return option;
    }
    match known.get(option.trim_end()) {
        Some(first) => format!("{name}  (see {first})\n"),
        None => {
            known
                .insert(option.trim_end().to_owned(), if command.is_empty() { "tailback" } else { command }.to_owned());
            option
        }
    }
}

/// A list of kernels comes from their table, which another test holds against the help.
fn kernels_apart(option: &str) -> String {
    let words = option.split_whitespace().collect::<Vec<_>>().join(" ");
    let (canaries, congestors) = (Canary::keys(), Congestor::keys());
    if !words.contains(&canaries) && !words.contains(&congestors) {
        return option.to_owned();
    }
    format!("      {}\n\n", words.replace(&canaries, "CANARIES").replace(&congestors, "CONGESTORS"))
}

#[test]
fn without_a_command_the_help_is_shown() {
    let outcome = run("");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.contains("Usage: tailback <COMMAND>"), "{}", outcome.stderr);
}

#[test]
fn every_kernel_is_in_the_help_and_in_info() {
    let (help, info) = (succeed("run --help").stdout, succeed("info").stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let keys = [Canary::keys(), Congestor::keys()];
    assert!(keys.iter().all(|keys| help.contains(keys)), "{help}");
    assert!(keys.join(", ").split(", ").all(|kernel| info.contains(&format!("  {kernel} "))), "{info}");
    assert!(info.contains("no launcher"), "{info}");
}

#[test]
fn programs_are_told_what_can_be_done_here() {
    let json = |line: &str| serde_json::from_str::<serde_json::Value>(&succeed(line).stdout).expect("it is JSON");
    let info = json("info --json");
    assert_eq!(info["build"]["version"], env!("CARGO_PKG_VERSION"));
    let has = |list: &serde_json::Value, name: &str| list.as_array().unwrap().iter().any(|of| of["name"] == name);
    assert!(
        has(&info["canaries"], "lat") && has(&info["congestors"], "incast") && has(&info["backends"], "tcp"),
        "{info}"
    );
    let machines = json("machine list --json");
    assert!(has(&machines, "small"), "{machines}");
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(succeed("--version").stdout, format!("tailback {}\n", env!("CARGO_PKG_VERSION")));
}

/// What fits a screen, also one of 80 columns: all options are under `--help`.
#[test]
fn short_help_is_short() {
    for (command, columns) in COMMANDS.into_iter().flat_map(|command| [(command, "80"), (command, "100")]) {
        let words = command.split_whitespace().chain(["-h"]);
        let help = tailback(words).env("COLUMNS", columns).output().expect("it starts").stdout;
        let help = String::from_utf8(help).expect("text");
        assert!(help.lines().count() <= 40, "{command}: {} lines\n{help}", help.lines().count());
        let wide = help.lines().find(|line| line.chars().count() > columns.parse().expect("a number"));
        assert!(help.contains("Usage") || command == "terms", "{help}");
        assert_eq!(wide, None, "{command}");
    }
    let terms = succeed("help terms").stdout;
    assert_eq!(terms.trim_end(), succeed("terms").stdout.trim_end());
    assert!(terms.contains("\ntime-p90 ") && terms.contains("\nimpact "), "{terms}");
}
