//! Quantities as a machine file writes them: `"200 Gbit/s"`, `"4 KiB"`, `"150 ns"`. A bare number is refused, because
//! nobody remembers which unit a file of last year meant.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A data rate, kept as the time of one byte in femtoseconds: every usual link rate is a whole number of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    fs_per_byte: u64,
}

impl PartialOrd for Rate {
    /// The faster is the greater.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(other.fs_per_byte.cmp(&self.fs_per_byte))
    }
}

impl Rate {
    /// A rate in bits per second.
    ///
    /// # Panics
    /// If it is zero or above 8 Pbit/s, which no link has.
    #[must_use]
    pub fn bits_per_second(bits: f64) -> Self {
        let fs_per_byte = (8e15 / bits).round();
        assert!(fs_per_byte >= 1.0 && fs_per_byte.is_finite(), "{bits} bit/s is no rate of a link");
        Rate { fs_per_byte: fs_per_byte as u64 }
    }

    /// How long `bytes` take, in picoseconds; where that is no number of them, the most there is.
    #[inline]
    #[must_use]
    pub fn ps(self, bytes: u64) -> u64 {
        match bytes.checked_mul(self.fs_per_byte) {
            Some(fs) => fs / 1000,
            None => u64::try_from(u128::from(bytes) * u128::from(self.fs_per_byte) / 1000).unwrap_or(u64::MAX),
        }
    }

    /// Bytes in a picosecond.
    #[must_use]
    pub fn bytes_per_ps(self) -> f64 {
        1000.0 / self.fs_per_byte as f64
    }

    /// Bytes in a second.
    #[must_use]
    pub fn bytes_per_second(self) -> f64 {
        1e15 / self.fs_per_byte as f64
    }

    /// This rate times `factor`.
    ///
    /// # Panics
    /// As [`Rate::bits_per_second`].
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Rate::bits_per_second(8.0 * self.bytes_per_second() * factor)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} Gbit/s", 8e-9 * self.bytes_per_second())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match 8.0 * self.bytes_per_second() {
            bits if bits >= 1e12 => write!(f, "{} Tbit/s", short(bits / 1e12)),
            bits if bits >= 1e9 => write!(f, "{} Gbit/s", short(bits / 1e9)),
            bits => write!(f, "{} Mbit/s", short(bits / 1e6)),
        }
    }
}

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
        let whole = |shift: u32| self.0 >> shift > 0 && self.0.trailing_zeros() >= shift;
        match self.0 {
            bytes if whole(30) => write!(f, "{} GiB", bytes >> 30),
            bytes if whole(20) => write!(f, "{} MiB", bytes >> 20),
            bytes if whole(10) => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 as f64 {
            0.0 => f.write_str("0 s"),
            ps if ps >= 1e12 => write!(f, "{} s", short(ps / 1e12)),
            ps if ps >= 1e9 => write!(f, "{} ms", short(ps / 1e9)),
            ps if ps >= 1e6 => write!(f, "{} us", short(ps / 1e6)),
            ps if ps >= 1e3 => write!(f, "{} ns", short(ps / 1e3)),
            ps => write!(f, "{ps} ps"),
        }
    }
}

/// At most two decimals, and none that are zero.
fn short(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

const RATES: &[(&str, f64)] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("Tbit/s", 1e12),
    ("B/s", 8.0),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
];
const SIZES: &[(&str, f64)] =
    &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("kB", 1e3), ("MB", 1e6)];
const TIMES: &[(&str, f64)] = &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// The value of `text` in the smallest unit of `units`. Whether it is one that a machine may have is asked later, where the
/// key is known.
fn parse(text: &str, what: &str, units: &[(&str, f64)]) -> Result<f64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (number.parse::<f64>(), factor) {
        (Ok(value), Some(factor)) if value >= 0.0 => Ok(value * factor),
        _ => {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            Err(format!("invalid {what} '{}': expected a number from 0 and one of the units {names}", shown(text)))
        }
    }
}

/// What a file says, fit for one line of an error.
pub(super) fn shown(text: &str) -> String {
    shown_up_to(60, text)
}

/// No more characters than `most`, and none that moves the cursor.
pub(super) fn shown_up_to(most: usize, text: &str) -> String {
    let short: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { short + "..." } else { short }
}

// Casts from a float keep to the range of the integer: what is too much stays too much, and is refused with its key.

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bits = parse(&String::deserialize(from)?, "rate", RATES).map_err(de::Error::custom)?;
        Ok(Rate { fs_per_byte: ((8e15 / bits).round() as u64).max(1) })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse(&String::deserialize(from)?, "size", SIZES).map(|bytes| Size(bytes as u64)).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Ps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse(&String::deserialize(from)?, "time", TIMES).map(|ps| Ps(ps.round() as u64)).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse("200 Gbit/s", "rate", RATES), Ok(2e11));
        assert_eq!(parse("5.25GB/s", "rate", RATES), Ok(4.2e10));
        assert_eq!(parse("128 KiB", "size", SIZES), Ok(131_072.0));
        assert_eq!(parse("1 GiB", "size", SIZES), Ok(1_073_741_824.0));
        assert_eq!(parse("1.5 us", "time", TIMES), Ok(1.5e6));
        for text in ["12", "- ns", "3 parsec", "-1 ns", "nan s", "1.2.3 s", ""] {
            let error = parse(text, "time", TIMES).unwrap_err();
            let expected =
                format!("invalid time '{text}': expected a number from 0 and one of the units ps, ns, us, ms, s");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn quantities_are_written_with_their_units() {
        assert_eq!(
            [0, 1, 1500, 1_000_000, 50_000_000_000, u64::MAX].map(|ps| Ps(ps).to_string()),
            ["0 s", "1 ps", "1.5 ns", "1 us", "50 ms", "18446744.07 s"]
        );
        assert_eq!(
            [0, 1023, 1536, 3 << 20, 1 << 30].map(|bytes| Size(bytes).to_string()),
            ["0 B", "1023 B", "1536 B", "3 MiB", "1 GiB"]
        );
        assert_eq!(
            [1e6, 5.25e9, 1e14].map(|bits| Rate::bits_per_second(bits).to_string()),
            ["1 Mbit/s", "5.25 Gbit/s", "100 Tbit/s"]
        );
    }

    #[test]
    fn usual_rates_are_exact() {
        assert_eq!(Rate::bits_per_second(200e9).ps(4096), 163_840);
        assert_eq!(Rate::bits_per_second(100e9).ps(1), 80);
        assert_eq!(Rate::bits_per_second(200e6).ps(1500), 60_000_000);
    }

    #[test]
    fn what_takes_too_long_takes_the_longest_time() {
        assert_eq!(Rate::bits_per_second(1e6).ps(u64::from(u32::MAX)), 34_359_738_360_000_000);
        assert_eq!(Rate::bits_per_second(1e3).ps(u64::from(u32::MAX)), u64::MAX);
        assert!(Rate::bits_per_second(2e9) > Rate::bits_per_second(1e9));
    }
}
