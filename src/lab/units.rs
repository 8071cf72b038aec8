//! Rates and sizes as people write them: `200mbit`, `128KiB`.
//!
//! Rates are decimal bits per second. Sizes with `KiB` are binary and with `kB` decimal; a bare `k` is refused because
//! `tc` and `dd` disagree on it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link's rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// A rate of this many bits per second.
    #[must_use]
    pub const fn bits_per_second(bits: u64) -> Self {
        Rate(bits)
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, in seconds.
    #[must_use]
    pub fn seconds(self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.0 as f64
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 4] = [("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];
        let lower = text.trim().to_ascii_lowercase();
        let plain = lower.strip_suffix("/s").or_else(|| lower.strip_suffix("ps")).unwrap_or(&lower);
        scaled(plain, &UNITS)
            .map(Rate)
            .ok_or_else(|| format!("`{text}` is no rate: write a number and a unit, as in 200mbit or 1gbit"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
        for (factor, unit) in UNITS {
            if self.0 >= factor && self.0.is_multiple_of(factor) {
                return write!(f, "{} {unit}", self.0 / factor);
            }
        }
        write!(f, "{} bit/s", self.0)
    }
}

/// Reads a size in bytes.
///
/// # Errors
/// If `text` is not a number with a unit of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 6] =
        [("", 1), ("b", 1), ("kb", 1_000), ("mb", 1_000_000), ("kib", 1 << 10), ("mib", 1 << 20)];
    scaled(&text.trim().to_ascii_lowercase(), &UNITS)
        .ok_or_else(|| format!("`{text}` is no size: write a number of bytes, or one with a unit as in 128KiB or 64kB"))
}

/// Reads a time in whole milliseconds.
///
/// # Errors
/// If `text` is not a number with a unit of time.
pub fn parse_milliseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 2] = [("ms", 1), ("s", 1_000)];
    scaled(&text.trim().to_ascii_lowercase(), &UNITS)
        .ok_or_else(|| format!("`{text}` is no time in milliseconds: write it as in 50ms or 1s"))
}

/// A decimal number times the factor of its unit, if the product is a whole number that fits.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let part = fraction.parse::<u64>().ok()?.checked_mul(factor)?;
    let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    part.is_multiple_of(scale).then(|| whole.checked_add(part / scale))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_as_written() {
        for (text, bits) in [
            ("200mbit", 200_000_000),
            ("1Gbit/s", 1_000_000_000),
            ("2.5 gbit", 2_500_000_000),
            ("100 Mbps", 0),
            ("64kbit", 64_000),
            ("9600bit", 9600),
        ] {
            let rate = text.parse::<Rate>();
            if bits == 0 {
                assert!(rate.is_err(), "{text} gave {rate:?}");
            } else {
                assert_eq!(rate, Ok(Rate(bits)), "{text}");
            }
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "fast", "-1mbit", "1.mbit", ".5gbit", "200", "1e3mbit", "99999999999gbit", "0.3bit"] {
            let message = text.parse::<Rate>().expect_err(text);
            assert!(message.contains("200mbit"), "{message}");
        }
        for text in ["", "128k", "-5", "1.5", "0x10", "12 parsecs"] {
            let message = parse_bytes(text).expect_err(text);
            assert!(message.contains("128KiB"), "{message}");
        }
    }

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in
            [("128KiB", 131_072), ("131072", 131_072), ("64kB", 64_000), ("1.5MiB", 1_572_864), ("0", 0)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_full_queue_takes_its_bits_over_the_rate() {
        assert!((Rate(200_000_000).seconds(131_072) - 5.243e-3).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bits in 1u64..10_000_000_000_000) {
            let shown = Rate(bits).to_string();
            prop_assert_eq!(shown.parse::<Rate>(), Ok(Rate(bits)));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (text.parse::<Rate>(), parse_bytes(&text));
        }
    }
}
