//! Quantities as people write them, on the command line and in files: `128KiB`, `200mbit`, `500ms`, `20%`.
//!
//! Of sizes, `KiB` is 1024 bytes and `kB` is 1000; a bare `k` is refused because `tc` and `dd` disagree on it. On the command
//! line upper and lower case are the same; files that are kept ([`written`]) must have units, as they are spelled here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

/// A unit's name, and how many of the smallest of its kind it is.
pub type Unit = (&'static str, f64);

/// Of sizes, in bytes.
pub const SIZES: &[Unit] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];

/// Of times, in picoseconds.
pub const TIMES: &[Unit] = &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// Of longer times, the same.
const LONG_TIMES: &[Unit] = &[("m", 60e12), ("min", 60e12), ("h", 3600e12)];

/// Of rates in bits per second.
const BIT_RATES: &[Unit] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)];

/// Of rates in bytes, the same.
const BYTE_RATES: &[Unit] = &[("B/s", 8.0), ("MB/s", 8e6), ("GB/s", 8e9)];

/// Below it a float has all whole numbers.
const MOST_EXACT: f64 = (1u64 << 53) as f64;

/// A number that is not negative, infinite if it has too many digits, and what stands behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let number = text[..at].trim().parse().ok().filter(|number: &f64| *number >= 0.0)?;
    Some((number, text[at..].trim()))
}

/// The value of `text` in the smallest unit of `units`, in any case; a bare number is of the unit `bare`, if there is one.
fn typed(text: &str, units: &[&[Unit]], bare: Option<&str>) -> Option<f64> {
    let (number, unit) = split(text.trim())?;
    let unit = if unit.is_empty() { bare? } else { unit };
    units.concat().iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| number * factor)
}

/// `value`, if it is a whole number but for the error of a product.
fn whole(value: f64) -> Option<u64> {
    let nearest = value.round();
    let exact = (value - nearest).abs() <= 4.0 * f64::EPSILON * nearest && nearest < MOST_EXACT;
    exact.then_some(nearest as u64)
}

/// The value of `text`, which has a unit, in the smallest of `units`. Whether it is one that `what` may have is asked later,
/// where its key is known.
///
/// # Errors
/// Says which units there are.
pub fn written(text: &str, what: &str, units: &[Unit]) -> Result<f64, String> {
    let found = split(text)
        .and_then(|(number, unit)| units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| number * factor));
    found.ok_or_else(|| {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        format!("invalid {what} '{}': expected a number from 0 and one of the units {names}", shown(text))
    })
}

/// What a file says, fit for one line of an error.
#[must_use]
pub fn shown(text: &str) -> String {
    shown_up_to(60, text)
}

/// No more characters than `most`, and none that moves the cursor.
#[must_use]
pub fn shown_up_to(most: usize, text: &str) -> String {
    let short: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { short + "..." } else { short }
}

/// At most two decimals, and none that are zero.
#[must_use]
pub fn short(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size in bytes: `4096`, `128KiB`, `6.25MiB`, `64kB`.
///
/// # Errors
/// Says what a size looks like, as all of these do.
pub fn size(text: &str) -> Result<u64, String> {
    typed(text, &[SIZES], Some("B"))
        .and_then(whole)
        .ok_or_else(|| format!("invalid size '{text}': expected bytes (4096), or a number and a unit (128KiB, 64kB)"))
}

/// The same, of something in memory.
///
/// # Errors
/// As [`size`].
pub fn bytes(text: &str) -> Result<usize, String> {
    size(text).map(|size| size as usize)
}

/// The size of a message: of at least one byte, and not above a gibibyte.
///
/// # Errors
/// As [`size`].
pub fn message(text: &str) -> Result<usize, String> {
    let size = bytes(text)?;
    let fits = (1..=1 << 30).contains(&size);
    fits.then_some(size).ok_or_else(|| format!("invalid message size '{text}': expected 1 B to 1 GiB"))
}

/// Larger counts are a mistake of the hand, and some take memory for each.
pub const MOST: usize = 1_000_000;

/// How often, or how many: at least one.
///
/// # Errors
/// As [`size`].
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
///
/// # Errors
/// As [`size`].
pub fn duration(text: &str) -> Result<Duration, String> {
    typed(text, &[TIMES, LONG_TIMES], Some("s"))
        .and_then(|ps| Duration::try_from_secs_f64(ps / 1e12).ok())
        .ok_or_else(|| format!("invalid duration '{text}': expected a number and a unit, as in 10s, 500ms, 2m or 1h"))
}

/// A time in whole milliseconds.
///
/// # Errors
/// As [`size`].
pub fn milliseconds(text: &str) -> Result<u64, String> {
    typed(text, &[TIMES], None)
        .and_then(|ps| whole(ps / 1e9))
        .ok_or_else(|| format!("invalid time '{text}': expected whole milliseconds, as in 50ms or 1s"))
}

/// `0.2` or `20%`.
///
/// # Errors
/// As [`size`].
pub fn fraction(text: &str) -> Result<f64, String> {
    match split(text.trim()).filter(|(number, _)| number.is_finite()) {
        Some((number, "")) => Ok(number),
        Some((number, "%")) => Ok(number / 100.0),
        _ => Err(format!("invalid fraction '{text}': expected one as in 0.2 or 20%")),
    }
}

/// A link's rate in whole bits per second; in files, that number. The time of one byte is kept with it in femtoseconds, of
/// which every usual rate has a whole number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    bits: u64,
    fs_per_byte: u64,
}

impl Rate {
    /// A rate of this many bits per second.
    #[must_use]
    pub const fn bits_per_second(bits: u64) -> Self {
        // No link is slower than a bit, nor faster than a byte in a femtosecond.
        let divisor = if bits == 0 { 1 } else { bits };
        let fs_per_byte = (8_000_000_000_000_000 + divisor / 2) / divisor;
        Rate { bits, fs_per_byte: if fs_per_byte == 0 { 1 } else { fs_per_byte } }
    }

    /// A rate as a file has it that is kept: with its unit. Casts from a float keep to the range of the integer: what is too
    /// much stays too much, and is refused with its key.
    ///
    /// # Errors
    /// Says which units there are.
    pub fn written(text: &str) -> Result<Self, String> {
        written(text, "rate", &[BIT_RATES, BYTE_RATES].concat()).map(|bits| Rate::bits_per_second(bits.round() as u64))
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// How long `bytes` take at this rate, in seconds.
    #[must_use]
    pub fn seconds(self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.bits as f64
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
}

impl FromStr for Rate {
    type Err = String;

    /// As on the command line: `200mbit`, `1 Gbit/s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let plain = lower.strip_suffix("/s").or_else(|| lower.strip_suffix("ps")).unwrap_or(&lower);
        typed(&format!("{plain}/s"), &[BIT_RATES], None)
            .and_then(whole)
            .map(Rate::bits_per_second)
            .ok_or_else(|| format!("invalid rate '{text}': expected a number and a unit, as in 200mbit or 1gbit"))
    }
}

impl fmt::Display for Rate {
    /// In the largest unit of which it is a number with two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |factor: f64| self.bits as f64 >= factor && self.bits.is_multiple_of((factor / 100.0) as u64);
        match BIT_RATES[1..].iter().rev().find(|(_, factor)| fits(*factor)) {
            Some((unit, factor)) => write!(f, "{} {unit}", short(self.bits as f64 / factor)),
            None => write!(f, "{} bit/s", self.bits),
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_u64(self.bits)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from).map(Rate::bits_per_second)
    }
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
    fn sizes_are_read_as_written() {
        for (text, expected) in [
            ("0", 0),
            ("8B", 8),
            ("131072", 131_072),
            ("128KiB", 131_072),
            ("64kB", 64_000),
            ("6.25MiB", 6_553_600),
            ("2.3GB", 2_300_000_000),
            ("1 gib", 1 << 30),
        ] {
            assert_eq!((size(text), bytes(text)), (Ok(expected), Ok(expected as usize)), "{text}");
        }
        for text in
            ["", "128k", "KiB", "-5", "1.5", "0x10", "1e400", "12 parsecs", "1g", "9999999999GiB", "9007199254740993"]
        {
            let message = size(text).expect_err(text);
            assert!(message.contains("128KiB"), "{message}");
        }
    }

    #[test]
    fn durations_and_fractions() {
        assert_eq!(
            ["2", "2s", "1500ms", "2m", "1h", ".5min"].map(|text| duration(text).unwrap().as_secs_f64()),
            [2.0, 2.0, 1.5, 120.0, 3600.0, 30.0]
        );
        assert!(["", "s", "-2s", "2d", "nan"].iter().all(|text| duration(text).is_err()));
        assert_eq!((milliseconds("50ms"), milliseconds("1.5s")), (Ok(50), Ok(1500)));
        assert!(["50", "1us", "2m"].iter().all(|text| milliseconds(text).is_err()));
        assert_eq!((fraction("0.2"), fraction("20%")), (Ok(0.2), Ok(0.2)));
        assert!(fraction("a fifth").is_err());
    }

    #[test]
    fn what_is_kept_has_its_units() {
        assert_eq!(Rate::written("200 Gbit/s").map(Rate::bits), Ok(200_000_000_000));
        assert_eq!(Rate::written("5.25GB/s").map(Rate::bits), Ok(42_000_000_000));
        assert_eq!(written("128 KiB", "size", SIZES), Ok(131_072.0));
        assert_eq!(written("1 GiB", "size", SIZES), Ok(1_073_741_824.0));
        assert_eq!(written("1.5 us", "time", TIMES), Ok(1.5e6));
        for text in ["12", "- ns", "3 parsec", "-1 ns", "nan s", "1.2.3 s", "", "1 NS", "2 h"] {
            let error = written(text, "time", TIMES).unwrap_err();
            let expected =
                format!("invalid time '{text}': expected a number from 0 and one of the units ps, ns, us, ms, s");
            assert_eq!(error, expected);
        }
        assert!(["5 Mb/s", "200mbit", "1 GB"].iter().all(|text| Rate::written(text).is_err()));
    }

    #[test]
    fn rates_are_read_as_written() {
        for (text, bits) in [
            ("200mbit", 200_000_000),
            ("1Gbit/s", 1_000_000_000),
            ("2.5 gbit", 2_500_000_000),
            ("64kbit", 64_000),
            ("9600bit", 9600),
        ] {
            assert_eq!(text.parse(), Ok(Rate::bits_per_second(bits)), "{text}");
        }
        for text in ["", "fast", "-1mbit", "200", "1e3mbit", "99999999999gbit", "0.3bit", "100 Mbps", "1GB/s"] {
            let message = text.parse::<Rate>().expect_err(text);
            assert!(message.contains("200mbit"), "{message}");
        }
    }

    #[test]
    fn rates_are_exact_and_in_order() {
        let times = |bits, bytes| Rate::bits_per_second(bits).ps(bytes);
        assert_eq!(times(200_000_000_000, 4096), 163_840);
        assert_eq!(times(100_000_000_000, 1), 80);
        assert_eq!(times(200_000_000, 1500), 60_000_000);
        assert_eq!(times(1_000_000, u64::from(u32::MAX)), 34_359_738_360_000_000);
        assert_eq!([times(1000, u64::from(u32::MAX)), times(0, u64::MAX)], [u64::MAX; 2]);
        assert!(Rate::bits_per_second(2) > Rate::bits_per_second(1));
        assert!((Rate::bits_per_second(200_000_000).seconds(131_072) - 5.243e-3).abs() < 1e-5);
        assert_eq!(
            [1_000_000, 5_250_000_000, 100_000_000_000_000, 1_234_567]
                .map(|bits| Rate::bits_per_second(bits).to_string()),
            ["1 Mbit/s", "5.25 Gbit/s", "100 Tbit/s", "1234567 bit/s"]
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bits in 1u64..10_000_000_000_000) {
            let rate = Rate::bits_per_second(bits);
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(Rate::written(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (text.parse::<Rate>(), size(&text), duration(&text), Rate::written(&text));
        }
    }
}
