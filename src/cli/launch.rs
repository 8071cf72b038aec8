//! `tailback launch`: ranks of any command on this machine.

use std::ffi::OsString;

use clap::Args;
use tailback_bootstrap::launch::{self, LaunchOptions, Output};

/// Options of `tailback launch`.
#[derive(Clone, Debug, Args)]
pub struct LaunchArguments {
    /// How many ranks to start
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    ranks: usize,

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
        if self.ranks == 0 {
            return Err("a job has at least 1 rank: give -n N".into());
        }
        if self.ranks_per_node == Some(0) {
            return Err("a node has at least 1 rank: give --ranks-per-node N".into());
        }
        let mut options = LaunchOptions::new(self.ranks, self.command);
        options.output = if self.prefix { Output::Prefix } else { Output::Merge };
        options.ranks_per_node = self.ranks_per_node;
        let code = launch::run(&options).map_err(|error| error.to_string())?;
        Ok(u8::try_from(code).unwrap_or(2))
    }
}
