//! `tailback report`: results as one HTML page, plots as files.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::report::{Painter, Report};
use crate::result;

/// Options of `tailback report`.
#[derive(Clone, Debug, Args)]
pub struct ReportOptions {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the page here
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// Also write every plot as an SVG file into this folder
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Write the plots of --plots as PNG files too
    #[arg(long, requires = "plots")]
    png: bool,

    /// Show the systems of the GPCNeT paper, and newer ones, beside the results
    #[arg(long)]
    published: bool,
}

impl ReportOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        if self.files.contains(&self.out) {
            return Err(format!("{} is a result: give another file with --out", self.out.display()));
        }
        let files = super::compare::read(&self.files)?;
        if files.iter().all(|(_, file)| file.runs.is_empty()) {
            return Err("these results hold no run".into());
        }
        let painter = self.png.then(Painter::new).transpose()?;
        let report = Report::new(&files, self.published);
        result::write_text(&self.out, &report.html()).map_err(|error| error.to_string())?;
        if let Some(folder) = &self.plots {
            write_plots(folder, &report, painter.as_ref())?;
        }
        eprintln!("tailback: wrote {}: open it in a browser", self.out.display());
        Ok(0)
    }
}

fn write_plots(folder: &Path, report: &Report<'_>, painter: Option<&Painter>) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    for plot in report.plots() {
        let path = folder.join(format!("{}.svg", plot.id));
        result::write_text(&path, &plot.standalone()).map_err(|error| error.to_string())?;
        if let Some(painter) = painter {
            let path = folder.join(format!("{}.png", plot.id));
            result::write_bytes(&path, &painter.paint(&plot)?).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
