//! Holds the options in docs/reference.md and the terms in docs/glossary.md to the program, which both are made of.
//! `UPDATE_REFERENCE=1 cargo test -p tailback --lib reference` writes them anew.

use std::collections::HashMap;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::{Cli, help, terms};

#[test]
fn options_of_every_command_are_in_the_reference() {
    let mut out = String::new();
    let mut known = HashMap::new();
    let root = help::arranged(Cli::command());
    root.get_subcommands().for_each(|command| section(&mut out, "tailback", command, &mut known));
    held("docs/reference.md", &out);
}

#[test]
fn terms_of_the_program_are_in_the_glossary() {
    let mut out = String::new();
    for line in terms::TERMS.lines().skip(1).filter(|line| !line.is_empty()) {
        match line.split_once("  ").filter(|(term, _)| !term.is_empty()) {
            Some((term, text)) => out += &format!("\n- **{term}**: {}", text.trim()),
            None if line.starts_with(' ') => out += &format!(" {}", line.trim()),
            None => {}
        }
    }
    held("docs/glossary.md", &format!("{out}\n"));
}

/// What is between the marks of a page is what the program says, or is made so.
fn held(page: &str, made: &str) {
    const MARKS: [&str; 2] =
        ["<!-- made from the program: UPDATE_REFERENCE=1 cargo test -p tailback --lib reference -->\n", "<!-- end -->"];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let (head, rest) = text.split_once(MARKS[0]).expect("it has a first mark");
    let (old, tail) = rest.split_once(MARKS[1]).expect("it has a last mark");
    let made = format!("\n{}\n", made.trim_start());
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, format!("{head}{}{made}{}{tail}", MARKS[0], MARKS[1])).expect("it can be written");
    } else {
        assert!(
            old == made,
            "{page} is not what the program says: UPDATE_REFERENCE=1 cargo test -p tailback --lib reference"
        );
    }
}

/// A command with its options; one that an earlier command has in the same words is only named.
fn section(out: &mut String, parent: &str, command: &Command, known: &mut HashMap<String, String>) {
    let name = format!("{parent} {}", command.get_name());
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    *out += &format!("\n### {name}\n\n{about}.\n");
    let shown = command.get_arguments().filter(|arg| is_told(arg, command.get_name()));
    let mut groups: Vec<(&str, String)> = Vec::new();
    let mut told_before: Vec<(String, Vec<String>)> = Vec::new();
    for arg in shown {
        let text = option(arg);
        if let Some(first) = known.get(&text) {
            match told_before.iter_mut().find(|(of, _)| of == first) {
                Some((_, names)) => names.push(title(arg)),
                None => told_before.push((first.clone(), vec![title(arg)])),
            }
            continue;
        }
        known.insert(text.clone(), name.clone());
        let heading = arg.get_help_heading().filter(|_| !arg.is_positional()).unwrap_or("");
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, all)) => *all += &text,
            None => groups.push((heading, text)),
        }
    }
    for (heading, options) in groups {
        let heading = if heading.is_empty() { String::new() } else { format!("**{heading}**\n\n") };
        *out += &format!("\n{heading}{options}");
    }
    for (first, names) in told_before {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        *out += &format!("\nAs in `{first}`: {}.\n", names.join(", "));
    }
    command.get_subcommands().for_each(|of| section(out, &name, of, known));
}

/// Whether an option is one of the command's in some build.
fn is_told(arg: &Arg, command: &str) -> bool {
    let needs_feature = ["With verbs:", "With libfabric:", "With MPI:"]
        .iter()
        .any(|start| arg.get_help().is_some_and(|help| help.to_string().starts_with(start)));
    let id = arg.get_id().as_str();
    id != "help" && id != "version" && (!arg.is_hide_set() || (needs_feature && command != "simulate"))
}

/// An option as it is typed, without its value.
fn title(arg: &Arg) -> String {
    let values = || arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>();
    match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        _ => values().join(" "),
    }
}

fn option(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let value = match takes_value {
        true if arg.is_require_equals_set() => format!("[={names}]"),
        true => format!(" {names}"),
        false => String::new(),
    };
    let text = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let defaults = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect::<Vec<_>>().join(",");
    let is_shown = takes_value && !arg.is_hide_default_value_set() && !defaults.is_empty();
    let default = if is_shown { format!(" [default: {defaults}]") } else { String::new() };
    let variable = arg.get_env().and_then(|name| name.to_str()).map(|name| format!(" [${name}]")).unwrap_or_default();
    let mut out = format!("- `{}{value}`: {text}{default}{variable}\n", title(arg));
    let values = if takes_value { arg.get_possible_values() } else { Vec::new() };
    for value in values.iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
        out += &format!("  - `{}`{help}\n", value.get_name());
    }
    out
}
