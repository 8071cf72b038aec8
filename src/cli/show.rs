//! `tailback show`: a result file, printed again.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::threshold::Of;
use crate::job::{Checks, Colors};
use crate::output::{self, Format};

/// Options of `tailback show`.
#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    /// Result files: of a run, of a study, or imported
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How results are printed [default: summary, then all tables]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Print the result file: the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// More columns
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    colors: Colors,

    #[command(flatten)]
    checks: Checks,
}

impl ShowOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        if let Some(of) = self.checks.fail_if.iter().find(|of| of.of != Of::Job) {
            let taker = if of.of.is_over_nights() { "history" } else { "compare" };
            return Err(format!("'{of}' is about several results: `tailback {taker}` takes it"));
        }
        let files = super::compare::read(&self.files)?;
        if self.format == Some(Format::Gpcnet)
            && let Some((path, _)) = files.iter().find(|(_, file)| !file.studies().is_empty())
        {
            return Err(format!("{} is a study, which GPCNeT has no table for", path.display()));
        }
        let format = if self.json { Some(Format::Json) } else { self.format };
        let show = |file| match format {
            Some(format) => format.render(file, self.verbose),
            None => output::in_full(file, self.verbose),
        };
        let shown: Vec<String> = files.iter().map(|(_, file)| show(file)).collect();
        let shown = shown.join("\n");
        match format {
            None | Some(Format::Summary | Format::Table) => output::print_coloured(&shown, self.colors.color)?,
            Some(_) => output::print(&shown)?,
        };
        self.checks.check_all(files.iter().map(|(_, file)| file))
    }
}
