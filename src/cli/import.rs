//! `tailback import`: results of other programs as result files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::import;
use crate::input::Limit;
use crate::output;
use crate::result;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// The tables GPCNeT 1.3 prints
    Gpcnet,
    /// The summary at the end of HPC Challenge's hpccoutf.txt
    Hpcc,
}

/// Options of `tailback import`.
#[derive(Clone, Debug, Args)]
pub struct ImportOptions {
    /// The program that wrote it
    #[arg(value_enum)]
    source: Source,

    /// Its output
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the result file here [default: FILE with .json behind it]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl ImportOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let name = self.file.display();
        let bytes = Limit::LOG.read(&self.file).map_err(|error| format!("cannot read {name}: {error}"))?;
        // Logs hold all kinds of bytes; the tables are ASCII.
        let text = String::from_utf8_lossy(&bytes);
        let file = match self.source {
            Source::Gpcnet => import::gpcnet(&text).map_err(|error| format!("{name}: {error}"))?,
            Source::Hpcc => import::hpcc(&text).map_err(|error| format!("{name}: {error}"))?,
        };
        let out = self.out.unwrap_or_else(|| {
            let mut out = self.file.clone().into_os_string();
            out.push(".json");
            out.into()
        });
        result::write(&out, &file).map_err(|error| error.to_string())?;
        let count = match file.models.as_ref().and_then(|models| models.hpcc.as_ref()) {
            Some(hpcc) => format!("{} figures", hpcc.figures.len()),
            None => format!("{} tests", file.runs[0].tests.len()),
        };
        output::print(&format!("{}: {count}\n", out.display()))
    }
}
