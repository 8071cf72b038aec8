//! Manual pages and completions of shells, made from the description of the command line: what a package installs. They have the
//! commands and options of this build, and nothing that its help does not have.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{help, terms};
use crate::output::print;

#[derive(Debug, Args)]
pub(super) struct CompletionsOptions {
    /// The shell that reads them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsOptions {
    pub(super) fn execute(&self, line: Command) -> Result<u8, String> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(line), "tailback", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}

#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// Folder for the pages, made if it is missing: tailback.1 and one for each command
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl ManOptions {
    pub(super) fn execute(&self, line: Command) -> Result<u8, String> {
        std::fs::create_dir_all(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let mut root = shown(line).disable_help_subcommand(true);
        root.build();
        let count = pages(&root, &self.folder)?;
        print(&format!("{count} pages in {}\n", self.folder.display()))
    }
}

/// The command line as its help shows it. Completions would offer hidden commands: those are left out.
fn shown(line: Command) -> Command {
    let arranged = help::arranged(line);
    let listed: Vec<Command> = arranged.get_subcommands().filter(|of| !of.is_hide_set()).cloned().collect();
    let root = Command::new("tailback").version(env!("CARGO_PKG_VERSION")).subcommand_required(true);
    let about = arranged.get_about().cloned().unwrap_or_default();
    let long = arranged.get_long_about().cloned().unwrap_or_default();
    let after = arranged.get_after_help().cloned().unwrap_or_default();
    root.about(about).long_about(long).after_help(after).subcommands(listed)
}

/// The pages of a command and of those below it, in a folder; gives their number.
fn pages(command: &Command, folder: &Path) -> Result<usize, String> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let text = page(command, man).map_err(|error| error.to_string())?;
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    let below = command.get_subcommands().filter(|of| !of.is_hide_set());
    below.map(|of| pages(of, folder)).try_fold(1, |sum, count| Ok(sum + count?))
}

fn page(command: &Command, man: Man) -> std::io::Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    let man = man.manual("Tailback").source(format!("tailback {version}"));
    let mut out = Vec::new();
    if command.get_name() == "terms" {
        man.render_title(&mut out)?;
        man.render_name_section(&mut out)?;
        // Columns, which stay as they are.
        let mut glossary = Roff::new();
        glossary.control("SH", ["TERMS"]).control("nf", []);
        terms::TERMS.lines().skip(2).for_each(|line| {
            glossary.text([roman(line)]);
        });
        glossary.control("fi", []).to_writer(&mut out)?;
    } else {
        man.render(&mut out)?;
    }
    if command.get_name() != "tailback" {
        Roff::new().control("SH", ["SEE ALSO"]).text([roman("tailback(1), tailback-terms(1)")]).to_writer(&mut out)?;
    }
    // What a help text says at its end are exit codes, and hints.
    Ok(String::from_utf8_lossy(&out).replace(".SH EXTRA\n", ".SH NOTES\n"))
}
