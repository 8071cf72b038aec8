//! Sizes, durations and fractions as people write them.

use std::time::Duration;

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    number.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0).map(|n| (n, unit))
}

/// `4096`, `4096B`, `128KiB`, `6.25MiB`, `1GiB`; also `k`, `m`, `g` for the same binary units.
pub fn bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("'{text}' is no size: write bytes (4096) or a unit (128KiB, 6.25MiB)");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let size = number * factor as f64;
    if size.fract() != 0.0 || size > (1u64 << 53) as f64 { Err(wrong()) } else { Ok(size as usize) }
}

/// The size of a message: of at least one byte, and not above a gibibyte.
pub fn message(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        0 => Err("a message has at least 1 byte".into()),
        size if size > 1 << 30 => Err(format!("'{text}' is above 1 GiB, the longest message")),
        size => Ok(size),
    }
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
    let wrong = || format!("'{text}' is no duration: write 10s, 500ms, 2m or 1h");
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

/// `0.2` or `20%`.
pub fn fraction(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "")) => Ok(number),
        Some((number, "%")) => Ok(number / 100.0),
        _ => Err(format!("'{text}' is no fraction: write 0.2 or 20%")),
    }
}

#[cfg(test)]
mod tests {
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
            ["8", "8B", "128KiB", "6.25MiB", "1g"].map(|t| bytes(t).unwrap()),
            [8, 8, 131_072, 6_553_600, 1 << 30]
        );
        assert!(["", "KiB", "-1", "1.5", "1e400", "12 parsecs"].iter().all(|t| bytes(t).is_err()));
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
}
