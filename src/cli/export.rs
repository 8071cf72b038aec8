//! `tailback export`: figures of kept results as metrics.

use std::path::PathBuf;

use clap::Args;

use crate::output::{self, MetricsFormat};
use crate::result::{self, ResultFile};

/// Options of `tailback export`.
#[derive(Clone, Debug, Args)]
pub struct ExportOptions {
    /// Result files: of a run, of a study, or imported
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The form of the metrics
    #[arg(long, value_enum)]
    format: MetricsFormat,

    /// OpenMetrics without times, as node_exporter's textfile collector wants it: of figures that several results have, those of the
    /// newest
    #[arg(long)]
    no_timestamps: bool,

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
        let files: Vec<&ResultFile> = files.iter().map(|(_, file)| file).collect();
        let text = match (self.format, self.no_timestamps) {
            (format, false) => format.render(&files)?,
            (MetricsFormat::Openmetrics, true) => output::openmetrics(&files),
            (_, true) => return Err("--no-timestamps is for --format openmetrics".into()),
        };
        match self.out {
            Some(out) => result::write_text(&out, &text).map(|()| 0).map_err(|error| error.to_string()),
            None => output::print(&text),
        }
    }
}
