//! Traffic classes by name. Which of them a provider has is the provider's matter.

use std::fmt;
use std::str::FromStr;

use libfabric_sys::{
    FI_TC_BEST_EFFORT, FI_TC_BULK_DATA, FI_TC_DEDICATED_ACCESS, FI_TC_DSCP, FI_TC_LOW_LATENCY, FI_TC_NETWORK_CTRL,
    FI_TC_SCAVENGER,
};

use tailback_transport::Error;

const NAMED: [(&str, u32); 6] = [
    ("best-effort", FI_TC_BEST_EFFORT),
    ("low-latency", FI_TC_LOW_LATENCY),
    ("dedicated-access", FI_TC_DEDICATED_ACCESS),
    ("bulk-data", FI_TC_BULK_DATA),
    ("scavenger", FI_TC_SCAVENGER),
    ("network-control", FI_TC_NETWORK_CTRL),
];

/// A class of libfabric's, or a DSCP value (`dscp:46`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficClass(u32);

impl TrafficClass {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl FromStr for TrafficClass {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((_, number)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(TrafficClass(*number));
        }
        let value = text.strip_prefix("dscp:").and_then(|value| value.parse::<u32>().ok()).filter(|&value| value < 64);
        value.map(|value| TrafficClass(FI_TC_DSCP | value)).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            Error::Setup(format!("unknown traffic class \"{text}\": use {} or dscp:0 to dscp:63", names.join(", ")))
        })
    }
}

impl fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "dscp:{}", self.0 & !FI_TC_DSCP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for text in NAMED.iter().map(|(name, _)| *name).chain(["dscp:0", "dscp:46"]) {
            assert_eq!(text.parse::<TrafficClass>().expect("a class's own name").to_string(), text);
        }
        assert!("dscp:64".parse::<TrafficClass>().is_err() && "fast".parse::<TrafficClass>().is_err());
    }
}
