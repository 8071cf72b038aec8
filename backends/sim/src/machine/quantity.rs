//! Quantities as a machine file writes them: `"4 KiB"`, `"150 ns"`. A bare number is refused, because nobody remembers which
//! unit a file of last year meant.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use tailback_transport::Bytes;
use tailback_transport::units::{Rate, SIZES, TIMES, short, written};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ps(pub u64);

impl Ps {
    /// A time in nanoseconds.
    #[must_use]
    pub const fn ns(ns: u64) -> Self {
        Ps(ns.saturating_mul(1000))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0).fmt(f)
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TIMES.iter().rev().find(|(_, factor)| self.0 as f64 >= *factor) {
            Some((unit, factor)) => write!(f, "{} {unit}", short(self.0 as f64 / factor)),
            None => f.write_str("0 s"),
        }
    }
}

// Casts from a float keep to the range of the integer: what is too much stays too much, and is refused with its key.

pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
    Rate::written(&String::deserialize(from)?).map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        written(&String::deserialize(from)?, "size", SIZES).map(|bytes| Size(bytes as u64)).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Ps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        written(&String::deserialize(from)?, "time", TIMES).map(|ps| Ps(ps.round() as u64)).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_with_their_units() {
        assert_eq!(
            [0, 1, 1500, 1_000_000, 50_000_000_000, u64::MAX].map(|ps| Ps(ps).to_string()),
            ["0 s", "1 ps", "1.5 ns", "1 us", "50 ms", "18446744.07 s"]
        );
        assert_eq!([1536, 3 << 20].map(|bytes| Size(bytes).to_string()), ["1536 B", "3 MiB"]);
    }
}
