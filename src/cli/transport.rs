//! Options that choose and set up the network under test, and where ranks run without a launcher.

use std::str::FromStr;

use clap::Args;

use crate::backend::{Backend, CongestorNetworks, Settings};
use crate::job::Place;

/// The network under test.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
#[allow(missing_docs)]
pub struct TransportOptions {
    /// Without a launcher: how many ranks to start on this machine [default: one per host of the lab, else 10; with sim
    /// what the --machine has]
    #[arg(short = 'n', long, value_name = "N")]
    pub ranks: Option<usize>,

    /// Without a launcher: plain ranks on this machine rather than the emulated cluster
    #[arg(long, env = "TAILBACK_NO_LAB", hide_env = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub no_lab: bool,

    #[command(flatten)]
    settings: Settings,
}

impl TransportOptions {
    /// As plain values: where ranks run, and how they reach the network under test.
    pub fn settings(self) -> (Place, Settings) {
        (Place { ranks: self.ranks, no_lab: self.no_lab }, self.settings)
    }
}

/// A word of `--congestor-transport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestorTransport {
    /// The canaries'.
    Same,
    /// A transport of its own.
    Over(Backend),
}

impl FromStr for CongestorTransport {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "same" => Ok(CongestorTransport::Same),
            word => word.parse().map(CongestorTransport::Over),
        }
    }
}

/// The congestors' networks, as plain values. Without a word, two networks make a 2x2 design.
pub(super) fn congestor_networks(words: &[CongestorTransport]) -> Result<CongestorNetworks, String> {
    match words {
        [] => Ok(CongestorNetworks::Crossed),
        [CongestorTransport::Same] => Ok(CongestorNetworks::Same),
        words => {
            let backend = |word: &CongestorTransport| match word {
                CongestorTransport::Over(backend) => Ok(*backend),
                CongestorTransport::Same => Err("--congestor-transport same stands alone".to_owned()),
            };
            words.iter().map(backend).collect::<Result<_, _>>().map(CongestorNetworks::Over)
        }
    }
}
