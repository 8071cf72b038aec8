//! `--congestors`: which, in which shares, each by itself or none.

use clap::Args;

use crate::kernel::Congestor;

/// What loads the network.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
#[allow(missing_docs)]
pub struct CongestorOptions {
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = loading())]
    pub congestors: Option<Vec<Share>>,
}

fn loading() -> String {
    format!(
        "What loads the network: {}; with weights if the shares are not to be equal, e.g. incast=40,a2a=60; with `each` \
         among them, also every one by itself; or none, to measure beside whoever else uses the network [default: \
         a2a,incast,put-incast,get-bcast]",
        Congestor::keys()
    )
}

/// A congestor and its share of the congestor nodes, or a word for all of them.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    Of {
        kernel: Congestor,
        weight: f64,
        /// Written with a percent sign, so that all of them are to make 100 at most.
        percent: bool,
    },
    /// No congestors at all.
    None,
    /// Every congestor also by itself.
    Each,
}

impl CongestorOptions {
    /// The kinds with their weights.
    pub fn mix(&self) -> Result<Option<Vec<(Congestor, f64)>>, String> {
        let Some(shares) = &self.congestors else { return Ok(None) };
        if let [Share::Each] = shares[..] {
            return Ok(None);
        }
        if shares.len() > 1 && shares.iter().any(|share| matches!(share, Share::None)) {
            return Err("--congestors none stands alone".into());
        }
        let (mut mix, mut percents) = (Vec::new(), false);
        for share in shares {
            if let Share::Of { kernel, weight, percent } = *share {
                mix.push((kernel, weight));
                percents |= percent;
            }
        }
        let sum: f64 = mix.iter().map(|(_, weight)| weight).sum();
        if percents && sum > 100.0 + 1e-6 {
            return Err(format!("the congestors' shares make {sum}%: more than all congestor nodes"));
        }
        Ok(Some(mix))
    }

    /// Whether every congestor is also to be run by itself.
    pub fn each(&self) -> Option<bool> {
        let each = |shares: &Vec<Share>| shares.iter().any(|share| matches!(share, Share::Each));
        self.congestors.as_ref().is_some_and(each).then_some(true)
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" => return Ok(Share::None),
            "each" => return Ok(Share::Each),
            _ => {}
        }
        let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
        let (weight, percent) = weight.strip_suffix('%').map_or((weight, false), |weight| (weight, true));
        let number = weight.trim().parse().map_err(|_| format!("'{text}': '{weight}' is no weight"))?;
        Ok(Share::Of { kernel: name.trim().parse()?, weight: number, percent })
    }
}
