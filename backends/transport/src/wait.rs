//! How a rank waits for the network, and which way is chosen when the user names none.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// What a blocking call does while nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Looks at the network again and again: lowest latency, takes a core.
    Spin,
    /// As spin, but offers the core to others after each fruitless round.
    Yield,
    /// Sleeps in the kernel until the network has something.
    Block,
}

impl WaitMode {
    /// The mode to use and why: `asked`, or else what suits `ranks_here` ranks on a host with `cores` cores.
    #[must_use]
    pub fn choose(asked: Option<WaitMode>, ranks_here: usize, cores: usize) -> (WaitMode, String) {
        match asked {
            Some(mode) => (mode, "as asked for".into()),
            None if ranks_here > cores => {
                (WaitMode::Block, format!("{ranks_here} ranks share the {cores} cores of this host"))
            }
            None => (WaitMode::Spin, format!("{cores} cores for the {ranks_here} ranks of this host")),
        }
    }
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitMode::Spin => "spin",
            WaitMode::Yield => "yield",
            WaitMode::Block => "block",
        })
    }
}

impl FromStr for WaitMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [WaitMode::Spin, WaitMode::Yield, WaitMode::Block]
            .into_iter()
            .find(|mode| mode.to_string() == name)
            .ok_or_else(|| Error::Setup(format!("unknown wait mode \"{name}\": use spin, yield or block")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversubscribed_hosts_block_and_say_why() {
        assert_eq!(WaitMode::choose(None, 10, 2), (WaitMode::Block, "10 ranks share the 2 cores of this host".into()));
        assert_eq!(WaitMode::choose(None, 2, 2).0, WaitMode::Spin);
        assert_eq!(WaitMode::choose(Some(WaitMode::Yield), 10, 2).0, WaitMode::Yield);
    }

    #[test]
    fn names_are_read_back() {
        for mode in [WaitMode::Spin, WaitMode::Yield, WaitMode::Block] {
            assert_eq!(mode.to_string().parse::<WaitMode>().expect("a mode's own name"), mode);
        }
        assert!("sleep".parse::<WaitMode>().is_err());
    }
}
