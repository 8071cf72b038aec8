//! `tailback export`: figures of kept results as metrics.

use std::path::PathBuf;

use clap::Args;

use crate::output::{self, MetricsFormat};
use crate::result;

/// Options of `tailback export`.
#[derive(Clone, Debug, Args)]
pub struct ExportOptions {
    /// Result files: of a run, of a study, or imported
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The form of the metrics
    #[arg(long, value_enum)]
    format: MetricsFormat,

    /// Write them here, whole or not at all [default: stdout]
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
}

impl ExportOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        if let Some(out) = self.out.as_ref().filter(|out| self.files.contains(out)) {
            return Err(format!("{} is a result: give another file with --out", out.display()));
        }
        let files = super::compare::read(&self.files)?;
        let text = self.format.render(&files.iter().map(|(_, file)| file).collect::<Vec<_>>())?;
        match self.out {
            Some(out) => result::write_text(&out, &text).map(|()| 0).map_err(|error| error.to_string()),
            None => output::print(&text),
        }
    }
}
