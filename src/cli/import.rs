//! `tailback import`: results of other programs as result files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::import;
use crate::input::Limit;
use crate::output;
use crate::result::{self, ResultFile};
use crate::text::printable;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// Tables of GPCNeT's network_test and network_load_test, in the log of a job
    Gpcnet,
    /// The summary at the end of HPC Challenge's hpccoutf.txt
    Hpcc,
}

/// Options of `tailback import`.
#[derive(Clone, Debug, Args)]
pub struct ImportOptions {
    /// The program whose results they are
    #[arg(value_enum)]
    source: Source,

    /// What it printed: a log of GPCNeT may have other lines too, and several outputs, each of which becomes a result
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Of several outputs of GPCNeT only this one, counted from 1 [default: all of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nth: Option<u32>,

    /// Write the result file here; of several outputs to OUT-1.json, OUT-2.json, ... [default: FILE.json]
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
}

impl ImportOptions {
    pub(super) fn execute(self) -> Result<u8, String> {
        let name = self.file.display();
        let bytes = Limit::LOG.read(&self.file).map_err(|error| format!("cannot read {name}: {error}"))?;
        // Logs hold all kinds of bytes; the tables are ASCII.
        let text = String::from_utf8_lossy(&bytes);
        match self.source {
            Source::Gpcnet => self.outputs(&text),
            Source::Hpcc if self.nth.is_some() => Err("--nth is for logs of GPCNeT: leave it out with hpcc".into()),
            Source::Hpcc => {
                let file = import::hpcc(&text).map_err(|error| format!("{name}: {error}"))?;
                write(&self.out(), &file)
            }
        }
    }

    /// Every output of GPCNeT that was asked for, as far as it can be read.
    fn outputs(&self, text: &str) -> Result<u8, String> {
        let name = self.file.display();
        let outputs = import::gpcnet(text).map_err(|error| format!("{name}: {error}"))?;
        let (count, out) = (outputs.len(), self.out());
        if let Some(nth) = self.nth.filter(|nth| *nth as usize > count) {
            return Err(format!("invalid --nth {nth}: expected 1 to {count}, the number of outputs in {name}"));
        }
        if count > 1 && self.nth.is_none() && result::is_stdout(&out) {
            return Err(format!("{name} has {count} outputs, and stdout takes one result: choose it with --nth"));
        }
        let (mut written, mut left_out) = (false, Vec::new());
        for (number, output) in (1..).zip(&outputs).filter(|(number, _)| self.nth.is_none_or(|nth| nth == *number)) {
            let file = match output.file() {
                Ok(file) => file,
                Err(error) => {
                    left_out.push((number, error));
                    continue;
                }
            };
            output.warnings().iter().for_each(|warning| warn(&format!("{name}: {warning}")));
            let is_named = count == 1 || (self.nth.is_some() && self.out.is_some());
            write(&if is_named { out.clone() } else { result::numbered(&out, number) }, &file)?;
            written = true;
        }
        if let Some((_, error)) = left_out.first().filter(|_| !written) {
            return Err(format!("{name}: {error}"));
        }
        for (number, error) in left_out {
            warn(&format!("{name}: output {number} left out: {error}"));
        }
        Ok(0)
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let mut out = self.file.clone().into_os_string();
            out.push(".json");
            out.into()
        })
    }
}

fn warn(text: &str) {
    eprintln!("tailback: warning: {}", printable(text));
}

fn write(out: &Path, file: &ResultFile) -> Result<u8, String> {
    result::write(out, file).map_err(|error| error.to_string())?;
    if result::is_stdout(out) {
        return Ok(0);
    }
    let (ranks, nodes) = (file.system.ranks, file.system.nodes.len());
    let what = match file.models.as_ref().and_then(|models| models.hpcc.as_ref()) {
        Some(hpcc) => format!("{} figures of {ranks} ranks", hpcc.figures.len()),
        None => {
            let kind = if file.command.is_load_test() { "load test" } else { "network test" };
            format!("{kind}, {} rows, {ranks} ranks on {nodes} nodes", file.runs[0].tests.len())
        }
    };
    output::print(&format!("Wrote {}: {what}\n", out.display()))
}
