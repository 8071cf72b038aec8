//! `tailback launch`: ranks of any command on this machine.

use std::ffi::OsString;

use clap::Args;
use tailback_bootstrap::launch::{self, LaunchOptions, Output};

use crate::lab::default_name;
use crate::launch::on_lab;

/// Options of `tailback launch`.
#[derive(Clone, Debug, Args)]
pub struct LaunchArguments {
    /// How many ranks to start [default: one on each host of the lab, where there is --lab]
    #[arg(short = 'n', long = "ranks", value_name = "N", required_unless_present = "lab")]
    ranks: Option<usize>,

    /// Start them on the hosts of a lab that is up, with its data network as the one under test; --lab=NAME where it is not
    /// $TAILBACK_LAB or "default"
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "ranks_per_node")]
    lab: Option<String>,

    /// Put the rank in front of every line of output
    #[arg(long)]
    prefix: bool,

    /// Pretend hosts of so many consecutive ranks each (host names node0, node1, ...)
    #[arg(long, value_name = "N")]
    ranks_per_node: Option<usize>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl LaunchArguments {
    pub(super) fn execute(self) -> Result<u8, String> {
        if self.ranks == Some(0) {
            return Err("a job has at least 1 rank: give -n N".into());
        }
        if self.ranks_per_node == Some(0) {
            return Err("a node has at least 1 rank: give --ranks-per-node N".into());
        }
        let mut options = match &self.lab {
            Some(name) if name.is_empty() => on_lab(&default_name(), self.ranks, self.command)?,
            Some(name) => on_lab(name, self.ranks, self.command)?,
            None => LaunchOptions::new(self.ranks.unwrap_or(1), self.command),
        };
        options.output = if self.prefix { Output::Prefix } else { Output::Merge };
        options.ranks_per_node = self.ranks_per_node;
        let code = launch::run(&options).map_err(|error| error.to_string())?;
        Ok(u8::try_from(code).unwrap_or(2))
    }
}
