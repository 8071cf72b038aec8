//! Quantities as people write them, on the command line and in files: `128KiB`, `200mbit`, `500ms`, `20%`.
//!
//! Of sizes, `KiB` is 1024 bytes and `kB` is 1000; a bare `k` is refused because `tc` and `dd` disagree on it. Rates are decimal
//! bits per second. Machine files are stricter, since they are kept: `tailback_sim::machine` reads them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size in bytes: `4096`, `128KiB`, `6.25MiB`, `64kB`.
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ];
    scaled(&text.trim().to_ascii_lowercase(), &UNITS)
        .filter(|size| *size <= 1 << 53)
        .ok_or_else(|| format!("invalid size '{text}': expected bytes (4096), or a number and a unit (128KiB, 64kB)"))
}

/// The same, of something in memory.
pub fn bytes(text: &str) -> Result<usize, String> {
    size(text).map(|size| size as usize)
}

/// The size of a message: of at least one byte, and not above a gibibyte.
pub fn message(text: &str) -> Result<usize, String> {
    let size = bytes(text)?;
    let fits = (1..=1 << 30).contains(&size);
    fits.then_some(size).ok_or_else(|| format!("invalid message size '{text}': expected 1 B to 1 GiB"))
}

/// Larger counts are a mistake of the hand, and some take memory for each.
pub const MOST: usize = 1_000_000;

/// How often, or how many: at least one.
pub fn count(text: &str) -> Result<usize, String> {
    up_to(MOST)(text)
}

/// The same with a bound of its own.
pub fn up_to(most: usize) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| {
        let count = text.trim().parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| format!("invalid count '{text}': expected 1 to {most}"))
    }
}

/// `10s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration '{text}': expected a number and a unit, as in 10s, 500ms, 2m or 1h");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "us" => number * 1e-6,
        "ms" => number * 1e-3,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// A time in whole milliseconds.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 2] = [("ms", 1), ("s", 1_000)];
    scaled(&text.trim().to_ascii_lowercase(), &UNITS)
        .ok_or_else(|| format!("invalid time '{text}': expected whole milliseconds, as in 50ms or 1s"))
}

/// `0.2` or `20%`.
pub fn fraction(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "")) => Ok(number),
        Some((number, "%")) => Ok(number / 100.0),
        _ => Err(format!("invalid fraction '{text}': expected one as in 0.2 or 20%")),
    }
}

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
            .ok_or_else(|| format!("invalid rate '{text}': expected a number and a unit, as in 200mbit or 1gbit"))
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

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    number.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0).map(|n| (n, unit))
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
    fn nothing_is_no_count_and_no_message() {
        assert_eq!((count("1"), count("20"), message("1"), message("1GiB")), (Ok(1), Ok(20), Ok(1), Ok(1 << 30)));
        for text in ["0", "-1", "1.5", "", "many", "1000001", "99999999999999999999"] {
            assert_eq!(count(text), Err(format!("invalid count '{text}': expected 1 to 1000000")));
        }
        assert_eq!((up_to(9)("9"), up_to(9)("10").is_err()), (Ok(9), true));
        for text in ["0", "2GiB", "99999999999", "x"] {
            assert!(message(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(
            ["8", "8B", "128KiB", "6.25MiB", "1GiB", "64kB"].map(|t| bytes(t).unwrap()),
            [8, 8, 131_072, 6_553_600, 1 << 30, 64_000]
        );
        assert!(
            ["", "KiB", "-1", "1.5", "1e400", "12 parsecs", "1g", "9999999999GiB"].iter().all(|t| bytes(t).is_err())
        );
    }

    #[test]
    fn durations() {
        assert_eq!(["2", "2s", "1500ms", "2m"].map(|t| duration(t).unwrap().as_secs_f64()), [2.0, 2.0, 1.5, 120.0]);
        assert!(["", "s", "-2s", "2d", "nan"].iter().all(|t| duration(t).is_err()));
    }

    #[test]
    fn fractions() {
        assert_eq!((fraction("0.2"), fraction("20%")), (Ok(0.2), Ok(0.2)));
        assert!(fraction("a fifth").is_err());
    }

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
            let message = size(text).expect_err(text);
            assert!(message.contains("128KiB"), "{message}");
        }
    }

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in
            [("128KiB", 131_072), ("131072", 131_072), ("64kB", 64_000), ("1.5MiB", 1_572_864), ("0", 0)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
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
            let _ = (text.parse::<Rate>(), size(&text));
        }
    }
}
