//! Quantities as a machine file writes them: `"200 Gbit/s"`, `"4 KiB"`, `"150 ns"`. A bare number is refused, because
//! nobody remembers which unit a file of last year meant.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A data rate, kept as the time of one byte in femtoseconds: every usual link rate is a whole number of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    fs_per_byte: u64,
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

    /// How long `bytes` take, in picoseconds.
    #[inline]
    #[must_use]
    pub fn ps(self, bytes: u64) -> u64 {
        bytes * self.fs_per_byte / 1000
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

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ps(pub u64);

impl Ps {
    /// A time in nanoseconds.
    #[must_use]
    pub fn ns(ns: u64) -> Self {
        Ps(1000 * ns)
    }
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
const SIZES: &[(&str, f64)] = &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("kB", 1e3), ("MB", 1e6)];
const TIMES: &[(&str, f64)] = &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// The value of `text` in the smallest unit of `units`.
fn parse(text: &str, units: &[(&str, f64)]) -> Result<f64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let names = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let factor = factor.ok_or_else(|| format!("`{text}`: the unit is one of {}", names()))?;
    let value: f64 = number.parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    if !(value >= 0.0 && value.is_finite()) {
        return Err(format!("`{text}` is negative or infinite"));
    }
    Ok(value * factor)
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bits = parse(&text, RATES).map_err(de::Error::custom)?;
        if !(1e3..=8e14).contains(&bits) {
            return Err(de::Error::custom(format!("`{text}` is no rate of a link")));
        }
        Ok(Rate::bits_per_second(bits))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse(&String::deserialize(from)?, SIZES).map(|bytes| Size(bytes as u64)).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Ps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse(&String::deserialize(from)?, TIMES).map(|ps| Ps(ps.round() as u64)).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse("200 Gbit/s", RATES), Ok(2e11));
        assert_eq!(parse("5.25GB/s", RATES), Ok(4.2e10));
        assert_eq!(parse("128 KiB", SIZES), Ok(131_072.0));
        assert_eq!(parse("1.5 us", TIMES), Ok(1.5e6));
        for (text, part) in [("12", "unit"), ("- ns", "number"), ("3 parsec", "one of ps"), ("-1 ns", "negative")] {
            let error = parse(text, TIMES).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn usual_rates_are_exact() {
        assert_eq!(Rate::bits_per_second(200e9).ps(4096), 163_840);
        assert_eq!(Rate::bits_per_second(100e9).ps(1), 80);
        assert_eq!(Rate::bits_per_second(200e6).ps(1500), 60_000_000);
    }
}
